//! Ids in the form that AWS gives those of requests and files.

/// A random number as a UUID of version 4 (RFC 9562).
pub fn uuid(random: u128) -> String {
    let number = random & !(0xf << 76) & !(0x3 << 62) | (0x4 << 76) | (0x2 << 62);
    let digits = format!("{number:032x}");
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_and_variant_are_told() {
        assert_eq!(uuid(0), "00000000-0000-4000-8000-000000000000");
        assert_eq!(uuid(u128::MAX), "ffffffff-ffff-4fff-bfff-ffffffffffff");
    }
}
