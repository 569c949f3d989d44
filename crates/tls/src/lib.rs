//! TLS on both sides of the router: certificates that are read, checked and held; connections in the clear or not.
//!
//! Versions 1.2 and 1.3 only, by rustls with the `ring` provider: no C library is linked.

mod client;
mod material;
mod server;
mod stream;
mod unverified;
mod validity;

pub use client::{ClientFiles, ClientTls, ServerIdentity};
pub use material::{Part, TlsError};
pub use server::{Protocols, ServerFiles, ServerTls};
pub use stream::Stream;
pub use validity::Validity;

use std::sync::Arc;

use rustls::crypto::CryptoProvider;

/// What signs, agrees on keys and encrypts.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

#[cfg(test)]
mod tests;
