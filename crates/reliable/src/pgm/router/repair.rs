//! Repair state (RFC 3208, sections 7.2 to 7.6): for each packet that was asked for, the interfaces that wait for it.
//!
//! ```text
//!            NAK: forwarded                  NCF                     NAK after the elimination interval: forwarded
//!  (none) ──────────────────► pending ─────────────────► confirmed ──────────────────► pending
//!     │                          │ no NCF: again, given up    │ repaired, or no repair comes
//!     │   NCF of others' NAK     ▼                            ▼
//!     └───────────────────► confirmed                       (none)
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use hopcast_core::{Duration, Instant};

use super::config::Config;
use super::redirect::Repairer;
use crate::pgm::answer_time::AnswerTime;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Wanted {
    /// The data packet with this sequence number.
    Packet(u32),
    /// Any parity packets of the transmission group that begins with this sequence number.
    Parity(u32),
}

/// Decision on a NAK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// It is forwarded, for this number of packets.
    Forward(u32),
    /// The same was asked for already: the interface is noted.
    Eliminate,
    /// There is no room for more state.
    Refuse,
}

/// What has fallen due.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Due {
    /// NAKs to send again, with the numbers of packets.
    pub(super) again: Vec<(Wanted, u32)>,
    /// Number of NAKs that nobody has confirmed, and that are given up.
    pub(super) unconfirmed: u64,
    /// Number of repairs that have not come.
    pub(super) unrepaired: u64,
    /// Repairers that have not confirmed a NAK.
    pub(super) silent: Vec<IpAddr>,
}

/// The repairs that are waited for in one session.
#[derive(Debug, Default)]
pub(super) struct Repairs {
    waiting: BTreeMap<Wanted, Repair>,
    deadlines: BTreeSet<(Instant, Wanted)>,
    /// The time that repairs take from the request on.
    answer_time: AnswerTime,
}

#[derive(Debug)]
struct Repair {
    /// The interfaces on which it was asked for, each with the number of packets that it still lacks.
    interfaces: BTreeMap<u32, u32>,
    /// Number of packets that have been asked for upstream and have not come.
    asked: u32,
    /// When it was asked for upstream; `None` once anybody has repeated that, since then it is not known which request
    /// is answered.
    since: Option<Instant>,
    /// The repairer beside the tree that was asked, and whether its answer is still awaited.
    repairer: Option<(Repairer, bool)>,
    phase: Phase,
    deadline: Instant,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// No NCF has come: the NAK is sent again at the deadline.
    Pending { interval: Duration, left: u32 },
    /// An NCF has come: the state ends at the deadline.
    Confirmed { eliminates_until: Instant },
}

impl Repairs {
    /// Notes that `count` packets were asked for on an interface.
    pub(super) fn ask(
        &mut self,
        now: Instant,
        wanted: Wanted,
        (interface, count): (u32, u32),
        config: &Config,
    ) -> Decision {
        let is_new = !self.waiting.contains_key(&wanted);
        if is_new && self.waiting.len() >= config.repairs {
            return Decision::Refuse;
        }
        let repair = self.waiting.entry(wanted).or_insert_with(|| Repair::new(now));
        let lacked = repair.interfaces.entry(interface).or_default();
        // Asked for again: whatever comes is no longer the answer to the first request alone.
        let is_repeated = *lacked >= count;
        *lacked = count.max(*lacked);
        let eliminates = match repair.phase {
            Phase::Pending { .. } => true,
            Phase::Confirmed { eliminates_until } => now < eliminates_until,
        };
        repair.since = if is_new { Some(now) } else { repair.since.filter(|_| !is_repeated) };
        // Who is where the repairer is lacks it too, or is the repairer itself.
        let is_refused =
            repair.repairer.is_some_and(|(at, is_awaited)| is_awaited && at.interface == interface);
        if eliminates && count <= repair.asked && !is_refused {
            return Decision::Eliminate;
        }
        repair.asked = repair.interfaces.values().copied().max().unwrap_or_default();
        repair.repairer = repair.repairer.map(|(at, _)| (at, false));
        repair.phase = Phase::Pending { interval: config.retry, left: config.attempts.saturating_sub(1) };
        let asked = repair.asked;
        self.set_deadline(wanted, now + config.retry);
        Decision::Forward(asked)
    }

    /// Takes note that a packet that is to be asked for is asked of one of these repairers, and returns its address:
    /// the first that is behind another interface than those that lack it, and than the source. None of them, if one
    /// was asked for it before.
    pub(super) fn redirect(
        &mut self,
        wanted: Wanted,
        repairers: &[Repairer],
        upstream: u32,
    ) -> Option<IpAddr> {
        let repair = self.waiting.get_mut(&wanted).filter(|repair| repair.repairer.is_none())?;
        let is_free = |repairer: &&Repairer| {
            repairer.interface != upstream && !repair.interfaces.contains_key(&repairer.interface)
        };
        let repairer = *repairers.iter().find(is_free).filter(|_| matches!(wanted, Wanted::Packet(_)))?;
        // The time of its repairs says nothing about the source's.
        (repair.repairer, repair.since) = (Some((repairer, true)), None);
        Some(repairer.address)
    }

    /// Whether a packet is waited for that this repairer was asked for.
    pub(super) fn is_asked_of(&self, wanted: Wanted, repairer: IpAddr) -> bool {
        let asked = self.waiting.get(&wanted).and_then(|repair| repair.repairer);
        asked.is_some_and(|(asked, _)| asked.address == repairer)
    }

    /// Notes that an NCF has come from upstream for `count` packets; `None` if there is no room for more state, or else
    /// whether it was that of a NAK from here.
    pub(super) fn confirm(
        &mut self,
        now: Instant,
        (wanted, count): (Wanted, u32),
        config: &Config,
    ) -> Option<bool> {
        let known = self.waiting.contains_key(&wanted);
        if !known && self.waiting.len() >= config.repairs {
            return None;
        }
        let elimination = self.answer_time.limit().unwrap_or(config.elimination).min(config.repair_timeout);
        let repair = self.waiting.entry(wanted).or_insert_with(|| Repair::new(now));
        if known && count < repair.asked {
            // The NCF of a NAK before, or of another's: what more was asked for here is not confirmed.
            return Some(true);
        }
        repair.asked = count;
        repair.phase = Phase::Confirmed { eliminates_until: now + elimination };
        self.set_deadline(wanted, now + config.repair_timeout);
        Some(known)
    }

    /// Takes the interfaces that a repair is for; `None` if nobody here has asked.
    pub(super) fn repaired(&mut self, now: Instant, wanted: Wanted) -> Option<Vec<u32>> {
        let repair = self.waiting.get_mut(&wanted)?;
        if let Some(since) = repair.since.take() {
            self.answer_time.sample(now.since(since));
        }
        let interfaces: Vec<u32> = repair.interfaces.keys().copied().collect();
        repair.asked = repair.asked.saturating_sub(1);
        repair.interfaces.values_mut().for_each(|lacked| *lacked = lacked.saturating_sub(1));
        repair.interfaces.retain(|_, lacked| *lacked > 0);
        if repair.interfaces.is_empty() && (repair.asked == 0 || matches!(wanted, Wanted::Packet(_))) {
            self.remove(wanted);
        }
        (!interfaces.is_empty()).then_some(interfaces)
    }

    /// Takes what has fallen due.
    pub(super) fn due(&mut self, now: Instant) -> Due {
        let mut due = Due::default();
        while let Some(&(at, wanted)) = self.deadlines.first().filter(|&&(at, _)| at <= now) {
            let Some(repair) = self.waiting.get_mut(&wanted) else {
                self.deadlines.remove(&(at, wanted));
                continue;
            };
            if let (Phase::Pending { interval, .. }, Some((at, is_awaited @ true))) =
                (repair.phase, &mut repair.repairer)
            {
                *is_awaited = false;
                due.silent.push(at.address);
                due.again.push((wanted, repair.asked));
                self.set_deadline(wanted, now + interval);
                continue;
            }
            match repair.phase {
                Phase::Pending { interval, left: left @ 1.. } => {
                    let interval = interval + interval;
                    repair.phase = Phase::Pending { interval, left: left - 1 };
                    repair.since = None;
                    due.again.push((wanted, repair.asked));
                    self.set_deadline(wanted, now + interval);
                }
                Phase::Pending { .. } => {
                    due.unconfirmed += 1;
                    self.remove(wanted);
                }
                Phase::Confirmed { .. } => {
                    // What was only heard of was repaired elsewhere.
                    due.unrepaired += u64::from(!repair.interfaces.is_empty());
                    self.remove(wanted);
                }
            }
        }
        due
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|&(at, _)| at)
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    fn set_deadline(&mut self, wanted: Wanted, at: Instant) {
        if let Some(repair) = self.waiting.get_mut(&wanted) {
            self.deadlines.remove(&(repair.deadline, wanted));
            repair.deadline = at;
            self.deadlines.insert((at, wanted));
        }
    }

    fn remove(&mut self, wanted: Wanted) {
        if let Some(repair) = self.waiting.remove(&wanted) {
            self.deadlines.remove(&(repair.deadline, wanted));
        }
    }
}

impl Repair {
    fn new(now: Instant) -> Self {
        let phase = Phase::Confirmed { eliminates_until: now };
        Self { interfaces: BTreeMap::new(), asked: 0, since: None, repairer: None, phase, deadline: now }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: Config = Config {
        retry: Duration::from_millis(50),
        attempts: 3,
        elimination: Duration::from_millis(200),
        repair_timeout: Duration::from_millis(1000),
        sessions: 1,
        repairs: 4,
        store: 0,
        redirect: false,
        hop_limit: 255,
    };
    const SEVEN: Wanted = Wanted::Packet(7);
    const GROUP: Wanted = Wanted::Parity(32);

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn the_second_nak_of_a_loss_is_eliminated_and_its_interface_gets_the_repair_too() {
        let mut repairs = Repairs::default();
        assert_eq!(repairs.ask(at(0), SEVEN, (1, 1), &CONFIG), Decision::Forward(1));
        assert_eq!(repairs.ask(at(1), SEVEN, (2, 1), &CONFIG), Decision::Eliminate);
        assert_eq!(repairs.confirm(at(2), (SEVEN, 1), &CONFIG), Some(true));
        assert_eq!(repairs.ask(at(3), SEVEN, (1, 1), &CONFIG), Decision::Eliminate);
        assert_eq!(repairs.repaired(at(0), SEVEN), Some(vec![1, 2]));
        assert_eq!((repairs.len(), repairs.deadline()), (0, None));
        assert_eq!(repairs.repaired(at(0), SEVEN), None, "a second one is nobody's");
    }

    #[test]
    fn a_nak_is_repeated_until_it_is_confirmed_and_given_up_in_the_end() {
        let mut repairs = Repairs::default();
        repairs.ask(at(0), SEVEN, (1, 1), &CONFIG);
        assert_eq!(repairs.due(at(49)), Due::default());
        assert_eq!(repairs.due(at(50)).again, [(SEVEN, 1)]);
        assert_eq!(repairs.due(at(149)), Due::default());
        assert_eq!(repairs.due(at(150)).again, [(SEVEN, 1)]);
        assert_eq!(repairs.due(at(350)), Due { unconfirmed: 1, ..Due::default() });
        assert_eq!((repairs.len(), repairs.deadline()), (0, None));
        repairs.ask(at(400), SEVEN, (1, 1), &CONFIG);
        repairs.confirm(at(410), (SEVEN, 1), &CONFIG);
        assert_eq!(repairs.due(at(1409)), Due::default(), "a confirmed one is not repeated");
        assert_eq!(repairs.due(at(1410)), Due { unrepaired: 1, ..Due::default() });
    }

    #[test]
    fn a_nak_after_the_elimination_interval_is_forwarded_again() {
        let mut repairs = Repairs::default();
        repairs.ask(at(0), SEVEN, (1, 1), &CONFIG);
        repairs.confirm(at(10), (SEVEN, 1), &CONFIG);
        assert_eq!(repairs.ask(at(209), SEVEN, (1, 1), &CONFIG), Decision::Eliminate);
        assert_eq!(repairs.ask(at(210), SEVEN, (1, 1), &CONFIG), Decision::Forward(1));
        assert_eq!(repairs.due(at(260)).again, [(SEVEN, 1)]);
    }

    #[test]
    fn once_the_time_of_repairs_is_known_a_nak_after_that_is_forwarded() {
        let mut repairs = Repairs::default();
        repairs.ask(at(0), SEVEN, (1, 1), &CONFIG);
        repairs.confirm(at(1), (SEVEN, 1), &CONFIG);
        repairs.repaired(at(15), SEVEN);
        repairs.ask(at(100), SEVEN, (1, 1), &CONFIG);
        repairs.confirm(at(101), (SEVEN, 1), &CONFIG);
        assert_eq!(repairs.ask(at(135), SEVEN, (1, 1), &CONFIG), Decision::Eliminate);
        assert_eq!(repairs.ask(at(136), SEVEN, (1, 1), &CONFIG), Decision::Forward(1));
        // Its repair answers either request: its time is not known.
        repairs.confirm(at(137), (SEVEN, 1), &CONFIG);
        repairs.repaired(at(10_000), SEVEN);
        assert_eq!(repairs.answer_time.limit(), Some(Duration::from_millis(35)));
    }

    #[test]
    fn the_time_of_a_repair_that_was_asked_for_again_does_not_count() {
        let mut repairs = Repairs::default();
        repairs.ask(at(0), SEVEN, (1, 1), &CONFIG);
        repairs.confirm(at(1), (SEVEN, 1), &CONFIG);
        repairs.ask(at(2), SEVEN, (2, 1), &CONFIG);
        repairs.ask(at(150), SEVEN, (1, 1), &CONFIG);
        repairs.repaired(at(190), SEVEN);
        assert_eq!(
            repairs.answer_time.limit(),
            None,
            "else a repair that was lost would have others waited for longer"
        );
        repairs.ask(at(300), SEVEN, (1, 1), &CONFIG);
        repairs.ask(at(301), SEVEN, (2, 1), &CONFIG);
        repairs.repaired(at(310), SEVEN);
        assert_eq!(
            repairs.answer_time.limit(),
            Some(Duration::from_millis(30)),
            "another branch is no repetition"
        );
    }

    #[test]
    fn a_confirmation_that_was_heard_first_anticipates_the_nak() {
        let mut repairs = Repairs::default();
        assert_eq!(repairs.confirm(at(0), (SEVEN, 1), &CONFIG), Some(false));
        assert_eq!(repairs.ask(at(100), SEVEN, (1, 1), &CONFIG), Decision::Eliminate);
        assert_eq!(repairs.repaired(at(0), SEVEN), Some(vec![1]));
        repairs.confirm(at(200), (SEVEN, 1), &CONFIG);
        assert_eq!(repairs.repaired(at(0), SEVEN), None, "nobody has asked here");
        assert_eq!(
            repairs.ask(at(201), SEVEN, (1, 1), &CONFIG),
            Decision::Forward(1),
            "the repair has gone by"
        );
    }

    #[test]
    fn parity_is_counted_on_each_interface() {
        let mut repairs = Repairs::default();
        assert_eq!(repairs.ask(at(0), GROUP, (1, 1), &CONFIG), Decision::Forward(1));
        assert_eq!(
            repairs.ask(at(0), GROUP, (2, 3), &CONFIG),
            Decision::Forward(3),
            "more than was asked for"
        );
        assert_eq!(repairs.ask(at(0), GROUP, (3, 2), &CONFIG), Decision::Eliminate);
        repairs.confirm(at(1), (GROUP, 1), &CONFIG);
        assert_eq!(
            repairs.due(at(50)).again,
            [(GROUP, 3)],
            "the NCF of the first NAK is not that of the second"
        );
        repairs.confirm(at(51), (GROUP, 3), &CONFIG);
        assert_eq!(repairs.repaired(at(0), GROUP), Some(vec![1, 2, 3]));
        assert_eq!(repairs.repaired(at(0), GROUP), Some(vec![2, 3]));
        assert_eq!(repairs.ask(at(60), GROUP, (1, 1), &CONFIG), Decision::Eliminate, "one is still to come");
        assert_eq!(repairs.repaired(at(0), GROUP), Some(vec![1, 2]));
        assert_eq!((repairs.repaired(at(0), GROUP), repairs.len()), (None, 0));
    }

    #[test]
    fn a_parity_repair_that_is_lost_upstream_is_asked_for_with_what_all_lack() {
        let mut repairs = Repairs::default();
        repairs.ask(at(0), GROUP, (1, 3), &CONFIG);
        repairs.confirm(at(1), (GROUP, 3), &CONFIG);
        repairs.repaired(at(0), GROUP);
        assert_eq!(repairs.ask(at(300), GROUP, (2, 1), &CONFIG), Decision::Forward(2));
    }

    #[test]
    fn state_is_bounded_and_what_is_known_goes_on() {
        let mut repairs = Repairs::default();
        for n in 0..4 {
            assert_eq!(repairs.ask(at(0), Wanted::Packet(n), (1, 1), &CONFIG), Decision::Forward(1));
        }
        assert_eq!(repairs.ask(at(0), SEVEN, (1, 1), &CONFIG), Decision::Refuse);
        assert_eq!(repairs.confirm(at(0), (SEVEN, 1), &CONFIG), None);
        assert_eq!(repairs.ask(at(0), Wanted::Packet(2), (2, 1), &CONFIG), Decision::Eliminate);
        assert_eq!(repairs.repaired(at(0), Wanted::Packet(2)), Some(vec![1, 2]));
        assert_eq!(repairs.ask(at(0), SEVEN, (1, 1), &CONFIG), Decision::Forward(1));
    }
}
