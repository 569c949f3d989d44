//! How much an account may have: every resource lies on the disk, and every instance and every copy is a program, or a
//! thread of the router's.

use isotherm_config::Quotas;
use isotherm_store::{Records, Table, Transaction};

use super::Call;
use crate::error::ServiceError;
use crate::records::{
    ENDPOINT_CONFIGS, ENDPOINTS, EndpointConfigRecord, EndpointRecord, INFERENCE_COMPONENTS, InferenceComponentRecord,
    MODELS, ModelRecord,
};

/// A kind of resource, of which an account may have so many.
pub(super) struct Kind<T: 'static> {
    table: &'static Table<T>,
    /// As AWS calls its quota.
    what: &'static str,
    unit: &'static str,
    /// Where it is set, below `aws.quotas`, and what is set there.
    setting: &'static str,
    most: fn(&Quotas) -> u32,
}

pub(super) const MODEL: Kind<ModelRecord> =
    Kind { table: &MODELS, what: "Number of models", unit: "Models", setting: "models", most: |quotas| quotas.models };

pub(super) const ENDPOINT_CONFIG: Kind<EndpointConfigRecord> = Kind {
    table: &ENDPOINT_CONFIGS,
    what: "Number of endpoint configurations",
    unit: "Endpoint Configurations",
    setting: "endpoint_configs",
    most: |quotas| quotas.endpoint_configs,
};

pub(super) const ENDPOINT: Kind<EndpointRecord> = Kind {
    table: &ENDPOINTS,
    what: "Number of endpoints",
    unit: "Endpoints",
    setting: "endpoints",
    most: |quotas| quotas.endpoints,
};

pub(super) const INFERENCE_COMPONENT: Kind<InferenceComponentRecord> = Kind {
    table: &INFERENCE_COMPONENTS,
    what: "Number of inference components",
    unit: "Inference Components",
    setting: "inference_components",
    most: |quotas| quotas.inference_components,
};

/// Makes room for one more of a kind of resource, unless there are as many as there may be.
///
/// # Errors
///
/// [`ServiceError::LimitExceeded`].
pub(super) fn one_more<T>(call: &Call<'_>, records: &impl Records, kind: &Kind<T>) -> Result<(), ServiceError> {
    let there = records.count(kind.table, &call.account_prefix())?;
    let quota = kind.quota(call.quotas);
    if there < quota.most { Ok(()) } else { Err(quota.exceeded(there, 1)) }
}

/// Makes a change that may start instances or copies, unless it asks for more of them than there may be.
///
/// # Errors
///
/// Those of the change, and [`ServiceError::LimitExceeded`].
pub(super) fn write<T>(
    call: &Call<'_>,
    change: impl FnOnce(&Transaction) -> Result<T, ServiceError>,
) -> Result<T, ServiceError> {
    let quota = Quota {
        what: "Number of instances and inference component copies across endpoints",
        most: call.quotas.instances.into(),
        unit: "Instances",
        setting: "instances",
    };
    call.store.write(|transaction| {
        let before = asked_for(call, transaction)?;
        let answer = change(transaction)?;
        let after = asked_for(call, transaction)?;
        if after <= before.max(quota.most) { Ok(answer) } else { Err(quota.exceeded(before, after - before)) }
    })
}

/// What shall run once every change has come to its end.
fn asked_for(call: &Call<'_>, records: &impl Records) -> Result<u64, ServiceError> {
    let endpoints = records.scan(&ENDPOINTS, &call.account_prefix())?;
    let instances = endpoints.iter().flat_map(|(_, endpoint)| {
        let deployed = endpoint.update().map_or(&endpoint.serving, |update| &update.target);
        deployed.all_variants().map(|variant| u64::from(variant.desired_instance_count))
    });
    let components = records.scan(&INFERENCE_COMPONENTS, &call.account_prefix())?;
    let copies = components.iter().map(|(_, component)| u64::from(component.desired_copy_count));
    Ok(instances.chain(copies).sum())
}

impl<T> Kind<T> {
    fn quota(&self, quotas: &Quotas) -> Quota {
        Quota { what: self.what, most: (self.most)(quotas).into(), unit: self.unit, setting: self.setting }
    }
}

/// How much there may be of something.
struct Quota {
    /// As AWS calls its quotas.
    what: &'static str,
    most: u64,
    unit: &'static str,
    /// Where it is set, below `aws.quotas`.
    setting: &'static str,
}

impl Quota {
    fn exceeded(&self, there: u64, more: u64) -> ServiceError {
        let Quota { what, most, unit, setting } = self;
        ServiceError::LimitExceeded(format!(
            "The account-level service limit '{what}' is {most} {unit}, with current utilization of {there} {unit} and \
             a request delta of {more} {unit}. Please raise aws.quotas.{setting} in the router's configuration to \
             increase this limit."
        ))
    }
}
