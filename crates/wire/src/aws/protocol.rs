//! Which of AWS's protocols a request speaks, told by its head.

use http::header::CONTENT_TYPE;
use http::request::Parts;

/// The header that names service and operation in the JSON protocols: `SageMaker.CreateModel`.
pub const TARGET: &str = "x-amz-target";

/// How a service of AWS's is spoken to, and how it words its errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// JSON 1.0.
    Json10,
    /// JSON 1.1.
    Json11,
    /// A form with `Action=…`; answers are XML.
    Query,
    /// RPC over CBOR, as newer SDKs speak to CloudWatch.
    Cbor,
    /// JSON whose operation is the path.
    Rest,
}

impl Protocol {
    /// The protocol of a request. Where nothing tells, [`Protocol::Json11`], which every SDK's parser survives.
    pub fn of(head: &Parts) -> Protocol {
        let content_type = head.headers.get(CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
        let is = |media: &str| {
            let given = content_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
            given.eq_ignore_ascii_case(media.as_bytes())
        };
        if head.headers.contains_key(TARGET) {
            if is("application/x-amz-json-1.0") { Protocol::Json10 } else { Protocol::Json11 }
        } else if head.uri.path().starts_with("/service/") {
            Protocol::Cbor
        } else if is("application/x-www-form-urlencoded") || head.uri.query().is_some_and(names_an_action) {
            Protocol::Query
        } else if head.uri.path() != "/" {
            Protocol::Rest
        } else {
            Protocol::Json11
        }
    }
}

fn names_an_action(query: &str) -> bool {
    query.split('&').any(|pair| pair.starts_with("Action="))
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn of(target: &str, headers: &[(&str, &str)]) -> Protocol {
        let request =
            headers.iter().fold(Request::post(target), |request, (name, value)| request.header(*name, *value));
        Protocol::of(&request.body(()).unwrap().into_parts().0)
    }

    #[test]
    fn each_protocol_is_known_by_its_head() {
        let json = |version| {
            let content_type = format!("application/x-amz-json-{version}");
            of("/", &[("x-amz-target", "Service.Operation"), ("content-type", &content_type)])
        };
        assert_eq!((json("1.0"), json("1.1")), (Protocol::Json10, Protocol::Json11));
        let form = "application/x-www-form-urlencoded; charset=utf-8";
        assert_eq!(of("/", &[("content-type", form)]), Protocol::Query);
        assert_eq!(of("/?Action=GetCallerIdentity&Version=2011-06-15", &[]), Protocol::Query);
        assert_eq!(of("/service/GraniteServiceVersion20100801/operation/ListMetrics", &[]), Protocol::Cbor);
        assert_eq!(of("/api/v1/query?query=up", &[]), Protocol::Rest);
        assert_eq!(of("/", &[]), Protocol::Json11);
    }
}
