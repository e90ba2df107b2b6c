//! BBR for a sender that repairs losses by itself: one hop of a path.
//!
//! BBR measures what arrives. Where a link loses a share p, its probes of a quarter more show no growth from p = 20 %
//! on, and the rate falls without end. So what the link itself loses counts as delivered ([`RandomLoss`]), and what BBR
//! measures is what the link passes.

use hopcast_core::{Duration, Instant, Pacer, Rate, Stream};

use super::bbr::Bbr;
use super::congestion::{CongestionControl, Path, Phase, Sample};
use super::random_loss::RandomLoss;
use super::rate::{DeliveryRate, Newest, Snapshot};
use super::rtt::Rtt;
use super::window::Window;

/// The window before there is a round trip: RFC 6928.
const INITIAL_WINDOW: u32 = 10;
/// The timeout before there is a round trip is this share of TCP's, 20 ms: a hop is mostly short, and its first packets
/// are small. Chosen; shorter repeats the first packet over a longer hop, longer waits if it is lost.
const FIRST_SHARE: u64 = 50;
/// Minimum time beside the round trip in a timeout: there is no delayed acknowledgement to wait for. Chosen; shorter,
/// and jitter is taken for loss; longer, and a short hop waits for nothing.
const MIN_TIMEOUT: Duration = Duration::from_millis(1);
/// Maximum timeout, or twice the round trip if that is longer, however the round trip varies. Chosen; longer, and a hop
/// is silent after a lost last packet; shorter, and a jittery hop repeats in vain.
const MAX_TIMEOUT: Duration = Duration::from_millis(500);

/// Rate and window of a hop. Packets are numbered in the order of sending, each transmission anew.
#[derive(Debug)]
pub(crate) struct HopBbr {
    bbr: Bbr,
    window: Window,
    rate: DeliveryRate,
    rtt: Rtt,
    random_loss: RandomLoss,
    pacer: Pacer,
    /// Bytes of a full packet.
    full: u32,
    sent: u64,
}

/// The news of one acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Acked {
    /// Packets newly known to have arrived, and to be lost.
    pub packets: u32,
    pub lost: u32,
    /// The one that was sent last.
    pub newest: Newest,
    /// Time since then, if it is the newest of all that have arrived.
    pub rtt: Option<Duration>,
    /// Packets in flight before, and after.
    pub before: u32,
    pub after: u32,
}

impl HopBbr {
    /// For packets of at most `full` bytes.
    pub(crate) fn new(now: Instant, full: u32, random: Stream) -> Self {
        Self {
            bbr: Bbr::new(now, random).without_bursts(),
            window: Window::new(INITIAL_WINDOW),
            rate: DeliveryRate::default(),
            rtt: Rtt::new(MIN_TIMEOUT),
            random_loss: RandomLoss::default(),
            pacer: Pacer::default(),
            full,
            sent: 0,
        }
    }

    /// Keeps the rate although wake-ups may be late by `slack`.
    pub(crate) fn with_slack(self, slack: Duration) -> Self {
        Self { pacer: Pacer::new(slack), ..self }
    }

    /// Maximum number of packets in flight.
    pub(crate) fn window(&self) -> u32 {
        self.window.size
    }

    /// Whether no more than that may be, since the path is being emptied to see its length.
    pub(crate) fn is_emptying(&self) -> bool {
        self.bbr.is_probing_rtt()
    }

    /// Time at which the next packet may leave.
    pub(crate) fn departure(&self) -> Instant {
        self.pacer.departure()
    }

    /// The smoothed round trip.
    pub(crate) fn round_trip(&self) -> Option<Duration> {
        self.rtt.smoothed()
    }

    /// After how long without an acknowledgement something is lost.
    pub(crate) fn timeout(&self) -> Duration {
        match self.rtt.smoothed() {
            None => self.rtt.timeout() / FIRST_SHARE,
            Some(smoothed) => self.rtt.timeout().min(MAX_TIMEOUT.max(smoothed * 2)),
        }
    }

    /// Time that a full packet takes at the pace.
    pub(crate) fn packet_time(&self) -> Duration {
        self.pace().max(Rate::from_bits_per_sec(1)).time_for(self.full.into())
    }

    fn pace(&self) -> Rate {
        self.bbr.pacing(self.full).map_or(Rate::from_bits_per_sec(0), |(rate, _)| rate)
    }

    /// Notes the round trip of a packet that was taken for lost and was not.
    pub(crate) fn late(&mut self, now: Instant, rtt: Duration) {
        self.rtt.sample(rtt, self.rate.delivered, self.sent);
        self.rtt.note_min(now, rtt);
    }

    /// Notes that a packet leaves, with `in_flight` packets before it.
    pub(crate) fn sent(&mut self, now: Instant, in_flight: u32, bytes: u32) -> Snapshot {
        if self.sent == 0 {
            // The path is new from now on, however old this is.
            self.with(now, in_flight, |bbr, path| bbr.begin(path));
        } else if in_flight == 0 {
            self.with(now, in_flight, |bbr, path| bbr.on_restart(path));
        }
        self.sent += 1;
        let rate = self.pace();
        if rate.bits_per_sec() > 0 {
            self.pacer.sent(now, rate, bytes.into());
        }
        self.rate.snapshot(now, in_flight == 0)
    }

    /// Notes that there is less to send than might be.
    pub(crate) fn limited_by_application(&mut self, in_flight: u32) {
        self.rate.limit_by_application(in_flight);
    }

    /// Takes an acknowledgement.
    pub(crate) fn acknowledged(&mut self, now: Instant, acked: Acked) {
        if let Some(rtt) = acked.rtt {
            self.rtt.sample(rtt, self.rate.delivered + u64::from(acked.packets), self.sent);
            self.rtt.note_min(now, rtt);
            self.random_loss.on_round_trip(now, rtt);
        }
        let packet_time = self.packet_time();
        let passed = acked.packets + self.random_loss.passed(acked.packets, acked.lost, packet_time);
        let rate = self.rate.sample(now, passed, acked.newest, self.rtt.min_rtt());
        let sample = Sample {
            delivered: passed,
            prior_in_flight: acked.before,
            rate,
            rtt: acked.rtt,
            ..Sample::default()
        };
        self.with(now, acked.after, |bbr, path| bbr.on_ack(path, &sample));
    }

    fn with(&mut self, now: Instant, in_flight: u32, act: impl FnOnce(&mut Bbr, &mut Path<'_>)) {
        let (una, smoothed_rtt, min_rtt) = (self.rate.delivered, self.rtt.smoothed(), self.rtt.min_rtt());
        let mut path = Path {
            now,
            window: &mut self.window,
            rate: &mut self.rate,
            phase: Phase::Open,
            in_flight,
            una,
            nxt: self.sent,
            mss: self.full,
            smoothed_rtt,
            min_rtt,
            departure: self.pacer.departure(),
        };
        act(&mut self.bbr, &mut path);
    }
}

#[cfg(test)]
mod tests {
    use hopcast_core::Seed;

    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// One that has sent ten packets of 1,000 bytes at time zero, and the acknowledgement of some of them after `ms`.
    fn acknowledged(packets: u32, lost: u32, ms: u64) -> HopBbr {
        let mut hop = HopBbr::new(at(0), 1000, Seed::new(1, 0).stream(&["hop"], 0));
        let mut newest = Newest::default();
        for number in 0..10 {
            newest.note(at(0), number, hop.sent(at(0), number as u32, 1000));
        }
        let rtt = Some(Duration::from_millis(ms));
        hop.acknowledged(at(ms), Acked { packets, lost, newest, rtt, before: 10, after: 0 });
        hop
    }

    #[test]
    fn the_window_grows_by_what_the_link_has_passed_whether_or_not_it_was_lost() {
        // As Linux `bbr_set_cwnd` in startup: by what is delivered.
        assert_eq!(acknowledged(10, 0, 30).window(), 20);
        assert_eq!(acknowledged(6, 0, 30).window(), 16);
        assert_eq!(acknowledged(6, 4, 30).window(), 20);
        assert_eq!(acknowledged(6, 4, 30).round_trip(), Some(Duration::from_millis(30)));
    }

    #[test]
    fn the_timeout_is_that_of_tcp_within_a_millisecond_and_half_a_second_or_two_round_trips() {
        let ms = Duration::from_millis;
        let hop = HopBbr::new(at(0), 1000, Seed::new(1, 0).stream(&["hop"], 0));
        assert_eq!((hop.timeout(), hop.round_trip()), (ms(20), None), "a fiftieth of TCP's first second");
        // RFC 6298 (2.2): three times the first round trip.
        assert_eq!(acknowledged(10, 0, 30).timeout(), ms(90));
        assert_eq!(acknowledged(10, 0, 200).timeout(), ms(500));
        assert_eq!(acknowledged(10, 0, 400).timeout(), ms(800));
        let mut hop = acknowledged(10, 0, 30);
        for _ in 0..1000 {
            hop.sent(at(40), 1, 1000);
            hop.acknowledged(at(70), Acked { packets: 1, rtt: Some(ms(30)), ..Acked::default() });
        }
        assert_eq!(hop.timeout().as_micros(), 31_000, "without variance");
    }
}
