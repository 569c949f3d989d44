//! Where media may lie that an engine is to fetch.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Excess, Refusal};
use crate::json::Cursor;

/// Where media may lie that a request names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MediaUrls {
    /// Anywhere; engines have bounds of their own.
    #[default]
    Any,
    /// In the request itself, or at a host of the internet by `http` or `https`. What a public name resolves to is for the
    /// engine to check.
    Public,
    /// In the request itself (`data:`).
    Data,
}

/// The members of a request that hold messages or parts of them.
pub(super) const CARRIERS: [&str; 2] = ["messages", "input"];

/// The members of a part that name media: a URL, or an object with one.
const NAMES: [&str; 7] = ["url", "image_url", "video_url", "audio_url", "file_url", "input_audio", "source"];

/// Parts lie in tool results, in messages; nothing lies deeper.
const DEEPEST: usize = 12;

/// Checks every URL of media in messages and parts, at most as deep as APIs put them.
pub(super) fn check(cursor: &mut Cursor<'_>, allowed: MediaUrls, depth: usize) -> Result<(), Refusal> {
    if depth > DEEPEST {
        return Err(Refusal::Excess(Excess::Depth));
    }
    if let Some(mut elements) = cursor.elements() {
        while let Some(element) = elements.next_element()? {
            check(element, allowed, depth + 1)?;
        }
    } else if let Some(mut members) = cursor.members() {
        while let Some(key) = members.next_key()? {
            let key = key.decoded();
            match members.cursor().peek() {
                Some(b'"') if names_media(&key) => {
                    let url = members.cursor().string()?;
                    let Some(what) = refusal(&String::from_utf8_lossy(&url.decoded()), allowed) else { continue };
                    return Err(Refusal::Excess(Excess::Media { what }));
                }
                // Arguments of calls and schemas of tools are no parts.
                Some(b'{' | b'[') if names_media(&key) || matches!(&*key, b"content" | b"output") => {
                    check(members.cursor(), allowed, depth + 1)?;
                }
                _ => {}
            }
        }
    }
    Ok(())
}

fn names_media(key: &[u8]) -> bool {
    NAMES.iter().any(|name| name.as_bytes() == key)
}

/// Why a URL may not be fetched.
fn refusal(url: &str, allowed: MediaUrls) -> Option<&'static str> {
    // As a browser and Python's urllib do: what is invisible at the ends counts for nothing.
    let url = url.trim_matches(|character: char| character <= ' ');
    let (scheme, rest) = url.split_once(':')?;
    let scheme = scheme.to_ascii_lowercase();
    match (&*scheme, allowed) {
        (_, MediaUrls::Any) | ("data", _) => None,
        (_, MediaUrls::Data) => Some("must be a data: URL here"),
        ("http" | "https", MediaUrls::Public) if is_public(rest) => None,
        ("http" | "https", MediaUrls::Public) => Some("must name a host of the internet"),
        (_, MediaUrls::Public) => Some("must begin with https:, http: or data:"),
    }
}

/// Whether what follows a scheme names a host of the internet, in a way that nobody reads otherwise.
fn is_public(rest: &str) -> bool {
    let Some(rest) = rest.strip_prefix("//") else { return false };
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    // Credentials and escapes are how one reader is made to see another host than the next.
    if !authority.bytes().all(is_plain) {
        return false;
    }
    if let Some((address, _)) = authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return address.parse().is_ok_and(is_public_v6);
    }
    let host = authority.split(':').next().unwrap_or_default().trim_end_matches('.').to_ascii_lowercase();
    if let Ok(address) = host.parse() {
        return is_public_v4(address);
    }
    let last = host.rsplit('.').next().unwrap_or_default();
    // 127.1, 0x7f.1 and 2130706433 are addresses to some readers.
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x");
    host.contains('.') && !is_number && !matches!(last, "localhost" | "local" | "internal" | "home" | "lan")
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [first, second, ..] = address.octets();
    let shared = first == 100 && (64..128).contains(&second);
    let benchmarks = first == 198 && (18..20).contains(&second);
    let protocol = address.octets()[..3] == [192, 0, 0];
    !(address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || shared
        || benchmarks
        || protocol
        || first == 0
        || first >= 224)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        // 2000::/3 is what is handed out; of that, 2002::/16 and 64:ff9b::/96 hold addresses of IPv4.
        IpAddr::V6(address) => {
            let [first, second, ..] = address.segments();
            first & 0xe000 == 0x2000 && first != 0x2002 && !(first == 0x2001 && (second == 0 || second == 0x0db8))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::{Guards, check as check_body};

    #[test]
    fn hosts_of_the_internet_pass_and_others_do_not_however_they_are_written() {
        for url in [
            "data:image/png;base64,AAAA",
            "https://example.com/cat.png",
            "HTTP://Example.com:8080/a?b#c",
            "https://8.8.8.8/x",
            "https://[2606:4700::1111]/x",
        ] {
            assert_eq!(refusal(url, MediaUrls::Public), None, "{url}");
        }
        for url in [
            "file:///etc/passwd",
            "ftp://example.com/x",
            "http://127.0.0.1/x",
            "http://localhost:8000/x",
            "http://a.localhost/x",
            "http://169.254.169.254/latest/meta-data",
            " http://169.254.169.254/",
            "http://10.0.0.1/",
            "http://100.64.0.1/",
            "http://0.0.0.0/",
            "http://127.1/",
            "http://0x7f.1/",
            "http://2130706433/",
            "http://[::1]/",
            "http://[::ffff:10.0.0.1]/",
            "http://[fd00::1]/",
            "http://[2002:7f00:1::]/",
            "http://example.com@127.0.0.1/",
            "http://example.com\\@127.0.0.1/",
            "http://metadata.google.internal/",
            "http://kubernetes/",
            "http:/127.0.0.1/",
            "http:///x",
        ] {
            assert!(refusal(url, MediaUrls::Public).is_some(), "{url}");
        }
        assert_eq!(refusal("https://example.com/", MediaUrls::Data), Some("must be a data: URL here"));
    }

    #[test]
    fn media_are_found_where_apis_put_them() {
        let guards = Guards { media_urls: MediaUrls::Public, ..Guards::default() };
        let url = r#""http://169.254.169.254/""#;
        for body in [
            format!(r#"{{"messages":[{{"content":[{{"type":"image_url","image_url":{{"url":{url}}}}}]}}]}}"#),
            format!(r#"{{"messages":[{{"content":[{{"type":"image_url","image_url":{url}}}]}}]}}"#),
            format!(r#"{{"messages":[{{"content":[{{"type":"image","source":{{"type":"url","url":{url}}}}}]}}]}}"#),
            format!(
                r#"{{"messages":[{{"content":[{{"type":"tool_result","content":[{{"source":{{"url":{url}}}}}]}}]}}]}}"#
            ),
            format!(r#"{{"input":[{{"role":"user","content":[{{"type":"input_image","image_url":{url}}}]}}]}}"#),
        ] {
            assert!(check_body(body.as_bytes(), &guards).is_err(), "{body}");
        }
        let text = format!(r#"{{"messages":[{{"content":"url: {}"}}],"tools":[{{"url":{url}}}]}}"#, "http://10.0.0.1");
        assert_eq!(check_body(text.as_bytes(), &guards), Ok(()));
        let deep = format!(r#"{{"messages":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(check_body(deep.as_bytes(), &guards), Err(Excess::Depth));
    }
}
