//! Flags that several commands share, and how they become configuration.
//!
//! Values stay text here: `isotherm_config` parses them, so that a flag, its environment variable and the file accept
//! the same words and refuse the rest with the same message.

use clap::Args;
use isotherm_config::Overrides;

/// How requests are routed and where the router listens.
#[derive(Debug, Args)]
pub(crate) struct RouterFlags {
    /// RANDOM, ROUND_ROBIN, LEAST_OUTSTANDING_REQUESTS, PREFIX_AWARE or ADAPTIVE, in any case, with - or _ [default:
    /// PREFIX_AWARE]
    #[arg(long, value_name = "STRATEGY", help_heading = "Routing")]
    pub(crate) strategy: Option<String>,

    /// How many characters of a prompt decide its home, 1 to 65536 [default: 4096]
    #[arg(long, value_name = "N", help_heading = "Routing")]
    pub(crate) prefix_length: Option<String>,

    /// How many requests in flight make an instance full for its prefixes, 1 to 1024 [default: 10]
    #[arg(long, value_name = "N", help_heading = "Routing")]
    pub(crate) concurrency_threshold: Option<String>,

    /// Port of the data plane; 0 takes a free one [default: 8080]
    #[arg(long, value_name = "PORT", help_heading = "Listeners")]
    pub(crate) port: Option<String>,

    /// Port of the admin plane; 0 takes a free one [default: 8081]
    #[arg(long, value_name = "PORT", help_heading = "Listeners")]
    pub(crate) admin_port: Option<String>,
}

impl RouterFlags {
    /// These flags as what overrides environment and file.
    pub(crate) fn overrides(self) -> Overrides {
        let RouterFlags { strategy, prefix_length, concurrency_threshold, port, admin_port } = self;
        Overrides { strategy, prefix_length, concurrency_threshold, port, admin_port, ..Overrides::default() }
    }
}
