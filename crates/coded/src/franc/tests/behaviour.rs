//! A segment, whatever happens: all that is given out is right and in order, and it recovers.

use hopcast_core::{Duration, Instant, Item, Machine, Port, earliest};
use hopcast_peers::tcp::Congestion;
use proptest::prelude::*;

use super::net::*;
use super::traffic::*;
use crate::franc::{Config, Field, Links, Losses, Plan, Queue};

/// Stations 0 and 1 are the ends, 2 the helper if there is one.
fn segment(config: &Config, e: [f64; 3], seed: u64) -> Net {
    let [e1, e2, e3] = e;
    let mut net = Net::new(3, symmetric(&[(0, 1, e3), (0, 2, e1), (2, 1, e2)]), csma(), seed);
    if config.helper {
        net.add(2, vec![helper(config, 2, [0, 1], seed)]);
    }
    net
}

/// Puts a hundred datagrams of `sizes` bytes across in both directions within a second, and waits until all is quiet.
fn cross(config: &Config, e: [f64; 3], sizes: [usize; 2], seed: u64) -> [SharedMeter; 2] {
    let mut net = segment(config, e, seed);
    let meters = [Meter::shared(), Meter::shared()];
    for (from, meter) in meters.iter().enumerate() {
        let source = Source::boxed(800 * sizes[from] as u64, sizes[from], millis(1_000), meter);
        let sink = Sink::boxed(&meters[1 - from]);
        net.add(from, vec![edge(config, from, 1 - from, seed), Both::boxed(source, sink)]);
    }
    net.run(millis(30_000));
    meters
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn all_that_is_put_in_is_given_out_right_and_in_order(
        e in [0.0..0.6f64, 0.0..0.6, 0.0..0.6],
        sizes in [17usize..1_400, 17usize..1_400],
        (block, window, symbol) in (1u8..=255, 1u8..=16, 200u16..1_400),
        (binary, budget, helped, given) in any::<(bool, bool, bool, bool)>(),
        seed: u64,
    ) {
        let plain = if budget { Config::paper() } else { Config::default() };
        let config = Config {
            block,
            window,
            symbol: if budget { 1_414 } else { symbol },
            mtu: if budget { 1_410 } else { 1_500 },
            links: if given { Links::Given(Losses { e1: e[0], e2: e[1], e3: e[2] }) } else { Links::Measured },
            queue: Queue::Fifo { packets: 5_000 },
            ..plain
        };
        let config = config.over(if binary { Field::Binary } else { Field::Binary8 });
        let fitting = config.symbol.min(symbol);
        let config = if helped { config.with_helper() } else { config };
        let config = if budget { Config { mtu: config.symbol - 4, ..config } } else { Config { symbol: fitting, ..config } };
        let sizes = sizes.map(|size| size.min(usize::from(config.mtu)));
        for meter in cross(&config, e, sizes, seed) {
            let meter = meter.borrow();
            prop_assert_eq!((meter.wrong, meter.out_of_order), (0, 0));
            prop_assert_eq!(meter.received, meter.sent, "{:?}", config);
        }
    }
}

#[test]
fn a_packet_that_does_not_fit_is_refused_and_its_sender_told() {
    let config = Config::paper();
    let mut edge = edge(&config, 0, 1, 1);
    let mut packet = hopcast_core::Buffer::zeroed(1_460);
    let address = |host| std::net::IpAddr::from([10, 0, 0, host]);
    hopcast_wire::ip::prepend(&mut packet, address(1), address(2), 17, 64, 0);
    edge.handle(Instant::ZERO, Port::Above(0), Item::Packet(packet));
    let Some((Port::Above(0), Item::Packet(answer))) = edge.poll(Instant::ZERO) else { panic!("an answer") };
    let header = hopcast_wire::ip::parse(&answer).unwrap();
    assert_eq!((header.destination, header.protocol), (address(1), 1));
    // Destination unreachable, fragmentation needed (RFC 1191, section 4).
    assert_eq!(answer[20..22], [3, 4]);
    assert_eq!(answer[26..28], config.mtu.to_be_bytes());
}

/// A stream of datagrams from 0 to 1 at 2 Mbit/s, without an end.
fn stream(net: &mut Net, config: &Config, seed: u64) -> SharedMeter {
    let meter = Meter::shared();
    let source = Source::boxed(2_000_000, 1_000, millis(1_000_000), &meter);
    net.add(0, vec![edge(config, 0, 1, seed), source]);
    net.add(1, vec![edge(config, 1, 0, seed), Sink::boxed(&meter)]);
    meter
}

/// Runs for a second; how many packets arrived in it.
fn in_a_second(net: &mut Net, meter: &SharedMeter) -> u64 {
    let before = meter.borrow().received;
    net.run(net.now + Duration::from_secs(1));
    meter.borrow().received - before
}

#[test]
fn an_end_that_begins_anew_is_noticed_and_nothing_old_is_taken_for_new() {
    for config in [Config::default(), Config::default().with_helper(), Config::paper().with_helper()] {
        let mut net = segment(&config, [0.1, 0.1, 0.2], 3);
        let meter = stream(&mut net, &config, 3);
        for round in 0..3 {
            let arrived = in_a_second(&mut net, &meter);
            assert!(arrived > 100, "round {round}: {arrived} with {:?}", config.plan);
            net.replace(1, 0, vec![edge(&config, 1, 0, 10 + round), Sink::boxed(&meter)]);
            net.run(net.now + Duration::from_secs(2));
        }
        let counters = net.counters(0, 0);
        assert_eq!(counters["restarts"], 3);
        assert!(counters["symbols_lost_in_restarts"] > 0);
        assert_eq!((meter.borrow().wrong, meter.borrow().out_of_order), (0, 0));
    }
}

#[test]
fn ten_seconds_of_silence_are_survived() {
    let config = Config::default();
    let mut net = segment(&config, [0.1, 0.1, 0.1], 4);
    let meter = stream(&mut net, &config, 4);
    assert!(in_a_second(&mut net, &meter) > 180);
    net.change_loss((0, 1), 1.0);
    net.run(millis(11_000));
    let sent = net.counters(0, 0)["frames_sent"];
    net.change_loss((0, 1), 0.1);
    net.run(millis(12_000));
    assert!(in_a_second(&mut net, &meter) > 240, "as many as are sent");
    assert_eq!((meter.borrow().wrong, meter.borrow().out_of_order), (0, 0));
    // Nobody was there: a window of frames, and then ever fewer.
    assert!(sent < 1_600, "{sent} frames");
}

#[test]
fn a_helper_that_vanishes_is_done_without_and_one_that_returns_is_used() {
    let config = Config::default().with_helper();
    let mut net = segment(&config, [0.1, 0.1, 0.5], 5);
    let meter = stream(&mut net, &config, 5);
    assert!(in_a_second(&mut net, &meter) > 180);
    assert!(net.counters(2, 0)["relayed"] > 50);
    net.replace(2, 0, vec![Sink::boxed(&Meter::shared())]);
    net.run(millis(3_000));
    assert!(in_a_second(&mut net, &meter) > 240, "without");
    net.replace(2, 0, vec![helper(&config, 2, [0, 1], 6)]);
    net.run(millis(5_000));
    assert!(in_a_second(&mut net, &meter) > 240, "with");
    assert!(net.counters(2, 0)["relayed"] > 100);
    assert_eq!((meter.borrow().wrong, meter.borrow().out_of_order), (0, 0));
}

#[test]
fn two_segments_make_a_chain_on_one_medium() {
    let config = Config::default();
    let mut net = Net::new(3, symmetric(&[(0, 1, 0.2), (1, 2, 0.3), (0, 2, 1.0)]), csma(), 7);
    let meter = Meter::shared();
    net.add(0, vec![edge(&config, 0, 1, 7), Source::boxed(1_000_000, 1_200, millis(10_000), &meter)]);
    net.add(1, vec![Box::new(Crossed([edge(&config, 1, 0, 7), edge(&config, 1, 2, 7)]))]);
    net.add(2, vec![edge(&config, 2, 1, 7), Sink::boxed(&meter)]);
    net.run(millis(12_000));
    let meter = meter.borrow();
    assert_eq!((meter.wrong, meter.out_of_order), (0, 0));
    assert_eq!(meter.received, meter.sent);
    assert!(meter.mean_delay_ms(millis(1_000)) < 60.0, "{}", meter.mean_delay_ms(millis(1_000)));
}

#[test]
fn datagrams_the_other_way_neither_starve_tcp_nor_wait_behind_it() {
    let config = Config::default();
    let mut net = segment(&config, [0.0, 0.0, 0.1], 8);
    let (tcp, back) = (Meter::shared(), Meter::shared());
    let ends = [BulkSource::boxed(0, 1, &tcp), BulkSink::boxed(&tcp)];
    let others = [Sink::boxed(&back), Source::boxed(1_000_000, 1_000, millis(10_000), &back)];
    for (station, (end, other)) in ends.into_iter().zip(others).enumerate() {
        let tcp = tcp_end(station, station == 1, 1_500, Congestion::Cubic);
        let both = Both::boxed(stacked(tcp, end), other);
        net.add(station, vec![edge(&config, station, 1 - station, 8), both]);
    }
    net.run(millis(11_000));
    assert_eq!((tcp.borrow().wrong, back.borrow().wrong), (0, 0));
    let mbps = tcp.borrow().bytes as f64 * 8.0 / 11e6;
    assert!(mbps > 4.0, "{mbps} Mbit/s");
    let (back, delay) = (back.borrow(), back.borrow().mean_delay_ms(millis(2_000)));
    assert!(back.received * 100 >= back.sent * 97, "{} of {}", back.received, back.sent);
    assert!(delay < 40.0, "{delay} ms");
}

#[test]
fn several_blocks_in_flight_fill_the_time_in_which_the_end_of_one_is_waited_for() {
    let goodput = |window| {
        let config = Config { window, ..Config::default() };
        let mut net = segment(&config, [0.0, 0.0, 0.3], 9);
        let meter = Meter::shared();
        net.add(0, vec![edge(&config, 0, 1, 9), Source::boxed(10_000_000, 1_400, millis(5_000), &meter)]);
        net.add(1, vec![edge(&config, 1, 0, 9), Sink::boxed(&meter)]);
        net.run(millis(5_000));
        let bytes = meter.borrow().bytes;
        bytes as f64
    };
    assert!(goodput(1) < 0.9 * goodput(8));
}

#[test]
fn links_that_are_measured_come_out_as_they_are() {
    // What is given is true; so is what is measured, or throughput would differ.
    let e = [0.2, 0.3, 0.5];
    let [e1, e2, e3] = e;
    let plan = Plan::Budget { overshoot: 1.05 };
    let throughput = |links| {
        let config = Config { links, plan, ..Config::paper() }.with_helper();
        let mut net = segment(&config, e, 10);
        let meter = stream(&mut net, &config, 10);
        net.run(millis(20_000));
        let received = meter.borrow().received;
        received as f64
    };
    let (given, measured) = (throughput(Links::Given(Losses { e1, e2, e3 })), throughput(Links::Measured));
    assert!((measured / given - 1.0).abs() < 0.1, "{measured} and {given} packets");
}

/// Two edges at one station, plugged into each other above.
struct Crossed([Box<dyn Machine>; 2]);

impl Machine for Crossed {
    fn handle(&mut self, now: Instant, port: Port, item: Item) {
        self.0.iter_mut().for_each(|edge| edge.handle(now, port, item.clone()));
    }
    fn wake(&mut self, now: Instant) {
        self.0.iter_mut().for_each(|edge| edge.wake(now));
    }
    fn poll(&mut self, now: Instant) -> Option<(Port, Item)> {
        for place in 0..2 {
            while let Some((port, item)) = self.0[place].poll(now) {
                match port {
                    Port::Below(_) => return Some((port, item)),
                    Port::Above(_) => self.0[1 - place].handle(now, port, item),
                }
            }
        }
        self.0[0].poll(now)
    }
    fn deadline(&self) -> Option<Instant> {
        earliest(self.0[0].deadline(), self.0[1].deadline())
    }
}
