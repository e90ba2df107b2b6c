//! What a peer's hellos say.

use std::net::SocketAddr;

use hopcast_core::{Duration, Instant};

use super::{LONGEST_ROUND_TRIP, Myself, Path, Peer, State};
use crate::daemon::notice::Notice;
use crate::hello::wire::{Counts, Hello};

impl Peer {
    /// It has said hello, in a datagram of so many bytes.
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
        let is_known = self.instance == Some(hello.instance);
        if is_known && hello.sequence.wrapping_sub(self.sequence) as i32 <= 0 {
            return;
        }
        let path = here.unwrap_or_else(|| self.elsewhere(from));
        let stamp = (hello.stamp, now);
        if hello.echo.nonce != path.nonce {
            // It has yet to show that it gets what is sent there.
            if here.is_some() {
                self.stamp = Some(stamp);
            }
            return self.answer(now, path, stamp, myself);
        }
        if here.is_none() && !self.moves_to(now, path, myself) {
            return;
        }
        self.stamp = Some(stamp);
        self.trusted(now, hello, myself);
        if hello.ask
            && let Some(path) = self.path
        {
            self.answer(now, path, stamp, myself);
        }
    }

    /// A hello of another version has come.
    pub(crate) fn on_other_version(
        &mut self,
        now: Instant,
        from: SocketAddr,
        version: u8,
        myself: &mut Myself,
    ) {
        // From elsewhere it says nothing about the peer that is there.
        if self.is_up() && self.address() != Some(from) {
            return;
        }
        let before = core::mem::replace(&mut self.state, State::Version(version));
        if before != self.state && self.may_complain(now) {
            myself.notices.push(Notice::Version { peer: self.name.clone(), version });
        }
    }

    /// Whether it is no more where it was, and here instead.
    fn moves_to(&mut self, now: Instant, path: Path, myself: &mut Myself) -> bool {
        if self.is_up() && !self.is_silent(now, &myself.timing) {
            if self.may_complain(now) {
                myself.notices.push(Notice::Rival { peer: self.name.clone(), address: path.address });
            }
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

    /// It is there, and it is itself as far as one can know.
    fn trusted(&mut self, now: Instant, hello: &Hello, myself: &mut Myself) {
        self.heard_at = now;
        self.sequence = hello.sequence;
        let before = self.instance.replace(hello.instance);
        let anew = before != Some(hello.instance);
        if anew {
            self.loss_in.restart();
            self.loss_out.restart();
            // Nobody brings the one before back by saying its hellos again.
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
        if trip < LONGEST_ROUND_TRIP {
            // As TCP smooths its round trips (RFC 6298, section 2).
            let smoothed =
                self.round_trip.map_or(trip, |before| before.mul_f64(7.0 / 8.0) + trip.mul_f64(1.0 / 8.0));
            self.round_trip = Some(smoothed);
        }
        self.counts = Counts { sent: hello.sent, received: self.received.datagrams as u32 };
        self.loss_in.note(self.counts);
        if hello.heard.sent != 0 {
            self.loss_out.note(hello.heard);
        }
        if hello.full {
            self.full_heard = Some(now);
        }
        if hello.got_full || !self.is_up() {
            self.full_unheard = 0;
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
            self.compare(hello, myself);
        }
    }

    /// Says what both ends do not agree on.
    fn compare(&self, hello: &Hello, myself: &mut Myself) {
        for &tag in self.lanes.iter().filter(|tag| !hello.lanes.contains(tag)) {
            myself.notices.push(Notice::Lane { peer: self.name.clone(), tag });
        }
        if hello.datagram != myself.datagram {
            let (theirs, ours) = (hello.datagram, myself.datagram);
            myself.notices.push(Notice::Datagram { peer: self.name.clone(), theirs, ours });
        }
    }

    fn may_complain(&mut self, now: Instant) -> bool {
        let may = self.complained.is_none_or(|at| now >= at + Duration::from_secs(60));
        if may {
            self.complained = Some(now);
        }
        may
    }
}
