//! Reliable multicast: machines that bring the same bytes to every member of a group.
//!
//! Each protocol has a folder: [`norm`] is NORM (RFC 5740), [`pgm`] is PGM (RFC 3208), [`nakack`] the stack of JGroups
//! around NAKACK, and [`disservice`] is for networks that are cut again and again. The other modules are what they
//! share.
//!
//! # The common face
//!
//! A member of a group is one [`Machine`](hopcast_core::Machine) with a datagram port below and one port above. Whoever
//! uses it need not know which protocol it is:
//!
//! - **The group** is an address in the member's settings. Joining it is not the protocol's business but that of the
//!   delivery below (`hopcast_core::Membership`), so a protocol runs over IP multicast, a broadcast or copies alike.
//! - **Down** come messages, files and streams, in any mixture that the protocol allows:
//!   [`Item::Datagram`](hopcast_core::Item::Datagram) is a message that fits a datagram,
//!   [`Item::Message`](hopcast_core::Item::Message) a unit of any size, which is a file if it has a name, and
//!   [`Item::Stream`](hopcast_core::Item::Stream) a stream of bytes from this member to all others.
//! - **Up** go the same. A datagram has its sender's address as `remote`, a message as `sender`, and a stream in its
//!   `Open`. A stream goes one way, and its writer is granted credit as the protocol sends: a member that cannot follow
//!   is given up, or slows the sender down, as the protocol says.
//! - **A [`Subscription`]** says what a member asks for: the [order](Order), what was sent [before it came](Join), and
//!   whether what is lost is asked for again.
//! - **The [`statistics`]** have the same names for all: bytes by [kind](statistics::Kind), requests, deliveries.

pub mod backoff;
pub mod disservice;
mod down_streams;
pub mod equation;
pub mod group_size;
pub mod grtt;
pub mod loss_events;
mod member_id;
pub mod nakack;
pub mod norm;
mod out_streams;
pub mod pgm;
mod proactive;
mod round_trip;
mod runs;
pub mod statistics;
mod subscription;
#[cfg(test)]
mod testing;
mod unit_credit;
mod up_streams;

pub use member_id::MemberId;
pub use proactive::Proactive;
pub use subscription::{Join, Order, Subscription};
