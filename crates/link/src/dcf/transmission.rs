//! A transmission on the air, and how the stations that hear it receive it.

use hopcast_core::Instant;

use crate::Attachment;

/// A frame on the air.
#[derive(Debug)]
pub(super) struct Transmission {
    pub(super) from: Attachment,
    /// The one station that it is for.
    pub(super) to: Option<Attachment>,
    pub(super) kind: Kind,
    pub(super) start: Instant,
    pub(super) end: Instant,
    /// The time until which it reserves the medium for its exchange.
    pub(super) reserved: Instant,
    /// The stations that hear it, in their order.
    pub(super) listeners: Vec<Listener>,
}

/// A kind of frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Request to send.
    Rts,
    /// Clear to send.
    Cts,
    /// A frame with which a station contends.
    Data,
    /// Acknowledgement.
    Ack,
}

/// A station that hears a transmission.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listener {
    pub(super) station: Attachment,
    /// Whether it can read a frame at its rate; else it is noise.
    pub(super) reads: bool,
    pub(super) mark: Mark,
}

/// A station as a transmission began that it hears. What disturbs the reception later is seen in its counts, so that a
/// transmission that begins need not look for those that it disturbs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    pub(super) state: ReceptionState,
    /// Transmissions that it had heard begin, with this one.
    pub(super) heard: u64,
    /// Transmissions that it had begun itself.
    pub(super) begun: u64,
}

/// The reception of a transmission at a station that hears it, so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReceptionState {
    /// Nothing else was heard so far.
    Clean,
    /// Another transmission overlapped it.
    Collided,
    /// The station was itself sending meanwhile.
    Deaf,
}

impl Transmission {
    /// The station `to` as it hears it, if it does.
    pub(super) fn listener(&self, to: Attachment) -> Option<&Listener> {
        let place = self.listeners.binary_search_by_key(&to, |listener| listener.station).ok()?;
        Some(&self.listeners[place])
    }
}
