//! Copies of an inference component on the instances that they lie on, and adapters that only some of them hold.

use super::*;

/// Four hosts with two copies each, `h0/a`, `h0/b` and so on.
fn copies(threshold: u64) -> VariantState<usize> {
    let mut state = variant(prefix_aware(threshold, SpillRule::Next), 0);
    for (index, (host, copy)) in (0..4).flat_map(|host| ["a", "b"].map(|copy| (host, copy))).enumerate() {
        let host = format!("h{host}");
        let spec = InstanceSpec::new(format!("{host}/{copy}").as_str());
        state.add(InstanceSpec { host: Some(host.as_str().into()), ..spec }, index).unwrap();
    }
    state
}

fn host_of(id: &InstanceId) -> String {
    id.as_str().split('/').next().unwrap().to_owned()
}

#[test]
fn a_key_fills_the_copies_on_its_host_before_it_goes_to_another_host() {
    for key in 0..50 {
        let mut state = copies(2);
        let chosen: Vec<_> = (0..5).map(|_| choose(&mut state, &keyed(key)).decision).collect();
        let home = host_of(&chosen[0].chosen);
        assert!(chosen[..4].iter().all(|decision| host_of(&decision.chosen) == home), "two copies of two each");
        assert!(chosen[..4].iter().all(|decision| decision.reason == Reason::Home), "another copy there is home, too");
        assert_eq!(chosen[0].chosen, chosen[1].chosen, "the same copy first");
        assert_ne!(host_of(&chosen[4].chosen), home);
        assert_eq!(chosen[4].reason, Reason::Spill);
    }
}

#[test]
fn a_request_goes_only_where_it_may_go() {
    let mut state = copies(1);
    let within = [InstanceId::from("h1/a"), InstanceId::from("h2/b")];
    for key in 0..20 {
        let choice = choose(&mut state, &RouteRequest { within: Some(&within), ..keyed(key) });
        assert!(within.contains(&choice.decision.chosen));
    }
    let gone = [InstanceId::from("h9/a")];
    let request = RouteRequest { within: Some(&gone), ..keyed(1) };
    assert_eq!(state.choose(&request, NOW, &mut Pcg64::seed_from_u64(0)).unwrap_err(), Refusal::ModelNotFound);
}
