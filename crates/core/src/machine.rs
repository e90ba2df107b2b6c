//! The contract: a protocol is a [`Machine`] with ports.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use crate::buffer::Buffer;
use crate::stream::{StreamId, StreamItem};
use crate::time::Instant;
use crate::units::{Dbm, Rate};

/// A protocol, an application or a whole host: a state machine without I/O.
///
/// # The contract
///
/// It is given the time and what arrived ([`handle`](Machine::handle)), says what to hand over next
/// ([`poll`](Machine::poll)), and says when to wake it ([`deadline`](Machine::deadline)). Whoever runs it, be it the
/// virtual-time engine, a live runner or an [`Assembly`](crate::Assembly) of several machines, does this:
///
/// 1. call `handle` for one thing that arrived, or `wake` once the deadline has been reached;
/// 2. call `poll` until it returns `None`, and deliver what it gave in that order;
/// 3. read `deadline`, and sleep until then or until something arrives.
///
/// A machine never sees time run backwards, is never called between steps 1 and 2 with something else, and may be
/// woken late or without cause: `wake` looks at `now`, not at why it was called. A new machine that has something to
/// do first has a deadline of [`Instant::ZERO`]. After step 2 the deadline lies after `now`, or is `None` when nothing
/// is scheduled. It is never a far future that stands for "nothing".
///
/// A machine draws its randomness from a [`Stream`](crate::random::Stream) it was given, and iterates only over
/// ordered collections, so that the same inputs at the same times give the same outputs.
pub trait Machine {
    /// `item` arrived on `port`.
    ///
    /// Items that a port cannot carry, and bytes that do not parse, are dropped and counted: nothing that arrives
    /// may panic, loop or make the machine grow without bound.
    fn handle(&mut self, now: Instant, port: Port, item: Item);

    /// The deadline has been reached, or may have been.
    fn wake(&mut self, now: Instant);

    /// The next item to hand over, and its port; `None` once there is nothing more.
    fn poll(&mut self, now: Instant) -> Option<(Port, Item)>;

    /// Time at which to call `wake`; `None` if only an arrival can give the machine something to do.
    fn deadline(&self) -> Option<Instant>;

    /// The machine's own figures, by name and cumulative since it began, for results and reports.
    fn counters(&self, _report: &mut dyn FnMut(&'static str, u64)) {}

    /// A number that rises whenever a counter does that says that something was dropped, was left to others or had
    /// arrived before; it may rise at other times too. `None` if the machine keeps none: whoever watches its losses
    /// reads all counters then, each time.
    fn discards(&self) -> Option<u64> {
        None
    }
}

/// One place where a machine plugs into another: a side and a number on that side.
///
/// An item on its way up to the application leaves by an `Above` port of the lower machine and arrives on a `Below`
/// port of the upper one. A host's `Below` ports are its interfaces, its `Above` ports what is bound on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Port {
    /// Towards the network.
    Below(u32),
    /// Towards the application.
    Above(u32),
}

/// An item that crosses a port, in either direction. A port carries one kind, which decides what it may be plugged
/// into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// Frame port: an Ethernet frame of one interface.
    Frame(Frame),
    /// Frame port, down: from now on, report the outcome of each frame that is handed down for one station, as
    /// [`Item::FrameStatus`]. A link without acknowledgements reports nothing.
    ReportFrameStatus,
    /// Frame port, up: the outcome of a frame that was handed down; only after [`Item::ReportFrameStatus`].
    FrameStatus(FrameStatus),
    /// Frame port, up: from now on, the longest packet that the link takes, in bytes without the Ethernet header.
    Mtu(u32),
    /// Packet port: an IP packet.
    Packet(Buffer),
    /// Packet port with the forward hook: a packet in transit; see [`Transit`].
    Transit(Transit),
    /// Datagram port: a UDP datagram to or from a host or a group.
    Datagram(Datagram),
    /// Datagram port: a membership in a group; see [`Membership`]. Frame port of a mesh, down: one behind it.
    Membership(Membership),
    /// Datagram port, up: this many datagrams more may be handed over, and none of them is refused. Grants add up. Only
    /// a machine that was set up to grants; any other takes or refuses each datagram as it comes.
    Credit(u64),
    /// Stream port: bytes in order, with back-pressure; see [`StreamItem`].
    Stream(StreamId, StreamItem),
    /// Message port: a unit of the application.
    Message(Message),
}

/// An Ethernet frame, from the destination address on: no preamble, no FCS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The frame's bytes.
    pub bytes: Buffer,
    /// Whether it was addressed to another station and only heard, on a port that asks for such frames.
    pub overheard: bool,
    /// Its reception, if the medium measures it; `None` from a wire, and of a frame on its way down.
    pub reception: Option<Reception>,
}

impl Frame {
    /// A frame to be sent, or one that came by a wire.
    pub const fn new(bytes: Buffer) -> Self {
        Self { bytes, overheard: false, reception: None }
    }
}

/// Reception of a frame, as a radio measured it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reception {
    /// Signal strength at the receiver, if the medium has one.
    pub signal: Option<Dbm>,
    /// Rate at which the frame was sent; `None` if that took no time.
    pub rate: Option<Rate>,
}

/// A frame that a machine sent to one station, with its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameStatus {
    /// The frame, as it was handed down.
    pub bytes: Buffer,
    /// Whether it was acknowledged.
    pub outcome: FrameOutcome,
    /// Number of transmissions, the first one included; of requests to send too, where no frame followed.
    pub transmissions: u32,
}

/// Outcome of a frame to one station: of all of its transmissions together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameOutcome {
    /// The station has acknowledged it.
    Acknowledged,
    /// It was sent as often as the link does, and no acknowledgement was heard: it may have arrived all the same.
    Unacknowledged,
    /// It was never sent: the queue was full, the link was down, or it was too large.
    Unsent,
}

/// A packet that a host would forward, or that is for the host and bears what a hook selects, given to a machine that
/// hooked itself into the host.
///
/// The machine answers on the same port, in the same drain, with none, one or several of these:
/// - *pass*, or *replace*: it hands the transit back, with its packet as it was or changed, and the host goes on with
///   it as if it had just arrived on `ingress`: the hooks behind this one see it, and then it is delivered or
///   forwarded;
/// - *send*: it hands a transit over whose `egress` names a neighbour or interfaces, and the host sends it there, past
///   all other hooks, with its hop limit decremented if it has an `ingress`;
/// - *consume*: it hands nothing back;
/// - *originate*: it hands over an [`Item::Packet`], which the host routes as its own.
///
/// Transits beyond [`MAX_ANSWERS`](crate::hook::MAX_ANSWERS) for one packet are dropped and counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transit {
    /// The IP packet as it arrived, hop limit not yet decremented.
    pub packet: Buffer,
    /// Number of the interface on which it arrived; `None` of a packet that was made on this host.
    pub ingress: Option<u32>,
    /// Where it is to leave; always [`Egress::Routes`] on the way up.
    pub egress: Egress,
}

impl Transit {
    /// A packet that arrived on an interface, or one to be treated as such.
    pub const fn arrived(packet: Buffer, ingress: u32) -> Self {
        Self { packet, ingress: Some(ingress), egress: Egress::Routes }
    }
}

/// Destination on the next link of a packet that a hook hands to its host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Egress {
    /// By the host's routes to its destination; a packet for the host itself is delivered.
    #[default]
    Routes,
    /// One neighbour on one interface, whatever the destination is.
    Neighbour {
        /// The number of the interface.
        interface: u32,
        /// The neighbour's address.
        address: IpAddr,
    },
    /// Every station of these interfaces that listens to the group that it is for: a copy on each.
    Group(Arc<[u32]>),
}

/// A UDP datagram with its addresses, as the machine that holds it sees them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// This end. On the way down, an unspecified address or port 0 leaves the choice to the host.
    pub local: SocketAddr,
    /// The other end, or a group on the way down.
    pub remote: SocketAddr,
    /// The UDP payload.
    pub payload: Buffer,
    /// Interface, hop limit and traffic class, for whom they matter.
    pub attributes: Attributes,
}

impl Datagram {
    /// A datagram whose attributes are the host's choice.
    #[inline]
    pub const fn new(local: SocketAddr, remote: SocketAddr, payload: Buffer) -> Self {
        Self { local, remote, payload, attributes: Attributes::CHOICE }
    }
}

/// Properties of a datagram beside its addresses: on the way up as they were on the wire, on the way down as they are
/// to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Number of the interface on which it arrived or is to leave; `None` for the host's choice.
    pub interface: Option<u32>,
    /// Hops that it had left, or may take; `None` for the host's choice.
    pub hop_limit: Option<u8>,
    /// DSCP in the upper six bits, ECN in the lower two.
    pub traffic_class: u8,
    /// Whether routers on the way are to look at it (Router Alert, RFC 2113 and 2711), of a protocol of IP without UDP,
    /// whose sockets cannot say so. On the way up, false.
    pub router_alert: bool,
}

impl Attributes {
    /// All attributes left to the host's choice.
    pub const CHOICE: Self = Self { interface: None, hop_limit: None, traffic_class: 0, router_alert: false };
}

/// A membership in a group of receivers.
///
/// Down, as a socket option: the machine on this port joins the group, or leaves it, and receives the group's
/// datagrams to its port in between. Up, for routers, bridges and meshes: an interface has members of the group, or has
/// none any more. Down to a mesh: its node's host or bridge has, or has none; the unspecified address is all groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Membership {
    /// The group's address.
    pub group: IpAddr,
    /// The only sender that is wanted; `None` for any.
    pub source: Option<IpAddr>,
    /// Number of the interface; `None` for every interface of the host.
    pub interface: Option<u32>,
    /// Whether there is a membership from now on.
    pub joined: bool,
}

/// A unit of the application: a file, a message, a frame of video.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The unit's number in its flow.
    pub id: u64,
    /// The unit's bytes.
    pub payload: Buffer,
    /// Its name, as its sender gave it, if it has one: of a file, the file's name. A sender may choose any bytes, so
    /// they must be checked before a path is made of them.
    pub name: Option<Arc<[u8]>>,
    /// Address of its sender, on the way up where there may be several; otherwise `None`.
    pub sender: Option<SocketAddr>,
}

impl Message {
    /// A unit without a name.
    pub const fn new(id: u64, payload: Buffer) -> Self {
        Self { id, payload, name: None, sender: None }
    }

    /// The message with a name.
    #[must_use]
    pub fn named(self, name: impl Into<Arc<[u8]>>) -> Self {
        Self { name: Some(name.into()), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_no_larger_than_a_datagram_needs() {
        assert!(size_of::<Message>() <= size_of::<Datagram>());
        assert!(size_of::<Item>() <= size_of::<Datagram>() + size_of::<usize>(), "{}", size_of::<Item>());
    }
}
