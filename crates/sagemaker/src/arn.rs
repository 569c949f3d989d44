//! The kinds of resources, their ARNs, and what is said of one that is not there or there already.

use isotherm_wire::aws::Caller;

use crate::error::ServiceError;

/// What a resource is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceKind {
    /// A model.
    Model,
    /// An endpoint configuration.
    EndpointConfig,
    /// An endpoint.
    Endpoint,
    /// An inference component.
    InferenceComponent,
}

impl ResourceKind {
    const ALL: [ResourceKind; 4] =
        [ResourceKind::Model, ResourceKind::EndpointConfig, ResourceKind::Endpoint, ResourceKind::InferenceComponent];

    /// The word for it in ARNs.
    pub const fn in_arn(self) -> &'static str {
        match self {
            ResourceKind::Model => "model",
            ResourceKind::EndpointConfig => "endpoint-config",
            ResourceKind::Endpoint => "endpoint",
            ResourceKind::InferenceComponent => "inference-component",
        }
    }

    /// The words for it in messages.
    pub const fn in_words(self) -> &'static str {
        match self {
            ResourceKind::Model => "model",
            ResourceKind::EndpointConfig => "endpoint configuration",
            ResourceKind::Endpoint => "endpoint",
            ResourceKind::InferenceComponent => "inference component",
        }
    }

    /// The ARN of the caller's resource of this name. The name in it is in lower case.
    pub fn arn(self, caller: &Caller, name: &str) -> String {
        let Caller { region, account, .. } = caller;
        let partition = partition(region);
        format!("arn:{partition}:sagemaker:{region}:{account}:{}/{}", self.in_arn(), name.to_ascii_lowercase())
    }

    /// The caller has no resource of this name.
    pub(crate) fn missing(self, caller: &Caller, name: &str) -> ServiceError {
        self.missing_arn(&self.arn(caller, name))
    }

    pub(crate) fn missing_arn(self, arn: &str) -> ServiceError {
        ServiceError::Validation(format!("Could not find {} \"{arn}\".", self.in_words()))
    }

    /// The caller has a resource of this name already.
    pub(crate) fn existing(self, caller: &Caller, name: &str) -> ServiceError {
        let arn = self.arn(caller, name);
        ServiceError::Validation(format!("Cannot create already existing {} \"{arn}\".", self.in_words()))
    }
}

/// What an ARN says of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arn<'a> {
    pub(crate) account: &'a str,
    pub(crate) kind: ResourceKind,
    pub(crate) name: &'a str,
}

impl<'a> Arn<'a> {
    /// Reads the ARN of one of the kinds that are here; `None` for others.
    pub(crate) fn parse(arn: &'a str) -> Option<Arn<'a>> {
        let mut parts = arn.splitn(6, ':').skip(4);
        let account = parts.next()?;
        let (word, name) = parts.next()?.split_once('/')?;
        let kind = ResourceKind::ALL.into_iter().find(|kind| kind.in_arn() == word)?;
        Some(Arn { account, kind, name })
    }
}

fn partition(region: &str) -> &'static str {
    match region {
        region if region.starts_with("cn-") => "aws-cn",
        region if region.starts_with("us-gov-") => "aws-us-gov",
        _ => "aws",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(region: &str) -> Caller {
        Caller { account: String::from("123456789012"), region: region.to_owned(), access_key: None, name: None }
    }

    #[test]
    fn arns_have_the_name_in_lower_case_and_the_partition_of_the_region() {
        let arn = ResourceKind::Endpoint.arn(&caller("eu-west-1"), "My-Chat");
        assert_eq!(arn, "arn:aws:sagemaker:eu-west-1:123456789012:endpoint/my-chat");
        assert!(ResourceKind::Model.arn(&caller("cn-north-1"), "m").starts_with("arn:aws-cn:sagemaker:cn-north-1:"));
        let parsed = Arn::parse(&arn).unwrap();
        assert_eq!(parsed, Arn { account: "123456789012", kind: ResourceKind::Endpoint, name: "my-chat" });
    }

    #[test]
    fn arns_of_other_things_are_not_known() {
        for arn in ["", "endpoint/x", "arn:aws:sagemaker:eu-west-1:123456789012:notebook-instance/x", "a:b:c:d:e:model"]
        {
            assert_eq!(Arn::parse(arn), None, "{arn}");
        }
    }
}
