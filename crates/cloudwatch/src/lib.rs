//! CloudWatch's metrics and alarms over the router's own figures.
