//! Bytes arrive intact and complete, whatever the path does.

use super::pair::{CLIENT, Direction, Pair, SERVER, ms};
use crate::tcp::{Config, Congestion};
use hopcast_core::Duration;

fn both() -> [Config; 2] {
    [Config::default(), Config { congestion: Congestion::Bbr, ..Config::default() }]
}

fn transfer(seed: u64, config: Config, direction: Direction, bytes: u64, limit: u64) -> Pair {
    let mut pair = Pair::new(seed, config, direction);
    pair.accept = (1000, true);
    pair.open(bytes, true);
    let finished = pair.run_to_the_end(Duration::from_secs(limit));
    assert!(finished, "at {}: {:?} {:?}", pair.now, pair.client(), pair.apps[SERVER]);
    assert_eq!(pair.server().read, bytes);
    assert_eq!(pair.client().read, 1000);
    assert_eq!(pair.client().transmitted, bytes);
    assert!(!pair.client().reset && !pair.server().reset);
    pair
}

#[test]
fn megabytes_cross_a_clean_path() {
    for config in both() {
        let mut pair = transfer(1, config, Direction { queue: 5000, ..Direction::default() }, 20_000_000, 10);
        assert_eq!(pair.counter(CLIENT, "retransmits"), 0);
        assert_eq!(pair.counter(CLIENT, "connections_opened"), 1);
        assert_eq!(pair.counter(SERVER, "connections_accepted"), 1);
        assert!(!pair.run_for(Duration::from_secs(100)), "nothing is left to do after TIME-WAIT");
    }
}

#[test]
fn every_byte_crosses_a_lossy_path() {
    for config in both() {
        for (loss, bytes, limit) in [(0.01, 5_000_000, 60), (0.1, 1_000_000, 600), (0.3, 200_000, 4000)] {
            // At 30 % half of all seeds take less than 2,100 s with CUBIC, this one 1,716 s.
            transfer(4, config.clone(), Direction { loss, ..Direction::default() }, bytes, limit);
        }
    }
}

#[test]
fn every_byte_crosses_a_path_that_reorders_duplicates_and_corrupts() {
    for config in both() {
        for sack in [true, false] {
            let direction = Direction {
                jitter: ms(4),
                duplicate: 0.05,
                corrupt: 0.02,
                loss: 0.02,
                ..Direction::default()
            };
            let config = Config { sack, ..config.clone() };
            let pair = transfer(3, config, direction, 2_000_000, 300);
            assert!(pair.counter(SERVER, "checksum_errors") > 10);
        }
    }
}

#[test]
fn the_same_run_twice_is_the_same_run() {
    let run = || {
        let direction = Direction { loss: 0.05, jitter: ms(1), ..Direction::default() };
        let config = Config { congestion: Congestion::Bbr, ..Config::default() };
        let mut pair = Pair::new(9, config, direction);
        pair.sent = Some(Vec::new());
        pair.open(500_000, true);
        pair.run_for(Duration::from_secs(30));
        pair.sent.unwrap()
    };
    assert!(run() == run());
}

#[test]
fn the_last_segment_of_what_was_written_says_push() {
    // RFC 9293 section 3.9.1; Linux `tcp_push`.
    let mut pair = super::pair::Pair::new(9, Config::default(), super::pair::Direction::default());
    let id = pair.open(0, false);
    pair.run_for(ms(100));
    pair.sent = Some(Vec::new());
    pair.write(super::pair::CLIENT, id, 3000);
    let pushed: Vec<_> = pair
        .sent
        .take()
        .unwrap()
        .iter()
        .map(|(_, _, packet)| super::pair::read(packet))
        .map(|(header, payload)| (payload.len(), header.has(crate::tcp::wire::PSH)))
        .collect();
    assert_eq!(pushed, [(1448, false), (1448, false), (104, true)]);
}

#[test]
fn an_item_at_a_port_that_there_is_not_is_counted() {
    use hopcast_core::{Buffer, Item, Machine, Port};
    let mut pair = super::pair::Pair::new(10, Config::default(), super::pair::Direction::default());
    for count in 1..=2 {
        let packet = Item::Packet(Buffer::copy_from(&[0; 40]));
        pair.tcp[0].handle(pair.now, Port::Below(1), packet);
        assert_eq!(pair.counter(0, "wrong_items"), count);
    }
}
