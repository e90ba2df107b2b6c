//! Routers that begin anew, and routers of one identifier.

use super::net::{End, Net, link, seconds};
use crate::link_state::Config;

fn ring() -> Vec<Vec<End>> {
    (0..5).map(|router| link(&[router, (router + 1) % 5])).collect()
}

#[test]
fn a_router_that_restarts_fights_its_old_advertisements_and_is_reached_again() {
    for outage in [0.0, 1.0, 100.0] {
        let mut net = Net::new(Config::default(), ring());
        net.run(seconds(30.0));
        // It has said something several times, so that its sequence numbers begin anew below those that are known.
        for _ in 0..3 {
            net.set_up(0, false);
            net.run(seconds(20.0));
            net.set_up(0, true);
            net.run(seconds(20.0));
        }
        net.stop(1);
        net.run(seconds(outage));
        net.start(1);
        net.converge(seconds(30.0));
        net.run(seconds(30.0));
        assert_eq!(net.first_wrong(), None);
        assert!(net.counter(1, "link_state_contested") > 0);
    }
}

#[test]
fn a_router_that_restarts_without_being_missed_learns_all_anew() {
    // No Hello of the router is heard in between that does not name its neighbours.
    let mut net = Net::new(Config::default(), ring());
    net.run(seconds(30.0));
    net.is_silent = vec![true; 5];
    net.stop(1);
    net.start(1);
    net.run(seconds(2.0));
    net.is_silent = vec![false; 5];
    net.converge(seconds(30.0));
}

#[test]
fn of_two_routers_with_one_identifier_on_a_link_the_second_is_not_heard() {
    let mut net = Net::stopped(Config::default(), vec![link(&[0, 1, 2]), link(&[2, 3])]);
    net.identifiers.extend([(0, 99), (1, 99)]);
    net.start_all();
    net.run(seconds(60.0));
    assert!(net.counter(2, "link_state_refused_identifier") > 4);
    assert!(net.counter(0, "link_state_refused_identifier") > 4);
    let reached = [0, 1].map(|to| net.cost(3, to, false).is_some());
    assert!(reached[0] != reached[1], "{reached:?}");
    assert!(net.cost(3, 2, true).is_some());
}

#[test]
fn two_routers_with_one_identifier_far_apart_are_counted_and_leave_the_others_in_peace() {
    let links = (1..7).map(|router| link(&[router - 1, router])).collect();
    let mut net = Net::stopped(Config::default(), links);
    net.identifiers.extend([(0, 99), (6, 99)]);
    net.start_all();
    net.run(seconds(60.0));
    for (from, to) in [(1, 5), (5, 1), (2, 4)] {
        assert!(net.cost(from, to, false).is_some());
    }
    assert!(net.counter(0, "link_state_contested") + net.counter(6, "link_state_contested") > 2);
    // An hour of it costs few instances, and not one every five seconds.
    let made = |net: &Net| net.counter(0, "link_state_originated") + net.counter(6, "link_state_originated");
    net.run(seconds(1000.0));
    let before = made(&net);
    net.run(seconds(3600.0));
    assert!(made(&net) - before < 3600 / 320 * 2 * 2 + 20, "{}", made(&net) - before);
}
