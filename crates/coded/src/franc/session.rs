//! Session of two ends: they find each other, and notice that the other one has begun anew.
//!
//! Each end draws a session number. An end has *met* its peer once the peer has echoed that number: what it says is
//! then neither old nor recorded. Both then belong to one association, whose number every packet carries. An end that
//! has used an association and meets its peer under another session draws a new number for itself too, so that nothing
//! of the old association, however late it comes, is taken for the new one's.

use core::hash::Hasher;

use hopcast_core::{Duration, Instant, Stream};
use siphasher::sip::SipHasher13;

use super::wire::Hello;

/// Time between two HELLOs; after [`PATIENCE`] of them that nobody has answered it doubles, up to [`SLOWEST`]. Chosen;
/// shorter costs airtime while the other end is away, longer finds it later.
const FASTEST: Duration = Duration::from_millis(20);
/// HELLOs without an answer: a second of them. See [`FASTEST`].
const PATIENCE: u32 = 50;
/// Maximum time between two: see [`FASTEST`].
const SLOWEST: Duration = Duration::from_millis(500);

/// One end's view of the two sessions.
#[derive(Debug)]
pub(super) struct Session {
    random: Stream,
    own: u32,
    /// The peer's session, once we have met.
    peer: Option<u32>,
    /// The session of which a HELLO came last, which ours echo.
    heard: u32,
    /// Whether something of the association has arrived.
    used: bool,
    profile: u32,
    /// A HELLO is owed.
    owed: bool,
    /// None is sent before this.
    not_before: Instant,
    pause: Duration,
    unanswered: u32,
}

/// Effect of a HELLO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Met {
    /// Nothing new.
    Nothing,
    /// The peer, for the first time; an unused association may have been replaced.
    Peer,
    /// The peer has begun anew: all that was under way is void.
    Restarted,
    /// The peer has other settings.
    Mismatch,
}

impl Session {
    pub(super) fn new(profile: u32, mut random: Stream) -> Self {
        let own = fresh(&mut random, 0);
        Self {
            random,
            own,
            peer: None,
            heard: 0,
            used: false,
            profile,
            owed: false,
            not_before: Instant::ZERO,
            pause: FASTEST,
            unanswered: 0,
        }
    }

    /// The association's number, once the peer is met.
    pub(super) fn association(&self) -> Option<u32> {
        self.peer.map(|peer| {
            // The same at both ends, whichever is asked.
            let (low, high) = (self.own.min(peer), self.own.max(peer));
            let mut hasher = SipHasher13::new();
            hasher.write_u32(low);
            hasher.write_u32(high);
            (hasher.finish() as u32).max(1)
        })
    }

    /// Something of the association has arrived.
    pub(super) fn used(&mut self) {
        self.used = true;
        self.answered();
    }

    /// A HELLO is needed: there is something to send and nobody to send it to, or a stranger's packet came.
    pub(super) fn ask(&mut self) {
        self.owed = true;
    }

    /// Time at which a HELLO is to be sent.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.owed.then_some(self.not_before)
    }

    /// The HELLO that is due.
    pub(super) fn poll(&mut self, now: Instant) -> Option<Hello> {
        if !self.owed || now < self.not_before {
            return None;
        }
        self.owed = false;
        self.not_before = now + self.pause;
        self.unanswered = self.unanswered.saturating_add(1);
        if self.unanswered > PATIENCE {
            self.pause = (self.pause + self.pause).min(SLOWEST);
        }
        Some(Hello { own: self.own, peer: self.heard, profile: self.profile })
    }

    fn answered(&mut self) {
        (self.pause, self.unanswered) = (FASTEST, 0);
    }

    /// Whether the peer may not have heard yet that we have met.
    pub(super) fn is_new(&self) -> bool {
        self.peer.is_some() && !self.used
    }

    /// Takes the peer's HELLO.
    pub(super) fn hello(&mut self, hello: Hello) -> Met {
        if hello.profile != self.profile {
            return Met::Mismatch;
        }
        self.heard = hello.own;
        if hello.own == 0 || hello.peer != self.own {
            // It does not know us, or it is a recording: whoever echoes the answer is there now.
            self.owed = true;
            self.answered();
            return Met::Nothing;
        }
        if self.peer == Some(hello.own) {
            // Until something of the association arrives, the peer may not have heard that we have met.
            self.owed = !self.used;
            return Met::Nothing;
        }
        self.owed = true;
        self.answered();
        self.peer = Some(hello.own);
        if core::mem::take(&mut self.used) {
            self.own = fresh(&mut self.random, self.own);
            return Met::Restarted;
        }
        Met::Peer
    }
}

fn fresh(random: &mut Stream, not: u32) -> u32 {
    loop {
        let number = random.bits() as u32;
        if number != 0 && number != not {
            return number;
        }
    }
}

#[cfg(test)]
mod tests {
    use hopcast_core::Seed;

    use super::*;

    /// Time from each of a number of HELLOs to the next one, in milliseconds, while nobody answers.
    fn pauses(session: &mut Session, count: usize) -> Vec<u64> {
        let mut last = None;
        let mut pauses = Vec::new();
        while pauses.len() < count {
            session.ask();
            let at = session.deadline().unwrap();
            assert!(session.poll(at).is_some());
            pauses.extend(last.map(|last| at.since(last).as_millis()));
            last = Some(at);
        }
        pauses
    }

    #[test]
    fn after_50_hellos_that_nobody_answers_they_become_seldom() {
        let mut session = Session::new(7, Seed::new(1, 0).stream(&["session"], 0));
        let found = pauses(&mut session, 60);
        assert_eq!(found[..51], [20; 51]);
        assert_eq!(found[51..], [40, 80, 160, 320, 500, 500, 500, 500, 500]);
        // An answer, and they are frequent again.
        assert_eq!(session.hello(Hello { own: 5, peer: 0, profile: 7 }), Met::Nothing);
        assert_eq!(pauses(&mut session, 52)[1..51], [20; 50]);
    }
}
