//! Nothing that arrives does harm: bytes at random, forged segments, numbers at their end, packets too big.

use super::pair::{CLIENT, Direction, Pair, SERVER, forge, ms, read};
use crate::tcp::wire::{ACK, FIN, Header, Options, RST, SYN};
use crate::tcp::{Config, Congestion};
use hopcast_core::{Buffer, Duration, Seed, StreamId};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

#[test]
fn sequence_numbers_wrap() {
    for initial in [u32::MAX, u32::MAX - 1, u32::MAX - 100_000, (1 << 31) - 50_000] {
        for congestion in [Congestion::Cubic, Congestion::Bbr] {
            let config = Config { congestion, ..Config::default() };
            let mut pair = Pair::new(1, config, Direction { loss: 0.01, ..Direction::default() });
            for tcp in &mut pair.tcp {
                tcp.set_initial_sequence(initial);
            }
            pair.accept = (300_000, true);
            pair.open(1_000_000, true);
            assert!(pair.run_to_the_end(Duration::from_secs(60)));
            assert_eq!((pair.client().read, pair.server().read), (300_000, 1_000_000));
        }
    }
}

#[test]
fn a_forged_reset_must_have_the_very_sequence_number() {
    let mut pair = Pair::new(2, Config::default(), Direction::default());
    pair.open(u64::MAX, false);
    pair.sent = Some(Vec::new());
    pair.run_for(ms(500));
    let sent = pair.sent.take().unwrap();
    let (_, _, packet) = sent.iter().rfind(|(_, host, _)| *host == CLIENT).unwrap();
    let (known, _) = read(packet);
    let (client, server) =
        (format!("10.0.0.1:{}", known.source).parse().unwrap(), "10.0.0.2:80".parse().unwrap());
    for offset in [10_000u32, 100_000, 1 << 20, 1 << 31, u32::MAX] {
        for flags in [RST, RST | ACK, SYN, SYN | ACK] {
            let header =
                Header { seq: known.seq.wrapping_add(offset), flags, options: Options::default(), ..known };
            pair.inject(SERVER, forge(client, server, &header, &[]));
        }
    }
    pair.run_for(ms(200));
    assert!(!pair.server().reset && !pair.client().reset);
    assert!((1..=4).contains(&pair.counter(SERVER, "challenge_acks")), "answered now and then");
}

#[test]
fn a_forged_acknowledgement_of_what_was_never_sent_is_ignored() {
    let mut pair = Pair::new(3, Config::default(), Direction::default());
    pair.open(3_000_000, true);
    pair.sent = Some(Vec::new());
    pair.run_for(ms(60));
    let sent = pair.sent.take().unwrap();
    let (_, _, packet) = sent.iter().rfind(|(_, host, _)| *host == SERVER).unwrap();
    let (known, _) = read(packet);
    let client = format!("10.0.0.1:{}", known.destination).parse().unwrap();
    for offset in [10_000_000u32, 1 << 30, 1 << 31, 3 << 30] {
        let mut options = known.options;
        options.sack.push((offset, offset.wrapping_add(5000)));
        let header = Header { ack: known.ack.wrapping_add(offset), options, ..known };
        pair.inject(CLIENT, forge("10.0.0.2:80".parse().unwrap(), client, &header, &[]));
    }
    assert!(pair.run_to_the_end(Duration::from_secs(5)));
    assert_eq!(pair.server().read, 3_000_000);
}

#[test]
fn a_packet_that_is_too_big_is_made_smaller() {
    for v6 in [false, true] {
        let mut pair = Pair::new(4, Config::default(), Direction { mtu: 1400, ..Direction::default() });
        pair.accept = (500_000, true);
        let remote = if v6 { "[fd00::2]:80" } else { "10.0.0.2:80" };
        pair.open_to(remote.parse().unwrap(), 500_000, true);
        pair.run_to_the_end(Duration::from_secs(5));
        assert_eq!((pair.client().read, pair.server().read), (500_000, 500_000), "v6 {v6}");
        assert_eq!(pair.counter(CLIENT, "mtu_reductions"), 1);
        assert_eq!(pair.counter(CLIENT, "rto_timeouts"), 0);
    }
}

#[test]
fn a_path_whose_mtu_shrinks_carries_on() {
    let mut pair = Pair::new(5, Config::default(), Direction::default());
    pair.open(5_000_000, true);
    pair.run_for(ms(200));
    pair.change(0, |way| way.mtu = 1000);
    assert!(pair.run_to_the_end(Duration::from_secs(10)));
    assert_eq!(pair.server().read, 5_000_000);
}

#[test]
fn tiny_segments_out_of_order_do_not_use_up_the_memory() {
    let mut pair = Pair::new(6, Config::default(), Direction::default());
    pair.accept = (0, false);
    pair.open(1, false);
    pair.sent = Some(Vec::new());
    pair.run_for(ms(100));
    let sent = pair.sent.take().unwrap();
    let (_, _, packet) = sent.iter().rfind(|(_, host, _)| *host == CLIENT).unwrap();
    let (known, _) = read(packet);
    let client = format!("10.0.0.1:{}", known.source).parse().unwrap();
    for i in 0..100_000u32 {
        let header = Header { seq: known.seq.wrapping_add(10 + 3 * i), flags: ACK, ..known };
        pair.inject(SERVER, forge(client, "10.0.0.2:80".parse().unwrap(), &header, b"x"));
    }
    assert!(pair.counter(SERVER, "receive_buffer_full") > 80_000);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_segments_never_panic(seed: u64, strange in proptest::collection::vec(
        (any::<bool>(), any::<u8>(), -100_000i64..100_000, -100_000i64..100_000, any::<u16>(),
         proptest::collection::vec(any::<u8>(), 0..40), 0usize..1500, any::<u32>()), 1..60))
    {
        let mut pair = Pair::new(seed, Config::default(), Direction::default());
        pair.open(u64::MAX, false);
        pair.sent = Some(Vec::new());
        pair.run_for(ms(50));
        pair.change(0, |way| way.loss = 0.02);
        let sent = pair.sent.take().unwrap();
        let (_, _, packet) = sent.iter().rfind(|(_, host, _)| *host == CLIENT).unwrap();
        let (known, _) = read(packet);
        let (client, server) =
            (format!("10.0.0.1:{}", known.source).parse().unwrap(), "10.0.0.2:80".parse().unwrap());
        for (to_server, flags, seq, ack, window, raw, len, stamp) in strange {
            let mut options = known.options;
            options.sack.push((known.ack.wrapping_add(ack as u32), known.ack.wrapping_add(stamp)));
            if let Some(timestamps) = &mut options.timestamps {
                timestamps.echo = timestamps.echo.wrapping_add(stamp % 7);
            }
            let near = if to_server { (known.seq, known.ack) } else { (known.ack, known.seq) };
            let header = Header {
                source: if to_server { known.source } else { 80 },
                destination: if to_server { 80 } else { known.source },
                seq: near.0.wrapping_add(seq as u32),
                ack: near.1.wrapping_add(ack as u32),
                // A reset would end it all too soon.
                flags: flags & !(RST | FIN),
                window,
                options,
            };
            let (from, to, host) = if to_server { (client, server, SERVER) } else { (server, client, CLIENT) };
            // Forged data would be delivered: the harness checks that they are the other application's.
            let _ = len;
            pair.inject(host, forge(from, to, &header, &[]));
            pair.inject(host, Buffer::copy_from(&raw));
            pair.run_for(ms(3));
        }
        pair.run_for(Duration::from_secs(3));
    }

    #[test]
    fn arbitrary_bytes_with_a_valid_checksum_never_panic(seed: u64, len in 20usize..120) {
        let mut random = Seed::new(seed, 0).stream(&["bytes"], 0);
        let mut pair = Pair::new(seed, Config::default(), Direction::default());
        pair.open(100_000, false);
        pair.run_for(ms(30));
        for _ in 0..50 {
            let mut segment = vec![0; len];
            random.fill(&mut segment);
            let connection = pair.tcp[CLIENT].connection(StreamId(0)).unwrap();
            let port = connection.local.port();
            segment[0..2].copy_from_slice(&80u16.to_be_bytes());
            segment[2..4].copy_from_slice(&port.to_be_bytes());
            segment[4..8].copy_from_slice(&(connection.receiver.next() as u32).to_be_bytes());
            segment[8..12].copy_from_slice(&(connection.sender.una as u32).to_be_bytes());
            segment[12] = (random.below(11) as u8 + 5) << 4;
            // No data, or the harness would find them not to be the other application's.
            let header_len = usize::from(segment[12] >> 4) * 4;
            segment.resize(header_len, 1);
            segment[13] &= !(RST | FIN);
            segment[16..18].fill(0);
            let (from, to) = ([10, 0, 0, 2].into(), [10, 0, 0, 1].into());
            let sum = hopcast_wire::checksum::transport(from, to, 6, &segment);
            segment[16..18].copy_from_slice(&sum.to_be_bytes());
            let mut packet = Buffer::copy_from(&segment);
            hopcast_wire::ip::prepend(&mut packet, from, to, 6, 64, 0);
            pair.inject(CLIENT, packet);
        }
        pair.run_for(Duration::from_secs(1));
    }
}

#[test]
fn what_may_be_forged_is_answered_twice_a_second_at_most() {
    // RFC 5961 section 7; Linux tcp_invalid_ratelimit, 500 ms.
    let mut pair = Pair::new(8, Config::default(), Direction::default());
    pair.open(1, false);
    pair.sent = Some(Vec::new());
    pair.run_for(ms(500));
    let (_, _, packet) = pair.sent.take().unwrap().into_iter().rfind(|(_, host, _)| *host == CLIENT).unwrap();
    let known = read(&packet).0;
    let client = std::net::SocketAddr::new([10, 0, 0, 1].into(), known.source);
    let header = Header { seq: known.seq.wrapping_add(5), flags: RST, options: Options::default(), ..known };
    let mut answered = |wait| {
        let until = pair.now + ms(wait);
        pair.run_until(until);
        pair.now = until;
        pair.inject(SERVER, forge(client, "10.0.0.2:80".parse().unwrap(), &header, &[]));
        pair.counter(SERVER, "challenge_acks")
    };
    assert_eq!([0, 0, 499, 1, 499, 1].map(&mut answered), [1, 1, 1, 2, 2, 3]);
}
