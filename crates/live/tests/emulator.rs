//! Links in real time: real frames have the fates that the models decide, however busy the machine is.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Running, at, ms, networks_can_be_set_up, one_way, pause, skipped, whole_run};
use hopcast_core::{Duration, Fraction, Instant, Rate, Seed};
use hopcast_link::{
    Change, Counters, Direction, Jitter, Loss, Mac, Medium, MediumConfig, Queue, QueueLimit, Station,
};
use hopcast_live::emulator::{EmulatorReport, Options, Readings};
use hopcast_live::layout::{LinkChange, NetworkLayout, Scheduled};

/// Maximum time by which a frame's arrival may be dated too early: half of the time between two reads of an interface.
const LOOK: Duration = Duration::from_micros(70);

fn forward(report: &EmulatorReport) -> Counters {
    report.links[0][0].closed - report.links[0][0].opened
}

/// Whether the kernel has lost something by itself, so that what arrived says nothing about the link; says so loudly.
fn disturbed(report: &EmulatorReport) -> bool {
    let fidelity = &report.fidelity;
    let disturbed = fidelity.unseen + fidelity.socket_full > 0;
    if disturbed {
        skipped(&format!("arrivals are not counted: the machine was too busy ({fidelity:?})"));
    }
    disturbed
}

#[test]
fn a_saturated_link_carries_its_rate() {
    if !networks_can_be_set_up() {
        return;
    }
    let rate = Rate::from_mbit(20);
    let queue = Queue::DropTail { limit: QueueLimit::Packets(10_000) };
    let direction = Direction { rate: Some(rate), queue, ..Direction::default() };
    let readings = Readings { from: at(500), to: at(1500), interval: Some(ms(100)), end: at(2000) };
    let net = Running::start(
        NetworkLayout::chain([one_way(&direction)], 1500),
        Vec::new(),
        Options { readings, ..Options::default() },
    );
    // Twice as fast as the link, for a second: two seconds' worth, most of it waiting.
    let arrivals = net.send(4000, 1208, Duration::from_micros(250));
    let report = net.finish();
    let carried = forward(&report);
    // While it was busy it sent at its rate, whatever the machine was doing.
    let while_busy = carried.sent_bytes as f64 * 8.0 / carried.busy.as_secs_f64() / 20e6;
    assert!((while_busy - 1.0).abs() < 0.001, "{while_busy}");
    // And if the machine was not kept from sending, it was always busy.
    if report.verdict.is_none() && carried.busy >= ms(999) {
        assert!((carried.sent_bytes as f64 * 8.0 / 20e6 - 1.0).abs() < 0.01, "{carried:?}");
    }
    // The time series within the window adds up to the window.
    let steps = &report.links[0][0].steps;
    assert_eq!(steps[5..15].iter().map(|step| step[0]).sum::<u64>(), carried.sent_bytes);
    let span = arrivals.last().unwrap().received.since(arrivals[0].received).as_secs_f64();
    let received = arrivals.len() as f64 * 1250.0 * 8.0 / span / 20e6;
    // Frames that are late come closer together, so this is no more than roughly so.
    assert!((0.5..1.1).contains(&received), "{received} of the rate");
}

#[test]
fn frames_arrive_after_the_delay() {
    if !networks_can_be_set_up() {
        return;
    }
    let net = Running::pair(&Direction { delay: ms(20), ..Direction::default() });
    let arrivals = net.send(500, 200, ms(1));
    let report = net.finish();
    assert_eq!(arrivals.len(), 500);
    let mut delays: Vec<Duration> =
        arrivals.iter().map(|arrival| arrival.received.since(arrival.sent)).collect();
    delays.sort_unstable();
    assert!(delays[0] + LOOK >= ms(20), "{}", delays[0]);
    assert!(delays[250] < ms(40), "{}", delays[250]);
    assert!(report.fidelity.lateness_p50 < ms(10), "{:?}", report.fidelity);
    assert!(report.fidelity.delivered >= 500);
}

#[test]
fn jitter_spreads_the_delay_and_keeps_the_order() {
    if !networks_can_be_set_up() {
        return;
    }
    let net =
        Running::pair(&Direction { delay: ms(20), jitter: Jitter::Uniform(ms(10)), ..Direction::default() });
    let arrivals = net.send(300, 200, ms(5));
    drop(net);
    let delays: Vec<Duration> = arrivals.iter().map(|arrival| arrival.received.since(arrival.sent)).collect();
    let (min, max) = (delays.iter().min().unwrap(), delays.iter().max().unwrap());
    assert!(*min + LOOK >= ms(10) && *min < ms(20), "{min}");
    assert!(*max > ms(25), "{max}");
    assert!(arrivals.is_sorted_by_key(|arrival| arrival.number));
}

/// Sends 6,000 frames over a link that loses so, and gives how many it took and how many of those it lost.
fn lose(loss: Loss) -> (f64, f64) {
    let net = Running::pair(&Direction { loss, ..Direction::default() });
    let arrivals = net.send(6000, 100, Duration::from_micros(50));
    let report = net.finish();
    let carried = forward(&report);
    if !disturbed(&report) {
        assert_eq!(carried.sent_packets, 6000);
        assert_eq!(arrivals.len() as u64, carried.delivered_packets);
    }
    (carried.sent_packets as f64, carried.lost_packets as f64)
}

fn share(percent: f64) -> Fraction {
    Fraction::from_percent(percent).unwrap()
}

/// As many are lost as the model's formula says, give or take five standard deviations; `inflation` is by how much
/// losses that come in bursts vary more than independent ones.
fn is_lost(loss: Loss, inflation: f64) {
    if !networks_can_be_set_up() {
        return;
    }
    let p = loss.stationary().get();
    let (sent, lost) = lose(loss);
    let (expected, deviation) = (sent * p, (sent * p * (1.0 - p) * inflation).sqrt());
    assert!(sent > 5000.0, "{sent}");
    assert!((lost - expected).abs() < 5.0 * deviation, "{lost} lost, {expected} ± {deviation} expected");
}

#[test]
fn independent_losses_are_as_many_as_they_should_be() {
    is_lost(Loss::Independent(share(10.0)), 1.0);
}

#[test]
fn gilbert_elliotts_losses_are_as_many_as_they_should_be() {
    let (p, r) = (0.02, 0.2);
    let loss = Loss::GilbertElliott { p: share(2.0), r: share(20.0), k: share(100.0), h: share(0.0) };
    // States correlate from frame to frame by 1 - p - r.
    let correlation: f64 = 1.0 - p - r;
    is_lost(loss, (1.0 + correlation) / (1.0 - correlation));
}

#[test]
fn the_four_state_models_losses_are_as_many_as_they_should_be() {
    let loss = Loss::FourState {
        p13: share(2.0),
        p31: share(20.0),
        p32: share(30.0),
        p23: share(40.0),
        p14: share(1.0),
    };
    // A burst with its good frames lasts some ten of them.
    is_lost(loss, 20.0);
}

#[test]
fn a_trace_loses_exactly_what_it_says() {
    if !networks_can_be_set_up() {
        return;
    }
    let trace: Vec<bool> = (0..10).map(|number| number % 3 == 1).collect();
    let net = Running::pair(&Direction { loss: Loss::Trace(trace.clone().into()), ..Direction::default() });
    let arrivals = net.send(1000, 100, Duration::from_micros(100));
    let report = net.finish();
    if !disturbed(&report) {
        let passed: Vec<u64> = (0..1000).filter(|&number| !trace[number as usize % 10]).collect();
        assert_eq!(arrivals.iter().map(|arrival| arrival.number).collect::<Vec<_>>(), passed);
    }
}

#[test]
fn copies_arrive_and_bits_that_flip_are_found_by_checksums() {
    if !networks_can_be_set_up() {
        return;
    }
    let direction = Direction { duplicate: share(10.0), corrupt: share(20.0), ..Direction::default() };
    let net = Running::pair(&direction);
    let arrivals = net.send(3000, 958, Duration::from_micros(100));
    let report = net.finish();
    let carried = forward(&report);
    assert!((200..400).contains(&carried.duplicated_packets), "{carried:?}");
    // A share of all that were delivered, copies too.
    assert!((500..800).contains(&carried.corrupted_packets), "{carried:?}");
    if !disturbed(&report) {
        let sound = carried.delivered_packets - carried.corrupted_packets;
        // Of 1,000 bytes nobody looks at the six of the sender's Ethernet address.
        let accepted = arrivals.len() as u64 - sound;
        assert!(
            accepted <= 25,
            "{accepted} damaged datagrams of {} were accepted",
            carried.corrupted_packets
        );
    }
}

#[test]
fn changes_happen_at_their_time() {
    if !networks_can_be_set_up() {
        return;
    }
    let change =
        |millis, change| Scheduled { at: at(millis), what: LinkChange { link: 0, from: None, change } };
    let changes = vec![
        change(500, Change::Delay(ms(100))),
        change(1000, Change::Down),
        change(1500, Change::Up),
        change(1500, Change::Loss(Loss::Independent(share(100.0)))),
        change(2000, Change::Loss(Loss::None)),
    ];
    let net =
        Running::start(NetworkLayout::chain([one_way(&Direction::default())], 1500), changes, whole_run());
    let arrivals = net.send(500, 100, ms(5));
    let report = net.finish();
    if report.fidelity.gap > ms(100) || disturbed(&report) {
        skipped(&format!("changes: the machine stood still for {}", report.fidelity.gap));
        return;
    }
    let sent = |from: u64, to: u64| -> Vec<_> {
        let within = at(from) + LOOK..at(to);
        arrivals.iter().filter(|arrival| within.contains(&arrival.sent)).collect()
    };
    assert!(sent(500, 900).iter().all(|arrival| arrival.received.since(arrival.sent) + LOOK >= ms(100)));
    assert!(sent(500, 900).len() > 40);
    assert_eq!(sent(1000, 1400).len(), 0);
    assert_eq!(sent(1500, 1900).len(), 0);
    assert!(sent(2000, 2400).len() > 40);
    let carried = forward(&report);
    assert!(carried.queue_dropped_packets > 40 && carried.lost_packets > 40, "{carried:?}");
}

#[test]
fn a_station_of_a_medium_overhears_what_is_for_others() {
    if !networks_can_be_set_up() {
        return;
    }
    // Two nodes of a chain, and a third one that only listens.
    let mut layout =
        NetworkLayout::chain([one_way(&Direction::default()), one_way(&Direction::default())], 1500);
    layout.links.truncate(1);
    let mac = |attachment: u8| [2, attachment, 0, 0, 0, 0];
    for node in &mut layout.nodes {
        node.interfaces.truncate(1);
        node.routes.retain(|route| route.interface == 0 && route.via_mac.is_some_and(|mac| mac[5] == 0));
    }
    layout.nodes[2].routes.clear();
    layout.nodes[2].interfaces[0].link = 0;
    layout.nodes[2].interfaces[0].attachment = 2;
    layout.nodes[2].interfaces[0].mac = mac(2);
    let station =
        |attachment| Station { address: mac(attachment), promiscuous: attachment == 2, ..Station::default() };
    let config = MediumConfig {
        direction: Direction { rate: Some(Rate::from_mbit(10)), ..Direction::default() },
        stations: (0..3).map(station).collect(),
        mac: Mac::Perfect,
        pairs: Vec::new(),
        hears: None,
        radios: None,
    };
    let seed = Seed::new(1, 0);
    let medium = Medium::new(config, |from, to| seed.stream(&["medium"], (3 * from + to) as u64), &seed);
    let link = &mut layout.links[0];
    link.model = Box::new(medium);
    link.ends = vec![(0, 0), (1, 0), (2, 0)];
    link.captured = vec![None; 3];
    let net = Running::start(layout, Vec::new(), whole_run());
    let arrivals = net.send(200, 100, ms(2));
    let drops = net.lab.kernel_drops().unwrap();
    let report = net.finish();
    assert_eq!(arrivals.len(), 200);
    let of =
        |from, to| report.links[0].iter().find(|pair| (pair.from, pair.to) == (from, to)).unwrap().closed;
    assert_eq!((of(0, 1).delivered_packets, of(0, 1).overheard_packets), (200, 0));
    assert_eq!((of(0, 2).delivered_packets, of(0, 2).overheard_packets), (200, 200));
    assert_eq!(of(1, 2).delivered_packets, 0);
    assert_eq!(drops.len(), 3);
}

#[test]
fn frames_that_find_a_link_that_does_not_keep_up_are_the_queues_to_drop() {
    if !networks_can_be_set_up() {
        return;
    }
    let queue = Queue::DropTail { limit: QueueLimit::Packets(10) };
    let direction = Direction { rate: Some(Rate::from_mbit(1)), queue, ..Direction::default() };
    let net = Running::pair(&direction);
    let arrivals = net.send(1000, 958, Duration::from_micros(100));
    // The rest of the queue arrives within 11 times 8 ms.
    pause(ms(200));
    let report = net.finish();
    let carried = forward(&report);
    assert!(carried.queue_dropped_packets > 500, "{carried:?}");
    if !disturbed(&report) {
        assert_eq!(carried.queue_dropped_packets + carried.delivered_packets, 1000);
        assert_eq!(arrivals.len() as u64, carried.delivered_packets);
    }
}

#[test]
fn before_the_clock_starts_nothing_arrives() {
    if !networks_can_be_set_up() {
        return;
    }
    let mut layout =
        NetworkLayout::chain([one_way(&Direction { delay: ms(1), ..Direction::default() })], 1500);
    let mut lab = hopcast_live::lab::Lab::set_up(&layout, &hopcast_live::lab::Lab::fresh_id()).unwrap();
    let now = hopcast_node::Clock::starting_now();
    let clock = hopcast_node::Clock::with_zero(now.zero() + ms(700).as_nanos());
    let links = std::mem::take(&mut layout.links);
    let emulator =
        hopcast_live::emulator::Emulator::start(&mut lab, links, Vec::new(), clock, whole_run()).unwrap();
    let net = Running { lab, emulator, clock: now };
    let arrivals = net.send(10, 100, ms(1));
    drop(net);
    assert_eq!(arrivals.len(), 10);
    assert!(arrivals.iter().all(|arrival| arrival.received >= Instant::ZERO + ms(701)), "{arrivals:?}");
}
