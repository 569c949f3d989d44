//! A deployer for tests: does everything that is under way, at once, when it is told to.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use isotherm_config::Quotas;
use isotherm_store::{Records, Store, StoreError};
use isotherm_wire::aws::Caller;
use serde_json::Value;
use tempfile::TempDir;

use super::ControlPlane;
use crate::records::{
    ComponentTransition, Deployed, ENDPOINTS, EndpointRecord, INFERENCE_COMPONENTS, InferenceComponentRecord,
    Transition, remove_endpoint, remove_inference_component,
};
use crate::shapes::{EndpointStatus, InferenceComponentStatus};
use crate::{Deployer, ServiceError};

/// Counts how often it was woken.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Deployer for Woken {
    fn wake(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A control plane over a store of its own, and whom it answers.
pub(super) struct Bench {
    pub(super) plane: ControlPlane,
    pub(super) caller: Caller,
    woken: Arc<Woken>,
    directory: TempDir,
}

impl Bench {
    pub(super) fn new() -> Bench {
        let directory = tempfile::tempdir().unwrap();
        Bench::over(directory)
    }

    fn over(directory: TempDir) -> Bench {
        let woken = Arc::<Woken>::default();
        let store = Arc::new(Store::open(directory.path()).unwrap());
        let caller = Caller {
            account: String::from("123456789012"),
            region: String::from("eu-west-1"),
            access_key: None,
            name: None,
        };
        Bench { plane: ControlPlane::new(store, Arc::clone(&woken) as Arc<dyn Deployer>), caller, woken, directory }
    }

    /// The same with these quotas.
    pub(super) fn with_quotas(self, quotas: Quotas) -> Bench {
        Bench { plane: self.plane.clone().with_quotas(quotas), ..self }
    }

    /// The same, asked by another account.
    pub(super) fn under_account(mut self, account: &str) -> Bench {
        self.caller.account = account.to_owned();
        self
    }

    /// The same store after a restart.
    pub(super) fn restarted(self) -> Bench {
        let Bench { plane, directory, .. } = self;
        drop(plane);
        Bench::over(directory)
    }

    pub(super) fn run(&self, operation: &str, input: Value) -> Result<Value, ServiceError> {
        self.plane.run(&self.caller, operation, &input)
    }

    /// Runs what must succeed.
    pub(super) fn ok(&self, operation: &str, input: Value) -> Value {
        self.run(operation, input).unwrap_or_else(|error| panic!("{operation}: {error}"))
    }

    /// Runs what must be refused with a `ValidationException`; gives its message.
    pub(super) fn refused(&self, operation: &str, input: Value) -> String {
        match self.run(operation, input) {
            Err(ServiceError::Validation(message)) => message,
            other => panic!("{operation}: {other:?}"),
        }
    }

    pub(super) fn times_woken(&self) -> usize {
        self.woken.0.load(Ordering::Relaxed)
    }

    /// Brings everything that is under way to its end.
    pub(super) fn settle(&self) {
        self.plane
            .store
            .write::<_, StoreError>(|transaction| {
                for (key, mut component) in transaction.scan(&INFERENCE_COMPONENTS, "")? {
                    match component.transition.take() {
                        Some(ComponentTransition::Delete { .. }) => {
                            remove_inference_component(transaction, &component)?
                        }
                        transition => {
                            settle_component(&mut component, transition);
                            transaction.put(&INFERENCE_COMPONENTS, &key, &component)?;
                        }
                    }
                }
                for (key, mut endpoint) in transaction.scan(&ENDPOINTS, "")? {
                    match endpoint.transition.take() {
                        Some(Transition::Delete { .. }) => remove_endpoint(transaction, &endpoint)?,
                        transition => {
                            settle_endpoint(&mut endpoint, transition);
                            transaction.put(&ENDPOINTS, &key, &endpoint)?;
                        }
                    }
                }
                Ok(())
            })
            .unwrap();
    }

    /// Makes an endpoint fail.
    pub(super) fn fail(&self, endpoint: &str, reason: &str) {
        self.plane
            .store
            .write::<_, StoreError>(|transaction| {
                let key = crate::records::key(&self.caller.account, endpoint);
                let mut record = transaction.get(&ENDPOINTS, &key)?.unwrap();
                record.status = EndpointStatus::Failed;
                record.failure_reason = Some(reason.to_owned());
                record.transition = None;
                transaction.put(&ENDPOINTS, &key, &record)
            })
            .unwrap();
    }
}

fn settle_endpoint(endpoint: &mut EndpointRecord, transition: Option<Transition>) {
    match transition {
        None => return,
        Some(Transition::Update(update)) => {
            endpoint.serving = update.target;
            endpoint.last_deployment_config = update.deployment_config;
        }
        Some(_) => {}
    }
    endpoint.status = EndpointStatus::InService;
    let Deployed { variants, shadow_variants, .. } = &mut endpoint.serving;
    for variant in variants.iter_mut().chain(shadow_variants) {
        variant.current_weight = variant.desired_weight;
        variant.current_instance_count = variant.desired_instance_count;
        variant.current_serverless.clone_from(&variant.desired_serverless);
    }
}

fn settle_component(component: &mut InferenceComponentRecord, transition: Option<ComponentTransition>) {
    match transition {
        None => return,
        Some(ComponentTransition::Update { target, deployment_config, .. }) => {
            component.serving = *target;
            component.last_deployment_config = deployment_config;
        }
        Some(_) => {}
    }
    component.status = InferenceComponentStatus::InService;
    component.current_copy_count = component.desired_copy_count;
}
