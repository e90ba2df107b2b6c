//! Receiving a peer's hellos.

use std::net::SocketAddr;

use hopcast_core::{Duration, Instant};

use super::{Follow, MAX_ROUND_TRIP, Myself, Path, Peer, State};
use crate::daemon::complaints::may_say;
use crate::daemon::notice::Notice;
use crate::hello::wire::{Counts, Hello, Longest};

impl Peer {
    /// Handles a hello, of a datagram of `length` bytes.
    pub(crate) fn on_hello(
        &mut self,
        now: Instant,
        from: SocketAddr,
        hello: &Hello,
        bytes: usize,
        myself: &mut Myself,
    ) {
        let here = self.path.filter(|path| path.address == from);
        if here.is_some() {
            self.received.count(bytes);
        }
        if here.is_none() && !self.may_be_at(from) {
            return self.disbelieve(now, from, myself);
        }
        let is_known = self.instance == Some(hello.instance);
        if is_known && hello.sequence.wrapping_sub(self.sequence) as i32 <= 0 {
            return;
        }
        let path = here.unwrap_or_else(|| self.elsewhere(from));
        let stamp = (hello.stamp, now);
        if hello.echo.nonce != path.nonce {
            // It has not yet proved that it receives datagrams at that address.
            if here.is_some() && !self.is_up() {
                self.stamp = Some(stamp);
            }
            return self.answer(now, path, stamp, false, myself);
        }
        if here.is_none() && !self.moves_to(now, path, myself) {
            return;
        }
        self.stamp = Some(stamp);
        self.trusted(now, hello, myself);
        if hello.ask
            && let Some(path) = self.path
        {
            self.answer(now, path, stamp, true, myself);
        }
    }

    /// Handles a hello of another version.
    pub(crate) fn on_other_version(
        &mut self,
        now: Instant,
        from: SocketAddr,
        version: u8,
        myself: &mut Myself,
    ) {
        // Ignored for a peer that is up: either it has this version, or it will become silent.
        if self.is_up() || !self.may_be_at(from) {
            self.disbelieved += 1;
            return;
        }
        let before = core::mem::replace(&mut self.state, State::Version(version));
        // A notice that is not due yet waits for its next hello.
        self.version_unsaid |= before != self.state;
        if self.version_unsaid && may_say(now, &mut self.said_version) {
            self.version_unsaid = false;
            myself.notices.push(Notice::Version { peer: self.name.clone(), version });
        }
    }

    /// Whether it has moved to this address from its last one.
    fn moves_to(&mut self, now: Instant, path: Path, myself: &mut Myself) -> bool {
        if self.is_up() && (self.follow != Follow::Roams || !self.is_silent(now, &myself.timing)) {
            self.disbelieve(now, path.address, myself);
            return false;
        }
        let before = self.path.replace(path);
        self.epoch += 1;
        if let Some(before) = before.filter(|_| self.instance.is_some()) {
            self.moves += 1;
            myself.notices.push(Notice::Moved {
                peer: self.name.clone(),
                from: before.address,
                to: path.address,
            });
        }
        true
    }

    /// Rejects a hello in its name from another address.
    fn disbelieve(&mut self, now: Instant, address: SocketAddr, myself: &mut Myself) {
        self.disbelieved += 1;
        if may_say(now, &mut self.said_name_in_use) {
            let (peer, fixed) = (self.name.clone(), self.follow != Follow::Roams);
            myself.notices.push(Notice::NameInUse { peer, address, fixed });
        }
    }

    /// Accepts a hello whose sender has proved that it receives at its address.
    fn trusted(&mut self, now: Instant, hello: &Hello, myself: &mut Myself) {
        self.heard_at = now;
        self.sequence = hello.sequence;
        let before = self.instance.replace(hello.instance);
        let anew = before != Some(hello.instance);
        if anew {
            self.loss_in.restart();
            self.loss_out.restart();
            // Replayed hellos of the last instance are no longer accepted.
            self.epoch += 1;
            if let Some(path) = &mut self.path {
                path.nonce = myself.nonce();
            }
        }
        if hello.bye {
            if self.is_up() {
                self.state = State::Down { since: now };
                myself.notices.push(Notice::Left { peer: self.name.clone() });
            }
            return;
        }
        let trip = (now.as_nanos() / 1000) as u32;
        let trip = trip.wrapping_sub(hello.echo.micros).wrapping_sub(hello.held);
        let trip = Duration::from_micros(u64::from(trip));
        if trip < MAX_ROUND_TRIP {
            // Smoothed as in TCP (RFC 6298, section 2).
            let smoothed =
                self.round_trip.map_or(trip, |before| before.mul_f64(7.0 / 8.0) + trip.mul_f64(1.0 / 8.0));
            self.round_trip = Some(smoothed);
        }
        self.counts = Counts { sent: hello.sent, received: self.received.datagrams as u32 };
        self.loss_in.note(self.counts);
        if hello.heard.sent != 0 {
            self.loss_out.note(hello.heard);
        }
        if hello.padded > 0 {
            let before = Some(self.longest.bytes).filter(|_| self.longest.round == hello.round && !anew);
            let bytes = before.unwrap_or(0).max(hello.padded);
            self.longest = Longest { round: hello.round, bytes };
        }
        if anew || !self.is_up() {
            self.probe.restart(now);
        } else if self.probe.heard(hello.longest, myself.datagram + 1) && !myself.fragments {
            (self.probe.passes, self.probe.told) = (None, None);
        }
        if !self.is_up() {
            self.state = State::Up { since: now };
            let (peer, address) = (self.name.clone(), self.address());
            myself.notices.push(Notice::Up { peer, address, round_trip: trip });
        } else if anew {
            myself.notices.push(Notice::Restarted { peer: self.name.clone() });
        }
        if anew {
            self.restarts += u64::from(before.is_some());
        }
        if anew || self.theirs.as_ref() != Some(&hello.lanes) {
            self.compare(hello, anew, myself);
            self.theirs = Some(hello.lanes.clone());
        }
    }

    /// Notices about lanes and lengths on which the ends do not agree.
    fn compare(&self, hello: &Hello, anew: bool, myself: &mut Myself) {
        for &tag in self.needed.iter().filter(|tag| !hello.lanes.contains(tag)) {
            myself.notices.push(Notice::Lane { peer: self.name.clone(), tag });
        }
        if anew && hello.datagram != myself.datagram {
            let (theirs, ours) = (hello.datagram, myself.datagram);
            myself.notices.push(Notice::Datagram { peer: self.name.clone(), theirs, ours });
        }
    }
}
