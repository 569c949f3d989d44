//! The data plane, one file per stage of a request.
