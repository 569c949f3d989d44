//! Why prompts part, and what helps.

use std::fmt;

use serde::Serialize;

use crate::volatile::VolatileKind;

/// Why prompts part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// A date with a time, a time of day, or seconds since 1970.
    Timestamp,
    /// A date.
    Date,
    /// A universally unique identifier.
    Uuid,
    /// Another identifier.
    Identifier,
    /// An e-mail address.
    EmailAddress,
    /// A number, such as a counter.
    Number,
    /// The same tools in another order.
    ToolOrder,
    /// The same tools with other white space or another order of keys.
    ToolSpelling,
    /// Text that came before stands in another place.
    OtherOrder,
    /// The same text in another role, or beside the messages.
    OtherRole,
    /// Text that differs, such as what is known of a user, before text that many requests have.
    OtherText,
}

impl Cause {
    /// What helps, in a sentence.
    pub fn advice(self) -> &'static str {
        match self {
            Cause::Timestamp => "move the time behind what all requests share, or cut it to the day",
            Cause::Date => "move the date behind what all requests share; once a day it costs little",
            Cause::Uuid | Cause::Identifier => "leave the id out of the prompt, or move it to its end",
            Cause::EmailAddress | Cause::OtherText => "move what differs behind what all requests share",
            Cause::Number => "move the number behind what all requests share, or leave it out",
            Cause::ToolOrder => "sort the tools by name before sending them",
            Cause::ToolSpelling => "write the tools with one JSON library and one order of keys",
            Cause::OtherRole => "send the same text in one role, such as system, from all clients",
            Cause::OtherOrder => "put parts that come together, such as documents, into one order",
        }
    }
}

impl From<VolatileKind> for Cause {
    fn from(kind: VolatileKind) -> Cause {
        match kind {
            VolatileKind::Timestamp => Cause::Timestamp,
            VolatileKind::Date => Cause::Date,
            VolatileKind::Uuid => Cause::Uuid,
            VolatileKind::Identifier => Cause::Identifier,
            VolatileKind::EmailAddress => Cause::EmailAddress,
            VolatileKind::Number => Cause::Number,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Cause::Timestamp => "a time stamp",
            Cause::Date => "a date",
            Cause::Uuid => "a UUID",
            Cause::Identifier => "an id",
            Cause::EmailAddress => "an e-mail address",
            Cause::Number => "a number",
            Cause::ToolOrder => "tools in another order",
            Cause::ToolSpelling => "tools spelled differently",
            Cause::OtherOrder => "known text in another order",
            Cause::OtherRole => "known text in another role",
            Cause::OtherText => "text that differs (user data?)",
        })
    }
}
