//! Connections open, are refused, and give up.

use super::pair::{CLIENT, Direction, Pair, SERVER, forge, ms, read};
use crate::tcp::Config;
use crate::tcp::config::SYN_BACKLOG;
use crate::tcp::wire::{ACK, Header, RST, SYN};
use hopcast_core::{Duration, Instant};

#[test]
fn three_segments_open_a_connection_and_agree_on_the_options() {
    let mut pair = Pair::new(1, Config::default(), Direction::default());
    pair.sent = Some(Vec::new());
    pair.accept = (0, false);
    pair.open(1, false);
    assert!(pair.run_while(ms(100), |pair| pair.apps[SERVER].is_empty()));
    let sent = pair.sent.take().unwrap();
    let headers: Vec<_> = sent.iter().map(|(_, host, packet)| (*host, read(packet).0)).collect();
    let [(0, syn), (1, answer), (0, third), ..] = &headers[..] else { panic!("{headers:?}") };
    assert_eq!((syn.flags, answer.flags, third.flags), (SYN, SYN | ACK, ACK));
    for header in [syn, answer] {
        assert_eq!(header.options.mss, Some(1460));
        assert_eq!(header.options.window_scale, Some(7), "6 MiB in units of 128 bytes");
        assert!(header.options.sack_permitted && header.options.timestamps.is_some());
    }
    assert!(pair.client().opened && pair.client().credit == 0 || pair.client().written == 1);
    let mss = pair.tcp[CLIENT].connection(hopcast_core::StreamId(0)).unwrap().sender.mss;
    assert_eq!(mss, 1448);
}

#[test]
fn connections_cross_ipv6_too() {
    let mut pair = Pair::new(2, Config::default(), Direction::default());
    pair.open_to("[fd00::2]:80".parse().unwrap(), 100_000, true);
    assert!(pair.run_to_the_end(Duration::from_secs(5)));
    assert_eq!(pair.server().read, 100_000);
}

#[test]
fn a_lost_syn_comes_again_after_one_second_then_two_then_four_and_at_last_the_peer_is_given_up() {
    let mut pair = Pair::new(3, Config::default(), Direction { loss: 1.0, ..Direction::default() });
    pair.sent = Some(Vec::new());
    pair.open(1, false);
    pair.run_for(Duration::from_secs(200));
    let at: Vec<_> = pair.sent.unwrap().iter().map(|(at, ..)| at.as_secs_f64()).collect();
    assert_eq!(at, [0.0, 1.0, 3.0, 7.0, 15.0, 31.0, 63.0]);
    assert!(pair.apps[CLIENT].values().all(|app| app.reset));
}

#[test]
fn nobody_listens_and_the_connection_is_refused() {
    let mut pair = Pair::new(4, Config::default(), Direction::default());
    pair.open_to("10.0.0.2:81".parse().unwrap(), 1, false);
    pair.run_for(ms(100));
    assert!(pair.client().reset);
    assert_eq!(pair.counter(CLIENT, "connections_refused"), 1);
}

#[test]
fn both_ends_may_open_at_once() {
    // The server's TCP listens, but this connection it opens itself, between the same two ports.
    use hopcast_core::{Item, Machine, Port, Seed, StreamId, StreamItem};
    let mut ends = [1u8, 2].map(|host| {
        let name = host.to_string();
        crate::tcp::Tcp::new(
            Config::default(),
            None,
            vec![[10, 0, 0, host].into()],
            Seed::new(5, 0).stream(&[&name], 0),
        )
    });
    let addresses = ["10.0.0.1:1000".parse().unwrap(), "10.0.0.2:2000".parse().unwrap()];
    let mut now = Instant::ZERO;
    for (i, tcp) in ends.iter_mut().enumerate() {
        let open = StreamItem::Open { local: addresses[i], remote: addresses[1 - i] };
        tcp.handle(now, Port::Above(0), Item::Stream(StreamId(0), open));
    }
    let mut opened = [false; 2];
    for _ in 0..6 {
        let mut crossing = Vec::new();
        for (i, tcp) in ends.iter_mut().enumerate() {
            while let Some((_, item)) = tcp.poll(now) {
                match item {
                    Item::Packet(packet) => crossing.push((1 - i, packet)),
                    Item::Stream(_, StreamItem::Opened) => opened[i] = true,
                    Item::Stream(_, StreamItem::Credit(_)) => {}
                    other => panic!("{other:?}"),
                }
            }
        }
        now += ms(1);
        for (to, packet) in crossing {
            ends[to].handle(now, Port::Below(0), Item::Packet(packet));
        }
    }
    assert_eq!(opened, [true; 2]);
}

#[test]
fn a_flood_of_syns_does_not_grow_without_bound() {
    let mut pair = Pair::new(6, Config::default(), Direction::default());
    for i in 0..10_000u32 {
        let source = format!("10.1.{}.{}:1000", i / 250, i % 250 + 1).parse().unwrap();
        let header = Header { source: 1000, destination: 80, seq: i, flags: SYN, ..Header::default() };
        pair.inject(SERVER, forge(source, "10.0.0.2:80".parse().unwrap(), &header, &[]));
    }
    assert_eq!(pair.counter(SERVER, "syns_dropped"), 10_000 - SYN_BACKLOG as u64);
    assert!(!pair.run_for(Duration::from_secs(200)), "they all are forgotten");
    assert!(pair.apps[SERVER].is_empty(), "nobody above hears of them");
    // A reset for each handshake given up would be one more packet to a forged address.
    let resets = |pair: &Pair| pair.counter(SERVER, "resets_sent");
    assert_eq!(resets(&pair), 0);
    let header = Header { source: 1, destination: 81, flags: ACK, ..Header::default() };
    pair.inject(SERVER, forge("10.0.0.1:1".parse().unwrap(), "10.0.0.2:81".parse().unwrap(), &header, &[]));
    assert_eq!(resets(&pair), 1);
    let header = Header { flags: RST, ..header };
    pair.inject(SERVER, forge("10.0.0.1:1".parse().unwrap(), "10.0.0.2:81".parse().unwrap(), &header, &[]));
    assert_eq!(resets(&pair), 1, "a reset is never answered");
}
