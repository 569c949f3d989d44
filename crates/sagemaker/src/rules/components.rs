//! Inference components: what a model's component needs, and what an adapter takes from its base.

use std::collections::HashSet;

use super::ensure;
use crate::error::ServiceError;
use crate::routing;
use crate::shapes::{ComponentRuntimeConfig, ComponentSpecification};

/// Whether a component is a model of its own or an adapter on top of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ComponentKind {
    Model,
    Adapter,
}

/// The specifications of a request: one, or one for each kind of instance.
///
/// # Errors
///
/// Both, none, or a list that names a kind of instance twice or not at all.
pub(crate) fn specifications(
    one: Option<ComponentSpecification>,
    several: Option<Vec<ComponentSpecification>>,
) -> Result<Vec<ComponentSpecification>, ServiceError> {
    let Some(several) = several else {
        return one.map(|one| vec![one]).ok_or_else(neither_or_both);
    };
    if one.is_some() {
        return Err(neither_or_both());
    }
    let mut types = HashSet::new();
    for specification in &several {
        let kind = specification.instance_type.as_ref();
        ensure(kind.is_some_and(|kind| types.insert(kind)), || {
            String::from("Each of Specifications needs an InstanceType of its own.")
        })?;
    }
    Ok(several)
}

fn neither_or_both() -> ServiceError {
    ServiceError::Validation(String::from("Exactly one of Specification and Specifications is required."))
}

/// Checks the specifications of one component, and says what it is.
pub(crate) fn check(specifications: &[ComponentSpecification]) -> Result<ComponentKind, ServiceError> {
    let adapters = specifications.iter().filter(|one| one.base_inference_component_name.is_some()).count();
    let kind = if adapters == 0 { ComponentKind::Model } else { ComponentKind::Adapter };
    ensure(adapters == 0 || specifications.len() == 1, || {
        String::from("An adapter takes one Specification: it lies wherever its base inference component does.")
    })?;
    specifications.iter().try_for_each(|specification| match kind {
        ComponentKind::Model => model(specification),
        ComponentKind::Adapter => adapter(specification),
    })?;
    Ok(kind)
}

/// Checks how many copies are asked for at creation.
pub(crate) fn check_copies(kind: ComponentKind, runtime: Option<ComponentRuntimeConfig>) -> Result<(), ServiceError> {
    match kind {
        ComponentKind::Model => ensure(runtime.is_some(), || String::from("RuntimeConfig with CopyCount is required.")),
        ComponentKind::Adapter => ensure(runtime.is_none(), adapters_have_no_copies),
    }
}

/// In which words an adapter refuses a number of copies.
pub(crate) fn adapters_have_no_copies() -> String {
    String::from("RuntimeConfig is not supported for adapters: they lie wherever their base inference component does.")
}

fn model(specification: &ComponentSpecification) -> Result<(), ServiceError> {
    let container = specification.container.as_ref();
    let image = container.and_then(|container| container.image.as_ref());
    ensure(specification.model_name.is_some() != image.is_some(), || {
        String::from("A Specification needs either ModelName or a Container with Image, and not both.")
    })?;
    let compute = specification.compute_resource_requirements.as_ref();
    ensure(compute.is_some(), || String::from("ComputeResourceRequirements is required."))?;
    let crossed = compute.and_then(|compute| {
        let most = compute.max_memory_required_in_mb?;
        (compute.min_memory_required_in_mb > most).then_some((compute.min_memory_required_in_mb, most))
    });
    if let Some((least, most)) = crossed {
        let message = format!("MinMemoryRequiredInMb {least} is greater than MaxMemoryRequiredInMb {most}.");
        return Err(ServiceError::Validation(message));
    }
    if let Some(container) = container {
        routing::asked_by_environment(&container.environment)?;
        routing::bound_by_environment(&container.environment)?;
    }
    Ok(())
}

fn adapter(specification: &ComponentSpecification) -> Result<(), ServiceError> {
    let artifact = specification.container.as_ref().and_then(|container| container.artifact_url.as_ref());
    ensure(artifact.is_some(), || {
        String::from("A Specification with BaseInferenceComponentName needs a Container with ArtifactUrl.")
    })?;
    let image = specification.container.as_ref().and_then(|container| container.image.as_ref());
    ensure(specification.model_name.is_none() && image.is_none(), || {
        String::from("An adapter has neither ModelName nor Image: it runs in the container of its base.")
    })?;
    ensure(specification.compute_resource_requirements.is_none(), || {
        String::from("ComputeResourceRequirements is not supported for adapters: they share those of their base.")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn checked(specification: Value) -> Result<ComponentKind, String> {
        let specification = serde_json::from_value(specification).unwrap();
        check(&[specification]).map_err(|error| error.to_string())
    }

    #[test]
    fn a_model_says_what_it_runs_and_needs() {
        let memory = json!({ "MinMemoryRequiredInMb": 1_024 });
        let good = json!({ "ModelName": "m", "ComputeResourceRequirements": memory });
        assert_eq!(checked(good), Ok(ComponentKind::Model));
        for (specification, message) in [
            (json!({ "ComputeResourceRequirements": memory }), "A Specification needs either ModelName or a Container"),
            (
                json!({ "ModelName": "m", "Container": { "Image": "i" }, "ComputeResourceRequirements": memory }),
                "A Specification needs either ModelName or a Container",
            ),
            (json!({ "ModelName": "m" }), "ComputeResourceRequirements is required."),
            (
                json!({ "ModelName": "m", "ComputeResourceRequirements":
                    { "MinMemoryRequiredInMb": 2_048, "MaxMemoryRequiredInMb": 1_024 } }),
                "MinMemoryRequiredInMb 2048 is greater than MaxMemoryRequiredInMb 1024.",
            ),
        ] {
            let refused = checked(specification).unwrap_err();
            assert!(refused.starts_with(message), "{refused}");
        }
    }

    #[test]
    fn an_adapter_takes_the_rest_from_its_base() {
        let adapter = |members: Value| {
            let mut all = json!({ "BaseInferenceComponentName": "base", "Container": { "ArtifactUrl": "s3://b/a" } });
            all.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
            checked(all)
        };
        assert_eq!(adapter(json!({})), Ok(ComponentKind::Adapter));
        assert!(adapter(json!({ "Container": {} })).unwrap_err().contains("needs a Container with ArtifactUrl"));
        assert!(adapter(json!({ "ModelName": "m" })).unwrap_err().contains("neither ModelName nor Image"));
        let compute = json!({ "ComputeResourceRequirements": { "MinMemoryRequiredInMb": 128 } });
        assert!(adapter(compute).unwrap_err().starts_with("ComputeResourceRequirements is not supported"));
        let copies = Some(ComponentRuntimeConfig { copy_count: 1 });
        assert!(check_copies(ComponentKind::Adapter, copies).is_err());
        assert!(check_copies(ComponentKind::Model, None).is_err());
        check_copies(ComponentKind::Model, copies).unwrap();
    }

    #[test]
    fn specifications_are_one_or_one_for_each_kind_of_instance() {
        let on = |kind: &str| ComponentSpecification { instance_type: Some(kind.to_owned()), ..Default::default() };
        assert_eq!(specifications(Some(on("a")), None).unwrap().len(), 1);
        assert_eq!(specifications(None, Some(vec![on("a"), on("b")])).unwrap().len(), 2);
        let which = "Exactly one of Specification and Specifications is required.";
        assert_eq!(specifications(None, None).unwrap_err().to_string(), which);
        assert_eq!(specifications(Some(on("a")), Some(vec![on("b")])).unwrap_err().to_string(), which);
        let own = "Each of Specifications needs an InstanceType of its own.";
        assert_eq!(specifications(None, Some(vec![on("a"), on("a")])).unwrap_err().to_string(), own);
        assert_eq!(specifications(None, Some(vec![ComponentSpecification::default()])).unwrap_err().to_string(), own);
    }
}
