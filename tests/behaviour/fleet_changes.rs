//! Changing the fleet while it serves: `isotherm instances`.
