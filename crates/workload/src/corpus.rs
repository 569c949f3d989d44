//! A fixed set of documents that everybody asks about, some of them far more often than others.

use std::ops::RangeInclusive;
use std::time::Duration;

use rand::RngExt;

use crate::generator::{Session, Sessions, single};
use crate::invalid::{check_count, check_exponent, check_range};
use crate::pacing::users_for;
use crate::pieces::{PieceMaker, shared};
use crate::popularity::rank;
use crate::seed::{Purpose, stream};
use crate::{InvalidWorkload, Piece, PlannedRequest, SessionId, TenantId};

/// Questions about the documents of a corpus, each about another one.
#[derive(Clone, Debug, PartialEq)]
pub struct Corpus {
    /// Closed-loop users, at least 1.
    pub users: u32,
    /// Mean think time between an answer and the next question.
    pub think: Duration,
    /// How many documents there are, at least 1.
    pub documents: u32,
    /// Exponent of the popularity (Zipf's law): the k-th document is asked about k^-exponent as often as the first.
    /// 0 makes all equally popular; not below.
    pub popularity: f64,
    /// Tokens of a document, at least 1; each document has its own length.
    pub document_tokens: RangeInclusive<u32>,
    /// Tokens of a question, at least 1.
    pub question_tokens: RangeInclusive<u32>,
    /// Tokens of an answer, at least 1.
    pub output_tokens: RangeInclusive<u32>,
}

impl Corpus {
    /// The default for a fleet of this size: 100 documents of 8,000 tokens for each instance, which is half of what
    /// the cache of an 8×H100 engine holds, asked about with the popularity of web pages.
    pub fn for_instances(instances: u32) -> Corpus {
        Corpus {
            users: users_for(instances),
            think: Duration::from_secs(2),
            documents: instances.saturating_mul(100),
            popularity: 0.8,
            document_tokens: 8_000..=8_000,
            question_tokens: 60..=200,
            output_tokens: 100..=160,
        }
    }

    /// The document of a rank: always the same for a seed.
    fn document(&self, seed: u64, rank: u32) -> Piece {
        let mut rng = stream(seed, Purpose::Document, u64::from(rank));
        Piece::new(shared(u64::from(rank)), rng.random_range(self.document_tokens.clone()))
    }
}

impl Sessions for Corpus {
    fn name(&self) -> &'static str {
        "corpus"
    }

    fn check(&self) -> Result<(), InvalidWorkload> {
        check_count("the number of users", self.users)?;
        check_count("the number of documents", self.documents)?;
        check_exponent("the exponent of the popularity", self.popularity)?;
        check_range("the length of a document", &self.document_tokens)?;
        check_range("the length of a question", &self.question_tokens)?;
        check_range("the length of an answer", &self.output_tokens)
    }

    fn users(&self) -> u32 {
        self.users
    }

    fn think(&self) -> Duration {
        self.think
    }

    fn session(&self, seed: u64, number: u64) -> Session {
        let mut rng = stream(seed, Purpose::Session, number);
        let rank = rank(&mut rng, self.documents, self.popularity);
        let session = SessionId(number);
        let mut pieces = PieceMaker::for_session(session);
        let question = pieces.piece(rng.random_range(self.question_tokens.clone()));
        single(PlannedRequest {
            session,
            tenant: TenantId::default(),
            think: Duration::ZERO,
            prompt: vec![self.document(seed, rank), question],
            output: pieces.id(),
            output_tokens: rng.random_range(self.output_tokens.clone()),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::{Corpus, Piece, PieceId, Plan};

    fn uses(corpus: Corpus, count: usize) -> BTreeMap<PieceId, (u32, usize)> {
        let mut uses = BTreeMap::new();
        for request in Plan::new(corpus, 1).unwrap().in_turn(count) {
            let Piece { id, tokens, .. } = request.prompt[0];
            let (length, times) = uses.entry(id).or_insert((tokens, 0));
            assert_eq!(*length, tokens, "a document never changes");
            *times += 1;
        }
        uses
    }

    #[test]
    fn popularity_follows_zipfs_law() {
        let corpus = Corpus { documents: 50, popularity: 1.0, ..Corpus::for_instances(7) };
        let uses: Vec<usize> = uses(corpus, 40_000).values().map(|(_, times)| *times).collect();
        let harmonic: f64 = (1..=50).map(|rank| 1.0 / f64::from(rank)).sum();
        for rank in [1, 2, 5, 20] {
            let expected = 40_000.0 / f64::from(rank) / harmonic;
            let found = uses[rank as usize - 1] as f64;
            assert!((found - expected).abs() < 4.0 * expected.sqrt(), "rank {rank}: {found}, expected {expected}");
        }
    }

    #[test]
    fn exponent_zero_makes_all_equal_and_lengths_vary_between_documents() {
        let corpus =
            Corpus { documents: 20, popularity: 0.0, document_tokens: 1_000..=9_000, ..Corpus::for_instances(7) };
        let uses = uses(corpus, 20_000);
        assert!(uses.values().all(|(_, times)| (880..=1_120).contains(times)), "{uses:?}");
        let (shortest, longest) = (uses.values().min().unwrap().0, uses.values().max().unwrap().0);
        assert!(shortest < 3_000 && longest > 7_000);
    }

    #[test]
    fn impossible_popularity_is_refused() {
        let refuse = |popularity| {
            let corpus = Corpus { popularity, ..Corpus::for_instances(7) };
            Plan::new(corpus, 1).unwrap_err().to_string()
        };
        assert_eq!(refuse(-0.5), "the exponent of the popularity is -0.5; it must be a number from 0 up");
        assert_eq!(refuse(f64::NAN), "the exponent of the popularity is NaN; it must be a number from 0 up");
    }
}
