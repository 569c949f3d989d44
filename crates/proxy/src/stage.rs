//! The stages of a request, one file each; every stage takes what the one before returned.

pub(crate) mod accept;
pub(crate) mod admit;
pub(crate) mod authenticate;
pub(crate) mod decode;
pub(crate) mod finish;
pub(crate) mod forward;
pub(crate) mod inspect;
pub(crate) mod place;
pub(crate) mod relay;
pub(crate) mod shadow;
pub(crate) mod trace;
