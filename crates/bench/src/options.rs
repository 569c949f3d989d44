//! How a plan is driven: how many requests, how fast, how long to wait.

use std::time::Duration;

/// Settings of a run, apart from the plan and the target.
#[derive(Clone, Debug)]
pub struct Options {
    /// Requests sent first, that enter no figure: three for every user by default, so that the users who start in the
    /// middle of a document have left it and queues have their usual length.
    pub warm_up: u64,
    /// Requests measured after them, at least 1.
    pub requests: u64,
    /// How many times faster than the wall clock the engines run; 1 for real ones. Think times shrink by it and
    /// measured times grow by it, so that all figures are in the engines' time.
    pub speed: f64,
    /// Ask for a stream; without it, the time to first token is the time to the whole answer.
    pub stream: bool,
    /// Ask for exactly as many tokens as planned, which vLLM, SGLang, TensorRT-LLM and llama.cpp understand, and
    /// OpenAI's own service refuses.
    pub ignore_eos: bool,
    /// Length of the prompts' text for each planned token; `None` asks the engine ([`compare`](crate::compare)), or
    /// takes [`isotherm_workload::CHARACTERS_PER_TOKEN`] ([`run`](crate::run)).
    pub characters_per_token: Option<f64>,
    /// How long a connection may take to open, in wall-clock time.
    pub connect_timeout: Duration,
    /// How long a request may take in all, in wall-clock time.
    pub request_timeout: Duration,
}

impl Options {
    /// The defaults: 700 requests at speed 2.
    ///
    /// With 46 users, 7 engines of Llama-3.1-70B on 8 H100 and documents of 8,000 tokens, RANDOM answers 9.2 and
    /// PREFIX_AWARE 11.6 requests a second of engine time: 47 s and 38 s of wall-clock time, 0.7 to 0.8 MB of prompts a
    /// second. 700 requests use some 127 documents; the hit rate of a random choice scatters by about 1.3 points then.
    /// Client, router and engines need about an eighth of one core. A millisecond lost on the way counts as two, which is
    /// little beside the 64 ms in which a warm prompt gets its first token.
    pub fn for_users(users: u32) -> Options {
        Options {
            warm_up: 3 * u64::from(users),
            requests: 700,
            speed: 2.0,
            stream: true,
            ignore_eos: true,
            characters_per_token: None,
            connect_timeout: Duration::from_secs(5),
            request_timeout: Duration::from_secs(120),
        }
    }
}
