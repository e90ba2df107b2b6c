//! The settings of a session: the shape of its batches, how it repairs, and its bounds.

use hopcast_core::Duration;

/// The settings of an edge or a relay. Edges settle the shape, which relays learn; the rest is each node's own.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The number of symbols of a batch, M. Default: 16.
    ///
    /// Small batches carry short vectors but, without rank feedback, waste more; large ones cost arithmetic in
    /// proportion, and delay without feedback.
    pub batch: BatchSize,
    /// The number of symbols of a block of the outer code, K: a multiple of the batch, below 65,536. Default: 256,
    /// which is 13 ms at 220 Mbit/s. It matters without rank feedback: small blocks need more on top, since what
    /// arrives of them varies more; large ones delay what is missing until their end, and take memory.
    pub block: u16,
    /// Maximum UDP payload that fits every hop, in bytes. Default: 1472, a full frame of Ethernet under IPv4.
    ///
    /// Too large, and full datagrams are lost or fragmented; too small, and headers eat the rate.
    pub datagram: u16,
    /// Maximum number of batches that a node holds, in each direction. Default: 1024.
    ///
    /// It bounds memory (1024 batches of 16 are 24 MB), and with it what may be under way between the edges: a path
    /// with more than that in flight is not filled. Without rank feedback, it is the systematic batches of the blocks
    /// that an edge holds, of which there are 2 at least and 16 at most; a sink takes twice their memory.
    pub window: u16,
    /// The fate of data that is not through in time. Default: delivery is reliable.
    pub delivery: Delivery,
    /// The feedback between neighbours about batches. Default: their ranks. All nodes of a session must agree.
    pub feedback: Feedback,
    /// At an edge: while the first unit has waited longer than this, no more are taken. Default: 50 ms.
    ///
    /// Too short loses bursts that would have passed, too long delays all units behind a queue.
    pub unit_delay: Duration,
    /// At an edge: whether the application is granted units ([`Item::Credit`](hopcast_core::Item::Credit)), of which
    /// none is refused. Default: no, and `unit_delay` decides.
    ///
    /// It is for an application that can wait, as that of a file: it is then as fast as the slowest branch. One that
    /// does not wait for grants is refused as without. What was granted does not grow old in the queue of its source,
    /// and who can wait is in no hurry: a deadline that nobody has set is 65 s where rounds of repair are not limited,
    /// so that slow links, their queues and repairs cost it nothing.
    pub unit_credit: bool,
    /// At an edge, where delivery is reliable: how many streams there are at a time. Default: 1024.
    pub streams: u16,
    /// At an edge, where delivery is reliable: all streams are reset when nothing has come of the other edge for so
    /// long, though it was asked every second. Default: 2 minutes.
    ///
    /// Too short, and an outage ends streams that would have gone on; too long, and the streams of an edge that does
    /// not come back hang.
    pub stream_timeout: Duration,
    /// At an edge, where delivery is reliable: bytes of streams that may be queued, of all together. Default: 256 MiB,
    /// at which it bounds none of 1024 streams.
    ///
    /// The less is left of it, the less is queued of each stream, so that many of them are slower but none takes the
    /// memory of others.
    pub queue: u64,
    /// At an edge with several neighbours: whether each batch goes to one of them only. Default: no, each goes to all.
    ///
    /// Over disjoint paths to the same sink, it adds up their rates; a tree to several sinks would fall apart.
    pub split: bool,
    /// Whether a node sends no more than each hop carries. Default: yes.
    ///
    /// Without it, everything is sent as it comes, and what is too much is lost in queues and repaired: of use where
    /// somebody else has shaped the traffic, and to see what it costs.
    pub congestion_control: bool,
    /// Maximum bytes of repairs ahead of need over each hop, for each byte that it has sent besides since the session
    /// began. Default: 2. Without rank feedback, any share above zero lets a hop send them while it is nearly idle.
    ///
    /// Such repairs are sent before anybody reports a loss: where a report would come too late for a deadline that
    /// somebody has set, and without one where the hop has capacity to spare. Zero sends none, so that a lost packet
    /// waits for a hop's round trip; less than a few tenths leaves some of them out where hops lose much.
    pub overhead: f64,
    /// Where delivery has a deadline that nobody has set: maximum delay beyond that of the path that the protocol above
    /// tolerates. Default: none, any.
    ///
    /// A hop repairs ahead of need what it could not repair within it when asked. It is for a tunnel: a TCP inside
    /// takes a longer delay for a loss. Too short, and hops that could be asked send repairs that nobody needs.
    pub tolerance: Option<Duration>,
    /// Maximum delay of a node's wake-ups at which its hop loses no rate. Default: zero, which is right in virtual
    /// time; on a real host, the delay with which that wakes its programs.
    ///
    /// Too short, and a busy host sends less than the link carries; too long, and it sends bursts of that length.
    pub slack: Duration,
    /// Whether all nodes read one clock, as in virtual time and on one machine. Default: no, and each finds out by how
    /// much its clock differs from the source's.
    ///
    /// Where they do read one, the ages of units are exact. Said of clocks that differ, it makes everything too old.
    pub one_clock: bool,
}

/// The number of symbols of a batch, M: those of RFC 9426, section 4.2, in the field of 256 elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BatchSize {
    /// 4 symbols.
    M4,
    /// 8 symbols.
    M8,
    /// 16 symbols.
    M16,
    /// 32 symbols.
    M32,
}

impl BatchSize {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::M4, Self::M8, Self::M16, Self::M32];

    /// The number.
    pub const fn symbols(self) -> usize {
        match self {
            Self::M4 => 4,
            Self::M8 => 8,
            Self::M16 => 16,
            Self::M32 => 32,
        }
    }
}

/// The feedback between neighbours about batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feedback {
    /// Their ranks: each hop repairs what it has lost.
    Ranks,
    /// Nothing: a hop sends as much of each batch as is best for what it loses on average, and what is still missing is
    /// made up for from end to end, with the outer code.
    None,
}

/// The fate of data that is not through in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// BRTP: everything is delivered, in order.
    Reliable,
    /// BTP: what takes too long is given up.
    Deadline {
        /// Maximum age of a unit that is handed up, from when the application gave it to the source, or where it was
        /// granted, when it is begun to be sent, in whole milliseconds up to 65 s. Default: 200 ms, and where units are
        /// granted ([`Config::unit_credit`]) and `rounds` are not limited 65 s.
        ///
        /// Too short for the round trips of the hops, and their repairs come to nothing, or for the path, and nothing
        /// arrives; too long, and one loss that cannot be repaired delays all that follows.
        after: Duration,
        /// Whether that holds over any path. Default: no, a path whose minimum delay is more than a quarter of it has
        /// four times that delay instead, so that each hop has the time to be repaired once. A node of the path counts
        /// the path to it and its next hop; a source without rank feedback, which repairs from end to end, the whole
        /// path.
        ///
        /// Fixed, nothing arrives over a path that takes longer, and nothing is repaired that takes a third of it; not
        /// fixed, an application with a deadline of its own gets what is too old for it.
        fixed: bool,
        /// Maximum number of rounds of repair that a hop adds to a batch. Default: [`Delivery::UNTIL_DEADLINE`], as
        /// many as there is time for.
        ///
        /// In the last of fewer rounds, a margin is sent for what may be lost of the repairs themselves, which costs
        /// rate: some 5 % where hops lose 20 %, for three rounds. Zero repairs nothing.
        rounds: u8,
    },
}

impl Delivery {
    /// BTP as it is by default.
    pub const DEADLINE: Self =
        Self::Deadline { after: Duration::from_millis(200), fixed: false, rounds: Self::UNTIL_DEADLINE };
    /// Rounds of repair for as long as the deadline allows.
    pub const UNTIL_DEADLINE: u8 = u8::MAX;

    pub(super) const fn is_reliable(self) -> bool {
        matches!(self, Self::Reliable)
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            batch: BatchSize::M16,
            block: 256,
            datagram: 1472,
            window: 1024,
            delivery: Delivery::Reliable,
            feedback: Feedback::Ranks,
            unit_delay: Duration::from_millis(50),
            unit_credit: false,
            streams: 1024,
            stream_timeout: Duration::from_secs(120),
            queue: 256 << 20,
            split: false,
            congestion_control: true,
            overhead: 2.0,
            tolerance: None,
            slack: Duration::ZERO,
            one_clock: false,
        }
    }
}

impl Config {
    /// The defaults without rank feedback: larger batches, of which fewer packets are wasted, in larger blocks, which
    /// need fewer repair batches on top.
    pub fn strict() -> Self {
        Self { batch: BatchSize::M32, block: 1024, window: 256, feedback: Feedback::None, ..Self::default() }
    }
}
