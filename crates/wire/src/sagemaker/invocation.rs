//! The headers of `InvokeEndpoint` and `InvokeEndpointWithResponseStream`.

use http::{HeaderMap, HeaderName, HeaderValue};

use super::invalid::Invalid;
use super::member::{Member, Pattern, check_all, for_container};
use super::session::SessionId;

/// An operation of the runtime whose body goes to a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// The answer comes whole.
    InvokeEndpoint,
    /// The answer comes in frames.
    InvokeEndpointWithResponseStream,
    /// The answer is written to a place.
    InvokeEndpointAsync,
}

/// What a client says beside the body.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Invocation {
    /// The variant that it wants, whatever the weights.
    pub target_variant: Option<String>,
    /// The inference component that it calls.
    pub inference_component: Option<String>,
    /// The model that it wants of a container that holds several.
    pub target_model: Option<String>,
    /// The session that the request belongs to.
    pub session: Option<SessionId>,
    /// What separates its placement from that of equal prefixes.
    pub prefix_aware_id: Option<String>,
}

const CONTENT_TYPE: Member = Member::new("content-type", "contentType", (0, 1_024), Pattern::Ascii);
const ACCEPT: Member = Member::new("accept", "accept", (0, 1_024), Pattern::Ascii);
const CUSTOM_ATTRIBUTES: Member =
    Member::new("x-amzn-sagemaker-custom-attributes", "customAttributes", (0, 1_024), Pattern::Ascii);
const TARGET_MODEL: Member =
    Member::new("x-amzn-sagemaker-target-model", "targetModel", (1, 1_024), Pattern::Printable);
const TARGET_VARIANT: Member = Member::new("x-amzn-sagemaker-target-variant", "targetVariant", (0, 63), Pattern::Name);
const TARGET_CONTAINER_HOSTNAME: Member =
    Member::new("x-amzn-sagemaker-target-container-hostname", "targetContainerHostname", (0, 63), Pattern::Name);
const INFERENCE_ID: Member = Member::new("x-amzn-sagemaker-inference-id", "inferenceId", (1, 64), Pattern::Printable);
const ENABLE_EXPLANATIONS: Member =
    Member::new("x-amzn-sagemaker-enable-explanations", "enableExplanations", (1, 64), Pattern::Any);
const INFERENCE_COMPONENT: Member =
    Member::new("x-amzn-sagemaker-inference-component", "inferenceComponentName", (0, 63), Pattern::ComponentName);
const SESSION_ID: Member = Member::new("x-amzn-sagemaker-session-id", "sessionId", (0, 256), Pattern::SessionOrNew);
const PREFIX_AWARE_ID: Member =
    Member::new("x-amzn-sagemaker-prefix-aware-id", "prefixAwareId", (1, 64), Pattern::Printable);

/// The members of `InvokeEndpoint`.
const INVOKE: [Member; 11] = [
    CONTENT_TYPE,
    ACCEPT,
    CUSTOM_ATTRIBUTES,
    TARGET_MODEL,
    TARGET_VARIANT,
    TARGET_CONTAINER_HOSTNAME,
    INFERENCE_ID,
    ENABLE_EXPLANATIONS,
    INFERENCE_COMPONENT,
    SESSION_ID,
    PREFIX_AWARE_ID,
];

/// Those of `InvokeEndpointWithResponseStream`: `Accept` travels under another name, and no session can begin.
const INVOKE_WITH_STREAM: [Member; 9] = [
    CONTENT_TYPE,
    Member::new("x-amzn-sagemaker-accept", "accept", (0, 1_024), Pattern::Ascii).as_header("accept"),
    CUSTOM_ATTRIBUTES,
    TARGET_VARIANT,
    TARGET_CONTAINER_HOSTNAME,
    INFERENCE_ID,
    INFERENCE_COMPONENT,
    Member { pattern: Pattern::Session, ..SESSION_ID },
    PREFIX_AWARE_ID,
];

/// Those of `InvokeEndpointAsync` that concern the container.
pub(super) const INVOKE_ASYNC: [Member; 4] = [
    Member::new("x-amzn-sagemaker-content-type", "contentType", (0, 1_024), Pattern::Ascii).as_header("content-type"),
    Member::new("x-amzn-sagemaker-accept", "accept", (0, 1_024), Pattern::Ascii).as_header("accept"),
    CUSTOM_ATTRIBUTES,
    INFERENCE_ID,
];

impl Operation {
    fn members(self) -> &'static [Member] {
        match self {
            Operation::InvokeEndpoint => &INVOKE,
            Operation::InvokeEndpointWithResponseStream => &INVOKE_WITH_STREAM,
            Operation::InvokeEndpointAsync => &INVOKE_ASYNC,
        }
    }
}

impl Invocation {
    /// Reads the headers of a request.
    ///
    /// # Errors
    ///
    /// [`Invalid`] tells every member that breaks a constraint of its operation.
    pub fn parse(headers: &HeaderMap, operation: Operation) -> Result<Invocation, Invalid> {
        let members = operation.members();
        Invalid::unless_empty(check_all(members, headers))?;
        let value = |wanted: Member| {
            let member = members.iter().find(|member| member.header == wanted.header)?;
            member.value(headers).map(std::borrow::Cow::into_owned)
        };
        Ok(Invocation {
            target_variant: value(TARGET_VARIANT),
            inference_component: value(INFERENCE_COMPONENT),
            target_model: value(TARGET_MODEL),
            session: value(SESSION_ID).map(|id| SessionId::of(&id)),
            prefix_aware_id: value(PREFIX_AWARE_ID),
        })
    }

    /// The tenant id of a request to any path, where it has one.
    ///
    /// # Errors
    ///
    /// [`Invalid`] when it breaks a constraint.
    pub fn prefix_aware_id(headers: &HeaderMap) -> Result<Option<String>, Invalid> {
        Invalid::unless_empty(check_all(&[PREFIX_AWARE_ID], headers))?;
        Ok(PREFIX_AWARE_ID.value(headers).map(std::borrow::Cow::into_owned))
    }
}

/// The headers of a request that reach the container, under the names by which it knows them. All others are stripped.
pub fn headers_for_container(headers: &HeaderMap, operation: Operation) -> HeaderMap {
    for_container(operation.members(), headers)
}

/// The headers of a request that are members of an operation and reach the container, under the names under which they
/// came.
pub fn headers_of_operation(
    headers: &HeaderMap,
    operation: Operation,
) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
    headers.iter().filter(move |(name, _)| operation.members().iter().any(|member| member.header == name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(lines: &[(&'static str, &str)]) -> HeaderMap {
        let line = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_bytes(value.as_bytes()).unwrap())
        };
        lines.iter().map(line).collect()
    }

    #[test]
    fn all_members_are_read() {
        let headers = map(&[
            ("x-amzn-sagemaker-target-variant", "blue"),
            ("x-amzn-sagemaker-inference-component", "llama"),
            ("x-amzn-sagemaker-target-model", "models/a.tar.gz"),
            ("x-amzn-sagemaker-session-id", "NEW_SESSION"),
            ("x-amzn-sagemaker-prefix-aware-id", "tenant  A"),
        ]);
        let expected = Invocation {
            target_variant: Some("blue".into()),
            inference_component: Some("llama".into()),
            target_model: Some("models/a.tar.gz".into()),
            session: Some(SessionId::New),
            prefix_aware_id: Some("tenant  A".into()),
        };
        assert_eq!(Invocation::parse(&headers, Operation::InvokeEndpoint), Ok(expected));
        assert_eq!(Invocation::parse(&HeaderMap::new(), Operation::InvokeEndpoint), Ok(Invocation::default()));
    }

    #[test]
    fn what_breaks_a_constraint_is_told_with_its_name() {
        let headers =
            map(&[("x-amzn-sagemaker-session-id", "a b"), ("x-amzn-sagemaker-inference-id", &"x".repeat(65))]);
        let error = Invocation::parse(&headers, Operation::InvokeEndpoint).unwrap_err().to_string();
        let (inference, session) = error.split_once("; ").unwrap();
        assert_eq!(
            inference,
            format!(
                "2 validation errors detected: Value '{}' at 'inferenceId' failed to satisfy constraint: Member must \
                 have length less than or equal to 64",
                "x".repeat(65)
            )
        );
        assert_eq!(
            session,
            "Value 'a b' at 'sessionId' failed to satisfy constraint: Member must satisfy regular expression pattern: \
             ^(NEW_SESSION)$|^[a-zA-Z0-9](-*[a-zA-Z0-9])*$"
        );
    }

    #[test]
    fn no_session_begins_with_a_stream() {
        let headers = map(&[("x-amzn-sagemaker-session-id", "NEW_SESSION")]);
        let error = Invocation::parse(&headers, Operation::InvokeEndpointWithResponseStream).unwrap_err().to_string();
        assert!(error.starts_with("1 validation error detected: Value 'NEW_SESSION' at 'sessionId'"), "{error}");
    }

    #[test]
    fn members_of_another_operation_are_no_members() {
        let headers =
            map(&[("x-amzn-sagemaker-target-model", "m"), ("accept", "a/b"), ("x-amzn-sagemaker-accept", "c/d")]);
        let stream = Operation::InvokeEndpointWithResponseStream;
        assert_eq!(Invocation::parse(&headers, stream), Ok(Invocation::default()));
        assert_eq!(headers_for_container(&headers, stream), map(&[("accept", "c/d")]));
    }

    #[test]
    fn only_members_reach_the_container() {
        let headers = map(&[
            ("content-type", "application/json"),
            ("accept", "*/*"),
            ("authorization", "AWS4-HMAC-SHA256 …"),
            ("cookie", "a=b"),
            ("x-amz-date", "20261130T000000Z"),
            ("x-amzn-sagemaker-custom-attributes", "trace=1"),
            ("x-amzn-sagemaker-unheard-of", "1"),
        ]);
        let expected = map(&[
            ("content-type", "application/json"),
            ("accept", "*/*"),
            ("x-amzn-sagemaker-custom-attributes", "trace=1"),
        ]);
        assert_eq!(headers_for_container(&headers, Operation::InvokeEndpoint), expected);
        let headers = map(&[("content-type", "a/b"), ("x-amzn-sagemaker-content-type", "c/d")]);
        assert_eq!(headers_for_container(&headers, Operation::InvokeEndpointAsync), map(&[("content-type", "c/d")]));
    }

    #[test]
    fn a_tenant_id_may_hold_spaces_but_not_begin_with_one() {
        let id = |value: &str| Invocation::prefix_aware_id(&map(&[("x-amzn-sagemaker-prefix-aware-id", value)]));
        assert_eq!(id("tenant  A"), Ok(Some("tenant  A".into())));
        for value in ["", " a", &"x".repeat(65), "tab\there"] {
            assert!(id(value).is_err(), "{value:?}");
        }
        assert_eq!(Invocation::prefix_aware_id(&HeaderMap::new()), Ok(None));
    }
}
