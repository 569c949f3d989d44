//! ListEndpoints.

use isotherm_store::Records;
use serde_json::{Value, json};

use crate::error::ServiceError;
use crate::listing::{Listed, page};
use crate::operations::{Call, typed};
use crate::records::{ENDPOINTS, EndpointRecord, Identity};
use crate::shapes::Timestamp;

pub(super) fn list(call: &Call<'_>, input: Value) -> Result<Value, ServiceError> {
    let endpoints = call.store.read(|records| records.scan(&ENDPOINTS, &call.account_prefix()))?;
    page(typed(input)?, "Endpoints", endpoints.into_iter().map(|(_, endpoint)| endpoint).collect())
}

impl Listed for EndpointRecord {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn modified_at(&self) -> Timestamp {
        self.modified_at
    }

    fn status(&self) -> &'static str {
        self.status.as_str()
    }

    fn summary(&self) -> Value {
        let Identity { name, arn, created_at, .. } = &self.identity;
        json!({
            "EndpointName": name,
            "EndpointArn": arn,
            "CreationTime": created_at,
            "LastModifiedTime": self.modified_at,
            "EndpointStatus": self.status,
        })
    }
}
