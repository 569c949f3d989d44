//! Decisions for tests.

use isotherm_core::{
    Arm, Decision, InstanceId, InstanceSpec, PrefixKey, Reason, Routing, SpillCause, StrategyName, Time, VariantState,
};

/// A request whose home `a` was full and that went to `b`.
pub(crate) fn spilled() -> Decision {
    let mut state = VariantState::new(Routing::default(), Time::ZERO);
    let generation = state.add(InstanceSpec::new("b"), ()).expect("the first instance");
    Decision {
        strategy: StrategyName::PrefixAware,
        arm: Arm::Strategy,
        key: Some(PrefixKey::from_u128(0xab)),
        home: Some(InstanceId::new("a")),
        home_in_flight: Some(10),
        chosen: InstanceId::new("b"),
        generation,
        in_flight: 3,
        reason: Reason::Spill,
        cause: Some(SpillCause::Threshold),
        place: Some(1),
        eligible: 4,
        expected_cached_tokens: None,
    }
}

/// A request that chance sent to `b`, for comparison.
pub(crate) fn at_random() -> Decision {
    Decision { arm: Arm::Random, reason: Reason::Random, cause: None, ..spilled() }
}
