//! Models: one container or a pipeline, and what a container is made from.

use super::ensure;
use crate::error::ServiceError;
use crate::routing;
use crate::shapes::{ContainerDefinition, ModelSettings};

/// Checks a model.
pub(crate) fn check(model: &ModelSettings) -> Result<(), ServiceError> {
    let pipeline = model.containers.as_deref().unwrap_or_default();
    ensure(model.primary_container.is_some() == pipeline.is_empty(), || {
        String::from("A model needs either PrimaryContainer or Containers, and not both.")
    })?;
    ensure(model.inference_execution_config.is_none() || !pipeline.is_empty(), || {
        String::from("InferenceExecutionConfig is only supported with Containers.")
    })?;
    model.primary_container.iter().chain(pipeline).try_for_each(container)
}

fn container(container: &ContainerDefinition) -> Result<(), ServiceError> {
    ensure(container.image.is_some() != container.model_package_name.is_some(), || {
        String::from("A container needs either Image or ModelPackageName, and not both.")
    })?;
    ensure(container.model_data_url.is_none() || container.model_data_source.is_none(), || {
        String::from("A container can have ModelDataUrl or ModelDataSource, and not both.")
    })?;
    routing::asked_by_environment(&container.environment)?;
    routing::bound_by_environment(&container.environment)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn checked(model: Value) -> Result<(), String> {
        check(&serde_json::from_value(model).unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_model_is_one_container_or_a_pipeline() {
        let image = json!({ "Image": "vllm" });
        checked(json!({ "PrimaryContainer": image })).unwrap();
        checked(json!({ "Containers": [image, image], "InferenceExecutionConfig": { "Mode": "Serial" } })).unwrap();
        for model in
            [json!({}), json!({ "PrimaryContainer": image, "Containers": [image] }), json!({ "Containers": [] })]
        {
            let refused = checked(model).unwrap_err();
            assert_eq!(refused, "A model needs either PrimaryContainer or Containers, and not both.");
        }
        let direct = json!({ "PrimaryContainer": image, "InferenceExecutionConfig": { "Mode": "Direct" } });
        assert!(checked(direct).unwrap_err().starts_with("InferenceExecutionConfig is only"));
    }

    #[test]
    fn containers_are_made_from_one_thing() {
        let refused = |container: Value| checked(json!({ "PrimaryContainer": container })).unwrap_err();
        assert_eq!(refused(json!({})), "A container needs either Image or ModelPackageName, and not both.");
        assert!(refused(json!({ "Image": "i", "ModelPackageName": "p" })).starts_with("A container needs either"));
        let data = json!({ "Image": "i", "ModelDataUrl": "s3://b/m", "ModelDataSource": {} });
        assert!(refused(data).starts_with("A container can have ModelDataUrl or ModelDataSource"));
        let strategy = json!({ "Image": "i", "Environment": { "ISOTHERM_ROUTING_STRATEGY": "best" } });
        assert!(refused(strategy).starts_with("ISOTHERM_ROUTING_STRATEGY must be ROUND_ROBIN or ADAPTIVE"));
    }
}
