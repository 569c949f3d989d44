//! ListInferenceComponents.

use isotherm_store::Records;
use serde_json::{Value, json};

use crate::error::ServiceError;
use crate::listing::{Listed, page};
use crate::operations::{Call, typed};
use crate::records::{INFERENCE_COMPONENTS, Identity, InferenceComponentRecord};
use crate::shapes::Timestamp;

pub(super) fn list(call: &Call<'_>, input: Value) -> Result<Value, ServiceError> {
    let components = call.store.read(|records| records.scan(&INFERENCE_COMPONENTS, &call.account_prefix()))?;
    page(typed(input)?, "InferenceComponents", components.into_iter().map(|(_, component)| component).collect())
}

impl Listed for InferenceComponentRecord {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn modified_at(&self) -> Timestamp {
        self.modified_at
    }

    fn status(&self) -> &'static str {
        self.status.as_str()
    }

    fn host(&self) -> (Option<&str>, Option<&str>) {
        (Some(&self.endpoint_name), self.variant_name.as_deref())
    }

    fn summary(&self) -> Value {
        let Identity { name, arn, created_at, .. } = &self.identity;
        json!({
            "InferenceComponentName": name,
            "InferenceComponentArn": arn,
            "EndpointName": self.endpoint_name,
            "EndpointArn": self.endpoint_arn,
            "VariantName": self.variant_name,
            "InferenceComponentStatus": self.status,
            "CreationTime": created_at,
            "LastModifiedTime": self.modified_at,
        })
    }
}
