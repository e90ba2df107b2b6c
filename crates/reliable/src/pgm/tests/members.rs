//! Members that come late, start again, share a group, end, are polled, or cannot follow.

use hopcast_core::{Duration, Rate};

use super::net::{Link, Net, address, contents, group, tsi};
use super::transfers::{datagrams, file, files, lossy, source, without_parity};
use crate::pgm::wire::{Body, Packet, Poll, PollKind};
use crate::pgm::{Config, Join, RateControl, ReceiverConfig, Session, SourceConfig};

#[test]
fn who_comes_late_gets_all_of_the_file_that_is_being_sent() {
    for config in [source(), without_parity()] {
        let links = [Link::default(), lossy(0.1), lossy(0.1)];
        let mut net = Net::star(1, config, &ReceiverConfig::default(), &links);
        let sent = contents(1_000_000, 1);
        file(&mut net, 0, &sent);
        net.members[2].is_cut = true;
        net.run(Duration::from_millis(500), |_| false);
        net.members[2].is_cut = false;
        let all = |net: &Net| (1..=2).all(|member| files(net, member) == [sent.clone()]);
        assert!(net.run(Duration::from_secs(30), all));
    }
}

#[test]
fn who_wants_everything_gets_what_is_held_and_who_wants_now_gets_the_rest() {
    for (join, least, most) in [(Join::Everything, 40, 40), (Join::Now, 20, 21)] {
        let receiver = ReceiverConfig { join, ..ReceiverConfig::default() };
        let mut net = Net::star(2, source(), &receiver, &[Link::default(), lossy(0.1)]);
        net.members[1].is_cut = true;
        for number in 0..40_u64 {
            if number == 20 {
                net.run(Duration::from_secs(3), |_| false);
                net.members[1].is_cut = false;
            }
            net.datagram(0, &contents(200, number));
        }
        net.run(Duration::from_secs(20), |net| datagrams(net, 1).len() >= most);
        let count = datagrams(&net, 1).len();
        // The first of those may be lost to whoever has heard nothing yet.
        assert!((least - 3..=most).contains(&count), "{join:?}: {count}");
    }
}

#[test]
fn a_source_that_starts_again_is_heard_again() {
    let mut net = Net::star(3, source(), &ReceiverConfig::default(), &[Link::default(), lossy(0.1)]);
    file(&mut net, 0, &contents(500_000, 3));
    net.run(Duration::from_millis(200), |_| false);
    net.members[0].session = net.session(0, Some(source()), None, 2);
    let sent = contents(300_000, 4);
    file(&mut net, 0, &sent);
    assert!(net.run(Duration::from_secs(30), |net| files(net, 1) == [sent.clone()]));
}

/// As the sites of a node, which each of the others knows by an address of its own.
#[test]
fn members_that_do_not_know_how_they_are_known_hear_each_other_and_elect_one_acker() {
    let followed = RateControl::Pgmcc { max: Rate::from_mbit(100) };
    for rate in [RateControl::Fixed(Rate::from_mbit(4)), followed] {
        let mut net = Net::new(14);
        for member in 0..4 {
            let config = Config {
                session: tsi(member, 1),
                port: 7500,
                local: "[100::]:7".parse().unwrap(),
                group: group(),
                number: Some(member as u32 + 1),
                source: Some(SourceConfig { rate, ..source() }),
                receiver: Some(ReceiverConfig { group_size: 3, ..ReceiverConfig::default() }),
                unit_credit: false,
            };
            let session = Session::new(config, net.seed.stream(&["member"], member as u64));
            net.join(session, lossy(if member == 3 { 0.1 } else { 0.02 }));
        }
        let sent = contents(300_000, 14);
        file(&mut net, 0, &sent);
        let all = |net: &Net| (1..4).all(|member| files(net, member) == [sent.clone()]);
        assert!(net.run(Duration::from_secs(60), all), "{rate:?}");
        let asked: u64 = (1..4).map(|member| net.counter(member, "nacks_sent")).sum();
        assert!(
            asked > 0 && net.counter(0, "nacks_received") > 0,
            "requests go to where the data comes from"
        );
        if rate == followed {
            // One at a time acknowledges each packet; with one name all three would.
            let feedback: u64 = (1..4).map(|member| net.counter(member, "feedback_packets_sent")).sum();
            let data = net.counter(0, "data_packets_sent");
            assert!((data / 2..2 * data).contains(&feedback), "{feedback} for {data} packets");
        }
    }
}

#[test]
fn several_sources_share_a_group() {
    let mut net = Net::new(4);
    let both = Some(ReceiverConfig::default());
    let members: Vec<usize> = (0..3).map(|_| net.add(Some(source()), both.clone(), lossy(0.1), 1)).collect();
    let sent: Vec<_> = (0..3).map(|number| contents(200_000, number)).collect();
    members.iter().for_each(|&member| file(&mut net, member, &sent[member]));
    let all = |net: &Net| members.iter().all(|&member| files(net, member).len() == 2);
    assert!(net.run(Duration::from_secs(60), all));
    for &member in &members {
        let found = files(&net, member);
        assert!(members.iter().all(|&other| found.contains(&sent[other]) == (other != member)));
    }
}

#[test]
fn a_window_that_has_moved_on_is_an_overrun_and_what_comes_next_arrives() {
    let config = SourceConfig { window: 20_000, patience: Duration::ZERO, ..without_parity() };
    let mut net = Net::star(5, config, &ReceiverConfig::default(), &[Link::default(), lossy(0.0)]);
    net.run(Duration::from_millis(100), |_| false);
    net.datagram(0, b"first");
    net.run(Duration::from_millis(200), |_| false);
    net.members[1].is_cut = true;
    for number in 0..100 {
        net.datagram(0, &contents(1000, number));
    }
    net.run(Duration::from_secs(1), |_| false);
    net.members[1].is_cut = false;
    net.datagram(0, b"last");
    assert!(net.run(Duration::from_secs(20), |net| datagrams(net, 1).contains(&b"last".to_vec())));
    assert!(net.counter(1, "window_overruns") > 0 && net.counter(1, "objects_given_up") > 0);
    assert!(datagrams(&net, 1).len() < 102);
}

#[test]
fn a_window_waits_for_a_receiver_that_asks() {
    let config = SourceConfig { window: 200_000, ..source() };
    let mut net = Net::star(6, config, &ReceiverConfig::default(), &[Link::default(), lossy(0.4)]);
    let sent = contents(1_000_000, 6);
    file(&mut net, 0, &sent);
    assert!(net.run(Duration::from_secs(60), |net| files(net, 1) == [sent.clone()]));
    assert_eq!(net.counter(1, "window_overruns"), 0);
}

#[test]
fn the_end_of_a_session_is_told_and_a_poll_is_answered() {
    let mut net = Net::star(7, source(), &ReceiverConfig::default(), &[Link::default(); 2]);
    net.datagram(0, b"all");
    net.run(Duration::from_millis(500), |_| false);
    let (now, poll) = (net.now, |random, mask| Poll {
        sequence: 1,
        round: 0,
        kind: PollKind::General,
        path: address(0).ip(),
        backoff: 1_000,
        random,
        mask,
    });
    // Of two opposite bits one is everybody's.
    for random in [0, 1] {
        net.forge(1, 0, &Packet::new(tsi(0, 1), 7500, Body::Poll(poll(random, 1))).emit());
    }
    net.members[0].session.leave(now);
    net.run(Duration::from_secs(2), |_| false);
    assert_eq!((net.counter(1, "sessions_ended"), net.counter(0, "poll_responses_received")), (1, 1));
    assert_eq!(datagrams(&net, 1), [b"all"]);
}

#[test]
fn requests_that_others_have_made_are_not_repeated() {
    // All of them lose the same, on the link of the source.
    let mut links = vec![lossy(0.0); 31];
    links[0] = Link { queue: Duration::from_millis(12), ..Link::default() };
    let config = SourceConfig { rate: RateControl::Fixed(Rate::from_mbit(12)), ..source() };
    let receiver = ReceiverConfig { group_size: 30, ..ReceiverConfig::default() };
    let mut net = Net::star(8, config, &receiver, &links);
    let sent = contents(1_000_000, 8);
    file(&mut net, 0, &sent);
    let all = |net: &Net| (1..=30).all(|member| files(net, member) == [sent.clone()]);
    assert!(net.run(Duration::from_secs(60), all));
    let (made, spared): (u64, u64) = (1..=30).fold((0, 0), |(made, spared), member| {
        (made + net.counter(member, "nacks_sent"), spared + net.counter(member, "nacks_suppressed"))
    });
    assert!(spared > 2 * made, "{made} requests, {spared} spared");
    assert!(group().ip().is_multicast());
}

#[test]
fn congestion_control_fills_a_link_and_halves_when_it_loses() {
    let link = |mbit| Link {
        rate: Rate::from_mbit(mbit),
        queue: Duration::from_millis(60),
        delay: Duration::from_millis(10),
        ..Link::default()
    };
    for config in [source(), without_parity()] {
        let rate = RateControl::Pgmcc { max: Rate::from_mbit(1000) };
        let links = [link(4), link(100), link(100)];
        let mut net = Net::star(9, SourceConfig { rate, ..config }, &ReceiverConfig::default(), &links);
        let sent = contents(4_000_000, 9);
        file(&mut net, 0, &sent);
        let all = |net: &Net| (1..=2).all(|member| files(net, member) == [sent.clone()]);
        assert!(net.run(Duration::from_secs(60), all));
        let mbit = 32.0 / net.now.as_secs_f64();
        assert!((2.0..4.0).contains(&mbit), "{mbit} Mbit/s");
        assert!(net.counter(0, "window_halvings") > 1 && net.counter(0, "acker_elections") > 0);
        let repairs =
            net.counter(0, "repair_packets_sent") as f64 / net.counter(0, "data_packets_sent") as f64;
        assert!(repairs < 0.15, "{repairs}");
    }
}
