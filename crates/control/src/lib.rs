//! The admin plane: metrics, health, changes of the fleet.
