//! A transmission on the air, and how each station receives it.

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
    /// For each station.
    pub(super) receptions: Vec<ReceptionState>,
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

/// The reception of a transmission at one station, so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReceptionState {
    /// The station does not hear the sender, or is the sender.
    Unheard,
    /// Nothing else was heard so far.
    Clean,
    /// Another transmission overlapped it.
    Collided,
    /// The station was itself sending meanwhile.
    Deaf,
}

impl Transmission {
    /// Another transmission begins that `station` hears, or that is its own.
    pub(super) fn disturb(&mut self, station: Attachment, by_itself: bool) {
        let reception = &mut self.receptions[station];
        *reception = match *reception {
            ReceptionState::Unheard => ReceptionState::Unheard,
            _ if by_itself => ReceptionState::Deaf,
            ReceptionState::Deaf => ReceptionState::Deaf,
            ReceptionState::Clean | ReceptionState::Collided => ReceptionState::Collided,
        };
    }

    /// Whether it was disturbed at the station that it is for, or, without one, at any.
    pub(super) fn collided(&self) -> bool {
        let disturbed =
            |reception: &ReceptionState| matches!(reception, ReceptionState::Collided | ReceptionState::Deaf);
        match self.to {
            Some(to) => disturbed(&self.receptions[to]),
            None => self.receptions.iter().any(disturbed),
        }
    }
}
