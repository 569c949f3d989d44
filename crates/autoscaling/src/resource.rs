//! What can be scaled, and through whom.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use serde::{Deserialize, Serialize};

/// Something whose capacity can be changed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Resource {
    /// The instances of a variant.
    Variant {
        /// The endpoint's name.
        endpoint: String,
        /// The variant's name.
        variant: String,
    },
    /// The copies of an inference component.
    Component {
        /// The component's name.
        name: String,
    },
}

/// How much of a resource there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// How many instances or copies are wanted.
    pub desired: u32,
    /// How many there are.
    pub running: u32,
    /// Whether the resource is at rest, so that its capacity may be changed.
    pub settled: bool,
}

/// Work under way; an error is a sentence for people.
pub type Working<'a, T> = Pin<Box<dyn Future<Output = Result<T, String>> + Send + 'a>>;

/// The control plane, as scaling sees it.
pub trait ScalableResources: Send + Sync {
    /// How much there is of a resource of an account; `None` where it is certain that there is no such resource, upon
    /// which its scalable target ends.
    fn capacity<'a>(&'a self, owner: &'a Owner, resource: &'a Resource) -> Working<'a, Option<Capacity>>;

    /// Wants so many of it from now on.
    fn set_capacity<'a>(&'a self, owner: &'a Owner, resource: &'a Resource, desired: u32) -> Working<'a, ()>;
}

/// Whose a resource is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Owner {
    /// The account, twelve digits.
    pub account: String,
    /// The region that it was registered in.
    pub region: String,
}

/// `ServiceNamespace`: the only one that there is something of.
pub(crate) const NAMESPACE: &str = "sagemaker";

const VARIANT_DIMENSION: &str = "sagemaker:variant:DesiredInstanceCount";
const COMPONENT_DIMENSION: &str = "sagemaker:inference-component:DesiredCopyCount";

impl Resource {
    /// The resource that a `ResourceId` and a `ScalableDimension` name together.
    pub(crate) fn named(id: &str, dimension: &str) -> Option<Resource> {
        let parts: Vec<&str> = id.split('/').collect();
        match (&parts[..], dimension) {
            (["endpoint", endpoint, "variant", variant], VARIANT_DIMENSION) if !endpoint.is_empty() => {
                let (endpoint, variant) = ((*endpoint).to_owned(), (*variant).to_owned());
                (!variant.is_empty()).then_some(Resource::Variant { endpoint, variant })
            }
            (["inference-component", name], COMPONENT_DIMENSION) if !name.is_empty() => {
                Some(Resource::Component { name: (*name).to_owned() })
            }
            _ => None,
        }
    }

    /// What stands before every other one in their order.
    pub(crate) fn first() -> Resource {
        Resource::Variant { endpoint: String::new(), variant: String::new() }
    }

    /// Its `ScalableDimension`.
    pub(crate) fn dimension(&self) -> &'static str {
        match self {
            Resource::Variant { .. } => VARIANT_DIMENSION,
            Resource::Component { .. } => COMPONENT_DIMENSION,
        }
    }

    /// What its capacity counts, in words.
    pub(crate) fn counted(&self) -> &'static str {
        match self {
            Resource::Variant { .. } => "instance count",
            Resource::Component { .. } => "copy count",
        }
    }
}

/// As a `ResourceId`.
impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Resource::Variant { endpoint, variant } => write!(f, "endpoint/{endpoint}/variant/{variant}"),
            Resource::Component { name } => write!(f, "inference-component/{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_dimensions_name_resources_together() {
        for (id, dimension) in
            [("endpoint/chat/variant/blue", VARIANT_DIMENSION), ("inference-component/llama", COMPONENT_DIMENSION)]
        {
            let resource = Resource::named(id, dimension).expect(id);
            assert_eq!((resource.to_string().as_str(), resource.dimension()), (id, dimension));
        }
        for (id, dimension) in [
            ("endpoint/chat/variant/blue", COMPONENT_DIMENSION),
            ("endpoint/chat/variant/blue", "sagemaker:variant:DesiredProvisionedConcurrency"),
            ("endpoint/chat/variant/", VARIANT_DIMENSION),
            ("endpoint//variant/blue", VARIANT_DIMENSION),
            ("endpoint/chat", VARIANT_DIMENSION),
            ("inference-component/", COMPONENT_DIMENSION),
            ("service/cluster/name", VARIANT_DIMENSION),
        ] {
            assert_eq!(Resource::named(id, dimension), None, "{id} {dimension}");
        }
    }
}
