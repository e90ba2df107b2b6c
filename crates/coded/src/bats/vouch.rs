//! Choice of the current session, where nobody has a clock that others know.
//!
//! A session is known by a mark that its source draws. The first one that a node hears of is taken at its word. Another
//! one replaces it only when the parent *vouches* for it: it echoes a nonce that this node has sent there.
//!
//! ```text
//! source (started anew)        relay (knows the session before)
//!    │  INFO, mark 9          ───────►     │  not the session that is known: is it true?
//!    │  ◄───────  CHALLENGE, nonce 7       │
//!    │  INFO, mark 9, echo 7  ───────►     │  the session is that of mark 9 from now on
//! ```
//!
//! A source vouches for its own session. A relay vouches for what its parent has vouched for within [`VOUCH_LIFETIME`],
//! and asks that first if it has to; so a relay that has missed a change brings no old session back, and a change takes
//! one round trip of each hop. Nothing is kept of the sessions that nobody vouches for, so whoever sends INFO without
//! hearing what is sent here changes nothing, however many and whatever they claim. What was under way when a session
//! ended is challenged like that, and nobody answers for it.
//!
//! *Scope and departures*: who reads the challenges can answer them; only keys prevent that.

use std::num::NonZeroU32;

use hopcast_core::{Buffer, Datagram, Duration, Instant, Item};

use super::mode::Mode;
use super::node::Node;
use super::transmit::describe;
use super::wire::{self, Info, Writer};

/// Time for which a relay vouches for what its parent has vouched for. Chosen: long enough for a change to pass down a
/// path of hops, each of which is challenged as soon as it has told the next one, and short beside the time that an
/// edge needs to start.
const VOUCH_LIFETIME: Duration = Duration::from_secs(1);
/// Time after which a challenge is sent again, if there is still a reason: INFO of unknown sessions costs no more than
/// this. Chosen; shorter costs more answers, longer delays a session whose challenge was lost.
const CHALLENGE_INTERVAL: Duration = Duration::from_millis(50);
/// Minimum time between two answers to one neighbour. Chosen: it bounds what forged challenges cost; longer delays a
/// neighbour whose answer was lost.
const ANSWER_INTERVAL: Duration = Duration::from_millis(10);

/// The challenges between a neighbour and this node.
#[derive(Debug, Default)]
pub(super) struct Vouch {
    /// The nonce that the neighbour is to echo; it stays the same until it does, however long the path is.
    nonce: Option<NonZeroU32>,
    /// Time at which it was sent last, and whether it is to be sent now.
    sent: Option<Instant>,
    due: bool,
    /// The nonce that the neighbour wants echoed, and when it was answered last.
    wanted: Option<NonZeroU32>,
    answered: Option<Instant>,
}

impl<M: Mode> Node<M> {
    /// A neighbour asks which session this node sends it.
    pub(super) fn on_challenge(&mut self, now: Instant, from: usize, nonce: NonZeroU32) {
        let vouch = &mut self.neighbours[from].vouch;
        if vouch.answered.is_some_and(|at| now < at + ANSWER_INTERVAL) {
            return;
        }
        vouch.wanted = Some(nonce);
        let out = self.neighbours[from].out;
        if !self.may_vouch(now, out) {
            for parent in 0..self.neighbours.len() {
                if self.neighbours[parent].into == out {
                    self.challenge(now, parent);
                }
            }
        }
    }

    /// Whether INFO of a parent answers the challenge that it was sent.
    pub(super) fn hear_vouch(&mut self, now: Instant, from: usize, info: &Info) -> bool {
        let parent = &mut self.neighbours[from];
        let answers = info.echo.is_some() && info.echo == parent.vouch.nonce;
        if answers {
            parent.vouch.nonce = None;
            self.vouched[parent.into] = Some(now);
        }
        answers
    }

    /// Asks a parent which session it sends.
    pub(super) fn challenge(&mut self, now: Instant, parent: usize) {
        let vouch = &mut self.neighbours[parent].vouch;
        if vouch.sent.is_none_or(|at| now >= at + CHALLENGE_INTERVAL) {
            let random = &mut self.random;
            vouch
                .nonce
                .get_or_insert_with(|| NonZeroU32::new(random.bits() as u32).unwrap_or(NonZeroU32::MIN));
            (vouch.sent, vouch.due) = (Some(now), true);
        }
    }

    fn may_vouch(&self, now: Instant, direction: usize) -> bool {
        self.edge.is_some() || self.vouched[direction].is_some_and(|at| now < at + VOUCH_LIFETIME)
    }

    /// The next challenge to a neighbour, or the answer to its own.
    pub(super) fn next_vouch(&mut self, now: Instant, to: usize) -> Option<Item> {
        let out = self.neighbours[to].out;
        let may_vouch = self.may_vouch(now, out);
        let Self { neighbours, directions, counters, .. } = self;
        let neighbour = &mut neighbours[to];
        let vouch = &mut neighbour.vouch;
        let datagram = if core::mem::take(&mut vouch.due) {
            let nonce = vouch.nonce?;
            let mut datagram = Buffer::zeroed(1 + wire::CHALLENGE_LEN);
            let mut writer = Writer::new(&mut datagram);
            writer.u8(wire::MAGIC);
            wire::write_challenge(nonce, &mut writer);
            counters.challenges += 1;
            datagram
        } else {
            let (true, Some(direction), Some(nonce)) = (may_vouch, &directions[out], vouch.wanted) else {
                return None;
            };
            (vouch.wanted, vouch.answered) = (None, Some(now));
            let info = Info { echo: Some(nonce), ..describe::<M>(direction, &neighbour.sender, false) };
            let mut datagram = Buffer::zeroed(1 + info.len());
            let mut writer = Writer::new(&mut datagram);
            writer.u8(wire::MAGIC);
            info.write(&mut writer);
            counters.info_bytes += info.len() as u64;
            datagram
        };
        Some(Item::Datagram(Datagram::new(self.local, neighbour.address, datagram)))
    }
}

#[cfg(test)]
mod tests {
    use hopcast_core::Seed;

    use super::super::node::{INTO, OUT};
    use super::super::ranks::Node;
    use super::*;
    use crate::bats::Config;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn relay() -> Node {
        let [local, left, right] = [1, 2, 3].map(|last| ([10, 0, 0, last], 9000).into());
        let random = Seed::new(1, 0).stream(&["vouch"], 0);
        Node::relay(Config::default(), local, &[left], &[right], random)
    }

    #[test]
    fn a_challenge_is_sent_again_after_50_ms_and_its_nonce_stays() {
        let mut node = relay();
        let mut nonces = Vec::new();
        for now in 0..160 {
            node.challenge(at(now), 0);
            if let Some(Item::Datagram(datagram)) = node.next_vouch(at(now), 0) {
                nonces.push((now, datagram.payload.to_vec()));
            }
        }
        assert_eq!(nonces.iter().map(|(now, _)| *now).collect::<Vec<_>>(), [0, 50, 100, 150]);
        assert!(nonces.iter().all(|(_, payload)| payload.len() == 6 && *payload == nonces[0].1));
    }

    #[test]
    fn a_neighbour_is_answered_every_10_ms_at_most() {
        let mut node = relay();
        let nonce = |nonce| NonZeroU32::new(nonce).unwrap();
        node.neighbours[1].vouch.answered = Some(at(100));
        node.on_challenge(at(109), 1, nonce(1));
        assert_eq!(node.neighbours[1].vouch.wanted, None);
        node.on_challenge(at(110), 1, nonce(2));
        assert_eq!(node.neighbours[1].vouch.wanted, Some(nonce(2)));
    }

    #[test]
    fn a_relay_vouches_for_a_second_for_what_its_parent_has_vouched_for() {
        let mut node = relay();
        assert!(!node.may_vouch(at(0), OUT));
        node.vouched[OUT] = Some(at(100));
        assert!(node.may_vouch(at(1099), OUT) && !node.may_vouch(at(1100), OUT));
        assert!(!node.may_vouch(at(100), INTO));
        // One that may not asks its own parent.
        node.on_challenge(at(1100), 1, NonZeroU32::MIN);
        let asks: Vec<bool> = node.neighbours.iter().map(|neighbour| neighbour.vouch.due).collect();
        let parents: Vec<bool> =
            node.neighbours.iter().map(|neighbour| neighbour.into == node.neighbours[1].out).collect();
        assert_eq!(asks, parents);
    }
}
