//! The seam between what operations ask for and what makes it so.

/// Whoever brings endpoints from what their records say to what they should be.
///
/// Operations write records and then wake it; it reads the records. It may be woken more often than there is something
/// to do, and must begin with reading them when it starts: what was asked for before a crash is still in them.
pub trait Deployer: Send + Sync {
    /// Says that records changed. Returns at once.
    fn wake(&self);
}

impl Deployer for tokio::sync::Notify {
    fn wake(&self) {
        self.notify_one();
    }
}
