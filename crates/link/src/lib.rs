//! Link models: what happens to a frame between one network interface and the others.
//!
//! A link model is a machine over N attachments: a frame is offered on one of them, and the model says to whom it is
//! delivered and when, or why it was dropped. A [`PointToPoint`] link has two attachments; a shared [`Medium`] has as
//! many as it has stations, and so has a [`Switch`]. One engine runs them, in virtual time and live.
//!
//! # A link, in order
//!
//! queue -> serialisation -> loss -> delay and jitter. A frame that will be lost still consumes rate. A frame is what
//! Ethernet carries without preamble, gap, FCS and padding: 14 bytes and the packet. Delay is one-way and per
//! direction. Jitter keeps the order unless the link says `reorder`.
//!
//! - A frame offered to an idle line is serialised at once; a queue limits only what waits. A rate of `None` takes no
//!   time, so nothing ever waits; at a rate of zero nothing is begun, and the queue fills.
//! - The fate of a frame is decided as its last bit leaves, by the configuration then in force: a change at an
//!   instant applies to the frames that leave after it. The rate is that in force as a frame's first bit leaves.
//! - A frame arrives at the time it left plus delay plus jitter, and, without `reorder`, not before those that left
//!   earlier. A frame that is duplicated arrives twice at that time; the copy has the same bits, flipped ones too.
//! - Events of one instant happen in this order: serialisations end and the next begin; then what the caller
//!   came for (an offer, a change); and arrivals are reported when polled, after what has left or was dropped by then.
//!
//! # Time
//!
//! A link catches up with `now` whenever it is called, in the order of time. So it need not be woken for what nobody
//! sees, a frame costs one wake, and waking it more often changes nothing.
//!
//! # Randomness
//!
//! Each direction draws from a stream of its own, and splits it into one for each concern (loss, jitter, duplication,
//! corruption), so that turning on one of them changes nothing about the others.
//!
//! # Scope and departures
//!
//! - The frame check sequence is not carried, so a corrupted frame is delivered, as netem does; whoever receives it
//!   has the checksums of its protocols.
//! - Gilbert-Elliott's long-run loss follows from π_B = p π_G + (1 - r) π_B, that of the four-state model from
//!   π3 p32 = π2 p23: [`Loss::stationary`] has both solutions.
//! - On a [`Medium`] with [`Mac::Csma`] there is no capture: of frames that overlap at a station it reads none. An
//!   immediate access begins at the next slot's edge, and the channel loses no acknowledgement, RTS or CTS. Where some
//!   stations do not hear others ([`MediumConfig::hears`]), what one does not hear does not disturb it either; a frame
//!   has one limit of retries, and not one for RTS and one for data. Who waits in vain for an acknowledgement or a CTS
//!   waits as long as it would take, so that who has collided counts the next back-off from the slot from which the
//!   others do, which wait for EIFS; the standard's timeouts (SIFS, a slot, and the delay until a preamble is noticed)
//!   are of another length.
//! - Radios ([`RadioModel`]) say at any time who hears whom, at which rate, and what is lost; propagation is theirs,
//!   and `hopcast-radio` has ships'. Who senses a transmission is asked as it begins, and nobody who comes into range
//!   later does. A transmission that is too weak to be sensed disturbs nothing. RTS, CTS and acknowledgements take
//!   their configured time, are read by all that can read frames of any rate from their sender as they begin, and are
//!   not lost; to a station that only senses frames they are noise. A sender knows the rate that its receiver can read
//!   without asking, and each retry is sent at the next lower one: a retry chain in place of a rate control with
//!   statistics.
//! - [`Mac::EthernetLike`] is no radio: each pair of stations has a line of its own, whatever others send meanwhile. A
//!   frame to a group counts as sent when it is copied onto the lines, without airtime on a line that nobody hears.

mod address;
mod attachment;
pub mod config;
mod csma;
mod dcf;
mod direction;
mod flight;
mod lines;
mod loss;
mod medium;
mod multipoint;
mod path;
mod point_to_point;
mod quality;
mod queue;
mod radios;
mod reports;
mod sender;
mod stations;
mod switch;
mod trace;

pub use attachment::Attachment;
pub use config::{
    Config, Csma, Direction, DropReason, Duplex, Jitter, Loss, Mac, MediumConfig, PairLoss, Queue,
    QueueLimit, Rts, Station, SwitchConfig,
};
pub use loss::LossError;
pub use medium::Medium;
pub use point_to_point::PointToPoint;
pub use quality::Quality;
pub use radios::{Hearing, RadioModel, RadioSource, Radios};
pub use switch::Switch;
pub use trace::TraceError;

use core::ops::{Add, Sub};

use hopcast_core::{Buffer, Duration, Fraction, FrameStatus, Instant, Rate, Reception};

/// A link model.
///
/// Its runner calls [`offer`](Link::offer) with a frame, or [`wake`](Link::wake) at its deadline; then
/// [`poll`](Link::poll) until `None`; then it reads [`deadline`](Link::deadline). As with a
/// [`Machine`](hopcast_core::Machine), waking it late or without cause is harmless.
pub trait Link {
    /// Number of attachments.
    fn attachments(&self) -> usize;

    /// The interface at `from` wants `frame` sent. There must be such an attachment.
    fn offer(&mut self, now: Instant, from: Attachment, frame: Buffer);

    /// The deadline has been reached, or may have been.
    fn wake(&mut self, now: Instant);

    /// The events up to `now`, in order; `None` once there is nothing more.
    fn poll(&mut self, now: Instant) -> Option<Event>;

    /// The time of the next event; `None` if nothing is to come.
    fn deadline(&self) -> Option<Instant>;

    /// Applies a scheduled change, from `now` on, to one direction (`from` that attachment) or to all.
    fn change(&mut self, now: Instant, from: Option<Attachment>, change: &Change);

    /// Whether to report [`Event::Sent`] and [`Event::Dropped`] too, each at its exact time; a capture needs them,
    /// nothing else does. Off at first.
    ///
    /// When off, what is sent and dropped is only counted, and a frame costs one wake, at its arrival. When on, the
    /// link wants to be woken at each end of a serialisation too, and each frame is copied. Deliveries and counters
    /// are the same either way. Turn it on before the first frame: what left before is not reported.
    fn report_sent(&mut self, report: bool);

    /// Keeps what is dropped from now on for [`take_drop`](Link::take_drop), unless it is reported. Unlike reports that
    /// costs nothing where nothing is dropped: a drop is known once the link is called for another reason. Whoever
    /// turns it on takes the drops whenever it has polled the link.
    fn keep_drops(&mut self);

    /// The next drop that was kept, an [`Event::Dropped`], with its time.
    fn take_drop(&mut self) -> Option<(Instant, Event)>;

    /// Reports the fate of each frame that `from` sends to one station, as [`Event::Status`], from now on. Only a
    /// link with acknowledgements does ([`Mac::Csma`]); any other has nothing to report.
    fn report_status(&mut self, _from: Attachment) {}

    /// Quality of the link from one attachment to another at `now`, for routing: as configured, or as the stations'
    /// radios have it. `None` if nothing that `from` sends reaches `to`, or if `from` is down. To ask changes nothing.
    fn quality(&mut self, now: Instant, from: Attachment, to: Attachment) -> Option<Quality>;

    /// The figures of the sending side of `from` up to and including `now`, cumulative: a frame that is sent counts
    /// once, whoever it is for. Its fate at each receiver is in [`counters`](Link::counters).
    fn sender_counters(&mut self, now: Instant, from: Attachment) -> Counters;

    /// The figures of one direction up to and including `now`, cumulative; all zero if there is no such direction.
    ///
    /// A medium or switch has a direction for each ordered pair of stations. What was sent counts for the pair it was
    /// addressed to (a group frame for every pair that it reaches); the time and drops of the queue are those of the
    /// sending station, in each of its directions, unless each has a line ([`Mac::EthernetLike`]).
    fn counters(&mut self, now: Instant, from: Attachment, to: Attachment) -> Counters;

    /// The queue of the attachment `from` at `now`; empty if there is no such attachment.
    fn backlog(&mut self, now: Instant, from: Attachment) -> QueueSnapshot;
}

/// The queue of an attachment at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueSnapshot {
    /// Frames that wait, without the one that is being sent.
    pub frames: u64,
    /// Bytes of these frames.
    pub bytes: u64,
    /// Whether the attachment is down: it drops what it is offered.
    pub down: bool,
}

/// An event of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// `frame` has left the interface at `from` completely: it has crossed the queue and been serialised. Reported
    /// only when asked for; see [`Link::report_sent`].
    Sent {
        /// The sender.
        from: Attachment,
        /// A copy of the frame.
        frame: Buffer,
    },
    /// `frame` has arrived at `to`.
    Delivered {
        /// The sender.
        from: Attachment,
        /// The receiver.
        to: Attachment,
        /// The frame.
        frame: Buffer,
        /// Whether it was addressed to another station.
        overheard: bool,
        /// Reception by radio, on a medium; `None` on a wire.
        reception: Option<Reception>,
    },
    /// The link is done with a frame that was for one station. Reported only when asked for; see
    /// [`Link::report_status`].
    Status {
        /// The sender.
        from: Attachment,
        /// The fate of the frame at its receiver.
        status: FrameStatus,
    },
    /// `frame` is gone. Reported only when asked for; see [`Link::report_sent`].
    Dropped {
        /// The sender.
        from: Attachment,
        /// The receiver that missed it; `None` if it never left the sender.
        to: Option<Attachment>,
        /// The frame.
        frame: Buffer,
        /// The reason.
        reason: DropReason,
    },
}

/// A scheduled change of a link; the rest of its configuration stays. Rates and losses of a medium with radios are
/// theirs: changes of these mean nothing there.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A new rate; a frame in serialisation finishes at the old one. `None` is infinitely fast, zero sends nothing.
    Rate(Option<Rate>),
    /// A new one-way delay, for frames that leave from now on; those under way arrive as planned.
    Delay(Duration),
    /// A new jitter.
    Jitter(Jitter),
    /// A new loss model, which starts in its stationary distribution (a trace at its beginning).
    Loss(Loss),
    /// A new loss model towards one listener of a medium; it means nothing to a link of another kind.
    LossTo(Attachment, Loss),
    /// A new share of corrupted frames.
    Corrupt(Fraction),
    /// A new share of duplicated frames.
    Duplicate(Fraction),
    /// A new queue discipline and limit for what is offered from now on; what waits stays, also beyond a lower limit.
    Queue(Queue),
    /// A new MTU, in bytes, for what is offered from now on. A host on the link has to learn it by other means.
    Mtu(u32),
    /// Whether jitter may let frames overtake others, for those that leave from now on.
    Reorder(bool),
    /// The link is down: what is queued, in serialisation or offered is dropped; what has left already arrives.
    /// For one attachment, that is what it sends; it still receives.
    Down,
    /// The link is up again.
    Up,
}

impl Change {
    /// Whether radios decide about what it changes, so that it means nothing on a medium that has them.
    pub(crate) fn is_by_radio(&self) -> bool {
        matches!(self, Self::Rate(_) | Self::Loss(_) | Self::LossTo(..))
    }
}

/// The figures of one direction of a link, cumulative since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Bytes that entered the link, after its queue; counted when the last of them has been serialised.
    pub sent_bytes: u64,
    /// Frames that entered the link, after its queue: sent = delivered - duplicated + lost + still under way.
    pub sent_packets: u64,
    /// Bytes that left the far end.
    pub delivered_bytes: u64,
    /// Frames that left the far end; a duplicate counts again, and so does an overheard frame.
    pub delivered_packets: u64,
    /// Frames lost on the way.
    pub lost_packets: u64,
    /// Frames that the queue dropped, that found the link down, or that were too big for it.
    pub queue_dropped_packets: u64,
    /// Frames delivered with an error in them; a duplicate counts again.
    pub corrupted_packets: u64,
    /// Frames delivered twice.
    pub duplicated_packets: u64,
    /// Delivered frames that were for another station.
    pub overheard_packets: u64,
    /// Transmissions of a medium's station that collided.
    pub collisions: u64,
    /// Transmissions of a medium's station that were repetitions, for want of an acknowledgement.
    pub retries: u64,
    /// Time in which the sender was serialising; on a medium with contention, its airtime: each transmission with its
    /// preamble, and the acknowledgements that it sent.
    pub busy: Duration,
    /// The sum over frames of the time each spent in the queue, counted as it leaves the queue to be sent.
    pub queued: Duration,
}

impl Add for Counters {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            sent_bytes: self.sent_bytes + other.sent_bytes,
            sent_packets: self.sent_packets + other.sent_packets,
            delivered_bytes: self.delivered_bytes + other.delivered_bytes,
            delivered_packets: self.delivered_packets + other.delivered_packets,
            lost_packets: self.lost_packets + other.lost_packets,
            queue_dropped_packets: self.queue_dropped_packets + other.queue_dropped_packets,
            corrupted_packets: self.corrupted_packets + other.corrupted_packets,
            duplicated_packets: self.duplicated_packets + other.duplicated_packets,
            overheard_packets: self.overheard_packets + other.overheard_packets,
            collisions: self.collisions + other.collisions,
            retries: self.retries + other.retries,
            busy: self.busy + other.busy,
            queued: self.queued + other.queued,
        }
    }
}

/// The difference to an earlier reading.
impl Sub for Counters {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self {
            sent_bytes: self.sent_bytes - other.sent_bytes,
            sent_packets: self.sent_packets - other.sent_packets,
            delivered_bytes: self.delivered_bytes - other.delivered_bytes,
            delivered_packets: self.delivered_packets - other.delivered_packets,
            lost_packets: self.lost_packets - other.lost_packets,
            queue_dropped_packets: self.queue_dropped_packets - other.queue_dropped_packets,
            corrupted_packets: self.corrupted_packets - other.corrupted_packets,
            duplicated_packets: self.duplicated_packets - other.duplicated_packets,
            overheard_packets: self.overheard_packets - other.overheard_packets,
            collisions: self.collisions - other.collisions,
            retries: self.retries - other.retries,
            busy: self.busy.saturating_sub(other.busy),
            queued: self.queued.saturating_sub(other.queued),
        }
    }
}
