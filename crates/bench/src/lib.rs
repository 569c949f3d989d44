//! Load generator for real HTTP.
