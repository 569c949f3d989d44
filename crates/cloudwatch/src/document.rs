//! A value of any shape, as it comes in or goes out, whatever protocol carries it.

mod json;

use std::borrow::Cow;

/// A value of an API's request or answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Document {
    /// Nothing: a member that is not there.
    Null,
    /// True or false.
    Boolean(bool),
    /// A number.
    Number(f64),
    /// A number that the API's model has as a whole one: some clients read it as nothing else.
    Integer(i64),
    /// A moment, in seconds of Unix time.
    Timestamp(f64),
    /// Text. Protocols without types carry everything as text.
    Text(String),
    /// Values in order.
    List(Vec<Document>),
    /// Members with names that the API's model gives.
    Structure(Vec<(Cow<'static, str>, Document)>),
    /// Entries with names of the caller's, or of the data's.
    Map(Vec<(String, Document)>),
}

impl Document {
    /// A structure of these members; those that are [`Document::Null`] are left out.
    pub fn structure<const N: usize>(members: [(&'static str, Document); N]) -> Document {
        let there = members.into_iter().filter(|(_, value)| *value != Document::Null);
        Document::Structure(there.map(|(name, value)| (Cow::Borrowed(name), value)).collect())
    }

    /// A list of these values.
    pub fn list<T: Into<Document>>(values: impl IntoIterator<Item = T>) -> Document {
        Document::List(values.into_iter().map(Into::into).collect())
    }

    /// A moment, in seconds of Unix time.
    pub fn timestamp(seconds: u64) -> Document {
        Document::Timestamp(seconds as f64)
    }

    /// The member of this name, which is [`Document::Null`] where it is not there.
    pub fn member(&self, name: &str) -> &Document {
        let found = match self {
            Document::Structure(members) => members.iter().find(|(member, _)| member == name).map(|(_, value)| value),
            Document::Map(entries) => entries.iter().find(|(entry, _)| entry == name).map(|(_, value)| value),
            _ => None,
        };
        found.unwrap_or(&Document::Null)
    }

    /// The text; numbers and moments are none.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Document::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The number, also where a protocol carries it as text.
    pub fn as_number(&self) -> Option<f64> {
        match self {
            Document::Number(number) | Document::Timestamp(number) => Some(*number),
            Document::Integer(number) => Some(*number as f64),
            Document::Text(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    /// The truth value, also where a protocol carries it as text.
    pub fn as_boolean(&self) -> Option<bool> {
        match self {
            Document::Boolean(value) => Some(*value),
            Document::Text(text) => match text.as_str() {
                "true" => Some(true),
                "false" => Some(false),
                _ => None,
            },
            _ => None,
        }
    }

    /// The moment in seconds of Unix time, also where a protocol carries it as a number or as text (RFC 3339).
    pub fn as_timestamp(&self) -> Option<f64> {
        match self {
            Document::Text(text) => {
                let stamp: Option<jiff::Timestamp> = text.parse().ok();
                stamp.map(|stamp| stamp.as_millisecond() as f64 / 1000.0).or_else(|| text.parse().ok())
            }
            other => other.as_number(),
        }
    }

    /// The values of a list.
    pub fn as_list(&self) -> Option<&[Document]> {
        match self {
            Document::List(values) => Some(values),
            _ => None,
        }
    }
}

impl From<&str> for Document {
    fn from(text: &str) -> Document {
        Document::Text(text.to_owned())
    }
}

impl From<String> for Document {
    fn from(text: String) -> Document {
        Document::Text(text)
    }
}

impl From<f64> for Document {
    fn from(number: f64) -> Document {
        Document::Number(number)
    }
}

impl From<u32> for Document {
    fn from(number: u32) -> Document {
        Document::Integer(number.into())
    }
}

impl From<bool> for Document {
    fn from(value: bool) -> Document {
        Document::Boolean(value)
    }
}

impl<T: Into<Document>> From<Option<T>> for Document {
    fn from(value: Option<T>) -> Document {
        value.map_or(Document::Null, Into::into)
    }
}

/// The moment as text, as CloudWatch's XML has it: `2026-11-29T12:00:00Z`, milliseconds where there are any.
pub(crate) fn rfc3339(seconds: f64) -> String {
    let milliseconds = (seconds * 1000.0).round() as i64;
    jiff::Timestamp::from_millisecond(milliseconds).map(|stamp| stamp.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stands_for_what_it_says_where_a_protocol_has_no_types() {
        let text = |text: &str| Document::from(text);
        assert_eq!(text("60").as_number(), Some(60.0));
        assert_eq!(text("true").as_boolean(), Some(true));
        assert_eq!(text("2026-11-29T12:00:00Z").as_timestamp(), Some(1_795_953_600.0));
        assert_eq!(text("1795953600.5").as_timestamp(), Some(1_795_953_600.5));
        assert_eq!(
            (text("many").as_number(), text("yes").as_boolean(), text("now").as_timestamp()),
            (None, None, None)
        );
        assert_eq!(rfc3339(1_795_953_600.5), "2026-11-29T12:00:00.5Z");
    }

    #[test]
    fn absent_members_are_left_out_and_read_as_null() {
        let structure = Document::structure([("A", 1.0.into()), ("B", None::<f64>.into())]);
        assert_eq!(structure, Document::Structure(vec![("A".into(), Document::Number(1.0))]));
        assert_eq!(structure.member("B"), &Document::Null);
    }
}
