//! Xcast+ in virtual time: members join at designated routers, and packets between these list the routers.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use crate::common::scenarios::scenarios;
use crate::common::{document, frames, text_of_tree, tree_of_routers};
use hopcast_runner::load_text;
use hopcast_twin::results::{Link, Run};
use hopcast_twin::scenario::{Overrides, needs_virtual_time};

/// Bytes that a list of so many routers adds to a packet.
fn list(routers: u64) -> u64 {
    24 + 8 + 16 * routers
}

/// A designated router that hears of members on each of these nodes.
fn services(on: &str, options: &str) -> String {
    format!(
        "membership: report
services:
  - {{ name: x, run: xcast-router, on: {on}, designated: on{options} }}
  - {{ name: q, run: mld-querier, on: {on} }}
"
    )
}

fn service(run: &Run, name: &str) -> u64 {
    run.hosts.get(&format!("x.{name}")).copied().unwrap_or(0)
}

fn reliability(run: &Run) -> f64 {
    run.flows[0].figures.reliability.unwrap()
}

fn link<'a>(run: &'a Run, from: &str, to: &str) -> &'a Link {
    run.links.iter().find(|link| link.from == from && link.to == to).unwrap()
}

/// Bytes of a registration on a link.
const REGISTRATION: u64 = 14 + 40 + 8 + 40;

/// The tree of routers with one group of these members.
fn tree(members: &str, services: &str) -> Run {
    tree_of_routers(&[("g", members, "xcast-plus")], services)
}

/// A network of links of 2 ms, with a datagram of 500 bytes each 10 ms from 1 s on.
fn network(links: &[&str], (from, members): (&str, &str), duration: u64, rest: &str) -> Run {
    let listed = links.iter().map(|ends| format!("    - {{ {ends}, rate: 10 Mbit/s, delay: 2 ms }}\n"));
    let mut nodes: Vec<&str> = links
        .iter()
        .flat_map(|ends| ends[ends.find('[').unwrap() + 1..].trim_end_matches(']').split(", "))
        .collect();
    nodes.sort_unstable();
    nodes.dedup();
    let text = format!(
        "
duration: {duration} s
topology:
  nodes: [{}]
  links:
{}groups: [{{ name: g, members: {members}, delivery: xcast-plus }}]
flows: [{{ name: f, from: {from}, to: g, ip: 6, over: udp, app: {{ cbr: {{ rate: 400 kbit/s, size: 500 B, start: 1 s }} }} }}]
{rest}
",
        nodes.join(", "),
        listed.collect::<String>()
    );
    document(&text).runs.into_iter().next().unwrap()
}

/// Units that members should have received and did not, of this number that was sent to each.
fn lost(run: &Run, members: u64, sent: u64) -> u64 {
    ((1.0 - reliability(run)) * (members * sent) as f64).round() as u64
}

#[track_caller]
fn within(found: u64, expected: std::ops::RangeInclusive<u64>, what: &str) {
    assert!(expected.contains(&found), "{what}: {found}, expected {expected:?}");
}

/// Reports and registrations are over before the window begins, but for the registration at 15 s.
#[test]
fn links_between_designated_routers_carry_a_list_of_them_and_hosts_links_plain_multicast() {
    let run =
        tree("[a, b, c, d, e]", &(services("[r0, r1, r2]", "") + "measure: { from: 12 s, to: 30 s }\n"));
    assert_eq!(reliability(&run), 1.0);
    let data = frames(&run, "s", "r0");
    within(data, 1799..=1801, "datagrams");
    let each = link(&run, "s", "r0").sent_bytes / data;
    for (from, to, more) in [("r0", "r1", list(2)), ("r0", "r2", list(2)), ("r1", "a", 0), ("r2", "e", 0)] {
        let Link { sent_packets, sent_bytes, .. } = *link(&run, from, to);
        assert_eq!((sent_packets, sent_bytes), (data, data * (each + more)), "{from} to {to}");
    }
    for router in ["r1", "r2"] {
        let Link { sent_packets, sent_bytes, .. } = *link(&run, router, "r0");
        assert_eq!((sent_packets, sent_bytes), (1, REGISTRATION), "{router}");
    }
    assert_eq!((frames(&run, "r0", "s"), frames(&run, "a", "r1")), (0, 0));
    assert_eq!((service(&run, "xcast_registrations_refused"), service(&run, "xcast_unicast")), (0, 0));
}

#[test]
fn hosts_that_ask_for_ethernet_addresses_are_served_too() {
    let run = tree("[a, b, c, d, e]", &(services("[r0, r1, r2]", "") + "neighbours: resolve\n"));
    within(lost(&run, 5, 3000), 0..=5, "while the first addresses are asked for");
}

/// A member on a router hears of the router before it, which is its designated one.
#[test]
fn a_member_that_is_a_router_is_served_by_the_one_before_it() {
    let run = tree("[a, r1, e]", &(services("[r0, r1, r2]", "") + "measure: { from: 12 s, to: 30 s }\n"));
    assert_eq!(reliability(&run), 1.0);
    let data = frames(&run, "s", "r0");
    // A list of the two for a, and multicast for r1 itself.
    assert_eq!(frames(&run, "r0", "r1"), 2 * data);
    assert_eq!([("r1", "a"), ("r2", "e")].map(|(from, to)| frames(&run, from, to)), [data; 2]);
}

#[test]
fn without_members_nothing_leaves_the_senders_link_and_they_come_and_go_while_it_runs() {
    let events = "events: [{ at: 11 s, group: g, leave: [d, e] }, { at: 21 s, group: g, join: [d, e] }]\n";
    let run = tree("[a, d, e]", &(services("[r0, r1, r2]", "") + events));
    let data = link(&run, "r0", "r1").sent_packets;
    // The linger of 1 s, and two queries to those that may be left; and the way of the report and the registration.
    within(data - frames(&run, "r0", "r2"), 695..=705, "without members");
    within(lost(&run, 3, 3000), 0..=4, "of joins");
    // One of them alone: its router's link has the others' data.
    let one = "events: [{ at: 11 s, group: g, leave: [e] }]\n";
    let run = tree("[a, d, e]", &(services("[r0, r1, r2]", "") + one));
    let (stays, leaves) = (frames(&run, "r2", "d"), frames(&run, "r2", "e"));
    within(stays - leaves, 1690..=1710, "on a link of its own");
}

#[test]
fn a_lost_registration_costs_seconds_and_so_does_a_lost_leave() {
    let events = "events:
  - { at: 0 s, links: [r0-r1], loss: 100 % }
  - { at: 2.5 s, links: [r0-r1], loss: 0 % }
  - { at: 11 s, group: g, leave: [a, b, c] }
  - { at: 13.5 s, links: [r0-r1], loss: 100 % }
  - { at: 15.5 s, links: [r0-r1], loss: 0 % }
";
    let run = tree("[a, b, c, e]", &(services("[r0, r1, r2]", "") + events));
    // Registrations at 0 s and 1 s are lost, that at 3 s is not.
    within(lost(&run, 1, 3 * 1000 + 3000), 595..=605, "before the first registration");
    // The leave at 14 s is lost, and the first datagram that arrives then causes another.
    within(frames(&run, "r0", "r1"), 1245..=1255, "sent towards the router");
}

#[test]
fn a_designated_router_that_stops_is_sent_to_until_its_registration_ends_and_one_that_starts_registers() {
    let of = "events: [{ at: 11 s, service: x, stop: true, on: [r1] }, { at: 20 s, service: x, start: true, on: [r1] }]\n";
    let run = tree("[a, b, c, d, e]", &(services("[r0, r1, r2]", ", refresh: 1 s, hold: 4 s") + of));
    within(lost(&run, 5, 3000), 3 * 898..=3 * 903, "of its members");
    // Three or four seconds go by until the registration ends.
    within(frames(&run, "r0", "r2") - frames(&run, "r0", "r1"), 495..=605, "not sent");
    // The source's router loses all registrations, and is told the next ones.
    let of = "events: [{ at: 11 s, service: x, stop: true, on: [r0] }, { at: 13 s, service: x, start: true, on: [r0] }]\n";
    let run = tree("[a, b, c, d, e]", &(services("[r0, r1, r2]", ", refresh: 4 s") + of));
    within(lost(&run, 5, 3000), 5 * 200..=5 * 602, "of all members");
}

/// Two routers at the members' segment, of which r1 has the lower address.
const SEGMENT: [&str; 4] =
    ["between: [s, r0]", "between: [r0, r1]", "between: [r0, r2]", "switch: [r1, r2, m, n]"];

#[test]
fn of_two_designated_routers_on_a_link_the_querier_serves_it_and_the_other_takes_over() {
    let quick = |events: &str| {
        services("[r0, r1, r2]", ", refresh: 2 s, hold: 6 s")
            .replace("run: mld-querier", "run: mld-querier, query-interval: 4 s")
            + events
    };
    let run = network(&SEGMENT, ("s", "[m, n]"), 31, &quick("measure: { from: 2 s, to: 30 s }\n"));
    assert_eq!(reliability(&run), 1.0);
    let data = frames(&run, "s", "r0");
    let [over1, over2] = ["r1", "r2"].map(|router| frames(&run, "r0", router));
    // Beside data only the queries of every four seconds cross these links.
    within(over1 - data, 0..=8, "by the querier");
    within(over2, 0..=8, "by the other");
    assert_eq!(service(&run, "xcast_to_multicast"), service(&run, "xcast_from_multicast"), "each once");

    let events = "events:
  - { at: 11 s, service: x, stop: true, on: [r1] }
  - { at: 11 s, service: q, stop: true, on: [r1] }
  - { at: 31 s, service: x, start: true, on: [r1] }
  - { at: 31 s, service: q, start: true, on: [r1] }
";
    let run = network(&SEGMENT, ("s", "[m, n]"), 51, &quick(events));
    // Twice 4 s and half of 2 s after the last query; and up to 2 s until members answer the one that is back. What is
    // registered for that one ends after 6 s.
    within(lost(&run, 2, 5000), 2 * 480..=2 * 1110, "while nobody serves them");
    let [over1, over2] = ["r1", "r2"].map(|router| frames(&run, "r0", router));
    within(over1, 3100..=3660, "by the querier");
    within(over2, 1090..=1540, "by the other meanwhile");
}

#[test]
fn members_on_the_link_by_which_lists_come_are_served_once() {
    let links = ["between: [s, r0]", "switch: [r0, r1, m]"];
    let both = services("[r0, r1]", "");
    let alone = both.replace("mld-querier, on: [r0, r1]", "mld-querier, on: [r1]");
    for services in [alone, both] {
        let run = network(&links, ("s", "[m]"), 31, &(services + "measure: { from: 12 s, to: 30 s }\n"));
        assert_eq!(reliability(&run), 1.0);
        assert_eq!(service(&run, "xcast_from_multicast"), 3000, "no copy becomes a list again");
        assert_eq!(service(&run, "xcast_to_multicast"), 3000);
    }
}

/// r1 brings the source's packets from one segment to the other, where r2 is too.
#[test]
fn a_copy_of_another_router_becomes_no_second_list() {
    let links = ["switch: [s, r1, r2]", "switch: [r1, r2, m]", "between: [r2, r3]", "between: [r3, n]"];
    let rest = services("[r1, r2, r3]", "") + "measure: { from: 12 s, to: 30 s }\n";
    let run = network(&links, ("s", "[m, n]"), 31, &rest);
    assert_eq!(reliability(&run), 1.0);
    let data = frames(&run, "r3", "n");
    within(data, 1799..=1801, "datagrams");
    within(frames(&run, "r2", "r3"), data..=data, "lists");
}

/// r3 is behind r1, which is beside the sender: what r3 registers passes it.
#[test]
fn a_sender_that_is_a_router_itself_is_its_own_designated_one() {
    let links = [
        "between: [r0, h]",
        "between: [r0, r1]",
        "between: [r1, a]",
        "between: [r1, r3]",
        "between: [r3, b]",
    ];
    let window = "measure: { from: 12 s, to: 30 s }\n";
    let run = network(&links, ("r0", "[h, a, b]"), 31, &(services("[r0, r1, r3]", "") + window));
    assert_eq!(reliability(&run), 1.0);
    let Link { sent_packets: data, sent_bytes, .. } = *link(&run, "r0", "h");
    within(data, 1799..=1801, "datagrams");
    let each = sent_bytes / data;
    for (from, to, more) in [("r0", "r1", list(2)), ("r1", "r3", list(2)), ("r1", "a", 0), ("r3", "b", 0)] {
        let Link { sent_packets, sent_bytes, .. } = *link(&run, from, to);
        assert_eq!((sent_packets, sent_bytes), (data, data * (each + more)), "{from} to {to}");
    }
}

#[test]
fn past_routers_without_it_lists_go_in_a_tunnel_to_each_designated_router() {
    let links = [
        "between: [s, r0]",
        "between: [r0, x]",
        "between: [x, r1]",
        "between: [x, r2]",
        "between: [r1, a]",
        "between: [r2, b]",
    ];
    let window = "measure: { from: 12 s, to: 30 s }\n";
    let run = network(&links, ("s", "[a, b]"), 31, &(services("[r0, r1, r2]", "") + window));
    assert_eq!(reliability(&run), 1.0);
    let data = frames(&run, "s", "r0");
    let each = link(&run, "s", "r0").sent_bytes / data;
    for (from, to, copies, more) in
        [("r0", "x", 2, list(2) + 40), ("x", "r1", 1, list(2) + 40), ("r1", "a", 1, 0)]
    {
        let Link { sent_packets, sent_bytes, .. } = *link(&run, from, to);
        assert_eq!(
            (sent_packets, sent_bytes),
            (copies * data, copies * data * (each + more)),
            "{from} to {to}"
        );
    }
}

/// The thesis' first use case of 14 receivers, behind 11 routers, once the members' reports are over: each direction of
/// each link with packets and bytes.
fn testbed(delivery: &str, services: &str) -> Vec<(String, String, [u64; 2])> {
    let network = scenarios().join("networks/meadcast-testbed.yaml");
    let text = format!(
        "
duration: 28 s
measure: {{ from: 12 s, to: 27 s }}
include: {}
groups: [{{ name: film, members: [], delivery: {delivery} }}]
events: [{{ at: 10 s, group: film, join: uc1-1 }}]
flows:
  - {{ name: f, from: c3001, to: film, ip: 6, over: udp, app: {{ cbr: {{ rate: 200 kbit/s, size: 1000 B }} }} }}
{services}",
        network.display()
    );
    let run = document(&text).runs.into_iter().next().unwrap();
    assert_eq!(reliability(&run), 1.0, "in the window");
    let of = |link: &Link| (link.from.clone(), link.to.clone(), [link.sent_packets, link.sent_bytes]);
    run.links.iter().map(of).collect()
}

#[test]
fn each_link_of_the_thesis_network_carries_what_it_does_by_ip_multicast_and_the_list_between_routers() {
    let plus = testbed("xcast-plus", &services("routers", ""));
    let multicast = testbed("{ ip-multicast: { one-source: true } }", "membership: report\n");
    let is_router = |name: &str| name.starts_with('r');
    let mut listed = 0;
    for ((from, to, [packets, bytes]), (_, _, of_multicast)) in plus.iter().zip(&multicast) {
        match of_multicast {
            // Towards the sender each router on the way passes the registrations of those behind it.
            [0, _] => assert_eq!(*bytes, packets * REGISTRATION, "{from} to {to}"),
            [data, plain] => {
                let more = if is_router(from) && is_router(to) { list(11) } else { 0 };
                assert_eq!((*packets, *bytes), (*data, plain + data * more), "{from} to {to}");
                listed += u64::from(more > 0);
            }
        }
    }
    assert!(listed > 20, "{listed}");
}

#[test]
fn what_norm_sends_comes_whole_to_each_member_over_links_that_lose() {
    let links = ["s, r0", "r0, r1", "r0, r2", "r1, a", "r1, b", "r2, c"];
    let links =
        links.map(|ends| format!("    - {{ between: [{ends}], rate: 10 Mbit/s, delay: 2 ms, loss: 1 % }}\n"));
    let text = format!(
        "
duration: 60 s
topology:
  nodes: [s, r0, r1, r2, a, b, c]
  links:
{}groups: [{{ name: g, members: [a, b, c], delivery: xcast-plus }}]
flows: [{{ name: f, from: s, to: g, ip: 6, over: {{ norm: {{ rate: 3 Mbit/s }} }}, app: {{ bulk: {{ bytes: 2 MB, start: 1 s }} }} }}]
{}",
        links.concat(),
        services("[r0, r1, r2]", "")
    );
    let run = document(&text).runs.into_iter().next().unwrap();
    assert_eq!(reliability(&run), 1.0);
    assert!(service(&run, "xcast_from_multicast") > 1000);
    assert!(
        run.hosts.get("too_big").is_none_or(|count| *count == 0),
        "packets fit the route with their lists"
    );
}

/// The members of both report sources, and the trees of the second group are idealised ones.
#[test]
fn groups_of_another_delivery_keep_their_own_trees() {
    let groups = [("g", "[a, e]", "xcast-plus"), ("h", "[b, d]", "{ ip-multicast: { one-source: true } }")];
    let rest = services("[r0, r1, r2]", "") + "measure: { from: 12 s, to: 30 s }\n";
    let run = tree_of_routers(&groups, &rest);
    for flow in &run.flows {
        assert_eq!(flow.figures.reliability, Some(1.0));
    }
    assert_eq!(service(&run, "xcast_from_multicast"), 3000, "of the first group alone");
    assert_eq!(service(&run, "xcast_to_multicast"), 2 * 3000);
}

#[test]
fn beside_long_datagrams_lists_are_shorter_and_those_without_room_for_one_router_are_refused() {
    let rest = services("[r0, r1, r2]", "") + "measure: { from: 12 s, to: 30 s }\n";
    let of_size = |size| {
        text_of_tree(&[("g", "[a, d]", "xcast-plus")], &rest)
            .replace("size: 500 B", &format!("size: {size} B"))
    };
    let run = document(&of_size(1364)).runs.into_iter().next().unwrap();
    assert_eq!(reliability(&run), 1.0);
    assert!(run.hosts.get("too_big").is_none_or(|count| *count == 0));
    assert!(load_text(Path::new("x.yaml"), &of_size(1365), &Overrides::default()).is_err());
}

#[test]
fn a_designated_router_in_a_live_run_is_refused_in_one_line() {
    let needs = |designated: &str| {
        let text = format!(
            "duration: 9 s
topology: {{ nodes: [s, r, m], links: [{{ between: [s, r] }}, {{ between: [r, m] }}] }}
flows: [{{ from: s, to: m, ip: 6, over: udp, app: {{ cbr: {{ rate: 1 Mbit/s, size: 100 B }} }} }}]
services: [{{ name: x, run: xcast-router, on: [r], designated: {designated} }}]
"
        );
        let plan = load_text(Path::new("x.yaml"), &text, &Overrides::default()).unwrap();
        needs_virtual_time(&plan.cases[0].scenario)
    };
    assert_eq!(needs("off"), None);
    let line = "service `x`: `xcast-router` with `designated: on` is for virtual time";
    assert_eq!(needs("on").as_deref(), Some(line));
}

#[test]
fn what_xcast_plus_lacks_is_said_in_one_line() {
    let mistake = |ip: u8, over: &str, services: &str| {
        let text = format!(
            "duration: 9 s
topology: {{ nodes: [s, r, o, m], links: [{{ between: [s, r] }}, {{ between: [r, o] }}, {{ between: [o, m] }}] }}
groups: [{{ name: g, members: [m], delivery: xcast-plus }}]
flows: [{{ from: s, to: g, ip: {ip}, over: {over}, app: {{ cbr: {{ rate: 1 Mbit/s, size: 100 B }} }} }}]
{services}"
        );
        match load_text(Path::new("bad.yaml"), &text, &Overrides::default()) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        }
    };
    let right = services("[r, o]", "");
    assert_eq!(mistake(6, "udp", &right), "");
    for (ip, over, services, expected) in [
        (4, "udp", right.clone(), "`xcast-plus`: it is a protocol of IPv6: add `ip: 6` to the flow"),
        (6, "disservice", right.clone(), "`xcast-plus`: its members hear one source alone, and this"),
        (6, "udp", right.replace("report", "plan"), "bad.yaml:5:13: `membership`: expected `report`"),
        (6, "udp", right.replace("designated: on", "designated: off"), "no router is a designated one"),
        (6, "udp", services("[o]", ""), "its sender `s` has no designated router on its links"),
        (6, "udp", services("[r]", ""), "`m` has no designated router on its links that runs `mld-querier`"),
        (6, "udp", services("[r, o]", ", hold: 19 h"), "`hold`: expected 1 s to 18 h, found `19 h`"),
        (
            6,
            "udp",
            right.clone() + "  - { name: y, run: xcast-router, on: s }\n",
            "its sender `s` runs `xcast-router`, and without `designated: on`",
        ),
        (
            6,
            "udp",
            right.clone() + "  - { name: p, run: pim, on: [r] }\n",
            "`on`: `r` runs `x`, which brings groups to their members as `p` does",
        ),
        (
            6,
            "udp",
            right.clone() + "events: [{ at: 1 s, service: x, set: { designated: off } }]\n",
            "`set`: `designated`: which packets `x` takes out of its host stays the same",
        ),
    ] {
        let found = mistake(ip, over, &services);
        assert!(found.contains(expected), "{found}\nexpected: {expected}");
    }
}
