//! A diagnosis as text for people.

use std::fmt;

use super::{Diagnosis, MissReason, Verdict};

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "request     {}", self.request_id)?;
        writeln!(f, "verdict     {}: {}", self.verdict.as_str(), self.why())?;
        if let (Some(prompt), Some(cached)) = (self.prompt_tokens, self.cached_tokens) {
            let share = 100.0 * cached as f64 / prompt.max(1) as f64;
            writeln!(f, "reported    {cached} of {prompt} prompt tokens cached ({share:.0} %)")?;
        }
        if let Some(placed) = &self.placed {
            let believed = placed.expected_cached_tokens.map_or_else(
                || format!("{} believes nothing", placed.strategy),
                |tokens| format!("{tokens} tokens cached there"),
            );
            writeln!(f, "believed    {believed}")?;
            let cause = placed.cause.as_ref().map(|cause| format!(", {cause}")).unwrap_or_default();
            writeln!(f, "served by   {} ({}{cause}), {} in flight", placed.instance, placed.reason, placed.in_flight)?;
            if let Some(home) = placed.home.as_ref().filter(|home| **home != placed.instance) {
                let busy = placed.home_in_flight.map(|count| format!(", {count} in flight")).unwrap_or_default();
                writeln!(f, "home        {home}{busy}")?;
            }
        }
        writeln!(f, "there       earlier requests should have left {} tokens", self.here_tokens)?;
        if let Some(best) = &self.best {
            writeln!(f, "at best     {} tokens, on {}", best.tokens, best.instance)?;
        }
        match &self.nearest {
            Some(nearest) => writeln!(
                f,
                "nearest     {}, {:.1} s before, on {}: equal for {} tokens ({} bytes); {} bytes in equal parts",
                nearest.request_id,
                nearest.seconds_before,
                nearest.instance.as_deref().unwrap_or("no instance"),
                nearest.shared_tokens,
                nearest.shared_bytes,
                nearest.equal_parts_bytes
            )?,
            None => writeln!(f, "nearest     none of the {} earlier requests of its tenant", self.compared_with)?,
        }
        if let Some(milliseconds) = self.ttft_ms {
            writeln!(f, "first token {milliseconds:.0} ms")?;
        }
        Ok(())
    }
}

impl Diagnosis {
    /// Why what was not cached was not, in a sentence.
    pub fn why(&self) -> String {
        let part = self.part.as_deref().unwrap_or("the prompt");
        match self.reason {
            MissReason::None => "all that could be cached was".into(),
            MissReason::NotReported => "the engine does not report cached tokens".into(),
            MissReason::NotAnswered => "it was not answered with success, or not yet".into(),
            MissReason::FirstSeen => match &self.part {
                Some(part) => format!(
                    "no earlier request of its tenant that is kept begins like it; from the last one it first differs in \
                     {part}"
                ),
                None => "no earlier request of its tenant that is kept begins like it".into(),
            },
            MissReason::Evicted => {
                "the instance has served its beginning before and has it no more: evicted, restarted, or prefix caching \
                 is off"
                    .into()
            }
            MissReason::SpilledToColdInstance => {
                "its home was full, and where it went instead its beginning was not cached".into()
            }
            MissReason::PlacedElsewhere => "another instance holds its beginning, and the strategy chose this one".into(),
            MissReason::StillComputing => "an earlier request with its beginning was still being computed".into(),
            MissReason::NewText => "what it shares with earlier requests was cached; the rest is new".into(),
            MissReason::ModelChanged => "the nearest earlier request is for another model".into(),
            MissReason::AdapterChanged => "the nearest earlier request is for another adapter".into(),
            MissReason::SaltChanged => "the nearest earlier request has another salt".into(),
            MissReason::TemplateChanged
            | MissReason::ToolsChanged
            | MissReason::DocumentsChanged
            | MissReason::SystemChanged
            | MissReason::MessagesChanged
            | MissReason::PromptChanged => format!("{part} differs from the nearest earlier request"),
        }
    }
}

impl Verdict {
    /// The word for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Hit => "hit",
            Verdict::Miss => "miss",
            Verdict::Unknown => "unknown",
            Verdict::Failed => "failed",
            Verdict::UnderWay => "under way",
        }
    }
}
