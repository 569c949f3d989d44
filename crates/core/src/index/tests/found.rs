//! What a look-up tells beside who holds how much: what blocks weigh, the last use, the answer, and who is full.

use super::*;

fn look_up(index: &PrefixIndex, words: &[u8]) -> (Known, Vec<Match>) {
    let mut matches = Vec::new();
    let known = index.look_up(&chain(words), &mut matches);
    (known, matches)
}

fn put(index: &mut PrefixIndex, words: &[u8], seat: SeatId) {
    index.expect(&chain(words), seat);
    index.confirm(&chain(words), seat);
}

fn answer(index: &PrefixIndex, words: &[u8]) -> u32 {
    look_up(index, words).1[0].answer
}

#[test]
fn a_block_that_is_being_computed_weighs_more_and_one_that_others_will_use_less() {
    let mut index = PrefixIndex::new(usize::MAX);
    let (a, b) = (index.sit(), index.sit());
    index.expect(&chain(b"abcd"), a);
    let (known, matches) = look_up(&index, b"abcdef");
    assert_eq!((known.blocks, known.weight), (4, 4.0 * BEING_COMPUTED));
    assert_eq!((matches[0].weight, matches[1].weight), (4.0 * BEING_COMPUTED, 0.0));
    assert_eq!((matches[0].confirmed, matches[0].last_use), (0, Use::default()), "not there yet");

    index.confirm(&chain(b"abcd"), a);
    put(&mut index, b"abcd", b);
    for _ in 0..10 {
        put(&mut index, b"xyz", a);
    }
    // Used by the first and second of twelve requests; a third holder would get a third of what is to come.
    let mut popularity = popularity::Popularity::default();
    let window = 2.0 * WINDOW_PER_SEAT;
    popularity.count(1, window);
    popularity.count(2, window);
    let weight = 1.0 / (1.0 + REUSE_COUNTS * popularity.at(12, window) / 3.0);
    let (known, matches) = look_up(&index, b"abcdef");
    assert_eq!((known.blocks, known.weight), (4, 4.0 * weight));
    assert_eq!((matches[0].weight, matches[1].weight), (4.0 * weight, 4.0 * weight));
}

#[test]
fn weights_add_up_along_a_prompt() {
    let mut index = PrefixIndex::new(usize::MAX);
    let a = index.sit();
    put(&mut index, b"ab", a);
    let whole = look_up(&index, b"ab").0.weight;
    index.expect(&chain(b"abxyz"), a);
    let (known, matches) = look_up(&index, b"abxyz");
    assert_eq!((known.weight, matches[0].weight), (whole + 3.0 * BEING_COMPUTED, whole + 3.0 * BEING_COMPUTED));
    assert_eq!((matches[0].blocks, matches[0].confirmed), (5, 2));
}

#[test]
fn an_answer_belongs_to_the_prompt_that_it_followed_and_no_other() {
    let mut index = PrefixIndex::new(usize::MAX);
    let a = index.sit();
    put(&mut index, b"abcd", a);
    put(&mut index, b"abxyz", a);
    index.answered(&chain(b"abxyz"), a, 70);
    assert_eq!([answer(&index, b"abxyz"), answer(&index, b"abxyz123")], [70, 70]);
    assert_eq!([answer(&index, b"ab"), answer(&index, b"abcd"), answer(&index, b"abxy")], [0, 0, 0]);
    index.answered(&chain(b"abx"), a, 90);
    assert_eq!(answer(&index, b"abxyz"), 70, "nothing ended there");
    // A prompt that parts before the end tells nothing of what was answered.
    put(&mut index, b"abxy", a);
    assert_eq!((answer(&index, b"abxy"), answer(&index, b"abxyz")), (0, 70));
}

#[test]
fn an_instance_is_full_only_when_its_capacity_is_known_and_nearly_used() {
    let mut index = PrefixIndex::new(usize::MAX);
    let (a, b) = (index.sit(), index.sit());
    let words: Vec<u8> = (0..95).collect();
    put(&mut index, &words, a);
    assert!(!index.is_full(a) && !index.is_full(b));
    index.set_capacity(a, 100);
    assert!(!index.is_full(a), "as much as it may hold before that");
    put(&mut index, &[1], a);
    assert!(index.is_full(a) && !index.is_full(b));
}

#[test]
fn the_end_of_a_run_that_was_cut_is_forgotten_before_its_beginning() {
    let mut index = PrefixIndex::new(usize::MAX);
    let (a, b) = (index.sit(), index.sit());
    put(&mut index, b"abcd", a);
    put(&mut index, b"abxy", b);
    index.set_capacity(a, 2);
    assert_eq!((held(&index, b"abcd", a), held(&index, b"abxy", b)), (2, 4));
}

#[test]
fn a_block_takes_eight_bytes_wherever_it_is_held() {
    let taken = |blocks: u8| {
        let mut index = PrefixIndex::new(usize::MAX);
        let seat = index.sit();
        put(&mut index, &(0..blocks).collect::<Vec<u8>>(), seat);
        index.bytes()
    };
    assert_eq!((taken(104) - taken(4), taken(0)), (800, 0));
}

#[test]
fn both_parts_of_a_run_that_was_cut_have_been_used_as_often_as_the_whole() {
    let mut index = PrefixIndex::new(usize::MAX);
    let a = index.sit();
    for _ in 0..20 {
        put(&mut index, b"abcd", a);
    }
    let whole = look_up(&index, b"abcd").0.weight;
    index.expect(&chain(b"abxy"), a);
    assert!((look_up(&index, b"abcd").0.weight - whole).abs() < 1e-9);
}
