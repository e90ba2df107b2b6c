//! Members that lie, forge, flood, or never have enough.

use std::sync::Arc;

use hopcast_core::{Duration, Instant, Item, Machine, Port};
use proptest::prelude::*;

use super::net::{Link, Net, contents, nack, position};
use super::transfers::{bytes, grant, lossy, objects, sender, write};
use crate::norm::wire::{
    Body, CcFeedback, CcFlags, Command, Data, Fec, Flags, Fti, Header, Info, Message, Nack, NodeId,
    PayloadId, Position, Repair, RepairFlags, RepairForm, Timestamp,
};
use crate::norm::{ReceiverConfig, SenderConfig, Session};
use crate::testing;

const FILE: usize = 400_000;

fn send(net: &mut Net) -> Vec<u8> {
    let file = contents(FILE, 1);
    let now = net.now;
    assert!(net.members[0].session.send(now, Arc::from(&file[..]), None, true).is_some());
    file
}

/// Seconds until the two receivers of a file have it, while `disturb` is done each millisecond.
fn run(seed: u64, config: SenderConfig, mut disturb: impl FnMut(&mut Net, u64)) -> f64 {
    let mut net =
        Net::star(seed, config, &ReceiverConfig::default(), &[Link::default(), lossy(0.05), lossy(0.05)]);
    let file = send(&mut net);
    let all = |net: &Net| (1..=2).all(|member| objects(net, member).len() == 1);
    for step in 0..60_000 {
        if net.run(Duration::from_millis(step), all) {
            break;
        }
        disturb(&mut net, step);
    }
    assert!((1..=2).all(|member| objects(&net, member) == [file.clone()]), "at {:?}", net.now);
    net.now.since(Instant::ZERO).as_secs_f64()
}

#[test]
fn a_flood_of_forged_requests_slows_the_others_by_a_factor_and_no_more() {
    let quiet = run(1, sender(), |_, _| {});
    let everything =
        |flags, first, last| Repair { form: RepairForm::Ranges, flags, items: vec![first, last] };
    let flooded = run(1, sender(), |net, step| {
        // Everything that there can be, from ever new receivers, ten times a millisecond.
        for number in 0..10 {
            let objects = everything(RepairFlags::OBJECT, position(0, 0, 0), position(u16::MAX, 0, 0));
            let blocks = everything(RepairFlags::BLOCK, position(1, 0, 0), position(1, 0xFF_FFFF, 0));
            let symbols = everything(RepairFlags::SEGMENT, position(1, 0, 0), position(1, 0, 255));
            let forged =
                nack(100 + 10 * step as u32 + number, Timestamp::default(), vec![objects, blocks, symbols]);
            net.forge(0, 9, &forged);
        }
    });
    assert!(flooded < 4.0 * quiet, "{flooded} s in place of {quiet}");
}

#[test]
fn a_forged_claim_of_objects_that_nobody_has_is_followed_by_a_request_a_second() {
    let links = [Link::default(), Link::default()];
    let mut net = Net::star(1, sender(), &ReceiverConfig::default(), &links);
    // A round trip of a microsecond, and one object after the other that is missing.
    let header = Header { instance: 1, grtt: 0, backoff: 0, group_size: 0 };
    for object in [1, 400] {
        let command = Command::Flush { last: position(object, 3, 0), acknowledge: Vec::new() };
        let message = Message { sequence: object, source: NodeId(7), body: Body::Command(header, command) };
        net.forge(1, 8, &message.emit());
    }
    net.run(Duration::from_secs(10), |_| false);
    let sent = net.counter(1, "nacks_sent");
    assert!((10..=20).contains(&sent), "{sent} requests");
}

#[test]
fn a_round_trip_that_lies_leaves_the_others_unharmed() {
    let quiet = run(2, sender(), |_, _| {});
    let lied = run(2, sender(), |net, step| {
        let ask =
            Repair { form: RepairForm::Items, flags: RepairFlags::SEGMENT, items: vec![position(1, 0, 70)] };
        let long_ago = Timestamp { seconds: 1, micros: step as u32 % 7 };
        net.forge(0, 9, &nack(100, long_ago, vec![ask]));
    });
    assert!(lied < 3.0 * quiet + 2.0, "{lied} s in place of {quiet}");
}

#[test]
fn a_crowd_that_is_not_there_slows_the_others_by_a_factor_and_no_more() {
    let estimating = || SenderConfig { group_size: None, ..sender() };
    let quiet = run(6, estimating(), |_, _| {});
    let crowded = run(6, estimating(), |net, step| {
        // Each step another member asks for a symbol, so that the group seems to be of thousands.
        let ask =
            Repair { form: RepairForm::Items, flags: RepairFlags::SEGMENT, items: vec![position(1, 0, 70)] };
        net.forge(0, 9, &nack(1_000 + step as u32, Timestamp::default(), vec![ask]));
    });
    assert!(crowded < 4.0 * quiet + 2.0, "{crowded} s in place of {quiet}");
}

#[test]
fn a_clock_that_jumps_ahead_costs_a_few_requests() {
    for (seed, jump) in [(7, 1), (8, 60), (9, 86_400)] {
        let mut net =
            Net::star(seed, sender(), &ReceiverConfig::default(), &[Link::default(), lossy(0.1), lossy(0.1)]);
        let file = send(&mut net);
        net.run(Duration::from_millis(300), |_| false);
        net.jump(Duration::from_secs(jump));
        let end = Duration::from_secs(jump + 20);
        assert!(net.run(end, |net| (1..=2).all(|member| objects(net, member) == [file.clone()])), "{jump} s");
        let asked = net.counter(1, "nacks_sent") + net.counter(2, "nacks_sent");
        assert!(asked < 60, "{asked} requests after a jump of {jump} s");
    }
}

/// A session whose clock is stepped back once, against the contract of a machine.
struct SteppedBack {
    session: Session,
    /// When it is stepped back, and by how much.
    step: (Instant, Duration),
    /// The last time that it was called, before the step is taken off.
    now: Instant,
}

impl SteppedBack {
    fn clock(&mut self, now: Instant) -> Instant {
        self.now = now;
        let (at, by) = self.step;
        if now < at { now } else { now - by }
    }
}

impl Machine for SteppedBack {
    fn handle(&mut self, now: Instant, port: Port, item: Item) {
        let now = self.clock(now);
        self.session.handle(now, port, item);
    }

    fn wake(&mut self, now: Instant) {
        let now = self.clock(now);
        self.session.wake(now);
    }

    fn poll(&mut self, now: Instant) -> Option<(Port, Item)> {
        let now = self.clock(now);
        self.session.poll(now)
    }

    fn deadline(&self) -> Option<Instant> {
        let (at, by) = self.step;
        let is_before = |deadline| self.now < at && deadline < at;
        self.session.deadline().map(|deadline| if is_before(deadline) { deadline } else { deadline + by })
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        self.session.counters(report);
    }
}

/// A node's time is its monotonic clock, which no step of the system clock moves, and a machine never sees it run
/// backwards. One that does, as where a virtual machine is moved, costs the time of the step and loses nothing.
#[test]
fn a_clock_that_is_stepped_back_costs_the_time_of_the_step() {
    let (at, by) = (Duration::from_secs(1), Duration::from_millis(800));
    for stepped in [None, Some(0), Some(1)] {
        let mut net = testing::Net::new(18);
        for member in 0..3 {
            let (sends, receives) = match member {
                0 => (Some(sender()), None),
                _ => (None, Some(ReceiverConfig::default())),
            };
            let step = if stepped == Some(member) {
                (Instant::ZERO + at, by)
            } else {
                (Instant::ZERO, Duration::ZERO)
            };
            let session = Net::new(18).session(member, sends, receives, 1);
            net.join(
                SteppedBack { session, step, now: Instant::ZERO },
                if member == 0 { Link::default() } else { lossy(0.1) },
            );
        }
        let file = contents(1_000_000, 18);
        net.members[0].session.session.send(Instant::ZERO, Arc::from(&file[..]), None, true);
        let has = |net: &testing::Net<SteppedBack>, member: usize| {
            net.members[member]
                .up
                .iter()
                .any(|(_, item)| matches!(item, Item::Message(unit) if unit.payload[..] == file[..]))
        };
        assert!(net.run(Duration::from_secs(10), |net| (1..3).all(|member| has(net, member))), "{stepped:?}");
        let asked = net.counter(1, "nacks_sent") + net.counter(2, "nacks_sent");
        assert!(asked < 80, "{stepped:?}: {asked} requests");
    }
}

/// A receiver may answer by its system clock. If that is stepped while it holds a probe, its answer is wrong by as
/// much: it shows a time to come, or one before the first probe, or a long round trip.
#[test]
fn an_answer_by_a_clock_that_was_stepped_is_refused_or_costs_the_others_a_factor() {
    let answered = |step: i32| {
        let (mut refused, mut longest) = (0, Duration::ZERO);
        let seconds = run(20, sender(), |net, time| {
            if time % 20 == 0 {
                // The sender's clock showed a second at the start, and a round trip takes 20 ms.
                let shown = Timestamp::of(net.now + Duration::from_secs(1) - Duration::from_millis(20));
                let shown = Timestamp { seconds: shown.seconds.wrapping_add_signed(step), ..shown };
                let (form, flags) = (RepairForm::Items, RepairFlags::SEGMENT);
                let ask = Repair { form, flags, items: vec![position(1, 0, 70)] };
                net.forge(0, 9, &nack(100, shown, vec![ask]));
            }
            refused = net.counter(0, "feedback_refused");
            longest = if time > 100 { longest.max(net.members[0].session.grtt()) } else { longest };
        });
        (seconds, refused, longest)
    };
    let (quiet, refused, _) = answered(0);
    for step in [1, 3600, -3600, i32::MIN] {
        let stepped = answered(step);
        assert!(stepped.1 > refused + 10 && stepped.2 <= sender().grtt, "{step} s: {stepped:?}");
        assert!(stepped.0 < 1.2 * quiet, "{step} s: {stepped:?} in place of {quiet}");
    }
    let back = answered(-1);
    assert!(back.0 < 3.0 * quiet + 2.0, "{back:?} in place of {quiet}");
}

#[test]
fn a_receiver_that_never_has_enough_leaves_the_others_unharmed() {
    let links = [Link::default(), lossy(0.05), lossy(0.97)];
    let mut net = Net::star(3, sender(), &ReceiverConfig::default(), &links);
    let file = send(&mut net);
    assert!(net.run(Duration::from_secs(10), |net| objects(net, 1) == [file.clone()]));
    // It ends some time, one way or the other.
    net.run(Duration::from_secs(2_000), |_| false);
    let before = net.bytes();
    net.run(Duration::from_secs(4_000), |_| false);
    assert_eq!(net.bytes(), before);
}

#[test]
fn a_stream_is_not_held_up_for_ever_by_one_that_never_has_enough() {
    let small =
        SenderConfig { segment: 500, source: 8, parity: 8, buffer: 20_000, group_size: Some(2), ..sender() };
    let links = [Link::default(), lossy(0.0), lossy(0.95)];
    let mut net = Net::star(4, small, &ReceiverConfig::default(), &links);
    let data = contents(200_000, 4);
    write(&mut net, 0, &data);
    grant(&mut net, 1);
    assert!(net.run(Duration::from_secs(60), |net| bytes(net, 1).1), "{}", bytes(&net, 1).0.len());
    assert!(bytes(&net, 1).0 == data);
    assert!(net.counter(0, "repairs_given_up") > 0);
}

#[test]
fn forged_senders_and_objects_take_bounded_memory() {
    let receiver =
        ReceiverConfig { senders: 4, buffer: 100_000, max_object: 1 << 20, ..ReceiverConfig::default() };
    let mut net = Net::star(5, sender(), &receiver, &[Link::default(), lossy(0.0)]);
    let header = Header { instance: 3, grtt: 255, backoff: 15, group_size: 15 };
    for number in 0..40_000_u32 {
        let fti = Fti {
            fec: Fec::ReedSolomon8,
            object_size: u64::from(number) << 20,
            segment: 1000,
            source: 1 + (number % 200) as u16,
            parity: (number % 55) as u16,
            field: 0,
            group: 0,
            instance: 0,
        };
        let data = Data {
            header,
            flags: if number % 3 == 0 { Flags::STREAM } else { Flags::INFO },
            fec: Fec::ReedSolomon8,
            object: (number / 7) as u16,
            id: PayloadId {
                block: number.wrapping_mul(7919) & 0xFF_FFFF,
                symbol: (number % 256) as u16,
                block_len: 0,
            },
            fti: Some(fti),
            payload: &[7; 1000],
        };
        let source = NodeId(10 + number % 9);
        let body = if number % 50 == 0 {
            let info = Info {
                header,
                flags: data.flags,
                fec: data.fec,
                object: data.object,
                fti: Some(fti),
                payload: &[1; 900],
            };
            Body::Info(info)
        } else {
            Body::Data(data)
        };
        net.forge(1, 9, &Message { sequence: number as u16, source, body }.emit());
    }
    // Over the limit there is room for the next block of the first object, which has 255 symbols at most.
    let (incomplete, decoded) = net.members[1].session.held();
    assert!(incomplete <= 4 * (100_000 + 255 * 1100) && decoded <= 4 << 20, "{incomplete}, {decoded}");
    // And it goes on to receive.
    let file = send(&mut net);
    assert!(net.run(Duration::from_secs(60), |net| objects(net, 1).contains(&file)));
}

#[test]
fn the_highest_numbers_of_blocks_and_symbols_overflow_nothing() {
    let fti = Fti {
        fec: Fec::SmallBlock,
        object_size: 1 << 20,
        segment: 100,
        source: 8,
        parity: 4,
        field: 0,
        group: 0,
        instance: 0,
    };
    for (flags, fti) in
        [(Flags(0), None), (Flags::STREAM, None), (Flags::STREAM, Some(fti)), (Flags(0), Some(fti))]
    {
        let mut net = Net::star(1, sender(), &ReceiverConfig::default(), &[Link::default(), Link::default()]);
        let header = Header { instance: 1, grtt: 100, backoff: 4, group_size: 0 };
        let highest = |symbol| PayloadId { block: u32::MAX, symbol, block_len: 8 };
        for (sequence, object) in [1, 2, 4].into_iter().enumerate() {
            let id = highest(0);
            let data = Data { header, flags, fec: Fec::SmallBlock, object, id, fti, payload: &[7; 100] };
            let message = Message { sequence: sequence as u16, source: NodeId(7), body: Body::Data(data) };
            net.forge(1, 8, &message.emit());
        }
        let last = Position { fec: Fec::SmallBlock, object: 4, id: highest(u16::MAX) };
        let ask = Repair { form: RepairForm::Items, flags: RepairFlags::BLOCK, items: vec![last] };
        let asked = Nack {
            sender: NodeId(7),
            instance: 1,
            grtt_response: Timestamp::default(),
            cc: None,
            repairs: vec![ask],
        };
        let flush = Command::Flush { last, acknowledge: Vec::new() };
        for body in [Body::Command(header, flush), Body::Nack(asked)] {
            let message = Message { sequence: 9, source: NodeId(7), body };
            net.forge(1, 8, &message.emit());
        }
        net.run(Duration::from_secs(60), |_| false);
        assert_eq!(net.counter(1, "malformed"), 0, "{flags:?} {fti:?}: read, and taken for what it is");
    }
}

#[test]
fn one_forged_packet_of_another_instance_does_not_end_a_transfer() {
    let seconds = run(6, sender(), |net, step| {
        if step % 5 == 0 {
            let header = Header { instance: step as u16 + 7, grtt: 0, backoff: 0, group_size: 0 };
            let body = Body::Command(header, Command::EndOfTransmission);
            let forged = Message { sequence: 0, source: NodeId(1), body }.emit();
            net.forge(1, 0, &forged);
        }
    });
    assert!(seconds < 3.0, "{seconds}");
}

fn any_position() -> impl Strategy<Value = Position> {
    (0..4_u16, 0..3_u32, 0..256_u16, any::<u32>(), any::<u16>()).prop_map(
        |(object, block, symbol, far, id)| {
            let (object, block) = if far % 5 == 0 { (id, far & 0xFF_FFFF) } else { (object, block) };
            position(object, block, symbol)
        },
    )
}

fn any_repair() -> impl Strategy<Value = Repair> {
    let form = prop_oneof![Just(RepairForm::Items), Just(RepairForm::Ranges), Just(RepairForm::Erasures)];
    (form, 0..16_u8, proptest::collection::vec(any_position(), 1..5)).prop_map(|(form, flags, mut items)| {
        if form == RepairForm::Ranges && items.len() % 2 == 1 {
            items.push(items[0]);
        }
        Repair { form, flags: RepairFlags(flags), items }
    })
}

fn any_body() -> impl Strategy<Value = Body<'static>> {
    let header = (0..3_u16, any::<u8>(), 0..16_u8, 0..16_u8)
        .prop_map(|(instance, grtt, backoff, group_size)| Header { instance, grtt, backoff, group_size });
    let stamp = (0..3_u32, 0..1_000_000_u32).prop_map(|(seconds, micros)| Timestamp { seconds, micros });
    let cc =
        proptest::option::of((any::<u16>(), any::<u8>(), any::<u8>(), any::<u32>(), any::<u16>()).prop_map(
            |(sequence, flags, rtt, loss, rate)| CcFeedback {
                sequence,
                flags: CcFlags(flags),
                rtt,
                loss,
                rate,
            },
        ));
    let repairs = || proptest::collection::vec(any_repair(), 0..4);
    let nack = (1..3_u32, 0..3_u16, stamp, cc.clone(), repairs()).prop_map(
        |(sender, instance, grtt_response, cc, repairs)| {
            Body::Nack(Nack { sender: NodeId(sender), instance, grtt_response, cc, repairs })
        },
    );
    let flush = (header.clone(), any_position()).prop_map(|(header, last)| {
        Body::Command(header, Command::Flush { last, acknowledge: vec![NodeId(2)] })
    });
    let squelch = (header.clone(), any_position(), proptest::collection::vec(any::<u16>(), 0..4))
        .prop_map(|(header, first, invalid)| Body::Command(header, Command::Squelch { first, invalid }));
    let advertisement = (header.clone(), cc, repairs()).prop_map(|(header, cc, repairs)| {
        Body::Command(header, Command::RepairAdvertisement { limited: false, cc, repairs })
    });
    let fti = (0..200_000_u64, 1..1500_u16, 1..256_u16, 0..256_u16).prop_map(
        |(object_size, segment, source, parity)| Fti {
            fec: Fec::ReedSolomon8,
            object_size,
            segment,
            source,
            parity,
            field: 0,
            group: 0,
            instance: 0,
        },
    );
    let data = (header, any_position(), 0..64_u8, proptest::option::of(fti), 0..64_usize).prop_map(
        |(header, place, flags, fti, len)| {
            Body::Data(Data {
                header,
                flags: Flags(flags),
                fec: Fec::ReedSolomon8,
                object: place.object,
                id: place.id,
                fti,
                payload: &[0; 64][..len],
            })
        },
    );
    prop_oneof![3 => data, 2 => nack, 1 => flush, 1 => squelch, 1 => advertisement]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn nothing_that_arrives_panics_or_loops(
        seed in 0..u64::MAX,
        forged in proptest::collection::vec((0..3_usize, 1..5_u32, any_body()), 1..120),
        cut in proptest::collection::vec(any::<u16>(), 0..10),
    ) {
        let mut net = Net::star(seed, sender(), &ReceiverConfig::default(), &[Link::default(), lossy(0.1), lossy(0.1)]);
        send(&mut net);
        for (step, (to, source, body)) in forged.into_iter().enumerate() {
            net.run(Duration::from_millis(10 * step as u64), |_| false);
            let mut bytes = Message { sequence: step as u16, source: NodeId(source), body }.emit().to_vec();
            if let Some(&cut) = cut.get(step) {
                bytes.truncate(usize::from(cut) % (bytes.len() + 1));
            }
            net.forge(to, 9, &bytes);
        }
        // Whatever the forged senders promised, it is over some time.
        net.run(Duration::from_secs(3_000), |_| false);
    }
}
