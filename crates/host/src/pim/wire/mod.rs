//! The messages of PIM version 2 (RFC 7761 section 4.9) that source trees need: Hello, Join/Prune and Assert.
//!
//! ```text
//!  0: version 2 | type     1: reserved     2: checksum     4: body ...
//! ```
//!
//! A message is a packet of IP protocol 103 with a hop limit of 1, to the group of all PIM routers. The checksum covers
//! the message, and in IPv6 the pseudo-header too. [`parse`] accepts what [`prepend`] writes, and of others' messages
//! all that RFC 7761 allows in them; every other byte is refused, with a [reason](Refusal).

mod address;
mod hello;
mod join_prune;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hopcast_core::Buffer;
use hopcast_core::bytes::Reader;
use hopcast_wire::ip::{self, Header, Version};

use super::refusal::Refusal;
use crate::icmp::is_one_host;
use crate::link_message::{HOP_LIMIT, check, content};
pub use hello::{Hello, LanDelay};
pub(super) use join_prune::room;
pub use join_prune::{GroupEntry, JoinPrune, MAX_RECORDS};

/// Number of the protocol among those of IP.
pub const PROTOCOL: u8 = 103;

/// Version of the messages.
const VERSION: u8 = 2;
/// Length of the header, in bytes.
const HEADER: usize = 4;

/// Types of messages (section 4.9).
const HELLO: u8 = 0;
const JOIN_PRUNE: u8 = 3;
const ASSERT: u8 = 5;

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// A router announces itself on a link.
    Hello(Hello),
    /// A router asks its upstream neighbour to send what it lists, or to stop.
    JoinPrune(JoinPrune),
    /// A router that forwards to a link says how far it is from a sender.
    Assert(Assert),
}

/// The group of all PIM routers of a link, to which messages are sent.
pub const fn all_routers(version: Version) -> IpAddr {
    match version {
        Version::V4 => IpAddr::V4(Ipv4Addr::new(224, 0, 0, 13)),
        Version::V6 => IpAddr::V6(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0xd)),
    }
}

/// An Assert for a source and group (section 4.9.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assert {
    /// The group.
    pub group: IpAddr,
    /// The sender of its packets; unspecified in an Assert of a shared tree.
    pub source: IpAddr,
    /// Whether it is about a shared tree (the R bit).
    pub shared_tree: bool,
    /// Preference of the routing protocol of the sender's route, 31 bits; lower is better.
    pub preference: u32,
    /// Metric of that route; lower is better.
    pub metric: u32,
}

impl Assert {
    /// Preference and metric that lose against any other, by which a router withdraws (section 4.6.3).
    pub const CANCEL: (u32, u32) = (0x7fff_ffff, u32::MAX);

    fn parse(reader: &mut Reader<'_>, version: Version) -> Result<Self, Refusal> {
        let group = address::group(reader, version)?;
        let source = address::unicast(reader, version)?;
        let word = reader.u32("metric preference")?;
        let metric = reader.u32("metric")?;
        let shared_tree = word >> 31 == 1;
        if !shared_tree && !is_one_host(source) {
            return Err(Refusal::Listed);
        }
        Ok(Self { group, source, shared_tree, preference: word & 0x7fff_ffff, metric })
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        address::put_group(bytes, self.group);
        address::put_unicast(bytes, self.source);
        let preference = self.preference & 0x7fff_ffff | u32::from(self.shared_tree) << 31;
        bytes.extend(preference.to_be_bytes());
        bytes.extend(self.metric.to_be_bytes());
    }
}

/// Reads the message in a packet of [`PROTOCOL`].
///
/// # Errors
/// The reason why the packet is refused.
pub fn parse(packet: &[u8], header: &Header) -> Result<Message, Refusal> {
    let message = content(packet, header, all_routers(header.version))?;
    let mut reader = Reader::new(message);
    let [first, _, _, _] = reader.array::<HEADER>("header")?;
    if first >> 4 != VERSION {
        return Err(Refusal::Version);
    }
    if check(PROTOCOL, header.source, header.destination, message) != 0 {
        return Err(Refusal::Checksum);
    }
    let parsed = match first & 0xf {
        HELLO => Message::Hello(Hello::parse(&mut reader, header.version)?),
        JOIN_PRUNE => Message::JoinPrune(JoinPrune::parse(&mut reader, header.version)?),
        ASSERT => Message::Assert(Assert::parse(&mut reader, header.version)?),
        _ => return Err(Refusal::Type),
    };
    if reader.is_empty() { Ok(parsed) } else { Err(Refusal::Trailing) }
}

/// Puts a message and its IP header, from an address of a router on its link, in front of what `packet` holds, which is
/// to be empty.
///
/// # Panics
/// If the message has addresses of another version than `own`, or is longer than a packet can be.
pub fn prepend(packet: &mut Buffer, own: IpAddr, message: &Message) {
    let to = all_routers(Version::of(own));
    let mut bytes = vec![0; HEADER];
    let kind = match message {
        Message::Hello(hello) => {
            hello.write(&mut bytes);
            HELLO
        }
        Message::JoinPrune(list) => {
            list.write(&mut bytes);
            JOIN_PRUNE
        }
        Message::Assert(assert) => {
            assert.write(&mut bytes);
            ASSERT
        }
    };
    bytes[0] = VERSION << 4 | kind;
    let sum = check(PROTOCOL, own, to, &bytes);
    bytes[2..HEADER].copy_from_slice(&sum.to_be_bytes());
    packet.prepend(bytes.len()).copy_from_slice(&bytes);
    ip::prepend(packet, own, to, PROTOCOL, HOP_LIMIT, 0);
}
