//! The cycle of the rate: probe for more, drain what the probe has queued, cruise.

use hopcast_core::{Duration, Instant, Stream};

use super::flight::Pace;

/// Gain of a start: 2/ln 2, the minimum that doubles the rate each round trip (BBR, Cardwell et al. 2017).
const HIGH_GAIN: f64 = 2.885;
/// Gain of a start from a rate that was known, and has turned out to be too low. Chosen: it doubles the rate in one
/// round, where a queue of one bandwidth-delay product is the price of being wrong.
const RESTART_GAIN: f64 = 2.0;
/// Gain of a probe for more (BBR: 5/4).
const PROBE_GAIN: f64 = 1.25;
/// The same where the last probe has overrun a queue, and one stands: what is left of that has no room for a quarter of
/// a bandwidth-delay product, and a loss-based TCP that shares it gives way at each overflow. Over 100 Mbit/s, 20 ms
/// and a queue of 0.6 products a CUBIC keeps 8.9 Mbit/s with 1.25, 10.9 with 1.15, 13.9 with 1.1; beside a BBR 11.0.
/// Where a queue merely stands it is no reason: ten of ours would take longer to get the same.
const CAREFUL_GAIN: f64 = 1.1;
/// Gain after it, which drains what it has queued (BBR: 3/4).
const DRAIN_GAIN: f64 = 0.75;
/// Gain while a queue stands: all who share it drain it, those more who send more. Chosen: a tenth a round; less, and
/// the queue stands for longer, more, and a link is left empty when a round was enough.
const BRAKE_GAIN: f64 = 0.9;
/// Window in bandwidth-delay products, for delayed and lost reports (BBR: 2).
const WINDOW_GAIN: f64 = 2.0;
/// Growth of the rate in [`FULL_ROUNDS`] rounds below which the link is full (BBR: a quarter in three).
const FULL_GROWTH: f64 = 1.25;
/// Number of those rounds (BBR: three).
const FULL_ROUNDS: u32 = 3;
/// Growth of the rate by a probe, without a queue, from which on the link is taken to have become faster. Chosen: above
/// the noise of a sample, below what a probe of a quarter can show.
const FOUND_GROWTH: f64 = 1.15;
/// Minimum number of rounds at the rate between two probes; up to [`CRUISE_SPREAD`] - 1 more are drawn, so that flows
/// do not probe in step (BBR: six to eight rounds).
const MIN_CRUISE_ROUNDS: u32 = 5;
/// Number of values that are drawn from: see [`MIN_CRUISE_ROUNDS`].
const CRUISE_SPREAD: u64 = 3;
/// Maximum time between two probes besides their round trips: a round has a minimum of packets, which take their time.
/// Chosen; longer, and a slow link that has become faster is found later; shorter, and it is overrun more often.
const CRUISE_TIME: Duration = Duration::from_millis(50);
/// Rounds after which a queue that stands is drained. Chosen: fewer, and a probe's own queue is; more, and it delays
/// everybody for longer.
const STANDING_ROUNDS: u32 = 3;
/// Rounds of draining after which, if the rate has come down to [`YIELDED`] of what it was and [`STAYED`] of the queue
/// is still there, it is others that fill it. Chosen: with fewer rounds or smaller shares of the queue, a sender that
/// shares a queue with its own kind takes them for others; with more, it gives rate away to those who keep the queue
/// full.
const BRAKE_ROUNDS: u32 = 4;
/// Maximum number of rounds of draining. Chosen; with fewer, a long queue stands afterwards; with more, one that others
/// fill costs rate for longer.
const MAX_BRAKE_ROUNDS: u32 = 12;
/// Rounds after those in which it is not tried again. Chosen; with fewer, the rate hardly comes back in between; with
/// more, a queue stands for longer.
const PROBE_ROUNDS: u64 = 4;
/// Share of the rate to which it must have come down: see [`BRAKE_ROUNDS`].
const YIELDED: f64 = 0.85;
/// Share of the queue that must be left: see [`BRAKE_ROUNDS`].
const STAYED: f64 = 0.75;
/// Rounds in which a queue that others fill is left alone. Chosen; with fewer, rate is given away in vain more often;
/// with more, a queue that is ours again stands for longer.
const FOREIGN_ROUNDS: u64 = 48;
/// Minimum time of a probe of the round trip. Chosen (BBR: 200 ms, for paths): a hop is short; longer costs rate, and
/// what is shorter may not see the queue empty.
const PROBE_RTT_TIME: Duration = Duration::from_millis(4);

/// The mode of sending.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Mode {
    /// Ramping up.
    Startup { gain: f64, full: f64, rounds: u32 },
    /// Emptying the queue that startup has made.
    Drain { rounds: u32, before: f64 },
    /// Sending more than the rate.
    Up { since: u64, rounds: u32, gain: f64 },
    /// Emptying the queue that probing has made.
    Down { rounds: u32 },
    /// Sending at the rate; how many rounds to go, and until when at most.
    Cruise { left: u32, until: Instant },
    /// Emptying a queue that stands.
    Brake { rounds: u32, queue: Duration, rate: f64 },
    /// Emptying the link to see its length.
    ProbeRtt { until: Instant, round: u64, min_rtt: Duration },
}

/// A report, as far as it concerns the cycle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub now: Instant,
    pub rtt: Duration,
    /// Minimum length of a round.
    pub min_round: Duration,
    /// Whether a round has ended with this report, and whether a queue stood all along it.
    pub round: Option<bool>,
    /// Difference of the minimum round trip of that round from the minimum of all.
    pub queue: Duration,
    /// Whether that round brought far less than what is believed.
    pub fell: bool,
    /// Rounds so far.
    pub rounds: u64,
    /// The packet that was reported, and the one to be sent next.
    pub highest: u64,
    pub next: u64,
    /// The rate of the link as it is believed, in bits per second.
    pub rate: f64,
    /// Recent maximum of the arrival rate, divided by the share of packets that the link itself lets through.
    pub arrived: f64,
    /// Whether a queue overflows, and whether it does so with no more than the rate.
    pub overflow: bool,
    pub crowded: bool,
    /// Whether the share that is dropped is so high that it does not matter who fills the queue.
    pub swamped: bool,
    /// The share that the link itself loses.
    pub random_loss: f64,
    /// Whether the last sample was limited by the application.
    pub limited: bool,
    /// Bandwidth-delay products in flight, without the room for two packets.
    pub in_flight: f64,
    /// Whether the minimum round trip has not been seen for long.
    pub stale: bool,
}

/// A wish of the cycle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Wish {
    /// Only the mode's own gain.
    Nothing,
    /// Believe only the present round and this number before it.
    Shorten(usize),
    /// The same with the last three; that the queue overflows has been answered.
    Lower,
    /// Believe this rate.
    Believe(f64),
    /// Take this for the minimum round trip.
    MinRtt(Duration),
}

/// The state machine.
#[derive(Clone, Debug)]
pub(super) struct Cycle {
    mode: Mode,
    random: Stream,
    /// The rate before the last probe.
    before_probe: f64,
    /// For how many rounds a queue has stood.
    standing: u32,
    /// Until which round the queue is taken for that of others.
    foreign_until: u64,
    /// The last probe has made a queue overflow.
    overran: bool,
}

impl Cycle {
    pub(super) const fn new(random: Stream) -> Self {
        Self {
            mode: Mode::Startup { gain: HIGH_GAIN, full: 0.0, rounds: 0 },
            random,
            before_probe: f64::MAX,
            standing: 0,
            foreign_until: 0,
            overran: false,
        }
    }

    pub(super) const fn mode(&self) -> Mode {
        self.mode
    }

    /// The pacing rate over the link's.
    pub(super) const fn pacing_gain(&self) -> f64 {
        match self.mode {
            Mode::Startup { gain, .. } | Mode::Up { gain, .. } => gain,
            Mode::Drain { .. } => 1.0 / HIGH_GAIN,
            Mode::Down { .. } => DRAIN_GAIN,
            Mode::Brake { .. } => BRAKE_GAIN,
            Mode::Cruise { .. } | Mode::ProbeRtt { .. } => 1.0,
        }
    }

    /// The window: bandwidth-delay products, and packets on top.
    pub(super) const fn window(&self) -> (f64, u64) {
        match self.mode {
            Mode::Startup { .. } => (HIGH_GAIN, 16),
            Mode::Drain { .. } | Mode::Up { .. } | Mode::Down { .. } | Mode::Cruise { .. } => {
                (WINDOW_GAIN, 8)
            }
            Mode::Brake { .. } => (1.0, 4),
            Mode::ProbeRtt { .. } => (0.0, 2),
        }
    }

    /// Whether the cycle itself makes the sender send less than the link takes.
    pub(super) const fn holds_back(&self) -> bool {
        matches!(self.mode, Mode::ProbeRtt { .. })
    }

    /// Pace at which packets leave, compared with the rate.
    pub(super) const fn pace(&self) -> Pace {
        match self.mode {
            Mode::Startup { .. } | Mode::Up { .. } => Pace::Pressed,
            Mode::Cruise { .. } => Pace::Even,
            Mode::Drain { .. } | Mode::Down { .. } | Mode::Brake { .. } | Mode::ProbeRtt { .. } => {
                Pace::Eased
            }
        }
    }

    pub(super) fn step(&mut self, step: &Step) -> Wish {
        match step.round {
            Some(true) if !step.limited => self.standing += 1,
            Some(_) => self.standing = 0,
            None => {}
        }
        if step.stale && !matches!(self.mode, Mode::ProbeRtt { .. } | Mode::Startup { .. }) {
            if step.limited {
                return Wish::MinRtt(step.rtt);
            }
            self.mode = Mode::ProbeRtt {
                until: step.now + PROBE_RTT_TIME,
                round: step.rounds + 2,
                min_rtt: Duration::MAX,
            };
        }
        let slower = step.round == Some(true) && step.fell;
        let crowded = step.round.is_some() && step.crowded && !step.limited;
        let swamped = crowded && step.swamped;
        if (swamped || (slower || crowded) && step.rounds >= self.foreign_until) && self.is_probing() {
            self.mode = Mode::Brake { rounds: 0, queue: step.queue, rate: step.rate };
            return if slower { Wish::Shorten(1) } else { Wish::Lower };
        }
        match self.mode {
            Mode::Startup { gain, full, rounds } => return self.startup(step, gain, full, rounds),
            Mode::Drain { rounds, before } => {
                let rounds = rounds + u32::from(step.round.is_some());
                self.mode = Mode::Drain { rounds, before };
                if step.in_flight <= 1.0 || rounds >= BRAKE_ROUNDS {
                    let left = 1 + self.random.below(u64::from(MIN_CRUISE_ROUNDS)) as u32;
                    self.mode = cruise_for(step, left);
                    // Meanwhile the losses of the link itself have been seen.
                    return Wish::Believe(step.rate * (1.0 - before) / (1.0 - step.random_loss));
                }
            }
            Mode::Up { since, rounds, gain } => {
                let rounds = rounds + u32::from(step.round.is_some());
                self.mode = Mode::Up { since, rounds, gain };
                let seen = step.highest >= since + 16;
                if seen && (step.in_flight >= PROBE_GAIN || step.overflow || rounds >= BRAKE_ROUNDS) {
                    self.mode = Mode::Down { rounds: 0 };
                }
            }
            Mode::Down { rounds } => {
                let rounds = rounds + u32::from(step.round.is_some());
                self.mode = Mode::Down { rounds };
                if step.in_flight <= 1.0 || rounds >= 2 {
                    // What the probe has lost is known a round trip after it.
                    self.overran = step.overflow;
                    let left = MIN_CRUISE_ROUNDS + self.random.below(CRUISE_SPREAD) as u32;
                    self.mode = cruise_for(step, left);
                }
            }
            Mode::Cruise { left, until } => return self.cruise(step, left, until),
            Mode::Brake { rounds, queue, rate } => return self.brake(step, rounds, queue, rate),
            Mode::ProbeRtt { until, round, min_rtt } => {
                let min_rtt = min_rtt.min(step.rtt);
                self.mode = Mode::ProbeRtt { until, round, min_rtt };
                if step.now >= until && step.rounds >= round {
                    self.probe(step);
                    return Wish::MinRtt(min_rtt);
                }
            }
        }
        Wish::Nothing
    }

    const fn is_probing(&self) -> bool {
        matches!(self.mode, Mode::Up { .. } | Mode::Down { .. } | Mode::Cruise { .. })
    }

    fn startup(&mut self, step: &Step, gain: f64, full: f64, rounds: u32) -> Wish {
        let Some(standing) = step.round else { return Wish::Nothing };
        if step.limited {
            return Wish::Nothing;
        }
        // Growth is of what arrives: what a queue drops is no growth.
        if step.arrived >= full * FULL_GROWTH {
            self.mode = Mode::Startup { gain, full: step.arrived, rounds: 0 };
            return Wish::Nothing;
        }
        if rounds + 1 >= FULL_ROUNDS || standing || step.overflow {
            self.mode = Mode::Drain { rounds: 0, before: step.random_loss };
            self.before_probe = f64::MAX;
            return Wish::Believe(step.arrived);
        }
        self.mode = Mode::Startup { gain, full, rounds: rounds + 1 };
        Wish::Nothing
    }

    fn cruise(&mut self, step: &Step, left: u32, until: Instant) -> Wish {
        // Who has next to nothing of a link has long rounds, and would never get more.
        if step.round.is_none() && step.now < until {
            return Wish::Nothing;
        }
        if step.rate >= self.before_probe * FOUND_GROWTH && step.round == Some(false) {
            self.mode = Mode::Startup { gain: RESTART_GAIN, full: step.arrived, rounds: 0 };
            return Wish::Nothing;
        }
        if self.standing >= STANDING_ROUNDS && step.rounds >= self.foreign_until {
            self.mode = Mode::Brake { rounds: 0, queue: step.queue, rate: step.rate };
            return Wish::Shorten(3);
        }
        if left > 1 && step.now < until {
            self.mode = Mode::Cruise { left: left - 1, until };
            return Wish::Nothing;
        }
        self.probe(step);
        Wish::Nothing
    }

    /// Begins to send more than the rate.
    fn probe(&mut self, step: &Step) {
        let gain = if self.overran && self.standing > 0 { CAREFUL_GAIN } else { PROBE_GAIN };
        self.mode = Mode::Up { since: step.next, rounds: 0, gain };
        self.before_probe = step.rate;
    }

    fn brake(&mut self, step: &Step, rounds: u32, queue: Duration, rate: f64) -> Wish {
        let Some(standing) = step.round else { return Wish::Nothing };
        let rounds = rounds + 1;
        let in_vain =
            rounds >= BRAKE_ROUNDS && step.rate < YIELDED * rate && step.queue >= queue.mul_f64(STAYED);
        let enough = rounds >= MAX_BRAKE_ROUNDS;
        if (standing || step.crowded) && !in_vain && !enough {
            self.mode = Mode::Brake { rounds, queue, rate };
            return if step.crowded { Wish::Lower } else { Wish::Shorten(3) };
        }
        if in_vain {
            self.foreign_until = step.rounds + FOREIGN_ROUNDS;
        } else if enough {
            self.foreign_until = step.rounds + PROBE_ROUNDS;
            self.standing = 0;
            self.mode = cruise_for(step, 1);
            return Wish::Nothing;
        }
        self.standing = 0;
        self.mode = cruise_for(step, MIN_CRUISE_ROUNDS + self.random.below(CRUISE_SPREAD) as u32);
        Wish::Nothing
    }
}

/// Cruising for this number of rounds, or of round trips and some time.
fn cruise_for(step: &Step, left: u32) -> Mode {
    Mode::Cruise { left, until: step.now + step.rtt.max(step.min_round) * u64::from(left) + CRUISE_TIME }
}
