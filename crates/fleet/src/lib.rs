//! Live truth about instances: the topology that requests are routed over, and what keeps it true.
//!
//! [`Fleet`] is the one writer; threads that serve requests read its [`Topology`] snapshot and choose instances in
//! [`Variant`]s. Probes, model listings and DNS run beside them and never delay a request.

mod address;
mod apply;
mod change;
mod clock;
mod dial;
mod directory;
mod dns;
mod engine_report;
mod engines;
mod fleet;
mod instance;
mod latest;
mod listing;
mod lock;
mod managed;
mod problem;
mod reconcile;
mod sessions;
mod status;
mod stored_responses;
mod suspects;
mod tasks;
#[cfg(test)]
#[cfg(not(feature = "shuttle"))]
mod testing;
mod topology;
mod variant;
mod watch;

pub use address::Address;
pub use change::{ChangeError, IfLast, InstanceName, NewInstance};
pub use clock::Clock;
pub use dial::InstanceTls;
pub use dns::{Answer, Resolve, ResolveError, Resolving, SystemResolver};
pub use engine_report::{EngineReport, EngineStatus};
pub use engines::{EngineFigures, EngineKind, Machine};
pub use fleet::Fleet;
pub use instance::{Instance, Location, Origin};
pub use listing::Model;
pub use managed::{ComponentKind, ManagedComponent, ManagedEndpoint, ManagedInstance, ManagedVariant, PutError};
pub use problem::Problem;
pub use sessions::{Pin, Session, Sessions};
pub use status::InstanceStatus;
pub use stored_responses::StoredResponses;
pub use suspects::Suspects;
pub use tasks::FleetTasks;
pub use topology::{Adapter, AsyncOutput, Component, Endpoint, Owner, Serving, Topology, TrafficShare};
pub use variant::{
    Bounds, InstanceNow, LONGEST_FOR_HOME, NotPlaced, OrderedInstance, Placement, Rank, ScoredInstance, SlotGuard,
    Variant, Waiting,
};
