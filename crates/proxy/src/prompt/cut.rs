//! The beginning of a request that decides its home: where it is cut off, and its digest.

use isotherm_core::{HashSeed, PrefixAware, PrefixDigest, PrefixHasher};
use isotherm_wire::api::Api;
use isotherm_wire::request::{Malformed, Prefix, PrefixSink, canonical, describe};

use super::Prompt;

/// Where a prefix ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cut {
    /// The most of it: characters of a text, or bytes of a body.
    length: usize,
    /// Whether a client's breakpoint ends it before that.
    client_breakpoints: bool,
    /// Whether that of a native JSON body is of its canonical form.
    pub(super) canonical_json: bool,
}

/// What ends a prefix.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum End {
    /// Nothing: it is all of the text.
    #[default]
    Text,
    /// Its greatest length.
    Cut,
    /// A breakpoint of the client's.
    Breakpoint,
}

impl Cut {
    /// Where the parameters of `PREFIX_AWARE` end it.
    pub(crate) fn of(rules: &PrefixAware) -> Cut {
        let PrefixAware { prefix_length, client_breakpoints, canonical_json, .. } = *rules;
        Cut { length: prefix_length.get() as usize, client_breakpoints, canonical_json }
    }

    /// Takes it from the text of a request.
    pub(super) fn take_text(self, body: &[u8], api: Api, seed: HashSeed) -> Result<Prompt, Malformed> {
        let mut digests = Digests { hasher: PrefixHasher::new(seed), at_breakpoint: None };
        let mut prefix = Prefix::new(self.length, &mut digests);
        let described = describe(body, api, &mut prefix)?;
        let breakpoint = prefix.breakpoint().filter(|_| self.client_breakpoints);
        let (characters, continued) = (prefix.characters(), prefix.continued());
        let read = Prompt::of(&described);
        Ok(match breakpoint {
            Some(taken) if continued || taken < characters => {
                Prompt { prefix: digests.at_breakpoint, taken, end: End::Breakpoint, ..read }
            }
            _ => Prompt { prefix: digests.hasher.finish(), taken: characters, end: End::of(continued), ..read },
        })
    }

    /// Takes it from the bytes of a body.
    pub(super) fn take_bytes(self, body: &[u8], seed: HashSeed, read: Prompt) -> Prompt {
        let taken = body.len().min(self.length);
        let mut hasher = PrefixHasher::new(seed);
        hasher.update(&body[..taken]);
        Prompt { prefix: hasher.finish(), taken, end: End::of(taken < body.len()), in_bytes: true, ..read }
    }

    /// Takes it from the canonical form of a JSON body; from its bytes where it has none.
    pub(super) fn take_canonical(self, body: &[u8], seed: HashSeed, read: Prompt) -> Prompt {
        let mut hasher = PrefixHasher::new(seed);
        let (mut taken, mut continued) = (0, false);
        let formed = canonical(body, &mut |piece| {
            let head = &piece[..piece.len().min(self.length - taken)];
            hasher.update(head);
            taken += head.len();
            continued = head.len() < piece.len();
            !continued
        });
        if formed.is_err() {
            return self.take_bytes(body, seed, read);
        }
        Prompt { prefix: hasher.finish(), taken, end: End::of(continued), in_bytes: true, canonical: true, ..read }
    }
}

impl End {
    fn of(continued: bool) -> End {
        if continued { End::Cut } else { End::Text }
    }
}

/// The digest of a prefix as it comes, and that of the part before the client's last breakpoint.
struct Digests {
    hasher: PrefixHasher,
    at_breakpoint: Option<PrefixDigest>,
}

impl PrefixSink for Digests {
    fn bytes(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
    }

    fn breakpoint(&mut self) {
        self.at_breakpoint = self.hasher.finish();
    }
}

#[cfg(test)]
mod tests {
    use isotherm_core::PrefixLength;
    use proptest::prelude::*;

    use super::*;

    const SEED: HashSeed = HashSeed(0);

    fn rules(length: u64) -> PrefixAware {
        PrefixAware { prefix_length: PrefixLength::new(length).unwrap(), ..PrefixAware::default() }
    }

    fn message(rules: &PrefixAware, body: &str) -> Prompt {
        Cut::of(rules).take_text(body.as_bytes(), Api::Messages, SEED).unwrap()
    }

    fn marked(system: &str, question: &str) -> String {
        format!(
            r#"{{"messages":[{{"role":"user","content":"{question}"}}],
                "system":[{{"type":"text","text":"{system}","cache_control":{{"type":"ephemeral"}}}}]}}"#
        )
    }

    #[test]
    fn a_breakpoint_keeps_questions_about_one_text_together() {
        let (one, two) = (message(&rules(99), &marked("policy", "a?")), message(&rules(99), &marked("policy", "b?")));
        assert_eq!((one.taken, one.end), (6, End::Breakpoint));
        assert_eq!(one, two);
        assert_ne!(one.prefix, message(&rules(99), &marked("other", "a?")).prefix);
        let unmarked = message(&rules(6), r#"{"system":"policy","messages":[{"role":"user","content":"a?"}]}"#);
        assert_eq!(one.prefix, unmarked.prefix, "it is the same prefix as one that is cut there");
        assert_eq!(message(&rules(4), &marked("policy", "a?")).end, End::Cut, "nothing behind the cut is looked at");
        let ignoring = PrefixAware { client_breakpoints: false, ..rules(99) };
        assert_eq!((message(&ignoring, &marked("policy", "a?")).taken), 8);
    }

    #[test]
    fn a_breakpoint_at_the_end_changes_nothing() {
        let end = r#"{"messages":[{"role":"user","content":[{"type":"text","text":"hi","cache_control":{}}]}]}"#;
        let plain = r#"{"messages":[{"role":"user","content":"hi"}]}"#;
        assert_eq!(message(&rules(99), end), message(&rules(99), plain));
    }

    fn native(rules: &PrefixAware, body: &[u8]) -> Prompt {
        Cut::of(rules).take_canonical(body, SEED, Prompt::default())
    }

    #[test]
    fn bodies_that_are_no_json_are_keyed_by_their_bytes() {
        for body in [b"\xff\x00same, then a".as_slice(), b"{\"inputs\":", &[b'['; 100]] {
            assert_eq!(native(&rules(8), body), Cut::of(&rules(8)).take_bytes(body, SEED, Prompt::default()));
        }
    }

    #[test]
    fn the_canonical_form_is_cut_at_the_length() {
        let (one, two) = (r#"{"inputs":"policy, a?","top":1}"#, r#"{ "top":2, "inputs":"policy, b?" }"#);
        let (one_cut, two_cut) = (native(&rules(17), one.as_bytes()), native(&rules(17), two.as_bytes()));
        assert_eq!(one_cut, two_cut);
        assert_eq!((one_cut.taken, one_cut.end, one_cut.canonical), (17, End::Cut, true));
        assert_ne!(native(&rules(99), one.as_bytes()).prefix, native(&rules(99), two.as_bytes()).prefix);
        assert_eq!(native(&rules(99), one.as_bytes()).end, End::Text);
    }

    proptest! {
        #[test]
        fn reserialised_bodies_have_one_key(text in "\\PC{0,30}", number in any::<i32>(), length in 1u64..80) {
            let text = serde_json::Value::from(text);
            let one = format!(r#"{{"inputs":{text},"parameters":{{"top_k":{number},"stop":[{text}]}}}}"#);
            let two = format!("{{ \"parameters\" : {{\"stop\": [ {text} ],\n\"top_k\":{number}}},\t\"inputs\": {text}}}");
            prop_assert_eq!(native(&rules(length), one.as_bytes()), native(&rules(length), two.as_bytes()));
            let other = format!(r#"{{"inputs":{text},"parameters":{{"top_k":null,"stop":[{number}]}}}}"#);
            prop_assert_ne!(native(&rules(65_536), one.as_bytes()).prefix, native(&rules(65_536), other.as_bytes()).prefix);
        }
    }
}
