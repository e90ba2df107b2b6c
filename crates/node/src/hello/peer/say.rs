//! What a peer is told.

use hopcast_core::Instant;

use super::{ANSWERS, ELSEWHERE, FULL_EVERY, FULL_NEWS, FULL_UNHEARD, Myself, Path, Peer};
use crate::daemon::notice::Notice;
use crate::hello::wire::{Hello, Stamp};

impl Peer {
    /// Says that this node ends.
    pub(crate) fn say_bye(&mut self, now: Instant, myself: &mut Myself) {
        if let (true, Some(path)) = (self.is_up(), self.path) {
            let hello = Hello { bye: true, ask: false, ..self.hello(now, path, self.stamp, myself) };
            self.send(path, &hello, myself);
        }
    }

    pub(super) fn answer(&mut self, now: Instant, path: Path, stamp: (Stamp, Instant), myself: &mut Myself) {
        let slot = if self.address() == Some(path.address) { 0 } else { 1 + path.nonce as usize % ELSEWHERE };
        if self.answered[slot].is_some_and(|at| now < at + ANSWERS) {
            return;
        }
        self.answered[slot] = Some(now);
        self.say(now, path, Some(stamp), myself);
    }

    pub(super) fn say(
        &mut self,
        now: Instant,
        path: Path,
        stamp: Option<(Stamp, Instant)>,
        myself: &mut Myself,
    ) {
        let hello = self.hello(now, path, stamp, myself);
        self.send(path, &hello, myself);
    }

    /// Says hello in a datagram as long as any that is carried: a way may pass short ones and swallow those.
    pub(super) fn say_fully(&mut self, now: Instant, path: Path, myself: &mut Myself) {
        let hello = Hello { full: true, ..self.hello(now, path, self.stamp, myself) };
        self.send(path, &hello, myself);
        self.next_full = now + FULL_EVERY;
        self.full_unheard += 1;
        if self.full_unheard == FULL_UNHEARD {
            let bytes = usize::from(myself.datagram) + 1;
            myself.notices.push(Notice::Full { peer: self.name.clone(), bytes });
        }
    }

    fn send(&mut self, path: Path, hello: &Hello, myself: &mut Myself) {
        let mut hello = hello.clone();
        if self.address() == Some(path.address) {
            hello.sent = self.sent.datagrams.wrapping_add(1) as u32;
            let bytes = hello.emit();
            self.sent.count(bytes.len());
            myself.hellos.push((path.address, bytes));
        } else {
            myself.hellos.push((path.address, hello.emit()));
        }
    }

    fn hello(&self, now: Instant, path: Path, stamp: Option<(Stamp, Instant)>, myself: &mut Myself) -> Hello {
        myself.sequence = myself.sequence.wrapping_add(1);
        let micros = |at: u64| (at / 1000) as u32;
        let (echo, held) =
            stamp.map_or_else(Default::default, |(stamp, at)| (stamp, now.since(at).as_nanos()));
        Hello {
            name: myself.name.clone(),
            ask: !self.is_up() || self.is_silent(now, &myself.timing),
            bye: false,
            full: false,
            got_full: self.full_heard.is_some_and(|at| now < at + FULL_NEWS.max(myself.timing.hello * 4)),
            instance: myself.instance,
            sequence: myself.sequence,
            stamp: Stamp { nonce: path.nonce, micros: micros(now.as_nanos()) },
            echo,
            held: micros(held),
            sent: self.sent.datagrams as u32,
            heard: self.counts,
            datagram: myself.datagram,
            lanes: self.lanes.clone(),
        }
    }
}
