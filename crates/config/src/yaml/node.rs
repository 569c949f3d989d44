//! A YAML document as a tree that knows the place of every key and value.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use crate::Place;

/// One value of the document.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) place: Place,
    pub(crate) kind: Kind,
    /// Taken out after it proved wrong, so that the rest can be looked at as if it were not there.
    pub(crate) omitted: bool,
}

/// What a value is, after YAML's rules for plain scalars.
#[derive(Debug)]
pub(crate) enum Kind {
    Nothing,
    Bool(bool),
    Integer(i128),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    /// Entries in the order of the file; keys may still repeat.
    Mapping(Vec<Entry>),
}

/// One entry of a mapping.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_place: Place,
    pub(crate) value: Node,
}

impl Kind {
    /// What was found, in the words of an error message. Does not tell the value: it may be a secret.
    pub(crate) fn describe(&self) -> &'static str {
        match self {
            Kind::Nothing => "nothing",
            Kind::Bool(true) => "true",
            Kind::Bool(false) => "false",
            Kind::Integer(_) => "a whole number",
            Kind::Float(_) => "a number with a fraction",
            Kind::Text(_) => "text",
            Kind::List(_) => "a list",
            Kind::Mapping(_) => "a mapping",
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Node, D::Error> {
        let spanned = Spanned::<Kind>::deserialize(deserializer)?;
        Ok(Node { place: Place::of(spanned.referenced), kind: spanned.value, omitted: false })
    }
}

impl Place {
    pub(crate) fn of(location: serde_saphyr::Location) -> Place {
        Place { line: location.line(), column: location.column() }
    }
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Kind, D::Error> {
        deserializer.deserialize_any(KindVisitor)
    }
}

struct KindVisitor;

impl<'de> Visitor<'de> for KindVisitor {
    type Value = Kind;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<Kind, E> {
        Ok(Kind::Nothing)
    }

    fn visit_none<E>(self) -> Result<Kind, E> {
        Ok(Kind::Nothing)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Kind, E> {
        Ok(Kind::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Kind, E> {
        Ok(Kind::Integer(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Kind, E> {
        Ok(Kind::Integer(value.into()))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Kind, E> {
        Ok(Kind::Integer(value))
    }

    fn visit_u128<E>(self, value: u128) -> Result<Kind, E> {
        Ok(i128::try_from(value).map_or(Kind::Float(value as f64), Kind::Integer))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Kind, E> {
        Ok(Kind::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Kind, E> {
        Ok(Kind::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Kind, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Kind::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Kind, A::Error> {
        let mut mapping = Vec::new();
        while let Some(key) = entries.next_key::<Spanned<String>>()? {
            mapping.push(Entry { key_place: Place::of(key.referenced), key: key.value, value: entries.next_value()? });
        }
        Ok(Kind::Mapping(mapping))
    }
}
