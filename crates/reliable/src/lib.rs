//! Reliable multicast: machines that bring the same bytes to every member of a group.
//!
//! Each protocol has a folder: [`norm`] is NORM, of RFC 5740.

pub mod backoff;
pub mod equation;
pub mod group_size;
pub mod grtt;
pub mod loss_events;
pub mod norm;
pub mod statistics;
