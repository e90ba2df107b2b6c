//! The timers that wait for acknowledgements: retransmission, tail loss probe, reordering, persist.

use hopcast_core::{Duration, Instant};

use super::congestion::Phase;
use super::counters::Counters;
use super::recovery::TIMEOUT_SLACK;
use super::rtt::{INITIAL_RTO, MAX_RTO};
use super::sender::{News, Outgoing, Sender};
use super::timer::{Deadlines, Timer, stop_waiting, wait_for_ack};
use super::wheel;

/// Time without an answer after which a connection is given up: Linux with `tcp_retries2` = 15.
const GIVE_UP: Duration = Duration::from_millis(924_600);
/// Unanswered probes of a closed window after which the connection is given up as well (Linux `tcp_probe_timer`).
const MAX_PROBES: u32 = 15;

/// Whether the peer may still be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Go on.
    Alive,
    /// It has been silent for too long.
    Gone,
}

impl Sender {
    /// The retransmission timer went off (RFC 6298 section 5).
    pub(super) fn on_timeout(
        &mut self,
        now: Instant,
        timers: &mut Deadlines,
        counters: &mut Counters,
    ) -> Verdict {
        let Some((head, _)) = self.board.head() else { return Verdict::Alive };
        let since = *self.silent_since.get_or_insert(now);
        if now.since(since) >= GIVE_UP {
            return Verdict::Gone;
        }
        counters.rto_timeouts += 1;
        self.enter_loss(now, counters);
        self.timeouts += 1;
        self.retransmit(now, head, counters);
        self.rtt.back_off();
        self.restart_timeout(now, timers);
        Verdict::Alive
    }

    /// The loss probe timer went off: send something new, or the last segment again, so that the peer's answer shows
    /// a lost tail (RFC 8985 section 7.3).
    pub(super) fn on_loss_probe(&mut self, now: Instant, timers: &mut Deadlines, counters: &mut Counters) {
        if self.recovery.probe.is_none() {
            if let Some((len, fin)) = self.next_new() {
                self.send_new(now, len, fin, timers);
                self.recovery.probe = Some((self.nxt, false));
                counters.tlp_probes += 1;
            } else if let Some((id, _)) = self.board.tail() {
                self.retransmit(now, id, counters);
                self.recovery.probe = Some((self.nxt, true));
                counters.tlp_probes += 1;
            }
        }
        self.restart_timeout(now, timers);
    }

    /// Takes in the answer to a loss probe (RFC 8985 section 7.4).
    pub(super) fn on_probe_answer(
        &mut self,
        now: Instant,
        number: u64,
        news: &News,
        counters: &mut Counters,
    ) {
        let Some((end, retransmission)) = self.recovery.probe else { return };
        if number < end {
            return;
        }
        if !retransmission || news.dsack_of_probe {
            self.recovery.probe = None;
        } else if number > end {
            // The probe, and not the original, filled the gap: one loss was repaired without recovery.
            counters.tlp_recoveries += 1;
            self.begin_reduction(now);
            self.end_reduction();
            self.keep_open();
        } else if !(news.advanced
            || news.carries_data
            || news.window_updated
            || news.acked_data
            || news.sacked)
        {
            // A duplicate acknowledgement: both arrived.
            self.recovery.probe = None;
        }
    }

    /// Reordering has had its time.
    pub(super) fn on_reordering_over(
        &mut self,
        now: Instant,
        timers: &mut Deadlines,
        counters: &mut Counters,
    ) {
        if self.detect_losses(now, timers, counters) && self.recovery.phase < Phase::Recovery {
            self.enter_recovery(now, counters);
            if !self.congestion.rules_recovery() {
                let (target, in_flight) = (self.window.threshold, self.board.in_flight());
                if let Some(size) = self.prr.window(target, in_flight, 1, false) {
                    self.window.size = size;
                }
            }
        }
        if timers.get(Timer::Reordering).is_none() {
            self.rearm_timeout(now, timers);
        }
    }

    /// The persist timer went off: ask for the window, or fill what little there is of it.
    pub(super) fn on_persist(&mut self, now: Instant, timers: &mut Deadlines) -> Verdict {
        if !self.board.is_empty() || !self.has_unsent() {
            return Verdict::Alive;
        }
        if self.probes >= MAX_PROBES {
            return Verdict::Gone;
        }
        self.probes += 1;
        self.probe_back_off = (self.probe_back_off + 1).min(16);
        let admitted = self.window_end().saturating_sub(self.nxt);
        let waiting = self.buffer.end().saturating_sub(self.nxt);
        let len = admitted.min(waiting).min(self.payload_room());
        let fin = self.buffer.is_finished() && len == waiting && admitted > len;
        if len > 0 || fin {
            self.send_new(now, len as u32, fin, timers);
        } else {
            // A sequence number that was acknowledged already makes the peer say where it is and what it takes.
            self.outbox.push(Outgoing { seq: self.una - 1, len: 0, fin: false });
            timers.set(Timer::Persist, wheel::expiry(now, self.persist_interval()));
        }
        Verdict::Alive
    }

    pub(super) fn persist_interval(&self) -> Duration {
        let base = self.rtt.timeout().max(self.rtt.min_rto());
        (base * (1 << self.probe_back_off)).min(MAX_RTO)
    }

    /// After progress: a loss probe if the tail may be lost, or else the retransmission timer from now on.
    pub(super) fn set_timer_after_progress(&self, now: Instant, timers: &mut Deadlines) {
        // RACK's timer goes off sooner, and then sets the others.
        if timers.get(Timer::Reordering).is_some() {
            return;
        }
        if !self.schedule_loss_probe(now, true, timers) {
            self.restart_timeout(now, timers);
        }
    }

    /// Sets the loss probe timer (RFC 8985 section 7.2), if nothing says that a loss is being repaired.
    pub(super) fn schedule_loss_probe(&self, now: Instant, progress: bool, timers: &mut Deadlines) -> bool {
        if !self.sack || self.recovery.phase != Phase::Open {
            return false;
        }
        let Some((_, head)) = self.board.head() else { return false };
        let mut wait = match self.rtt.smoothed() {
            None => INITIAL_RTO,
            // A lone segment's acknowledgement may be delayed.
            Some(smoothed) if self.board.len() == 1 => smoothed * 2 + self.rtt.min_rto(),
            Some(smoothed) => smoothed * 2 + TIMEOUT_SLACK,
        };
        let timeout = self.rtt.timeout();
        let left = if progress { timeout } else { (head.sent_at + timeout).since(now) };
        if !left.is_zero() {
            wait = wait.min(left);
        }
        wait_for_ack(timers, Timer::LossProbe, now, wait);
        true
    }

    /// Sets the retransmission timer from now on.
    pub(super) fn restart_timeout(&self, now: Instant, timers: &mut Deadlines) {
        if self.board.is_empty() {
            stop_waiting(timers);
        } else {
            wait_for_ack(timers, Timer::Retransmission, now, self.rtt.timeout());
        }
    }

    /// Sets the retransmission timer; from the first segment's transmission on if another timer has run meanwhile.
    pub(super) fn rearm_timeout(&self, now: Instant, timers: &mut Deadlines) {
        let other = timers.get(Timer::LossProbe).is_some() || timers.get(Timer::Reordering).is_some();
        match self.board.head() {
            Some((_, head)) if other => {
                let left = (head.sent_at + self.rtt.timeout()).since(now);
                wait_for_ack(timers, Timer::Retransmission, now, left.max(Duration::from_micros(1)));
            }
            _ => self.restart_timeout(now, timers),
        }
    }
}
