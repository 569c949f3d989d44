//! What Isotherm promises, tried on the real binary from outside.

mod admin_plane;
mod alarms;
mod analyze;
mod bench;
mod binary_swap;
mod canaries;
mod changes_under_load;
mod death_of_an_engine;
mod descriptors;
mod doctor;
mod explain;
mod failures;
mod faulty_networks;
mod fleet_changes;
mod gray_failure;
mod kills;
mod listeners;
mod many_at_once;
mod memory_of_streams;
mod one_beginning;
mod overload;
mod reliability_page;
mod reload;
mod rollout;
mod shutdown;
mod tenants;
mod threshold;
mod timing_oracle;
mod tls;
mod why_it_missed;

use isotherm_tests::{Engines, Running};

/// A fleet of emulated engines with its router, on free ports.
fn up(options: &[&str]) -> Running {
    let mut arguments = vec!["up", "--port", "0", "--admin-port", "0"];
    arguments.extend_from_slice(options);
    Running::start(&arguments)
}

/// A router in front of engines, on free ports; its answers tell its decisions.
fn serve(engines: &Engines, options: &[&str]) -> Running {
    let mut arguments: Vec<String> =
        ["serve", "--port", "0", "--admin-port", "0", "--expose-decisions"].map(str::to_owned).into();
    arguments.extend(engines.instance_flags());
    arguments.extend(options.iter().map(|option| (*option).to_owned()));
    Running::start(&arguments)
}
