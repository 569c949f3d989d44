//! The engine model behind HTTP, in wall-clock time.
