//! Nothing older than the deadline of delivery is handed up, whatever the path does.

use hopcast_core::Machine as _;
use proptest::prelude::*;

use super::chain::{Chain, Place};
use super::*;

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn btp(after: Duration, rounds: u8) -> Config {
    let delivery = Delivery::Deadline { after, fixed: true, rounds };
    Config { delivery, one_clock: true, ..Config::default() }
}

/// Gives a unit of `size` bytes every `gap` for `span`, each with the time in it.
fn offer(chain: &mut Chain, size: usize, gap: Duration, span: Duration) -> usize {
    let (end, mut given) = (chain.now + span, 0);
    let mut unit = vec![0; size];
    while chain.now < end {
        unit[..8].copy_from_slice(&chain.now.as_nanos().to_be_bytes());
        chain.give(0, &unit);
        given += 1;
        let next = chain.now + gap;
        chain.run(next);
    }
    given
}

/// The ages of what has come out at the far edge.
fn ages(chain: &mut Chain) -> Vec<Duration> {
    let age = |(at, _, unit): (Instant, usize, Buffer)| {
        at.since(Instant::from_nanos(u64::from_be_bytes(unit[..8].try_into().unwrap())))
    };
    chain.arrived.drain(..).map(age).collect()
}

fn greatest(ages: &[Duration]) -> Duration {
    ages.iter().copied().max().unwrap_or_default()
}

#[test]
fn nothing_is_handed_up_later_than_its_deadline() {
    // Three hops leave 0.857 of what nobody repairs. With rank feedback a hop repairs in 27 ms; without, a relay makes
    // up within a batch, and the source when a block of 50 ms is over.
    for (after, rounds, shares) in [
        (30, Delivery::UNTIL_DEADLINE, [0.83, 0.83]),
        (30, 0, [0.83, 0.83]),
        (200, 0, [0.83, 0.98]),
        (60, 1, [0.86, 0.9]),
    ] {
        let ranks = btp(millis(after), rounds);
        let none = Config { delivery: ranks.delivery, one_clock: true, ..Config::strict() };
        for (config, share) in [ranks, none].into_iter().zip(shares) {
            let cables = vec![cable(20, millis(9), independent(5.0), 64); 3];
            let mut chain = Chain::new(&config, &cables, 1);
            let given = offer(&mut chain, 1000, millis(2), Duration::from_secs(4));
            chain.run_for(Duration::from_secs(2));
            let ages = ages(&mut chain);
            assert!(greatest(&ages) <= millis(after), "{after} ms, {rounds}: {:?}", greatest(&ages));
            let arrived = ages.len() as f64 / given as f64;
            println!("{after} ms, {rounds} rounds, {:?}: {arrived}", config.feedback);
            assert!(arrived > share, "{after} ms, {rounds} rounds, {:?}: {arrived}", config.feedback);
        }
    }
}

#[test]
fn what_waited_for_an_outage_is_dropped_and_what_is_new_arrives() {
    for delivery in [Delivery::DEADLINE, btp(millis(200), 2).delivery] {
        for one_clock in [true, false] {
            let config = Config { delivery, one_clock, ..Config::default() };
            let cables = vec![cable(20, millis(9), independent(5.0), 64); 3];
            let mut chain = Chain::new(&config, &cables, 1);
            offer(&mut chain, 100, Duration::from_secs(1), Duration::from_secs(5));
            chain.run_for(millis(500));
            chain.arrived.clear();
            chain.change(1, None, &Change::Down);
            offer(&mut chain, 100, Duration::from_secs(1), Duration::from_secs(60));
            chain.change(1, None, &Change::Up);
            chain.run_for(Duration::from_secs(2));
            let back = offer(&mut chain, 100, Duration::from_secs(1), Duration::from_secs(20));
            let ages = ages(&mut chain);
            assert!(greatest(&ages) <= millis(200), "{:?}", greatest(&ages));
            assert!(ages.len() + 2 >= back, "{} of {back} since", ages.len());
        }
    }
}

#[test]
fn a_unit_that_waits_at_the_source_past_its_deadline_is_not_sent() {
    let mut chain = Chain::new(&btp(millis(50), 3), &[cable(20, millis(1), Loss::None, 64)], 1);
    offer(&mut chain, 1000, millis(10), millis(100));
    chain.change(0, None, &Change::Down);
    offer(&mut chain, 1000, millis(1), Duration::from_secs(2));
    let expired = chain.counter(0, "units_expired");
    assert!(expired > 10, "{expired}");
}

#[test]
fn a_deadline_that_nobody_has_set_reaches_as_far_as_the_path() {
    // 260 ms, as by satellite.
    let cables = [cable(20, millis(260), Loss::None, 64)];
    for one_clock in [true, false] {
        let config = Config { delivery: Delivery::DEADLINE, one_clock, ..Config::default() };
        let mut chain = Chain::new(&config, &cables, 1);
        let given = offer(&mut chain, 100, millis(100), Duration::from_secs(10));
        chain.run_for(Duration::from_secs(1));
        let arrived = ages(&mut chain);
        assert!(arrived.len() + 10 > given, "{} of {given}", arrived.len());
        assert!(greatest(&arrived) <= millis(521 + 1), "{:?}", greatest(&arrived));
    }
    let mut chain = Chain::new(&btp(millis(200), 3), &cables, 1);
    offer(&mut chain, 100, millis(100), Duration::from_secs(5));
    chain.run_for(Duration::from_secs(1));
    assert_eq!((chain.arrived.len(), chain.counter(1, "units_received") > 40), (0, true));
    assert_eq!(chain.counter(1, "units_late"), chain.counter(1, "units_received"));
}

/// The share of what is offered to a chain of satellite hops, 260 ms each one way, that arrives when it is known how
/// far they reach.
fn share_by_satellite(config: &Config, hops: usize, percent: f64) -> f64 {
    let cables = vec![cable(20, millis(260), independent(percent), 64); hops];
    let mut chain = Chain::new(config, &cables, 1);
    offer(&mut chain, 1000, millis(20), Duration::from_secs(10));
    chain.run_for(Duration::from_secs(5));
    chain.arrived.clear();
    let given = offer(&mut chain, 1000, millis(20), Duration::from_secs(40));
    chain.run_for(Duration::from_secs(5));
    ages(&mut chain).len() as f64 / given as f64
}

#[test]
fn a_deadline_that_nobody_has_set_leaves_time_to_repair_what_satellite_hops_lose() {
    // A hop is repaired once. Of a batch that lacks one packet more than its repairs, several symbols are unknown.
    for (percent, share) in [(1.0, 0.995), (5.0, 0.98), (10.0, 0.95), (20.0, 0.82)] {
        for hops in [1, 2] {
            for (one_clock, config) in [
                (true, Config::default()),
                (false, Config::default()),
                (true, Config::strict()),
                (false, Config::strict()),
            ] {
                let config = Config { delivery: Delivery::DEADLINE, one_clock, ..config };
                let arrived = share_by_satellite(&config, hops, percent);
                println!(
                    "{percent} % on {hops} hops, {:?}, one clock {one_clock}: {arrived}",
                    config.feedback
                );
                assert!(arrived > share, "{percent} % on {hops} hops, {:?}: {arrived}", config.feedback);
            }
        }
    }
}

#[test]
fn ages_are_known_although_clocks_differ() {
    let hours = |hours: u64| Duration::from_secs(3600 * hours);
    for ahead in [[hours(5), hours(0), hours(30)], [hours(0), hours(300), hours(1)]] {
        for loss in [0.0, 10.0] {
            let config = Config { one_clock: false, ..btp(millis(60), 3) };
            let cables = vec![cable(20, millis(20), independent(loss), 64); 2];
            let mut chain = Chain::new(&config, &cables, 1);
            chain.set_clocks(&ahead);
            // What a hop's round trip is takes one of each to find out.
            offer(&mut chain, 1000, millis(5), millis(500));
            chain.arrived.clear();
            let given = offer(&mut chain, 1000, millis(5), Duration::from_secs(3));
            // An overload for a while: all that is too old is dropped.
            offer(&mut chain, 1000, Duration::from_micros(200), Duration::from_secs(1));
            chain.run_for(millis(500));
            let ages = ages(&mut chain);
            // A hop's forward direction takes longer than its backward direction by some 0.4 ms, which half of the
            // round trip does not tell.
            assert!(greatest(&ages) <= millis(61), "{:?}", greatest(&ages));
            assert!(ages.len() * 10 > given * 8, "{} of {given}", ages.len());
        }
    }
}

#[test]
fn a_path_that_is_gone_does_not_make_what_comes_by_another_seem_younger() {
    for (after, share) in [(100, 0.0), (150, 0.95)] {
        let config = Config { one_clock: false, split: true, ..btp(millis(after), 3) };
        let places = [
            Place::Edge(vec![1, 2]),
            Place::Relay(vec![0], vec![3]),
            Place::Relay(vec![0], vec![3]),
            Place::Edge(vec![1, 2]),
        ];
        // Paths of 10 and of 110 ms.
        let hop = |delay| cable(20, millis(delay), Loss::None, 64);
        let cables = [(0, 1, hop(5)), (0, 2, hop(55)), (1, 3, hop(5)), (2, 3, hop(55))];
        let mut chain = Chain::graph(&config, &places, &cables, 1);
        chain.set_clocks(&[5, 0, 30, 70].map(|minutes| Duration::from_secs(60 * minutes)));
        offer(&mut chain, 1000, millis(5), Duration::from_secs(1));
        chain.arrived.clear();
        let given = offer(&mut chain, 1000, millis(5), Duration::from_secs(15));
        let both = ages(&mut chain);
        assert!(both.len() * 3 > given, "{} of {given}", both.len());
        assert!(greatest(&both) <= millis(after + 1), "{after} ms: {:?}", greatest(&both));
        for end in [0, 2] {
            chain.change(end, None, &Change::Down);
        }
        offer(&mut chain, 1000, millis(5), Duration::from_secs(5));
        chain.arrived.clear();
        let given = offer(&mut chain, 1000, millis(5), Duration::from_secs(50));
        let slow = ages(&mut chain);
        println!("{after} ms: {} of {given}, {:?}", slow.len(), greatest(&slow));
        assert!(greatest(&slow) <= millis(after + 1), "{after} ms: {:?}", greatest(&slow));
        assert!(slow.len() as f64 >= share * given as f64, "{after} ms: {} of {given}", slow.len());
    }
}

#[test]
fn a_path_that_becomes_slower_is_not_taken_for_a_queue_or_for_what_it_was() {
    let config = Config { one_clock: false, ..btp(millis(100), 3) };
    let mut chain = Chain::new(&config, &vec![cable(20, millis(10), Loss::None, 64); 3], 1);
    chain.set_clocks(&[5, 0, 30, 70].map(|minutes| Duration::from_secs(60 * minutes)));
    offer(&mut chain, 1000, millis(5), Duration::from_secs(10));
    for link in 0..3 {
        chain.change(link, None, &Change::Delay(millis(25)));
    }
    chain.run_for(millis(200));
    chain.arrived.clear();
    let given = offer(&mut chain, 1000, millis(5), Duration::from_secs(60));
    let ages = ages(&mut chain);
    println!("{} of {given}, {:?}", ages.len(), greatest(&ages));
    assert!(greatest(&ages) <= millis(101), "{:?}", greatest(&ages));
    assert!(ages.len() * 20 > given * 19, "{} of {given}", ages.len());
}

#[test]
fn a_stamp_that_is_damaged_costs_its_symbol_and_no_other() {
    const MARK: &[u8; 8] = b"a unit: ";
    for base in [Config::default(), Config::strict()] {
        for one_clock in [true, false] {
            let config = Config {
                one_clock,
                delivery: btp(millis(200), Delivery::UNTIL_DEADLINE).delivery,
                ..base.clone()
            };
            let mut chain = Chain::new(&config, &vec![cable(20, millis(9), Loss::None, 64); 3], 1);
            let (flips, mut seen) = (std::rc::Rc::new(std::cell::Cell::new(0)), 0_usize);
            let flipped = flips.clone();
            chain.tamper = Some(Box::new(move |from, datagram| {
                // The stamp, the time that the application writes, and the mark.
                let unit = datagram.windows(MARK.len()).position(|bytes| bytes == MARK);
                let Some(stamp) = unit.and_then(|mark| mark.checked_sub(12)).filter(|_| from < 3) else {
                    return;
                };
                seen += 1;
                if seen.is_multiple_of(100) && seen > 1000 {
                    let bit = seen / 100 * 7 % 32;
                    datagram[stamp + bit / 8] ^= 0x80 >> (bit % 8);
                    flipped.set(flipped.get() + 1);
                }
            }));
            let mut given = 0;
            while chain.now < Instant::ZERO + Duration::from_secs(20) {
                let unit = [&chain.now.as_nanos().to_be_bytes(), &MARK[..], &[1; 900]].concat();
                chain.give(0, &unit);
                given += 1;
                chain.run_for(millis(2));
            }
            chain.run_for(Duration::from_secs(2));
            let (ages, flips) = (ages(&mut chain), flips.get());
            println!(
                "{:?}, one clock {one_clock}: {} of {given}, {flips} damaged, {:?}",
                config.feedback,
                ages.len(),
                greatest(&ages)
            );
            assert!(flips > 100, "{flips}");
            assert!(ages.len() + flips >= given, "{} of {given}, {flips} damaged", ages.len());
            assert!(greatest(&ages) <= millis(201), "{:?}", greatest(&ages));
        }
    }
}

#[test]
fn all_that_was_granted_arrives_over_slow_links() {
    const UNITS: usize = 46;
    for (kbit, percent) in [(40, 0.0), (100, 0.0), (100, 5.0), (400, 0.0), (400, 10.0), (2000, 0.0)] {
        for hops in [1, 3] {
            for base in [Config::default(), Config::strict()] {
                let config = Config { unit_credit: true, delivery: Delivery::DEADLINE, ..base };
                let mut link = cable(1, millis(5), independent(percent), 64);
                link.forward.rate = Some(Rate::from_bits_per_sec(kbit * 1000));
                link.backward.rate = link.forward.rate;
                let mut chain = Chain::new(&config, &vec![link; hops], 1);
                // What nobody has granted is taken while there is room, and with it the first grants come.
                chain.give(0, &[0; 1400]);
                for _ in 1..UNITS {
                    while chain.credit[0] == 0 {
                        assert!(chain.now < Instant::ZERO + Duration::from_secs(60));
                        chain.run_for(millis(1));
                    }
                    chain.credit[0] -= 1;
                    chain.give(0, &[1; 1400]);
                }
                chain.run_for(Duration::from_secs(60));
                let (arrived, far) = (chain.arrived.len(), chain.last());
                assert_eq!(
                    (arrived, chain.counter(0, "units_expired"), chain.counter(far, "units_late")),
                    (UNITS, 0, 0),
                    "{kbit} kbit/s, {percent} %, {hops} hops, {:?}",
                    config.feedback
                );
            }
        }
    }
}

/// A chain of equal hops, what is offered to it and how it delivers.
#[derive(Clone, Copy, Debug)]
struct Case {
    after: u64,
    /// Of the whole path, in milliseconds.
    delay: u64,
    /// Loss of each hop.
    percent: f64,
    hops: usize,
    /// The natural logarithm of each hop's kbit/s.
    rate: f64,
    rounds: u8,
    size: usize,
    /// Load that is offered, as a share of the rate.
    load: f64,
    ranks: bool,
    outage: bool,
    seed: u64,
}

impl Case {
    fn run(self) -> Chain {
        let Self { after, delay, percent, hops, rate, rounds, size, load, ranks, outage, seed } = self;
        let bits = rate.exp() * 1000.0;
        let hop = Direction {
            rate: Some(Rate::from_bits_per_sec(bits as u64)),
            delay: millis(delay) / hops as u64,
            loss: independent(percent),
            queue: Queue::DropTail { limit: QueueLimit::Packets(64) },
            ..Direction::default()
        };
        let cables = vec![Cable { forward: hop.clone(), backward: hop, ..Cable::default() }; hops];
        let base = btp(millis(after), rounds);
        let config = if ranks {
            base
        } else {
            Config { delivery: base.delivery, one_clock: true, ..Config::strict() }
        };
        let mut chain = Chain::new(&config, &cables, seed);
        let gap =
            Duration::from_secs_f64((size + 80) as f64 * 8.0 / (bits * load)).max(Duration::from_micros(200));
        let span = (gap * 1000).min(Duration::from_secs(20));
        offer(&mut chain, size, gap, span);
        if outage {
            chain.change(hops / 2, None, &Change::Down);
            offer(&mut chain, size, gap, span.min(Duration::from_secs(3)));
            chain.change(hops / 2, None, &Change::Up);
        }
        offer(&mut chain, size, gap, span / 2);
        chain
    }
}

/// A failure of relays, found where they passed on what their source had given up long before: nothing was handed up
/// late, but they went on sending it for 35 to 45 s after the last unit was given.
fn falls_silent(case: Case) {
    let mut chain = case.run();
    let given = chain.now;
    while !chain.nodes.iter().all(|node| node.deadline().is_none()) {
        assert!(chain.now < given + Duration::from_secs(20), "{}", chain.nodes[1].state());
        chain.run_for(millis(100));
    }
    assert!(greatest(&ages(&mut chain)) <= millis(case.after));
    let (last, far) = (chain.last() - 1, chain.last());
    assert_eq!(chain.counter(far, "units_late"), chain.counter(far, "units_received"));
    assert!((1..=last).any(|relay| chain.counter(relay, "batches_given_up") > 0));
}

/// A chain without rank feedback whose repairs are left to the source.
const SLOW: Case = Case {
    after: 16,
    delay: 169,
    percent: 23.364702233205737,
    hops: 4,
    rate: 3.7679306518694813,
    rounds: 0,
    size: 860,
    load: 1.024079192448242,
    ranks: false,
    outage: false,
    seed: 928904582919368662,
};

#[test]
fn a_relay_does_not_pass_on_what_a_deadline_shorter_than_the_path_has_made_late() {
    falls_silent(SLOW);
}

#[test]
fn a_relay_does_not_pass_on_what_waited_for_an_outage() {
    let (delay, percent, hops, rate) = (19, 43.880769837653816, 6, 3.4657359027997265);
    let (size, load, outage, seed) = (81, 1.0050003426088694, true, 15958549488111132092);
    falls_silent(Case { after: 300, delay, percent, hops, rate, size, load, outage, seed, ..SLOW });
}

#[test]
fn a_combination_is_not_read_for_a_stamp_and_kept_until_a_time_that_is_none() {
    let (delay, percent, hops, rate) = (226, 14.144845682121558, 4, 3.4657359027997265);
    let (size, load, seed) = (61, 1.0699595278321872, 2843311142743157487);
    falls_silent(Case { after: 241, delay, percent, hops, rate, size, load, seed, ..SLOW });
}

#[test]
fn six_slow_hops_forget_what_is_late_before_another_takes_it() {
    let (delay, percent, hops, rate) = (6, 14.42169012556453, 6, 3.6506016326556874);
    let (size, load, seed) = (282, 1.064232489806031, 2332357380988212446);
    falls_silent(Case { after: 296, delay, percent, hops, rate, size, load, seed, ..SLOW });
}

#[test]
fn a_hop_that_loses_half_and_is_overloaded_does_not_queue_what_is_late() {
    let (delay, percent, hops, rate) = (90, 46.587191940318014, 3, 3.558740718142846);
    let (size, load, seed) = (571, 1.3171180088084622, 2532097774323137320);
    falls_silent(Case { after: 233, delay, percent, hops, rate, size, load, seed, ..SLOW });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_deadline_is_missed_over_any_path(
        after in 10_u64..500,
        (delay, percent, hops, rate) in (1_u64..260, 0.0..50.0_f64, 1_usize..=6, 32.0_f64.ln()..300_000.0_f64.ln()),
        rounds in prop::sample::select(vec![0, 1, 3, Delivery::UNTIL_DEADLINE]),
        (size, load) in (8_usize..1433, 0.05..1.5_f64),
        (ranks, outage, seed) in any::<(bool, bool, u64)>(),
    ) {
        let mut chain =
            Case { after, delay, percent, hops, rate, rounds, size, load, ranks, outage, seed }.run();
        chain.run_for(Duration::from_secs(3));
        let latest = greatest(&ages(&mut chain));
        prop_assert!(latest <= millis(after), "{latest:?}");
        chain.run_for(Duration::from_secs(30));
        prop_assert!(chain.nodes.iter().all(|node| node.deadline().is_none()), "{}", chain.nodes[0].state());
    }
}
