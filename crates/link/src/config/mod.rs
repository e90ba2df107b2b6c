//! The configuration of links: plain data, as a scenario describes it.

mod contention;

use core::fmt;
use std::collections::BTreeSet;
use std::sync::Arc;

use hopcast_core::{Bytes, Duration, Fraction, Rate};

use crate::Change;
use crate::attachment::Attachment;
use crate::radios::RadioModel;

pub use contention::{Csma, Mac, Rts};

/// A point-to-point link: two directions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// From attachment 0 to attachment 1.
    pub forward: Direction,
    /// From attachment 1 to attachment 0.
    pub backward: Direction,
    /// Whether both directions can be sending at once.
    pub duplex: Duplex,
}

/// A shared medium: every station sends with the same configuration, one at a time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MediumConfig {
    /// Rate, queue, delay and loss of each station; each listener loses independently.
    pub direction: Direction,
    /// The stations, in the order of attachments.
    pub stations: Vec<Station>,
    /// The medium access control. Default: a perfect schedule.
    pub mac: Mac,
    /// Losses from one station to another that differ from `direction`'s; the last one for a pair counts.
    pub pairs: Vec<PairLoss>,
    /// The pairs of a sender and a listener that hears it. Default: all hear all.
    pub hears: Option<BTreeSet<(Attachment, Attachment)>>,
    /// The stations' radios, which say who hears whom, at which rate, and what is lost; `hears`, `pairs`, and the rate
    /// and loss of `direction`, mean nothing beside them. Default: none.
    pub radios: Option<RadioModel>,
}

/// A switched segment: each station has a line of its own to the switch, and sends on it whenever it likes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SwitchConfig {
    /// For each station, rate, queue, loss and delay of what it sends, in the order of attachments. Each listener loses
    /// independently.
    pub directions: Vec<Direction>,
    /// The Ethernet address of each station.
    pub addresses: Vec<[u8; 6]>,
    /// The stations that are given frames to unknown addresses: bridges, behind which are others. To nobody, such a
    /// frame is gone.
    pub bridges: Vec<Attachment>,
    /// Losses from one station to another that differ from that of the sender's direction; the last one for a pair
    /// counts.
    pub pairs: Vec<PairLoss>,
}

/// The loss of one station's frames at another.
#[derive(Clone, Debug, PartialEq)]
pub struct PairLoss {
    /// The sender.
    pub from: Attachment,
    /// The listener.
    pub to: Attachment,
    /// The loss model between them.
    pub loss: Loss,
}

/// A station of a shared medium.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Station {
    /// Its Ethernet address, which decides what is delivered to it and what it only overhears.
    pub address: [u8; 6],
    /// Whether its port asks for overheard frames.
    pub promiscuous: bool,
    /// Whether its port gets each frame back that it sent, marked as overheard, once the medium is done with it (sent,
    /// or given up): as a monitor interface shows its transmissions. A frame that the queue dropped does not come
    /// back.
    pub echo: bool,
}

/// Whether an end may send while the other one is sending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Duplex {
    /// Both at once.
    #[default]
    Full,
    /// One at a time; the frame that has waited longest goes first.
    Half,
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct Direction {
    /// Serialisation rate; `None` is infinitely fast, and at a rate of zero nothing is ever sent. Default: none.
    pub rate: Option<Rate>,
    /// The queue before the serialiser. Default: drop-tail of 1,000 packets.
    pub queue: Queue,
    /// The loss model. Default: none is lost.
    pub loss: Loss,
    /// One-way delay. Default: none.
    pub delay: Duration,
    /// The variation of the delay. Default: none.
    pub jitter: Jitter,
    /// Whether jitter may let a frame overtake another. Default: no.
    pub reorder: bool,
    /// The share of frames delivered twice, the copy right behind and with the same bits. Default: none.
    pub duplicate: Fraction,
    /// The share of frames delivered with one random bit flipped, anywhere in the frame. Default: none.
    pub corrupt: Fraction,
    /// Maximum length of a packet, in bytes without the Ethernet header. Default: 1500 (IEEE 802.3, section 3.2.7). The
    /// host that sends reads it, and the link drops longer packets.
    pub mtu: u32,
}

impl Direction {
    /// The direction after a change.
    pub(crate) fn apply(&mut self, change: &Change) {
        match change {
            Change::Rate(rate) => self.rate = *rate,
            Change::Delay(delay) => self.delay = *delay,
            Change::Jitter(jitter) => self.jitter = *jitter,
            Change::Loss(loss) => self.loss = loss.clone(),
            Change::Corrupt(share) => self.corrupt = *share,
            Change::Duplicate(share) => self.duplicate = *share,
            Change::Queue(queue) => self.queue = *queue,
            Change::Mtu(mtu) => self.mtu = *mtu,
            Change::Reorder(reorder) => self.reorder = *reorder,
            Change::LossTo(..) | Change::Down | Change::Up => {}
        }
    }
}

impl Default for Direction {
    fn default() -> Self {
        Self {
            rate: None,
            queue: Queue::default(),
            loss: Loss::None,
            delay: Duration::ZERO,
            jitter: Jitter::None,
            reorder: false,
            duplicate: Fraction::ZERO,
            corrupt: Fraction::ZERO,
            mtu: 1500,
        }
    }
}

/// A queue discipline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Queue {
    /// A frame that arrives at a full queue is dropped.
    DropTail {
        /// Size at which the queue is full.
        limit: QueueLimit,
    },
    /// CoDel (RFC 8289): drops at the head so that the standing delay stays near `target`.
    ///
    /// A shorter `interval` than the round trips of the flows drops bursts that would have drained by themselves, a
    /// much longer one lets a queue stand; `target` is 5 to 10 % of it.
    CoDel {
        /// Size at which the queue is full whatever CoDel decides.
        limit: QueueLimit,
        /// The acceptable standing delay. RFC 8289's default: 5 ms.
        target: Duration,
        /// The time over which the delay must be seen standing. RFC 8289's default: 100 ms.
        interval: Duration,
    },
}

impl Default for Queue {
    fn default() -> Self {
        Self::DropTail { limit: QueueLimit::default() }
    }
}

/// Size at which a queue is full. The frame in serialisation does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// A number of frames.
    Packets(u32),
    /// Bytes of frames.
    Bytes(Bytes),
}

impl Default for QueueLimit {
    /// 1,000 frames, as netem's `limit` and Linux's `txqueuelen` for Ethernet.
    fn default() -> Self {
        Self::Packets(1000)
    }
}

/// The variation of each frame's delay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Jitter {
    /// No jitter.
    #[default]
    None,
    /// Uniform in delay ± this; never below zero.
    Uniform(Duration),
    /// Normal with this standard deviation around the delay, cut off at zero.
    Normal(Duration),
}

/// A loss model, which decides about each frame. Its long-run share of losses is [`Loss::stationary`].
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Loss {
    /// No frame is lost.
    #[default]
    None,
    /// Each frame on its own, with this probability.
    Independent(Fraction),
    /// Gilbert-Elliott: a good and a bad state.
    GilbertElliott {
        /// From good to bad, for each frame.
        p: Fraction,
        /// From bad to good, for each frame.
        r: Fraction,
        /// The probability to *pass* in the good state (1 in Gilbert's model).
        k: Fraction,
        /// The probability to *pass* in the bad state (0 in the simple Gilbert model).
        h: Fraction,
    },
    /// The four-state Markov model of netem's authors: 1 good, 2 good within a burst, 3 lost in a burst, 4 lost alone.
    FourState {
        /// From 1 to 3.
        p13: Fraction,
        /// From 3 to 1.
        p31: Fraction,
        /// From 3 to 2.
        p32: Fraction,
        /// From 2 to 3.
        p23: Fraction,
        /// From 1 to 4 (p41 is 1).
        p14: Fraction,
    },
    /// A recorded sequence of drops (true: lost), from its beginning, repeated when it ends. An empty one loses
    /// nothing.
    Trace(Arc<[bool]>),
}

/// The reason why a frame was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropReason {
    /// The queue was full.
    QueueFull,
    /// CoDel dropped it.
    CoDel,
    /// The loss model took it.
    Lost,
    /// The link was down.
    Down,
    /// The receiving station was itself sending.
    HalfDuplex,
    /// Another station began in the same slot.
    Collision,
    /// Its retries were used up, and none was acknowledged.
    RetryLimit,
    /// The station that it was for does not hear its sender.
    Unheard,
    /// Larger than the link's MTU.
    TooBig,
}

impl DropReason {
    /// All reasons.
    pub const ALL: [Self; 9] = [
        Self::QueueFull,
        Self::CoDel,
        Self::Lost,
        Self::Down,
        Self::HalfDuplex,
        Self::Collision,
        Self::RetryLimit,
        Self::Unheard,
        Self::TooBig,
    ];

    /// A short phrase, for captures and logs.
    pub const fn words(self) -> &'static str {
        match self {
            Self::QueueFull => "queue full",
            Self::CoDel => "dropped by CoDel",
            Self::Lost => "lost on the link",
            Self::Down => "link down",
            Self::HalfDuplex => "receiver was sending",
            Self::Collision => "collided",
            Self::RetryLimit => "never acknowledged",
            Self::Unheard => "not heard by its receiver",
            Self::TooBig => "larger than the MTU",
        }
    }
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}
