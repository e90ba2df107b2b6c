//! What routers on one link owe each other.

use hopcast_core::Duration;

use super::net::{DELAY, LinkId, Net, after};
use crate::pim::Config;

/// Link of the sender and router 0; behind it the link of routers 0, 1 and 2; and the links of hosts at 1 and at 2.
const SOURCE: LinkId = 0;
const HOSTS: [LinkId; 2] = [2, 3];

/// The time in which routers on a link override a prune.
fn override_time() -> Duration {
    let config = Config::default();
    config.propagation_delay + config.override_interval
}

fn lan(v6: bool) -> Net {
    let mut net = Net::new(Config::default(), vec![vec![0], vec![0, 1, 2], vec![1], vec![2]], SOURCE, v6);
    net.run(after(20.0));
    net
}

#[test]
fn a_join_takes_as_long_as_its_way() {
    for v6 in [false, true] {
        let mut net = Net::new(Config::default(), vec![vec![0], vec![0, 1], vec![1, 2], vec![2]], SOURCE, v6);
        net.run(after(20.0));
        net.set_members(3, true);
        net.run(DELAY);
        assert_eq!(net.send(), [0, 0, 0, 0], "the first neighbour has joined");
        net.run(DELAY);
        assert_eq!(net.send(), [0, 1, 1, 1]);
        // Between two routers a prune cuts at once.
        net.set_members(3, false);
        net.run(DELAY * 2);
        assert_eq!(net.send(), [0, 0, 0, 0]);
        assert_eq!(net.counter(1, "pim_prunes"), 1, "and it is not echoed");
    }
}

#[test]
fn a_prune_on_a_link_is_overridden_by_whoever_still_wants_the_packets() {
    for v6 in [false, true] {
        let mut net = lan(v6);
        HOSTS.iter().for_each(|&link| net.set_members(link, true));
        net.run(after(1.0));
        assert_eq!(net.send(), [0, 1, 1, 1]);
        net.set_members(HOSTS[0], false);
        let all = net.run_sending(after(10.0), after(0.05));
        assert!(
            all.iter().all(|copies| *copies == [0, 1, 0, 1]),
            "nothing is missed, and nothing more is sent"
        );
        assert_eq!((net.counter(2, "pim_prunes_overridden"), net.counter(2, "pim_joins")), (1, 2));
        // Now nobody does: the link has the packets until others would have overridden the prune.
        net.set_members(HOSTS[1], false);
        net.run(override_time());
        assert_eq!(net.send(), [0, 1, 0, 0]);
        net.run(DELAY * 2);
        assert_eq!(net.send(), [0, 0, 0, 0]);
        assert_eq!(net.counter(0, "pim_prunes"), 1, "the end is echoed");
    }
}

#[test]
fn the_joins_of_one_router_save_those_of_the_others() {
    let mut net = lan(false);
    HOSTS.iter().for_each(|&link| net.set_members(link, true));
    net.run(after(3600.0));
    let joins = net.counter(1, "pim_joins") + net.counter(2, "pim_joins");
    assert!((50..70).contains(&joins), "one a minute, whoever sends it: {joins}");
    assert!(net.counter(1, "pim_joins_suppressed") + net.counter(2, "pim_joins_suppressed") > 50);
    assert_eq!(net.send(), [0, 1, 1, 1]);
}

/// Two ways of different length from the sender at 0 to a link of 2 and 3: over 1 and 2, and over 3 directly.
fn two_ways() -> Net {
    // Members are on the link, and at 4, whose shortest way is over 3; the designated router is 4 itself, or 5.
    let links = vec![vec![0], vec![0, 1], vec![1, 5], vec![0, 3], vec![3, 4, 5], vec![4]];
    let mut net = Net::new(Config::default(), links, SOURCE, false);
    net.run(after(20.0));
    net
}

#[test]
fn of_two_routers_that_forward_to_a_link_the_nearer_remains() {
    let mut net = two_ways();
    // 5 reaches the sender over 3, and is the designated router of the link: its members are served by 3 alone.
    net.set_members(4, true);
    net.run(after(1.0));
    assert_eq!(net.send(), [0, 0, 0, 1, 1, 0]);
    // 3 and 5 both forward, once 5's way is another.
    let links = vec![vec![0], vec![0, 1], vec![1, 4], vec![0, 3], vec![3, 2], vec![2, 4, 5], vec![5]];
    let mut net = Net::new(Config::default(), links, SOURCE, false);
    net.run(after(20.0));
    // 4 and 2 are as far from the sender; 5 joins at 4, the higher one. 5 is designated.
    net.set_members(6, true);
    net.run(after(1.0));
    assert_eq!(net.send(), [0, 1, 1, 0, 0, 1, 1]);
}

#[test]
fn two_designated_copies_end_with_the_first_packet() {
    // The link of 1, 2 and 3 has members, whom 3 serves by its own way over 4; and 2's hosts are reached over 1, which
    // is nearer.
    let links = vec![vec![0], vec![0, 1], vec![0, 4], vec![4, 3], vec![1, 2, 3], vec![2]];
    let mut net = Net::new(Config::default(), links, SOURCE, false);
    net.run(after(20.0));
    net.set_up(2, true);
    net.set_members(4, true);
    net.set_members(5, true);
    net.run(after(1.0));
    let all = net.run_sending(after(1.0), after(0.01));
    assert_eq!(*all.last().unwrap(), net.expected());
    assert_eq!(all.last().unwrap()[4], 1);
}

/// The designated router 3 of link 4 lost an Assert to 1, which was nearer, and forwards for the members since.
fn lost_by_the_designated_router() -> Net {
    let links = vec![vec![0], vec![0, 1], vec![0, 4], vec![4, 3], vec![1, 2, 3], vec![2], vec![0, 3]];
    let mut net = Net::new(Config::default(), links, SOURCE, false);
    net.set_up(6, false);
    net.run(after(20.0));
    assert!(net.is_designated(3, 4));
    net.set_members(4, true);
    net.set_members(5, true);
    net.run(after(1.0));
    net.run_sending(after(1.0), after(0.1));
    // The router that 1 forwarded to before the Assert wants no more.
    net.set_members(5, false);
    net.run_sending(after(10.0), after(0.1));
    assert_eq!(net.send(), [0, 1, 0, 0, 1, 0, 0]);
    net
}

#[test]
fn a_designated_router_takes_its_members_back_when_its_own_route_is_the_better_one() {
    let mut net = lost_by_the_designated_router();
    net.run_sending(after(400.0), after(1.0));
    assert_eq!(net.send(), [0, 1, 0, 0, 1, 0, 0], "it is not, and Asserts are renewed");
    net.set_up(6, true);
    // Its new neighbour has to say Hello first.
    net.run_sending(after(45.0), after(0.1));
    assert_eq!(net.send(), [0, 0, 0, 0, 1, 0, 1]);
}

#[test]
fn the_duty_of_a_designated_router_that_dies_goes_to_the_next_one() {
    let mut net = lost_by_the_designated_router();
    net.stop(3);
    net.run_sending(after(110.0), after(1.0));
    assert!(net.is_designated(2, 4));
    assert_eq!(net.send(), [0, 1, 0, 0, 1, 0, 0], "1 has won before, and goes on");
    // Once that one dies too, and the first is back, nobody else has a way to the source.
    net.stop(1);
    net.start(3);
    net.run_sending(after(250.0), after(1.0));
    assert!(net.is_designated(3, 4));
    assert_eq!(net.send(), [0, 0, 1, 1, 1, 0, 0]);
}

#[test]
fn a_designated_router_that_falls_silent_is_replaced_when_its_holdtime_ends() {
    // Both 1 and 2 lead to the hosts of link 3.
    let links = vec![vec![0], vec![0, 1], vec![0, 2], vec![1, 2]];
    let mut net = Net::new(Config::default(), links, SOURCE, false);
    net.run(after(20.0));
    assert!(net.is_designated(2, 3) && !net.is_designated(1, 3));
    net.set_members(3, true);
    net.run(after(1.0));
    assert_eq!(net.send(), [0, 0, 1, 1]);
    net.silent.insert(2);
    net.run(after(105.0 - 31.0));
    assert!(!net.is_designated(1, 3));
    net.run(after(31.0));
    assert!(net.is_designated(1, 3));
    let copies = net.send();
    assert_eq!((copies[1], copies[3]), (1, 1));
    // And when it is back it serves again.
    net.silent.clear();
    net.run_sending(after(200.0), after(1.0));
    assert_eq!(net.send()[3], 1);
}

#[test]
fn a_neighbour_that_starts_anew_is_joined_again_within_the_override_interval() {
    let mut net = Net::new(Config::default(), vec![vec![0], vec![0, 1], vec![1]], SOURCE, false);
    net.run(after(20.0));
    net.set_members(2, true);
    net.run(after(1.0));
    assert_eq!(net.send(), [0, 1, 1]);
    net.start(0);
    assert_eq!(net.send(), [0, 0, 0], "it has forgotten everything");
    let config = Config::default();
    net.run(config.triggered_hello_delay + config.override_interval + DELAY * 3);
    assert_eq!(net.send(), [0, 1, 1]);
}

#[test]
fn a_branch_whose_router_is_gone_ends_with_its_last_join() {
    let mut net = lan(false);
    net.set_members(HOSTS[0], true);
    net.run(after(1.0));
    assert_eq!(net.send(), [0, 1, 1, 0]);
    net.silent.insert(1);
    net.run(after(210.0 - 62.0));
    assert_eq!(net.send(), [0, 1, 0, 0]);
    net.run(after(62.0));
    assert_eq!(net.send(), [0, 0, 0, 0]);
}

#[test]
fn a_change_of_routes_is_followed_within_the_interval_at_which_they_are_looked_at() {
    let links = vec![vec![0], vec![0, 1], vec![0, 2], vec![1, 3], vec![2, 3], vec![3]];
    let mut net = Net::new(Config::default(), links, SOURCE, true);
    net.run(after(20.0));
    net.set_members(5, true);
    net.run(after(1.0));
    assert_eq!(net.send(), [0, 0, 1, 0, 1, 1]);
    net.set_up(2, false);
    net.run(Config::default().route_check + DELAY * 2);
    assert_eq!(net.send(), [0, 1, 0, 1, 0, 1]);
    net.set_up(2, true);
    net.run(Config::default().route_check + DELAY * 3);
    assert_eq!(net.send(), [0, 0, 1, 0, 1, 1], "the old way is pruned");
}
