//! What routing takes from a request's body: the prefix's digest, and the fields that scope it.

use bytes::Bytes;
use http::header::{self, HeaderMap};
use isotherm_core::{HashSeed, KeyScope, PrefixDigest, PrefixHasher, PrefixKey, PrefixLength, prefix_key};
use isotherm_wire::api::Api;
use isotherm_wire::request::{Described, Malformed, Prefix, describe};

use crate::headers::PREFIX_AWARE_ID;
use crate::rescue::Failure;
use crate::route::Route;

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
            Route::Prompt(_) | Route::Extra if compressed => Form::Opaque,
            Route::Prompt(api) => Form::Api(*api),
            Route::Extra => Form::Unknown,
            Route::StoredResponse { .. } | Route::Models | Route::Model { .. } | Route::Ping | Route::Health => {
                Form::Ignored
            }
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
    /// The prefix; `None` without text, or when none was asked for.
    pub(crate) prefix: Option<PrefixDigest>,
    /// How much was taken for the prefix: characters, or bytes where `in_bytes`.
    pub(crate) taken: usize,
    /// Whether the text goes on behind the prefix.
    pub(crate) continued: bool,
    /// Whether the prefix is of the body's bytes.
    pub(crate) in_bytes: bool,
}

impl Prompt {
    /// Reads a body. `length` is how much decides its home; nothing where the strategy does not look at prefixes.
    pub(crate) fn read(
        body: &[u8],
        form: Form,
        length: Option<PrefixLength>,
        seed: HashSeed,
    ) -> Result<Prompt, Malformed> {
        match form {
            Form::Ignored => Ok(Prompt::default()),
            Form::Opaque => Ok(Prompt::default().with_bytes(body, length, seed)),
            Form::Api(Api::Invocations) => {
                let described = describe(body, Api::Invocations, &mut |_: &str| false)?;
                Ok(Prompt::of(&described).with_bytes(body, length, seed))
            }
            Form::Api(api) => Prompt::read_text(body, api, length, seed),
            Form::Unknown => Ok(Prompt::read_text(body, Api::ChatCompletions, length, seed).unwrap_or_default()),
        }
    }

    fn read_text(body: &[u8], api: Api, length: Option<PrefixLength>, seed: HashSeed) -> Result<Prompt, Malformed> {
        let Some(length) = length else {
            return Ok(Prompt::of(&describe(body, api, &mut |_: &str| false)?));
        };
        let mut hasher = PrefixHasher::new(seed);
        let mut update = |bytes: &[u8]| hasher.update(bytes);
        let mut prefix = Prefix::new(length.get() as usize, &mut update);
        let described = describe(body, api, &mut prefix)?;
        let (taken, continued) = (prefix.characters(), prefix.continued());
        Ok(Prompt { prefix: hasher.finish(), taken, continued, ..Prompt::of(&described) })
    }

    fn with_bytes(self, body: &[u8], length: Option<PrefixLength>, seed: HashSeed) -> Prompt {
        let Some(length) = length else { return Prompt { in_bytes: true, ..self } };
        let taken = body.len().min(length.get() as usize);
        let mut hasher = PrefixHasher::new(seed);
        hasher.update(&body[..taken]);
        Prompt { prefix: hasher.finish(), taken, continued: taken < body.len(), in_bytes: true, ..self }
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
            ..Prompt::default()
        }
    }

    /// The key of the prefix in a variant; `None` without a prefix.
    pub(crate) fn key(
        &self,
        seed: HashSeed,
        endpoint: &str,
        variant: &str,
        tenant: Option<&str>,
        tenant_id: Option<&str>,
    ) -> Option<PrefixKey> {
        let scope =
            KeyScope { endpoint, variant, model: self.model.as_deref(), adapter: self.adapter.as_deref(), tenant };
        let tenant_id = tenant_id.or(self.cache_key.as_deref());
        self.prefix.map(|prefix| prefix_key(seed, &scope, tenant_id, self.salt.as_deref(), &prefix))
    }
}

/// The tenant id of a request's headers: SageMaker's limits hold for it.
pub(crate) fn tenant_id(headers: &HeaderMap) -> Result<Option<&str>, Failure> {
    let Some(value) = headers.get(PREFIX_AWARE_ID) else { return Ok(None) };
    match value.to_str() {
        Ok(id) if (1..=64).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic()) => Ok(Some(id)),
        _ => Err(Failure::BadTenantId),
    }
}

/// A body with what was read from it, and the length by which it was read.
#[derive(Debug, Clone)]
pub(crate) struct Read {
    /// The body as it came.
    pub(crate) body: Bytes,
    /// How it is read.
    pub(crate) form: Form,
    /// How much was taken for the prefix, at most.
    pub(crate) length: Option<PrefixLength>,
    /// What was read.
    pub(crate) prompt: Prompt,
}

impl Read {
    /// Reads a body.
    pub(crate) fn new(
        body: Bytes,
        form: Form,
        length: Option<PrefixLength>,
        seed: HashSeed,
    ) -> Result<Read, Malformed> {
        let prompt = Prompt::read(&body, form, length, seed)?;
        Ok(Read { body, form, length, prompt })
    }

    /// Sees to it that the prefix has this length: it depends on the variant, which depends on the model, which stands
    /// in the body.
    pub(crate) fn cut_at(&mut self, length: Option<PrefixLength>, seed: HashSeed) -> Result<(), Malformed> {
        if self.length != length {
            self.prompt = Prompt::read(&self.body, self.form, length, seed)?;
            self.length = length;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: HashSeed = HashSeed(0);

    fn length(length: u64) -> Option<PrefixLength> {
        Some(PrefixLength::new(length).unwrap())
    }

    fn chat(body: &str, cut: u64) -> Prompt {
        Prompt::read(body.as_bytes(), Form::Api(Api::ChatCompletions), length(cut), SEED).unwrap()
    }

    fn key(prompt: &Prompt) -> Option<PrefixKey> {
        prompt.key(SEED, "chat", "AllTraffic", None, None)
    }

    #[test]
    fn equal_beginnings_have_equal_keys_wherever_the_fields_stand() {
        let first = chat(r#"{"model":"m","messages":[{"role":"user","content":"policy: x"}]}"#, 7);
        let second = chat(r#"{"messages":[{"content":"policy: other","role":"user"}],"stream":true,"model":"m"}"#, 7);
        assert_eq!(key(&first), key(&second));
        assert!(key(&first).is_some() && second.stream && second.continued && !first.in_bytes);
        assert_ne!(key(&first), key(&chat(r#"{"model":"n","messages":[{"role":"user","content":"policy: x"}]}"#, 7)));
    }

    #[test]
    fn without_text_or_without_a_length_there_is_no_key() {
        let body = r#"{"model":"m","messages":[]}"#;
        assert_eq!(key(&chat(body, 7)), None);
        let unread = Prompt::read(body.as_bytes(), Form::Api(Api::ChatCompletions), None, SEED).unwrap();
        assert_eq!((key(&unread), unread.model.as_deref()), (None, Some("m")));
    }

    #[test]
    fn native_bodies_are_keyed_by_their_first_bytes_whatever_they_hold() {
        let native = |body: &[u8], cut| Prompt::read(body, Form::Api(Api::Invocations), length(cut), SEED).unwrap();
        let (a, b) = (native(b"\xff\x00same, then a", 8), native(b"\xff\x00same, then b", 8));
        assert_eq!(key(&a), key(&b));
        assert!(a.in_bytes && a.taken == 8 && a.continued);
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
        keys.push(prompts[0].key(SEED, "chat", "AllTraffic", Some("acme"), None));
        keys.push(prompts[0].key(SEED, "chat", "AllTraffic", None, Some("other")));
        for (index, one) in keys.iter().enumerate() {
            assert!(one.is_some() && !keys[index + 1..].contains(one), "{index}");
        }
    }

    #[test]
    fn the_tenant_id_keeps_to_sagemakers_limits() {
        let id = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(PREFIX_AWARE_ID, value.parse().unwrap());
            tenant_id(&headers).map(|id| id.map(str::to_owned))
        };
        assert_eq!(id("user-1"), Ok(Some("user-1".into())));
        for value in ["", "two words", &"x".repeat(65)] {
            assert_eq!(id(value), Err(Failure::BadTenantId), "{value:?}");
        }
        assert_eq!(tenant_id(&HeaderMap::new()), Ok(None));
    }

    #[test]
    fn a_prefix_is_cut_anew_for_a_variant_with_another_length() {
        let body = Bytes::from_static(br#"{"messages":[{"role":"user","content":"policy: x"}]}"#);
        let mut read = Read::new(body, Form::Api(Api::ChatCompletions), length(7), SEED).unwrap();
        let short = read.prompt.clone();
        read.cut_at(length(9), SEED).unwrap();
        assert_ne!(read.prompt.prefix, short.prefix);
        read.cut_at(length(7), SEED).unwrap();
        assert_eq!(read.prompt, short);
    }
}
