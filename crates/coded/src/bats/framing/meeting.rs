//! The sessions of two edges as each knows them, so that a stream of one is never taken for a stream of another.
//!
//! An edge that is started anew numbers its streams as it did before, and the rest of what the other one had sent to it
//! still comes. So each edge says before the first that it sends of streams which session of the other's it knows; what
//! an edge receives of streams before that, unless it receives the session from its beginning, was for the edge that
//! was there before.
//!
//! An edge that has missed something of the other's session resets all streams, and does not know which ones the other
//! had opened. So each counts its losses, and tells them with the session. The other edge then resets all streams, and
//! answers with the count. What comes before that answer is of streams that are gone.

use super::chunk::{Chunk, Filler, Met};

/// The state of an edge towards the other edge.
#[derive(Debug, Default)]
pub(in super::super) struct Meeting {
    own: u32,
    other: Option<u32>,
    /// The other's session was received from its beginning on.
    whole: bool,
    /// It is the first of the other's sessions.
    first: bool,
    /// Number of times that all streams were reset here, and at the other edge as it has said.
    losses: u32,
    their_losses: u32,
    /// The other edge has said something about sessions.
    has_spoken: bool,
    /// The other edge does not know our session, or not how often streams were reset here.
    is_stranger: bool,
    /// The other edge has been told of our session.
    told: bool,
    /// It is to be notified, although there is nothing else to send.
    tells: bool,
    /// It is to answer.
    asks: bool,
}

/// Streams that do not exist any more at the other edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Gone {
    None,
    /// Streams that were opened here.
    Ours,
    /// Streams that were opened there, for the edge that was here before.
    Theirs,
    All,
}

impl Meeting {
    /// Our session is this one.
    pub(super) const fn begin(&mut self, session: u32) {
        self.own = session;
    }

    /// Our session, and the other's.
    pub(in super::super) const fn own(&self) -> u32 {
        self.own
    }

    pub(in super::super) const fn other(&self) -> Option<u32> {
        self.other
    }

    /// The other's session is this one, of which we receive all or only the rest. Whether there was another one before.
    pub(super) fn meet(&mut self, session: u32, whole: bool) -> bool {
        let (first, asks) = (self.other.is_none(), self.asks);
        *self = Self {
            own: self.own,
            other: Some(session),
            whole,
            first,
            is_stranger: !whole,
            asks,
            ..Self::default()
        };
        // Not the local variable: Rust 1.95 forgets one that is both stored and branched on (`scripts/compiler`).
        !self.first
    }

    /// Something of the other's session was missed, and all streams were reset. `tells`: the other edge is to be
    /// notified even if there is nothing else to say.
    pub(in super::super) const fn lose(&mut self, tells: bool) {
        self.losses = self.losses.wrapping_add(1);
        (self.is_stranger, self.told) = (true, false);
        self.tells |= tells && self.other.is_some();
    }

    /// The other edge says what it knows; which streams it does not have any more.
    pub(in super::super) const fn hear(&mut self, met: Met) -> Gone {
        if met.asks {
            (self.told, self.tells) = (false, self.other.is_some());
        }
        if met.session == 0 {
            return Gone::None;
        }
        if met.session != self.own {
            self.is_stranger = true;
            self.tells |= !self.told;
            return Gone::Theirs;
        }
        self.is_stranger = met.heard != self.losses;
        // Those that it has opened itself since it was started are all right.
        let was_restarted = met.joined && self.first && !self.has_spoken;
        let has_lost = met.lost != self.their_losses;
        (self.has_spoken, self.their_losses) = (true, met.lost);
        if has_lost {
            (self.told, self.tells) = (false, true);
        }
        match (has_lost, was_restarted) {
            (true, _) => Gone::All,
            (false, true) => Gone::Ours,
            (false, false) => Gone::None,
        }
    }

    /// Whether chunks of streams that have come are for this edge. If not, the other edge is told.
    pub(in super::super) const fn is_for_us(&mut self) -> bool {
        self.tells |= self.is_stranger && !self.told;
        !self.is_stranger
    }

    /// Wants to hear of the other edge.
    pub(in super::super) const fn ask(&mut self) {
        self.asks = true;
    }

    /// The other edge knows that we know its session, for tests of what else there is to say.
    #[cfg(test)]
    pub(super) const fn is_told(&mut self) {
        self.told = true;
    }

    /// Whether there is something to tell.
    pub(in super::super) const fn has_news(&self) -> bool {
        self.tells || self.asks
    }

    /// Tells it before something of streams; false if the symbol is full.
    pub(in super::super) fn fill(&mut self, filler: &mut Filler<'_>) -> bool {
        let is_due = self.asks || self.other.is_some() && !self.told;
        if !is_due {
            return true;
        }
        let met = Met {
            session: self.other.unwrap_or(0),
            heard: self.their_losses,
            lost: self.losses,
            joined: self.other.is_some() && !self.whole,
            asks: self.asks,
        };
        let fits = filler.put(&Chunk::Meet(met));
        if fits {
            (self.told, self.tells, self.asks) = (self.other.is_some(), false, false);
        }
        fits
    }
}
