//! Two senders that do not hear each other, and a receiver between them that hears both: held against an exact Markov
//! chain of the three, with and without RTS and CTS.

use std::collections::BTreeMap;

use crate::common::*;
use hopcast_core::{Buffer, Bytes, Duration, Rate};
use hopcast_link::{Csma, Direction, Link, Loss, Mac, MediumConfig, Queue, QueueLimit, Rts, Station};

/// All times, in slots, so that the chain goes from slot to slot.
const SIFS: u32 = 1;
const DIFS: u32 = 2;
const ACK: u32 = 2;
const CTS: u32 = 2;
/// The windows from the first to the largest, in slots.
const WINDOWS: [u32; 2] = [8, 16];

const SLOT: Duration = Duration::from_micros(20);

/// A sender at the beginning of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sender {
    /// It waits `wait` slots, and counts `slots` of back-off after them.
    Waits { wait: u32, slots: u32, stage: usize },
    /// It hears the receiver, or knows that the medium is reserved.
    Frozen { slots: u32, stage: usize },
    /// It is in slot `at` of its exchange. `clear`: nothing has disturbed what it sent. `known`: the other sender has
    /// heard the CTS.
    Exchanges { at: u32, clear: bool, known: bool, stage: usize },
}

use Sender::{Exchanges, Frozen, Waits};

/// The parts of an exchange: the slots of a request, 0 for none, and those of the data.
#[derive(Clone, Copy)]
struct Script {
    rts: u32,
    data: u32,
}

impl Script {
    /// When the CTS is over.
    fn granted(self) -> u32 {
        self.rts + SIFS + CTS
    }

    fn data_begins(self) -> u32 {
        if self.rts > 0 { self.granted() + SIFS } else { 0 }
    }

    fn end(self) -> u32 {
        self.data_begins() + self.data + SIFS + ACK
    }

    /// Whether the sender is on the air.
    fn sends(self, sender: Sender) -> bool {
        let Exchanges { at, .. } = sender else { return false };
        at < self.rts || (self.data_begins()..self.data_begins() + self.data).contains(&at)
    }

    /// Whether the receiver sends the CTS, or anything, to the sender.
    fn answers(self, sender: Sender) -> (bool, bool) {
        let Exchanges { at, clear, .. } = sender else { return (false, false) };
        let cts = self.rts > 0 && (self.rts + SIFS..self.granted()).contains(&at);
        (clear && cts, clear && (cts || at >= self.data_begins() + self.data + SIFS))
    }

    /// Whether the other sender waits for the end of this one's exchange.
    fn silences(self, sender: Sender) -> bool {
        let reserved = matches!(sender, Exchanges { at, known: true, clear: true, .. }
            if self.rts > 0 && at >= self.granted());
        self.answers(sender).1 || reserved
    }

    /// A sender in this slot, and what it is at the end of the slot before it draws: `other` is the other sender.
    fn slot(self, [own, other]: [Sender; 2]) -> Sender {
        match own {
            Waits { slots, stage, .. } | Frozen { slots, stage } if self.silences(other) => {
                Frozen { slots, stage }
            }
            Waits { wait: 0, slots, stage } => Waits { wait: 0, slots: slots - 1, stage },
            Waits { wait, slots, stage } => Waits { wait: wait - 1, slots, stage },
            Frozen { .. } => own,
            Exchanges { at, clear, known, stage } => {
                let disturbed = self.sends(own) && (self.sends(other) || self.answers(other).1);
                let deaf = self.answers(own).0 && self.sends(other);
                Exchanges { at: at + 1, clear: clear && !disturbed, known: known && !deaf, stage }
            }
        }
    }

    /// The state after the beginning of a slot: a sender that has waited begins, and one that need be silent no longer
    /// waits.
    fn begin(self, [own, other]: [Sender; 2]) -> Sender {
        match own {
            Waits { wait: 0, slots: 0, stage } => Exchanges { at: 0, clear: true, known: true, stage },
            Frozen { slots, stage } if !self.silences(other) => Waits { wait: DIFS, slots, stage },
            _ => own,
        }
    }

    /// Whether an exchange is over, and with what success.
    fn over(self, sender: Sender) -> Option<(bool, usize)> {
        let Exchanges { at, clear, stage, .. } = sender else { return None };
        let unanswered = self.rts > 0 && at == self.granted() && !clear;
        (at == self.end() || unanswered).then_some((clear, stage))
    }

    /// The senders one slot later, each with its probability, and the number of frames that have arrived.
    fn step(self, senders: [Sender; 2]) -> (Vec<([Sender; 2], f64)>, f64) {
        // A CTS or an acknowledgement that begins in this slot does not keep anybody from beginning, too.
        let [a, c] = senders;
        let begun = [self.begin([a, c]), self.begin([c, a])];
        let [a, c] = begun;
        let ended = [self.slot([a, c]), self.slot([c, a])];
        let arrived = ended.iter().filter(|sender| matches!(self.over(**sender), Some((true, _)))).count();
        let choices = ended.map(|sender| match self.over(sender) {
            None => vec![(sender, 1.0)],
            Some((success, stage)) => {
                let stage = if success { 0 } else { (stage + 1).min(WINDOWS.len() - 1) };
                let window = WINDOWS[stage];
                (0..window)
                    .map(|slots| (Waits { wait: DIFS, slots, stage }, 1.0 / f64::from(window)))
                    .collect()
            }
        });
        let [of_a, of_c] = &choices;
        let pairs = of_a.iter().flat_map(|(a, p)| of_c.iter().map(move |(c, q)| ([*a, *c], p * q)));
        (pairs.collect(), arrived as f64)
    }

    /// Frames that arrive in each slot, in the long run: the chain's distribution is followed slot by slot, and its
    /// mean taken once it has settled.
    fn frames_per_slot(self) -> f64 {
        let start = [Waits { wait: DIFS, slots: 3, stage: 0 }, Waits { wait: DIFS, slots: 5, stage: 0 }];
        let mut numbers = BTreeMap::from([(start, 0)]);
        let (mut states, mut edges) = (vec![start], Vec::new());
        let mut next = 0;
        while next < states.len() {
            let (ways, arrived) = self.step(states[next]);
            let numbered: Vec<(usize, f64)> = ways
                .into_iter()
                .map(|(state, share)| {
                    let number = *numbers.entry(state).or_insert_with(|| {
                        states.push(state);
                        states.len() - 1
                    });
                    (number, share)
                })
                .collect();
            edges.push((numbered, arrived));
            next += 1;
        }
        let mut now = vec![0.0; states.len()];
        now[0] = 1.0;
        let (settling, counted) = (2_000, 2_000);
        let mut frames = 0.0;
        for slot in 0..settling + counted {
            let mut later = vec![0.0; states.len()];
            for (probability, (ways, arrived)) in now.iter().zip(&edges).filter(|(p, _)| **p > 0.0) {
                ways.iter().for_each(|(to, share)| later[*to] += probability * share);
                if slot >= settling {
                    frames += probability * arrived;
                }
            }
            now = later;
        }
        frames / f64::from(counted)
    }
}

/// The same, simulated.
fn simulated(script: Script, hidden: bool, seconds: u64) -> f64 {
    // 1,000 bytes at 100 Mbit/s are four slots.
    let rts = Rts { threshold: Bytes::new(0), rts: SLOT * u64::from(script.rts), cts: SLOT * u64::from(CTS) };
    let csma = Csma {
        slot: SLOT,
        sifs: SLOT * u64::from(SIFS),
        difs: SLOT * u64::from(DIFS),
        cw_min: WINDOWS[0] - 1,
        cw_max: WINDOWS[1] - 1,
        retries: 1_000_000,
        overhead: SLOT * u64::from(script.data - 4),
        ack: SLOT * u64::from(ACK),
        channel: Loss::None,
        rts: (script.rts > 0).then_some(rts),
    };
    let queue = Queue::DropTail { limit: QueueLimit::Packets(1_000_000) };
    let mut hears = std::collections::BTreeSet::from([(0, 2), (2, 0), (1, 2), (2, 1)]);
    if !hidden {
        hears.extend([(0, 1), (1, 0)]);
    }
    let config = MediumConfig {
        direction: Direction { rate: Some(Rate::from_mbit(100)), queue, ..Direction::default() },
        stations: (0..3).map(|i| Station { address: [2, 0, 0, 0, 0, i], ..Station::default() }).collect(),
        mac: Mac::Csma(csma),
        hears: Some(hears),
        ..MediumConfig::default()
    };
    let mut link = medium(config, 1);
    let mut frame = Buffer::zeroed(1_000);
    frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, 2]);
    let slots = seconds * 1_000_000 / 20;
    for from in 0..2 {
        (0..slots / u64::from(script.end())).for_each(|_| link.offer(millis(0), from, frame.clone()));
    }
    let end = millis(seconds * 1_000);
    wake_until(&mut link, end, &mut Vec::new());
    assert!((0..2).all(|from| link.backlog(end, from).frames > 0), "not saturated");
    let delivered: u64 = (0..2).map(|from| link.counters(end, from, 2).delivered_packets).sum();
    delivered as f64 / slots as f64
}

#[test]
fn hidden_senders_get_across_what_an_exact_chain_says() {
    for (rts, data) in [(0, 6), (0, 9), (2, 9), (2, 20), (3, 20)] {
        let script = Script { rts, data };
        let (found, expected) = (simulated(script, true, 60), script.frames_per_slot());
        let off = found / expected - 1.0;
        println!(
            "RTS {rts}, data {data}: {found:.5} frames a slot, the chain {expected:.5}, {:+.2} %",
            off * 100.0
        );
        // At least some 35,000 frames; five standard errors would be 2.7 % if each came on its own.
        assert!(off.abs() < 0.02, "RTS {rts}, data {data}: {found} for {expected}");
    }
}

#[test]
fn rts_saves_hidden_senders_from_most_of_their_collisions() {
    let (basic, asked) = (Script { rts: 0, data: 20 }, Script { rts: 2, data: 20 });
    assert!(simulated(asked, true, 10) > 1.5 * simulated(basic, true, 10));
    // Who hear each other need it less, and pay for it.
    assert!(simulated(asked, false, 10) < 1.1 * simulated(basic, false, 10));
}
