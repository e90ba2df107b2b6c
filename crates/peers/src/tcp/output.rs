//! The choice of the next segment: first lost data, then new data, as far as the windows and the pacer allow.

use hopcast_core::Instant;

use super::congestion::Phase;
use super::counters::Counters;
use super::deferral::HeldBy;
use super::sender::{Outgoing, Sender};
use super::timer::{Deadlines, Timer};

/// With a peer whose window never was large, segments are at most half of it, but not below this: Linux
/// `tcp_bound_to_half_wnd`.
const MIN_SEGMENT: u64 = 68;

/// Reason for which sending came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// A lost segment.
    Lost(u64),
    /// New data: its bytes, and whether the FIN is with them.
    New(u32, bool),
    /// The congestion window is used up.
    Full,
    /// There is nothing, or the peer's window is used up.
    Nothing,
}

impl Sender {
    /// Sends all packets that may be sent now.
    pub(super) fn send(&mut self, now: Instant, timers: &mut Deadlines, counters: &mut Counters) {
        timers.stop(Timer::Pacing);
        let reducing = self.recovery.phase == Phase::Recovery;
        let (mut sent_new, mut limited) = (false, false);
        let mut burst = Burst::default();
        let mut lump = 0;
        loop {
            let next = self.next();
            let pacing = self.congestion.pacing(self.mss);
            match next {
                Next::Full => {
                    limited = true;
                    break;
                }
                Next::Nothing => break,
                Next::Lost(_) | Next::New(..) => {}
            }
            if let Some((rate, size)) = pacing {
                if burst.segments >= u64::from(size) || (burst.segments > 0 && matches!(next, Next::Lost(_)))
                {
                    self.pacer.sent(now, rate, burst.segments, burst.bytes);
                    burst = Burst::default();
                }
                if burst.segments == 0 && self.pacer.departure() > now {
                    timers.set(Timer::Pacing, self.pacer.departure());
                    break;
                }
            }
            if pacing.is_none() && matches!(next, Next::New(..)) {
                if lump == 0 {
                    match self.lump(now) {
                        Ok(size) => lump = size,
                        Err(held_by) => {
                            limited |= held_by == HeldBy::Congestion;
                            break;
                        }
                    }
                }
                lump -= 1;
            }
            match next {
                Next::Lost(id) => {
                    let head = self.board.head().is_some_and(|(head, _)| head == id);
                    let len = self.board.get(id).map_or(0, |segment| segment.end - segment.start);
                    self.retransmit(now, id, counters);
                    burst.add(len);
                    if head && timers.get(Timer::Reordering).is_none() {
                        self.restart_timeout(now, timers);
                    }
                }
                Next::New(len, fin) => {
                    self.send_new(now, len, fin, timers);
                    burst.add(u64::from(len));
                    sent_new = true;
                }
                Next::Full | Next::Nothing => {}
            }
            if reducing {
                self.prr.sent(1);
            }
        }
        if burst.segments > 0
            && let Some((rate, _)) = self.congestion.pacing(self.mss)
        {
            self.pacer.sent(now, rate, burst.segments, burst.bytes);
        }
        if sent_new {
            self.schedule_loss_probe(now, false, timers);
        }
        if sent_new || limited {
            limited |= self.board.in_flight() >= self.window.size;
            let shrink = (!self.congestion.rules_recovery()).then(|| self.rtt.timeout());
            let outstanding = self.board.len();
            self.window.validate(now, outstanding, (self.una, self.nxt), limited, shrink);
        }
        self.check_persist(now, timers);
    }

    fn next(&self) -> Next {
        let room = self.board.in_flight() < self.window.size;
        let new = self.next_new();
        if let Some(id) = self.board.next_lost()
            && !(self.recovery.new_first && (new.is_some() || self.nxt > self.recovery.end))
        {
            return if room { Next::Lost(id) } else { Next::Full };
        }
        match new {
            Some((len, fin)) if room => Next::New(len, fin),
            Some(_) => Next::Full,
            None => Next::Nothing,
        }
    }

    /// The next segment of new data that the peer's window admits.
    pub(super) fn next_new(&self) -> Option<(u32, bool)> {
        if !self.has_unsent() {
            return None;
        }
        let largest = self.payload_room().min((self.largest_window / 2).max(MIN_SEGMENT));
        let waiting = self.buffer.end().saturating_sub(self.nxt);
        let len = waiting.min(largest);
        let admitted = self.window_end().checked_sub(self.nxt + len)?;
        let fin = self.buffer.is_finished() && len == waiting && admitted > 0;
        (len > 0 || fin).then_some((len as u32, fin))
    }

    pub(super) fn send_new(&mut self, now: Instant, len: u32, fin: bool, timers: &mut Deadlines) {
        let idle = self.board.is_empty();
        self.probe_back_off = 0;
        if self.board.in_flight() == 0 {
            if idle && !self.congestion.rules_recovery() {
                self.window.restart(now, self.rtt.timeout());
            }
            self.with_congestion(now, |congestion, path| congestion.on_restart(path));
        }
        let (start, end) = (self.nxt, self.nxt + u64::from(len) + u64::from(fin));
        let snapshot = self.rate.snapshot(now, idle);
        self.board.push(start, end, fin, now, snapshot);
        self.nxt = end;
        self.outbox.push(Outgoing { seq: start, len, fin });
        self.window.note_sent(now);
        if idle || timers.get(Timer::LossProbe).is_some() {
            self.rearm_timeout(now, timers);
        }
    }
}

/// The segments that have left since the pacer was last asked.
#[derive(Clone, Copy, Debug, Default)]
struct Burst {
    segments: u64,
    bytes: u64,
}

impl Burst {
    fn add(&mut self, bytes: u64) {
        self.segments += 1;
        self.bytes += bytes;
    }
}
