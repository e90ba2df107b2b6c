//! A node that is a bridge of interfaces of its host.

use std::time::Duration;

use crate::lab::{Lab, Node, possible, within};

/// `ship`, `hub` and `shore` in a row, whose interfaces have no addresses but those of `addresses`, of one prefix.
fn network(addresses: &[(&str, &str, &str)]) -> Lab {
    let lab = Lab::row(&["ship", "hub", "shore"]);
    for (host, device) in [("ship", "right"), ("hub", "left"), ("hub", "right"), ("shore", "left")] {
        lab.run(host, &format!("ip address flush dev {device}"));
    }
    for host in ["ship", "shore"] {
        // Nothing is to be sent but what the test asks for.
        lab.run(host, "sysctl -qw net.ipv6.conf.default.disable_ipv6=1");
    }
    for (host, device, address) in addresses {
        lab.run(host, &format!("ip address add {address}/24 dev {device}"));
    }
    lab
}

fn node(lab: &Lab, name: &str, service: &str) -> Node {
    lab.node(name, &format!("name: {name}\nlisten: 127.0.0.1:7400\nservices: {{ run: bridge, {service} }}"))
}

fn pings(lab: &Lab, host: &str, to: &str) -> bool {
    lab.attempt(host, &format!("ping -q -c 3 -i 0.05 -W 1 {to}")).status.success()
}

fn counter(node: &Node, name: &str) -> u64 {
    node.status().host[0].counters.get(name).copied().unwrap_or(0)
}

#[test]
fn hosts_on_both_sides_of_a_bridge_reach_each_other_and_the_node_until_it_ends() {
    if !possible() {
        return;
    }
    let lab = network(&[("ship", "right", "10.7.0.1"), ("shore", "left", "10.7.0.2")]);
    assert!(!pings(&lab, "ship", "10.7.0.2"), "no bridge yet");
    let mut hub = node(&lab, "hub", "tap: br0, address: 10.7.0.9/24, interfaces: [left, right]");
    for (from, to) in [("ship", "10.7.0.2"), ("ship", "10.7.0.9"), ("shore", "10.7.0.9"), ("hub", "10.7.0.1")]
    {
        assert!(pings(&lab, from, to), "{from} {to}");
    }
    let status = hub.status();
    assert_eq!((&*status.host[0].name, &*status.host[0].over), ("br0", "bridge"));
    assert!(counter(&hub, "frames_out") >= 4 * 6 && counter(&hub, "wrong_items") == 0, "{status:?}");
    hub.signal("TERM");
    assert_eq!(hub.ends(), Some(0));
    let is_gone = || !lab.attempt("hub", "ip link show br0").status.success();
    assert!(within(Duration::from_secs(5), is_gone));
    assert_eq!(lab.run("hub", "nft list tables").trim(), "", "the kernel has its interfaces back");
}

#[test]
fn a_port_that_does_not_admit_a_tag_drops_its_frames_and_the_status_says_so() {
    if !possible() {
        return;
    }
    // Bridges of one interface are what gives hosts an interface of VLAN 5.
    let lab = network(&[]);
    let end = |name: &str, port: &str, address: &str| {
        let ports = format!("ports: {{ {port}: {{ tagged: 5 }} }}, host: {{ untagged: 5 }}");
        node(&lab, name, &format!("tap: v5, address: {address}/24, interfaces: {port}, {ports}"))
    };
    let (ship, _shore) = (end("ship", "right", "10.5.0.1"), end("shore", "left", "10.5.0.2"));
    let hub = |right: &str| {
        let ports = format!("ports: {{ left: {{ tagged: 5 }}, right: {{ {right} }} }}");
        node(&lab, "hub", &format!("tap: br0, interfaces: [left, right], {ports}"))
    };
    let mut sound = hub("tagged: 5");
    assert!(pings(&lab, "ship", "10.5.0.2") && pings(&lab, "shore", "10.5.0.1"));
    assert_eq!(counter(&sound, "vlan_not_allowed_in") + counter(&sound, "vlan_not_allowed_out"), 0);
    sound.signal("TERM");
    assert_eq!(sound.ends(), Some(0));
    let faulty = hub("tagged: 7");
    assert!(!pings(&lab, "ship", "10.5.0.2"));
    assert!(counter(&faulty, "no_other_port") + counter(&faulty, "vlan_not_allowed_out") > 0);
    assert_eq!(counter(&faulty, "vlan_not_allowed_in"), 0);
    assert!(!pings(&lab, "shore", "10.5.0.1"));
    assert!(counter(&faulty, "vlan_not_allowed_in") > 0);
    assert!(counter(&ship, "frames_out") > 0);
}

#[test]
fn the_ports_of_a_bridge_that_is_killed_are_given_back() {
    if !possible() {
        return;
    }
    let lab = network(&[("ship", "right", "10.7.0.1"), ("shore", "left", "10.7.0.2")]);
    let hub = node(&lab, "hub", "tap: br0, interfaces: [left, right]");
    let hears_all = || lab.run("hub", "ip -d link show dev left").contains("promiscuity 1");
    let switches = ["left", "right"].map(|port| format!("cat /proc/sys/net/ipv6/conf/{port}/disable_ipv6"));
    let is_silent = || switches.each_ref().map(|switch| lab.run("hub", switch).trim() == "1");
    assert!(hears_all());
    assert_eq!(is_silent(), [true; 2]);
    hub.signal("KILL");
    assert!(within(Duration::from_secs(5), || !hears_all()), "its socket keeps the mode, and is closed");
    assert_eq!(is_silent(), [true; 2]);
    // The next node gives them back before it takes them itself.
    let mut hub = node(&lab, "hub", "tap: br0, interfaces: [left, right]");
    assert!(pings(&lab, "ship", "10.7.0.2"));
    assert_eq!(is_silent(), [true; 2]);
    hub.signal("TERM");
    assert_eq!(hub.ends(), Some(0));
    assert_eq!(is_silent(), [false; 2]);
    assert_eq!(lab.run("hub", "nft list tables").trim(), "");
}
