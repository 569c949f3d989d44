//! What became of requests, summed up as CloudWatch's metrics need it; not exported to scrapers, but read by difference.

mod latencies;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::labels::Outcome;

use self::latencies::Latencies;
pub use self::latencies::LatencyFigures;

/// What became of one request.
#[derive(Debug, Clone, Copy)]
pub struct Invocation {
    /// The status of the answer: the container's, where it answered.
    pub status: u16,
    /// How the request ended.
    pub outcome: Outcome,
    /// Whether it was sent elsewhere because its home was full.
    pub spilled: bool,
    /// From its arrival to the choice of the instance that answered it; `None` where none was chosen.
    pub overhead: Option<Duration>,
    /// From that choice to the end of the answer.
    pub model: Option<Duration>,
    /// From its arrival to the first generated token, where that was seen.
    pub first_token: Option<Duration>,
    /// Tokens of its prompt, and how many of these were cached, where the engine said both.
    pub cached_of_prompt: Option<(u64, u64)>,
}

/// Counts of what became of requests, from the beginning on.
#[derive(Debug, Default)]
pub struct Invocations {
    requests: AtomicU64,
    client_errors: AtomicU64,
    server_errors: AtomicU64,
    model_errors: AtomicU64,
    mid_stream_errors: AtomicU64,
    without_capacity: AtomicU64,
    spills: AtomicU64,
    prompt_tokens: AtomicU64,
    cached_tokens: AtomicU64,
    overhead: Latencies,
    model: Latencies,
    first_token: Latencies,
    first_token_of_model: Latencies,
    overhead_of_streams: Latencies,
}

macro_rules! figures {
    ($($(#[$about:meta])* $name:ident,)*; $($(#[$about_latency:meta])* $latency:ident,)*) => {
        /// The counts at one moment, or what was added to them between two.
        #[derive(Debug, Clone, PartialEq, Default)]
        pub struct InvocationFigures {
            $($(#[$about])* pub $name: u64,)*
            $($(#[$about_latency])* pub $latency: LatencyFigures,)*
        }

        impl Invocations {
            /// The counts now. Not one moment for all of them: a request that ends meanwhile may be in some.
            pub fn figures(&self) -> InvocationFigures {
                InvocationFigures {
                    $($name: self.$name.load(Ordering::Relaxed),)*
                    $($latency: self.$latency.figures(),)*
                }
            }
        }

        impl InvocationFigures {
            /// Adds counts of the same span.
            pub fn add(&mut self, other: &InvocationFigures) {
                $(self.$name += other.$name;)*
                $(self.$latency.add(&other.$latency);)*
            }

            /// What was added since `before`. Counts that began anew meanwhile count from their new beginning.
            pub fn since(&self, before: &InvocationFigures) -> InvocationFigures {
                if self.requests < before.requests {
                    return self.clone();
                }
                InvocationFigures {
                    $($name: self.$name.saturating_sub(before.$name),)*
                    $($latency: self.$latency.since(&before.$latency),)*
                }
            }
        }
    };
}

figures! {
    /// Requests.
    requests,
    /// Those answered with 4xx.
    client_errors,
    /// Those answered with 5xx.
    server_errors,
    /// Those that reached an instance and were not answered with success.
    model_errors,
    /// Those whose answer broke off.
    mid_stream_errors,
    /// Those for which there was no instance.
    without_capacity,
    /// Those sent elsewhere because their home was full.
    spills,
    /// Prompt tokens of those whose engine said how many were cached.
    prompt_tokens,
    /// Prompt tokens that were cached.
    cached_tokens,
    ;
    /// From arrival to the choice of an instance.
    overhead,
    /// From that choice to the end of the answer.
    model,
    /// From arrival to the first generated token.
    first_token,
    /// From the choice of an instance to the first generated token.
    first_token_of_model,
    /// From arrival to the choice of an instance, of those whose first generated token was seen.
    overhead_of_streams,
}

impl Invocations {
    /// How many requests have ended.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Counts a request that has ended.
    pub fn count(&self, invocation: &Invocation) {
        let Invocation { status, outcome, overhead, model, first_token, .. } = *invocation;
        let one_if = |counter: &AtomicU64, holds: bool| {
            if holds {
                counter.fetch_add(1, Ordering::Relaxed);
            }
        };
        let failed_within = matches!(outcome, Outcome::Truncated);
        let is_models_fault = failed_within || !(200..300).contains(&status);
        let no_capacity = matches!(outcome, Outcome::Unavailable | Outcome::QueueFull | Outcome::QueueTimeout);
        one_if(&self.requests, true);
        one_if(&self.client_errors, (400..500).contains(&status));
        one_if(&self.server_errors, status >= 500);
        one_if(&self.model_errors, overhead.is_some() && is_models_fault && outcome != Outcome::ClientLeft);
        one_if(&self.mid_stream_errors, failed_within);
        one_if(&self.without_capacity, no_capacity);
        one_if(&self.spills, invocation.spilled);
        if let Some((prompt, cached)) = invocation.cached_of_prompt {
            self.prompt_tokens.fetch_add(prompt, Ordering::Relaxed);
            self.cached_tokens.fetch_add(cached, Ordering::Relaxed);
        }
        let of_model = first_token.zip(overhead).map(|(first, overhead)| first.saturating_sub(overhead));
        for (latencies, latency) in [
            (&self.overhead, overhead),
            (&self.model, model),
            (&self.first_token, first_token),
            (&self.first_token_of_model, of_model),
            (&self.overhead_of_streams, overhead.filter(|_| first_token.is_some())),
        ] {
            if let Some(latency) = latency {
                latencies.observe(latency);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered() -> Invocation {
        Invocation {
            status: 200,
            outcome: Outcome::Ok,
            spilled: false,
            overhead: Some(Duration::from_micros(100)),
            model: Some(Duration::from_millis(50)),
            first_token: Some(Duration::from_millis(20)),
            cached_of_prompt: Some((100, 80)),
        }
    }

    #[test]
    fn every_end_counts_as_what_it_is() {
        let invocations = Invocations::default();
        let unplaced =
            Invocation { overhead: None, model: None, first_token: None, cached_of_prompt: None, ..answered() };
        for invocation in [
            answered(),
            Invocation { spilled: true, ..answered() },
            Invocation { status: 400, ..answered() },
            Invocation { status: 500, ..answered() },
            Invocation { outcome: Outcome::Truncated, ..answered() },
            Invocation { status: 499, outcome: Outcome::ClientLeft, ..answered() },
            Invocation { status: 503, outcome: Outcome::Unavailable, ..unplaced },
        ] {
            invocations.count(&invocation);
        }
        let found = invocations.figures();
        let latencies = [&found.overhead, &found.model, &found.first_token, &found.overhead_of_streams];
        assert_eq!(latencies.map(LatencyFigures::count), [6; 4]);
        assert_eq!((found.requests, found.client_errors, found.server_errors), (7, 2, 2));
        assert_eq!((found.model_errors, found.mid_stream_errors, found.without_capacity), (3, 1, 1));
        assert_eq!((found.spills, found.prompt_tokens, found.cached_tokens), (1, 600, 480));
    }

    #[test]
    fn differences_survive_a_new_beginning() {
        let first = Invocations::default();
        first.count(&answered());
        let before = first.figures();
        first.count(&answered());
        first.count(&Invocation { model: Some(Duration::from_secs(3)), ..answered() });
        let added = first.figures().since(&before);
        assert_eq!((added.requests, added.model.count()), (2, 2));
        let mut twice = added.clone();
        twice.add(&added);
        assert_eq!((twice.requests, twice.model.count(), twice.first_token.count()), (4, 4, 4));
        let buckets: Vec<u32> = added.model.buckets().map(|(_, count)| count).collect();
        assert_eq!(buckets, [1, 1]);
        let anew = Invocations::default();
        anew.count(&answered());
        assert_eq!(anew.figures().since(&first.figures()).requests, 1);
    }
}
