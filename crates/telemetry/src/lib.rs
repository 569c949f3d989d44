//! Every metric name, the instruments and the access log.
