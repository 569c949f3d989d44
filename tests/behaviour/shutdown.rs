//! Ctrl-C: what runs finishes, then the process ends well.
