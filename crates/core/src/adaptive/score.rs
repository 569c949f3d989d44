//! The score of an instance for a request: the latency that sending it there adds, to itself and to the others.

use super::pace::PRIOR;

/// What a first token that comes later weighs, beside time in which tokens follow each other.
const FIRST_TOKEN: f64 = 8.0;
/// Milliseconds that a stream adds to a decode step of the prior's engine: by itself, and for each token of context.
const STEP_PER_STREAM: f64 = 0.02;
const STEP_PER_CONTEXT_TOKEN: f64 = 1.3e-5;
/// What a prefill costs beside its own wait: time that the instance has for nothing else. It keeps a burst of equal cold
/// prompts from being computed everywhere at once.
const OCCUPIED: f64 = 6.0;
/// How much prefills that are queued where streams run weigh for those streams.
const QUEUED_STALL: f64 = 0.3;

/// What a token weighs that the instance has to forget for the request: as much as the first token of whoever comes back
/// for it.
const DISPLACED: f64 = FIRST_TOKEN;

/// An instance before the request, and the request there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    /// Milliseconds per uncached token, learned.
    pub(crate) pace: f64,
    /// Uncached tokens that are left to compute there before it, by the work that they are.
    pub(crate) queued: f64,
    /// Those of them that are a beginning of this very request, and so no work beside it.
    pub(crate) shared: f64,
    /// Requests in flight there.
    pub(crate) in_flight: f64,
    /// Tokens of the request that it would have to compute, by the work that they are, where those weigh less that later
    /// requests will use.
    pub(crate) uncached: f64,
    /// Tokens that the instance has to forget for them.
    pub(crate) displaced: f64,
    /// Tokens of the request.
    pub(crate) prompt: f64,
    /// Tokens of an answer.
    pub(crate) output: f64,
}

/// The latency in milliseconds that the request adds there: its own wait and prefill, the stall that its prefill
/// inflicts on the streams that run there, the slow-down of decoding, its own and theirs, and what those will miss for whom
/// nothing is cached any more.
///
/// Where prefixes are cached decides through `uncached`; what a prefill costs is set against what later requests get from
/// it: so a hot prefix spreads to as many instances as its load needs, and a document that is asked a few
/// questions stays where it is. The form and its weights come from simulations of long
/// prompts, chats and hot prefixes; the terms for queued and own prefill are those of Mooncake's and Dynamo's rules, the
/// product of own prefill and streams that of LMetric's (arXiv 2603.15202).
pub(crate) fn marginal_latency(load: &Load) -> f64 {
    let Load { pace, queued, shared, in_flight, uncached, displaced, prompt, output } = *load;
    let per_stream = pace / PRIOR * (STEP_PER_STREAM + STEP_PER_CONTEXT_TOKEN * prompt);
    let own = FIRST_TOKEN * pace * (queued + uncached);
    let others = (queued - shared).max(0.0);
    let stall = pace * uncached * (OCCUPIED + in_flight) + QUEUED_STALL * pace * others * in_flight;
    let decode = 2.0 * per_stream * output * in_flight;
    own + stall + decode + DISPLACED * pace * displaced
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(queued: f64, in_flight: f64, uncached: f64) -> f64 {
        marginal_latency(&busy(queued, in_flight, uncached))
    }

    fn busy(queued: f64, in_flight: f64, uncached: f64) -> Load {
        Load { pace: PRIOR, queued, shared: 0.0, in_flight, uncached, displaced: 0.0, prompt: 8_000.0, output: 150.0 }
    }

    #[test]
    fn a_warm_instance_wins_until_it_is_much_busier() {
        assert!(load(0.0, 4.0, 100.0) < load(0.0, 2.0, 8_000.0));
        assert!(load(0.0, 140.0, 100.0) > load(0.0, 0.0, 8_000.0));
    }

    #[test]
    fn a_prefix_that_many_will_use_spreads_sooner() {
        let hot = Load { uncached: 800.0, ..busy(0.0, 0.0, 8_000.0) };
        assert!(load(0.0, 60.0, 100.0) < load(0.0, 0.0, 8_000.0));
        assert!(load(0.0, 60.0, 100.0) > marginal_latency(&hot));
    }

    #[test]
    fn more_of_anything_is_worse() {
        let base = load(1_000.0, 3.0, 500.0);
        assert!(load(2_000.0, 3.0, 500.0) > base);
        assert!(load(1_000.0, 4.0, 500.0) > base);
        assert!(load(1_000.0, 3.0, 600.0) > base);
    }

    #[test]
    fn the_choice_does_not_depend_on_the_unit_of_pace() {
        let scaled = |pace, queued, in_flight, uncached| {
            let (prompt, output) = (4_000.0, 100.0);
            let load = Load { pace, queued, shared: 0.0, in_flight, uncached, displaced: 0.0, prompt, output };
            marginal_latency(&load)
        };
        let ratio = scaled(PRIOR, 500.0, 2.0, 900.0) / scaled(PRIOR, 100.0, 6.0, 50.0);
        let slower = scaled(30.0 * PRIOR, 500.0, 2.0, 900.0) / scaled(30.0 * PRIOR, 100.0, 6.0, 50.0);
        assert!((ratio - slower).abs() < 1e-9);
    }

    #[test]
    fn each_stream_that_runs_there_adds_as_much_as_the_one_before_and_more_where_contexts_are_long() {
        let with = |in_flight| load(0.0, in_flight, 1_000.0);
        let each = with(1.0) - with(0.0);
        assert!(each > 0.0 && (with(8.0) - with(0.0) - 8.0 * each).abs() < 1e-9 * with(8.0));
        let in_context =
            |prompt: f64, in_flight: f64| marginal_latency(&Load { prompt, ..busy(0.0, in_flight, 1_000.0) });
        assert!(in_context(32_000.0, 8.0) > 1.1 * in_context(1_000.0, 8.0));
        assert_eq!(in_context(32_000.0, 0.0), in_context(1_000.0, 0.0), "nobody else decodes there");
    }

    #[test]
    fn a_prefill_costs_more_than_its_own_wait_and_more_where_others_are_queued_for_the_streams_that_run() {
        let own = FIRST_TOKEN * PRIOR * 1_000.0;
        assert!(load(0.0, 0.0, 1_000.0) > own, "nothing else is computed meanwhile");
        let waits = |in_flight| load(5_000.0, in_flight, 1_000.0) - load(0.0, in_flight, 1_000.0);
        assert!((waits(0.0) - FIRST_TOKEN * PRIOR * 5_000.0).abs() < 1e-6, "only for itself where no stream runs");
        assert!((waits(4.0) - waits(0.0) - QUEUED_STALL * PRIOR * 5_000.0 * 4.0).abs() < 1e-6);
    }

    #[test]
    fn what_has_to_be_forgotten_costs_by_its_tokens_and_the_pace() {
        let pace = 3.0 * PRIOR;
        let with = |displaced| marginal_latency(&Load { pace, displaced, ..busy(500.0, 2.0, 900.0) });
        assert!((with(700.0) - with(0.0) - DISPLACED * pace * 700.0).abs() < 1e-6);
    }
}
