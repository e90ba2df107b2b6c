//! Which session of the other edge has to do with which of ours.
//!
//! An edge that is started anew numbers its streams as it did before, and the rest of what the other one had sent to it
//! still comes. So each says before the first that it sends of streams which session of the other's it knows; what an edge
//! hears of streams before that, unless it hears all from the beginning, was for the one that was there before.

use super::chunk::{Chunk, Filler};

/// What two edges know of each other.
#[derive(Debug)]
pub(in super::super) struct Meeting {
    own: u32,
    other: Option<u32>,
    /// The other edge knows our session.
    is_known: bool,
    /// The other one has been told that we know its.
    told: bool,
    /// It is to be told, although there is nothing else to say.
    tells: bool,
}

impl Default for Meeting {
    fn default() -> Self {
        Self { own: 0, other: None, is_known: true, told: false, tells: false }
    }
}

impl Meeting {
    /// Our session is this one.
    pub(super) const fn begin(&mut self, session: u32) {
        self.own = session;
    }

    /// The other's is this one, of which we hear all or only the rest. Whether there was another one before.
    pub(super) const fn meet(&mut self, session: u32, whole: bool) -> bool {
        let again = self.other.is_some();
        *self = Self { own: self.own, other: Some(session), is_known: whole, told: false, tells: false };
        again
    }

    /// The other edge says which session of ours it knows.
    pub(in super::super) const fn hear(&mut self, session: u32) {
        self.is_known = session == self.own;
    }

    /// Whether what has come of streams is for us. If not, the other edge is to know.
    pub(in super::super) const fn is_for_us(&mut self) -> bool {
        self.tells |= !self.is_known && !self.told;
        self.is_known
    }

    /// Whether there is something to tell.
    pub(in super::super) const fn has_news(&self) -> bool {
        self.tells
    }

    /// Tells it before something of streams; false if the symbol is full.
    pub(in super::super) fn fill(&mut self, filler: &mut Filler<'_>) -> bool {
        let Some(session) = self.other.filter(|_| !self.told) else { return true };
        self.told = filler.put(&Chunk::Meet { session });
        self.tells &= !self.told;
        self.told
    }
}
