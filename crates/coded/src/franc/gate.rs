//! How many frames wait in the interface: as few as keep the medium busy, since what waits there has been decided upon.

use std::collections::VecDeque;

use hopcast_core::{Duration, Instant};

/// One frame on the air and one behind it.
const WAITING: usize = 2;
/// Without echoes of its own frames, a station cannot tell what still waits; it then goes by what is acknowledged.
const UNKNOWN: usize = 24;
/// A frame of which nothing was heard for so long is gone.
const LOST: Duration = Duration::from_millis(200);
/// The same, without echoes.
const FORGOTTEN: Duration = Duration::from_millis(40);

/// What was handed to the interface and has not come back.
#[derive(Debug, Default)]
pub(super) struct Gate {
    outstanding: VecDeque<Instant>,
    echoes: bool,
}

impl Gate {
    /// Whether another frame may be handed over.
    pub(super) fn is_open(&mut self, now: Instant) -> bool {
        let (most, gone) = self.limits();
        while self.outstanding.pop_front_if(|handed| now.since(*handed) >= gone).is_some() {}
        self.outstanding.len() < most
    }

    /// Whether nothing waits in the interface.
    pub(super) fn is_idle(&self) -> bool {
        self.outstanding.is_empty()
    }

    /// When it opens by itself; `None` if it is open.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let (most, gone) = self.limits();
        if self.outstanding.len() < most {
            None
        } else {
            self.outstanding.front().map(|&handed| handed + gone)
        }
    }

    /// When nothing waits any more, if nothing is heard; `None` if nothing does.
    pub(super) fn idle_at(&self) -> Option<Instant> {
        self.outstanding.back().map(|&handed| handed + self.limits().1)
    }

    pub(super) fn handed(&mut self, now: Instant) {
        self.outstanding.push_back(now);
    }

    /// A frame of ours has come back from the interface: it has been sent, or given up.
    pub(super) fn echo(&mut self) {
        self.echoes = true;
        self.outstanding.pop_front();
    }

    /// The peer has answered: without echoes, what was handed over before is taken for sent.
    pub(super) fn answered(&mut self) {
        if !self.echoes {
            self.outstanding.clear();
        }
    }

    fn limits(&self) -> (usize, Duration) {
        if self.echoes { (WAITING, LOST) } else { (UNKNOWN, FORGOTTEN) }
    }
}
