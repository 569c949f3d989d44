//! headers_both_ways
