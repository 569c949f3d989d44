//! What is counted of shadow strategies: what each would have had from the instances' caches.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;

use crate::labels::Labels;
use crate::metrics::registered;
use crate::names;
use crate::series::Family;

/// Series by variant and strategy; there are as many as strategies that were ever compared.
#[derive(Debug)]
pub struct ShadowMetrics {
    prompt_tokens: Family<Counter>,
    cached_tokens: Family<Counter>,
}

impl ShadowMetrics {
    pub(crate) fn registered(registry: &mut Registry) -> ShadowMetrics {
        ShadowMetrics {
            prompt_tokens: registered(registry, names::SHADOW_PROMPT_TOKENS, Family::new(Counter::default)),
            cached_tokens: registered(registry, names::SHADOW_CACHED_TOKENS, Family::new(Counter::default)),
        }
    }

    /// So many more tokens of prompts, and so many of them cached, under a strategy.
    pub fn count(&self, endpoint: &str, variant: &str, strategy: &str, prompt: u64, cached: u64) {
        let labels = Labels::default().with("endpoint", endpoint).with("variant", variant).with("strategy", strategy);
        self.prompt_tokens.series(labels.clone()).inc_by(prompt);
        self.cached_tokens.series(labels).inc_by(cached);
    }

    /// Takes out what was counted of a variant that is gone.
    pub fn forget(&self, endpoint: &str, variant: &str) {
        let scope = Labels::default().with("endpoint", endpoint).with("variant", variant);
        self.prompt_tokens.remove_within(&scope);
        self.cached_tokens.remove_within(&scope);
    }
}
