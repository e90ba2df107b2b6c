//! When a receiver asks.
//!
//! A block is asked for once the sender has gone on to the next, or has said that it is at the end. Whoever has
//! asked, or was heard to ask for as much, waits for the answer: until the sender is heard to be done with the
//! block (repairs of it came, and then something else), or for long enough that the request or all of the answer
//! must have been lost. Before each round of requests there is a random back-off (RFC 5401, section 3.2.2; RFC
//! 5740, section 5.3).
//!
//! A silent receiver goes through the same rounds without a word, since others may ask for what it lacks, but through
//! few: then it goes on without.

use hopcast_core::{Duration, Instant};

use super::missing::{Lack, Missing};
use super::remote::Remote;
use super::request;
use super::{Ask, Feedback, Output};
use crate::backoff::truncated_exponential;
use crate::norm::wire::{Body, Nack, Repair};

/// When to ask a sender for missing data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Requests {
    /// When the back-off ends.
    back_off: Option<Instant>,
    /// When to look whether an answer is overdue.
    overdue: Option<Instant>,
    /// Number of NACKs since the sender was last heard.
    unanswered: u32,
    /// Time before which there is no other.
    not_before: Instant,
    /// Others asked for something that is missing here too.
    pub(super) spared: bool,
    /// More is missing than there is room for.
    is_held_back: bool,
}

/// Bytes of requests in a NACK. Chosen: one datagram on any path, and blocks enough for a round.
const MAX_REQUESTS: usize = 1000;
/// Minimum time between two NACKs, which doubles with each one after which nothing of the sender is heard. Chosen:
/// whatever round trip a sender claims, a receiver sends a thousand a second at most, and a forged claim of objects
/// that nobody has is followed by about one a second.
const MIN_INTERVAL: Duration = Duration::from_millis(1);
/// Maximum number of times that it doubles: to a second.
const MAX_DOUBLINGS: u32 = 10;
/// Back-off factor of a large group, of which many may lack the same. Senders have 4 for any whose size they do not
/// know.
const LARGE_BACKOFF: u8 = 5;
/// Rounds in which nothing comes after which a silent receiver goes on. Chosen: at 50 % loss one of eight hears nothing
/// of three answers to others; each delays what comes after a gap.
const SILENT_ROUNDS: u16 = 3;
/// Minimum time that a silent receiver waits for others in each. Chosen: what a sender that nobody has answered
/// cannot know of its group.
const SILENT_HOLD: Duration = Duration::from_millis(100);

impl Requests {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            back_off: None,
            overdue: None,
            unanswered: 0,
            not_before: now,
            spared: false,
            is_held_back: false,
        }
    }

    /// The sender was heard.
    pub(super) fn heard(&mut self) {
        self.unanswered = 0;
    }

    /// Nothing is asked for until there is something new.
    pub(super) fn stop(&mut self) {
        (self.back_off, self.overdue) = (None, None);
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.back_off.into_iter().chain(self.overdue).min()
    }

    /// A NACK is sent.
    fn sent(&mut self, now: Instant) {
        let interval = MIN_INTERVAL * (1 << self.unanswered.min(MAX_DOUBLINGS));
        self.unanswered = self.unanswered.saturating_add(1);
        self.not_before = now + interval;
    }
}

impl Remote {
    /// Longest time until the answer to a request begins: the sender waits a GRTT for other requests, and its
    /// answer comes within another; those of others in the round come first.
    pub(super) fn hold(&self) -> Duration {
        self.grtt * (u64::from(self.backoff) + 2)
    }

    fn hold_of(&self, ask: &Ask<'_>) -> Duration {
        if ask.config.silent { self.hold().max(SILENT_HOLD) } else { self.hold() }
    }

    /// Starts the back-off of what is missing and nobody has asked for.
    pub(super) fn look(&mut self, now: Instant, ask: &mut Ask<'_>) {
        // Of a small group, one request for all that is missing costs least.
        let has_turn = self.is_small() && self.requests.back_off.is_some();
        if !has_turn && self.leaves.is_none() {
            let lack = self.lack(now, ask);
            self.back_off(now, lack, ask);
        }
    }

    /// Looks again where more is missing than there was room for, now that a block is complete.
    pub(super) fn look_behind(&mut self, now: Instant, ask: &mut Ask<'_>) {
        if self.requests.is_held_back {
            self.look(now, ask);
        }
    }

    /// Whether so few may lack the same that all that is missing has one back-off, whatever is found missing meanwhile.
    fn is_small(&self) -> bool {
        self.backoff < LARGE_BACKOFF
    }

    /// All that is missing; notes when to look again.
    fn lack(&mut self, now: Instant, ask: &Ask<'_>) -> Lack {
        let lack = self.missing(now, self.hold_of(ask), ask.config.buffer, self.is_small());
        (self.requests.overdue, self.requests.is_held_back) = (lack.overdue, lack.is_held_back);
        lack
    }

    /// Starts the back-off of what is missing and has none: one for all of it, so that what is found missing together
    /// is asked for together. What is found missing later has one of its own. Otherwise many of a large group, whose
    /// back-offs for a block are about to end, would ask for the next one without any.
    fn back_off(&mut self, now: Instant, lack: Lack, ask: &mut Ask<'_>) {
        let max = self.grtt * u64::from(self.backoff);
        if self.is_small() {
            self.requests.back_off = (!lack.due.is_empty()).then(|| {
                let wait = truncated_exponential(ask.random, max, self.group_size);
                (now + wait).max(self.requests.not_before)
            });
            return;
        }
        let mut next = lack.next.into_iter().chain((!lack.due.is_empty()).then_some(now)).min();
        if !lack.new.is_empty() {
            let until = now + truncated_exponential(ask.random, max, self.group_size);
            for missing in lack.new {
                self.asked(&missing, |asked| asked.backs_off(until));
            }
            next = next.into_iter().chain([until]).min();
        }
        self.requests.back_off = next.map(|next| next.max(self.requests.not_before));
    }

    pub(super) fn wake_requests(&mut self, now: Instant, ask: &mut Ask<'_>, out: &mut Output) {
        if self.requests.overdue.take_if(|at| *at <= now).is_some() {
            self.look(now, ask);
        }
        if self.requests.back_off.take_if(|at| *at <= now).is_some() {
            self.ask(now, ask, out);
        }
    }

    /// Asks for missing data, and gives up data that was asked for in vain.
    fn ask(&mut self, now: Instant, ask: &mut Ask<'_>, out: &mut Output) {
        let missing = self.lack(now, ask).due;
        if missing.is_empty() {
            ask.counts.nacks_suppressed += u64::from(self.requests.spared);
        }
        self.requests.spared = false;
        let robust = match ask.config.silent {
            true => SILENT_ROUNDS.min(ask.config.robust),
            false => self.patience(ask.config.robust),
        };
        let patient = self.patient();
        let heard = self.last_heard;
        let mut repairs: Vec<Repair> = Vec::new();
        let mut room = MAX_REQUESTS;
        let mut in_vain = Vec::new();
        for missing in missing {
            let repair = self.request(&missing);
            let Some(rest) = room.checked_sub(repair.len()) else { break };
            if self.asked(&missing, |asked| asked.ask(now, heard, (robust, patient))) {
                room = if ask.config.silent { room } else { rest };
                request::push(&mut repairs, repair);
            } else {
                in_vain.push(missing);
            }
        }
        let gave_up = !in_vain.is_empty();
        for missing in in_vain {
            self.give_up(&missing, ask, out);
        }
        if !repairs.is_empty() && !ask.config.silent {
            ask.counts.nacks_sent += 1;
            self.requests.sent(now);
            let nack = Nack {
                sender: self.node,
                instance: self.instance,
                grtt_response: self.response(now),
                cc: self.congestion.feedback(self.grtt),
                repairs,
            };
            self.congestion.said();
            out.feedback.push(Feedback { to: self.address, body: Body::Nack(nack) });
        }
        // Something may show behind what was given up, and there may be more than a NACK has room for: that is due, and
        // asked for when those that hear of this one have had their turn.
        let lack = self.lack(now, ask);
        if !lack.due.is_empty() {
            let turn = if gave_up { Duration::ZERO } else { self.grtt / 2 };
            self.requests.not_before = self.requests.not_before.max(now + turn.max(MIN_INTERVAL));
        }
        self.back_off(now, lack, ask);
    }

    /// Goes on without something that nobody has any more: a stream leaves it out, of an object nothing is left.
    fn give_up(&mut self, missing: &Missing, ask: &mut Ask<'_>, out: &mut Output) {
        let mut pieces = Vec::new();
        let mut up = |piece| pieces.push(piece);
        match *missing {
            Missing::Object(number) => self.is_gone(number, ask, out),
            Missing::Info(number) => {
                self.objects.change(number, super::object::Object::give_up_info);
                self.hand_up(number, ask, out);
            }
            Missing::Block(number, block) | Missing::Symbols(number, block, _) => {
                let end = self.progress.end.filter(|&(at, last, _)| (at, last) == (number, block));
                let end = end.map(|(.., symbol)| symbol);
                match self.objects.change(number, |object| object.give_up(block, end, &mut up)) {
                    Some(true) => {
                        self.deliver(number, pieces, ask, out);
                        self.hand_up(number, ask, out);
                    }
                    Some(false) => {
                        self.objects.finish(number);
                        self.missing_for_good(number, ask, out);
                    }
                    None => {}
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
