//! From when until when a certificate counts (RFC 5280, section 4.1.2.5), read from its DER.

use std::io;
use std::time::{Duration, SystemTime};

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use rustls::pki_types::UnixTime;
use rustls::{CertificateError, Error};

/// Longer than any certificate counts.
const FAR: Duration = Duration::from_secs(100 * 365 * 86_400);

/// ASN.1's tags that stand on the way to a certificate's validity.
const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// From when until when a certificate counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// Its first second.
    pub from: SystemTime,
    /// Its last second.
    pub until: SystemTime,
}

impl Validity {
    /// What a certificate says; `None` where it does not say it as it should.
    pub(crate) fn of(certificate: &[u8]) -> Option<Validity> {
        let (_, certificate, _) = element(certificate).filter(|(tag, ..)| *tag == SEQUENCE)?;
        let (_, mut rest, _) = element(certificate).filter(|(tag, ..)| *tag == SEQUENCE)?;
        if rest.first() == Some(&VERSION) {
            (_, _, rest) = element(rest)?;
        }
        // Serial number, signature's algorithm, issuer.
        for _ in 0..3 {
            (_, _, rest) = element(rest)?;
        }
        let (_, validity, _) = element(rest).filter(|(tag, ..)| *tag == SEQUENCE)?;
        let (tag, from, rest) = element(validity)?;
        let from = time(tag, from)?;
        let (tag, until, _) = element(rest)?;
        Some(Validity { from, until: time(tag, until)? })
    }

    /// What is known of it where a certificate was refused because it counts no more, or not yet: the other end of it is
    /// taken to be as far away as can be.
    pub fn of_refused(error: &io::Error) -> Option<Validity> {
        let error = error.get_ref()?.downcast_ref::<Error>()?;
        let at = |time: UnixTime| SystemTime::UNIX_EPOCH + Duration::from_secs(time.as_secs());
        match error {
            Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. }) => {
                Some(Validity { from: SystemTime::UNIX_EPOCH, until: at(*not_after) })
            }
            Error::InvalidCertificate(CertificateError::NotValidYetContext { not_before, .. }) => {
                Some(Validity { from: at(*not_before), until: at(*not_before) + FAR })
            }
            _ => None,
        }
    }

    /// What is wrong with it at a time, or will be within `soon`, in words; `None` when nothing is.
    pub fn complaint(&self, now: SystemTime, soon: Duration) -> Option<String> {
        let days = |duration: Duration| duration.as_secs() / 86_400;
        if let Ok(since) = now.duration_since(self.until) {
            return Some(format!("has expired {} days ago", days(since)));
        }
        if let Ok(left) = self.from.duration_since(now) {
            return Some(format!("counts only in {} days", days(left)));
        }
        let left = self.until.duration_since(now).ok().filter(|left| *left < soon)?;
        Some(format!("expires in {} days", days(left)))
    }
}

/// An element's tag, its content, and what follows it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x84 => {
            let (length, rest) = rest.split_at_checked(usize::from(first & 0x0f))?;
            (length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

/// `YYMMDDHHMMSSZ`, years from 1950, or `YYYYMMDDHHMMSSZ`.
fn time(tag: u8, text: &[u8]) -> Option<SystemTime> {
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    let text = match tag {
        UTC_TIME => format!("{}{text}", if text < "50" { "20" } else { "19" }),
        GENERALIZED_TIME => text.to_owned(),
        _ => return None,
    };
    let written = DateTime::strptime("%Y%m%d%H%M%S", &text).ok()?;
    Some(written.to_zoned(TimeZone::UTC).ok()?.timestamp().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn both_ways_of_writing_a_time_are_read() {
        assert_eq!(time(UTC_TIME, b"260901000000Z"), Some(at(1_788_220_800)));
        assert_eq!(time(GENERALIZED_TIME, b"20260901000000Z"), Some(at(1_788_220_800)));
        assert_eq!(time(UTC_TIME, b"700101000001Z"), Some(at(1)));
        assert_eq!(time(UTC_TIME, b"2609010000Z"), None);
        assert_eq!(time(0x04, b"260901000000Z"), None);
    }

    #[test]
    fn what_is_no_certificate_has_no_validity() {
        for bytes in [&b""[..], b"\x30", b"\x30\x80\x00\x00", b"\x30\x84\xff\xff\xff\xff", b"\x30\x02\x30\x00"] {
            assert_eq!(Validity::of(bytes), None);
        }
    }

    #[test]
    fn it_complains_before_during_and_after() {
        const DAY: u64 = 86_400;
        let validity = Validity { from: at(10 * DAY), until: at(100 * DAY) };
        let complaint = |day: u64| validity.complaint(at(day * DAY), Duration::from_secs(14 * DAY));
        assert_eq!(complaint(8).as_deref(), Some("counts only in 2 days"));
        assert_eq!(complaint(50), None);
        assert_eq!(complaint(90).as_deref(), Some("expires in 10 days"));
        assert_eq!(complaint(103).as_deref(), Some("has expired 3 days ago"));
    }
}
