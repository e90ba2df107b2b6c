//! The maximum length of datagrams that reach a peer: probes of the full length, and where those are lost, shorter
//! ones.
//!
//! A round begins with a full probe every [`ROUND_INTERVAL`]. One that is not reported as received is repeated at four
//! times the rate of hellos. Once random loss can no longer explain it, shorter ones are sent, from long to short,
//! until one is reported. The result is known some seconds after a start or a change of the path.

use hopcast_core::{Duration, Instant};

use crate::hello::wire::Longest;

/// Time between the beginnings of two rounds. Chosen; shorter costs more full datagrams, longer finds a smaller MTU
/// later.
const ROUND_INTERVAL: Duration = Duration::from_secs(5);
/// The same where full probes are lost. Chosen: with an MTU of 1500 bytes the search costs some 25 kB at little random
/// loss, and up to 160 kB at [`MAX_RANDOM_LOSS`], where each length is tried six times.
const BLOCKED_ROUND_INTERVAL: Duration = Duration::from_secs(60);
/// Maximum probability with which random loss, at the rate of short datagrams, explains the loss of all full probes of
/// a round. Chosen; a larger one takes loss for a smaller MTU, a smaller one needs more probes.
const MAX_CHANCE: f64 = 1e-4;
/// Minimum number of full probes in a round before the search. Chosen; fewer search at chance, more find a smaller MTU
/// later.
const MIN_FULL_PROBES: f64 = 6.0;
/// Maximum loss that counts as random. Chosen: higher, and the number of probes grows; lower, and a link with that loss
/// seems to have a smaller MTU. Where data is as long as full probes, all of it is lost, and no random loss is known.
const MAX_RANDOM_LOSS: f64 = 0.6;
/// Lengths of IP packets to try: of Ethernet with and without jumbo frames, of PPPoE, and of tunnels through them.
/// Chosen: with more, it takes longer to find the right one; with fewer, less of a route is used.
const LENGTHS: [u16; 28] = [
    8900, 8000, 6000, 4352, 4000, 3000, 2304, 2000, 1500, 1492, 1480, 1476, 1472, 1460, 1450, 1440, 1430,
    1420, 1412, 1400, 1380, 1360, 1340, 1320, 1280, 1200, 1000, 576,
];

/// The known maximum length of datagrams to a peer.
#[derive(Debug, Default)]
pub(crate) struct Probe {
    round: u8,
    phase: Phase,
    /// Time of the next step.
    pub(super) next: Instant,
    /// Beginning of the round; below, the loss at that time, which lost probes must not change.
    begun: Instant,
    loss: f64,
    /// Length of the longest probe of this round that was received, in bytes of UDP payload.
    longest: u16,
    /// Length that passes where full ones do not, in the same unit; `Some(0)`: none of those tried.
    pub(crate) passes: Option<u16>,
    /// The last such length that was logged, and whether fragments were permitted then.
    pub(super) told: Option<(u16, bool)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// Between two rounds.
    #[default]
    Rest,
    /// Number of full probes sent so far.
    Full(u32),
    /// Searching, with the next length to try.
    Search(usize),
    /// All probes have been sent.
    Wait,
}

/// The next action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Send this number of probes of this length, in bytes of UDP payload, of this round.
    Send {
        bytes: u16,
        copies: u32,
        round: u8,
    },
    /// Full probes are lost, and shorter ones of this length pass, unless it is 0.
    Found(u16),
    Nothing,
}

/// Figures of the path.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathFigures {
    /// Length of the longest datagram with its tag, in bytes; below, of the headers around it.
    pub(super) full: u16,
    pub(super) headers: u16,
    /// Time between two hellos.
    pub(super) pace: Duration,
    pub(super) round_trip: Duration,
    /// Share of short datagrams that are lost.
    pub(super) loss: f64,
}

impl Probe {
    /// Begins a round at once, as for a peer that has just come up.
    pub(super) fn restart(&mut self, now: Instant) {
        (self.phase, self.next) = (Phase::Rest, now);
    }

    /// Notes a report of received probes; returns whether a full one was received.
    pub(super) fn heard(&mut self, longest: Longest, full: u16) -> bool {
        if longest.round == self.round && self.phase != Phase::Rest {
            self.longest = self.longest.max(longest.bytes);
        }
        let all = self.phase != Phase::Rest && self.longest >= full;
        if all {
            (self.phase, self.next) = (Phase::Rest, self.begun + ROUND_INTERVAL);
        }
        all
    }

    /// Takes the next step that is due.
    pub(super) fn step(&mut self, now: Instant, path: &PathFigures) -> Step {
        if now < self.next {
            return Step::Nothing;
        }
        if self.phase == Phase::Rest {
            // Bit errors destroy more long datagrams than short ones.
            self.loss = (1.5 * path.loss + 0.05).min(MAX_RANDOM_LOSS);
        }
        let loss = self.loss;
        let tries = |chance: f64| (chance.ln() / loss.ln()).ceil();
        match self.phase {
            Phase::Rest => {
                self.round = self.round.wrapping_add(1);
                (self.begun, self.longest) = (now, 0);
                self.full(now, 1, path)
            }
            Phase::Full(sent) if f64::from(sent) < tries(MAX_CHANCE).max(MIN_FULL_PROBES) => {
                self.full(now, sent + 1, path)
            }
            Phase::Full(_) => {
                self.phase = Phase::Search(0);
                self.search(now, tries(0.05).clamp(1.0, 8.0) as u32, path)
            }
            Phase::Search(_) => self.search(now, tries(0.05).clamp(1.0, 8.0) as u32, path),
            Phase::Wait => {
                (self.phase, self.next) = (Phase::Rest, self.begun + BLOCKED_ROUND_INTERVAL);
                self.passes = Some(self.longest);
                Step::Found(self.longest)
            }
        }
    }

    fn full(&mut self, now: Instant, sent: u32, path: &PathFigures) -> Step {
        (self.phase, self.next) = (Phase::Full(sent), now + path.pace.mul_f64(0.25).max(path.round_trip / 2));
        Step::Send { bytes: path.full, copies: 1, round: self.round }
    }

    /// Tries the next shorter length, until one is received.
    fn search(&mut self, now: Instant, copies: u32, path: &PathFigures) -> Step {
        let Phase::Search(from) = self.phase else { return Step::Nothing };
        let rest = LENGTHS[from..].iter().position(|&length| length - path.headers < path.full);
        let next = rest.map(|skipped| from + skipped).filter(|_| self.longest == 0);
        let Some(at) = next else {
            // The last probes and the reports about them are under way; a single report may be lost.
            let wait = if self.longest > 0 { path.pace.mul_f64(0.25) } else { path.pace * 2 };
            (self.phase, self.next) = (Phase::Wait, now + wait + path.round_trip * 2);
            return Step::Nothing;
        };
        (self.phase, self.next) = (Phase::Search(at + 1), now + path.pace.mul_f64(1.0 / 16.0));
        Step::Send { bytes: LENGTHS[at] - path.headers, copies, round: self.round }
    }
}
