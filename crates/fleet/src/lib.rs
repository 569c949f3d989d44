//! Live truth about instances: topology, discovery, probes, health.
