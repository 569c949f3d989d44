//! What a control plane changes, and what lives on.
