//! Settings of a member: of what it sends, and of what it receives.

use hopcast_core::{Duration, Rate};

use super::parity::LENGTH;
use super::wire::{Data, HEADER_LEN};
use crate::{Join, Order, Proactive, Subscription};

/// Settings of a source.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceConfig {
    /// Maximum bytes of a packet of PGM, headers and options included.
    pub packet: u16,
    /// Packets of a transmission group: a power of two, 2 to 128. Large groups need fewer repairs, small ones less
    /// arithmetic and less delay.
    pub group: u16,
    /// Parity packets that a transmission group can have; with its packets at most 255. None: lost packets are
    /// repeated.
    pub parity: u16,
    /// Parity that is sent before anybody asks.
    pub proactive: Proactive,
    /// How fast it sends.
    pub rate: RateControl,
    /// Bytes that lower layers add to each packet, which its rate counts.
    pub overhead: u16,
    /// Maximum bytes held for repairs. Too few, and receivers that ask late lose data, or slow the source down.
    pub window: u64,
    /// Time for which a receiver that asks for the oldest data keeps the window from moving on. Too short loses data of
    /// receivers that hear little, too long lets one of them stop the others.
    pub patience: Duration,
    /// Maximum time between two SPMs. Too long, and network elements and late receivers wait; each costs a packet.
    pub ambient: Duration,
    /// What a unit's payload is.
    pub framing: Framing,
    /// How late a program of a kernel may be woken without losing rate.
    pub slack: Duration,
    /// First sequence number; `None` for one at random.
    pub first: Option<u32>,
}

impl Default for SourceConfig {
    fn default() -> Self {
        Self {
            packet: 1452,
            group: 64,
            parity: 64,
            proactive: Proactive::Adaptive,
            rate: RateControl::Fixed(Rate::from_mbit(1)),
            overhead: 42,
            window: 16 << 20,
            patience: Duration::from_secs(5),
            ambient: Duration::from_secs(5),
            framing: Framing::Ours,
            slack: Duration::ZERO,
            first: None,
        }
    }
}

impl SourceConfig {
    /// Bytes of a packet that are no part of a datagram or stream: of headers and options of data, and those left free
    /// so that parity of it fits a packet too.
    pub fn overhead(&self, is_ipv6: bool) -> (u16, u16) {
        let control = match (self.rate, is_ipv6) {
            (RateControl::Fixed(_), _) => 0,
            (RateControl::Pgmcc { .. }, false) => CONGESTION_DATA,
            (RateControl::Pgmcc { .. }, true) => CONGESTION_DATA + 12,
        };
        let parity = match self.parity {
            0 => 0,
            parity if parity > self.group => LENGTH as u16 + PARITY_GROUP,
            _ => LENGTH as u16,
        };
        let unit = if self.framing == Framing::Ours { 1 } else { 0 };
        ((HEADER_LEN + Data::LEN) as u16 + control + unit, parity)
    }

    /// The same within the limits of the code and of the wire.
    #[must_use]
    pub(super) fn bounded(mut self) -> Self {
        self.packet = self.packet.max(MIN_PACKET);
        self.group = self.group.clamp(2, MAX_GROUP).next_power_of_two();
        self.parity = self.parity.min(MAX_SYMBOLS - self.group);
        self
    }
}

/// Bytes of OPT_PGMCC_DATA with the list's own, with an address of IPv4.
const CONGESTION_DATA: u16 = 20;
/// Bytes of OPT_PARITY_GRP with the list's own.
const PARITY_GROUP: u16 = 12;
/// Bytes of a packet with all options that data can have, and of a few of payload.
const MIN_PACKET: u16 = 128;
/// Largest transmission group: OpenPGM's, of which as many parity packets fit the code's 255 symbols.
pub(super) const MAX_GROUP: u16 = 128;
/// Symbols of a block over GF(2^8) (RFC 5510, section 8.1).
pub(super) const MAX_SYMBOLS: u16 = 255;

/// How fast a source sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateControl {
    /// At this rate, bytes of lower layers included.
    Fixed(Rate),
    /// By a window, as a TCP would to the receiver with the worst path (PGMCC).
    Pgmcc {
        /// Maximum rate.
        max: Rate,
    },
}

/// What the payload of a unit (APDU) is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// A header of our own, then the bytes: for messages with names, and for streams. The source says so in its SPMs.
    Ours,
    /// The bytes alone, as others have it. Streams are cut into units of a packet each, and names are left out.
    Plain,
}

/// Settings of a receiver.
#[derive(Clone, Debug, PartialEq)]
pub struct ReceiverConfig {
    /// The part that it asks for of what was sent before it came.
    pub join: Join,
    /// The order of whole messages. Streams and datagrams have their source's.
    pub order: Order,
    /// Whether it sends nothing: it takes what comes, and gives up the rest.
    pub silent: bool,
    /// Sources it keeps apart at a time; the one that was silent for longest makes room.
    pub sources: usize,
    /// Bytes it holds of each source for what is incomplete.
    pub window: u64,
    /// Largest unit it takes, in bytes.
    pub max_unit: u64,
    /// Requests in vain after which something is given up: that nobody confirms, and that are confirmed and not
    /// answered.
    pub retries: u16,
    /// Maximum back-off of a request, in round trips; `None` for one that follows the size of the group.
    pub backoff: Option<u8>,
    /// Number of receivers that back-offs are made for.
    pub group_size: u64,
    /// Time within which lost packets are gathered into one request while more come; `None` for that of eight packets,
    /// up to 100 ms. Too long delays repairs, too short costs a request for each.
    pub gather: Option<Duration>,
    /// Round-trip time until one is measured.
    pub round_trip: Duration,
    /// UDP port of sources for packets to them; `None` for the one that theirs come from.
    pub unicast_port: Option<u16>,
    /// Whether requests go to the group too, for others to hear.
    pub multicast_naks: bool,
}

impl Default for ReceiverConfig {
    fn default() -> Self {
        Self {
            join: Join::Object,
            order: Order::AsComplete,
            silent: false,
            sources: 16,
            window: 16 << 20,
            max_unit: 1 << 30,
            retries: 50,
            backoff: None,
            group_size: 10,
            gather: None,
            round_trip: Duration::from_millis(100),
            unicast_port: None,
            multicast_naks: false,
        }
    }
}

impl From<Subscription> for ReceiverConfig {
    fn from(asked: Subscription) -> Self {
        Self { join: asked.join, silent: !asked.is_reliable, order: asked.order, ..Self::default() }
    }
}
