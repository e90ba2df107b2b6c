//! Connections end: one direction, both, at once, by force.

use super::pair::{CLIENT, Direction, Pair, SERVER, forge, ms, read};
use crate::tcp::Config;
use crate::tcp::wire::{ACK, FIN, Header, RST, SYN};
use hopcast_core::{Duration, StreamId, StreamItem};

#[test]
fn one_direction_ends_and_the_other_goes_on() {
    let mut pair = Pair::new(1, Config::default(), Direction::default());
    pair.accept = (0, false);
    let id = pair.open(10_000, true);
    pair.run_for(Duration::from_secs(1));
    assert!(pair.server().peer_finished && !pair.client().peer_finished);
    let server = pair.accepted().unwrap();
    let app = pair.apps[SERVER].get_mut(&server).unwrap();
    (app.to_write, app.finish) = (500_000, true);
    pair.write(SERVER, server, 0);
    assert!(pair.run_to_the_end(Duration::from_secs(5)));
    assert_eq!(pair.client().read, 500_000);
    pair.run_for(Duration::from_secs(1));
    assert!(pair.tcp[CLIENT].connection(id).is_none() && pair.tcp[SERVER].connection(server).is_none());
}

#[test]
fn both_ends_may_close_at_once() {
    let mut pair = Pair::new(2, Config::default(), Direction::default());
    pair.accept = (0, false);
    let id = pair.open(0, false);
    pair.run_for(ms(100));
    let server = pair.accepted().unwrap();
    pair.give(CLIENT, id, StreamItem::Finish);
    pair.give(SERVER, server, StreamItem::Finish);
    pair.run_for(Duration::from_secs(1));
    assert!(pair.client().peer_finished && pair.server().peer_finished);
    assert!(!pair.run_for(Duration::from_secs(100)));
}

#[test]
fn a_reset_from_above_ends_both_ends() {
    let mut pair = Pair::new(3, Config::default(), Direction::default());
    let id = pair.open(u64::MAX, false);
    pair.run_for(ms(500));
    pair.apps[CLIENT].get_mut(&id).unwrap().reset = true;
    pair.give(CLIENT, id, StreamItem::Reset);
    // It waits behind what is in the queue.
    pair.run_for(ms(200));
    assert!(pair.server().reset);
    assert!(!pair.run_for(Duration::from_secs(1)));
}

#[test]
fn a_lost_fin_and_a_lost_last_acknowledgement_come_again() {
    for seed in 0..30 {
        let mut pair = Pair::new(seed, Config::default(), Direction { loss: 0.4, ..Direction::default() });
        pair.open(10, true);
        pair.run_while(Duration::from_secs(2000), |pair| !pair.is_over() && !pair.client().reset);
        assert!(pair.client().reset || pair.is_over());
        pair.run_for(Duration::from_secs(2000));
        assert!(pair.tcp[SERVER].connection(StreamId(1)).is_none(), "seed {seed}");
    }
}

#[test]
fn writing_more_than_was_granted_is_the_end_of_the_stream() {
    let mut pair = Pair::new(4, Config::default(), Direction::default());
    let id = pair.open(0, false);
    pair.run_for(ms(100));
    let too_much = hopcast_core::Buffer::zeroed((4 << 20) + 1);
    pair.give(CLIENT, id, StreamItem::Data(too_much));
    assert!(pair.client().reset);
    assert_eq!(pair.counter(CLIENT, "credit_violations"), 1);
}

/// A connection that the client has closed first, and the last segment that the client has sent.
fn in_time_wait(seed: u64) -> (Pair, Header) {
    let mut pair = Pair::new(seed, Config::default(), Direction::default());
    pair.sent = Some(Vec::new());
    pair.open(1000, true);
    assert!(pair.run_to_the_end(Duration::from_secs(1)));
    pair.run_for(ms(100));
    let sent = pair.sent.take().unwrap();
    let (_, _, packet) = sent.iter().rfind(|(_, host, _)| *host == CLIENT).unwrap();
    let last = read(packet).0;
    assert_eq!(last.flags, ACK, "of the server's FIN");
    (pair, last)
}

/// The client's answer to a segment of the server's: flags, sequence number, acknowledgement.
fn answer(pair: &mut Pair, last: &Header, flags: u8, seq: u32) -> Option<Header> {
    pair.sent = Some(Vec::new());
    let header =
        Header { source: 80, destination: last.source, seq, ack: last.seq, flags, ..Header::default() };
    let client = std::net::SocketAddr::new([10, 0, 0, 1].into(), last.source);
    pair.inject(CLIENT, forge("10.0.0.2:80".parse().unwrap(), client, &header, &[]));
    pair.sent.take().unwrap().first().map(|(_, _, packet)| read(packet).0)
}

#[test]
fn in_time_wait_a_fin_or_an_old_syn_is_acknowledged_and_nothing_else_is_answered() {
    // RFC 9293 section 3.10.7.4; RFC 1337 for resets.
    let (mut pair, last) = in_time_wait(6);
    let fin = last.ack.wrapping_sub(1);
    for flags in [FIN | ACK, SYN, SYN | ACK] {
        let found = answer(&mut pair, &last, flags, fin).expect("an answer");
        assert_eq!((found.flags, found.seq, found.ack), (ACK, last.seq, last.ack));
    }
    // A SYN-ACK opens nothing, however new it is.
    assert_eq!(answer(&mut pair, &last, SYN | ACK, last.ack.wrapping_add(1000)).unwrap().flags, ACK);
    for flags in [ACK, RST, RST | ACK, FIN | RST, SYN | RST] {
        assert_eq!(answer(&mut pair, &last, flags, fin), None);
        assert_eq!(answer(&mut pair, &last, flags, last.ack.wrapping_add(1000)), None);
    }
    assert_eq!(answer(&mut pair, &last, FIN | ACK, fin).unwrap().flags, ACK, "it is still there");
}

#[test]
fn time_wait_lasts_sixty_seconds_and_its_clock_goes_on() {
    // Linux TCP_TIMEWAIT_LEN; RFC 7323.
    let (mut pair, last) = in_time_wait(7);
    let fin = last.ack.wrapping_sub(1);
    let value = |header: &Header| header.options.timestamps.unwrap().value;
    pair.run_until(pair.now + Duration::from_secs(59));
    let found = answer(&mut pair, &last, FIN | ACK, fin).unwrap();
    assert_eq!(found.flags, ACK);
    let elapsed = value(&found).wrapping_sub(value(&last));
    assert!((59_000..=59_150).contains(&elapsed), "{elapsed} ms");
    pair.run_for(Duration::from_secs(1));
    assert_eq!(answer(&mut pair, &last, FIN | ACK, fin).unwrap().flags, RST, "nobody knows of it");
}

#[test]
fn a_new_syn_takes_the_place_of_a_connection_in_time_wait() {
    // RFC 6191. The server closes first here.
    let mut pair = Pair::new(8, Config::default(), Direction::default());
    pair.accept = (10, true);
    let id = pair.open(0, false);
    pair.run_for(ms(100));
    pair.sent = Some(Vec::new());
    pair.apps[CLIENT].get_mut(&id).unwrap().finish = true;
    pair.write(CLIENT, id, 0);
    pair.run_for(ms(100));
    let sent = pair.sent.take().unwrap();
    let (_, _, packet) = sent.iter().rfind(|(_, host, _)| *host == CLIENT).unwrap();
    let last = read(packet).0;
    let ends = (std::net::SocketAddr::new([10, 0, 0, 1].into(), last.source), "10.0.0.2:80".parse().unwrap());
    let mut flags = |offset: u32| {
        pair.sent = Some(Vec::new());
        let seq = last.seq.wrapping_add(offset);
        let syn = Header { source: last.source, destination: 80, seq, flags: SYN, ..Header::default() };
        pair.inject(SERVER, forge(ends.0, ends.1, &syn, &[]));
        read(&pair.sent.take().unwrap()[0].2).0.flags
    };
    assert_eq!(flags(0), ACK, "no newer than the FIN");
    assert_eq!(flags(1000), SYN | ACK);
}
