//! Places of senders: a receiver takes the objects of a number of senders at a time, and the others wait.
//!
//! Each place has the memory of one sender's objects. Its sender keeps it while something of it is incomplete and gets
//! on ([`Turn`]); otherwise the place goes to whoever has waited for longest, once there is such a one. Of a sender
//! that waits it is noted which objects it sends, and nothing is kept or asked for. When it has its place it is asked
//! for all of them, as by a receiver that has come late: that it is silent by then does not matter, if it still holds
//! them.

use hopcast_core::{Duration, Instant};

use super::remote::Remote;
use super::{Ask, Heard, Output, Receiver};
use crate::Join;
use crate::norm::wire::{Body, Command, Flags, Header, NodeId};

/// A sender without a place.
#[derive(Debug)]
pub(super) struct Waiting {
    remote: Remote,
    /// Since when there is something of it to be received.
    since: Option<Instant>,
}

/// The time for which a sender keeps its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    /// When something came that was missing.
    progress: Instant,
    /// Until when it has a place for what it has sent whole.
    earned: Instant,
}

/// Senders without a place that are known. Chosen: more than are active in a group; each takes about a kilobyte.
const MAX_WAITING: usize = 64;
/// Number of times the longest wait for an answer for which nothing that was missing may come, and its limits. Chosen:
/// at 50 % loss one of 16 receivers hears nothing of as many answers; a slow sender's packets are seconds apart, and
/// whatever round trip a sender claims, others wait no longer.
const ANSWERS: u64 = 4;
const MIN_PAUSE: Duration = Duration::from_secs(5);
const MAX_PAUSE: Duration = Duration::from_secs(15);
/// Time that a sender has for its first block, and that it can have left at any time. Chosen: a block of 64 symbols of
/// 1400 bytes takes it at 12 kbit/s; whoever sends symbols that make no block keeps others out for as long.
const CREDIT: Duration = Duration::from_secs(60);
/// Bytes in blocks that are complete for which a sender has a second more. Chosen: 8 kbit/s, below what most paths
/// carry; whoever sends less only to keep a place loses it.
const BYTES_PER_SECOND: f64 = 1000.0;

impl Turn {
    pub(super) fn new(now: Instant) -> Self {
        Self { progress: now, earned: now + CREDIT }
    }

    /// A symbol or an info came that was missing.
    pub(super) fn progress(&mut self, now: Instant) {
        self.progress = now;
    }

    /// A block of as many bytes is complete.
    pub(super) fn complete(&mut self, now: Instant, bytes: u64) {
        let more = Duration::from_secs_f64(bytes as f64 / BYTES_PER_SECOND);
        self.earned = (self.earned.max(now) + more.min(CREDIT)).min(now + CREDIT);
    }

    /// When it is over, if nothing more comes. The answer to a request takes up to `hold`.
    fn end(&self, hold: Duration) -> Instant {
        (self.progress + (hold * ANSWERS).clamp(MIN_PAUSE, MAX_PAUSE)).min(self.earned)
    }
}

impl Remote {
    /// A packet of it has come: what it begins with all else complete it has the whole time for.
    pub(super) fn begin_turn(&mut self, now: Instant) {
        if !self.lacks_any() {
            self.turn = Turn::new(now);
        }
    }

    /// When another may have its place, if nothing more comes of it.
    fn turn_ends(&self) -> Instant {
        self.turn.end(self.hold())
    }

    /// Whether no other may have its place.
    fn keeps_place(&self, now: Instant) -> bool {
        self.turn_ends() > now && self.lacks_any()
    }

    /// Whether something of it is incomplete.
    fn lacks_any(&self) -> bool {
        self.progress.last.is_some_and(|(last, _)| self.objects.wanted(last).next().is_some())
    }

    /// Notes what it sends while it has no place. True if that is something to be received.
    fn passes_by(&mut self, now: Instant, body: &Body<'_>, ask: &mut Ask<'_>) -> bool {
        let (object, flags) = match body {
            Body::Info(info) => {
                self.numbering.note(info.fec, info.fti);
                (info.object, info.flags)
            }
            Body::Data(data) => {
                self.numbering.note(data.fec, data.fti);
                (data.object, data.flags)
            }
            Body::Command(_, Command::Flush { last, .. }) => {
                self.numbering.note(last.fec, None);
                (last.object, Flags::default())
            }
            Body::Command(_, Command::EndOfTransmission) => {
                self.leaves.get_or_insert(now + self.grtt * 2);
                return false;
            }
            Body::Command(..) | Body::Nack(_) | Body::Ack(_) => return false,
        };
        // Nothing is asked for of what such a stream had before: it begins with the first packet that is taken.
        if flags.contains(Flags::STREAM) && ask.config.join == Join::Now {
            return true;
        }
        let Some(number) = self.place(object, ask).filter(|&number| !self.objects.is_done(number)) else {
            return false;
        };
        self.progress.advance((number, 0));
        true
    }
}

impl Receiver {
    /// Takes a packet of a sender without a place. True if the sender has one now, and the packet is to be received.
    pub(super) fn finds_place(
        &mut self,
        now: Instant,
        heard: &Heard<'_>,
        header: Header,
        out: &mut Output,
    ) -> bool {
        let from = heard.message.source;
        if !self.waiting.contains_key(&from) {
            self.forget_beyond(MAX_WAITING - 1, out);
            let remote = Remote::new(from, header.instance, heard.from, now);
            self.waiting.insert(from, Waiting { remote, since: None });
        }
        let (_, waiting, mut ask) = self.parts();
        let Some(Waiting { remote, since }) = waiting.get_mut(&from) else { return false };
        if !remote.begin(now, heard, header, &mut ask, out) {
            return false;
        }
        if remote.passes_by(now, &heard.message.body, &mut ask) {
            since.get_or_insert(now);
        }
        self.give_places(now, out);
        let has_place = self.remotes.contains_key(&from);
        let is_lost = !has_place && matches!(heard.message.body, Body::Info(_) | Body::Data(_));
        self.counts.no_room += u64::from(is_lost);
        has_place
    }

    /// Gives places that are free, or of which the sender has nothing that gets on, to those that have waited for
    /// longest; of several such senders the one that was silent for longest makes room.
    /// True if anybody has one now who had none.
    pub(super) fn give_places(&mut self, now: Instant, out: &mut Output) -> bool {
        let mut any = false;
        while let Some((_, next)) = self.next_waiting() {
            if self.remotes.len() >= self.config.senders {
                let idle = self.remotes.values().filter(|remote| !remote.keeps_place(now));
                let Some(idle) = idle.min_by_key(|remote| remote.last_heard).map(|remote| remote.node) else {
                    break;
                };
                self.take_place(now, idle, out);
            }
            let Some(Waiting { mut remote, .. }) = self.waiting.remove(&next) else { break };
            remote.turn = Turn::new(now);
            let (_, _, mut ask) = self.parts();
            remote.look(now, &mut ask);
            self.remotes.insert(next, remote);
            any = true;
        }
        any
    }

    /// When the next place is free for one of those that wait, if nothing more comes.
    pub(super) fn next_place(&self) -> Option<Instant> {
        self.next_waiting()?;
        self.remotes.values().map(Remote::turn_ends).min()
    }

    /// Of those of which something is to be received, the one that has waited for longest.
    fn next_waiting(&self) -> Option<(Instant, NodeId)> {
        let wait = |(&node, waiting): (&NodeId, &Waiting)| {
            let since = waiting.since.filter(|_| waiting.remote.leaves.is_none())?;
            Some((since, node))
        };
        self.waiting.iter().filter_map(wait).min()
    }

    /// Takes the place of a sender, which is known on if all of it is here: it must not be taken for a new one.
    fn take_place(&mut self, now: Instant, node: NodeId, out: &mut Output) {
        let Some(mut remote) = self.remotes.remove(&node) else { return };
        if remote.lacks_any() {
            let (_, _, mut ask) = self.parts();
            remote.close(&mut ask, out);
            self.counts.forgotten += 1;
            let last_heard = remote.last_heard;
            remote = Remote::new(node, remote.instance, remote.address, now);
            remote.last_heard = last_heard;
        }
        self.waiting.insert(node, Waiting { remote, since: None });
        self.forget_beyond(MAX_WAITING, out);
    }

    /// Forgets senders without a place that were silent for longest, first those of which nothing is to be received,
    /// until there are `most` at most.
    fn forget_beyond(&mut self, most: usize, out: &mut Output) {
        while self.waiting.len() > most {
            let silent =
                |(_, waiting): &(&NodeId, &Waiting)| (waiting.since.is_some(), waiting.remote.last_heard);
            let Some(node) = self.waiting.iter().min_by_key(silent).map(|(&node, _)| node) else { return };
            let Some(mut waiting) = self.waiting.remove(&node) else { return };
            let (_, _, mut ask) = self.parts();
            waiting.remote.close(&mut ask, out);
            self.counts.forgotten += 1;
        }
    }

    /// Those without a place that have left are over.
    pub(super) fn wake_waiting(&mut self, now: Instant, out: &mut Output) {
        let (_, waiting, mut ask) = self.parts();
        for Waiting { remote, since } in waiting.values_mut() {
            if remote.leaves.is_some_and(|at| at <= now) {
                remote.close(&mut ask, out);
                *since = None;
            }
        }
    }

    /// When the next of those without a place is gone.
    pub(super) fn next_leaving(&self) -> Option<Instant> {
        self.waiting.values().filter_map(|waiting| waiting.remote.leaves).min()
    }
}
