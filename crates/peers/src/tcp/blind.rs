//! BBR for a sender that repairs losses by itself, and does not want them read as anything: one hop of a path.

use hopcast_core::{Duration, Instant, Pacer, Rate, Stream};

use super::bbr::Bbr;
use super::congestion::{CongestionControl, Path, Phase, Sample};
use super::rate::{DeliveryRate, Newest, Snapshot};
use super::rtt::Rtt;
use super::window::Window;

/// The window before there is a round trip: RFC 6928.
const INITIAL_WINDOW: u32 = 10;
/// The timeout before there is a round trip is this share of TCP's: 100 ms, and longer each time.
const FIRST_SHARE: u64 = 10;
/// The least time beside the round trip in a timeout: there is no delayed acknowledgement to wait for.
const LEAST_TIMEOUT: Duration = Duration::from_millis(1);
/// Repair must not stand still for longer than this after a path has come back.
const LONGEST_TIMEOUT: Duration = Duration::from_millis(500);

/// How fast a hop sends. Packets are numbered in the order of sending, each transmission anew.
#[derive(Debug)]
pub(crate) struct BlindBbr {
    bbr: Bbr,
    window: Window,
    rate: DeliveryRate,
    rtt: Rtt,
    pacer: Pacer,
    /// Bytes of a full packet.
    full: u32,
    sent: u64,
}

/// What one acknowledgement said.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Acked {
    /// Packets newly known to have arrived.
    pub packets: u32,
    /// Which of them was sent last.
    pub newest: Newest,
    /// How long ago that was, if it is the newest of all that have arrived.
    pub rtt: Option<Duration>,
    /// Packets in flight before, and after.
    pub before: u32,
    pub after: u32,
}

impl BlindBbr {
    /// For packets of at most `full` bytes.
    pub(crate) fn new(now: Instant, full: u32, random: Stream) -> Self {
        Self {
            bbr: Bbr::new(now, random),
            window: Window::new(INITIAL_WINDOW),
            rate: DeliveryRate::default(),
            rtt: Rtt::new(LEAST_TIMEOUT),
            pacer: Pacer::default(),
            full,
            sent: 0,
        }
    }

    /// Where wake-ups are late by as much, no rate is lost.
    pub(crate) fn with_slack(self, slack: Duration) -> Self {
        Self { pacer: Pacer::new(slack), ..self }
    }

    /// How many packets may be in flight.
    pub(crate) fn window(&self) -> u32 {
        self.window.size
    }

    /// When the next packet may leave.
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
            Some(smoothed) => self.rtt.timeout().min(LONGEST_TIMEOUT.max(smoothed * 2)),
        }
    }

    /// Notes the round trip of a packet that was taken for lost and was not.
    pub(crate) fn late(&mut self, now: Instant, rtt: Duration) {
        self.rtt.sample(rtt, self.rate.delivered, self.sent);
        self.rtt.note_least(now, rtt);
    }

    /// Doubles the timeout until an acknowledgement comes.
    pub(crate) fn back_off(&mut self) {
        self.rtt.back_off();
    }

    /// Notes that a packet leaves, with so many in flight before it.
    pub(crate) fn sent(&mut self, now: Instant, in_flight: u32, bytes: u32) -> Snapshot {
        if self.sent == 0 {
            // The path is new from now on, however old this is.
            self.with(now, in_flight, |bbr, path| bbr.begin(path));
        } else if in_flight == 0 {
            self.with(now, in_flight, |bbr, path| bbr.on_restart(path));
        }
        self.sent += 1;
        let rate = self.bbr.pacing(self.full).map_or(Rate::from_bits_per_sec(0), |(rate, _)| rate);
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
            self.rtt.note_least(now, rtt);
        }
        let rate = self.rate.sample(now, acked.packets, acked.newest, self.rtt.least());
        let sample = Sample {
            delivered: acked.packets,
            prior_in_flight: acked.before,
            rate,
            rtt: acked.rtt,
            ..Sample::default()
        };
        self.with(now, acked.after, |bbr, path| bbr.on_ack(path, &sample));
    }

    fn with(&mut self, now: Instant, in_flight: u32, act: impl FnOnce(&mut Bbr, &mut Path<'_>)) {
        let (una, smoothed_rtt, min_rtt) = (self.rate.delivered, self.rtt.smoothed(), self.rtt.least());
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
