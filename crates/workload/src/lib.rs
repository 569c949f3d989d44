//! What clients send: synthetic workloads and prompts.
