//! A model of a vLLM-like engine: tokenization, block cache, scheduler, step times.
