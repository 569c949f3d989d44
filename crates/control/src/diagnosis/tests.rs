//! Why requests missed, case by case.

use std::time::{Duration, SystemTime};

use isotherm_core::{
    Arm, BlockHasher, Decision, HashSeed, InstanceId, InstanceSpec, Reason, Routing, StrategyName, VariantState,
};
use isotherm_telemetry::{Outcome, PartEnd, Role, Trail};

use super::*;

/// A prompt of a system text and messages of users, within a tenant.
fn trail(tenant: u64, system: &str, messages: &[&str]) -> Trail {
    let mut hasher = BlockHasher::new(HashSeed(9));
    let mut parts = Vec::new();
    let texts = std::iter::once((Role::System, system)).chain(messages.iter().map(|text| (Role::User, *text)));
    for (number, (role, text)) in texts.enumerate() {
        hasher.end_message();
        hasher.update(text.as_bytes());
        let (chain, end) = hasher.so_far();
        let part = Part { kind: PartKind::Text, role, message: number as u16 };
        let own = text.bytes().fold(1, |hash: u64, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
        parts.push(PartEnd { chain, end, own, part });
    }
    let trail = Trail::new(&hasher.finish().unwrap(), parts.into());
    Trail { tenant, ..trail }
}

struct Log(Vec<Arc<TracedRequest>>);

impl Log {
    /// A request that came a second after the one before, had its first token after 100 ms, and found so many of its tokens
    /// cached (one token a byte).
    fn served(&mut self, trail: Trail, instance: &str, reason: Reason, cached: u64) -> Diagnosis {
        let arrived = Time::from_elapsed(Duration::from_secs(self.0.len() as u64));
        let tokens = trail.bytes().into();
        let id = format!("r{}", self.0.len());
        let names = ("chat".into(), "a".into());
        let request = TracedRequest::new(
            (arrived, SystemTime::now()),
            id.clone().into(),
            names,
            None,
            Some(InstanceId::new(instance)),
            trail,
        );
        request.end(Ended {
            at: arrived + Duration::from_millis(500),
            status: 200,
            outcome: Outcome::Ok,
            decision: Some(decision(instance, reason)),
            queued: None,
            time_to_first_token: Some(Duration::from_millis(100)),
            prompt_tokens: Some(tokens),
            cached_tokens: Some(cached),
            output_tokens: Some(10),
            response_id: Some(format!("resp-{id}").into()),
        });
        self.0.push(Arc::new(request));
        of_id(&self.0, &id).unwrap()
    }
}

fn decision(instance: &str, reason: Reason) -> Decision {
    let mut state = VariantState::new(Routing::default(), Time::ZERO);
    state.add(InstanceSpec::new(instance), ());
    let generation = {
        let mut rng = rand_pcg::Pcg64::new(1, 1);
        let choice = state.choose(&isotherm_core::RouteRequest::default(), Time::ZERO, &mut rng).unwrap();
        let generation = choice.decision.generation;
        state.finish(choice.slot);
        generation
    };
    Decision {
        strategy: StrategyName::PrefixAware,
        arm: Arm::Strategy,
        key: None,
        home: Some(InstanceId::new("one")),
        home_in_flight: Some(10),
        chosen: InstanceId::new(instance),
        generation,
        in_flight: 1,
        reason,
        cause: None,
        place: Some(0),
        eligible: 2,
        expected_cached_tokens: None,
    }
}

fn text(word: &str) -> String {
    format!("{word} ").repeat(400)
}

#[test]
fn each_miss_has_its_reason() {
    let (system, user) = (text("system"), text("user"));
    let mut log = Log(Vec::new());
    let whole = |tenant, system: &str, user: &str| trail(tenant, system, &[user]);
    let first = log.served(whole(1, &system, &user), "one", Reason::Home, 0);
    assert_eq!((first.verdict, first.reason, first.nearest), (Verdict::Miss, MissReason::FirstSeen, None));

    let again = log.served(whole(1, &system, &user), "one", Reason::Home, 4_780);
    assert_eq!((again.verdict, again.reason), (Verdict::Hit, MissReason::None));

    let evicted = log.served(whole(1, &system, &user), "one", Reason::Home, 0);
    assert_eq!((evicted.verdict, evicted.reason), (Verdict::Miss, MissReason::Evicted));

    let spilled = log.served(whole(1, &system, &user), "two", Reason::Spill, 0);
    assert_eq!(spilled.reason, MissReason::SpilledToColdInstance);
    assert_eq!(spilled.best.map(|best| best.instance).as_deref(), Some("one"));

    let elsewhere = log.served(whole(1, &system, &user), "three", Reason::Random, 0);
    assert_eq!(elsewhere.reason, MissReason::PlacedElsewhere);

    let message = log.served(whole(1, &system, &text("other")), "one", Reason::Home, 2_800);
    assert_eq!((message.reason, message.part.as_deref()), (MissReason::MessagesChanged, Some("messages[1] (user)")));

    let changed = format!("{}!{}", &system[..1_000], &system[1_000..]);
    let changed = log.served(whole(1, &changed, &user), "one", Reason::Home, 960);
    assert_eq!((changed.reason, changed.part.as_deref()), (MissReason::SystemChanged, Some("messages[0] (system)")));
    assert!((900..=1_000).contains(&changed.nearest.unwrap().shared_bytes));

    // A time stamp in front: nothing is shared from the beginning on, and yet it is clear which one it was.
    let stamped = log.served(whole(1, &format!("12:30 {system}"), &user), "one", Reason::Home, 0);
    assert_eq!((stamped.reason, stamped.part.as_deref()), (MissReason::SystemChanged, Some("messages[0] (system)")));
    assert_eq!(stamped.nearest.map(|nearest| (nearest.shared_bytes, nearest.equal_parts_bytes)), Some((0, 2_000)));

    // A time stamp in front and another question: no part is equal, and yet it is told where the two part.
    let unlike = log.served(whole(1, &format!("12:31 {system}"), &text("unheard")), "one", Reason::Home, 0);
    assert_eq!((unlike.reason, unlike.part.as_deref()), (MissReason::FirstSeen, Some("messages[0] (system)")));
    assert!(unlike.why().ends_with("from the last one it first differs in messages[0] (system)"), "{}", unlike.why());
    let last = unlike.nearest.map(|nearest| (nearest.request_id, nearest.shared_bytes, nearest.equal_parts_bytes));
    assert_eq!(last, Some(("r7".to_owned(), 0, 0)));

    let model = Trail { model: 7, ..whole(1, &system, &user) };
    assert_eq!(log.served(model, "one", Reason::Home, 0).reason, MissReason::ModelChanged);
}

#[test]
fn a_conversation_that_goes_on_has_new_text_only() {
    let mut log = Log(Vec::new());
    let (system, question) = (text("system"), text("question"));
    log.served(trail(1, &system, &[&question]), "one", Reason::Home, 0);
    let (answer, more) = (text("answer"), text("more"));
    let second = log.served(trail(1, &system, &[&question, &answer, &more]), "one", Reason::Home, 6_400);
    assert_eq!(second.reason, MissReason::NewText);
    assert_eq!(of_id(&log.0, "resp-r1").map(|found| found.request_id).as_deref(), Some("r1"));
}

#[test]
fn a_tenant_learns_nothing_of_another_ones_prompts() {
    let (system, user) = (text("system"), text("user"));
    let mut log = Log(Vec::new());
    log.served(trail(1, &system, &[&user]), "one", Reason::Home, 0);
    let mut alone = Log(Vec::new());
    alone.0.extend(log.0.iter().take(0).cloned());
    // Whatever the other tenant sent, and whatever the engine found of it, the answer is that of a router without it.
    let other = log.served(trail(2, &system, &[&user]), "one", Reason::Home, 4_780);
    let only = alone.served(trail(2, &system, &[&user]), "one", Reason::Home, 4_780);
    let told = |diagnosis: &Diagnosis| {
        let Diagnosis { here_tokens, best, verdict, reason, nearest, compared_with, part, .. } = diagnosis.clone();
        (here_tokens, best, verdict, reason, nearest, compared_with, part)
    };
    assert_eq!(told(&other), told(&only));
    assert_eq!((other.nearest, other.compared_with), (None, 0));
}

#[test]
fn what_is_not_told_or_not_answered_is_said_so() {
    let arrived = Time::ZERO;
    let names = ("chat".into(), "a".into());
    let request =
        TracedRequest::new((arrived, SystemTime::now()), "r".into(), names, None, None, trail(1, "a", &["b"]));
    let under_way = diagnose(&[], &request);
    assert_eq!((under_way.verdict, under_way.reason), (Verdict::UnderWay, MissReason::NotAnswered));
    assert!(under_way.to_string().contains("verdict     under way"));
}
