//! Sticky sessions: what client and container say of them in headers.

use std::time::SystemTime;

use jiff::Timestamp;

use super::member::is_name;

/// What a client asks for in `X-Amzn-SageMaker-Session-Id`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionId {
    /// `NEW_SESSION`: a session to be begun.
    New,
    /// The session of this id.
    Known(String),
}

/// The longest id of a session.
const LONGEST_ID: usize = 256;

impl SessionId {
    /// What a valid value of the header says.
    pub(super) fn of(value: &str) -> SessionId {
        if value == "NEW_SESSION" { SessionId::New } else { SessionId::Known(value.to_owned()) }
    }
}

/// A session that a container has begun: `ID; Expires=YYYY-MM-DDTHH:MM:SSZ`, in `X-Amzn-SageMaker-New-Session-Id`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    /// Its id.
    pub id: String,
    /// When it ends by itself.
    pub expires: SystemTime,
}

impl NewSession {
    /// Reads the header's value; `None` when it is not of that form.
    pub fn parse(value: &str) -> Option<NewSession> {
        let (id, expires) = value.split_once(';')?;
        let expires = expires.strip_prefix(' ').unwrap_or(expires).strip_prefix("Expires=")?;
        // Only this form: UTC, without fractions.
        if expires.len() != "YYYY-MM-DDTHH:MM:SSZ".len() || !expires.ends_with('Z') {
            return None;
        }
        let expires = expires.parse::<Timestamp>().ok()?;
        is_id(id).then(|| NewSession { id: id.to_owned(), expires: expires.into() })
    }
}

/// A session that a container has ended: its id, in `X-Amzn-SageMaker-Closed-Session-Id`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClosedSession {
    /// Its id.
    pub id: String,
}

impl ClosedSession {
    /// Reads the header's value; `None` when it is no session's id.
    pub fn parse(value: &str) -> Option<ClosedSession> {
        is_id(value).then(|| ClosedSession { id: value.to_owned() })
    }
}

fn is_id(text: &str) -> bool {
    text.len() <= LONGEST_ID && is_name(text)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_new_session_has_an_id_and_an_end() {
        let session = NewSession::parse("a1-b2; Expires=2026-11-30T00:00:00Z").unwrap();
        let expected = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_996_800);
        assert_eq!(session, NewSession { id: "a1-b2".into(), expires: expected });
    }

    #[test]
    fn what_is_not_of_the_form_is_no_session() {
        for value in [
            "",
            "a1",
            "a1;",
            "; Expires=2026-11-30T00:00:00Z",
            "a_1; Expires=2026-11-30T00:00:00Z",
            "a1; Expires=2026-11-30T00:00:00+01:00",
            "a1; Expires=2026-11-30T00:00:00",
            "a1; Expires=2026-13-30T00:00:00Z",
            "a1; Max-Age=5",
        ] {
            assert_eq!(NewSession::parse(value), None, "{value:?}");
        }
        assert_eq!(ClosedSession::parse("a1-b2"), Some(ClosedSession { id: "a1-b2".into() }));
        assert_eq!(ClosedSession::parse(&"a".repeat(257)), None);
    }
}
