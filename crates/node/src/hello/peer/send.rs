//! Sending hellos and probes to a peer.

use hopcast_core::{Duration, Instant};

use super::probe::{self, Step};
use super::{ELSEWHERE_SLOTS, MIN_ANSWER_INTERVAL, Myself, Path, Peer};
use crate::daemon::notice::Notice;
use crate::hello::wire::{Hello, Stamp};

/// Maximum time between hellos that the spacing of probes assumes. Chosen: the default of `hello`; with more, a round
/// of probes takes longer where hellos are rare.
const MAX_PROBE_PACE: Duration = Duration::from_secs(1);

impl Peer {
    /// Sends a hello that announces this node's end.
    pub(crate) fn say_bye(&mut self, now: Instant, myself: &mut Myself) {
        if let (true, Some(path)) = (self.is_up(), self.path) {
            let hello = Hello { bye: true, ask: false, ..self.hello(now, path, self.stamp, myself) };
            self.send(path, &hello, myself);
        }
    }

    /// Answers a hello whose sender has `proved` that it receives at its address, or has not: unproved senders cannot
    /// exhaust the answers to proved ones.
    pub(super) fn answer(
        &mut self,
        now: Instant,
        path: Path,
        stamp: (Stamp, Instant),
        proved: bool,
        myself: &mut Myself,
    ) {
        let slot = match self.address() == Some(path.address) {
            true => usize::from(!proved),
            false => 2 + path.nonce as usize % ELSEWHERE_SLOTS,
        };
        if self.answered[slot].is_some_and(|at| now < at + MIN_ANSWER_INTERVAL) {
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

    /// Sends the probes that are due, unless the peer is silent: a path may pass short datagrams and lose all long
    /// ones.
    pub(super) fn say_probes(&mut self, now: Instant, silent: bool, myself: &mut Myself) {
        let Some(path) = self.path else { return };
        if silent {
            self.probe.restart(now + myself.timing.hello);
            return;
        }
        let full = myself.datagram + 1;
        let figures = probe::PathFigures {
            full,
            headers: myself.headers,
            pace: myself.timing.hello.min(MAX_PROBE_PACE),
            round_trip: self.round_trip.unwrap_or_default(),
            loss: self.loss_out.share().unwrap_or_default(),
        };
        match self.probe.step(now, &figures) {
            Step::Send { bytes, copies, round } => {
                for _ in 0..copies {
                    let hello = self.hello(now, path, self.stamp, myself);
                    self.send(path, &Hello { ask: true, padded: bytes, round, ..hello }, myself);
                }
            }
            Step::Found(longest) if self.probe.told != Some((longest, myself.fragments)) => {
                self.probe.told = Some((longest, myself.fragments));
                let passes = (longest > 0).then_some(longest + myself.headers);
                let (peer, bytes) = (self.name.clone(), full);
                myself.notices.push(Notice::Full { peer, bytes, passes, fragments: myself.fragments });
            }
            Step::Found(_) | Step::Nothing => {}
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
            instance: myself.instance,
            sequence: myself.sequence,
            stamp: Stamp { nonce: path.nonce, micros: micros(now.as_nanos()) },
            echo,
            held: micros(held),
            sent: self.sent.datagrams as u32,
            heard: self.counts,
            datagram: myself.datagram,
            round: 0,
            padded: 0,
            longest: self.longest,
            lanes: self.offered.clone(),
        }
    }
}
