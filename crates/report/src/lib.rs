//! Percentiles, aligned tables, JSON.
