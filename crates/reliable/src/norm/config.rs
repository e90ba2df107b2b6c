//! Settings of a member: of what it sends, and of what it receives.

use hopcast_core::{Duration, Rate};

use super::wire::NodeId;
use crate::{Join, Order, Proactive, Subscription};

/// Settings of a sender.
#[derive(Clone, Debug, PartialEq)]
pub struct SenderConfig {
    /// Bytes of a symbol. Of a stream, eight of them are a header.
    pub segment: u16,
    /// Maximum number of source symbols of a block, 1 to 254. Large blocks need fewer repairs, small ones less
    /// arithmetic and less delay.
    pub source: u16,
    /// Parity symbols that a block can have; with the source symbols at most 255. None: lost symbols are repeated.
    pub parity: u16,
    /// Parity that is sent before anybody asks.
    pub proactive: Proactive,
    /// How fast it sends.
    pub rate: RateControl,
    /// Bytes that lower layers add to each datagram, which a fixed rate counts.
    pub overhead: u16,
    /// Group round-trip time that is assumed until a receiver has answered. A value too small costs a few NACKs, one
    /// too large delays the first repairs.
    pub grtt: Duration,
    /// Maximum group round-trip time, whatever receivers say.
    pub max_grtt: Duration,
    /// Back-off factor of NACKs, in GRTT, 0 to 15; `None` for one that follows the size of the group.
    pub backoff: Option<u8>,
    /// Number of receivers; `None` where nobody knows.
    pub group_size: Option<u64>,
    /// Number of times that NORM_CMD(FLUSH) is sent at the end (NORM_ROBUST_FACTOR of RFC 5740, section 4.2.3), and of
    /// rounds of repairs of a block after which other blocks and new data go first.
    pub robust: u16,
    /// Maximum number of bytes of a stream that are held for repairs; at least two blocks are. Held is what is sent
    /// within the time in which repairs can be asked for, or 4 MiB if that is more; at most 4 MiB more wait to be sent.
    /// A buffer below that slows the stream down: 1 Gbit/s at a round trip of half a second takes 512 MiB. Objects that
    /// are no streams have as much together, or one of them more; others wait for the time in which repairs of those
    /// that are held can be asked for.
    pub buffer: u64,
    /// Maximum number of objects held for repairs. Small ones wait for it: 4096 are 1,700 a second at a round trip of
    /// 0.1 s in a large group.
    pub objects: usize,
    /// Receivers that are asked to acknowledge.
    pub ackers: Vec<NodeId>,
    /// Whether receivers tell only the sender what they lack, which then tells the group.
    pub unicast_feedback: bool,
    /// How late a program of a kernel may be woken without losing rate.
    pub slack: Duration,
}

impl Default for SenderConfig {
    fn default() -> Self {
        Self {
            segment: 1400,
            source: 64,
            parity: 64,
            proactive: Proactive::Adaptive,
            rate: RateControl::Fixed(Rate::from_mbit(1)),
            overhead: 42,
            grtt: Duration::from_millis(100),
            max_grtt: Duration::from_secs(10),
            backoff: None,
            group_size: None,
            robust: 20,
            buffer: 512 << 20,
            objects: 4096,
            ackers: Vec::new(),
            unicast_feedback: false,
            slack: Duration::ZERO,
        }
    }
}

impl SenderConfig {
    /// The same within the limits of the code and of the wire.
    #[must_use]
    pub(super) fn bounded(mut self) -> Self {
        self.segment = self.segment.max(MIN_SEGMENT);
        self.source = self.source.clamp(1, MAX_SYMBOLS - 1);
        self.parity = self.parity.min(MAX_SYMBOLS - self.source);
        self.objects = self.objects.clamp(1, MAX_OBJECTS);
        self.ackers.truncate(MAX_ACKERS.min(usize::from(self.segment) / 4));
        self
    }
}

/// Bytes of a stream's header and of one byte.
const MIN_SEGMENT: u16 = 16;
/// Symbols of a block over GF(2^8) (RFC 5510, section 8.1).
pub(super) const MAX_SYMBOLS: u16 = 255;
/// Half of what 16 bits can number, so that the order of two objects is known.
const MAX_OBJECTS: usize = 1 << 14;
/// Chosen: what a command of a segment's length can name.
const MAX_ACKERS: usize = 300;

/// How fast a sender sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateControl {
    /// At this rate, bytes of lower layers included.
    Fixed(Rate),
    /// As a TCP would to the receiver with the worst path (RFC 5740, section 5.5.2; RFC 4654), bytes of NORM's packets
    /// alone (RFC 5348, section 3.1).
    Tcp {
        /// The rate at the start.
        initial: Rate,
        /// Minimum rate, even where a TCP would send less.
        min: Rate,
        /// Maximum rate.
        max: Rate,
    },
}

/// Settings of a receiver.
#[derive(Clone, Debug, PartialEq)]
pub struct ReceiverConfig {
    /// The part that it asks for of what was sent before it came.
    pub join: Join,
    /// Whether it sends nothing: it decodes what it can, and gives up the rest.
    pub silent: bool,
    /// Whether it tells only the sender what it lacks.
    pub unicast_feedback: bool,
    /// Senders that it receives at a time. Each keeps its place while something of it is incomplete and gets on; others
    /// wait, and are asked for all that they have sent meanwhile when they have one.
    pub senders: usize,
    /// Bytes it holds of each sender for what is incomplete.
    pub buffer: u64,
    /// Largest object it takes, in bytes.
    pub max_object: u64,
    /// Rounds in which nothing came of its requests for an object, or block of a stream, before it gives that up.
    pub robust: u16,
    /// Whether a stream is the messages that our own senders put there, or bytes.
    pub framing: Framing,
    /// The order of objects. What waits for others counts to [`max_object`](Self::max_object).
    pub order: Order,
}

impl Default for ReceiverConfig {
    fn default() -> Self {
        Self {
            join: Join::Object,
            silent: false,
            unicast_feedback: false,
            senders: 16,
            buffer: 16 << 20,
            max_object: 1 << 30,
            robust: 20,
            framing: Framing::Bytes,
            order: Order::AsComplete,
        }
    }
}

impl From<Subscription> for ReceiverConfig {
    fn from(asked: Subscription) -> Self {
        Self { join: asked.join, silent: !asked.is_reliable, order: asked.order, ..Self::default() }
    }
}

/// The framing of the bytes of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Messages as our own senders put them there, each after its length, if one begins in the first symbol that
    /// arrives; otherwise bytes. A sender of others may mark messages too, and put no lengths before them.
    Detect,
    /// Bytes, whatever the sender marks.
    Bytes,
}
