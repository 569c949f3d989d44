//! One endpoint with everything on it, as it lies in the store: read together, changed together.

use isotherm_store::{Records, Store, StoreError, Table};

use super::orders::{instance_type, side};
use super::progress::Progress;
use crate::providers::Providers;
use crate::records::{
    ENDPOINTS, EndpointRecord, INFERENCE_COMPONENTS, InferenceComponentRecord, key, remove_endpoint,
    remove_inference_component,
};
use crate::shapes::Timestamp;

/// How far endpoints have come, by the keys of their records.
const ENDPOINT_PROGRESS: Table<Progress> = Table::named("endpoint-progress");
/// How far inference components have come, by the keys of their records.
const COMPONENT_PROGRESS: Table<Progress> = Table::named("component-progress");

/// An endpoint with its components.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct EndpointState {
    /// Its record; `None` once it is gone.
    pub(super) record: Option<EndpointRecord>,
    /// What there is of it.
    pub(super) progress: Progress,
    /// What lies on it.
    pub(super) components: Vec<ComponentState>,
}

impl EndpointState {
    /// Whether something of it comes or goes.
    pub(super) fn is_moving(&self) -> bool {
        let components = self.components.iter();
        self.progress.is_moving()
            || components.into_iter().any(|it| it.record.transition.is_some() || it.progress.is_moving())
    }

    /// How many milliseconds it waits for nothing but time; `None` where it doesn't.
    pub(super) fn waits(&self, now: Timestamp) -> Option<u64> {
        let components = self.components.iter().map(|component| &component.progress);
        components.chain([&self.progress]).filter_map(|progress| progress.waits(now)).min()
    }

    /// The kind of the instance of that id.
    pub(super) fn instance_type(&self, id: &str, providers: &Providers) -> Option<String> {
        let unit = self.progress.units.iter().find(|unit| unit.id() == id)?;
        let deployed = side(self.record.as_ref()?, &self.progress, unit);
        let variant = deployed.variants.iter().find(|variant| variant.config.variant_name == unit.group)?;
        Some(instance_type(deployed, variant, providers))
    }
}

/// A component.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ComponentState {
    /// Its record.
    pub(super) record: InferenceComponentRecord,
    /// What there is of it.
    pub(super) progress: Progress,
    /// It has gone: record and progress are to be taken away.
    pub(super) gone: bool,
}

/// Every endpoint, with the key of its record.
pub(super) fn read_all(store: &Store) -> Result<Vec<(String, EndpointState)>, StoreError> {
    store.read(|records| {
        let components = records.scan(&INFERENCE_COMPONENTS, "")?;
        let endpoints = records.scan(&ENDPOINTS, "")?.into_iter();
        let state = |(key, record)| {
            let state = state(records, record, &components)?;
            Ok((key, state))
        };
        endpoints.map(state).collect()
    })
}

fn state(
    records: &impl Records,
    record: EndpointRecord,
    components: &[(String, InferenceComponentRecord)],
) -> Result<EndpointState, StoreError> {
    let progress = records.get(&ENDPOINT_PROGRESS, &record.key())?.unwrap_or_default();
    let account = &record.identity.account;
    let lies_on_it = |one: &&(String, InferenceComponentRecord)| {
        key(&one.1.identity.account, &one.1.endpoint_name) == key(account, &record.identity.name)
    };
    let component = |(key, record): &(String, InferenceComponentRecord)| {
        let progress = records.get(&COMPONENT_PROGRESS, key)?.unwrap_or_default();
        Ok(ComponentState { record: record.clone(), progress, gone: false })
    };
    let components = components.iter().filter(lies_on_it).map(component).collect::<Result<_, StoreError>>()?;
    Ok(EndpointState { record: Some(record), progress, components })
}

/// Writes what changed from `before` to `after`. False, and nothing is written, where an operation changed a record in
/// the meantime: then its word counts, and all is to be thought through again. What is written is `told` before anybody
/// can read it.
pub(super) fn write(
    store: &Store,
    before: &EndpointState,
    after: &EndpointState,
    told: impl FnOnce(),
) -> Result<bool, StoreError> {
    let Some(record) = &before.record else { return Ok(false) };
    store.write(|transaction| {
        let is_as_before = transaction.get(&ENDPOINTS, &record.key())?.as_ref() == Some(record);
        let unchanged = |one: &ComponentState| {
            let present = transaction.get(&INFERENCE_COMPONENTS, &one.record.key())?;
            Ok::<_, StoreError>(present.as_ref() == Some(&one.record))
        };
        let are_as_before =
            before.components.iter().try_fold(true, |all, one| Ok::<_, StoreError>(all && unchanged(one)?))?;
        if !is_as_before || !are_as_before {
            return Ok(false);
        }
        match &after.record {
            Some(record) => {
                transaction.put(&ENDPOINTS, &record.key(), record)?;
                transaction.put(&ENDPOINT_PROGRESS, &record.key(), &after.progress)?;
            }
            None => {
                remove_endpoint(transaction, record)?;
                transaction.remove(&ENDPOINT_PROGRESS, &record.key())?;
            }
        }
        for (old, new) in before.components.iter().zip(&after.components).filter(|(old, new)| old != new) {
            let key = old.record.key();
            if new.gone {
                remove_inference_component(transaction, &old.record)?;
                transaction.remove(&COMPONENT_PROGRESS, &key)?;
            } else {
                transaction.put(&INFERENCE_COMPONENTS, &key, &new.record)?;
                transaction.put(&COMPONENT_PROGRESS, &key, &new.progress)?;
            }
        }
        told();
        Ok(true)
    })
}
