//! Connections open, are refused, and give up.

use super::pair::{CLIENT, Direction, Pair, SERVER, forge, ms, read};
use crate::tcp::Config;
use crate::tcp::wire::{ACK, Header, PSH, RST, SYN};
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
    assert_eq!(pair.counter(SERVER, "syns_dropped"), 10_000 - 256);
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

/// A segment from a client of one's own making at 10.0.0.1:1000 to the server.
fn to_server(pair: &mut Pair, header: Header, payload: &[u8]) -> Vec<Header> {
    pair.sent = Some(Vec::new());
    let header = Header { source: 1000, destination: 80, ..header };
    let ends = ("10.0.0.1:1000".parse().unwrap(), "10.0.0.2:80".parse().unwrap());
    pair.inject(SERVER, forge(ends.0, ends.1, &header, payload));
    pair.sent.take().unwrap().iter().map(|(_, _, packet)| read(packet).0).collect()
}

#[test]
fn a_wrong_acknowledgement_of_a_syn_is_answered_with_a_reset_and_the_handshake_goes_on() {
    // RFC 9293 section 3.10.7.3.
    let mut pair = Pair::new(7, Config::default(), Direction::default());
    pair.lose = Some(Box::new(|_, _, _| true));
    pair.sent = Some(Vec::new());
    pair.open(1, false);
    pair.run_for(ms(1));
    let syn = read(&pair.sent.take().unwrap()[0].2).0;
    let mut answers = |flags, ack| {
        pair.sent = Some(Vec::new());
        let header = Header { source: 80, destination: syn.source, seq: 7, ack, flags, ..Header::default() };
        let client = std::net::SocketAddr::new([10, 0, 0, 1].into(), syn.source);
        pair.inject(CLIENT, forge("10.0.0.2:80".parse().unwrap(), client, &header, &[]));
        let sent: Vec<_> = pair.sent.take().unwrap().iter().map(|(_, _, packet)| read(packet).0).collect();
        let answers: Vec<_> = sent.iter().map(|header| (header.flags, header.seq)).collect();
        (answers, pair.counter(CLIENT, "resets_sent"), pair.client().reset)
    };
    let next = syn.seq.wrapping_add(1);
    for (i, wrong) in [next.wrapping_sub(1), next.wrapping_add(1)].into_iter().enumerate() {
        let resets = i as u64 + 1;
        assert_eq!(answers(ACK, wrong), (vec![(RST, wrong)], resets, false));
        assert_eq!(answers(RST | ACK, wrong), (vec![], resets, false), "a reset is never answered");
    }
    assert_eq!(answers(RST, 0), (vec![], 2, false), "nor believed without the acknowledgement");
    assert_eq!(answers(RST | ACK, next), (vec![], 2, true), "refused");
}

#[test]
fn a_handshake_ends_with_the_right_acknowledgement_in_the_window_only() {
    // RFC 9293 section 3.10.7.4 in SYN-RECEIVED.
    let mut pair = Pair::new(8, Config::default(), Direction::default());
    pair.lose = Some(Box::new(|_, _, _| true));
    let syn = Header { seq: 5000, flags: SYN, window: 65_535, ..Header::default() };
    let answers = to_server(&mut pair, syn, &[]);
    assert_eq!((answers[0].flags, answers[0].ack), (SYN | ACK, 5001));
    let next = answers[0].seq.wrapping_add(1);
    let third = Header { seq: 5001, ack: next, flags: ACK, window: 65_535, ..Header::default() };
    let wrong = to_server(&mut pair, Header { ack: next.wrapping_add(9), ..third }, &[]);
    assert_eq!(wrong.iter().map(|h| (h.flags, h.seq)).collect::<Vec<_>>(), [(RST, next.wrapping_add(9))]);
    assert_eq!(pair.counter(SERVER, "resets_sent"), 1);
    to_server(&mut pair, Header { seq: 5000, ..third }, &[]);
    to_server(&mut pair, Header { seq: 4000, ..third }, b"old");
    to_server(&mut pair, Header { flags: PSH, ..third }, b"without an acknowledgement");
    assert!(pair.apps[SERVER].is_empty());
    // The third segment and the first data were lost; the next data bring the acknowledgement as well.
    to_server(&mut pair, Header { seq: 5101, ..third }, b"later");
    assert_eq!(pair.apps[SERVER].len(), 1);
    assert_eq!((pair.server().read, pair.counter(SERVER, "out_of_order_received")), (0, 1));
}

#[test]
fn a_syn_that_had_to_be_sent_more_than_twice_leaves_a_window_of_one_segment() {
    // Linux `tcp_init_transfer`: total_retrans > 1.
    for (lost, size) in [(0, 10), (1, 10), (2, 1)] {
        let mut pair = Pair::new(9, Config::default(), Direction::default());
        let mut syns = 0;
        pair.lose = Some(Box::new(move |host, header, _| {
            syns += u32::from(host == CLIENT && header.has(SYN));
            host == CLIENT && header.has(SYN) && syns <= lost
        }));
        pair.open(0, false);
        pair.run_for(Duration::from_secs(10));
        assert!(pair.client().opened);
        let window = pair.tcp[CLIENT].connection(hopcast_core::StreamId(0)).unwrap().sender.window.size;
        assert_eq!(window, size, "{lost} SYNs lost");
    }
}

#[test]
fn a_peer_that_names_no_mss_gets_that_of_the_standard_and_a_silly_one_is_not_believed() {
    // RFC 9293 section 3.7.1; RFC 6691.
    let found = |source: &str, destination: &str, mss| {
        let mut pair = Pair::new(10, Config::default(), Direction::default());
        let options = crate::tcp::wire::Options { mss, ..Default::default() };
        let header =
            Header { source: 1000, destination: 80, seq: 1, flags: SYN, options, ..Header::default() };
        pair.inject(SERVER, forge(source.parse().unwrap(), destination.parse().unwrap(), &header, &[]));
        pair.tcp[SERVER].connection(hopcast_core::StreamId(1)).unwrap().sender.mss
    };
    assert_eq!(found("10.0.0.1:1000", "10.0.0.2:80", None), 536);
    assert_eq!(found("[fd00::1]:1000", "[fd00::2]:80", None), 1220);
    assert_eq!(found("10.0.0.1:1000", "10.0.0.2:80", Some(1000)), 1000);
    assert_eq!(found("10.0.0.1:1000", "10.0.0.2:80", Some(9000)), 1460, "its own MTU");
    assert_eq!(found("10.0.0.1:1000", "10.0.0.2:80", Some(10)), 88);
}

#[test]
fn beyond_4096_connections_a_peer_is_refused_with_a_reset() {
    let mut pair = Pair::new(11, Config::default(), Direction::default());
    let answer = |pair: &mut Pair, port, header| {
        pair.sent = Some(Vec::new());
        let source = std::net::SocketAddr::new([10, 0, 0, 1].into(), port);
        let header = Header { source: port, destination: 80, window: 65_535, ..header };
        pair.inject(SERVER, forge(source, "10.0.0.2:80".parse().unwrap(), &header, &[]));
        pair.sent.take().unwrap().first().map(|(_, _, packet)| read(packet).0)
    };
    pair.lose = Some(Box::new(|_, _, _| true));
    pair.read_window = 0;
    let syn = Header { seq: 1, flags: SYN, ..Header::default() };
    for port in 1..=4096 {
        let seq = answer(&mut pair, port, syn).unwrap().seq;
        answer(&mut pair, port, Header { seq: 2, ack: seq.wrapping_add(1), flags: ACK, ..syn });
    }
    assert_eq!(pair.counter(SERVER, "connections_accepted"), 4096);
    let refusal = answer(&mut pair, 5000, syn).unwrap();
    assert_eq!((refusal.flags, refusal.seq, refusal.ack), (RST | ACK, 0, 2));
    assert_eq!(pair.counter(SERVER, "connections_refused"), 1);
}

#[test]
fn a_window_is_scaled_by_fourteen_bits_at_most() {
    // RFC 7323 section 2.3.
    let config = Config { receive_buffer: hopcast_core::Bytes::new(8 << 30), ..Config::default() };
    let mut pair = Pair::new(12, config, Direction::default());
    let options = crate::tcp::wire::Options { window_scale: Some(20), ..Default::default() };
    let answers = to_server(&mut pair, Header { seq: 1, flags: SYN, options, ..Header::default() }, &[]);
    assert_eq!(answers[0].options.window_scale, Some(14));
    let third =
        Header { seq: 2, ack: answers[0].seq.wrapping_add(1), flags: ACK, window: 2, ..Header::default() };
    to_server(&mut pair, third, &[]);
    let sender = &pair.tcp[SERVER].connection(hopcast_core::StreamId(1)).unwrap().sender;
    assert_eq!(sender.peer_window, 2 << 14);
}
