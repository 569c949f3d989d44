//! Which service of AWS's a request is for, and which operation, told by head and body.

use http::request::Parts;

use super::protocol::{Protocol, TARGET};
use crate::sigv4::{Claim, form_parameter};

/// A service of AWS's.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Service {
    /// SageMaker's control plane.
    SageMaker,
    /// CloudWatch: metrics and alarms.
    CloudWatch,
    /// Application Auto Scaling.
    AutoScaling,
    /// The Security Token Service.
    Sts,
    /// Another one, by what tells most of it: its signing name, or what stands before its operation.
    Other(String),
}

impl Service {
    /// The name that its requests are signed for; `None` for those that are not known here.
    pub fn signing_name(&self) -> Option<&'static str> {
        Some(match self {
            Service::SageMaker => "sagemaker",
            Service::CloudWatch => "monitoring",
            Service::AutoScaling => "application-autoscaling",
            Service::Sts => "sts",
            Service::Other(_) => return None,
        })
    }
}

/// What a request asks of which service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The service.
    pub service: Service,
    /// The operation's name; empty where it has none that is known here.
    pub operation: String,
}

impl Asked {
    /// What a request asks. `body` is looked at only where it is a form.
    pub fn of(head: &Parts, body: &[u8]) -> Asked {
        if let Some(target) = head.headers.get(TARGET) {
            let target = target.to_str().unwrap_or_default();
            let (service, operation) = target.split_once('.').unwrap_or((target, ""));
            return Asked { service: by_target(service, head), operation: operation.to_owned() };
        }
        let path = head.uri.path();
        if let Some(rest) = path.strip_prefix("/service/") {
            let (service, operation) = rest.split_once("/operation/").unwrap_or((rest, ""));
            return Asked { service: by_target(service, head), operation: operation.to_owned() };
        }
        if path.starts_with("/api/v1/") {
            return Asked { service: Service::CloudWatch, operation: String::new() };
        }
        if Protocol::of(head) == Protocol::Query {
            return by_form(head, body);
        }
        Asked { service: other(head, path), operation: String::new() }
    }
}

fn by_target(name: &str, head: &Parts) -> Service {
    match name {
        "SageMaker" => Service::SageMaker,
        "GraniteServiceVersion20100801" => Service::CloudWatch,
        "AnyScaleFrontendService" => Service::AutoScaling,
        name => other(head, name),
    }
}

/// Forms name their operation, and their service by nothing but its version.
fn by_form(head: &Parts, body: &[u8]) -> Asked {
    let form = std::str::from_utf8(body).unwrap_or_default();
    let query = head.uri.query().unwrap_or_default();
    let field = |name: &str| form_parameter(form, name).or_else(|| form_parameter(query, name));
    let operation = field("Action").unwrap_or_default();
    let service = match field("Version").as_deref() {
        Some("2010-08-01") => Service::CloudWatch,
        Some("2011-06-15") => Service::Sts,
        None if operation == "GetCallerIdentity" => Service::Sts,
        _ => other(head, &operation),
    };
    Asked { service, operation }
}

fn other(head: &Parts, otherwise: &str) -> Service {
    let signed_for = Claim::of(head).ok().flatten().map(|claim| claim.service().to_owned());
    Service::Other(signed_for.unwrap_or_else(|| otherwise.to_owned()))
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn asked(target: &str, headers: &[(&str, &str)], body: &str) -> (Service, String) {
        let request =
            headers.iter().fold(Request::post(target), |request, (name, value)| request.header(*name, *value));
        let Asked { service, operation } = Asked::of(&request.body(()).unwrap().into_parts().0, body.as_bytes());
        (service, operation)
    }

    #[test]
    fn every_way_to_name_a_service_is_known() {
        let by_target = |target: &str| asked("/", &[("x-amz-target", target)], "{}");
        assert_eq!(by_target("SageMaker.ListEndpoints"), (Service::SageMaker, "ListEndpoints".into()));
        assert_eq!(
            by_target("AnyScaleFrontendService.PutScalingPolicy"),
            (Service::AutoScaling, "PutScalingPolicy".into())
        );
        assert_eq!(by_target("Logs_20140328.PutLogEvents").0, Service::Other("Logs_20140328".into()));
        assert_eq!(by_target("SageMaker"), (Service::SageMaker, String::new()));
        let path = "/service/GraniteServiceVersion20100801/operation/ListMetrics";
        assert_eq!(asked(path, &[], ""), (Service::CloudWatch, "ListMetrics".into()));
        assert_eq!(asked("/api/v1/query?query=up", &[], "").0, Service::CloudWatch);
        let form = |body| asked("/", &[("content-type", "application/x-www-form-urlencoded")], body);
        assert_eq!(form("Action=GetCallerIdentity&Version=2011-06-15"), (Service::Sts, "GetCallerIdentity".into()));
        assert_eq!(form("Version=2010-08-01&Action=ListMetrics"), (Service::CloudWatch, "ListMetrics".into()));
        assert_eq!(
            form("Action=DescribeInstances&Version=2016-11-15"),
            (Service::Other("DescribeInstances".into()), "DescribeInstances".into())
        );
        assert_eq!(asked("/?Action=GetCallerIdentity&Version=2011-06-15", &[], "").0, Service::Sts);
        assert_eq!(asked("/bucket/key", &[], "").0, Service::Other("/bucket/key".into()));
    }

    #[test]
    fn a_service_that_is_not_known_is_called_as_it_is_signed_for() {
        let authorization = format!(
            "AWS4-HMAC-SHA256 Credential=A/20261129/us-east-1/s3/aws4_request, SignedHeaders=host;x-amz-date, Signature={}",
            "0".repeat(64)
        );
        let headers = [("x-amz-date", "20261129T120000Z"), ("authorization", authorization.as_str()), ("host", "a")];
        assert_eq!(asked("/bucket/key", &headers, "").0, Service::Other("s3".into()));
    }
}
