//! Limit on the frames that wait in the interface: as few as keep the medium busy, since what waits there has been
//! decided upon.

use std::collections::VecDeque;

use hopcast_core::{Duration, Instant};

/// Maximum number of frames in the interface: one on the air and one behind it. Chosen: with one, the medium idles
/// between frames; what waits behind two has been decided upon too early.
const WAITING: usize = 2;
/// The same where a station has no echoes of its own frames, and goes by what is acknowledged. Chosen; fewer leave the
/// medium idle between acknowledgements, more wait in the interface.
const UNKNOWN: usize = 24;
/// Time after which a frame of which no echo came counts as gone. Chosen; shorter, and a busy medium's frames pile up;
/// longer, and a lost echo blocks the gate for longer.
const LOST: Duration = Duration::from_millis(200);
/// The same, without echoes. Chosen; shorter, and frames pile up in the interface; longer, and a lost acknowledgement
/// blocks the gate for longer.
const FORGOTTEN: Duration = Duration::from_millis(40);

/// Packets that were handed to the interface and have not come back.
#[derive(Debug, Default)]
pub(super) struct Gate {
    outstanding: VecDeque<Instant>,
    echoes: bool,
}

impl Gate {
    /// Whether another frame may be handed over.
    pub(super) fn is_open(&mut self, now: Instant) -> bool {
        let (limit, gone) = self.limits();
        while self.outstanding.pop_front_if(|handed| now.since(*handed) >= gone).is_some() {}
        self.outstanding.len() < limit
    }

    /// Whether nothing waits in the interface.
    pub(super) fn is_idle(&self) -> bool {
        self.outstanding.is_empty()
    }

    /// Time at which it opens by itself; `None` if it is open.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let (limit, gone) = self.limits();
        if self.outstanding.len() < limit {
            None
        } else {
            self.outstanding.front().map(|&handed| handed + gone)
        }
    }

    /// Time at which nothing waits any more, if nothing is heard; `None` if nothing does.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn without_echoes_24_frames_wait_and_each_for_40_ms() {
        let mut gate = Gate::default();
        for waiting in 0..24 {
            assert!(gate.is_open(at(waiting)) && gate.deadline().is_none(), "{waiting} wait");
            gate.handed(at(waiting));
        }
        assert!(!gate.is_open(at(39)));
        assert_eq!((gate.deadline(), gate.idle_at()), (Some(at(40)), Some(at(63))));
        assert!(gate.is_open(at(40)), "of the first one nothing was heard");
        assert!(!gate.is_idle());
        gate.answered();
        assert!(gate.is_idle(), "the peer has answered");
        assert_eq!(gate.idle_at(), None);
    }

    #[test]
    fn with_echoes_one_frame_is_on_the_air_and_one_behind_it() {
        let mut gate = Gate::default();
        gate.handed(at(0));
        gate.echo();
        for waiting in 0..2 {
            assert!(gate.is_open(at(0)), "{waiting} wait");
            gate.handed(at(0));
        }
        assert!(!gate.is_open(at(199)));
        assert_eq!((gate.deadline(), gate.idle_at()), (Some(at(200)), Some(at(200))));
        gate.answered();
        assert!(!gate.is_open(at(199)), "an answer says nothing of what waits");
        gate.echo();
        assert!(gate.is_open(at(199)) && !gate.is_idle());
        gate.handed(at(199));
        assert!(gate.is_open(at(200)), "a frame of which nothing was heard for 200 ms is gone");
    }
}
