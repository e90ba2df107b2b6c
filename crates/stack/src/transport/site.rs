//! A transport between the sites of a deployment, or among those of a group: what a node asks of it.

use std::net::SocketAddr;

use hopcast_core::{Duration, Machine, Message, Rate, Stream};

/// A transport that carries packets or streams between sites, with relays at nodes between them.
pub trait SiteTransport {
    /// Bytes that it puts before the payload of a full datagram.
    fn overhead(&self) -> u16;

    /// The machine at a site.
    fn edge(&self, site: SiteEdge<'_>) -> Box<dyn Machine>;

    /// The machine at a node between two others.
    fn relay(&self, site: SiteRelay) -> Box<dyn Machine>;
}

/// One site, for [`SiteTransport::edge`].
pub struct SiteEdge<'a> {
    /// Maximum length of a datagram that fits every hop, in bytes.
    pub datagram: u16,
    /// Maximum delay of the node's wake-ups.
    pub slack: Duration,
    /// The machine's share of the node's memory.
    pub memory: MemoryShare,
    /// Streams at a time; `None` for the transport's own choice.
    pub streams: Option<u16>,
    /// This end and the other, by the names that the node gives them.
    pub ends: (SocketAddr, SocketAddr),
    /// Next hops; several are disjoint routes that share the load.
    pub neighbours: &'a [SocketAddr],
    /// Its random stream.
    pub random: Stream,
}

/// One node between two others, for [`SiteTransport::relay`].
pub struct SiteRelay {
    /// Maximum length of a datagram that fits every hop, in bytes.
    pub datagram: u16,
    /// Maximum delay of the node's wake-ups.
    pub slack: Duration,
    /// The machine's share of the node's memory.
    pub memory: MemoryShare,
    /// The node itself.
    pub address: SocketAddr,
    /// The two neighbours.
    pub between: [SocketAddr; 2],
    /// Its random stream.
    pub random: Stream,
}

/// The share of one machine in a node's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryShare {
    /// Bytes of batches, each way.
    pub batches: u64,
    /// Bytes of streams that wait to be sent.
    pub queue: u64,
}

/// How a transport serves the members of a group of sites.
#[derive(Clone, Copy)]
pub enum GroupService<'a> {
    /// The members that are there hear each other.
    Direct(&'a dyn GroupTransport),
    /// Any member holds what it hears, and brings it to others later.
    StoreAndForward(&'a dyn StoreAndForward),
}

/// A transport that brings datagrams and messages to every other member of a group of sites.
pub trait GroupTransport {
    /// The machine at a member. Above it are datagrams, which arrive in their sender's order, and messages, which
    /// arrive whole, in any order; each with its sender's address. Its own datagrams for [`GroupMember::group`] are for
    /// every other member.
    fn member(&self, member: GroupMember) -> Box<dyn Machine>;
}

/// One member of a group, for [`GroupTransport::member`].
pub struct GroupMember {
    /// Maximum length of a datagram that fits the paths, in bytes.
    pub datagram: u16,
    /// Bytes that lower layers add to each datagram, which its rate counts.
    pub overhead: u16,
    /// Maximum delay of the node's wake-ups.
    pub slack: Duration,
    /// Bytes that it may hold: of what it sent, and of what it receives.
    pub memory: u64,
    /// Its address.
    pub local: SocketAddr,
    /// The group's address.
    pub group: SocketAddr,
    /// Its number in the group, unlike that of any other member, and not 0.
    pub number: u32,
    /// The other members: the number of each, and the address by which this one knows it. One may have another address
    /// at each of the others.
    pub others: Vec<(u32, SocketAddr)>,
    /// Maximum length of a message, in bytes.
    pub message: u64,
    /// The rate at which it sends, headers of all layers included; `None` for the transport's own choice.
    pub rate: Option<Rate>,
    /// Its random stream.
    pub random: Stream,
}

/// A transport whose members hold messages for each other, so that one outlives its sender and crosses a network that
/// is cut.
pub trait StoreAndForward {
    /// The machine at a member. Above it are messages: down those to publish, up those of others, each once. Above its
    /// second port are records: up those that a store is to keep, each a message with its key as its name, or without a
    /// payload to be taken away; down those of earlier runs, before anything else. Its datagrams for
    /// [`GroupMember::group`] are for all that it can reach.
    fn member(&self, member: StoringMember) -> Box<dyn Holder>;

    /// Bytes that a member of this memory holds at most, and the maximum length of a message, in bytes.
    fn room(&self, memory: u64) -> (u64, u64);
}

/// One member of a group that stores and forwards, for [`StoreAndForward::member`].
pub struct StoringMember {
    /// The settings of any member. Who the others are is not used, since any member's messages may come from any
    /// other.
    pub member: GroupMember,
    /// Number of the group: messages of another are not handed up.
    pub group: u32,
    /// Whether messages are handed up, and not held for others only.
    pub subscribes: bool,
    /// Whether the option for the order counts; otherwise each message is handed up as soon as it is whole.
    pub in_order: bool,
    /// The number of a site by its name, for options that name sites.
    pub number_of: fn(&str) -> u32,
}

/// A machine that holds messages.
pub trait Holder: Machine {
    /// The amounts that it holds.
    fn holding(&self) -> Holding;

    /// Sends at this rate from now on, headers of all layers included.
    fn set_rate(&mut self, rate: Rate);

    /// A record as it is some time after it was handed out; `None` if its message has expired.
    fn aged(&self, record: Message, by: Duration) -> Option<Message>;
}

/// Messages that a machine holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holding {
    /// Bytes that it has published and not sent yet.
    pub unsent: u64,
    /// Number of messages of which it holds something.
    pub messages: u64,
    /// Bytes of memory that they take.
    pub bytes: u64,
}
