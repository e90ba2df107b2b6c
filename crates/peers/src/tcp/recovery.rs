//! Recovery from loss: what an acknowledgement that is not plain progress leads to.
//!
//! The states and steps are those of Linux `tcp_fastretrans_alert`. *Open* and *Disorder* send as usual. A loss that
//! RACK (or, without SACK, three duplicate acknowledgements) proves begins *Recovery*, which ends when everything is
//! acknowledged that had been sent when it began. A timeout begins *Loss*; F-RTO (RFC 5682) then finds out whether it
//! was spurious. A reduction that D-SACK or the timestamps prove needless is undone (RFC 3522, RFC 3708).

use hopcast_core::{Duration, Instant};

use super::congestion::Phase;
use super::counters::Counters;
use super::scoreboard::Id;
use super::sender::{Ack, News, Outgoing, Sender};
use super::timer::{Deadlines, Timer, wait_for_ack};
use super::window::NO_THRESHOLD;

/// The duplicate threshold of RFC 5681, where reordering has not been seen.
const DUPLICATES: u32 = 3;
/// The maximum to which reordering raises it: Linux `tcp_max_reordering`.
const MAX_REORDERING: u32 = 300;
/// The time that Linux adds to that for reordering: `TCP_TIMEOUT_MIN`.
pub(super) const TIMEOUT_SLACK: Duration = Duration::from_millis(2);

/// State of recovery.
#[derive(Clone, Debug)]
pub(super) struct Recovery {
    pub(super) phase: Phase,
    /// The recovery, or the state before it, ends when everything before this is acknowledged.
    pub(super) end: u64,
    /// Number of segments that may be delivered before one that was sent earlier.
    pub(super) reordering: u32,
    undo: Option<Undo>,
    /// Time at which the first retransmission since all was well was sent, in whole milliseconds.
    pub(super) retransmitted_at: Option<Instant>,
    /// F-RTO watches for acknowledgements of segments that the timeout took for lost.
    pub(super) watching: bool,
    /// F-RTO wants new data sent before anything is sent again.
    pub(super) new_first: bool,
    /// The end of the tail loss probe, and whether it was a retransmission.
    pub(super) probe: Option<(u64, bool)>,
    /// Segments that this connection has sent again, and those that its peer reports to have received twice.
    sent_again: u64,
    reported: u64,
}

/// The state with which a reduction can be undone.
#[derive(Clone, Copy, Debug)]
struct Undo {
    /// The first sequence number not acknowledged when it began.
    marker: u64,
    /// Retransmissions that the peer has not reported as duplicates; `None` before the first.
    outstanding: Option<u32>,
    window: u32,
    threshold: u32,
}

impl Default for Recovery {
    fn default() -> Self {
        Self {
            phase: Phase::Open,
            end: 0,
            reordering: DUPLICATES,
            undo: None,
            retransmitted_at: None,
            watching: false,
            new_first: false,
            probe: None,
            sent_again: 0,
            reported: 0,
        }
    }
}

impl Recovery {
    pub(super) const fn is_reordering_common(&self) -> bool {
        self.reordering > DUPLICATES
    }

    /// Whether the acknowledgement answers the original and not the retransmission (Eifel, RFC 3522).
    fn is_answer_to_original(&self, ack: &Ack<'_>) -> bool {
        matches!((self.retransmitted_at, ack.echoed), (Some(sent), Some(echoed)) if echoed < sent)
    }

    /// Whether the reduction turns out to have been needless.
    fn may_undo(&self, ack: &Ack<'_>) -> bool {
        self.undo.is_some_and(|undo| undo.outstanding == Some(0) || self.is_answer_to_original(ack))
    }

    /// Notes a retransmission.
    fn note_retransmission(&mut self, now: Instant) {
        self.sent_again += 1;
        self.retransmitted_at.get_or_insert(whole_millis(now));
        if let Some(undo) = &mut self.undo {
            undo.outstanding = Some(undo.outstanding.unwrap_or(0) + 1);
        }
    }
}

impl Sender {
    /// Whether the acknowledgement needs more than the usual.
    pub(super) fn is_dubious(&self, news: &News) -> bool {
        let plain = news.carries_data || news.window_updated || news.acked_data;
        !plain || news.sacked || news.dsack || self.recovery.phase != Phase::Open
    }

    /// Steps through the states.
    pub(super) fn alert(
        &mut self,
        now: Instant,
        ack: &Ack<'_>,
        prior_una: u64,
        news: &News,
        timers: &mut Deadlines,
        counters: &mut Counters,
    ) {
        let duplicate = !news.advanced
            && ack.number == self.una
            && !(news.carries_data || news.window_updated || news.sacked);
        counters.dup_acks += u64::from(duplicate || (news.sacked && !news.advanced));
        self.recovery.new_first = false;
        if self.board.is_empty() && !news.advanced {
            return;
        }
        if self.recovery.phase == Phase::Open {
            self.recovery.retransmitted_at = None;
        } else if self.una >= self.recovery.end && self.recovery.phase == Phase::Recovery {
            if self.try_undo_recovery(now, ack, counters) {
                return;
            }
            if self.recovery.undo.is_some() {
                self.end_reduction();
            }
        }
        match self.recovery.phase {
            Phase::Recovery => {
                if !news.advanced {
                    self.count_anonymous(duplicate);
                } else if self.try_undo_partial(now, ack, counters) {
                    return;
                }
                if self.try_undo_dsack(now, counters) {
                    self.keep_open();
                }
                self.identify_losses(now, news.advanced, timers, counters);
                if self.recovery.phase == Phase::Recovery {
                    return;
                }
            }
            Phase::Loss => {
                self.process_loss(now, ack, prior_una, news, duplicate, counters);
                let retransmitted = self.board.retransmitted_out();
                self.identify_losses(now, news.advanced, timers, counters);
                // A retransmission that is lost again is a loss of its own.
                let lost_again = self.board.retransmitted_out() < retransmitted;
                if self.recovery.phase != Phase::Open && !lost_again {
                    return;
                }
            }
            Phase::Open | Phase::Disorder => {
                self.count_anonymous(duplicate);
                self.try_undo_dsack(now, counters);
                self.identify_losses(now, news.advanced, timers, counters);
            }
        }
        if self.board.lost_out() == 0 {
            if !self.has_retransmission_outstanding() {
                self.recovery.retransmitted_at = None;
            }
            self.keep_open();
            return;
        }
        self.enter_recovery(now, counters);
    }

    /// Begins recovery: the window is to come down.
    pub(super) fn enter_recovery(&mut self, now: Instant, counters: &mut Counters) {
        counters.fast_recoveries += 1;
        self.recovery.undo = Some(self.undo_state());
        self.begin_reduction(now);
        self.recovery.phase = Phase::Recovery;
    }

    /// The retransmission timer went off: segments that were sent long enough ago are lost, and slow start begins anew.
    pub(super) fn enter_loss(&mut self, now: Instant, counters: &mut Counters) {
        let fresh = self.recovery.phase < Phase::Recovery;
        self.mark_timed_out(now, counters);
        if self.recovery.phase <= Phase::Disorder
            || self.recovery.end <= self.una
            || (self.recovery.phase == Phase::Loss && self.timeouts == 0)
        {
            self.recovery.undo = Some(self.undo_state());
            self.window.threshold = self.with_congestion(now, |congestion, path| congestion.threshold(path));
        }
        self.window.size = self.board.in_flight() + 1;
        self.recovery.phase = Phase::Loss;
        self.with_congestion(now, |congestion, path| congestion.on_timeout(path));
        self.recovery.end = self.nxt;
        self.recovery.probe = None;
        self.recovery.watching = fresh || self.timeouts > 0;
        self.recovery.new_first = false;
    }

    /// Sends the segment `id` again.
    pub(super) fn retransmit(&mut self, now: Instant, id: Id, counters: &mut Counters) {
        let Some((start, end, fin)) =
            self.board.get(id).map(|segment| (segment.start, segment.end, segment.fin))
        else {
            return;
        };
        let snapshot = self.rate.snapshot(now, false);
        self.board.retransmit(id, now, snapshot);
        self.recovery.note_retransmission(now);
        counters.retransmits += 1;
        let mut seq = start;
        let bytes_end = end - u64::from(fin);
        // After the path's MTU has shrunk, or beside selective acknowledgements, it may take several packets.
        loop {
            let len = (bytes_end - seq).min(self.payload_room());
            let last = seq + len == bytes_end;
            self.outbox.push(Outgoing { seq, len: len as u32, fin: fin && last });
            seq += len;
            if last {
                break;
            }
        }
    }

    /// Marks segments that RACK or, without SACK, duplicate acknowledgements prove lost.
    fn identify_losses(
        &mut self,
        now: Instant,
        advanced: bool,
        timers: &mut Deadlines,
        counters: &mut Counters,
    ) {
        if !self.sack {
            let recovering = self.recovery.phase == Phase::Recovery;
            let proven = !recovering
                && self.recovery.phase < Phase::Recovery
                && self.board.sacked_out() >= self.recovery.reordering;
            if let Some((id, head)) = self.board.head()
                && !head.lost
                && (proven || (recovering && advanced))
            {
                self.mark_lost(id, counters);
            }
            return;
        }
        if self.rack.has_advanced() {
            self.detect_losses(now, timers, counters);
        }
    }

    /// Marks what RACK finds lost and sets the timer for what it will find. True if anything was.
    pub(super) fn detect_losses(
        &mut self,
        now: Instant,
        timers: &mut Deadlines,
        counters: &mut Counters,
    ) -> bool {
        let circumstances = self.circumstances();
        let (lost, wait) = self.rack.detect(now, &mut self.board, &circumstances);
        self.rate.lost += u64::from(lost);
        counters.segments_lost += u64::from(lost);
        if let Some(wait) = wait {
            let wait = (wait + TIMEOUT_SLACK).min(self.rtt.timeout());
            wait_for_ack(timers, Timer::Reordering, now, wait);
        }
        lost > 0
    }

    pub(super) fn mark_lost(&mut self, id: Id, counters: &mut Counters) {
        let lost = u64::from(self.board.mark_lost(id));
        self.rate.lost += lost;
        counters.segments_lost += lost;
    }

    /// The path's MTU has shrunk: what does not fit is lost, which says nothing about congestion (Linux
    /// `tcp_simple_retransmit`).
    pub(super) fn on_smaller_mss(&mut self, now: Instant) {
        let mut any = false;
        for id in self.board.ids() {
            let payload = self.board.get(id).map_or(0, |s| s.end - s.start - u64::from(s.fin));
            if payload > u64::from(self.mss) {
                any |= self.board.mark_lost(id);
            }
        }
        if any && self.recovery.phase != Phase::Loss {
            self.recovery.end = self.nxt;
            self.window.threshold = self.window.remembered_threshold();
            self.recovery.undo = None;
            self.recovery.phase = Phase::Loss;
            self.recovery.watching = false;
            self.with_congestion(now, |congestion, path| congestion.on_timeout(path));
        }
    }

    fn mark_timed_out(&mut self, now: Instant, counters: &mut Counters) {
        let Some((first, head)) = self.board.head() else { return };
        // A head that was delivered and yet not acknowledged: the peer has thrown away what it had.
        if head.sacked {
            self.board.clear_sacked();
            self.rack.look_again();
        }
        if !self.sack {
            self.board.remove_anonymous_sacks(u32::MAX);
        }
        let circumstances = self.circumstances();
        for id in self.board.ids() {
            let Some(segment) = self.board.get(id) else { continue };
            // With RACK's time still left, and not the head, it may well arrive.
            let young =
                self.sack && id != first && self.rack.time_left(now, segment, &circumstances).is_some();
            if !young {
                self.mark_lost(id, counters);
            }
        }
    }

    fn process_loss(
        &mut self,
        now: Instant,
        ack: &Ack<'_>,
        prior_una: u64,
        news: &News,
        duplicate: bool,
        counters: &mut Counters,
    ) {
        let recovered = self.una >= self.recovery.end;
        if news.advanced && self.recovery.may_undo(ack) && self.undo_loss(now, counters) {
            return;
        }
        if self.recovery.watching {
            // RFC 5682: what is acknowledged now was in the network all the time.
            if news.original_delivered && self.undo_loss(now, counters) {
                return;
            }
            if self.nxt > self.recovery.end {
                if news.sacked || duplicate {
                    self.recovery.watching = false;
                }
            } else if self.una > prior_una && !recovered {
                self.recovery.end = self.nxt;
                if self.has_unsent() && self.window_end() > self.nxt {
                    self.recovery.new_first = true;
                    return;
                }
                self.recovery.watching = false;
            }
        }
        if recovered {
            self.try_undo_recovery(now, ack, counters);
            return;
        }
        if !self.sack {
            self.count_anonymous(duplicate);
        }
    }

    fn undo_loss(&mut self, now: Instant, counters: &mut Counters) -> bool {
        counters.spurious_timeouts += 1;
        self.undo(now, true);
        self.timeouts = 0;
        self.recovery.watching = false;
        self.recovery.phase = Phase::Open;
        true
    }

    /// Everything outstanding when recovery began is acknowledged. True if recovery must go on all the same.
    fn try_undo_recovery(&mut self, now: Instant, ack: &Ack<'_>, counters: &mut Counters) -> bool {
        if self.recovery.may_undo(ack) {
            if self.recovery.phase == Phase::Loss {
                counters.spurious_timeouts += 1;
            } else {
                counters.spurious_recoveries += 1;
            }
            self.undo(now, false);
        } else {
            self.rack.recovered();
        }
        // Without SACK, duplicates of before would look like new ones (RFC 6582 section 3.2, "careful").
        if !self.sack && self.una == self.recovery.end {
            if !self.has_retransmission_outstanding() {
                self.recovery.retransmitted_at = None;
            }
            return true;
        }
        self.recovery.phase = Phase::Open;
        false
    }

    /// In recovery the window moved on: by an original that was only late?
    fn try_undo_partial(&mut self, now: Instant, ack: &Ack<'_>, counters: &mut Counters) -> bool {
        if self.recovery.undo.is_none() || !self.recovery.is_answer_to_original(ack) {
            return false;
        }
        // Segments that are in the network twice must come in before anything else is decided.
        if self.board.retransmitted_out() > 0 {
            return true;
        }
        if !self.has_retransmission_outstanding() {
            self.recovery.retransmitted_at = None;
        }
        counters.spurious_recoveries += 1;
        self.undo(now, true);
        self.keep_open();
        true
    }

    /// Everything sent again has been reported as received twice.
    fn try_undo_dsack(&mut self, now: Instant, counters: &mut Counters) -> bool {
        if self.recovery.undo.is_some_and(|undo| undo.outstanding == Some(0)) {
            counters.spurious_recoveries += 1;
            self.undo(now, false);
            return true;
        }
        false
    }

    fn undo(&mut self, now: Instant, unmark: bool) {
        if unmark {
            self.board.clear_lost();
        }
        let Some(undo) = self.recovery.undo.take() else { return };
        self.window.size = self.with_congestion(now, |congestion, path| congestion.undo(path, undo.window));
        self.window.threshold = self.window.threshold.max(undo.threshold);
        self.rack.look_again();
    }

    fn undo_state(&self) -> Undo {
        let outstanding = self.board.retransmitted_out();
        Undo {
            marker: self.una,
            outstanding: (outstanding > 0).then_some(outstanding),
            window: self.window.size,
            threshold: self.window.remembered_threshold(),
        }
    }

    /// The window begins to come down to that of the congestion control.
    pub(super) fn begin_reduction(&mut self, now: Instant) {
        self.recovery.end = self.nxt;
        self.recovery.probe = None;
        self.prr.begin(self.window.size);
        self.window.threshold = self.with_congestion(now, |congestion, path| congestion.threshold(path));
    }

    /// The window has come down.
    pub(super) fn end_reduction(&mut self) {
        if self.congestion.rules_recovery() || self.window.threshold == NO_THRESHOLD {
            return;
        }
        self.window.size = self.window.threshold;
    }

    /// Open, or Disorder while something is delivered out of order or sent again.
    pub(super) fn keep_open(&mut self) {
        let left_out = self.board.sacked_out() + self.board.lost_out() > 0;
        let phase =
            if left_out || self.has_retransmission_outstanding() { Phase::Disorder } else { Phase::Open };
        if self.recovery.phase != phase {
            self.recovery.phase = phase;
            self.recovery.end = self.nxt;
        }
    }

    fn has_retransmission_outstanding(&self) -> bool {
        self.board.retransmitted_out() > 0
            || self.board.head().is_some_and(|(_, segment)| segment.ever_retransmitted)
    }

    fn count_anonymous(&mut self, duplicate: bool) {
        if !self.sack && duplicate && self.board.add_anonymous_sack() {
            self.rate.delivered += 1;
        }
    }

    /// The peer reports that it received `block` twice (RFC 2883).
    pub(super) fn note_dsack(
        &mut self,
        block: (u64, u64),
        prior_una: u64,
        news: &mut News,
        counters: &mut Counters,
    ) {
        news.dsack = true;
        self.recovery.reported += 1;
        counters.duplicates_reported += 1;
        // More reports than retransmissions: the network duplicates, and nothing was sent again in vain.
        if self.recovery.reported > self.recovery.sent_again {
            return;
        }
        if self.recovery.probe.is_some_and(|(end, _)| end == block.1) {
            news.dsack_of_probe = true;
        } else {
            self.rack.note_dsack();
        }
        if let Some(undo) = &mut self.recovery.undo
            && block.1 <= prior_una
            && block.1 > undo.marker
            && let Some(outstanding) = &mut undo.outstanding
        {
            let segments = (block.1.saturating_sub(block.0)).div_ceil(u64::from(self.mss)).max(1);
            *outstanding = outstanding.saturating_sub(u32::try_from(segments).unwrap_or(u32::MAX));
        }
    }

    /// Something that was sent once was delivered after what lies behind it (Linux `tcp_check_sack_reordering`).
    pub(super) fn note_reordering(&mut self, late: u64, prior_highest: u64) {
        let highest = self.board.highest_sacked().unwrap_or(prior_highest).max(prior_highest);
        if late >= highest {
            return;
        }
        let distance = (highest - late).div_ceil(u64::from(self.mss));
        let distance = u32::try_from(distance).unwrap_or(u32::MAX);
        if distance > self.recovery.reordering {
            self.recovery.reordering = distance.min(MAX_REORDERING);
        }
        self.rack.note_reordering();
    }
}

pub(super) fn whole_millis(at: Instant) -> Instant {
    Instant::ZERO + Duration::from_millis(at.since(Instant::ZERO).as_millis())
}
