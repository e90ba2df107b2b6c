//! How long datagrams may be that get to a peer: probes as long as the longest, and where those vanish, shorter ones.
//!
//! A round begins with a full probe every [`EVERY`]. One that is not said to have come is repeated four times as often
//! as hellos are said. After so many that losses do not explain it, shorter ones are sent, from long to short, until
//! one is said to have come. That is found out within some seconds of a start, as of a path that changes.

use hopcast_core::{Duration, Instant};

use crate::hello::wire::Longest;

/// How often a round begins.
const EVERY: Duration = Duration::from_secs(5);
/// How often one begins where full probes vanish: with an MTU of 1500 bytes the search costs some 25 kB where little
/// else is lost, and up to 160 kB at [`MOST_LOSS`], where each length is tried six times.
const EVERY_IN_VAIN: Duration = Duration::from_secs(60);
/// So seldom all full probes of a round may be lost to what loses short ones as well.
const CHANCE: f64 = 1e-4;
/// As many full probes as a round has before the search, at least.
const FEWEST: f64 = 6.0;
/// No more is taken to be lost at random: where the data is long as well, all of it vanishes, and says nothing of that.
const MOST_LOSS: f64 = 0.6;
/// Lengths of IP packets that are tried: of Ethernet with jumbo frames and without, of PPPoE, and of tunnels through
/// them.
const LENGTHS: [u16; 28] = [
    8900, 8000, 6000, 4352, 4000, 3000, 2304, 2000, 1500, 1492, 1480, 1476, 1472, 1460, 1450, 1440, 1430,
    1420, 1412, 1400, 1380, 1360, 1340, 1320, 1280, 1200, 1000, 576,
];

/// What is known of the longest datagrams to a peer.
#[derive(Debug, Default)]
pub(crate) struct Probe {
    round: u8,
    phase: Phase,
    /// When the next step is due.
    pub(super) next: Instant,
    /// When the round began, and the share that was lost by then: what the probes lose is not to count.
    begun: Instant,
    loss: f64,
    /// The longest probe of this round that has come, in bytes of UDP payload.
    longest: u16,
    /// What was found to pass in place of full ones, in the same; `Some(0)`: nothing that was tried.
    pub(crate) passes: Option<u16>,
    /// What was last said of that, and whether there were fragments then.
    pub(super) told: Option<(u16, bool)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// A round is to begin.
    #[default]
    Rest,
    /// So many full probes have been sent.
    Full(u32),
    /// The next length to try.
    Search(usize),
    /// All has been sent.
    Wait,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// So many probes of this length, in bytes of UDP payload, of this round.
    Send {
        bytes: u16,
        copies: u32,
        round: u8,
    },
    /// Full ones vanish, and shorter ones of this length pass, where it is not zero.
    Found(u16),
    Nothing,
}

/// What the way is like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    /// The longest datagram with its tag, in bytes, and the headers around it.
    pub(super) full: u16,
    pub(super) headers: u16,
    /// How often hellos are said.
    pub(super) pace: Duration,
    pub(super) round_trip: Duration,
    /// The share of short datagrams that are lost.
    pub(super) loss: f64,
}

impl Probe {
    /// Begins at once, as with a peer that has just come up.
    pub(super) fn restart(&mut self, now: Instant) {
        (self.phase, self.next) = (Phase::Rest, now);
    }

    /// The peer says what has come. Whether it is the whole length.
    pub(super) fn heard(&mut self, longest: Longest, full: u16) -> bool {
        if longest.round == self.round && self.phase != Phase::Rest {
            self.longest = self.longest.max(longest.bytes);
        }
        let all = self.phase != Phase::Rest && self.longest >= full;
        if all {
            (self.phase, self.next) = (Phase::Rest, self.begun + EVERY);
        }
        all
    }

    /// Does what is due.
    pub(super) fn step(&mut self, now: Instant, way: &Way) -> Step {
        if now < self.next {
            return Step::Nothing;
        }
        if self.phase == Phase::Rest {
            // Long datagrams are lost more often than short ones where bits are.
            self.loss = (1.5 * way.loss + 0.05).min(MOST_LOSS);
        }
        let loss = self.loss;
        let tries = |chance: f64| (chance.ln() / loss.ln()).ceil();
        match self.phase {
            Phase::Rest => {
                self.round = self.round.wrapping_add(1);
                (self.begun, self.longest) = (now, 0);
                self.full(now, 1, way)
            }
            Phase::Full(sent) if f64::from(sent) < tries(CHANCE).max(FEWEST) => self.full(now, sent + 1, way),
            Phase::Full(_) => {
                self.phase = Phase::Search(0);
                self.search(now, tries(0.05).clamp(1.0, 8.0) as u32, way)
            }
            Phase::Search(_) => self.search(now, tries(0.05).clamp(1.0, 8.0) as u32, way),
            Phase::Wait => {
                (self.phase, self.next) = (Phase::Rest, self.begun + EVERY_IN_VAIN);
                self.passes = Some(self.longest);
                Step::Found(self.longest)
            }
        }
    }

    fn full(&mut self, now: Instant, sent: u32, way: &Way) -> Step {
        (self.phase, self.next) = (Phase::Full(sent), now + way.pace.mul_f64(0.25).max(way.round_trip / 2));
        Step::Send { bytes: way.full, copies: 1, round: self.round }
    }

    /// The next length that is shorter than a full one, until one has come.
    fn search(&mut self, now: Instant, copies: u32, way: &Way) -> Step {
        let Phase::Search(from) = self.phase else { return Step::Nothing };
        let rest = LENGTHS[from..].iter().position(|&length| length - way.headers < way.full);
        let next = rest.map(|skipped| from + skipped).filter(|_| self.longest == 0);
        let Some(at) = next else {
            // The last ones, and what is said of them, are under way; what is said at once may be lost.
            let wait = if self.longest > 0 { way.pace.mul_f64(0.25) } else { way.pace * 2 };
            (self.phase, self.next) = (Phase::Wait, now + wait + way.round_trip * 2);
            return Step::Nothing;
        };
        (self.phase, self.next) = (Phase::Search(at + 1), now + way.pace.mul_f64(1.0 / 16.0));
        Step::Send { bytes: LENGTHS[at] - way.headers, copies, round: self.round }
    }
}
