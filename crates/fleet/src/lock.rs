//! The lock around a variant's state: `parking_lot`'s, or shuttle's where interleavings are tested.

#[cfg(not(feature = "shuttle"))]
pub(crate) use parking_lot::Mutex;

#[cfg(feature = "shuttle")]
pub(crate) use interleaved::Mutex;

#[cfg(feature = "shuttle")]
mod interleaved {
    use std::sync::PoisonError;

    use shuttle::sync::MutexGuard;

    /// shuttle's lock with `parking_lot`'s manners: no poison.
    #[derive(Debug)]
    pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Mutex<T> {
            Mutex(shuttle::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }
}
