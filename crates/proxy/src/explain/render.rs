//! An explanation as people read it.

use std::fmt;

use isotherm_core::{SpillRule, StrategyName};

use super::{Explanation, Place, Prefix, Score, Unit};

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let assumed = if self.path_assumed { "  (assumed from the body)" } else { "" };
        writeln!(f, "path       {}{assumed}", self.path)?;
        let others = match self.other_variants {
            0 => String::new(),
            others => format!("  ({others} more get traffic, each with keys of its own)"),
        };
        writeln!(f, "variant    {}/{}{others}", self.endpoint, self.variant)?;
        writeln!(f, "strategy   {}", self.strategy)?;
        if let Some(model) = &self.model {
            writeln!(f, "model      {model}")?;
        }
        if let Some(id) = &self.tenant_id {
            writeln!(f, "tenant id  {id}")?;
        }
        if let Some(prefix) = &self.prefix {
            write!(f, "text       {prefix}")?;
        }
        match (&self.key, &self.prefix, self.prompt_bytes) {
            (Some(key), ..) => writeln!(f, "key        {key}")?,
            (None, Some(_), _) => writeln!(f, "key        none: without text, the least busy instance is chosen")?,
            (None, None, Some(bytes)) => writeln!(f, "prompt     {bytes} bytes as the engine sees it")?,
            (None, None, None) if self.strategy == StrategyName::Adaptive => {
                writeln!(f, "prompt     none: without text, the least busy instance is chosen")?;
            }
            (None, None, None) => writeln!(f, "key        none: this strategy does not look at prefixes")?,
        }
        if self.rollout < 100 {
            writeln!(f, "rollout    {} % of the keys go by the strategy, the others at random", self.rollout)?;
        }
        if let Some(pinned) = &self.pinned {
            writeln!(f, "pinned     to {pinned}, which stores the response that this one continues")?;
        }
        if let (Some(home), Some(_)) = (self.home(), &self.key) {
            writeln!(f, "home       {}", home.instance)?;
            self.write_spill(f, home)?;
        }
        self.write_choice(f)?;
        self.write_order(f)
    }
}

impl Explanation {
    /// The instance that the key prefers among the eligible ones; the first eligible one without a key.
    pub fn home(&self) -> Option<&Place> {
        self.order.iter().find(|place| place.eligible)
    }

    fn write_spill(&self, f: &mut fmt::Formatter<'_>, home: &Place) -> fmt::Result {
        let next = self.order.iter().filter(|place| place.eligible).nth(1);
        let (Some(next), Some(threshold)) = (next, self.concurrency_threshold) else {
            return writeln!(f, "spill      never: no other instance is eligible");
        };
        let limit = home.max_in_flight.map_or(threshold, |max| max.min(threshold));
        let what = if limit < threshold { "max_in_flight" } else { "concurrency_threshold" };
        let state = if home.in_flight >= limit { "it does now" } else { "it does not now" };
        let target = match self.spill {
            Some(SpillRule::LeastOutstanding) => "the instance with the fewest requests",
            Some(SpillRule::Next) | None => &next.instance,
        };
        let in_flight = home.in_flight;
        writeln!(
            f,
            "spill      to {target} while the home has {limit} ({what}) or more in flight; {state}: {in_flight} in flight",
        )
    }

    /// What `ADAPTIVE` would choose.
    fn write_choice(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let chosen = self.order.iter().find_map(|place| Some((place, place.score.filter(|score| score.chosen)?)));
        let Some((place, score)) = chosen else { return Ok(()) };
        let least = self.order.iter().filter(|place| place.eligible).filter_map(|place| place.score);
        let is_least = least.into_iter().all(|other| other.added_ms >= score.added_ms);
        let why = match (self.order.iter().filter(|place| place.eligible).count(), is_least) {
            _ if self.pinned.as_ref() == Some(&place.instance) => "the request is pinned to it",
            (1, _) => "no other instance is eligible",
            (_, true) => "there the request adds the least latency",
            (_, false) => "the first in the prompt's own order among those that are about as good as the best",
        };
        writeln!(f, "choice     {}: {why}", place.instance)
    }

    fn write_order(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heading = match (&self.key, self.prompt_bytes) {
            (Some(_), _) => "order",
            (None, Some(_)) => "scores",
            (None, None) => "instances",
        };
        let width = self.order.iter().map(|place| place.instance.chars().count()).max().unwrap_or(0);
        for (index, place) in self.order.iter().enumerate() {
            let heading = if index == 0 { heading } else { "" };
            let Place { instance, url, in_flight, availability, eligible, .. } = place;
            let passed_over = match (eligible, availability.as_str()) {
                (true, _) => "",
                (false, "up") => "  passed over: does not serve the model",
                (false, _) => "  passed over",
            };
            writeln!(
                f,
                "{heading:<10} {instance:width$}  {availability:<8}  {in_flight} in flight  {url}{passed_over}"
            )?;
            if let Some(score) = place.score {
                writeln!(f, "{:<10} {:width$}  {score}", "", "")?;
            }
        }
        if self.order.is_empty() {
            writeln!(f, "{heading:<10} none")?;
        }
        Ok(())
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Score { held_bytes, uncached_tokens, waiting_tokens, added_ms, .. } = self;
        write!(
            f,
            "holds {held_bytes} bytes of the prompt, would compute {uncached_tokens} tokens after {waiting_tokens} that \
             wait: adds {added_ms:.1} ms"
        )
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Prefix { unit, text_length, prefix_length, breakpoint, covers_everything } = self;
        let (unit, whole) = match unit {
            Unit::Characters => ("characters", "text"),
            Unit::Bytes => ("bytes of the body", "body"),
            Unit::CanonicalBytes => ("bytes of the body's canonical form", "body"),
        };
        match breakpoint {
            Some(breakpoint) => writeln!(
                f,
                "{text_length} {unit}; the prefix ends at the client's breakpoint, behind {breakpoint}, which decide its home"
            )?,
            None => writeln!(f, "{text_length} {unit}; the first {prefix_length} decide its home")?,
        }
        if *covers_everything && *text_length > 0 {
            writeln!(
                f,
                "           The {whole} is not longer than the prefix, so all of it, the question included, is part of\n           \
                 the key: other questions about the same text have other homes. Set prefix_length below the length of\n           \
                 what they share.",
            )?;
        }
        Ok(())
    }
}
