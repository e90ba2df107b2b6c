//! Many members on one segment.

use hopcast_core::Duration;

use super::*;
use crate::testing::contents;

#[test]
fn two_hundred_members_say_no_more_together_than_a_few() {
    let policy = policy();
    let mut bytes = Vec::new();
    for members in [20, 200] {
        let mut net = network(1, 10, members - 11, &policy, 0.01);
        for second in 1..=120_u64 {
            let publisher = (second as usize * 7) % members;
            publish(&mut net, publisher, &contents(1000, second));
            net.run(Duration::from_secs(second), |_| false);
        }
        net.run(Duration::from_secs(150), |net| (1..=10).all(|member| net.members[member].up.len() >= 110));
        for member in 1..=10 {
            let found = received(&net, member).len();
            let own = (1..=120).filter(|second| (second * 7) % members == member).count();
            assert_eq!(found, 120 - own, "member {member} of {members}");
        }
        bytes.push(net.bytes());
    }
    assert!(bytes[1] < bytes[0] * 2, "{bytes:?}");
}

/// Members that all subscribe and lose a hundredth each.
fn subscribers(members: usize) -> Network {
    let mut net = Network::new(1);
    for member in 0..members {
        join(&mut net, config(member, Some(everything()), &policy()), link(0.01));
    }
    net
}

/// Members publish a message of 1 kB in turn, one each second of a range.
fn publish_each_second(net: &mut Network, seconds: std::ops::Range<u64>) {
    for second in seconds {
        let publisher = second as usize % net.members.len();
        publish(net, publisher, &contents(1000, second));
        net.run(Duration::from_secs(second + 1), |_| false);
    }
}

fn have_all(net: &Network, messages: usize) -> bool {
    let members = net.members.len();
    let own = |member: usize| (0..messages).filter(|message| message % members == member).count();
    (0..members).all(|member| net.members[member].up.len() == messages - own(member))
}

#[test]
fn what_is_said_does_not_grow_with_the_messages_that_are_held() {
    let mut net = subscribers(20);
    let mut said = Vec::new();
    for part in 0..3 {
        let before = net.bytes();
        publish_each_second(&mut net, part * 200..(part + 1) * 200);
        said.push(net.bytes() - before);
    }
    net.run(Duration::from_secs(660), |net| have_all(net, 600));
    assert!(have_all(&net, 600));
    assert!(said[2] < said[1] * 11 / 10, "{said:?} bytes in 200 s each");
}

/// For the time that it takes: an hour is to be simulated within two minutes on one core.
#[test]
#[ignore = "takes a minute; how long is looked at by hand"]
fn two_hundred_members_for_an_hour() {
    let mut net = subscribers(200);
    publish_each_second(&mut net, 0..3600);
    net.run(Duration::from_secs(3660), |net| have_all(net, 3600));
    assert!(have_all(&net, 3600));
}
