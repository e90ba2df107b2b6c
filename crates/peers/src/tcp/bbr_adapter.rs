//! An adapter that gives BBR to a transport that is not TCP, with the parts of a sender that BBR needs.
//!
//! The transport keeps its own account of packets, in bytes, and reports what it sends, what arrives and what it takes
//! for lost. A segment is then as many bytes as fill a datagram. What happened at an instant is taken in at once
//! ([`settle`](Bbr::settle)), as TCP takes in an acknowledgement with the losses that it shows.

use std::collections::VecDeque;

use hopcast_core::{Duration, Instant, Stream};

use super::bbr;
use super::congestion::{CongestionControl, Path, Phase, Sample};
use super::pacer::Pacer;
use super::rate::{DeliveryRate, Newest, Snapshot};
use super::window::Window;

/// The window before anything is known: RFC 9002 section 7.2, RFC 6928.
const INITIAL_WINDOW: u32 = 10;
/// Maximum number of instants of sending that are remembered. Chosen: it bounds memory; with fewer, a round trip of a
/// fast and long path gives no sample.
const MAX_REMEMBERED: usize = 1 << 16;

/// BBR version 1 as this crate's TCP has it.
#[derive(Debug)]
pub(crate) struct Bbr {
    control: bbr::Bbr,
    window: Window,
    rate: DeliveryRate,
    pacer: Pacer,
    /// Segments and bytes of the burst that is leaving.
    burst: (u64, u64),
    /// Bytes of a segment.
    segment: u32,
    in_flight: u64,
    /// The state of the rate at each instant at which something was sent.
    sent: VecDeque<(Instant, Snapshot)>,
    news: News,
    phase: Phase,
    /// A recovery ends with the delivery of a segment that was sent after this.
    recovery_end: Instant,
    /// The minimum round trip, and the last.
    min_rtt: Option<Duration>,
    rtt: Option<Duration>,
}

/// The events that are not taken in yet.
#[derive(Debug, Default)]
struct News {
    prior_in_flight: u64,
    packets: u32,
    delivered: u64,
    lost: u64,
    timed_out: bool,
    newest: Newest,
    newest_sent_at: Option<Instant>,
    /// Bytes that did not fill a segment, of what was delivered and of what was lost.
    over: (u64, u64),
}

/// Whether a segment may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gate {
    Open,
    /// The window is full.
    Full,
    /// Not before this instant.
    Paced(Instant),
}

impl Bbr {
    /// A BBR for a path whose datagrams hold `segment` bytes.
    pub(crate) fn new(now: Instant, segment: u32, random: Stream) -> Self {
        let mut bbr = Self {
            control: bbr::Bbr::new(now, random),
            window: Window::new(INITIAL_WINDOW),
            rate: DeliveryRate::default(),
            pacer: Pacer::default(),
            burst: (0, 0),
            segment: segment.max(1),
            in_flight: 0,
            sent: VecDeque::new(),
            news: News::default(),
            phase: Phase::Open,
            recovery_end: now,
            min_rtt: None,
            rtt: None,
        };
        bbr.with(now, |control, path| control.begin(path));
        bbr
    }

    /// A packet of `bytes` leaves that counts as in flight.
    pub(crate) fn on_sent(&mut self, now: Instant, bytes: u64) {
        let idle = self.in_flight == 0;
        if idle {
            self.with(now, |control, path| control.on_restart(path));
        }
        let snapshot = self.rate.snapshot(now, idle);
        if self.sent.back().is_none_or(|&(at, _)| at < now) {
            if self.sent.len() == MAX_REMEMBERED {
                self.sent.pop_front();
            }
            self.sent.push_back((now, snapshot));
        }
        self.in_flight += bytes;
        self.burst = (self.burst.0 + 1, self.burst.1 + bytes);
    }

    /// A packet of `bytes` that was sent then has arrived.
    pub(crate) fn on_delivered(&mut self, sent_at: Instant, bytes: u64) {
        let news = &mut self.news;
        if news.packets == 0 {
            news.prior_in_flight = self.in_flight;
        }
        news.packets += 1;
        news.delivered += bytes;
        news.newest_sent_at = news.newest_sent_at.max(Some(sent_at));
        if let Ok(place) = self.sent.binary_search_by_key(&sent_at, |&(at, _)| at) {
            news.newest.note(sent_at, 0, self.sent[place].1);
        }
        self.in_flight = self.in_flight.saturating_sub(bytes);
    }

    /// Sets the bytes in flight, by the transport's own account.
    pub(crate) fn correct_in_flight(&mut self, bytes: u64) {
        self.in_flight = bytes;
    }

    /// `bytes` are taken for lost; `timed_out` if nothing has arrived for long.
    pub(crate) fn on_lost(&mut self, bytes: u64, timed_out: bool) {
        self.news.lost += bytes;
        self.news.timed_out |= timed_out;
        self.in_flight = self.in_flight.saturating_sub(bytes);
    }

    /// Takes note of all that has happened.
    pub(crate) fn settle(&mut self, now: Instant) {
        if self.news.packets == 0 && self.news.lost == 0 {
            return;
        }
        let news = core::mem::take(&mut self.news);
        let segment = u64::from(self.segment);
        let (delivered, lost) = (news.over.0 + news.delivered, news.over.1 + news.lost);
        self.news.over = (delivered % segment, lost % segment);
        let [delivered, lost] = [delivered, lost].map(|bytes| (bytes / segment) as u32);
        self.rate.lost += u64::from(lost);
        self.change_phase(now, &news);
        if news.packets == 0 {
            return;
        }
        let rtt = news.newest_sent_at.map(|at| now.since(at));
        self.rtt = rtt.or(self.rtt);
        self.min_rtt = [rtt, self.min_rtt].into_iter().flatten().min();
        let sample = Sample {
            delivered,
            lost,
            prior_in_flight: self.segments(news.prior_in_flight),
            rate: self.rate.sample(now, delivered, news.newest, self.min_rtt),
            rtt,
            // A lone packet waits for a second one to be acknowledged with.
            delayed: news.packets == 1 && news.prior_in_flight <= segment,
            may_grow: false,
        };
        self.with(now, |control, path| control.on_ack(path, &sample));
        self.forget(now, news.newest_sent_at);
    }

    /// A recovery goes on while anything is lost in it.
    fn change_phase(&mut self, now: Instant, news: &News) {
        if news.timed_out {
            self.with(now, |control, path| control.threshold(path));
            // As a retransmission timeout does to TCP.
            self.window.size = self.segments(self.in_flight) + 1;
            self.with(now, |control, path| control.on_timeout(path));
            self.phase = Phase::Loss;
        } else if news.lost > 0 && self.phase < Phase::Recovery {
            self.with(now, |control, path| control.threshold(path));
            self.phase = Phase::Recovery;
        } else if news.lost == 0 && news.newest_sent_at.is_some_and(|at| at > self.recovery_end) {
            self.phase = Phase::Open;
        }
        if news.lost > 0 {
            self.recovery_end = now;
        }
    }

    /// Forgets when packets were sent that have arrived since or are lost: none is awaited for two round trips longer
    /// than one sent after it.
    fn forget(&mut self, now: Instant, newest: Option<Instant>) {
        let (Some(newest), Some(rtt)) = (newest, self.rtt) else { return };
        let long_ago = |at: Instant| at < newest && at + rtt * 2 < now;
        while self.sent.pop_front_if(|&mut (at, _)| long_ago(at)).is_some() {}
    }

    /// Whether another segment may leave.
    pub(crate) fn gate(&mut self, now: Instant) -> Gate {
        if self.segments(self.in_flight) >= self.window.size {
            return Gate::Full;
        }
        let Some((_, size)) = self.control.pacing(self.segment) else { return Gate::Open };
        if self.burst.0 >= u64::from(size) {
            self.end_burst(now);
        }
        if self.burst.0 == 0 && self.pacer.departure() > now {
            return Gate::Paced(self.pacer.departure());
        }
        Gate::Open
    }

    /// No more leaves at this instant; `idle` if there is nothing to send although it might.
    pub(crate) fn pause(&mut self, now: Instant, idle: bool) {
        if self.burst.0 > 0 {
            self.end_burst(now);
        }
        if idle {
            let in_flight = self.segments(self.in_flight);
            self.rate.limit_by_application(in_flight);
        }
    }

    /// The window in bytes.
    pub(crate) fn window(&self) -> u64 {
        u64::from(self.window.size) * u64::from(self.segment)
    }

    fn end_burst(&mut self, now: Instant) {
        let (segments, bytes) = core::mem::take(&mut self.burst);
        if let Some((rate, _)) = self.control.pacing(self.segment) {
            self.pacer.sent(now, rate, segments, bytes);
        }
    }

    fn segments(&self, bytes: u64) -> u32 {
        u32::try_from(bytes.div_ceil(u64::from(self.segment))).unwrap_or(u32::MAX)
    }

    fn with<R>(&mut self, now: Instant, act: impl FnOnce(&mut bbr::Bbr, &mut Path<'_>) -> R) -> R {
        let in_flight = self.segments(self.in_flight);
        let mut path = Path {
            now,
            window: &mut self.window,
            rate: &mut self.rate,
            phase: self.phase,
            in_flight,
            // BBR counts its rounds in deliveries.
            una: 0,
            nxt: 0,
            mss: self.segment,
            smoothed_rtt: self.rtt,
            min_rtt: self.min_rtt,
            departure: self.pacer.departure(),
        };
        act(&mut self.control, &mut path)
    }
}

#[cfg(test)]
mod tests {
    use hopcast_core::Seed;

    use super::*;

    const SEGMENT: u32 = 1000;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// One that has sent ten segments at time zero.
    fn ten_sent() -> Bbr {
        let mut bbr = Bbr::new(at(0), SEGMENT, Seed::new(1, 0).stream(&["lent"], 0));
        for _ in 0..10 {
            bbr.on_sent(at(0), 1000);
        }
        bbr
    }

    #[test]
    fn what_arrives_before_it_is_taken_in_counts_together() {
        let mut bbr = ten_sent();
        for _ in 0..4 {
            bbr.on_delivered(at(0), 1000);
        }
        assert_eq!((bbr.news.packets, bbr.news.delivered, bbr.news.prior_in_flight), (4, 4000, 10_000));
        assert_eq!(bbr.in_flight, 6000);
        bbr.settle(at(30));
        assert_eq!((bbr.rate.delivered, bbr.rtt), (4, Some(Duration::from_millis(30))));
        // As Linux `bbr_set_cwnd` in startup: by what is delivered.
        assert_eq!(bbr.window(), 14_000);
        bbr.settle(at(31));
        assert_eq!((bbr.rate.delivered, bbr.window()), (4, 14_000), "and once");
    }

    #[test]
    fn bytes_that_fill_no_segment_count_with_the_next() {
        let mut bbr = ten_sent();
        for (delivered, lost, segments) in
            [(700, 0, (0, 0)), (700, 600, (1, 0)), (1700, 900, (3, 1)), (100, 500, (3, 2))]
        {
            bbr.on_delivered(at(0), delivered);
            bbr.on_lost(lost, false);
            bbr.settle(at(30));
            assert_eq!((bbr.rate.delivered, bbr.rate.lost), segments, "{delivered} and {lost} bytes");
        }
        assert_eq!(bbr.news.over, (200, 0));
        assert_eq!(bbr.in_flight, 10_000 - 3200 - 2000);
    }

    #[test]
    fn a_loss_begins_a_recovery_that_ends_with_what_was_sent_after_it() {
        // Linux `bbr_set_cwnd_to_recover_or_restore`: as much as is delivered, then the window of before.
        let mut bbr = ten_sent();
        bbr.on_delivered(at(0), 1000);
        bbr.on_lost(2000, false);
        bbr.settle(at(30));
        assert_eq!((bbr.phase, bbr.window()), (Phase::Recovery, 8000), "7 in flight and 1 delivered");
        bbr.on_delivered(at(0), 1000);
        bbr.settle(at(30));
        assert_eq!(bbr.phase, Phase::Recovery);
        bbr.on_sent(at(31), 1000);
        bbr.on_delivered(at(31), 1000);
        bbr.settle(at(61));
        assert_eq!(bbr.phase, Phase::Open);
        assert!(bbr.window() >= 10_000, "{}", bbr.window());
        bbr.on_lost(2000, true);
        bbr.settle(at(500));
        // Four of the first ten are still in flight.
        assert_eq!((bbr.phase, bbr.window()), (Phase::Loss, 5000));
    }

    #[test]
    fn no_more_than_65536_instants_of_sending_are_remembered() {
        let mut bbr = ten_sent();
        for us in 1..70_000 {
            bbr.on_sent(Instant::from_nanos(1000 * us), 1);
        }
        assert_eq!(bbr.sent.len(), 65_536);
        assert_eq!(bbr.sent.front().unwrap().0, Instant::from_nanos(1000 * (70_000 - 65_536)));
    }

    #[test]
    fn the_gate_is_shut_by_the_window_and_by_the_pacer() {
        let mut bbr = ten_sent();
        assert_eq!(bbr.gate(at(0)), Gate::Full);
        bbr.on_delivered(at(0), 1000);
        bbr.settle(at(30));
        bbr.pause(at(30), false);
        let Gate::Paced(until) = bbr.gate(at(30)) else { panic!("{:?}", bbr.gate(at(30))) };
        assert!(until > at(30));
        assert_eq!(bbr.gate(until), Gate::Open);
    }
}
