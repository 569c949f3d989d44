//! Long shared beginnings: every user opens a document, asks some questions about it, and opens the next.

use std::ops::RangeInclusive;
use std::time::Duration;

use rand::RngExt;
use rand_pcg::Pcg64;

use crate::generator::{Session, Sessions};
use crate::invalid::{check_count, check_range};
use crate::pacing::{first_appearance, think, users_for};
use crate::pieces::PieceMaker;
use crate::seed::{Purpose, stream};
use crate::{InvalidWorkload, Piece, PlannedRequest, SessionId, TenantId, UserRequests};

/// Sessions over documents, the shape of AWS's long-context measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Documents {
    /// Closed-loop users, at least 1.
    pub users: u32,
    /// Mean think time between an answer and the next question.
    pub think: Duration,
    /// Tokens of a document, at least 1.
    pub document_tokens: u32,
    /// How many questions each document is asked, at least 1.
    pub questions: RangeInclusive<u32>,
    /// Tokens of a question, at least 1.
    pub question_tokens: RangeInclusive<u32>,
    /// Tokens of an answer, at least 1.
    pub output_tokens: RangeInclusive<u32>,
}

impl Documents {
    /// The default for a fleet of this size: documents of 8,000 tokens, each asked 5 or 6 questions, so that counting
    /// predicts hit rates of 27 % and 82 % over 7 instances.
    pub fn for_instances(instances: u32) -> Documents {
        Documents {
            users: users_for(instances),
            think: Duration::from_secs(2),
            document_tokens: 8_000,
            questions: 5..=6,
            question_tokens: 60..=200,
            output_tokens: 100..=160,
        }
    }

    /// A question about a document.
    pub(crate) fn question(&self, rng: &mut Pcg64, pieces: &mut PieceMaker, document: Piece) -> PlannedRequest {
        let question = pieces.piece(rng.random_range(self.question_tokens.clone()));
        PlannedRequest {
            session: SessionId(document.id.0),
            tenant: TenantId::default(),
            think: Duration::ZERO,
            prompt: vec![document, question],
            output: pieces.id(),
            output_tokens: rng.random_range(self.output_tokens.clone()),
        }
    }
}

impl Sessions for Documents {
    fn name(&self) -> &'static str {
        "documents"
    }

    fn check(&self) -> Result<(), InvalidWorkload> {
        check_count("the number of users", self.users)?;
        check_count("the length of a document", self.document_tokens)?;
        check_range("the number of questions", &self.questions)?;
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
        let mut pieces = PieceMaker::for_session(SessionId(number));
        let document = pieces.piece(self.document_tokens);
        let questions = rng.random_range(self.questions.clone());
        let workload = self.clone();
        Box::new((0..questions).map(move |place| {
            let pause = if place == 0 { Duration::ZERO } else { think(&mut rng, workload.think) };
            PlannedRequest { think: pause, ..workload.question(&mut rng, &mut pieces, document) }
        }))
    }

    fn user(&self, seed: u64, user: u32) -> UserRequests {
        let mut rng = stream(seed, Purpose::User, u64::from(user));
        let mut pieces = PieceMaker::for_user(user);
        let document = pieces.piece(self.document_tokens);
        let questions_left = first_document_questions(&mut rng, &self.questions);
        let workload = self.clone();
        Box::new(Reader { workload, rng, pieces, document, questions_left, started: false })
    }
}

/// One user with a document open.
struct Reader {
    workload: Documents,
    rng: Pcg64,
    pieces: PieceMaker,
    document: Piece,
    questions_left: u32,
    started: bool,
}

impl Iterator for Reader {
    type Item = PlannedRequest;

    fn next(&mut self) -> Option<PlannedRequest> {
        let pause = if self.started { think } else { first_appearance };
        let think = pause(&mut self.rng, self.workload.think);
        self.started = true;
        if self.questions_left == 0 {
            self.document = self.pieces.piece(self.workload.document_tokens);
            self.questions_left = self.rng.random_range(self.workload.questions.clone());
        }
        self.questions_left -= 1;
        let question = self.workload.question(&mut self.rng, &mut self.pieces, self.document);
        Some(PlannedRequest { think, ..question })
    }
}

/// How many questions are left on the document that a user is reading when one looks at a random moment: a longer
/// session is met more often, and somewhere in its middle. Starting all users so keeps new documents as frequent in
/// the first minutes as later on; were all to start on a fresh one, they would all move on at the same time.
fn first_document_questions(rng: &mut Pcg64, questions: &RangeInclusive<u32>) -> u32 {
    loop {
        let all = rng.random_range(questions.clone());
        let place = rng.random_range(1..=*questions.end());
        if place <= all {
            return place;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::{Documents, PieceId, Plan};

    fn plan(seed: u64) -> Plan {
        Plan::new(Documents::for_instances(7), seed).unwrap()
    }

    #[test]
    fn same_seed_same_requests_other_seed_others() {
        assert_eq!(plan(1).in_turn(500), plan(1).in_turn(500));
        assert_ne!(plan(1).in_turn(500), plan(2).in_turn(500));
    }

    #[test]
    fn values_do_not_move_between_releases() {
        let first = plan(1).user(0).next().unwrap();
        assert_eq!((first.prompt[1].tokens, first.output_tokens), (151, 135));
        assert_eq!(first.think.as_millis(), 4_503);
    }

    #[test]
    fn every_document_after_the_first_is_asked_five_or_six_questions_in_a_row() {
        for user in 0..46 {
            let documents: Vec<PieceId> = plan(3).user(user).take(200).map(|request| request.prompt[0].id).collect();
            let mut runs: Vec<usize> = documents.chunk_by(|a, b| a == b).map(<[_]>::len).collect();
            runs.pop();
            let first = runs.remove(0);
            assert!((1..=6).contains(&first), "{first}");
            assert!(runs.iter().all(|run| (5..=6).contains(run)), "{runs:?}");
        }
    }

    #[test]
    fn lengths_and_think_times_have_the_stated_distributions() {
        let requests = plan(4).in_turn(20_000);
        let mean = |values: &dyn Fn(usize) -> f64| (0..requests.len()).map(values).sum::<f64>() / requests.len() as f64;
        assert!(requests.iter().all(|r| r.prompt.len() == 2 && r.prompt[0].tokens == 8_000));
        assert!(requests.iter().all(|r| (60..=200).contains(&r.prompt[1].tokens)));
        assert!(requests.iter().all(|r| (100..=160).contains(&r.output_tokens)));
        assert!((mean(&|i| f64::from(requests[i].prompt[1].tokens)) - 130.0).abs() < 2.0);
        assert!((mean(&|i| f64::from(requests[i].output_tokens)) - 130.0).abs() < 1.0);
        assert!((mean(&|i| requests[i].think.as_secs_f64()) - 2.0).abs() < 0.06);
    }

    #[test]
    fn new_documents_are_as_frequent_at_the_start_as_later() {
        let plan = Plan::new(Documents { users: 6_000, ..Documents::for_instances(7) }, 5).unwrap();
        let mut new_documents: BTreeMap<usize, u32> = BTreeMap::new();
        for user in 0..6_000 {
            let documents: Vec<PieceId> = plan.user(user).take(12).map(|request| request.prompt[0].id).collect();
            for round in 1..12 {
                *new_documents.entry(round).or_default() += u32::from(documents[round] != documents[round - 1]);
            }
        }
        for (round, count) in new_documents {
            let share = f64::from(count) / 6_000.0;
            assert!((share - 1.0 / 5.5).abs() < 0.02, "round {round}: {share}");
        }
    }

    #[test]
    fn users_share_no_piece() {
        let mut owner = BTreeMap::new();
        for user in 0..46 {
            for piece in plan(6).user(user).take(50).flat_map(|request| request.prompt) {
                assert_eq!(*owner.entry(piece.id).or_insert(user), user);
            }
        }
    }

    #[test]
    fn a_workload_that_cannot_work_is_refused_by_name() {
        let refuse = |documents: Documents| Plan::new(documents, 1).unwrap_err().to_string();
        let good = Documents::for_instances(7);
        assert_eq!(refuse(Documents { users: 0, ..good.clone() }), "the number of users is 0; it must be at least 1");
        #[expect(clippy::reversed_empty_ranges, reason = "the empty range is what is tested")]
        let empty = Documents { questions: 6..=5, ..good.clone() };
        assert_eq!(refuse(empty), "the number of questions goes from 6 to 5; the first must not be above the second");
        assert_eq!(
            refuse(Documents { question_tokens: 0..=5, ..good }),
            "the length of a question is 0; it must be at least 1"
        );
    }
}
