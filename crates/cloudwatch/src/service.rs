//! CloudWatch as a service: takes a request in whichever protocol, and answers it.

#[cfg(test)]
mod tests;

use std::fmt;
use std::future::ready;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::Response;
use isotherm_store::{Store, StoreError};
use isotherm_wire::aws::{Answering, AwsRequest, AwsService, Caller, uuid};
use parking_lot::{Mutex, MutexGuard};
use tracing::error;

use crate::alarm::{AlarmState, Alarms, CallingAlarm};
use crate::document::Document;
use crate::operation::{self, Call};
use crate::protocol::{Asked, Protocol};
use crate::{Limits, MetricStore, Refusal, promql};

type Operation = fn(&CloudWatch, Call<'_>, &Document) -> Result<Document, Refusal>;

/// Every operation.
pub(crate) const OPERATIONS: [(&str, Operation); 11] = [
    ("DeleteAlarms", operation::delete_alarms),
    ("DescribeAlarms", operation::describe_alarms),
    ("GetMetricData", operation::get_metric_data),
    ("GetMetricStatistics", operation::get_metric_statistics),
    ("ListMetrics", operation::list_metrics),
    ("ListTagsForResource", operation::list_tags_for_resource),
    ("PutMetricAlarm", operation::put_metric_alarm),
    ("PutMetricData", operation::put_metric_data),
    ("SetAlarmState", operation::set_alarm_state),
    ("TagResource", operation::tag_resource),
    ("UntagResource", operation::untag_resource),
];

/// Metrics and alarms. Cheap to clone: all clones are the same.
#[derive(Clone)]
pub struct CloudWatch {
    shared: Arc<Shared>,
}

struct Shared {
    metrics: Mutex<MetricStore>,
    alarms: Mutex<Alarms>,
}

impl CloudWatch {
    /// With the alarms that the store has; without a store alarms end with the process, as metrics do.
    ///
    /// # Errors
    ///
    /// Those of reading the store.
    pub fn open(store: Option<Arc<Store>>, limits: Limits) -> Result<CloudWatch, StoreError> {
        let alarms = Mutex::new(Alarms::open(store)?);
        let metrics = Mutex::new(MetricStore::new(limits));
        Ok(CloudWatch { shared: Arc::new(Shared { metrics, alarms }) })
    }

    /// The answer to a request that comes at `now`, in seconds of Unix time.
    pub fn answer(&self, request: &AwsRequest, now: u64) -> Response<Bytes> {
        if request.head.uri.path().starts_with("/api/v1/") {
            return promql::refusal();
        }
        let protocol = Protocol::of(request);
        let mut name = String::new();
        let result = protocol.read(request).and_then(|Asked { operation, input }| {
            name = operation;
            let known = OPERATIONS.iter().find(|(known, _)| *known == name);
            let (_, operation) = known.ok_or_else(|| Refusal::unknown_operation(&name))?;
            operation(self, Call { caller: &request.caller, now }, &input)
        });
        protocol.answer(&name, result, &request_id())
    }

    /// The metrics, locked: take what is needed and let go.
    pub fn metrics(&self) -> MutexGuard<'_, MetricStore> {
        self.shared.metrics.lock()
    }

    pub(crate) fn alarms(&self) -> MutexGuard<'_, Alarms> {
        self.shared.alarms.lock()
    }

    /// How alarms of an account stand, in the order of the names; `None` where there is no such alarm.
    pub fn alarm_states<'n>(&self, account: &str, names: impl IntoIterator<Item = &'n str>) -> Vec<Option<AlarmState>> {
        let alarms = self.alarms();
        names.into_iter().map(|name| alarms.get(account, name).map(|alarm| alarm.standing.state)).collect()
    }

    /// Makes or changes an alarm as `PutMetricAlarm` does, for a service that keeps alarms of its own.
    ///
    /// # Errors
    ///
    /// Those of the operation.
    pub fn put_alarm(&self, caller: &Caller, input: &Document, now: u64) -> Result<(), Refusal> {
        operation::put_metric_alarm(self, Call { caller, now }, input).map(drop)
    }

    /// Takes alarms away; names that there are not are passed over.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub fn remove_alarms(&self, account: &str, names: &[&str]) -> Result<(), Refusal> {
        self.alarms().remove(account, names)
    }

    /// The alarms of an account that are in `ALARM` and have this action, in the order of their names.
    pub fn alarms_calling(&self, account: &str, action: &str) -> Vec<CallingAlarm> {
        let alarms = self.alarms();
        let calling = alarms.after(account, None).filter(|alarm| {
            alarm.standing.state == AlarmState::Alarm
                && alarm.actions_enabled
                && alarm.alarm_actions.iter().any(|own| own == action)
        });
        calling.map(CallingAlarm::of).collect()
    }

    /// Looks at every alarm whose period has ended, and forgets values that are too old. To be called every ten seconds,
    /// after the metrics of these were recorded.
    pub fn tick(&self, now: u64) {
        let mut metrics = self.metrics();
        metrics.tidy(now);
        if let Err(failure) = self.alarms().evaluate(&metrics, now) {
            error!(%failure, "alarms could not be kept");
        }
    }
}

impl AwsService for CloudWatch {
    fn call(&self, request: AwsRequest) -> Answering {
        Box::pin(ready(self.answer(&request, unix_time())))
    }
}

impl fmt::Debug for CloudWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CloudWatch").finish_non_exhaustive()
    }
}

/// Seconds of Unix time.
pub(crate) fn unix_time() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// A random UUID, as AWS numbers requests.
fn request_id() -> String {
    let mut random = [0; 16];
    // Without random numbers requests have no names of their own, which harms nobody.
    let _ = getrandom::fill(&mut random);
    uuid(u128::from_be_bytes(random))
}
