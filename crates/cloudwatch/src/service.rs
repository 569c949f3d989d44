//! CloudWatch as a service.
pub(crate) const OPERATIONS: [(&str, u8); 1] = [("ListMetrics", 0)];
