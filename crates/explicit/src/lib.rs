//! Explicit multicast: a packet carries the list of its receivers, and routers copy it where their paths part.
//!
//! Routers hold no state of groups, which IP multicast needs for each, but for the designated routers of Xcast+: a list
//! costs bytes in each packet instead, so it is for many small groups.
//!
//! | module | what |
//! |---|---|
//! | [`meadcast`] | MEADcast: receivers are plain hosts, and any set of routers takes part |
//! | [`xcast`] | Xcast (RFC 5058): every router sorts the list by next hop; Xcast+, for designated routers |
//!
//! The other modules are what these share: the [reasons](refusal) why a packet is dropped, the [list of ports](ports),
//! and how a packet is addressed to another receiver ([`transport`]).
//!
//! Machines know no routes and no interfaces beyond what they are given.
//!
//! Lists are not authenticated. A forged list makes at most as many packets as it has entries, and two other things may
//! make more of one packet: a request of MEADcast's discovery makes a response at each router on its path, and at a
//! designated router of Xcast+ a packet for a group makes a copy for each interface with members, and for each router
//! that has registered. Routers bound the rate of copies and of responses.
//!
//! All of them can be chosen in scenarios, as deliveries and services; MEADcast and Xcast on kernels too.

mod address;
mod bitmap;
mod header;
pub mod meadcast;
pub mod ports;
pub mod refusal;
#[cfg(test)]
mod testing;
pub mod transport;
pub mod xcast;

pub use bitmap::Bitmap;
pub use refusal::Refusal;

use hopcast_core::Pace;

/// A limit of so many packets in a second, a tenth of them at once.
fn pace(per_second: u32) -> Pace {
    Pace::new(per_second.into(), u64::from(per_second / 10).max(1))
}
