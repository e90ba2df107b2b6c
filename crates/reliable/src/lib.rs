//! Reliable multicast: machines that bring the same bytes to every member of a group.
//!
//! Each protocol has a folder: [`norm`] is NORM, of RFC 5740.

pub mod norm;
