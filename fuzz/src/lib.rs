//! Common parts of the fuzz targets: a slow model to hold the codes against, packets of a generation, packets of the
//! Internet whose checksums fit, what becomes of packets on their way, two ends that carry streams, a member of a
//! group, and timers that go off.

pub mod change;
pub mod elimination;
pub mod internet;
pub mod member;
pub mod offer;
pub mod streams;
pub mod timers;
