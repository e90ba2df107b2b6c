//! The originator messages that are to be sent: the node's own, and those that it forwards, which wait for each other
//! for a while and leave in one packet.

use std::collections::BTreeMap;

use hopcast_core::{Duration, Instant};

use crate::routing::PRIMARY;
use crate::wire::Header;
use crate::wire::ogm::{DIRECT_LINK, Ogm};

/// Maximum length of a packet of several messages, in bytes (`BATADV_MAX_AGGREGATION_BYTES`).
const MAX_BYTES: usize = 512;
/// Maximum number of messages in a packet (`BATADV_MAX_AGGREGATION_PACKETS`).
const MAX_MESSAGES: usize = 32;
/// Time for which a message that is forwarded waits for others (`BATADV_MAX_AGGREGATION_MS`).
const HOLD: Duration = Duration::from_millis(100);
/// Maximum number of packets of forwarded messages that wait (`BATADV_BATMAN_QUEUE_LEN`).
const MAX_PACKETS: usize = 256;

/// A packet of messages that waits.
#[derive(Debug)]
pub(super) struct Packet {
    pub(super) out: usize,
    /// Interface by which its messages came, or of which they are.
    pub(super) interface: usize,
    /// Whether the first message is the node's own.
    pub(super) own: bool,
    /// The messages as they are sent, one behind the other.
    pub(super) bytes: Vec<u8>,
    pub(super) messages: usize,
    /// Flags and hops of the first message.
    first: (u8, u8),
}

/// A message that is to be sent.
pub(super) struct Message<'a> {
    pub(super) ogm: Ogm,
    pub(super) containers: &'a [u8],
    pub(super) out: usize,
    pub(super) interface: usize,
}

/// The packets, in the order in which they are sent.
pub(super) struct OgmQueue {
    packets: BTreeMap<(Instant, u64), Packet>,
    /// Number of packets that were ever put there.
    ever: u64,
    forwarded: usize,
    aggregates: bool,
}

impl OgmQueue {
    pub(super) const fn new(aggregates: bool) -> Self {
        Self { packets: BTreeMap::new(), ever: 0, forwarded: 0, aggregates }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.packets.first_key_value().map(|(&(at, _), _)| at)
    }

    /// The first packet that is due.
    pub(super) fn due(&mut self, now: Instant) -> Option<Packet> {
        let entry = self.packets.first_entry().filter(|entry| entry.key().0 <= now)?;
        let packet = entry.remove();
        self.forwarded -= usize::from(!packet.own);
        Some(packet)
    }

    /// Adds a message of the node's own, which leaves at that time, alone or with others that join it.
    pub(super) fn push_own(&mut self, at: Instant, message: &Message<'_>) {
        self.insert(at, message, true);
    }

    /// Adds a message that is forwarded, to leave at that time or with another packet soon after it. Returns whether
    /// there was room.
    pub(super) fn push_forwarded(&mut self, at: Instant, message: &Message<'_>, mtu: usize) -> bool {
        if !self.aggregates {
            return self.forwarded < MAX_PACKETS && self.insert(at, message, false);
        }
        let soon = self.packets.range_mut((at, u64::MAX)..=(at + HOLD, u64::MAX));
        let joined = soon.map(|(_, packet)| packet).find(|packet| packet.takes(message, mtu));
        if let Some(packet) = joined {
            packet.append(message);
            return true;
        }
        self.forwarded < MAX_PACKETS && self.insert(at + HOLD, message, false)
    }

    fn insert(&mut self, at: Instant, message: &Message<'_>, own: bool) -> bool {
        let mut packet = Packet {
            out: message.out,
            interface: message.interface,
            own,
            bytes: Vec::with_capacity(Ogm::LEN + message.containers.len()),
            messages: 0,
            first: (message.ogm.flags, message.ogm.ttl),
        };
        packet.append(message);
        self.packets.insert((at, self.ever), packet);
        self.ever += 1;
        self.forwarded += usize::from(!own);
        true
    }
}

impl Packet {
    fn append(&mut self, message: &Message<'_>) {
        let mut ogm = message.ogm;
        if message.out != message.interface {
            // The originator is not on the link that it leaves by.
            ogm.flags &= !DIRECT_LINK;
        }
        let start = self.bytes.len();
        self.bytes.resize(start + Ogm::LEN, 0);
        ogm.emit(&mut self.bytes[start..]);
        self.bytes.extend(message.containers);
        self.messages += 1;
    }

    /// Whether a message may leave in this packet: there is room, both leave by the same interface, and both go either
    /// through the whole mesh or to neighbours alone.
    fn takes(&self, message: &Message<'_>, mtu: usize) -> bool {
        let len = self.bytes.len() + Ogm::LEN + message.containers.len();
        if self.out != message.out || len > mtu.min(MAX_BYTES) || self.messages >= MAX_MESSAGES {
            return false;
        }
        let direct = message.ogm.flags & DIRECT_LINK != 0;
        let (first_direct, first_ttl) = (self.first.0 & DIRECT_LINK != 0, self.first.1);
        let of_secondary = self.own && self.interface != PRIMARY;
        if !direct && !first_direct && first_ttl != 1 && !of_secondary {
            return true;
        }
        let for_neighbours = first_direct || of_secondary;
        direct && message.ogm.ttl == 1 && self.interface == message.interface && for_neighbours
    }
}
