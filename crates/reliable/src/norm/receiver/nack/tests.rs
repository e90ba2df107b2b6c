//! When a receiver asks and for what, packet by packet.

use std::net::SocketAddr;

use hopcast_core::{Duration, Instant, Seed};

use super::*;
use crate::norm::ReceiverConfig;
use crate::norm::receiver::{Counts, Delivered, Heard, Receiver};
use crate::norm::wire::{
    Command, Data, Fec, Flags, Fti, Header, Message, NodeId, PayloadId, Position, RepairFlags, RepairForm,
    StreamHeader, Timestamp, quantise,
};

const SENDER: NodeId = NodeId(1);
const OBJECT: u16 = 7;
/// Source symbols of a block, of which each has as much parity.
const SOURCE: u16 = 4;
const SEGMENT: u16 = 100;

/// A receiver of one object, and what it does.
struct Asking {
    receiver: Receiver,
    header: Header,
    flags: Flags,
    blocks: u32,
    sequence: u16,
    now: Instant,
    nacks: Vec<(Duration, Nack)>,
    delivered: Vec<Delivered>,
}

impl Asking {
    /// A receiver whose sender says that a round trip takes `grtt`, and that back-offs take this many of them.
    fn new(config: ReceiverConfig, seed: u64, grtt: Duration, backoff: u8, blocks: u32) -> Self {
        let random = Seed::new(seed, 0).stream(&["member"], 2);
        Self {
            receiver: Receiver::new(config, NodeId(2), random),
            header: Header { instance: 1, grtt: quantise::from_rtt(grtt), backoff, group_size: 0 },
            flags: Flags::default(),
            blocks,
            sequence: 0,
            now: Instant::ZERO,
            nacks: Vec::new(),
            delivered: Vec::new(),
        }
    }

    fn grtt(&self) -> Duration {
        quantise::rtt(self.header.grtt)
    }

    fn heard(&mut self, body: Body<'_>) {
        let message = Message { sequence: self.sequence, source: SENDER, body };
        self.sequence += 1;
        let from = SocketAddr::from(([10, 0, 0, 1], 6003));
        let heard = Heard { from, marked: false, bytes: 200, message: &message };
        let mut out = Output::default();
        self.receiver.heard(self.now, &heard, &mut out);
        self.wake(out);
    }

    /// Wakes the receiver, as a session does after each packet too.
    fn wake(&mut self, mut out: Output) {
        self.receiver.wake(self.now, &mut out);
        for feedback in out.feedback {
            if let Body::Nack(nack) = feedback.body {
                self.nacks.push((self.now.since(Instant::ZERO), nack));
            }
        }
        self.delivered.extend(out.delivered.into_iter().map(|delivery| delivery.what));
        // The contract of a machine.
        let deadline = self.receiver.deadline();
        assert!(deadline.is_none_or(|at| at > self.now), "{deadline:?} at {:?}", self.now);
    }

    fn run(&mut self, until: Duration) {
        let until = Instant::ZERO + until;
        while let Some(at) = self.receiver.deadline().filter(|&at| at <= until) {
            self.now = at;
            self.wake(Output::default());
        }
        self.now = until;
    }

    fn symbol(&mut self, block: u32, symbol: u16, flags: Flags) {
        let fti = Fti {
            fec: Fec::ReedSolomon8,
            object_size: u64::from(self.blocks) * u64::from(SOURCE * SEGMENT),
            segment: SEGMENT,
            source: SOURCE,
            parity: SOURCE,
            field: 0,
            group: 0,
            instance: 0,
        };
        let payload = &mut [7; SEGMENT as usize];
        if self.flags.contains(Flags::STREAM) {
            let length = SEGMENT - StreamHeader::LEN as u16;
            let offset = (block * u32::from(SOURCE) + u32::from(symbol)) * u32::from(length);
            StreamHeader { length, message_start: 0, offset }.write(payload);
        }
        self.heard(Body::Data(Data {
            header: self.header,
            flags: Flags(self.flags.0 | flags.0),
            fec: Fec::ReedSolomon8,
            object: OBJECT,
            id: PayloadId { block, symbol, block_len: 0 },
            fti: Some(fti),
            payload,
        }));
    }

    /// The source symbols of these blocks come, but those that are lost.
    fn blocks(&mut self, blocks: std::ops::Range<u32>, is_lost: impl Fn(u32, u16) -> bool) {
        for block in blocks {
            for symbol in (0..SOURCE).filter(|&symbol| !is_lost(block, symbol)) {
                self.symbol(block, symbol, Flags::default());
            }
        }
    }

    /// The sender is at the end of the object.
    fn flush(&mut self) {
        let last = position(self.blocks - 1, SOURCE - 1);
        self.heard(Body::Command(self.header, Command::Flush { last, acknowledge: Vec::new() }));
    }

    fn counts(&self) -> Counts {
        self.receiver.counts
    }
}

fn position(block: u32, symbol: u16) -> Position {
    Position { fec: Fec::ReedSolomon8, object: OBJECT, id: PayloadId { block, symbol, block_len: 0 } }
}

/// The blocks of which a NACK asks for symbols.
fn asked_for(nack: &Nack) -> Vec<u32> {
    let items = nack.repairs.iter().flat_map(|repair| repair.items.chunks(2));
    items.map(|range| range[0].id.block).collect()
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn a_silent_receiver_waits_a_tenth_of_a_second_for_others_in_each_of_three_rounds() {
    for is_repaired in [false, true] {
        let silent = ReceiverConfig { silent: true, ..ReceiverConfig::default() };
        // The round trip of a sender that nobody has answered: the rounds would be over in microseconds.
        let mut asking = Asking::new(silent, 1, Duration::from_micros(1), 0, 2);
        asking.blocks(0..2, |block, symbol| (block, symbol) == (0, 1));
        asking.flush();
        asking.run(ms(299));
        assert!(asking.delivered.is_empty(), "{:?}", asking.delivered);
        if is_repaired {
            asking.symbol(0, 1, Flags::REPAIR);
            assert!(matches!(asking.delivered[..], [Delivered::Object { .. }]), "{:?}", asking.delivered);
        } else {
            asking.run(ms(300));
            assert_eq!(asking.delivered, [Delivered::Missing]);
        }
        assert!(asking.nacks.is_empty());
    }
}

#[test]
fn nothing_is_asked_for_after_the_end_of_transmission() {
    // A sender answers no NACK after it (RFC 5740, section 4.2.3). Something is found missing after it, or before it.
    for (backoff, before, seed) in (0..10).flat_map(|seed| [(0, 1, seed), (4, 2, seed)]) {
        let mut asking = Asking::new(ReceiverConfig::default(), seed, ms(100), backoff, 2);
        let is_lost = |block, symbol| (block, symbol) == (0, 1);
        asking.blocks(0..before, is_lost);
        asking.heard(Body::Command(asking.header, Command::EndOfTransmission));
        asking.blocks(before..2, is_lost);
        asking.flush();
        asking.run(ms(5_000));
        assert!(asking.nacks.is_empty(), "{:?}", asking.nacks);
        assert_eq!(asking.delivered, [Delivered::Missing]);
    }
}

#[test]
fn in_a_small_group_a_back_off_ends_whatever_is_found_missing_meanwhile() {
    for seed in 0..5 {
        let mut asking = Asking::new(ReceiverConfig::default(), seed, ms(100), 4, 40);
        for block in 0..20 {
            asking.blocks(block..block + 1, |_, symbol| symbol == 1);
            asking.run(ms(u64::from(block + 1) * 30));
        }
        let (at, nack) = &asking.nacks[0];
        assert!(*at <= ms(30) + asking.grtt() * 4, "seed {seed}: {at}");
        assert!(asked_for(nack).len() > 1, "seed {seed}: {nack:?}");
    }
}

#[test]
fn a_nack_has_a_thousand_bytes_of_requests_and_the_rest_follows_half_a_round_trip_later() {
    let mut soonest = Duration::MAX;
    for seed in 0..40 {
        let mut asking = Asking::new(ReceiverConfig::default(), seed, ms(100), 1, 101);
        asking.blocks(0..101, |block, symbol| block < 100 && symbol == 1);
        // Two back-offs of a round trip at most; the answer to the first NACK is overdue after three.
        asking.run(ms(290));
        let [(first, one), (second, other)] = &asking.nacks[..] else { panic!("{:?}", asking.nacks) };
        for nack in [one, other] {
            let bytes: usize = nack.repairs.iter().map(Repair::len).sum();
            assert!(bytes <= 1000, "{bytes} bytes of requests");
        }
        let mut blocks = asked_for(one);
        blocks.extend(asked_for(other));
        assert!(blocks.into_iter().eq(0..100), "in the order in which they were sent");
        let pause = second.saturating_sub(*first);
        assert!(pause >= asking.grtt() / 2, "seed {seed}: {pause}");
        soonest = soonest.min(pause);
    }
    // The shortest back-offs would have ended before.
    assert_eq!(soonest, quantise::rtt(quantise::from_rtt(ms(100))) / 2);
}

#[test]
fn what_shows_behind_as_much_as_is_given_up_at_a_time_is_looked_at_later() {
    // More blocks than are looked at in a round lack something; all of those are given up at once.
    let silent = ReceiverConfig { silent: true, ..ReceiverConfig::default() };
    let mut asking = Asking::new(silent, 1, Duration::from_micros(1), 0, 600);
    asking.flags = Flags::STREAM;
    asking.blocks(0..600, |block, symbol| block < 599 && symbol == 1);
    asking.run(ms(300));
    let given_up = asking.counts().given_up;
    assert!((500..599).contains(&given_up), "{given_up} given up");
    // The rest is waited for three times too.
    asking.run(ms(600));
    assert_eq!(asking.counts().given_up, given_up);
    asking.run(ms(602));
    assert_eq!(asking.counts().given_up, 599);
}

#[test]
fn only_a_request_that_others_made_unnecessary_counts_as_suppressed() {
    for others_ask in [false, true] {
        let mut asking = Asking::new(ReceiverConfig::default(), 1, ms(100), 4, 4);
        asking.blocks(0..2, |block, symbol| (block, symbol) == (0, 1));
        if others_ask {
            let items = vec![position(0, 2), position(0, 2)];
            let repair = Repair { form: RepairForm::Ranges, flags: RepairFlags::SEGMENT, items };
            let (instance, grtt_response) = (1, Timestamp::default());
            let nack = Nack { sender: SENDER, instance, grtt_response, cc: None, repairs: vec![repair] };
            asking.receiver.nack(asking.now, &nack);
        } else {
            // It was late, and not lost.
            asking.symbol(0, 1, Flags::default());
        }
        asking.run(ms(450));
        assert!(asking.nacks.is_empty(), "{:?}", asking.nacks);
        assert_eq!(asking.counts().nacks_suppressed, u64::from(others_ask));
        // What is late in the next round is so whatever others asked for in this one.
        asking.symbol(0, 1, Flags::default());
        asking.blocks(2..4, |block, symbol| (block, symbol) == (2, 1));
        asking.symbol(2, 1, Flags::default());
        asking.run(ms(900));
        assert!(asking.nacks.is_empty(), "{:?}", asking.nacks);
        assert_eq!(asking.counts().nacks_suppressed, u64::from(others_ask));
    }
}

#[test]
fn what_there_was_no_room_for_is_asked_for_as_soon_as_a_block_is_complete() {
    // Two blocks of three symbols are 2520 bytes; another symbol takes 164, which there is room for once.
    let small = ReceiverConfig { buffer: 2_600, ..ReceiverConfig::default() };
    let mut asking = Asking::new(small, 1, Duration::from_secs(1), 0, 2);
    asking.blocks(0..2, |_, symbol| symbol == 1);
    asking.flush();
    // The answer is overdue after two round trips.
    asking.run(ms(500));
    asking.symbol(0, 1, Flags::REPAIR);
    let asked: Vec<_> = asking.nacks.iter().map(|(at, nack)| (*at, asked_for(nack))).collect();
    assert_eq!(asked, [(ms(0), vec![0]), (ms(500), vec![1])]);
}

#[test]
fn a_sender_whose_clock_is_stepped_is_answered_by_its_last_probe() {
    // libnorm's clock is that of the system. Stepped back, and past the end of its seconds.
    let mut asking = Asking::new(ReceiverConfig::default(), 1, Duration::from_secs(1), 0, 10);
    asking.blocks(0..1, |_, symbol| symbol == 1);
    for (step, seconds) in [2_000_000_000, 1_999_996_400, 3, u32::MAX, 0].into_iter().enumerate() {
        let (sequence, sent) = (step as u16 + 1, Timestamp { seconds, micros: 990_000 });
        let nodes = Vec::new();
        let probe = Command::CongestionControl { sequence, sent, rate: None, syn: false, nodes };
        asking.heard(Body::Command(asking.header, probe));
        asking.run(ms(30 * (step as u64 + 1)));
        let block = step as u32 + 1;
        asking.blocks(block..block + 1, |_, symbol| symbol == 1);
        let response = asking.nacks.last().map(|(_, nack)| nack.grtt_response);
        assert_eq!(response, Some(Timestamp { seconds: seconds.wrapping_add(1), micros: 20_000 }));
    }
    assert_eq!(asking.nacks.len(), 5);
}
