//! What routing takes from a request's body: digests of its prefix or of all of it, and the fields that scope them.

mod blocks;
mod cut;
mod trail;

use bytes::Bytes;
use http::header::{self, HeaderMap};
use isotherm_core::{
    BlockHasher, HashSeed, KeyScope, PrefixDigest, PrefixKey, PromptDigest, Routing, Strategy, prefix_key,
};
use isotherm_telemetry::PartEnd;
use isotherm_wire::api::Api;
use isotherm_wire::request::{Described, Malformed, describe, render};
use isotherm_wire::sagemaker::Invocation;

use self::blocks::Blocks;
pub(crate) use self::cut::{Cut, End};
use self::trail::Parts;
pub(crate) use self::trail::{hash_of, trail};
use crate::headers::PREFIX_AWARE_ID;
use crate::rescue::Failure;
use crate::route::{Route, RuntimeApi};

/// How a body is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// By the rules of its API: the prefix is of its text.
    Api(Api),
    /// As JSON if it is JSON; of a path that the router knows nothing of.
    Unknown,
    /// Not at all: compressed. The prefix is of its bytes.
    Opaque,
    /// There is nothing in it that routing looks at.
    Ignored,
}

impl Form {
    /// How the body of a request is read.
    pub(crate) fn of(route: &Route, headers: &HeaderMap) -> Form {
        let compressed = headers
            .get(header::CONTENT_ENCODING)
            .is_some_and(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"));
        match route {
            Route::Prompt(_) | Route::Runtime { .. } | Route::Extra if compressed => Form::Opaque,
            Route::Prompt(api) => Form::Api(*api),
            Route::Runtime { api: RuntimeApi::OpenAi { .. }, .. } => Form::Api(Api::ChatCompletions),
            Route::Runtime { api: RuntimeApi::OpenAiModels { .. }, .. } => Form::Ignored,
            Route::Runtime { .. } => Form::Api(Api::Invocations),
            Route::Extra => Form::Unknown,
            Route::StoredResponse { .. }
            | Route::Models
            | Route::Model { .. }
            | Route::Ping
            | Route::Health
            | Route::Server
            | Route::Aws(_) => Form::Ignored,
        }
    }
}

/// What a strategy looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// Not at the prompt.
    Nowhere,
    /// At its beginning.
    Prefix(Cut),
    /// At all of it, block by block.
    Blocks,
    /// The same, and at where its parts end: whoever keeps a trail of it need not read it again.
    Trail,
}

impl Look {
    /// What a variant's strategy looks at, where trails of prompts are kept or not.
    pub(crate) fn of(routing: &Routing, keep_trails: bool) -> Look {
        match routing.strategy {
            Strategy::PrefixAware(rules) => Look::Prefix(Cut::of(&rules)),
            Strategy::Adaptive if keep_trails => Look::Trail,
            Strategy::Adaptive => Look::Blocks,
            Strategy::Random | Strategy::RoundRobin | Strategy::LeastOutstandingRequests => Look::Nowhere,
        }
    }
}

/// What was read from a body. Nothing of the text is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Prompt {
    /// The model that it names; never empty.
    pub(crate) model: Option<Box<str>>,
    /// The adapter that it names apart from the model.
    pub(crate) adapter: Option<Box<str>>,
    /// Whether a stream is asked for.
    pub(crate) stream: bool,
    /// The tenant id of the body, where it has one.
    pub(crate) cache_key: Option<Box<str>>,
    /// What keeps its blocks apart in the engine's cache.
    pub(crate) salt: Option<Box<str>>,
    /// The response that it continues.
    pub(crate) previous_response_id: Option<Box<str>>,
    /// Where it stands among those that wait: lower goes first.
    pub(crate) priority: i64,
    /// The prefix; `None` without text, or when none was asked for.
    pub(crate) prefix: Option<PrefixDigest>,
    /// All of it; `None` without text, or when it was not asked for.
    pub(crate) blocks: Option<PromptDigest>,
    /// Where its parts end; empty when that was not asked for.
    pub(crate) parts: Box<[PartEnd]>,
    /// How much was taken for the prefix: characters, or bytes where `in_bytes`.
    pub(crate) taken: usize,
    /// What ends the prefix.
    pub(crate) end: End,
    /// Whether the prefix is of the body's bytes, or of those of its canonical form.
    pub(crate) in_bytes: bool,
    /// Whether it is of the canonical form.
    pub(crate) canonical: bool,
}

impl Prompt {
    /// Reads a body as far as the strategy looks at it.
    pub(crate) fn read(body: &[u8], form: Form, look: Look, seed: HashSeed) -> Result<Prompt, Malformed> {
        match (form, look) {
            (Form::Ignored, _) => Ok(Prompt::default()),
            (Form::Opaque, _) => Ok(Prompt::default().with_bytes(body, look, seed)),
            (Form::Api(Api::Invocations), Look::Prefix(_)) => {
                let described = describe(body, Api::Invocations, &mut |_: &str| false)?;
                let read = Prompt::of(&described);
                match look {
                    Look::Prefix(cut) if cut.canonical_json => Ok(cut.take_canonical(body, seed, read)),
                    _ => Ok(read.with_bytes(body, look, seed)),
                }
            }
            (Form::Api(api), _) => Prompt::read_text(body, api, look, seed),
            (Form::Unknown, _) => Ok(Prompt::read_text(body, Api::ChatCompletions, look, seed).unwrap_or_default()),
        }
    }

    fn read_text(body: &[u8], api: Api, look: Look, seed: HashSeed) -> Result<Prompt, Malformed> {
        match look {
            Look::Nowhere => Ok(Prompt::of(&describe(body, api, &mut |_: &str| false)?)),
            Look::Prefix(cut) => cut.take_text(body, api, seed),
            Look::Blocks => {
                let mut blocks = Blocks::new(seed);
                let described = render(body, api, &mut blocks)?;
                Ok(Prompt { blocks: blocks.finish(), ..Prompt::of(&described) })
            }
            Look::Trail => {
                let mut parts = Parts::new(seed);
                let described = render(body, api, &mut parts)?;
                let (blocks, parts) = parts.finish();
                Ok(Prompt { blocks, parts, ..Prompt::of(&described) })
            }
        }
    }

    fn with_bytes(self, body: &[u8], look: Look, seed: HashSeed) -> Prompt {
        let read = Prompt { in_bytes: true, ..self };
        match look {
            Look::Nowhere => read,
            Look::Prefix(cut) => cut.take_bytes(body, seed, read),
            Look::Blocks | Look::Trail => {
                let mut hasher = BlockHasher::new(seed);
                hasher.update(body);
                Prompt { blocks: hasher.finish(), ..read }
            }
        }
    }

    fn of(described: &Described<'_>) -> Prompt {
        let owned =
            |text: &Option<std::borrow::Cow<'_, str>>| text.as_deref().filter(|text| !text.is_empty()).map(Box::from);
        let salt = match (owned(&described.cache_salt), owned(&described.extra_key)) {
            (salt, None) => salt,
            // The length keeps the two apart, whatever they hold.
            (salt, Some(extra)) => {
                let salt: Box<str> = salt.unwrap_or_default();
                Some(format!("{}:{salt}{extra}", salt.len()).into())
            }
        };
        Prompt {
            model: owned(&described.model),
            adapter: owned(&described.adapter),
            stream: described.stream,
            cache_key: owned(&described.prompt_cache_key),
            salt,
            previous_response_id: owned(&described.previous_response_id),
            priority: described.priority.unwrap_or_default(),
            ..Prompt::default()
        }
    }

    /// The key of the prefix in a scope; `None` without a prefix.
    pub(crate) fn key(&self, seed: HashSeed, within: &Within<'_>) -> Option<PrefixKey> {
        let tenant_id = within.tenant_id.or(self.cache_key.as_deref());
        let prefix = self.prefix.as_ref()?;
        Some(prefix_key(seed, &self.scope(within), tenant_id, self.salt.as_deref(), prefix))
    }

    /// All of it in a scope; `None` without text.
    pub(crate) fn within(&self, seed: HashSeed, within: &Within<'_>) -> Option<isotherm_core::Prompt> {
        let tenant_id = within.tenant_id.or(self.cache_key.as_deref());
        let blocks = self.blocks.as_ref()?;
        Some(blocks.within(seed, &self.scope(within), self.salt.as_deref(), tenant_id))
    }

    fn scope<'s>(&'s self, within: &Within<'s>) -> KeyScope<'s> {
        let Within { endpoint, variant, tenant, .. } = *within;
        let adapter = within.adapter.or(self.adapter.as_deref());
        KeyScope { endpoint, variant, model: self.model.as_deref(), adapter, tenant }
    }
}

/// What scopes a prompt beside what its body says.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Within<'s> {
    /// The endpoint's name.
    pub(crate) endpoint: &'s str,
    /// The variant's name.
    pub(crate) variant: &'s str,
    /// What the request is computed with that its body does not name: an adapter, or one of a container's models.
    pub(crate) adapter: Option<&'s str>,
    /// The authenticated tenant.
    pub(crate) tenant: Option<&'s str>,
    /// The tenant id of the headers, which goes before that of the body.
    pub(crate) tenant_id: Option<&'s str>,
}

/// The tenant id of a request's headers: SageMaker's limits hold for it.
pub(crate) fn tenant_id(headers: &HeaderMap) -> Result<Option<String>, Failure> {
    if !headers.contains_key(PREFIX_AWARE_ID) {
        return Ok(None);
    }
    Invocation::prefix_aware_id(headers).map_err(|_| Failure::BadTenantId)
}

/// A body with what was read from it, and what was looked at.
#[derive(Debug, Clone)]
pub(crate) struct Read {
    /// The body as it came.
    pub(crate) body: Bytes,
    /// How it is read.
    pub(crate) form: Form,
    /// What was looked at.
    pub(crate) look: Look,
    /// What was read.
    pub(crate) prompt: Box<Prompt>,
}

impl Read {
    /// Reads a body.
    pub(crate) fn new(body: Bytes, form: Form, look: Look, seed: HashSeed) -> Result<Read, Malformed> {
        let prompt = Box::new(Prompt::read(&body, form, look, seed)?);
        Ok(Read { body, form, look, prompt })
    }

    /// Sees to it that this was looked at: it depends on the variant, which depends on the model, which stands in the
    /// body.
    pub(crate) fn look_at(&mut self, look: Look, seed: HashSeed) -> Result<(), Malformed> {
        if self.look != look {
            *self.prompt = Prompt::read(&self.body, self.form, look, seed)?;
            self.look = look;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use isotherm_core::{PrefixAware, PrefixLength};

    use super::*;

    const SEED: HashSeed = HashSeed(0);

    const WITHIN: Within<'static> =
        Within { endpoint: "chat", variant: "AllTraffic", adapter: None, tenant: None, tenant_id: None };

    fn length(length: u64) -> Look {
        Look::Prefix(Cut::of(&PrefixAware {
            prefix_length: PrefixLength::new(length).unwrap(),
            ..PrefixAware::default()
        }))
    }

    fn chat(body: &str, cut: u64) -> Prompt {
        Prompt::read(body.as_bytes(), Form::Api(Api::ChatCompletions), length(cut), SEED).unwrap()
    }

    fn key(prompt: &Prompt) -> Option<PrefixKey> {
        prompt.key(SEED, &WITHIN)
    }

    #[test]
    fn equal_beginnings_have_equal_keys_wherever_the_fields_stand() {
        let first = chat(r#"{"model":"m","messages":[{"role":"user","content":"policy: x"}]}"#, 7);
        let second = chat(r#"{"messages":[{"content":"policy: other","role":"user"}],"stream":true,"model":"m"}"#, 7);
        assert_eq!(key(&first), key(&second));
        assert!(key(&first).is_some() && second.stream && second.end == End::Cut && !first.in_bytes);
        assert_ne!(key(&first), key(&chat(r#"{"model":"n","messages":[{"role":"user","content":"policy: x"}]}"#, 7)));
    }

    #[test]
    fn without_text_or_without_a_length_there_is_no_key() {
        let body = r#"{"model":"m","messages":[]}"#;
        assert_eq!(key(&chat(body, 7)), None);
        let unread = Prompt::read(body.as_bytes(), Form::Api(Api::ChatCompletions), Look::Nowhere, SEED).unwrap();
        assert_eq!((key(&unread), unread.model.as_deref()), (None, Some("m")));
    }

    #[test]
    fn native_bodies_are_keyed_by_their_first_bytes_whatever_they_hold() {
        let native = |body: &[u8], cut| Prompt::read(body, Form::Api(Api::Invocations), length(cut), SEED).unwrap();
        let (a, b) = (native(b"\xff\x00same, then a", 8), native(b"\xff\x00same, then b", 8));
        assert_eq!(key(&a), key(&b));
        assert!(a.in_bytes && a.taken == 8 && a.end == End::Cut);
        assert_ne!(key(&native(b"\xff\x00same, then a", 99)), key(&native(b"\xff\x00same, then b", 99)));
        assert_eq!(native(br#"{"model":"m","inputs":"x"}"#, 9).model.as_deref(), Some("m"));
    }

    #[test]
    fn unknown_paths_take_any_body_and_apis_do_not() {
        let unknown = Prompt::read(b"--boundary", Form::Unknown, length(9), SEED);
        assert_eq!(unknown, Ok(Prompt::default()));
        assert!(Prompt::read(b"--boundary", Form::Api(Api::Embeddings), length(9), SEED).is_err());
    }

    #[test]
    fn salts_and_tenants_separate_equal_prefixes() {
        let salted = |salt: &str| {
            chat(&format!(r#"{{"prompt_cache_key":"k",{salt}"messages":[{{"role":"user","content":"x"}}]}}"#), 7)
        };
        let prompts = [
            salted(""),
            salted(r#""cache_salt":"ab","#),
            salted(r#""extra_key":"ab","#),
            salted(r#""cache_salt":"a","extra_key":"b","#),
        ];
        let mut keys: Vec<_> = prompts.iter().map(key).collect();
        keys.push(prompts[0].key(SEED, &Within { tenant: Some("acme"), ..WITHIN }));
        keys.push(prompts[0].key(SEED, &Within { tenant_id: Some("other"), ..WITHIN }));
        for (index, one) in keys.iter().enumerate() {
            assert!(one.is_some() && !keys[index + 1..].contains(one), "{index}");
        }
    }

    #[test]
    fn what_is_computed_otherwise_has_other_keys() {
        let prompt = chat(r#"{"model":"m","messages":[{"role":"user","content":"x"}]}"#, 7);
        let with = |adapter| prompt.key(SEED, &Within { adapter, ..WITHIN });
        assert!(with(Some("a")).is_some() && with(Some("a")) != with(None) && with(Some("a")) != with(Some("b")));
    }

    #[test]
    fn the_tenant_id_keeps_to_sagemakers_limits() {
        let id = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("x-amzn-sagemaker-prefix-aware-id", value.parse().unwrap());
            tenant_id(&headers)
        };
        assert_eq!(id("tenant  A"), Ok(Some("tenant  A".into())));
        for value in ["", " a", &"x".repeat(65)] {
            assert_eq!(id(value), Err(Failure::BadTenantId), "{value:?}");
        }
        assert_eq!(tenant_id(&HeaderMap::new()), Ok(None));
    }

    fn blocks(api: Api, body: &str, within: &Within<'_>) -> Option<isotherm_core::Prompt> {
        Prompt::read(body.as_bytes(), Form::Api(api), Look::Blocks, SEED).unwrap().within(SEED, within)
    }

    #[test]
    fn prompts_share_their_blocks_as_far_as_the_engine_would() {
        let document = "x".repeat(1_000);
        let body = |model: &str, rest: &str| {
            format!(r#"{{"messages":[{{"role":"user","content":"{document}{rest}"}}],"model":"{model}"}}"#)
        };
        let of = |body: String| blocks(Api::ChatCompletions, &body, &WITHIN).unwrap().blocks;
        let (one, two) = (of(body("m", "one?")), of(body("m", "two?")));
        assert!(one.len() >= 15 && one[..15] == two[..15]);
        assert_ne!(one[0], of(body("n", "one?"))[0]);
        let salted = body("m", "one?").replacen('{', r#"{"cache_salt":"s","#, 1);
        assert_ne!(one[0], of(salted)[0]);
        let keyed = body("m", "one?").replacen('{', r#"{"prompt_cache_key":"k","#, 1);
        assert_eq!(one, of(keyed), "engines do not see it");
        let tools = body("m", "one?").replacen('{', r#"{"tools":[{"name":"f"}],"#, 1);
        assert_ne!(one[0], of(tools)[0]);
        assert_eq!(blocks(Api::ChatCompletions, r#"{"messages":[]}"#, &WITHIN), None);
    }

    #[test]
    fn an_image_counts_for_what_engines_make_of_it_and_tells_itself_from_others() {
        let of = |length: usize, first: char| {
            let data = first.to_string() + &"A".repeat(length);
            let part = format!(r#"{{"type":"image_url","image_url":{{"url":"data:{data}"}}}}"#);
            let body = format!(r#"{{"messages":[{{"role":"user","content":[{part},{{"type":"text","text":"?"}}]}}]}}"#);
            blocks(Api::ChatCompletions, &body, &WITHIN).unwrap()
        };
        let (small, large, other) = (of(10, 'a'), of(1_000_000, 'a'), of(10, 'b'));
        assert_eq!((small.bytes(), large.bytes()), (other.bytes(), other.bytes()));
        assert!((4_096..4_200).contains(&small.bytes()));
        assert!(small.blocks[1] != other.blocks[1] && small.blocks[1] != large.blocks[1]);
    }

    #[test]
    fn what_is_compressed_or_unknown_is_looked_at_as_it_came_or_not_at_all() {
        let read = |form| Prompt::read(b"--boundary", form, Look::Blocks, SEED).unwrap().within(SEED, &WITHIN);
        assert_eq!(read(Form::Opaque).unwrap().bytes(), 10);
        assert_eq!(read(Form::Api(Api::Invocations)).unwrap().bytes(), 12);
        assert_eq!(read(Form::Unknown), None);
    }

    #[test]
    fn a_prefix_is_cut_anew_for_a_variant_with_another_length() {
        let body = Bytes::from_static(br#"{"messages":[{"role":"user","content":"policy: x"}]}"#);
        let mut read = Read::new(body, Form::Api(Api::ChatCompletions), length(7), SEED).unwrap();
        let short = read.prompt.clone();
        read.look_at(length(9), SEED).unwrap();
        assert_ne!(read.prompt.prefix, short.prefix);
        read.look_at(length(7), SEED).unwrap();
        assert_eq!(read.prompt, short);
    }
}
