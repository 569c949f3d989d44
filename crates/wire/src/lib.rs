//! Bytes to types and back: OpenAI's APIs, server-sent events, errors.
