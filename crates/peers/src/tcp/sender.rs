//! The sending half of a connection: composes the mechanisms, and takes in acknowledgements.
//!
//! The effects of an acknowledgement, in the order of Linux `tcp_ack`: the scoreboard learns what was delivered, the
//! round trip and the delivery rate are measured, recovery ([`super::recovery`]) finds out what is lost, the timers are
//! set, and the congestion control says how much may be in flight. Then [`super::output`] sends.

use hopcast_core::{Duration, Instant};

use super::congestion::{CongestionControl, Path, Phase, Sample};
use super::counters::Counters;
use super::pacer::Pacer;
use super::prr::Prr;
use super::rack::{Circumstances, Rack};
use super::rate::{DeliveryRate, Newest};
use super::recovery::Recovery;
use super::rtt::Rtt;
use super::scoreboard::{Scoreboard, Segment};
use super::send_buffer::SendBuffer;
use super::timer::{Deadlines, Timer, stop_waiting};
use super::wheel;
use super::window::Window;

/// The sending half of a connection.
#[derive(Debug)]
pub(super) struct Sender {
    /// The first sequence number not acknowledged, and the next one to send.
    pub(super) una: u64,
    pub(super) nxt: u64,
    pub(super) buffer: SendBuffer,
    pub(super) board: Scoreboard,
    pub(super) rtt: Rtt,
    pub(super) rack: Rack,
    pub(super) rate: DeliveryRate,
    pub(super) prr: Prr,
    pub(super) window: Window,
    pub(super) recovery: Recovery,
    pub(super) pacer: Pacer,
    pub(super) congestion: Box<dyn CongestionControl>,
    /// The peer's window, in bytes from `una` on.
    pub(super) peer_window: u64,
    /// The largest that it has been.
    pub(super) largest_window: u64,
    /// The segment that the window was last taken from.
    window_seq: u64,
    /// Payload of a full segment in bytes.
    pub(super) mss: u32,
    /// Bytes that the selective acknowledgements of the other direction take from each segment at present.
    pub(super) option_len: u32,
    /// Whether the peer acknowledges selectively.
    pub(super) sack: bool,
    /// Timeouts in a row, and when the first of them was.
    pub(super) timeouts: u32,
    pub(super) silent_since: Option<Instant>,
    /// Probes of a closed window that have not been answered, and by how much they have become rarer.
    pub(super) probes: u32,
    pub(super) probe_back_off: u32,
    pub(super) outbox: Vec<Outgoing>,
}

/// A segment to be put on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outgoing {
    pub seq: u64,
    pub len: u32,
    pub fin: bool,
}

/// The acknowledgement of the peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ack<'a> {
    pub number: u64,
    /// The sequence number of the segment that carries it.
    pub seq: u64,
    /// The window in bytes.
    pub window: u64,
    pub carries_data: bool,
    /// Selectively, in the order of the option.
    pub sack: &'a [(u64, u64)],
    /// Time at which the segment was sent whose timestamp is echoed, in whole milliseconds.
    pub echoed: Option<Instant>,
}

/// News of an acknowledgement, gathered while it is processed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct News {
    pub advanced: bool,
    /// Segments acknowledged cumulatively.
    pub acked: u32,
    /// Something was acknowledged cumulatively, selectively.
    pub acked_data: bool,
    pub sacked: bool,
    /// The peer received something twice; it was the probe for a tail.
    pub dsack: bool,
    pub dsack_of_probe: bool,
    pub carries_data: bool,
    pub window_updated: bool,
    /// Something was delivered that had been sent once, before the recovery began.
    pub original_delivered: bool,
    /// Something that had been sent again was acknowledged.
    pub acked_retransmitted: bool,
    /// Segments newly delivered.
    pub delivered: u32,
    /// The lowest sequence number delivered late although it was sent once.
    pub late: Option<u64>,
    newest: Newest,
    /// Times at which the earliest and the latest were sent of the segments that were delivered and sent once.
    first_acked: Option<Instant>,
    last_acked: Option<Instant>,
    first_sacked: Option<Instant>,
    last_sacked: Option<Instant>,
    /// Whether the acknowledgement of a lone small segment may have been delayed.
    pub maybe_delayed: bool,
}

impl News {
    fn deliver(&mut self, segment: &Segment) {
        self.delivered += 1;
        self.newest.note(segment.sent_at, segment.end, segment.snapshot);
    }

    fn note_original(&mut self, segment: &Segment, recovery_end: u64, late_before: Option<u64>) {
        self.original_delivered |= segment.end <= recovery_end;
        if late_before.is_some_and(|highest| segment.start < highest) {
            self.late = Some(self.late.map_or(segment.start, |late| late.min(segment.start)));
        }
    }
}

impl Sender {
    pub(super) fn new(
        first: u64,
        mss: u32,
        initial_window: u32,
        min_rto: Duration,
        congestion: Box<dyn CongestionControl>,
    ) -> Self {
        Self {
            una: first,
            nxt: first,
            buffer: SendBuffer::new(first),
            board: Scoreboard::default(),
            rtt: Rtt::new(min_rto),
            rack: Rack::default(),
            rate: DeliveryRate::default(),
            prr: Prr::default(),
            window: Window::new(initial_window),
            recovery: Recovery::default(),
            pacer: Pacer::default(),
            congestion,
            peer_window: 0,
            largest_window: 0,
            window_seq: 0,
            mss,
            option_len: 0,
            sack: true,
            timeouts: 0,
            silent_since: None,
            probes: 0,
            probe_back_off: 0,
            outbox: Vec::new(),
        }
    }

    /// The connection stands: the first segment after the handshake, at `seq`, offers `window` bytes.
    pub(super) fn begin(&mut self, now: Instant, seq: u64, window: u64) {
        self.peer_window = window;
        self.largest_window = window;
        self.window_seq = seq;
        self.with_congestion(now, |congestion, path| congestion.begin(path));
    }

    /// Whether all that was written, and the FIN, is acknowledged.
    pub(super) fn is_done(&self) -> bool {
        self.buffer.is_finished() && self.una > self.buffer.end()
    }

    /// Whether the FIN has been sent.
    pub(super) fn has_sent_fin(&self) -> bool {
        self.nxt > self.buffer.end()
    }

    /// Takes in an acknowledgement of something that has been sent. Returns how many bytes of the send buffer it frees.
    pub(super) fn on_ack(
        &mut self,
        now: Instant,
        ack: &Ack<'_>,
        timers: &mut Deadlines,
        counters: &mut Counters,
    ) -> u64 {
        let old = ack.number < self.una;
        let prior_una = self.una;
        let prior_in_flight = self.board.in_flight();
        let prior_lost = self.rate.lost;
        let mut news = News { carries_data: ack.carries_data, ..News::default() };
        if !old {
            news.window_updated = self.update_window(ack);
        }
        self.probes = 0;
        if self.board.is_empty() {
            self.check_persist(now, timers);
            return 0;
        }
        let prior_highest =
            if self.sack { self.board.highest_sacked().unwrap_or(prior_una) } else { prior_una };
        if self.sack {
            self.take_sacks(now, ack, prior_una, &mut news, counters);
        }
        let freed = if old { 0 } else { self.take_cumulative(now, ack.number, prior_highest, &mut news) };
        if let Some(late) = news.late {
            self.note_reordering(late, prior_highest);
        }
        let fresh_rtt = self.sample_rtt(now, ack, &news);
        let mut sample = Sample {
            delivered: news.delivered,
            prior_in_flight,
            rtt: fresh_rtt,
            delayed: news.maybe_delayed,
            ..Sample::default()
        };
        let delivered = self.rate.delivered + u64::from(news.delivered);
        self.rack.adapt(news.newest.prior_delivered(), delivered);
        self.on_probe_answer(now, ack.number, &news, counters);
        if self.is_dubious(&news) {
            self.alert(now, ack, prior_una, &news, timers, counters);
        }
        if news.advanced {
            self.timeouts = 0;
            self.silent_since = None;
            self.set_timer_after_progress(now, timers);
        }
        sample.rate = self.rate.sample(now, news.delivered, news.newest, self.rtt.min_rtt());
        sample.lost = (self.rate.lost - prior_lost) as u32;
        self.control(now, &news, &mut sample);
        if self.board.is_empty() {
            stop_waiting(timers);
            self.check_persist(now, timers);
        }
        freed
    }

    /// Takes the peer's window from the newest segment (RFC 9293 section 3.10.7.4).
    fn update_window(&mut self, ack: &Ack<'_>) -> bool {
        let newer = ack.number > self.una
            || ack.seq > self.window_seq
            || (ack.seq == self.window_seq && ack.window > self.peer_window);
        if !newer {
            return false;
        }
        self.window_seq = ack.seq;
        let changed = self.peer_window != ack.window;
        self.peer_window = ack.window;
        self.largest_window = self.largest_window.max(ack.window);
        changed
    }

    fn take_sacks(
        &mut self,
        now: Instant,
        ack: &Ack<'_>,
        prior_una: u64,
        news: &mut News,
        counters: &mut Counters,
    ) {
        let mut blocks = ack.sack;
        if let [first, rest @ ..] = blocks
            && (first.0 < ack.number
                || rest.first().is_some_and(|next| first.0 >= next.0 && first.1 <= next.1))
        {
            blocks = rest;
            self.note_dsack(*first, prior_una, news, counters);
        }
        let min_rtt = self.rtt.min_rtt();
        let recovery_end = self.recovery.end;
        // The option begins with the newest block. In order of sequence, so that a block that is reported for the first
        // time together with a higher one is not taken for one that came late (Linux `tcp_sacktag_write_queue`).
        let mut blocks = blocks.to_vec();
        blocks.sort_unstable();
        for (start, end) in blocks {
            // Forged or stale blocks outside what is outstanding say nothing.
            if start >= end || end > self.nxt || end <= self.una {
                continue;
            }
            let highest = self.board.highest_sacked();
            let Self { board, rack, .. } = self;
            board.sack(start.max(self.una), end, |segment| {
                news.sacked = true;
                news.deliver(segment);
                rack.deliver(now, segment, min_rtt);
                if !segment.ever_retransmitted {
                    news.note_original(segment, recovery_end, highest);
                    news.first_sacked.get_or_insert(segment.sent_at);
                    news.last_sacked = Some(segment.sent_at);
                }
            });
        }
    }

    fn take_cumulative(&mut self, now: Instant, number: u64, prior_highest: u64, news: &mut News) -> u64 {
        news.advanced = number > self.una;
        if !news.advanced {
            return 0;
        }
        let lone = self.board.len() == 1;
        self.una = number;
        let min_rtt = self.rtt.min_rtt();
        let recovery_end = self.recovery.end;
        let mss = u64::from(self.mss);
        let Self { board, rack, .. } = self;
        board.acknowledge(number, |segment| {
            news.acked += 1;
            news.acked_data = true;
            if segment.ever_retransmitted {
                news.acked_retransmitted = true;
            } else if !segment.sacked {
                news.first_acked.get_or_insert(segment.sent_at);
                news.last_acked = Some(segment.sent_at);
                news.note_original(segment, recovery_end, Some(prior_highest));
            }
            if !segment.sacked {
                news.deliver(segment);
                rack.deliver(now, segment, min_rtt);
            }
            news.maybe_delayed = lone && segment.end - segment.start < mss;
        });
        if !self.sack {
            let before = self.board.sacked_out();
            self.board.remove_anonymous_sacks(news.acked.saturating_sub(1));
            // Each was counted as delivered when its duplicate acknowledgement came.
            news.delivered -= (before - self.board.sacked_out()).min(news.delivered);
        }
        self.buffer.release(number)
    }

    /// Measures the round trip. Returns the one that congestion control may rely on.
    fn sample_rtt(&mut self, now: Instant, ack: &Ack<'_>, news: &News) -> Option<Duration> {
        let (mut sample, mut latest) = (None, None);
        if let (Some(first), Some(last)) = (news.first_acked, news.last_acked)
            && !news.acked_retransmitted
        {
            sample = Some(now.since(first));
            latest = Some(now.since(last));
        }
        if let (Some(first), Some(last)) = (news.first_sacked, news.last_sacked) {
            sample = sample.or(Some(now.since(first)));
            latest = Some(now.since(last));
        }
        if sample.is_none()
            && news.acked_data
            && let Some(echoed) = ack.echoed
        {
            // Karn's ambiguity is resolved by the timestamp, in its units of a millisecond.
            let elapsed = Duration::from_millis(now.since(echoed).as_millis().max(1));
            sample = Some(elapsed);
            latest = Some(elapsed);
        }
        let delayed = news.maybe_delayed;
        if let Some(latest) = latest
            && !(delayed && self.rtt.min_rtt().is_some_and(|min| latest > min))
        {
            self.rtt.note_min(now, latest);
        }
        if let Some(sample) = sample {
            self.rtt.sample(sample, self.una, self.nxt);
        }
        latest
    }

    /// Lets the congestion control, or the reduction under way, set the window.
    fn control(&mut self, now: Instant, news: &News, sample: &mut Sample) {
        let reducing = self.recovery.phase == Phase::Recovery;
        // Where reordering is common, selective acknowledgements are progress too.
        let progress = news.acked_data || (self.recovery.is_reordering_common() && news.sacked);
        sample.may_grow = !reducing && progress;
        if reducing && !self.congestion.rules_recovery() {
            let (target, in_flight) = (self.window.threshold, self.board.in_flight());
            let safe = news.advanced && sample.lost == 0;
            if let Some(size) = self.prr.window(target, in_flight, news.delivered, safe) {
                self.window.size = size;
            }
        }
        self.with_congestion(now, |congestion, path| congestion.on_ack(path, sample));
    }

    /// Hands the congestion control its view of the connection.
    pub(super) fn with_congestion<R>(
        &mut self,
        now: Instant,
        act: impl FnOnce(&mut dyn CongestionControl, &mut Path<'_>) -> R,
    ) -> R {
        let mut path = Path {
            now,
            window: &mut self.window,
            rate: &mut self.rate,
            phase: self.recovery.phase,
            in_flight: self.board.in_flight(),
            una: self.una,
            nxt: self.nxt,
            mss: self.mss,
            smoothed_rtt: self.rtt.smoothed(),
            min_rtt: self.rtt.min_rtt(),
            departure: self.pacer.departure(),
        };
        act(&mut *self.congestion, &mut path)
    }

    /// The state on which RACK's reordering window depends.
    pub(super) fn circumstances(&self) -> Circumstances {
        Circumstances {
            min_rtt: self.rtt.min_rtt(),
            smoothed_rtt: self.rtt.smoothed(),
            recovering: self.recovery.phase >= Phase::Recovery,
            sacked: self.board.sacked_out(),
            reordering: self.recovery.reordering,
        }
    }

    /// Number of bytes that fit a segment that leaves now.
    pub(super) fn payload_room(&self) -> u64 {
        u64::from(self.mss.saturating_sub(self.option_len).max(1))
    }

    /// The sequence number behind the last byte that the peer's window admits.
    pub(super) fn window_end(&self) -> u64 {
        self.una + self.peer_window
    }

    /// Whether there is something that has never been sent.
    pub(super) fn has_unsent(&self) -> bool {
        self.nxt < self.buffer.end() + u64::from(self.buffer.is_finished())
    }

    /// Notes that the application is about to write: if all before is sent, the path was not kept busy (Linux
    /// `tcp_rate_check_app_limited`).
    pub(super) fn check_app_limited(&mut self) {
        let in_flight = self.board.in_flight();
        if self.buffer.end().saturating_sub(self.nxt) < u64::from(self.mss)
            && in_flight < self.window.size
            && self.board.lost_out() <= self.board.retransmitted_out()
        {
            self.rate.limit_by_application(in_flight);
        }
    }

    /// Probes the peer's window if it keeps everything back and nothing else will be acknowledged.
    pub(super) fn check_persist(&self, now: Instant, timers: &mut Deadlines) {
        if !self.board.is_empty() || !self.has_unsent() {
            timers.stop(Timer::Persist);
            return;
        }
        if timers.get(Timer::Persist).is_none() {
            timers.set(Timer::Persist, wheel::expiry(now, self.persist_interval()));
        }
    }
}
