//! What `ADAPTIVE` learns from first tokens and reports, against sums done by hand.

use super::pace::PRIOR;
use super::*;

const START: Time = Time::ZERO;

/// 4,200 bytes, a thousand tokens before anything was learned, in 75 blocks; those of one name share all of them.
fn prompt(name: u64) -> Prompt {
    sized(name, 75)
}

fn sized(name: u64, blocks: u32) -> Prompt {
    let hashes = (0..u64::from(blocks)).map(|block| BlockHash(name << 32 | block)).collect();
    Prompt { blocks: hashes, ends: (1..=blocks).map(|block| 56 * block).collect(), tenant: 0 }
}

/// The first blocks of one prompt, and then those of another.
fn parting(one: &Prompt, shared: usize, other: &Prompt) -> Prompt {
    let blocks = one.blocks[..shared].iter().chain(&other.blocks[shared..]).copied().collect();
    Prompt { blocks, ..other.clone() }
}

fn at(milliseconds: u64) -> Time {
    Time::from_nanoseconds(milliseconds * 1_000_000)
}

fn send(adaptive: &mut Adaptive, prompt: &Prompt, instance: &mut Beliefs) -> Work {
    adaptive.look_up(prompt);
    adaptive.send(prompt, instance, START)
}

/// Sends it and takes in its whole answer.
fn warm(adaptive: &mut Adaptive, prompt: &Prompt, instance: &mut Beliefs) -> Work {
    let mut work = send(adaptive, prompt, instance);
    assert!(adaptive.answer(&mut work, instance));
    work
}

fn fresh() -> (Adaptive, Beliefs) {
    let mut adaptive = Adaptive::new();
    let instance = adaptive.join();
    (adaptive, instance)
}

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-9
}

fn of_prompt(tokens: u64) -> Report {
    Report { prompt_tokens: Some(tokens), ..Report::default() }
}

#[test]
fn tokens_per_byte_are_an_average_that_begins_as_one_prompt_of_prose_and_comes_to_fade() {
    let (mut adaptive, mut instance) = fresh();
    let work = send(&mut adaptive, &prompt(1), &mut instance);
    for count in 1..=40 {
        adaptive.learn(&work, &mut instance, &of_prompt(2_100));
        let mean = (TOKENS_PER_BYTE + 0.5 * f64::from(count)) / f64::from(count + 1);
        assert!(near(adaptive.tokens(1), mean), "{count}");
    }
    for _ in 0..2_000 {
        adaptive.learn(&work, &mut instance, &of_prompt(2_100));
    }
    adaptive.learn(&work, &mut instance, &of_prompt(4_200));
    assert!(near(adaptive.tokens(1), 0.5 + NEW * 0.5), "{}", adaptive.tokens(1));
}

#[test]
fn a_short_prompt_tells_less_of_tokens_per_byte_and_a_tiny_one_nothing() {
    let (mut adaptive, mut instance) = fresh();
    // A quarter of the 4,096 bytes that count whole.
    let mut quarter = send(&mut adaptive, &prompt(1), &mut instance);
    quarter.bytes = 1_024;
    let mut expected = TOKENS_PER_BYTE;
    for new in [1.0 / 2.0, 1.0 / 2.25, 1.0 / 2.5] {
        adaptive.learn(&quarter, &mut instance, &of_prompt(1_024));
        expected += 0.25 * new * (1.0 - expected);
        assert!(near(adaptive.tokens(1), expected));
    }
    quarter.bytes = u64::from(BLOCK_BYTES) - 1;
    adaptive.learn(&quarter, &mut instance, &of_prompt(500));
    assert!(near(adaptive.tokens(1), expected));
    quarter.bytes += 1;
    adaptive.learn(&quarter, &mut instance, &of_prompt(500));
    assert!(adaptive.tokens(1) > expected);
}

#[test]
fn the_length_of_answers_is_a_fading_average() {
    let (mut adaptive, mut instance) = fresh();
    let work = warm(&mut adaptive, &prompt(1), &mut instance);
    let mut expected = OUTPUT_TOKENS;
    for tokens in [250u32, 250, 50] {
        adaptive.learn(&work, &mut instance, &Report { output_tokens: Some(tokens.into()), ..Report::default() });
        expected += NEW * (f64::from(tokens) - expected);
        assert!(near(adaptive.output_tokens, expected));
    }
}

#[test]
fn what_is_missing_of_a_prompt_has_to_be_computed_but_for_the_answer_that_it_begins_with() {
    let (mut adaptive, mut instance) = fresh();
    let first = sized(1, 50);
    let work = warm(&mut adaptive, &first, &mut instance);
    adaptive.learn(&work, &mut instance, &Report { output_tokens: Some(100), ..Report::default() });
    let next = parting(&first, 50, &prompt(2));
    adaptive.look_up(&next);
    let held = adaptive.held(&instance);
    assert_eq!((held.blocks, held.answer), (50, 100));
    let missing = 25.0 * 56.0 / 4.2;
    assert!(near(adaptive.uncached(&next, held), missing - 100.0));
    assert!(near(adaptive.weighed(&next, held), missing - 100.0));
}

#[test]
fn what_others_hold_has_to_be_computed_too_and_weighs_hardly_less_where_few_come_for_it() {
    let (mut adaptive, mut some) = fresh();
    let mut all = adaptive.join();
    let (whole, other) = (prompt(1), prompt(2));
    warm(&mut adaptive, &whole, &mut all);
    warm(&mut adaptive, &parting(&whole, 30, &other), &mut some);
    adaptive.look_up(&whole);
    let held = adaptive.held(&some);
    assert_eq!((held.blocks, adaptive.known_blocks()), (30, 75));
    let missing = 45.0 * 56.0 / 4.2;
    assert!(near(adaptive.uncached(&whole, held), missing));
    let weighed = adaptive.weighed(&whole, held);
    assert!((0.9 * missing..missing).contains(&weighed), "{weighed} of {missing}");
    assert!(near(adaptive.weighed(&whole, adaptive.held(&all)), 1.0), "engines compute the last token again");
}

#[test]
fn a_request_remembers_what_was_believed_of_it_when_it_was_sent() {
    let (mut adaptive, mut instance) = fresh();
    assert!(near(adaptive.pace_of(&instance), PRIOR));
    let first = send(&mut adaptive, &prompt(1), &mut instance);
    assert!(near(first.uncached, 1_000.0) && near(first.cached, 0.0) && first.load >= 1_000.0);
    assert_eq!(first.confirmed, 0.0);
    let second = send(&mut adaptive, &prompt(2), &mut instance);
    assert!(near(second.load, 2.0 * first.load), "its own and those before it: {}", second.load);
    warm(&mut adaptive, &prompt(3), &mut instance);
    let third = send(&mut adaptive, &parting(&prompt(3), 15, &prompt(4)), &mut instance);
    assert!(near(third.confirmed, 0.2) && near(third.cached, 200.0) && near(third.uncached, 800.0));
}

#[test]
fn the_first_of_the_tokens_tells_the_pace_by_all_that_was_to_be_computed_and_those_that_follow_tell_nothing() {
    let (mut adaptive, mut instance) = fresh();
    let mut first = send(&mut adaptive, &prompt(1), &mut instance);
    let mut second = send(&mut adaptive, &sized(2, 150), &mut instance);
    adaptive.begin(&mut first, &mut instance, at(150));
    // Twice as many tokens came beside its own: it counts about a third.
    let (mut all, mut own) = (Pace::default(), OwnPace::default());
    let mut expect = |adaptive: &Adaptive, instance: &Beliefs, seen: FirstToken| {
        all.observe(seen);
        own.observe(seen, &all);
        assert_eq!(format!("{:?}", adaptive.pace), format!("{all:?}"));
        assert_eq!(format!("{:?}", instance.pace), format!("{own:?}"));
    };
    expect(
        &adaptive,
        &instance,
        FirstToken { load: second.load, milliseconds: 150.0, weight: first.load / second.load },
    );
    adaptive.begin(&mut first, &mut instance, at(9_000));
    adaptive.begin(&mut second, &mut instance, at(400));
    expect(&adaptive, &instance, FirstToken { load: second.load, milliseconds: 400.0, weight: 1.0 });
}

#[test]
fn what_was_sent_to_an_earlier_process_changes_nothing_of_this_one() {
    let (mut adaptive, mut instance) = fresh();
    let (mut answered, failed) =
        (send(&mut adaptive, &prompt(1), &mut instance), send(&mut adaptive, &prompt(1), &mut instance));
    adaptive.restart(&mut instance);
    let mut new = send(&mut adaptive, &prompt(1), &mut instance);
    assert!(!adaptive.answer(&mut answered, &mut instance));
    for old in [&answered, &failed] {
        adaptive.end(old, &mut instance);
    }
    adaptive.look_up(&prompt(1));
    let held = adaptive.held(&instance);
    assert_eq!((held.blocks, held.confirmed), (75, 0), "still on its way");
    assert!(near(instance.waiting.tokens(), new.load));
    assert!(adaptive.answer(&mut new, &mut instance));
    assert!(!adaptive.answer(&mut new, &mut instance), "once");
}

#[test]
fn an_engine_that_found_less_than_was_confirmed_has_evicted_and_one_that_found_more_has_room() {
    let (mut adaptive, mut instance) = fresh();
    let found = |cached| Report { cached_tokens: Some(cached), ..of_prompt(1_000) };
    warm(&mut adaptive, &prompt(1), &mut instance);
    let half = send(&mut adaptive, &parting(&prompt(1), 37, &prompt(2)), &mut instance);
    adaptive.learn(&half, &mut instance, &found(450));
    assert_eq!(adaptive.index.capacity(instance.seat), u64::MAX, "as much as was confirmed, but for whole blocks");
    let again = warm(&mut adaptive, &prompt(1), &mut instance);
    adaptive.learn(&again, &mut instance, &found(500));
    let capacity = adaptive.index.capacity(instance.seat);
    assert!(capacity < 1_000, "{capacity}");
    // Half of it is on its way there, which is believed to be found.
    adaptive.index.set_capacity(instance.seat, 10_000);
    let base = send(&mut adaptive, &prompt(5), &mut instance);
    let half = send(&mut adaptive, &parting(&prompt(5), 38, &prompt(6)), &mut instance);
    assert!(half.cached > 500.0 && base.cached < 1.0);
    adaptive.learn(&half, &mut instance, &found(640));
    assert_eq!(adaptive.index.capacity(instance.seat), 10_000);
    adaptive.learn(&half, &mut instance, &found(670));
    assert_eq!(adaptive.index.capacity(instance.seat), 11_001);
}
