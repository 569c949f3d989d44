//! Finds what differs from request to request by its nature: times, dates, ids, counters, addresses.

use serde::Serialize;

/// What a volatile piece of text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VolatileKind {
    /// A date with a time, a time of day, or seconds since 1970.
    Timestamp,
    /// A date.
    Date,
    /// A universally unique identifier.
    Uuid,
    /// Another identifier: a long mix of letters and digits.
    Identifier,
    /// An e-mail address.
    EmailAddress,
    /// A number: a counter, an amount.
    Number,
}

/// A volatile piece of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Volatile {
    pub(crate) kind: VolatileKind,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl VolatileKind {
    /// What stands in its place when volatile text is masked.
    fn mask(self) -> &'static [u8] {
        match self {
            VolatileKind::Timestamp => b"<time>",
            VolatileKind::Date => b"<date>",
            VolatileKind::Uuid => b"<uuid>",
            VolatileKind::Identifier => b"<id>",
            VolatileKind::EmailAddress => b"<address>",
            VolatileKind::Number => b"<number>",
        }
    }
}

/// The volatile pieces of a text, in order.
pub(crate) fn find(text: &[u8], into: &mut Vec<Volatile>) {
    into.clear();
    let mut at = 0;
    while at < text.len() {
        if !is_word(text[at]) {
            at += 1;
            continue;
        }
        let word = word_end(text, at);
        match volatile_at(text, at, word) {
            Some(found) => {
                at = found.end;
                // A date and a time behind it are one.
                match into.last_mut() {
                    Some(before) if before.joins(&found, text) => {
                        (before.end, before.kind) = (found.end, VolatileKind::Timestamp);
                    }
                    _ => into.push(found),
                }
            }
            None => at = word,
        }
    }
}

/// Writes the text with its volatile pieces masked.
pub(crate) fn mask(text: &[u8], volatile: &[Volatile], into: &mut Vec<u8>) {
    let mut at = 0;
    for piece in volatile {
        into.extend_from_slice(&text[at..piece.start]);
        into.extend_from_slice(piece.kind.mask());
        at = piece.end;
    }
    into.extend_from_slice(&text[at..]);
}

impl Volatile {
    fn joins(&self, next: &Volatile, text: &[u8]) -> bool {
        let between = &text[self.end..next.start];
        self.kind == VolatileKind::Date
            && next.kind == VolatileKind::Timestamp
            && matches!(between, b" " | b", " | b" at " | b" - ")
    }
}

/// The volatile piece that begins here, where a word begins too.
fn volatile_at(text: &[u8], start: usize, word: usize) -> Option<Volatile> {
    let (rest, letters) = (&text[start..], &text[start..word]);
    let found = |kind, length: usize| Some(Volatile { kind, start, end: start + length });
    let digits = letters.iter().filter(|byte| byte.is_ascii_digit()).count();
    // Most words are just words: look closer only where something can begin.
    if letters.len() == 8
        && let Some(length) = uuid(rest)
    {
        return found(VolatileKind::Uuid, length);
    }
    if (digits > 0 || may_be_month(letters))
        && let Some((kind, length)) = date_or_time(rest)
    {
        return found(kind, length);
    }
    if text.get(word).is_some_and(|next| b"@._%+-".contains(next))
        && let Some(length) = address(rest, letters.len())
    {
        return found(VolatileKind::EmailAddress, length);
    }
    if digits == letters.len() {
        let is_epoch = matches!(digits, 10 | 13) && letters.starts_with(b"1");
        return found(if is_epoch { VolatileKind::Timestamp } else { VolatileKind::Number }, digits);
    }
    let is_identifier = letters.len() >= 10 && digits >= 3 && digits * 6 >= letters.len();
    if is_identifier { found(VolatileKind::Identifier, letters.len()) } else { None }
}

fn may_be_month(word: &[u8]) -> bool {
    (3..=9).contains(&word.len()) && matches!(word[0] | 0x20, b'j' | b'f' | b'm' | b'a' | b's' | b'o' | b'n' | b'd')
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

/// Where the word ends that begins here: letters and digits, joined by `_` and, within identifiers, by `-`.
fn word_end(text: &[u8], start: usize) -> usize {
    let length = text[start..].iter().position(|byte| !is_word(*byte) && *byte != b'_');
    length.map_or(text.len(), |length| start + length)
}

/// 8-4-4-4-12 hexadecimal digits.
fn uuid(text: &[u8]) -> Option<usize> {
    let head = text.get(..36)?;
    let fits = head.iter().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    });
    fits.then_some(36)
}

/// How many digits stand here, at most `most`.
fn digits(text: &[u8], most: usize) -> usize {
    text.iter().take(most).take_while(|byte| byte.is_ascii_digit()).count()
}

/// A date, a time, or both with a `T` or a space between.
fn date_or_time(text: &[u8]) -> Option<(VolatileKind, usize)> {
    if let Some(length) = time(text) {
        return Some((VolatileKind::Timestamp, length));
    }
    let date = numeric_date(text).or_else(|| written_date(text))?;
    if let Some(b'T' | b't' | b' ') = text.get(date)
        && let Some(time) = time(&text[date + 1..])
    {
        return Some((VolatileKind::Timestamp, date + 1 + time));
    }
    Some((VolatileKind::Date, date))
}

/// `2026-11-30`, `2026/11/30`, `30.11.2026`, `11/30/2026`.
fn numeric_date(text: &[u8]) -> Option<usize> {
    let first = digits(text, 5);
    let separator = *text.get(first)?;
    if !matches!((first, separator), (4, b'-' | b'/' | b'.') | (1 | 2, b'-' | b'/' | b'.')) {
        return None;
    }
    let second = digits(&text[first + 1..], 3);
    let at = first + 1 + second;
    if !(1..=2).contains(&second) || text.get(at) != Some(&separator) {
        return None;
    }
    let third = digits(&text[at + 1..], 5);
    let fits = if first == 4 { (1..=2).contains(&third) } else { third == 4 };
    fits.then_some(at + 1 + third)
}

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// `November 30, 2026`, `30 November 2026`, `Nov 30 2026`.
fn written_date(text: &[u8]) -> Option<usize> {
    let day_first = digits(text, 3);
    if (1..=2).contains(&day_first) {
        let mut at = day_first + ordinal(&text[day_first..]);
        at += spaces(&text[at..])?;
        at += month(&text[at..])?;
        at += spaces(&text[at..])?;
        return (digits(&text[at..], 5) == 4).then_some(at + 4);
    }
    let mut at = month(text)?;
    at += spaces(&text[at..])?;
    let day = digits(&text[at..], 3);
    at += day + ordinal(&text[at + day..]);
    if !(1..=2).contains(&day) {
        return None;
    }
    let with_year = spaces(&text[at..]).filter(|gap| digits(&text[at + gap..], 5) == 4);
    Some(with_year.map_or(at, |gap| at + gap + 4))
}

fn ordinal(text: &[u8]) -> usize {
    let suffix = text.get(..2).unwrap_or_default();
    if matches!(suffix, b"st" | b"nd" | b"rd" | b"th") { 2 } else { 0 }
}

/// The length of what separates the words of a date.
fn spaces(text: &[u8]) -> Option<usize> {
    let length = text.iter().take(2).take_while(|byte| matches!(**byte, b' ' | b',')).count();
    (length > 0).then_some(length)
}

fn month(text: &[u8]) -> Option<usize> {
    let length = text.iter().take(10).take_while(|byte| byte.is_ascii_alphabetic()).count();
    let word = &text[..length];
    let fits = |name: &str| {
        let name = name.as_bytes();
        word.eq_ignore_ascii_case(if length == 3 { &name[..3] } else { name })
    };
    (may_be_month(word) && MONTHS.into_iter().any(fits)).then_some(length)
}

/// `12:34`, `12:34:56.789Z`, `1:05 PM`.
fn time(text: &[u8]) -> Option<usize> {
    let hours = digits(text, 3);
    if !(1..=2).contains(&hours) || text.get(hours) != Some(&b':') || digits(&text[hours + 1..], 3) != 2 {
        return None;
    }
    let mut at = hours + 3;
    if text.get(at) == Some(&b':') && digits(&text[at + 1..], 3) == 2 {
        at += 3;
        if let Some(b'.' | b',') = text.get(at) {
            let fraction = digits(&text[at + 1..], 9);
            at += if fraction > 0 { fraction + 1 } else { 0 };
        }
    }
    match text.get(at..) {
        Some([b'Z', ..]) => Some(at + 1),
        Some([b'+' | b'-', zone @ ..]) if digits(zone, 2) == 2 => {
            let colon = usize::from(zone.get(2) == Some(&b':'));
            Some(at + 3 + colon + digits(&zone[2 + colon..], 2))
        }
        Some([b' ', half, m, ..]) if b"AaPp".contains(half) && b"Mm".contains(m) => Some(at + 3),
        _ => Some(at),
    }
}

/// `name@example.com`, beginning with a word of this length.
fn address(text: &[u8], word: usize) -> Option<usize> {
    let is_local = |byte: &&u8| is_word(**byte) || b"._%+-".contains(*byte);
    let at = word + text[word..].iter().take(64).take_while(is_local).count();
    if text.get(at) != Some(&b'@') {
        return None;
    }
    let domain = text[at + 1..].iter().take(253).take_while(|byte| is_word(**byte) || b".-".contains(*byte)).count();
    let domain = text[at + 1..at + 1 + domain].trim_ascii_end();
    let ends = domain.iter().rposition(|byte| is_word(*byte))? + 1;
    domain[..ends].contains(&b'.').then_some(at + 1 + ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(text: &str) -> String {
        let (mut found, mut masked) = (Vec::new(), Vec::new());
        find(text.as_bytes(), &mut found);
        mask(text.as_bytes(), &found, &mut masked);
        String::from_utf8(masked).unwrap()
    }

    #[test]
    fn what_changes_by_its_nature_is_masked() {
        for (text, expected) in [
            ("now: 2026-11-30T12:34:56.789Z.", "now: <time>."),
            ("2026-11-30 12:34:56+01:00 x", "<time> x"),
            ("Today is Monday, November 30, 2026.", "Today is Monday, <date>."),
            ("on 30 Nov 2026 at 1:05 PM, we", "on <time>, we"),
            ("30.11.2026 or 11/30/2026", "<date> or <date>"),
            ("id 123e4567-e89b-12d3-a456-426614174000!", "id <uuid>!"),
            ("request req_8fA03b77Zk21 for user_17", "request <id> for user_17"),
            ("epoch 1764460800 and 1764460800123", "epoch <time> and <time>"),
            ("mail jo.doe+x@example.co.uk.", "mail <address>."),
            ("turn 7 of 12", "turn <number> of <number>"),
            ("time 12:34", "time <time>"),
        ] {
            assert_eq!(masked(text), expected);
        }
    }

    #[test]
    fn ordinary_words_stay() {
        for text in ["You are a helpful assistant.", "GPT4 and h264, utf8", "may I march on?", "模型", "a@b", "1e"] {
            assert_eq!(masked(text), text);
        }
    }
}
