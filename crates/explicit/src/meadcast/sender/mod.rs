//! A MEADcast sender (thesis, section 4.3): it finds the routers on the way to its receivers, and sends them data in as
//! few packets as these allow.
//!
//! [`Sender`] has a packet or datagram port above ([`Item::Packet`](hopcast_core::Item::Packet), as a TUN device gives
//! them, or [`Item::Datagram`](hopcast_core::Item::Datagram)): what is for the group's address goes to all receivers,
//! and all else passes between there and `Below(0)`. Its packets leave by `Below(1)`, on which the responses arrive: as
//! packets, or as transits of a [hook](super::router::HOOKS), which are all handed back: a node may have several
//! senders, each of which hears the others' responses.
//!
//! - **Discovery** ([`Config::delay`], `interval`, `timeout`): a request goes to each receiver, and for a time the
//!   routers on the way respond, each with its distance. From what they say a [`Tree`] is built anew.
//! - **Grouping** ([`Groups`]): routers with few receivers are taken out of the tree, and the others' receivers are put
//!   into lists. Until the first discovery has ended all receivers are served by unicast, and for ever those whose
//!   routers do not take part.
//! - **Data** goes first by unicast, and then in a packet for each list.
//!
//! Receivers may [come](Sender::join) and [go](Sender::leave), which the thesis leaves for later, by a list that
//! changes or a [directory](super::directory): one that comes is served by unicast until the next discovery, or one of
//! its own ([`Config::ask_joiners`]).
//!
//! # Bounds
//!
//! Responses count while they are expected, and only about receivers, each of which has one router at each of 63
//! distances: the first that named itself, unless a [nonce or key](super::Key) says that it is forged.
//!
//! # Departures
//!
//! - Requests of more than 500 receivers are sent at a rate; the thesis has 100 receivers.
//! - The tree is one of paths, and not of routers: see [`Tree`]. Where a response was lost, the path of another
//!   receiver that agrees with the rest fills the gap.
//! - Routers with fewer receivers than `min-leaves` and fewer routers below than `min-routers` leave the tree, and
//!   their receivers go to the router above, as the options' help has it. Of those that stay for their routers, few
//!   receivers are served by unicast, as in the thesis' fifth example.
//! - A response from a receiver, which would be in a list twice, does not count.
//! - The list of ports is not written: all receivers of a sender listen on one port.

mod config;
mod counters;
mod discovery;
mod grouping;
mod machine;
#[cfg(test)]
mod tests;
mod tree;

pub use config::{Config, Grouping};
pub use grouping::{Group, Groups};
pub use machine::Sender;
pub use tree::Tree;
