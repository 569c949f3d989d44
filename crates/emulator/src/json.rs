//! Writes JSON straight into an output buffer, for the pieces of a stream that are too many for a serializer.

use bytes::{BufMut, BytesMut};

/// Appends text as it stands.
pub(crate) fn push(out: &mut BytesMut, text: &str) {
    out.put_slice(text.as_bytes());
}

/// Appends the inside of a JSON string literal, without its quotes.
pub(crate) fn push_escaped(out: &mut BytesMut, text: &str) {
    let mut rest = text;
    while let Some(position) = rest.bytes().position(needs_escape) {
        let (plain, special) = rest.split_at(position);
        push(out, plain);
        push_escape(out, special.as_bytes()[0]);
        rest = &special[1..];
    }
    push(out, rest);
}

/// Appends a number.
pub(crate) fn push_number(out: &mut BytesMut, mut number: u32) {
    let mut digits = [0u8; 10];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.put_slice(&digits[start..]);
}

/// A whole JSON string literal.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn needs_escape(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

fn push_escape(out: &mut BytesMut, byte: u8) {
    match byte {
        b'"' => push(out, "\\\""),
        b'\\' => push(out, "\\\\"),
        b'\n' => push(out, "\\n"),
        _ => push(out, &format!("\\u{byte:04x}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_text_reads_back() {
        let text = "a \"quote\", a \\ and a line\nend\u{1}, naïve 漢字 🦀";
        let mut out = BytesMut::from("\"");
        push_escaped(&mut out, text);
        push(&mut out, "\"");
        assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
    }

    #[test]
    fn numbers_are_decimal() {
        for number in [0, 7, 10, 4_294_967_295] {
            let mut out = BytesMut::new();
            push_number(&mut out, number);
            assert_eq!(out, number.to_string());
        }
    }
}
