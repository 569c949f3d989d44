//! Ids of requests, in the form of AWS's: random UUIDs.

use isotherm_wire::aws::uuid;

/// A random UUID. Nothing depends on its being unpredictable.
pub(super) fn request_id() -> String {
    let mut bytes = [0; 16];
    // Without randomness all ids are equal, which is no reason to refuse service.
    let _ = getrandom::fill(&mut bytes);
    uuid(u128::from_be_bytes(bytes))
}
