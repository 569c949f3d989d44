//! What may stand behind a chunk's size (RFC 9112, section 7.1.1): nobody here knows any extension, but what is none could
//! be read as a line's end, or as something else, by who comes next.

/// Whether this is nothing, or one extension after the other: `;`, a name, and perhaps `=` and a value.
pub(super) fn are_sound(mut rest: &[u8]) -> bool {
    while !rest.is_empty() {
        let Some(named) = after(rest, b';').and_then(|rest| after_token(without_blanks(rest))) else { return false };
        rest = match after(named, b'=') {
            None => named,
            Some(value) => match after_value(without_blanks(value)) {
                Some(rest) => rest,
                None => return false,
            },
        };
    }
    true
}

/// Whether a byte may stand in a token (RFC 9110, section 5.6.2).
pub(super) fn is_of_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// What is behind this sign, and the blanks before it.
fn after(bytes: &[u8], sign: u8) -> Option<&[u8]> {
    without_blanks(bytes).strip_prefix(&[sign])
}

fn without_blanks(bytes: &[u8]) -> &[u8] {
    let blanks = bytes.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    &bytes[blanks..]
}

fn after_token(bytes: &[u8]) -> Option<&[u8]> {
    let length = bytes.iter().take_while(|&&byte| is_of_token(byte)).count();
    (length > 0).then(|| &bytes[length..])
}

fn after_value(bytes: &[u8]) -> Option<&[u8]> {
    let Some(mut quoted) = bytes.strip_prefix(b"\"") else { return after_token(bytes) };
    loop {
        quoted = match quoted {
            [b'"', rest @ ..] => return Some(rest),
            [b'\\', escaped, rest @ ..] if is_of_text(*escaped) => rest,
            [byte, rest @ ..] if *byte != b'\\' && is_of_text(*byte) => rest,
            _ => return None,
        };
    }
}

/// Whether a byte may stand within quotes (RFC 9110, section 5.6.4).
fn is_of_text(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_follow_the_grammar() {
        for sound in ["", ";a", ";a=b", ";a;b=c", " ; a = b", ";a=\"\"", ";a=\"b;\\\"c=\" ;d", ";a=\"\u{e9}\""] {
            assert!(are_sound(sound.as_bytes()), "{sound:?}");
        }
        for unsound in [
            " ",
            ";",
            ";a;",
            "a",
            "=a",
            ";=a",
            ";a=",
            ";a b",
            ";a=\"b",
            ";a=\"b\"c",
            ";a=\"\\",
            ";[a",
            ";a\rb",
            ";\0",
            ";a=\"\x01\"",
            ";a ",
        ] {
            assert!(!are_sound(unsound.as_bytes()), "{unsound:?}");
        }
    }
}
