//! Query strings in the one spelling that is signed.

/// The value of a parameter, without its escapes; of one that stands twice, the first. `None` when it is absent, or is
/// no text.
pub(crate) fn parameter(query: &str, name: &str) -> Option<String> {
    pairs(query).find(|(key, _)| key == name.as_bytes()).and_then(|(_, value)| String::from_utf8(value).ok())
}

/// Every parameter but those left out, each name and value escaped anew, in the order of their bytes.
pub(super) fn canonical_query(query: &str, left_out: &[&str]) -> String {
    let kept = pairs(query).filter(|(name, _)| !left_out.iter().any(|out| out.as_bytes() == name));
    let mut pairs: Vec<(String, String)> = kept.map(|(name, value)| (escape(&name), escape(&value))).collect();
    pairs.sort();
    let pairs: Vec<String> = pairs.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join("&")
}

/// Every parameter of a query or a form, without its escapes, in order.
pub(crate) fn pairs(query: &str) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (unescape(name), unescape(value))
    })
}

/// `+` is a space, as in every form; what only looks like an escape stands for itself.
fn unescape(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let digit = |offset: usize| bytes.get(at + offset).and_then(|digit| char::from(*digit).to_digit(16));
        let (value, length) = match (byte, digit(1), digit(2)) {
            (b'%', Some(high), Some(low)) => (u8::try_from(high * 16 + low).unwrap_or(byte), 3),
            (b'+', ..) => (b' ', 1),
            _ => (byte, 1),
        };
        plain.push(value);
        at += length;
    }
    plain
}

/// Escapes every byte but RFC 3986's unreserved ones.
pub(super) fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => text.push(char::from(byte)),
            _ => {
                let digit = |nibble: u8| char::from(b"0123456789ABCDEF"[usize::from(nibble)]);
                text.extend(['%', digit(byte >> 4), digit(byte & 0xf)]);
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_query_is_one() {
        for query in ["b=2&a=x%20y&c", "a=x+y&&b=%32&c=", "c&a=x%20y&b=2"] {
            assert_eq!(canonical_query(query, &[]), "a=x%20y&b=2&c=", "{query}");
        }
        assert_eq!(canonical_query("", &[]), "");
        assert_eq!(canonical_query("a=1&Sig=2&a=0", &["Sig"]), "a=0&a=1");
        assert_eq!(canonical_query("a=%2f%zz%e4%b8%ad*", &[]), "a=%2F%25zz%E4%B8%AD%2A");
    }

    #[test]
    fn parameters_are_read_without_escapes() {
        assert_eq!(parameter("x=1&a=b%2Fc&a=d", "a").as_deref(), Some("b/c"));
        assert_eq!(parameter("x=1", "a"), None);
        assert_eq!(parameter("a=%ff", "a"), None);
    }
}
