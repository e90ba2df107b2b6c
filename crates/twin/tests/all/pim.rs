//! Trees that routers make themselves, by PIM, for members that report by IGMP and MLD.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use crate::common::scenarios::scenarios;
use crate::common::{document, frames};
use hopcast_runner::load_text;
use hopcast_twin::results::Run;
use hopcast_twin::scenario::Overrides;

const PIM: &str = "{ ip-multicast: { routing: pim } }";
const IDEALISED: &str = "{ ip-multicast: { one-source: true } }";

fn run(text: &str) -> Run {
    document(text).runs.into_iter().next().unwrap()
}

fn host(run: &Run, counter: &str) -> u64 {
    run.hosts.get(counter).copied().unwrap_or(0)
}

/// PIM and a querier on routers.
fn services(on: &str, ip: u8, options: &str) -> String {
    let querier = if ip == 4 { "igmp-querier" } else { "mld-querier" };
    format!(
        "services:\n  - {{ name: pim, run: pim, on: {on}{options} }}\n  - {{ run: {querier}, on: {on} }}\n"
    )
}

/// A network of links of 10 ms, and a datagram of 500 bytes each millisecond to the group of these members, in 40 s.
fn network(ip: u8, (nodes, links, members): (&str, &[&str], &str), (delivery, rest): (&str, &str)) -> Run {
    let link = |ends: &&str| format!("    - {{ {ends}, rate: 100 Mbit/s, delay: 10 ms }}\n");
    let links: String = links.iter().map(link).collect();
    run(&format!(
        "
title: PIM
duration: 40 s
membership: report
topology:
  nodes: {nodes}
  links:
{links}groups: [{{ name: film, members: {members}, delivery: {delivery} }}]
flows:
  - {{ name: f, from: s, to: film, ip: {ip}, over: udp, app: {{ cbr: {{ rate: 4 Mbit/s, size: 500 B }} }} }}
{rest}"
    ))
}

/// Datagrams of the flow that were sent while a receiver was a member, and did not arrive.
fn missed(run: &Run, sent: u64) -> u64 {
    let reliability = run.flows[0].figures.reliability.unwrap();
    ((1.0 - reliability) * sent as f64).round() as u64
}

const CHAIN: (&str, &[&str], &str) = (
    "[s, r0, r1, r2, m]",
    &["between: [s, r0]", "between: [r0, r1]", "between: [r1, r2]", "between: [r2, m]"],
    "[]",
);

#[test]
fn a_join_takes_as_long_as_its_way_and_a_leave_as_long_as_the_querier_asks() {
    for ip in [4, 6] {
        let events =
            "events: [{ at: 10 s, group: film, join: [m] }, { at: 20 s, group: film, leave: [m] }]\n";
        let pim = network(ip, CHAIN, (PIM, &(services("[r0, r1, r2]", ip, "") + events)));
        // The join is at r0 30 ms after the member's, and meets a datagram that was sent 10 ms before.
        let missed = missed(&pim, 10_000);
        assert!((20..=21).contains(&missed), "IPv{ip}: {missed}");
        // Nobody wants the packets until the join, nor after the linger of 1 s, two queries of 1 s, and the prune's
        // way.
        let sent = frames(&pim, "s", "r0");
        assert!((40_000..=40_020).contains(&sent), "{sent}");
        for (from, to, hops) in [("r2", "m", 0), ("r1", "r2", 1), ("r0", "r1", 2)] {
            let (data, expected) = (frames(&pim, from, to), 13_000 + 10 * hops - 10 * (2 - hops));
            assert!(
                (expected - 20..=expected + 40).contains(&data),
                "IPv{ip}, {from}-{to}: {data}, {expected}"
            );
        }
        assert_eq!((host(&pim, "pim.pim_joins"), host(&pim, "pim.pim_prunes")), (2, 2));
        for reason in ["checksum", "truncated", "type", "sender", "stranger", "destination"] {
            assert_eq!(host(&pim, &format!("pim.pim_refused_{reason}")), 0, "{reason}");
        }
    }
}

#[test]
fn without_members_nothing_leaves_the_first_link() {
    let events = "events: [{ at: 39.9 s, group: film, join: [m] }]\n";
    let pim = network(4, CHAIN, (PIM, &(services("[r0, r1, r2]", 4, "") + events)));
    assert!(frames(&pim, "s", "r0") >= 40_000);
    assert!(frames(&pim, "r0", "r1") < 120, "messages, and the datagrams of the end");
}

/// Two ways from s to m: over r1, which is the first in the file, and over r2.
const SQUARE: (&str, &[&str], &str) = (
    "[s, r0, r1, r2, r3, m]",
    &[
        "between: [s, r0]",
        "between: [r0, r1]",
        "between: [r1, r3]",
        "between: [r0, r2]",
        "between: [r2, r3]",
        "between: [r3, m]",
    ],
    "[]",
);

#[test]
fn a_tree_follows_the_routes_when_a_link_is_cut_and_when_it_is_back() {
    for ip in [4, 6] {
        let events = "events:
  - { at: 10 s, group: film, join: [m] }
  - { at: 20 s, links: r1-r3, down: true }
  - { at: 30 s, links: r1-r3, up: true }
";
        let pim = network(ip, SQUARE, (PIM, &(services("[r0, r1, r2, r3]", ip, "") + events)));
        // 20 ms for the join; and up to the next look at the routes, a second each time, and the way of the new join.
        let missed = missed(&pim, 30_000);
        assert!((40..2 * 1030).contains(&missed), "IPv{ip}: {missed}");
        let (over1, over2) = (frames(&pim, "r1", "r3"), frames(&pim, "r2", "r3"));
        assert!((18_500..20_500).contains(&over1) && (8_500..11_500).contains(&over2), "{over1} {over2}");
    }
}

#[test]
fn a_router_whose_service_starts_again_is_joined_again() {
    for ip in [4, 6] {
        let events = "events:
  - { at: 10 s, group: film, join: [m] }
  - { at: 20 s, service: pim, on: r1, stop: true }
  - { at: 22 s, service: pim, on: r1, start: true }
";
        let pim = network(ip, CHAIN, (PIM, &(services("[r0, r1, r2]", ip, "") + events)));
        // 2 s, and then the Hello of 5 s at most, the override interval, and the way.
        let missed = missed(&pim, 30_000);
        assert!((2000..2000 + 5000 + 2500 + 100).contains(&missed), "IPv{ip}: {missed}");
        // The last router has the members from its querier, which does not say them twice.
        let events = events.replace("on: r1", "on: r2");
        let pim = network(ip, CHAIN, (PIM, &(services("[r0, r1, r2]", ip, "") + &events)));
        let missed = self::missed(&pim, 30_000);
        assert!((2000..2000 + 5000 + 5000 + 100).contains(&missed), "IPv{ip}: {missed}");
    }
}

#[test]
fn a_router_that_dies_on_a_segment_of_two_is_replaced_after_its_holdtime() {
    // r2 is the designated one of the members' segment, by its higher address.
    let network_of = (
        "[s, r0, r1, r2, m]",
        &["between: [s, r0]", "between: [r0, r1]", "between: [r0, r2]", "switch: [r1, r2, m]"][..],
        "[]",
    );
    for ip in [4, 6] {
        let events = "events:
  - { at: 10 s, group: film, join: [m] }
  - { at: 20 s, service: pim, on: r2, stop: true }
";
        let services = services("[r0, r1, r2]", ip, ", hello-interval: 2 s");
        let pim = network(ip, network_of, (PIM, &(services + events)));
        let missed = missed(&pim, 30_000);
        // A holdtime of 7 s, of which some have passed since the last Hello.
        assert!((5000..7200).contains(&missed), "IPv{ip}: {missed}");
        let (over1, over2) = (frames(&pim, "r0", "r1"), frames(&pim, "r0", "r2"));
        assert!((12_000..16_000).contains(&over1) && over2 > 9_900, "{over1} {over2}");
    }
}

/// The thesis' first use case of 14 receivers on its network; all frames of each direction of a link, without those of
/// the start.
fn testbed(ip: u8, delivery: &str, services: &str) -> (Vec<(String, String, u64)>, Run) {
    let network = scenarios().join("networks/meadcast-testbed.yaml");
    let run = run(&format!(
        "
title: UC1
duration: 28 s
measure: {{ from: 12 s, to: 27 s }}
membership: report
include: {}
groups: [{{ name: film, members: [], delivery: {delivery} }}]
events: [{{ at: 10 s, group: film, join: uc1-1 }}]
flows:
  - {{ name: f, from: c3001, to: film, ip: {ip}, over: udp, app: {{ cbr: {{ rate: 200 kbit/s, size: 1000 B }} }} }}
{services}",
        network.display()
    ));
    let of = |link: &hopcast_twin::results::Link| (link.from.clone(), link.to.clone(), link.sent_packets);
    (run.links.iter().map(of).collect(), run)
}

#[test]
fn each_link_of_the_thesis_network_carries_what_the_idealised_tree_has() {
    for ip in [4, 6] {
        let (idealised, _) = testbed(ip, IDEALISED, "");
        let (pim, run) = testbed(ip, PIM, &services("routers", ip, ""));
        assert_eq!(pim, idealised, "IPv{ip}");
        let busy: Vec<u64> = pim.iter().map(|(.., sent)| *sent).filter(|sent| *sent > 0).collect();
        assert!(busy.len() > 20 && busy.iter().all(|sent| (374..=376).contains(sent)), "{busy:?}");
        assert_eq!(run.flows[0].figures.reliability, Some(1.0), "in the window");
    }
}

fn mistake(text: &str) -> String {
    load_text(Path::new("bad.yaml"), text, &Overrides::default()).unwrap_err().to_string()
}

#[test]
fn what_pim_needs_is_said_in_one_line() {
    let text = |membership: &str, over: &str, services: &str| {
        format!(
            "duration: 1 s
membership: {membership}
topology: {{ nodes: [s, r, m], links: [{{ between: [s, r] }}, {{ between: [r, m] }}] }}
groups: [{{ name: film, members: [m], delivery: {PIM} }}]
flows: [{{ from: s, to: film, over: {over}, app: {{ cbr: {{ rate: 1 Mbit/s, size: 100 B }} }} }}]
{services}"
        )
    };
    let services = services("[r]", 4, "");
    assert_eq!(
        mistake(&text("plan", "udp", &services)),
        "bad.yaml:2:13: `membership`: expected `report`: routers learn the members of `ip-multicast (routing pim)` by \
         IGMP and MLD alone"
    );
    assert_eq!(
        mistake(&text("report", "udp", "")),
        "bad.yaml:5:24: `to`: no router makes the trees of `routing: pim`: add `services: [{ run: pim, on: … }]`"
    );
    let found = mistake(&text("report", "disservice", &services));
    assert!(found.contains("members of `routing: pim` hear the flow's sender alone"), "{found}");
    let long =
        services.replace("on: [r] }\n  - { run: igmp", "on: [r], hello-interval: 6 h }\n  - { run: igmp");
    assert!(
        mistake(&text("report", "udp", &long)).contains("`hello-interval`: expected at most 18724s"),
        "{long}"
    );
}
