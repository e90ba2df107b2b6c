//! Link models: what happens to a frame between one network interface and the others.
//!
//! A link model is a machine over N attachments: a frame is offered on one of them, and the model says to whom it is
//! delivered and when, or why it was dropped. A [`PointToPoint`] link has two attachments; a shared [`Medium`] has as
//! many as it has stations. One engine runs both, in virtual time and live.
//!
//! # A link, in order
//!
//! queue -> serialisation -> loss -> delay and jitter. A frame that will be lost still consumes rate. A frame is what
//! Ethernet carries without preamble, gap, FCS and padding: 14 bytes and the packet. Delay is one-way and per
//! direction. Jitter keeps the order unless the link says `reorder`.

pub mod config;

pub use config::{
    Config, Direction, Drop as DropReason, Duplex, Jitter, Loss, MediumConfig, Queue, QueueLimit,
};

use hopcast_core::{Buffer, Fraction, Duration, Instant, Rate};

/// The number of an attachment of a link, from 0.
pub type Attachment = usize;

/// A link model.
///
/// Whoever runs it: [`offer`](Link::offer) a frame, or [`wake`](Link::wake) it at its deadline; then
/// [`poll`](Link::poll) until `None`; then read [`deadline`](Link::deadline). As with a
/// [`Machine`](hopcast_core::Machine), waking it late or without cause is harmless.
pub trait Link {
    /// How many attachments there are.
    fn attachments(&self) -> usize;

    /// The interface at `from` wants `frame` sent.
    fn offer(&mut self, now: Instant, from: Attachment, frame: Buffer);

    /// The deadline has been reached, or may have been.
    fn wake(&mut self, now: Instant);

    /// What happened up to `now`, in order; `None` once there is nothing more.
    fn poll(&mut self, now: Instant) -> Option<Event>;

    /// When something happens next.
    fn deadline(&self) -> Option<Instant>;

    /// Applies a scheduled change, from `now` on, to one direction (`from` that attachment) or to all.
    fn change(&mut self, now: Instant, from: Option<Attachment>, change: &Change);

    /// Whether to report [`Event::Sent`] too; a capture needs it, nothing else does.
    fn report_sent(&mut self, report: bool);

    /// The figures of one direction up to `now`, cumulative.
    ///
    /// A medium has a direction for each ordered pair of stations; its `sent` figures are those of the sending
    /// station, and appear in each of its directions.
    fn counters(&mut self, now: Instant, from: Attachment, to: Attachment) -> Counters;
}

/// What a link says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// `frame` has left the interface at `from` completely: it has crossed the queue and been serialised.
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
    },
    /// `frame` is gone.
    Dropped {
        /// The sender.
        from: Attachment,
        /// The receiver that missed it; `None` if it never left the sender.
        to: Option<Attachment>,
        /// The frame.
        frame: Buffer,
        /// Why.
        reason: DropReason,
    },
}

/// A scheduled change of a link. What it does not name stays as it is.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A new rate; a frame in serialisation finishes at the old one. `None` is infinitely fast.
    Rate(Option<Rate>),
    /// A new one-way delay, for frames that leave from now on; those under way arrive as planned.
    Delay(Duration),
    /// A new jitter.
    Jitter(Jitter),
    /// A new loss model, which starts in its stationary distribution.
    Loss(Loss),
    /// A new share of corrupted frames.
    Corrupt(Fraction),
    /// A new share of duplicated frames.
    Duplicate(Fraction),
    /// The link is down: what is queued or offered is dropped; what is already under way still arrives.
    Down,
    /// The link is up again.
    Up,
}

/// The figures of one direction of a link, cumulative since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Bytes that entered the link, after its queue.
    pub sent_bytes: u64,
    /// Frames that entered the link, after its queue.
    pub sent_packets: u64,
    /// Bytes that left the far end.
    pub delivered_bytes: u64,
    /// Frames that left the far end; a duplicate counts again.
    pub delivered_packets: u64,
    /// Frames lost on the way.
    pub lost_packets: u64,
    /// Frames that the queue dropped, or that found the link down.
    pub queue_dropped_packets: u64,
    /// Frames delivered with an error in them.
    pub corrupted_packets: u64,
    /// Frames delivered twice.
    pub duplicated_packets: u64,
    /// Time in which the sender was serialising.
    pub busy: Duration,
    /// The sum over frames of the time each spent in the queue.
    pub queued: Duration,
}
