//! Stacks of machines and both versions of IP.

use crate::common::{flow, near};

fn two_hops(flow: &str) -> String {
    format!(
        "
title: Two hops
seed: 1
duration: 5 s
measure: {{ from: 1 s }}
topology:
  chain: {{ hops: 2, link: {{ rate: 20 Mbit/s, delay: 2 ms }} }}
flows:
  - {{ name: flow, from: n0, to: n2, {flow} }}
"
    )
}

#[test]
fn datagrams_cross_under_ipv6_with_its_longer_header() {
    let figures = flow(&two_hops("over: udp, ip: 6, app: bulk")).figures;
    near(figures.goodput_mbps.unwrap(), 20.0 * 1452.0 / 1514.0, 0.002);
    near(figures.payload_bound_fraction.unwrap(), 1.0, 0.002);
    assert_eq!(figures.reliability, Some(1.0));
}

#[test]
fn udp_in_a_tunnel_in_udp_arrives_whole() {
    let flow = flow(&two_hops("over: [udp, tunnel, udp], app: bulk"));
    near(flow.figures.goodput_mbps.unwrap(), 20.0 * 1444.0 / 1514.0, 0.002);
    assert_eq!(flow.figures.reliability, Some(1.0));
    for dropped in ["foreign", "malformed", "wrong_items"] {
        assert_eq!(flow.counters[&format!("tunnel.{dropped}")], 0, "{dropped}");
    }
    assert_eq!(flow.counters["damaged_units"], 0);
}

#[test]
fn messages_are_echoed_over_datagrams_and_streams_of_any_size() {
    for (over, size) in [("udp", "16 B"), ("udp", "1472 B"), ("tcp-cubic", "16 B"), ("tcp-cubic", "200 kB")] {
        let figures =
            flow(&two_hops(&format!("over: {over}, app: {{ messages: {{ size: {size}, rate: 5 Hz }} }}")))
                .figures;
        assert_eq!((figures.sent_units, figures.delivered_units), (20, 20), "{over} {size}");
        assert!(figures.round_trip_ms.unwrap().p50 >= 8.0);
    }
}

#[test]
fn tcp_finds_the_mtu_of_a_tunnel_and_fills_it() {
    for ip in [4, 6] {
        let flow = flow(&two_hops(&format!("over: [tcp-cubic, tunnel, udp], ip: {ip}, app: bulk")));
        let inner = if ip == 4 { 1472.0 - 52.0 } else { 1452.0 - 72.0 };
        near(flow.figures.goodput_mbps.unwrap(), 20.0 * inner / 1514.0, 0.01);
        assert!(flow.counters["tunnel.too_big"] > 0, "the MTU is found by ICMP");
    }
}
