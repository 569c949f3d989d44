//! Reads the tree into types, with every error at its place.

use serde::de::value::StrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error, Expected, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::located::LOCATED;
use super::misfit::{Misfit, Step};
use super::node::{Entry, Kind, Node};

/// A serde deserializer over one node.
#[derive(Clone, Copy)]
pub(super) struct NodeDeserializer<'n>(pub(super) &'n Node);

impl<'n> NodeDeserializer<'n> {
    fn expected(self, what: impl std::fmt::Display) -> Misfit {
        Misfit::custom(format!("expected {what}, found {}", self.0.kind.describe()))
    }

    fn entries(self) -> Option<Entries<'n>> {
        match &self.0.kind {
            Kind::Mapping(entries) => Some(Entries { entries, next: 0, current: 0 }),
            // A document without any content, or a key without a value, is an empty mapping.
            Kind::Nothing => Some(Entries { entries: &[], next: 0, current: 0 }),
            _ => None,
        }
    }

    fn integer<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        let too_large = || Misfit::custom(format!("too large; allowed: up to {}", u64::MAX));
        match self.0.kind {
            Kind::Integer(value) if value < 0 => Err(Misfit::custom(format!("must not be negative, as {value} is"))),
            Kind::Integer(value) => visitor.visit_u64(u64::try_from(value).map_err(|_| too_large())?),
            // The parser reads whole numbers beyond its own range as floating point.
            Kind::Float(value) if value >= u64::MAX as f64 => Err(too_large()),
            _ => Err(self.expected("a whole number")),
        }
    }

    fn text<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match &self.0.kind {
            Kind::Text(text) => visitor.visit_str(text),
            _ => Err(self.expected(&visitor as &dyn Expected)),
        }
    }
}

impl<'de> Deserializer<'de> for NodeDeserializer<'_> {
    type Error = Misfit;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match &self.0.kind {
            Kind::Nothing => visitor.visit_unit(),
            Kind::Bool(value) => visitor.visit_bool(*value),
            Kind::Integer(_) => self.integer(visitor),
            Kind::Float(value) => visitor.visit_f64(*value),
            Kind::Text(text) => visitor.visit_str(text),
            Kind::List(items) => visitor.visit_seq(Items { items, next: 0 }),
            Kind::Mapping(entries) => visitor.visit_map(Entries { entries, next: 0, current: 0 }),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.0.kind {
            Kind::Bool(value) => visitor.visit_bool(value),
            _ => Err(self.expected("true or false")),
        }
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        self.integer(visitor)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        self.integer(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.0.kind {
            Kind::Float(value) => visitor.visit_f64(value),
            Kind::Integer(value) => visitor.visit_f64(value as f64),
            _ => Err(self.expected("a number")),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        self.text(visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        self.text(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.0.kind {
            Kind::Nothing => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &str, visitor: V) -> Result<V::Value, Misfit> {
        if name == LOCATED {
            visitor.visit_seq(PlaceAndValue { node: self.0, part: 0 })
        } else {
            visitor.visit_newtype_struct(self)
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match &self.0.kind {
            Kind::List(items) => visitor.visit_seq(Items { items, next: 0 }),
            _ => Err(self.expected("a list")),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_map(self.entries().ok_or_else(|| self.expected("a mapping"))?)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        let expected = || self.expected(format_args!("a mapping with the keys {}", fields.join(", ")));
        visitor.visit_map(self.entries().ok_or_else(expected)?)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        match &self.0.kind {
            Kind::Text(word) => {
                let word: StrDeserializer<'_, Misfit> = word.as_str().into_deserializer();
                visitor.visit_enum(word)
            }
            _ => Err(self.expected(format_args!("one of {}", variants.join(", ")))),
        }
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u128 f32 char bytes byte_buf unit unit_struct tuple tuple_struct identifier
        ignored_any
    }
}

/// The entries of a mapping, without those taken out.
struct Entries<'n> {
    entries: &'n [Entry],
    next: usize,
    current: usize,
}

impl<'n> Entries<'n> {
    /// What the current entry is called from outside.
    fn step(&self) -> Step {
        Step { index: self.current, key: Some(self.entries[self.current].key.clone()) }
    }

    /// The earlier entry of the same key, whether its value was wrong or not.
    fn earlier(&self, entry: &Entry) -> Option<&'n Entry> {
        self.entries[..self.current].iter().find(|earlier| earlier.key == entry.key)
    }
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = Misfit;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Misfit> {
        let left = self.entries[self.next..].iter().position(|entry| !entry.value.omitted);
        let Some(skipped) = left else { return Ok(None) };
        self.current = self.next + skipped;
        self.next = self.current + 1;
        let entry = &self.entries[self.current];
        if let Some(earlier) = self.earlier(entry) {
            let message = format!("given a second time; the first is at line {}", earlier.key_place.line);
            return Err(Misfit::custom(message).within(self.step(), entry.key_place));
        }
        let key: StrDeserializer<'_, Misfit> = entry.key.as_str().into_deserializer();
        seed.deserialize(key).map(Some).map_err(|misfit| misfit.within(self.step(), entry.key_place))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Misfit> {
        let value = &self.entries[self.current].value;
        seed.deserialize(NodeDeserializer(value)).map_err(|misfit| misfit.within(self.step(), value.place))
    }
}

/// The items of a list, without those taken out.
struct Items<'n> {
    items: &'n [Node],
    next: usize,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Misfit;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Misfit> {
        let left = self.items[self.next..].iter().position(|item| !item.omitted);
        let Some(skipped) = left else { return Ok(None) };
        let index = self.next + skipped;
        self.next = index + 1;
        let item = &self.items[index];
        let step = Step { index, key: None };
        seed.deserialize(NodeDeserializer(item)).map(Some).map_err(|misfit| misfit.within(step, item.place))
    }
}

/// Line, column and value, as [`super::Located`] asks for them.
struct PlaceAndValue<'n> {
    node: &'n Node,
    part: u8,
}

impl<'de> SeqAccess<'de> for PlaceAndValue<'_> {
    type Error = Misfit;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Misfit> {
        self.part += 1;
        match self.part {
            1 => seed.deserialize(self.node.place.line.into_deserializer()).map(Some),
            2 => seed.deserialize(self.node.place.column.into_deserializer()).map(Some),
            3 => seed.deserialize(NodeDeserializer(self.node)).map(Some),
            _ => Ok(None),
        }
    }
}
