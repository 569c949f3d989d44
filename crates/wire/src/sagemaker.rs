//! SageMaker's runtime API: what its operations say in headers, and how its errors are worded.

mod asynchronous;
mod error;
mod invalid;
mod invocation;
mod member;
mod session;

pub use asynchronous::{AsyncInvocation, InputLocation, LONGEST_INLINE};
pub use error::{Fault, ModelError, RuntimeError, Scene};
pub use invalid::Invalid;
pub use invocation::{Invocation, Operation, headers_for_container, headers_of_operation};
pub use session::{ClosedSession, NewSession, SessionId};
