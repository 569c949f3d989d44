//! Whether an input is of the shape that SageMaker's service model gives it, and within every constraint.
//!
//! Clients check only some of the constraints (boto3: required members, types, minima), so all of them are checked
//! here. They stand in one file, `closed-set.shapes`, which one interpreter reads: no constraint is written in code.

mod catalogue;
mod check;
mod pattern;
mod violation;

pub(crate) use check::check;
