//! How much work a token is: one behind a long context takes longer than the first of a prompt.

/// A token that is computed behind so many others takes twice as long as one with none before it: attention grows with what
/// comes before, all else does not. 85 thousand for Llama-3.1-70B on eight H100, 63 on four, 27 for 8B on one.
const CONTEXT_DOUBLES: f64 = 85_000.0;

/// What one of the last `uncached` tokens of a prompt of `tokens` takes on average, where one with none before it takes 1.
pub(super) fn work_per_token(tokens: f64, uncached: f64) -> f64 {
    1.0 + (tokens - uncached / 2.0).max(0.0) / CONTEXT_DOUBLES
}

#[cfg(test)]
mod tests {
    use super::super::pace::PRIOR;
    use super::super::*;
    use super::CONTEXT_DOUBLES;

    fn prompt(name: u64, tokens: f64) -> Prompt {
        let blocks = (tokens / TOKENS_PER_BYTE / f64::from(BLOCK_BYTES)).round() as u32;
        let hashes: Vec<BlockHash> = (0..blocks).map(|block| BlockHash(name << 32 | u64::from(block))).collect();
        let ends: Vec<u32> = (1..=blocks).map(|block| block * BLOCK_BYTES).collect();
        Prompt { blocks: hashes.into(), ends: ends.into(), tenant: 0 }
    }

    fn at(milliseconds: f64) -> Time {
        Time::from_nanoseconds((milliseconds * 1e6) as u64)
    }

    fn send(adaptive: &mut Adaptive, instance: &mut Beliefs, prompt: &Prompt, milliseconds: f64) -> Work {
        adaptive.look_up(prompt);
        adaptive.send(prompt, instance, at(milliseconds))
    }

    #[test]
    fn tokens_behind_a_long_context_are_more_work() {
        let mut adaptive = Adaptive::new();
        let mut instance = adaptive.join();
        let mut work_of = |prompt: &Prompt, milliseconds| {
            let mut work = send(&mut adaptive, &mut instance, prompt, milliseconds);
            let waits = instance.waiting.tokens();
            adaptive.begin(&mut work, &mut instance, at(milliseconds + 1.0));
            waits
        };
        let (tenth, whole) = (CONTEXT_DOUBLES / 10.0, CONTEXT_DOUBLES);
        assert!((work_of(&prompt(1, tenth), 0.0) / (tenth * 1.05) - 1.0).abs() < 0.01);
        assert!((work_of(&prompt(2, whole), 10.0) / (whole * 1.5) - 1.0).abs() < 0.01);
        let next_turn = work_of(&prompt(2, whole + tenth), 20.0);
        assert!((next_turn / (tenth * 2.05) - 1.0).abs() < 0.02, "{next_turn}");
    }

    #[test]
    fn what_waited_behind_a_long_prompt_does_not_make_it_look_fast() {
        let mut adaptive = Adaptive::new();
        let mut instance = adaptive.join();
        let pace = 2.0 * PRIOR;
        let mut now = 0.0;
        for round in 0..60 {
            for (part, tokens, come_later) in [(0, 4_000.0, 0), (1, 40_000.0, 15)] {
                let asked = prompt(round << 8 | part << 7, tokens);
                let mut work = send(&mut adaptive, &mut instance, &asked, now);
                let later: Vec<Work> = (1..=come_later)
                    .map(|i| send(&mut adaptive, &mut instance, &prompt(round << 8 | i, 4_000.0), now + i as f64))
                    .collect();
                now += 30.0 + pace * tokens * super::work_per_token(tokens, tokens);
                adaptive.begin(&mut work, &mut instance, at(now));
                // They give up, so nothing but the long one tells the pace.
                later.iter().for_each(|work| adaptive.end(work, &mut instance));
            }
        }
        let learned = adaptive.pace.milliseconds_per_token();
        assert!((learned / pace - 1.0).abs() < 0.2, "{learned} instead of {pace}");
    }
}
