//! Routers that tell each other nothing: how far they agree on where a prefix lives.

use super::*;

const KEYS: u128 = 5_000;
const INSTANCES: usize = 10;

/// A router's variant with these instances, in this order.
fn router(instances: impl Iterator<Item = usize>) -> VariantState<usize> {
    let mut state = VariantState::new(Routing { strategy: Strategy::default(), rollout: Rollout::FULL }, NOW);
    for instance in instances {
        state.add(InstanceSpec::new(format!("http://10.0.0.{instance}:8000").as_str()), instance).unwrap();
    }
    state
}

/// Where it places each key, one after the other.
fn places(state: &mut VariantState<usize>) -> Vec<usize> {
    let place = |key: u128| {
        let choice = choose(state, &keyed(key.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)));
        state.finish(choice.slot);
        choice.instance
    };
    (0..KEYS).map(place).collect()
}

fn equal(one: &[usize], other: &[usize]) -> f64 {
    let equal = one.iter().zip(other).filter(|(one, other)| one == other).count();
    equal as f64 / KEYS as f64
}

#[test]
fn routers_agree_on_every_place_in_whatever_order_their_instances_are_listed() {
    let one = places(&mut router(0..INSTANCES));
    let reversed = places(&mut router((0..INSTANCES).rev()));
    let mixed = places(&mut router((0..INSTANCES).map(|index| index * 7 % INSTANCES)));
    assert_eq!((equal(&one, &reversed), equal(&one, &mixed)), (1.0, 1.0));
}

#[test]
fn routers_that_see_one_instance_more_or_less_agree_on_all_but_its_keys() {
    let all = places(&mut router(0..INSTANCES));
    for missing in 0..INSTANCES {
        let others = places(&mut router((0..INSTANCES).filter(|&instance| instance != missing)));
        let same = equal(&all, &others);
        assert!(same >= 1.0 - 2.0 / INSTANCES as f64, "without {missing}: {same}");
        // What the one places there is all that they disagree on.
        let there = all.iter().filter(|&&instance| instance == missing).count();
        assert_eq!(same, (KEYS as usize - there) as f64 / KEYS as f64, "without {missing}");
    }
}
