//! Links that deliver some packets after later ones.

use std::sync::Arc;

use hopcast_core::{Duration, Rate};

use super::net::{Link, Net, contents};
use super::senders::tcp_friendly;
use super::transfers::objects;
use crate::norm::{ReceiverConfig, SenderConfig};

/// Seconds that a file of 5 MB takes to two receivers that some packets reach late, and the requests of both.
fn transfer(config: SenderConfig, late: (f64, Duration)) -> (f64, u64) {
    let link = Link { late, ..Link::default() };
    let mut net = Net::star(1, config, &ReceiverConfig::default(), &[Link::default(), link, link]);
    let file = contents(5_000_000, 1);
    let now = net.now;
    assert!(net.members[0].session.send(now, Arc::from(&file[..]), None, true).is_some());
    let all = |net: &Net| (1..=2).all(|member| objects(net, member) == [file.clone()]);
    assert!(net.run(Duration::from_secs(200), all));
    (net.now.as_secs_f64(), (1..=2).map(|member| net.counter(member, "nacks_sent")).sum())
}

#[test]
fn packets_that_two_others_overtake_do_not_lower_a_tcp_friendly_rate() {
    // At 5 Mbit/s a packet takes 2.4 ms.
    let config = || tcp_friendly(Rate::from_mbit(5));
    let (in_order, _) = transfer(config(), (0.0, Duration::ZERO));
    for share in [0.01, 0.1, 0.5] {
        let (seconds, _) = transfer(config(), (share, Duration::from_millis(4)));
        assert!(seconds < 1.05 * in_order, "{seconds} s in place of {in_order}, {share} late");
    }
}

#[test]
fn feedback_to_one_sender_leaves_no_gap_in_what_another_hears() {
    let config = SenderConfig { unicast_feedback: true, ..tcp_friendly(Rate::from_mbit(3)) };
    let receiver = ReceiverConfig { unicast_feedback: true, ..ReceiverConfig::default() };
    let mut net = Net::new(1);
    let members: Vec<usize> =
        (0..3).map(|_| net.add(Some(config.clone()), Some(receiver.clone()), Link::default(), 1)).collect();
    for &member in &members {
        let (now, file) = (net.now, contents(2_000_000, member as u64));
        assert!(net.members[member].session.send(now, Arc::from(&file[..]), None, true).is_some());
    }
    // In slow start the rate doubles in each round trip, until there is a loss.
    net.run(Duration::from_secs(3), |_| false);
    for &member in &members {
        assert_eq!(net.members[member].session.rate(), Some(Rate::from_mbit(3)), "member {member}");
    }
}
