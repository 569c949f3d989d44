//! Ids of requests, in the form of AWS's: random UUIDs.

/// A random UUID (RFC 9562, version 4). Nothing depends on its being unpredictable.
pub(super) fn request_id() -> String {
    let mut bytes = [0; 16];
    // Without randomness all ids are equal, which is no reason to refuse service.
    let _ = getrandom::fill(&mut bytes);
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let [a, b, c, d, e] = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &digits[part]);
    format!("{a}-{b}-{c}-{d}-{e}")
}
