//! A call of SageMaker's runtime: what it says in its head, where it leads, and how its failures are told.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use http::header::HeaderMap;
use isotherm_config::Timeouts;
use isotherm_core::InstanceId;
use isotherm_fleet::{Component, Endpoint, Session, Topology, Variant};
use isotherm_telemetry::InvocationFault;
use isotherm_wire::aws::Caller;
use isotherm_wire::sagemaker::{
    Fault, Invocation, ModelError, Operation, RuntimeError, Scene, SessionId, headers_for_container,
};

use crate::headers;
use crate::rescue::Failure;
use crate::route::{Route, RuntimeApi};
use crate::stage::finish::Record;

/// What is noted of a call on its way.
#[derive(Debug)]
pub(crate) struct Call {
    /// The endpoint's name, as its client calls it.
    pub(crate) endpoint: String,
    /// What is asked of it.
    pub(crate) api: RuntimeApi,
    /// What the headers say; the component may stand in the path.
    pub(crate) invocation: Invocation,
    /// The production variant that serves it, once that is known.
    pub(crate) production_variant: Option<Arc<str>>,
}

/// Where a call leads.
#[derive(Debug)]
pub(crate) struct Target {
    /// The variant that routes it: a production variant, or that of a component's copies.
    pub(crate) variant: Arc<Variant>,
    /// The production variant on whose instances that lies.
    pub(crate) production_variant: Arc<str>,
    /// The only instances that it may go to.
    pub(crate) within: Option<Vec<InstanceId>>,
    /// Where its session lives; then that is the only instance.
    pub(crate) pinned: Option<InstanceId>,
    /// The adapter that it is computed with, where that is a component of its own.
    pub(crate) adapter: Option<Arc<str>>,
}

impl Call {
    /// The call of a route with these headers; `None` for other routes.
    pub(crate) fn read(route: &Route, headers: &HeaderMap) -> Result<Option<Call>, Failure> {
        let Route::Runtime { endpoint, api } = route else { return Ok(None) };
        let operation = api.operation().unwrap_or(Operation::InvokeEndpoint);
        let mut invocation = Invocation::parse(headers, operation).map_err(RuntimeError::from)?;
        if let RuntimeApi::OpenAi { component } = api {
            if invocation.inference_component.is_some() {
                return Err(RuntimeError::component_header_not_allowed_on_path().into());
            }
            invocation.inference_component.clone_from(component);
            invocation.session = None;
        }
        let (endpoint, api) = (endpoint.clone(), api.clone());
        Ok(Some(Call { endpoint, api, invocation, production_variant: None }))
    }

    /// How long it may take from its arrival to the end of its response.
    pub(crate) fn limit(&self, timeouts: &Timeouts, asks_for_stream: bool) -> Option<Duration> {
        match self.api {
            RuntimeApi::Invocations => Some(timeouts.invocation),
            RuntimeApi::ResponseStream => Some(timeouts.invocation_stream),
            RuntimeApi::OpenAi { .. } if asks_for_stream => Some(timeouts.invocation_stream),
            RuntimeApi::OpenAi { .. } => Some(timeouts.invocation),
            RuntimeApi::Async | RuntimeApi::OpenAiModels { .. } => None,
        }
    }

    /// The headers that reach the container: those of the request that SageMaker knows, and nothing else.
    pub(crate) fn container_headers(&self, headers: &HeaderMap, adapter: Option<&str>) -> HeaderMap {
        let operation = self.api.operation().unwrap_or(Operation::InvokeEndpoint);
        let mut passing = headers_for_container(headers, operation);
        if self.api.operation().is_none() {
            // No session is kept on the OpenAI-compatible path.
            passing.remove(headers::SESSION_ID);
        }
        if let Some(adapter) = adapter {
            passing.insert(headers::ADAPTER_IDENTIFIER, headers::ascii(adapter));
        }
        passing
    }

    /// Whether its response goes out in frames.
    pub(crate) fn is_framed(&self) -> bool {
        self.api == RuntimeApi::ResponseStream
    }

    /// Whether its response goes out only when it is there as a whole, as AWS buffers what is not streamed.
    pub(crate) fn is_buffered(&self) -> bool {
        self.api == RuntimeApi::Invocations
    }

    /// Whether its response goes into a file.
    pub(crate) fn is_kept(&self) -> bool {
        self.api == RuntimeApi::Async
    }

    /// Where it leads.
    pub(crate) fn target(&self, topology: &Topology, record: &Record) -> Result<Target, Failure> {
        let endpoint = endpoint(topology, &self.endpoint, record)?;
        let component = self.component(endpoint)?;
        if let Some(SessionId::Known(id)) = &self.invocation.session {
            return self.session(topology, endpoint, component, id, record);
        }
        let Some(component) = component else {
            let variant = self.variant(endpoint, record)?;
            let production_variant = Arc::clone(variant.name());
            return Ok(Target { variant, production_variant, within: None, pinned: None, adapter: None });
        };
        Ok(Target::of(component))
    }

    fn variant(&self, endpoint: &Endpoint, record: &Record) -> Result<Arc<Variant>, Failure> {
        let random = record.worker.random();
        match &self.invocation.target_variant {
            Some(name) => {
                let variant = endpoint.pick_variant_named(name, random).cloned();
                variant.ok_or_else(|| RuntimeError::variant_not_found(name, &self.endpoint).into())
            }
            None => endpoint.pick_variant(random).cloned().ok_or(Failure::Unavailable),
        }
    }

    fn component<'e>(&self, endpoint: &'e Endpoint) -> Result<Option<&'e Arc<Component>>, Failure> {
        match &self.invocation.inference_component {
            None if endpoint.has_components() => Err(RuntimeError::component_name_missing().into()),
            None => Ok(None),
            Some(_) if !endpoint.has_components() => Err(RuntimeError::component_name_not_allowed().into()),
            Some(name) => {
                let component = endpoint.component(name);
                component.map(Some).ok_or_else(|| RuntimeError::component_not_found(name, &self.endpoint).into())
            }
        }
    }

    /// Where a session lives: nowhere else is it known.
    fn session(
        &self,
        topology: &Topology,
        endpoint: &Endpoint,
        component: Option<&Arc<Component>>,
        id: &str,
        record: &Record,
    ) -> Result<Target, Failure> {
        let sessions = record.worker.fleet.sessions();
        let pin = match sessions.find(endpoint.name(), id, std::time::SystemTime::now()) {
            Session::At(pin) => pin,
            Session::Expired => return Err(RuntimeError::session_expired(id).into()),
            Session::Unknown => return Err(RuntimeError::session_not_found(id, &self.endpoint).into()),
        };
        let Some(variant) = topology.variant_of_session(&pin) else {
            sessions.close(endpoint.name(), id);
            return Err(RuntimeError::session_lost(id).into());
        };
        if component.is_some_and(|component| !Arc::ptr_eq(&component.variant, variant)) {
            return Err(RuntimeError::session_not_found(id, &self.endpoint).into());
        }
        let production_variant = component.map_or(variant.name(), |component| &component.production_variant);
        Ok(Target {
            variant: Arc::clone(variant),
            production_variant: Arc::clone(production_variant),
            within: Some(vec![pin.location.instance.clone()]),
            pinned: Some(pin.location.instance.clone()),
            adapter: component.and_then(|component| component.adapter.as_ref().map(|_| Arc::clone(&component.name))),
        })
    }

    /// The session that it belongs to.
    pub(crate) fn session_id(&self) -> Option<&str> {
        match &self.invocation.session {
            Some(SessionId::Known(id)) => Some(id),
            Some(SessionId::New) | None => None,
        }
    }

    /// What its container did wrong, as SageMaker tells it.
    pub(crate) fn model_error(&self, fault: Fault, record: &Record) -> RuntimeError {
        let Caller { account, region, .. } = record.caller();
        let scene = Scene { endpoint: self.endpoint.clone(), account, region };
        let container = self.invocation.inference_component.as_deref().unwrap_or("primary").to_owned();
        RuntimeError::Model(Box::new(ModelError { scene, container, fault }))
    }
}

impl Target {
    /// The copies of a component; of an adapter, those that hold it.
    fn of(component: &Component) -> Target {
        let Component { name, production_variant, variant, adapter } = component;
        Target {
            variant: Arc::clone(variant),
            production_variant: Arc::clone(production_variant),
            within: adapter.as_ref().map(|adapter| adapter.copies.clone()),
            pinned: None,
            adapter: adapter.as_ref().map(|_| Arc::clone(name)),
        }
    }
}

/// The endpoint of that name that belongs to the caller's account.
pub(crate) fn endpoint<'t>(topology: &'t Topology, name: &str, record: &Record) -> Result<&'t Arc<Endpoint>, Failure> {
    let found = topology.endpoint(&name_in_topology(name, record));
    found.ok_or_else(|| RuntimeError::endpoint_not_found(name, record.account().as_str()).into())
}

/// The name in the topology of the endpoint that the caller's account calls `name`.
pub(crate) fn name_in_topology<'n>(name: &'n str, record: &Record) -> Cow<'n, str> {
    match record.foreign_account() {
        None => name.into(),
        Some(account) => format!("{account}/{name}").into(),
    }
}

impl Failure {
    /// The failure of a call as SageMaker tells and counts it; that of any other request as it is.
    pub(crate) fn of_call(self, record: &mut Record) -> Failure {
        let Some(call) = &record.call else { return self };
        let failure = match self {
            Failure::Broken | Failure::BadAnswer(_) => call.model_error(Fault::NoAnswer, record).into(),
            Failure::FirstByteTimeout(_) | Failure::TotalTimeout(_) => call.model_error(Fault::TimedOut, record).into(),
            other => other,
        };
        if let Failure::Runtime(error) = &failure
            && let RuntimeError::Model(error) = &**error
        {
            record.answered = Some(error.fault.status());
            if let Some(variant) = &record.variant {
                variant.metrics().invocation_fault(InvocationFault::ModelError);
            }
        }
        failure
    }
}
