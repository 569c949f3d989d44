//! Where in a prompt two requests part: as it is, and in words.

use std::fmt;

use isotherm_telemetry::{Part, PartKind, Role};
use serde::{Deserialize, Serialize};

/// A place in a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// What stands there: `template`, `documents`, `tools`, `continued`, `system`, `head`, `text`, `reasoning`, `call`,
    /// `tool_result`, `medium` or `prompt`.
    pub kind: String,
    /// Which message, from 0; `None` outside of messages.
    pub message: Option<u32>,
    /// Whose message, where that is one of the known roles.
    pub role: Option<String>,
}

impl Place {
    pub(super) fn of(part: Part) -> Place {
        let kind = match part.kind {
            PartKind::Template => "template",
            PartKind::Documents => "documents",
            PartKind::Tools => "tools",
            PartKind::Continued => "continued",
            PartKind::System => "system",
            PartKind::Head => "head",
            PartKind::Text | PartKind::Message => "text",
            PartKind::Reasoning => "reasoning",
            PartKind::Call => "call",
            PartKind::ToolResult => "tool_result",
            PartKind::Medium => "medium",
            PartKind::Prompt => "prompt",
        };
        Place {
            kind: kind.to_owned(),
            message: (part.message != Part::NO_MESSAGE).then_some(u32::from(part.message)),
            role: (part.role != Role::Other).then(|| part.role.as_str().to_owned()),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match &*self.kind {
            "template" => "the template or its arguments",
            "continued" => "the response that is continued",
            "head" => "role or name",
            "call" => "a call of a tool",
            "tool_result" => "the result of a tool",
            "medium" => "an image, a sound or a file",
            "prompt" => "the prompt",
            "text" => "",
            kind => kind,
        };
        let Some(message) = self.message else {
            return f.write_str(if what.is_empty() { "the prompt" } else { what });
        };
        write!(f, "messages[{message}]")?;
        if let Some(role) = &self.role {
            write!(f, " ({role})")?;
        }
        if what.is_empty() { Ok(()) } else { write!(f, ": {what}") }
    }
}
