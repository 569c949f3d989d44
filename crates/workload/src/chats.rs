//! Conversations of many turns with the lengths of real ones: every prompt repeats what was said before.

use std::sync::Arc;
use std::time::Duration;

use rand::RngExt;

use crate::chat_lengths::{ChatLengths, Turn};
use crate::dialogue::{Dialogue, Length};
use crate::generator::{Session, Sessions};
use crate::invalid::check_count;
use crate::pacing::think;
use crate::seed::{Purpose, stream};
use crate::text::CHARACTERS_PER_TOKEN;
use crate::{InvalidWorkload, SessionId, TenantId, TraceError};

/// What a chat template adds to a question and its answer, in tokens: the marks of the two roles.
const TEMPLATE_TOKENS: u32 = 8;

/// Engines generate at least a word and the end.
const SHORTEST_ANSWER: u32 = 2;

/// Conversations that users choose at random and replay turn by turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Chats {
    /// Closed-loop users, at least 1.
    pub users: u32,
    /// Mean time between an answer and the next question.
    pub think: Duration,
    /// The conversations to choose from.
    pub lengths: Arc<ChatLengths>,
    /// Only conversations of so many turns are chosen, at least 1.
    pub least_turns: u32,
    /// The longest answer, in tokens, at least 2; longer ones are cut.
    pub longest_answer: u32,
    /// Prompt and answer together, in tokens. A conversation ends before the turn that would be longer.
    pub longest_context: u32,
}

impl Chats {
    /// The default for a fleet of this size: 8 users for each instance, ShareGPT conversations of two turns or more,
    /// answers up to 800 tokens and a context of 8,192.
    ///
    /// # Errors
    /// Never, as long as what was shipped is whole.
    pub fn for_instances(instances: u32) -> Result<Chats, TraceError> {
        Ok(Chats {
            users: instances.saturating_mul(8),
            think: Duration::from_secs(1),
            lengths: Arc::new(ChatLengths::share_gpt()?),
            least_turns: 2,
            longest_answer: 800,
            longest_context: 8_192,
        })
    }

    /// Whether a conversation may be chosen: it is long enough, and its first turn fits.
    fn admits(&self, conversation: usize) -> bool {
        let turns = self.lengths.turns(conversation);
        let fits = |turn: &Turn| self.question(turn).tokens + self.answer(turn).tokens <= self.longest_context;
        turns.len() as u64 >= u64::from(self.least_turns) && turns.first().is_some_and(fits)
    }

    fn question(&self, turn: &Turn) -> Length {
        Length { tokens: tokens(turn.question).saturating_add(TEMPLATE_TOKENS), characters: turn.question.max(1) }
    }

    fn answer(&self, turn: &Turn) -> Length {
        let tokens = tokens(turn.answer).clamp(SHORTEST_ANSWER, self.longest_answer);
        let longest = Length::of_tokens(tokens.saturating_add(1)).characters;
        Length { tokens, characters: turn.answer.clamp(1, longest) }
    }

    /// The turns of a conversation that fit into the context.
    fn replay(
        &self,
        conversation: usize,
        number: u64,
        mut pause: impl FnMut() -> Duration + Send + 'static,
    ) -> Session {
        let mut dialogue = Dialogue::new(SessionId(number), TenantId::default(), None);
        let (workload, mut place) = (self.clone(), 0);
        Box::new(std::iter::from_fn(move || {
            let turn = workload.lengths.turns(conversation).get(place)?;
            place += 1;
            let (question, answer) = (workload.question(turn), workload.answer(turn));
            let context = dialogue.tokens() + u64::from(question.tokens) + u64::from(answer.tokens);
            (context <= u64::from(workload.longest_context)).then(|| dialogue.turn(&mut pause, question, answer))
        }))
    }
}

/// The whole tokens in so many characters.
fn tokens(characters: u32) -> u32 {
    (f64::from(characters) / CHARACTERS_PER_TOKEN) as u32
}

impl Sessions for Chats {
    fn name(&self) -> &'static str {
        "chats"
    }

    fn check(&self) -> Result<(), InvalidWorkload> {
        check_count("the number of users", self.users)?;
        check_count("the least number of turns", self.least_turns)?;
        if self.longest_answer < SHORTEST_ANSWER {
            return Err(InvalidWorkload::ShortAnswer { longest: self.longest_answer, shortest: SHORTEST_ANSWER });
        }
        if (0..self.lengths.conversations()).any(|conversation| self.admits(conversation)) {
            return Ok(());
        }
        let (turns, context) = (self.least_turns, self.longest_context);
        Err(InvalidWorkload::NoSession { why: format!("has {turns} turns or more and fits into {context} tokens") })
    }

    fn users(&self) -> u32 {
        self.users
    }

    fn think(&self) -> Duration {
        self.think
    }

    fn session(&self, seed: u64, number: u64) -> Session {
        let mut rng = stream(seed, Purpose::Session, number);
        let conversation = loop {
            let conversation = rng.random_range(0..self.lengths.conversations());
            if self.admits(conversation) {
                break conversation;
            }
        };
        let mean = self.think;
        self.replay(conversation, number, move || think(&mut rng, mean))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::{DefaultHasher, Hash, Hasher};
    use std::time::Duration;

    use super::Chats;
    use crate::{Counter, Plan, PlannedRequest, Prediction};

    fn chats() -> Chats {
        Chats::for_instances(7).unwrap()
    }

    /// Every conversation of so many turns once, one after the other.
    fn all(least_turns: usize) -> impl Iterator<Item = PlannedRequest> {
        let chats = chats();
        (0..chats.lengths.conversations())
            .filter(move |conversation| chats.lengths.turns(*conversation).len() >= least_turns)
            .flat_map({
                let chats = self::chats();
                move |conversation| chats.replay(conversation, conversation as u64, || Duration::ZERO)
            })
    }

    fn predicted(least_turns: usize) -> Prediction {
        let mut counter = Counter::new(7);
        all(least_turns).for_each(|request| counter.count(&request, true));
        counter.prediction().unwrap()
    }

    /// The reference figures count whole blocks of 16 tokens, up to a point less than tokens alone.
    #[test]
    fn token_hit_rates_agree_with_the_reference() {
        for (least_turns, affinity, random) in [(1, 0.868, 0.255), (2, 0.902, 0.269), (5, 0.937, 0.316)] {
            let found = predicted(least_turns);
            assert!((found.affinity.of_tokens - affinity).abs() < 0.01, "{least_turns}: {found:?}");
            assert!((found.random.of_tokens - random).abs() < 0.01, "{least_turns}: {found:?}");
        }
    }

    /// A router that keys on the first characters loses the first turns of most chats, which are shorter.
    #[test]
    fn a_key_of_fixed_length_finds_less_the_longer_it_is() {
        for (characters, expected) in [(256, 0.806), (512, 0.791), (1_024, 0.767), (2_048, 0.691), (4_096, 0.502)] {
            let (mut cached, mut hit, mut tokens) = (HashSet::new(), 0, 0);
            for request in all(1) {
                let beginning = request.beginning(characters);
                let mut key = DefaultHasher::new();
                beginning.whole.iter().for_each(|piece| piece.id.hash(&mut key));
                beginning.cut.hash(&mut key);
                let instance = key.finish() % 7;
                let found = request.prompt.iter().filter(|piece| cached.contains(&(instance, piece.id)));
                hit += found.map(|piece| u64::from(piece.tokens)).sum::<u64>();
                tokens += request.prompt_tokens();
                cached.extend(request.prompt.iter().map(|piece| (instance, piece.id)));
                cached.insert((instance, request.output));
            }
            let found = hit as f64 / tokens as f64;
            assert!((found - expected).abs() < 0.015, "{characters}: {found}");
        }
    }

    #[test]
    fn most_first_turns_are_shorter_than_1024_characters() {
        let firsts: Vec<_> = all(1).filter(|request| request.prompt.len() == 1).collect();
        let short = firsts.iter().filter(|request| request.prompt[0].characters < 1_024).count();
        assert!((short as f64 / firsts.len() as f64 - 0.86).abs() < 0.01);
    }

    #[test]
    fn users_replay_conversations_of_the_stated_length_within_the_context() {
        let plan = Plan::new(Chats { least_turns: 5, ..chats() }, 1).unwrap();
        assert_eq!(plan.users(), 56);
        for request in plan.in_turn(5_000) {
            assert!(request.prompt_tokens() + u64::from(request.output_tokens) <= 8_192);
            assert!((2..=800).contains(&request.output_tokens));
            assert!(request.prompt.iter().all(|piece| piece.tokens > 0 && piece.characters > 0));
        }
        assert_eq!(plan.in_turn(500), plan.in_turn(500));
    }

    #[test]
    fn what_no_conversation_can_be_is_refused() {
        let refuse = |chats| Plan::new(chats, 1).unwrap_err().to_string();
        assert_eq!(
            refuse(Chats { least_turns: 5_000, ..chats() }),
            "none of the recorded sessions has 5000 turns or more and fits into 8192 tokens"
        );
        assert_eq!(
            refuse(Chats { longest_answer: 1, ..chats() }),
            "the longest answer is 1 tokens; engines generate at least 2"
        );
    }
}
