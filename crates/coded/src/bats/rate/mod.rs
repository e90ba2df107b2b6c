//! Rate at which to send over one hop: the hop's rate is measured, and losses are not taken for congestion.

mod cycle;
mod delay;
mod drain;
mod filter;
mod flight;
mod random_loss;
mod samples;
#[cfg(test)]
mod tests;

use core::fmt;

use hopcast_core::{Duration, Instant, Pacer, Rate, Stream};

use cycle::{Cycle, Mode, Step, Wish};
use delay::Delay;
use drain::Drain;
use filter::MaxFilter;
use flight::{Flight, Sent};
use random_loss::{Interval, RandomLoss};
use samples::{Mark, Samples};

/// The settings of a [`LinkRate`].
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Config {
    /// Bytes that each packet takes on the link beside those that are reported. Default: 42, Ethernet, IPv4 and UDP.
    pub overhead: u64,
    /// Packets that may leave before the first report. Default: 10 (RFC 6928).
    pub initial_window: u64,
    /// Maximum delay of a paced packet that loses no rate, and granularity of the times of arrival. Default: zero, for
    /// virtual time; where wake-ups are coarse, their coarseness.
    pub slack: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self { overhead: 42, initial_window: 10, slack: Duration::ZERO }
    }
}

/// A report of the receiver of a hop, as far as the rate is concerned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct HopReport {
    /// The highest hop sequence number that has arrived.
    pub highest: u64,
    /// Time at which it arrived, by the receiver's clock in nanoseconds, which may wrap.
    pub arrival_ns: u64,
    /// Time from then until the report was sent; [`MAX_HOLD`] stands for any longer time.
    pub hold: Duration,
    /// Packets that have arrived since the beginning, repeated ones not counted.
    pub received_packets: u64,
    /// Their bytes, as the sender counts them.
    pub received_bytes: u64,
    /// The receiver's estimate of the mean number of packets lost in a row.
    pub mean_burst: f64,
}

#[cfg(test)]
impl HopReport {
    /// Of the first packet, which has arrived.
    pub(super) const fn example() -> Self {
        Self {
            highest: 0,
            arrival_ns: 0,
            hold: Duration::ZERO,
            received_packets: 1,
            received_bytes: 1000,
            mean_burst: 1.0,
        }
    }
}

/// Longest time that the 16 bits of a report can tell in microseconds. A round trip with a longer hold in it is not
/// known.
const MAX_HOLD: Duration = Duration::from_micros(u16::MAX as u64);

/// Why a report was refused. It has changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReportError {
    /// It names a packet that was never sent.
    NeverSent,
    /// It is older than one that is known, or says nothing new.
    Stale,
    /// The receiver holds it for longer than the packet is away.
    HeldTooLong,
}

impl fmt::Display for ReportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NeverSent => "reports a packet that was never sent",
            Self::Stale => "says nothing new",
            Self::HeldTooLong => "was held for longer than the packet is away",
        })
    }
}

/// Packets that the window has on top for each packet of a mean burst of losses. Chosen: a burst and the reports of it
/// must not empty the window; more is a queue.
const BURST_ROOM: f64 = 32.0;
/// Maximum of that, in packets. Chosen; more would be a queue, with less long bursts empty the window.
const MAX_BURST_ROOM: f64 = 256.0;
/// Packets that the window has on top for the link's own loss, times its share, of at most a fifth. Chosen; with fewer,
/// losses that no report has announced yet hold up the window; more is a queue.
const LOSS_ROOM: f64 = 60.0;
/// Packets in a round trip that go on top of the gain when probing. Chosen: a sender that has next to nothing of a link
/// that others fill gets its share as any other; with more, many of them overrun a short queue.
const PROBE_PACKETS: u64 = 2;
/// Bytes of a packet that is as large as may be, for reckoning in packets: a full Ethernet frame, 14 bytes of
/// header and 1500 (IEEE 802.3, section 3.2.7).
const PACKET: u64 = 1514;
/// Share of what arrives that passes at most while ramping up: a link may lose a fifth of it. Chosen: less, and the
/// start over a lossy link is slow; more, and a queue that overflows is taken for such a link.
const STARTUP_TRUST: f64 = 1.25;
/// Share of the believed rate below which what a round brings, while a queue stands, shows that the link has become
/// slower. Chosen: below the noise of a round, and above half, the change that a modem's step makes.
const SLOWER_LINK: f64 = 0.75;
/// Minimum length of a sample and a round, in slacks. Chosen: the best of many samples is believed, and each is off by
/// how late the receiver was woken: shorter ones would make the link seem faster than it is, and a queue would stand at
/// it.
const MIN_SLACKS: u64 = 8;
/// Bandwidth-delay products in flight from which on, with [`BUSY_PACKETS`] more, a link is not idle for want of data.
/// Chosen: what a probe sends; with less, a link that falls idle counts as busy, with more, a busy one as idle.
const BUSY_PRODUCTS: f64 = 1.25;
/// Number of packets that tell it from a trickle, whose product is its own. Chosen; with fewer, a trickle counts as a
/// busy link, with more, a short link never does.
const BUSY_PACKETS: u64 = 16;
/// Minimum rate, in bits per second. Chosen: a link that carries less is no link.
const MIN_RATE: f64 = 16_000.0;
/// Maximum rate, in bits per second: 1 Tbit/s. Chosen: above any link, so that a forged report cannot make it more.
const MAX_RATE: f64 = 1e12;
/// Probe timeout before there is a round trip. Chosen: a hop is mostly short, and its first packets are lost like any
/// others; a few probes too many, if it is a long one, are less than a wait at each hop of a chain.
const INITIAL_TIMEOUT: Duration = Duration::from_millis(10);
/// Minimum probe timeout. Chosen: reports of a hop within a machine wait for 200 us; below that every one of them would
/// be probed for.
const MIN_TIMEOUT: Duration = Duration::from_micros(500);
/// Maximum probe timeout besides the round trip. Chosen: longer, and a lost last packet waits as long; shorter, and a
/// slow link is probed while it still sends.
const MAX_TIMEOUT: Duration = Duration::from_millis(200);
/// Share of the link that probes take, as one over a number: the probe timeout doubles until they take a tenth. Chosen;
/// a larger share takes from data, a smaller one is answered later. Where bursts of loss are that long, probing seldom
/// would only make them long.
const PROBE_SPACING: u64 = 10;
/// Maximum number of packets that a probe counts for. Chosen; with fewer, a probe does not outlast a long burst of
/// losses; with more, it is a burst itself.
const MAX_PROBE_PACKETS: f64 = 16.0;
/// Packets of probes without a report after which it is no burst of losses: the link is down, and others may need the
/// air. Chosen; with fewer, a long burst is taken for an outage; with more, a dead link is probed at the full pace for
/// longer.
const LINK_DOWN_PROBES: f64 = 512.0;
/// Further packets of probes for each packet of a mean burst, chosen for the same reasons.
const LINK_DOWN_PROBES_PER_BURST: f64 = 20.0;
/// Share of its absence within which a link that returns is found, as one over a number: probes come ever more seldom.
/// Chosen; more often costs packets in vain, more seldom loses more of the time after an outage.
const LINK_DOWN_PROBE_SHARE: u64 = 64;

/// The rate, the window and the timeouts of one hop's sender.
#[derive(Clone, Debug)]
pub(crate) struct LinkRate {
    config: Config,
    /// Whether packets are sent without regard to the link's rate.
    unbounded: bool,
    flight: Flight,
    delay: Delay,
    samples: Samples,
    best: MaxFilter,
    /// The rate of arrivals, corrected by the losses of the link itself.
    arrived: MaxFilter,
    random_loss: RandomLoss,
    cycle: Cycle,
    pacer: Pacer,
    last: Option<Last>,
    round: Round,
    limited: bool,
    /// A sample was limited by the link and nothing else. Until then the estimate is what the application sends.
    proven: bool,
    drain: Drain,
    mean_burst: f64,
    backoff: u32,
    /// The packets of probes since the last report, and when the first was sent.
    probes: (u64, Instant),
    /// For how long a link has been gone that is.
    absence: Duration,
    /// Bytes that may be in flight because of a probe.
    probe_room: u64,
    /// Derived from the rest, and asked for much more often than it changes: the window in bytes, and how long
    /// to wait for a report.
    window: u64,
    timeout: Duration,
}

/// The last report.
#[derive(Clone, Copy, Debug)]
struct Last {
    report: HopReport,
    sent: Sent,
    passed: f64,
    received: u64,
}

/// A round: it ends when all packets that were in flight at its beginning have been reported.
#[derive(Clone, Copy, Debug)]
struct Round {
    number: u64,
    /// The first packet and that which ends it.
    begin: u64,
    end: u64,
    begun: Instant,
    min_rtt: Duration,
}

/// The result of a round.
#[derive(Clone, Copy, Debug)]
struct RoundEnd {
    standing: bool,
    fell: bool,
    queue: Duration,
}

impl LinkRate {
    pub(crate) fn new(config: Config, random: Stream) -> Self {
        let first_window = config.initial_window * PACKET;
        Self {
            pacer: Pacer::new(config.slack),
            config,
            unbounded: false,
            flight: Flight::default(),
            delay: Delay::default(),
            samples: Samples::default(),
            best: MaxFilter::default(),
            arrived: MaxFilter::default(),
            random_loss: RandomLoss::default(),
            cycle: Cycle::new(random),
            last: None,
            round: Round { number: 0, begin: 0, end: 0, begun: Instant::ZERO, min_rtt: Duration::MAX },
            limited: false,
            proven: false,
            drain: Drain::default(),
            mean_burst: 1.0,
            backoff: 0,
            probes: (0, Instant::ZERO),
            absence: Duration::ZERO,
            probe_room: 0,
            window: first_window,
            timeout: INITIAL_TIMEOUT,
        }
    }

    /// Notes a packet that leaves. `app_limited`: nothing waits to follow it, so that the link may fall idle.
    pub(crate) fn on_sent(&mut self, now: Instant, sequence: u64, bytes: u64, app_limited: bool) {
        let bytes = bytes + self.config.overhead;
        let limited = app_limited && !self.has_plenty() || self.cycle.holds_back();
        self.flight.on_sent(now, sequence, bytes, limited, self.cycle.pace());
        if let Some(rate) = self.pacing_rate() {
            self.pacer.sent(now, rate, bytes);
        }
    }

    /// Takes a report.
    ///
    /// # Errors
    ///
    /// It is impossible or old; nothing has changed.
    pub(crate) fn on_report(&mut self, now: Instant, report: &HopReport) -> Result<(), ReportError> {
        if report.highest >= self.flight.next() {
            return Err(ReportError::NeverSent);
        }
        if self.last.is_some_and(|last| report.highest <= last.report.highest) {
            return Err(ReportError::Stale);
        }
        let Some(sent) = self.flight.get(report.highest) else { return Err(ReportError::Stale) };
        let away = now.since(sent.at);
        if report.hold > away {
            return Err(ReportError::HeldTooLong);
        }
        let known = (report.hold < MAX_HOLD).then(|| away.saturating_sub(report.hold));
        let rtt = known.or(self.delay.smoothed()).unwrap_or(INITIAL_TIMEOUT);
        self.flight.pass(report.highest);
        (self.backoff, self.probes.0, self.probe_room) = (0, 0, 0);
        self.absence = Duration::ZERO;
        self.mean_burst = if report.mean_burst >= 1.0 { report.mean_burst.min(1e3) } else { 1.0 };
        let packet_time = self.packet_time();
        if let Some(rtt) = known {
            self.delay.on_sample(now, rtt, packet_time);
        }
        let (passed, received) = self.count(report, &sent, rtt);
        self.last = Some(Last { report: *report, sent, passed, received });
        let next = self.flight.next();
        let arrival = report.arrival_ns;
        self.take_sample(&Mark { highest: report.highest, sent, arrival, next, passed, received });
        let round = self.take_round(now, report.highest, rtt);
        self.step(now, rtt, round, report.highest);
        self.reckon();
        Ok(())
    }

    /// Bytes that have passed the link and that have arrived, with this report.
    fn count(&mut self, report: &HopReport, sent: &Sent, rtt: Duration) -> (f64, u64) {
        let Some(last) = self.last else { return (sent.bytes as f64, sent.bytes) };
        let old = &last.report;
        let consistent = report.received_packets >= old.received_packets
            && report.received_bytes >= old.received_bytes
            && report.arrival_ns.wrapping_sub(old.arrival_ns) <= u64::MAX / 2;
        if !consistent {
            // Another receiver than before, or none that can be believed: measure from here.
            self.samples.clear();
            self.drain = Drain::default();
            return (last.passed, last.received);
        }
        let packets = report.highest - old.highest;
        let received = (report.received_packets - old.received_packets).min(packets);
        let packet_time = self.packet_time();
        let eased = if self.delay.has_room(rtt, packet_time) {
            sent.eased.saturating_sub(last.sent.eased) as f64 / packets as f64
        } else {
            0.0
        };
        let pressed = sent.pressed.saturating_sub(last.sent.pressed) as f64 / packets as f64;
        let interval = Interval { packets, lost: packets - received, eased, pressed };
        self.random_loss.on_packets(&interval, self.mean_burst);
        let offered = sent.bytes.saturating_sub(last.sent.bytes);
        let arrived = Duration::from_nanos(report.arrival_ns.wrapping_sub(old.arrival_ns));
        let times = (sent.at.since(last.sent.at), arrived);
        self.drain.update(packets, offered as f64 * 8.0, times, self.best.get());
        let bytes =
            (report.received_bytes - old.received_bytes).saturating_add(received * self.config.overhead);
        let bytes = bytes.min(offered);
        let passed = if self.random_loss.is_overflow(self.mean_burst) {
            (bytes as f64 / (1.0 - self.random_loss.get())).min(offered as f64)
        } else {
            offered as f64
        };
        (last.passed + passed, last.received + bytes)
    }

    /// Minimum length of a sample and of a round.
    fn min_time(&self) -> Duration {
        self.config.slack * MIN_SLACKS
    }

    fn take_sample(&mut self, mark: &Mark) {
        let min_time = (self.delay.jitter() * 8).max(self.min_time());
        if let Some(sample) = self.samples.sample(mark, min_time) {
            self.limited = sample.limited;
            self.proven |= !sample.limited;
            let arrived = sample.received / (1.0 - self.random_loss.get());
            self.arrived.update(arrived);
            let rate = if matches!(self.cycle.mode(), Mode::Startup { .. }) {
                sample.passed.min(arrived.max(STARTUP_TRUST * sample.received))
            } else {
                sample.passed
            };
            let rate = rate.clamp(MIN_RATE, MAX_RATE);
            if !sample.limited || rate > self.best.get() {
                self.best.update(rate);
            }
        }
        self.samples.push(*mark, self.delay.smoothed().unwrap_or_default().max(self.min_time()));
    }

    /// Whether this report ends a round, and if so, whether a queue stood all along it.
    fn take_round(&mut self, now: Instant, highest: u64, rtt: Duration) -> Option<RoundEnd> {
        self.round.min_rtt = self.round.min_rtt.min(rtt);
        let over = highest >= self.round.end
            && highest >= self.round.begin + samples::MIN_PACKETS
            // The link is all but empty while its length is looked at, and that must not last.
            && (self.cycle.holds_back() || now >= self.round.begun + self.min_time());
        if !over {
            return None;
        }
        let standing = self.delay.is_standing(self.round.min_rtt, self.packet_time());
        let queue = self.round.min_rtt.saturating_sub(self.delay.min_rtt().unwrap_or_default());
        self.round = Round {
            number: self.round.number + 1,
            begin: highest,
            end: self.flight.next(),
            begun: now,
            min_rtt: Duration::MAX,
        };
        let mut fell = false;
        if !self.limited {
            fell = self.best.present() < SLOWER_LINK * self.best.get();
            self.best.advance();
            self.arrived.advance();
        }
        Some(RoundEnd { standing, fell, queue })
    }

    fn step(&mut self, now: Instant, rtt: Duration, round: Option<RoundEnd>, highest: u64) {
        let in_flight = self.in_flight() as f64;
        let wish = self.cycle.step(&Step {
            now,
            rtt,
            min_round: self.min_time(),
            round: round.map(|round| round.standing),
            fell: round.is_some_and(|round| round.fell),
            queue: round.map(|round| round.queue).unwrap_or_default(),
            rounds: self.round.number,
            highest,
            next: self.flight.next(),
            rate: self.best.get(),
            arrived: self.arrived.get(),
            overflow: self.random_loss.is_overflow(self.mean_burst),
            crowded: self.random_loss.is_crowded(self.mean_burst),
            swamped: self.random_loss.is_swamped(),
            random_loss: self.random_loss.get(),
            limited: self.limited,
            in_flight: in_flight / self.product().max(1.0),
            stale: self.delay.is_stale(now),
        });
        match wish {
            Wish::Nothing => {}
            Wish::Shorten(rounds) => {
                self.best.shorten(rounds);
                self.arrived.shorten(rounds);
            }
            Wish::Lower => {
                self.random_loss.answered(self.mean_burst);
                self.best.shorten(3);
                self.arrived.shorten(3);
            }
            Wish::Believe(rate) => self.best.replace(rate.clamp(MIN_RATE, MAX_RATE)),
            Wish::MinRtt(rtt) => self.delay.raise_min_rtt(now, rtt),
        }
    }

    /// Lets packets be sent without regard to the link's rate.
    pub(crate) const fn unbind(&mut self) {
        self.unbounded = true;
    }

    /// Whether window and pacing let a packet go.
    pub(crate) fn may_send(&self, now: Instant) -> bool {
        self.next_send().is_some_and(|at| at <= now)
    }

    /// Time at which the next packet may go; `None` if the window is full, and only a report (or a probe) can help.
    pub(crate) fn next_send(&self) -> Option<Instant> {
        if self.unbounded {
            return (!self.flight.is_full()).then_some(Instant::ZERO);
        }
        (self.in_flight() < self.window.max(self.probe_room) && !self.flight.is_full())
            .then_some(self.pacer.departure())
    }

    /// The rate of the link as it is believed, headers of lower layers included.
    pub(crate) fn rate(&self) -> Rate {
        Rate::from_bits_per_sec(self.best.get() as u64)
    }

    /// The rate at which a queue before the link empties, in bits per second, if one has been seen.
    pub(crate) const fn drain(&self) -> Option<f64> {
        self.drain.get()
    }

    /// Bytes in flight, headers of lower layers included.
    pub(crate) fn in_flight(&self) -> u64 {
        self.flight.bytes_since(self.last.map_or(0, |last| last.sent.bytes))
    }

    pub(crate) fn srtt(&self) -> Option<Duration> {
        self.delay.smoothed()
    }

    pub(crate) fn min_rtt(&self) -> Option<Duration> {
        self.delay.min_rtt()
    }

    /// The share of packets that are lost, overflowing queues included.
    pub(crate) fn loss(&self) -> f64 {
        self.random_loss.all()
    }

    /// The mean number of packets lost in a row.
    pub(crate) const fn mean_burst(&self) -> f64 {
        self.mean_burst
    }

    /// Time to wait for a report before a probe is sent to ask for one.
    pub(crate) const fn probe_timeout(&self) -> Duration {
        self.timeout
    }

    fn reckon_timeout(&self) -> Duration {
        let first = match self.delay.smoothed() {
            None => INITIAL_TIMEOUT,
            // A report may be held for a quarter of a round trip.
            Some(rtt) => (rtt + self.delay.variation() * 4 + rtt / 4).max(MIN_TIMEOUT),
        };
        let greatest = match self.best.get() {
            0.0 => MAX_TIMEOUT,
            _ => self.packet_time() * (PROBE_SPACING * self.probe_packets()),
        };
        let greatest = greatest.max(self.absence / LINK_DOWN_PROBE_SHARE).min(MAX_TIMEOUT);
        (first * 1_u64.checked_shl(self.backoff).unwrap_or(u64::MAX)).min(greatest.max(first))
    }

    /// Notes that the probe timeout has gone off: a few packets may leave whatever the window says, as many as a burst
    /// of losses would take and then some, and the next timeout is twice as long, and longer where the link is gone;
    /// until a report comes.
    pub(crate) fn on_probe(&mut self, now: Instant) {
        self.backoff = self.backoff.saturating_add(1);
        let (probes, since) = self.probes;
        self.probes = (probes + self.probe_packets(), if probes == 0 { now } else { since });
        let gone = self.probes.0 as f64
            > LINK_DOWN_PROBES + LINK_DOWN_PROBES_PER_BURST * self.mean_burst.min(MAX_PROBE_PACKETS);
        self.absence = if gone { now.since(self.probes.1) } else { Duration::ZERO };
        self.probe_room = self.in_flight().saturating_add(self.probe_packets() * PACKET);
        self.reckon();
    }

    fn probe_packets(&self) -> u64 {
        (1.5 * self.mean_burst).clamp(1.0, MAX_PROBE_PACKETS) as u64
    }

    fn pacing_rate(&self) -> Option<Rate> {
        let gain = self.cycle.pacing_gain();
        let best = self.best.get();
        // Until the link has shown what it takes: the first window in a round trip.
        let granted = if self.proven {
            MIN_RATE
        } else {
            let rtt = self.delay.smoothed()?.as_secs_f64().max(1e-6);
            (self.config.initial_window * PACKET * 8) as f64 / rtt
        };
        let more = match (self.cycle.mode(), self.delay.smoothed()) {
            (Mode::Up { .. }, Some(rtt)) => (PROBE_PACKETS * PACKET * 8) as f64 / rtt.as_secs_f64().max(1e-6),
            _ => 0.0,
        };
        Some(Rate::from_bits_per_sec((gain * best.max(granted) + more) as u64))
    }

    fn reckon(&mut self) {
        (self.window, self.timeout) = (self.reckon_window(), self.reckon_timeout());
    }

    fn reckon_window(&self) -> u64 {
        if self.best.get() <= 0.0 {
            let passed = self.last.map_or(0, |last| last.sent.bytes);
            return self.config.initial_window * PACKET + 2 * passed;
        }
        let (gain, packets) = self.cycle.window();
        // What a burst takes is in flight for the sender until the next report.
        let burst = ((self.mean_burst - 1.0) * BURST_ROOM).min(MAX_BURST_ROOM);
        let burst = (burst + LOSS_ROOM * self.random_loss.get().min(0.2)) as u64;
        let window = (gain * self.product()) as u64 + (packets + burst) * PACKET;
        if self.proven { window } else { window.max(self.config.initial_window * PACKET) }
    }

    /// The bandwidth-delay product in bytes.
    fn product(&self) -> f64 {
        self.best.get() / 8.0 * self.delay.base().unwrap_or_default().as_secs_f64()
    }

    /// Whether enough is in flight that the link is not idle even if nothing follows.
    fn has_plenty(&self) -> bool {
        self.in_flight() as f64 > BUSY_PRODUCTS * self.product() + (BUSY_PACKETS * PACKET) as f64
    }

    fn packet_time(&self) -> Duration {
        let best = self.best.get();
        if best <= 0.0 {
            return self.delay.smoothed().unwrap_or_default();
        }
        Duration::from_secs_f64((PACKET * 8) as f64 / best)
    }
}
