//! A packet that a sender has chosen, and why.

/// A packet to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packet {
    /// The batch, by the number that its mode gives it.
    pub(super) batch: u64,
    pub(super) content: Content,
    pub(super) cause: Cause,
}

/// The content of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// The batch's symbol of this index.
    Symbol(u8),
    /// An innovative packet as it came, by the number of those that came before.
    Row(u8),
    /// A combination of the innovative packets from this one on.
    Mix(u8),
}

/// Why a packet is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// Something new.
    First,
    /// The child lacks something, as it has reported or as its losses make likely.
    Repair,
    /// Ahead of need.
    Ahead,
    /// No report has come for too long.
    Probe,
}
