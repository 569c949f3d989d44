//! What deployments ask of alarms.

/// Knows the states of CloudWatch's alarms.
pub trait AlarmSource: Send + Sync {
    /// One of an account's alarms of these names that is in state ALARM. Names that no alarm has are none.
    fn in_alarm(&self, account: &str, names: &[String]) -> Option<String>;
}

/// Nothing is ever alarming.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoAlarms;

impl AlarmSource for NoAlarms {
    fn in_alarm(&self, _: &str, _: &[String]) -> Option<String> {
        None
    }
}
