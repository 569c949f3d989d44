//! clients_that_leave
