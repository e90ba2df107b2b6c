//! A sender of Xcast: it puts its receivers into the list of each packet.
//!
//! [`Sender`] has a datagram port above: what is for the group's address goes to all receivers, and all else passes
//! between there and `Below(0)`. Its packets leave by `Below(1)`, a hook of the host, as those of a
//! [router](super::router) that is asked to send them: so a sender whose first router knows no Xcast sends tunnels, or
//! plain packets.
//!
//! One datagram may be several packets: a list has at most [`Config::max`] receivers, and no more than fit the MTU
//! beside the datagram, as in GXcast. Receivers may [come](Sender::join) and [go](Sender::leave), at once.
//!
//! The list of ports is not written: all receivers of a sender listen on one port.

mod machine;
#[cfg(test)]
mod tests;

pub use machine::Sender;

use super::wire::overhead;

/// The settings of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Maximum number of receivers in a packet, 1 to 125. Default: 20, which take 352 bytes. With fewer, there are more
    /// packets; with more, each has a longer header.
    pub max: usize,
    /// MTU of the route, in bytes. Default: 1500. More than it is, and packets are lost; less, and there are more.
    pub mtu: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self { max: 20, mtu: 1500 }
    }
}

impl Config {
    /// Bytes that a list adds to a packet at most, in a tunnel: the MTU above is that much less than the one below.
    pub const fn overhead(&self) -> usize {
        overhead(self.max, false) + hopcast_wire::ip::V6_HEADER
    }

    /// Number of receivers whose list fits the MTU beside a segment of this length, in a tunnel; at least one, whose
    /// packet has no list.
    pub(crate) fn listed(&self, segment: usize) -> usize {
        let fits =
            |&count: &usize| 2 * hopcast_wire::ip::V6_HEADER + overhead(count, false) + segment <= self.mtu;
        (2..=self.max.min(super::wire::MAX_LIST)).rev().find(fits).unwrap_or(1)
    }
}
