//! Whatever the links do: all that is delivered is right, and where delivery is reliable, all is delivered.

use hopcast_core::Machine as _;
use proptest::prelude::*;

use super::apps::Apps;
use super::chain::address;
use super::*;

fn share(limit: f64) -> impl Strategy<Value = Fraction> {
    (0.0..limit).prop_map(|share| Fraction::new(share).unwrap())
}

fn some_loss() -> impl Strategy<Value = Loss> {
    prop_oneof![
        Just(Loss::None),
        share(0.4).prop_map(Loss::Independent),
        (1.0..20.0, 1.5..12.0).prop_map(|(percent, burst)| bursts(percent, burst)),
        (share(0.03), 0.1..0.5_f64, share(0.3), 0.2..0.9_f64, share(0.02)).prop_map(
            |(p13, p31, p32, p23, p14)| {
                let fixed = |share| Fraction::new(share).unwrap();
                Loss::FourState { p13, p31: fixed(p31), p32, p23: fixed(p23), p14 }
            }
        ),
    ]
}

fn some_direction() -> impl Strategy<Value = Direction> {
    let numbers = (5_u64..200, 20_u64..10_000, 10_u32..200, 0_u64..2000);
    (numbers, some_loss(), any::<bool>(), share(0.05), share(0.05)).prop_map(
        |((mbit, delay, queue, jitter), loss, reorder, duplicate, corrupt)| Direction {
            rate: Some(Rate::from_mbit(mbit)),
            queue: Queue::DropTail { limit: QueueLimit::Packets(queue) },
            loss,
            delay: Duration::from_micros(delay),
            jitter: Jitter::Uniform(Duration::from_micros(jitter)),
            reorder,
            duplicate,
            corrupt,
            ..Direction::default()
        },
    )
}

fn some_cables() -> impl Strategy<Value = Vec<Cable>> {
    let some_cable = (some_direction(), some_direction());
    let some_cable =
        some_cable.prop_map(|(forward, backward)| Cable { forward, backward, ..Cable::default() });
    prop::collection::vec(some_cable, 1..4)
}

/// An event on the path.
#[derive(Clone, Debug)]
enum Trouble {
    Nothing,
    Restart(usize),
    Outage(usize),
    Rate(usize, u64),
}

fn some_trouble() -> impl Strategy<Value = Trouble> {
    prop_oneof![
        Just(Trouble::Nothing),
        any::<usize>().prop_map(Trouble::Restart),
        any::<usize>().prop_map(Trouble::Outage),
        (any::<usize>(), 2_u64..100).prop_map(|(link, mbit)| Trouble::Rate(link, mbit)),
    ]
}

fn some_config() -> impl Strategy<Value = Config> {
    (
        prop::sample::select(BatchSize::ALL.to_vec()),
        8_u16..300,
        prop::sample::select(vec![0.0, 0.3, 2.0]),
        200_u16..=1472,
    )
        .prop_map(|(batch, window, overhead, datagram)| Config {
            batch,
            window,
            overhead,
            datagram,
            ..Config::default()
        })
}

fn make_trouble(chain: &mut Chain, trouble: &Trouble) {
    match *trouble {
        Trouble::Nothing => {}
        Trouble::Restart(node) if chain.nodes.len() > 2 => chain.restart(1 + node % (chain.nodes.len() - 2)),
        Trouble::Restart(_) => {}
        Trouble::Outage(link) => {
            let link = link % chain.links.len();
            chain.change(link, None, &Change::Down);
            chain.run_for(Duration::from_millis(400));
            chain.change(link, None, &Change::Up);
        }
        Trouble::Rate(link, mbit) => {
            let link = link % chain.links.len();
            chain.change(link, None, &Change::Rate(Some(Rate::from_mbit(mbit))));
        }
    }
}

/// Gives numbered units of all lengths to an edge, with `troubles` in between; the numbers that arrive at the other.
fn send_units(chain: &mut Chain, troubles: &[Trouble], seconds: u64) -> (u32, Vec<u32>) {
    let mut given = 0_u32;
    for trouble in troubles {
        for i in 0..20 {
            let len = 4 + (given as usize * 379 + i) % 3000;
            let mut unit = vec![given as u8; len];
            unit[..4].copy_from_slice(&given.to_be_bytes());
            chain.give(0, &unit);
            given += 1;
            chain.run_for(Duration::from_millis(2));
        }
        make_trouble(chain, trouble);
    }
    chain.run_for(Duration::from_secs(seconds));
    let arrived = chain.arrived.drain(..).map(|(_, edge, unit)| {
        assert_ne!(edge, 0);
        let number = u32::from_be_bytes(unit[..4].try_into().unwrap());
        assert!(unit[4..].iter().all(|&byte| byte == number as u8), "unit {number} is as it was sent");
        number
    });
    (given, arrived.collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn all_units_arrive_in_order_where_delivery_is_reliable(
        config in some_config(),
        cables in some_cables(),
        troubles in prop::collection::vec(some_trouble(), 1..5),
        seed: u64,
    ) {
        // No unit is refused: it is not the queue that is tested.
        let config = Config { unit_delay: Duration::from_secs(100), ..config };
        let mut chain = Chain::new(&config, &cables, seed);
        let (given, arrived) = send_units(&mut chain, &troubles, 20);
        let state: Vec<_> = chain.nodes.iter().map(bats::Node::state).collect();
        prop_assert!(arrived.iter().copied().eq(0..given), "{} of {given}\n{}", arrived.len(), state.join("\n"));
    }

    #[test]
    fn units_that_arrive_are_in_order_where_it_is_not(
        config in some_config(),
        cables in some_cables(),
        troubles in prop::collection::vec(some_trouble(), 1..5),
        rounds in prop::sample::select(vec![0, 1, 2, 3, Delivery::UNTIL_DEADLINE]),
        after in 20_u64..300,
        seed: u64,
    ) {
        let delivery = Delivery::Deadline { after: Duration::from_millis(after), fixed: true, rounds };
        let mut chain = Chain::new(&Config { delivery, ..config }, &cables, seed);
        let (_, arrived) = send_units(&mut chain, &troubles, 3);
        prop_assert!(arrived.is_sorted_by(|one, other| one < other), "{arrived:?}");
        // It is idle when all is over.
        chain.run_for(Duration::from_secs(3));
        let idle = chain.nodes.iter().all(|node| node.deadline().is_none());
        let state: Vec<_> = chain.nodes.iter().map(bats::Node::state).collect();
        prop_assert!(idle, "{}", state.join("\n"));
    }

    #[test]
    fn all_of_every_stream_arrives(
        config in some_config(),
        cables in some_cables(),
        streams in prop::collection::vec((0..2_usize, 0_u64..60_000, 0_u64..60_000), 1..6),
        troubles in prop::collection::vec(some_trouble(), 1..3),
        seed: u64,
    ) {
        let mut chain = Chain::new(&config, &cables, seed);
        let mut apps = Apps::default();
        for &(edge, there, back) in &streams {
            apps.open(&mut chain, edge, there, back);
            apps.run(&mut chain, Duration::from_millis(10));
        }
        for trouble in &troubles {
            make_trouble(&mut chain, trouble);
            apps.run(&mut chain, Duration::from_millis(50));
        }
        apps.run(&mut chain, Duration::from_secs(20));
        let state: Vec<_> = chain.nodes.iter().map(bats::Node::state).collect();
        prop_assert_eq!(apps.complete, [streams.len(); 2], "{}", state.join("\n"));
    }

    #[test]
    fn no_datagram_harms_a_node(
        garbage in prop::collection::vec((any::<prop::sample::Index>(), prop::collection::vec(any::<u8>(), 0..80), 0..4), 1..200),
        config in some_config(),
        seed: u64,
    ) {
        let cables = vec![cable(20, Duration::from_millis(2), independent(5.0), 64); 2];
        let mut chain = Chain::new(&config, &cables, seed);
        let mut seen = Vec::new();
        for (i, (pick, bytes, kind)) in garbage.iter().enumerate() {
            chain.give(0, &[i as u8; 300]);
            chain.run_for(Duration::from_millis(3));
            seen.extend(chain.sent.drain(..).map(|(_, payload)| payload));
            let mut payload = if *kind == 0 { Buffer::copy_from(bytes) } else { pick.get(&seen).clone() };
            match kind {
                // Garbled, cut short, or as it was, later.
                1 => for (at, &byte) in bytes.iter().enumerate().take(4) {
                    let at = (at * 131 + usize::from(byte)) % payload.len();
                    payload[at] ^= byte;
                },
                2 => payload.truncate(bytes.len().min(payload.len())),
                _ => {}
            }
            let (to, from) = [(0, 1), (1, 0), (1, 2), (2, 1)][i % 4];
            chain.inject(to, address(from), payload);
        }
        chain.run_for(Duration::from_secs(1));
    }
}
