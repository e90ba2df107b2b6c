//! The coded transports in the twin: the nodes of their machines, and complete delivery.

use crate::common::scenarios::{self, FILE};
use crate::common::{document, flow, near};
use hopcast_stack::TRANSPORTS;
use hopcast_stack::table::Worlds;
use hopcast_stack::transport::PortKind;

/// Four lossy hops with a file across them.
fn four_hops(over: &str, roles: &str) -> String {
    scenarios::four_hops("duration: 20 s", "rate: 50 Mbit/s, delay: 2 ms, loss: 10 %", roles, over, FILE)
}

#[test]
fn a_file_arrives_whole_over_every_reliable_stack() {
    // Each transport of the table with a stream, and stacks. TCP and QUIC do not get a file over four hops of 10 % in
    // time.
    let of_table =
        TRANSPORTS.iter().filter(|row| row.offers.has(PortKind::Stream) && row.worlds == Worlds::Both);
    let stacks = [
        "{ brtp: { batch-size: 4 } }",
        "{ brtp: { batch-size: 32, window: 64 } }",
        "{ brtp: { feedback: none } }",
        "[tcp-cubic, bats-proxy]",
        "[tcp-bbr, bats-proxy]",
        "[tcp-cubic, tunnel, brtp]",
        "[brtp, udp, tunnel, brtp]",
    ];
    for over in of_table.map(|row| row.name).chain(stacks) {
        let text = four_hops(over, "");
        let is_tcp = over.starts_with("tcp") || over.starts_with("quic");
        let flow = flow(&if is_tcp { text.replace("loss: 10 %", "loss: 1 %") } else { text });
        assert_eq!(flow.figures.hash_ok, Some(true), "{over}: {:?}", flow.figures);
    }
}

#[test]
fn copies_turn_a_loss_of_p_into_its_power() {
    let lost = |over: &str| {
        let text = four_hops(over, "").replace(FILE, "{ cbr: { rate: 2 Mbit/s, size: 1400 B } }");
        1.0 - flow(&text.replace("hops: 4", "hops: 1").replace("n4", "n1")).figures.reliability.unwrap()
    };
    // Of 3,571 datagrams; three standard deviations.
    near(lost("udp"), 0.1, 0.16);
    near(lost("fec"), 0.01, 0.52);
    assert!(lost("{ fec: { copies: 4 } }") < 0.002);
}

/// A datagram is missing in the end if it was lost and so were more packets of its block than that has parity.
#[test]
fn parity_leaves_what_blocks_lose_beyond_it() {
    let lost = |over: &str| {
        let text = four_hops(over, "").replace(FILE, "{ cbr: { rate: 2 Mbit/s, size: 140 B } }");
        1.0 - flow(&text.replace("hops: 4", "hops: 1").replace("n4", "n1")).figures.reliability.unwrap()
    };
    let of_blocks = |data: u32, parity: u32| {
        let packets = data + parity;
        let ways = |lost: u32| (0..lost).fold(1.0, |all, i| all * f64::from(packets - i) / f64::from(i + 1));
        let probability =
            |lost: u32| ways(lost) * 0.1_f64.powi(lost as i32) * 0.9_f64.powi((packets - lost) as i32);
        (parity + 1..=packets)
            .map(|lost| probability(lost) * f64::from(lost) / f64::from(packets))
            .sum::<f64>()
    };
    // Of 35,714 datagrams, one each 0.56 ms; three standard deviations of the number of blocks that lose too many.
    // Where a block ends before a second datagram comes, it has one and one of parity.
    let over = |data, parity, wait| {
        lost(&format!("{{ block-fec: {{ data: {data}, parity: {parity}, wait: {wait} }} }}"))
    };
    near(over(20, 3, "20ms"), of_blocks(20, 3), 0.16);
    near(over(10, 3, "20ms"), of_blocks(10, 3), 0.28);
    near(over(10, 3, "500us"), of_blocks(1, 1), 0.16);
    assert!(over(20, 10, "20ms") < 4.0 * of_blocks(20, 10) + 0.001);
}

#[test]
fn relays_are_those_that_the_roles_name() {
    for (roles, relays) in [("", vec!["n1", "n2", "n3"]), ("relay: [n2]", vec!["n2"]), ("relay: []", vec![])]
    {
        let flow = flow(&four_hops("brtp", roles));
        assert_eq!(flow.figures.hash_ok, Some(true), "{roles}");
        let recoded = |node: &str| flow.counters.keys().any(|name| name.starts_with(&format!("{node}.")));
        let found: Vec<&str> = ["n1", "n2", "n3"].into_iter().filter(|node| recoded(node)).collect();
        assert_eq!(found, relays);
    }
}

#[test]
fn gateways_take_over_a_connection_of_ends_that_know_nothing_of_them() {
    let flow = flow(&four_hops("[tcp-cubic, bats-proxy]", "proxy: [n1, n3]"));
    assert_eq!(flow.figures.hash_ok, Some(true));
    // TCP's own loss on the two outer links, none on the inner ones.
    for gateway in ["n1", "n3"] {
        assert!(flow.counters.keys().any(|name| name.starts_with(&format!("{gateway}."))), "{gateway}");
    }
    assert!(flow.counters.keys().any(|name| name.starts_with("n2.")), "the node between them relays");
    assert!(!flow.counters.keys().any(|name| name.starts_with("bats.")), "the ends have plain TCP");
}

#[test]
fn each_of_several_receivers_gets_all_and_is_measured_for_itself() {
    let document = document(
        "
title: A tree
seed: 1
duration: 10 s
measure: { from: 2 s }
topology:
  nodes: [{ name: s }, { name: r }, { name: a }, { name: b }, { name: c }]
  links:
    - { between: [s, r], rate: 50 Mbit/s, delay: 1 ms, loss: 5 % }
    - { between: [r, a], rate: 50 Mbit/s, delay: 1 ms, loss: 20 % }
    - { between: [r, b], rate: 50 Mbit/s, delay: 1 ms }
    - { between: [b, c], rate: 50 Mbit/s, delay: 1 ms, loss: 10 % }
flows:
  - { name: data, from: s, to: [a, b, c], over: brtp, app: { bulk: { rate: 30 Mbit/s } } }
",
    );
    let flow = &document.runs[0].flows[0];
    assert_eq!(flow.to, "a, b, c");
    for receiver in &flow.receivers {
        assert_eq!(receiver.figures.reliability, Some(1.0), "{}", receiver.node);
        near(receiver.figures.goodput_mbps.unwrap(), 30.0, 0.01);
    }
    // The worst placed one can have 40 Mbit/s.
    near(flow.figures.min_cut_fraction.unwrap(), 30.0 / 40.0, 0.01);
    near(flow.figures.goodput_mbps.unwrap(), 30.0, 0.01);
    // One copy leaves the sender, whatever the receivers are: 30 Mbit/s, headers, and the repair of 5 %.
    let first = document.runs[0].links.iter().find(|link| link.from == "s").unwrap();
    let copies = first.sent_bytes as f64 * 8.0 / 8.0 / 30e6;
    assert!((1.0..1.25).contains(&copies), "{copies} copies");
}

#[test]
fn two_ways_carry_more_than_either_and_one_of_them_may_fail() {
    let flow = flow(
        "
title: Two ways
seed: 1
duration: 20 s
topology:
  nodes: [{ name: s }, { name: n }, { name: m }, { name: d }]
  links:
    - { between: [s, n], rate: 20 Mbit/s, delay: 2 ms, loss: 10 % }
    - { between: [n, d], rate: 20 Mbit/s, delay: 2 ms, loss: 10 % }
    - { between: [s, m], rate: 30 Mbit/s, delay: 5 ms, loss: 10 % }
    - { between: [m, d], rate: 30 Mbit/s, delay: 5 ms, loss: 10 % }
measure: { from: 2 s, to: 10 s }
events:
  - { at: 12 s, links: n-d, down: true }
flows:
  - { name: data, from: s, to: d, over: brtp, paths: 2, app: bulk }
",
    );
    assert!(flow.figures.goodput_mbps.unwrap() > 35.0, "of 45: {:?}", flow.figures.goodput_mbps);
    assert_eq!(flow.counters["damaged_units"], 0);
    assert_eq!(flow.figures.reliability, Some(1.0));
}

/// A medium on which the direct link loses half.
fn on_air(over: &str) -> String {
    let measured = "duration: 12 s\nmeasure: { from: 2 s, to: 10 s }";
    scenarios::on_air(measured, over, "{ bulk: { rate: 2 Mbit/s } }")
}

#[test]
fn franc_brings_all_over_a_medium_and_its_helper_saves_airtime() {
    let plain = flow(&on_air("udp")).figures.reliability.unwrap();
    near(plain, 0.5, 0.05);
    let mut sent = Vec::new();
    for over in ["[udp, franc]", "[udp, { franc: { helper: on } }]"] {
        let document = document(&on_air(over));
        let flow = &document.runs[0].flows[0];
        assert!(flow.figures.reliability.unwrap() > 0.999, "{over}: {:?}", flow.figures.reliability);
        let from = |node: &str| -> u64 {
            let links = document.runs[0].links.iter().filter(|link| link.from == node);
            links.map(|link| link.sent_packets).sum()
        };
        sent.push((from("s"), from("h")));
    }
    assert_eq!(sent[0].1, 0, "without a helper the third station is silent");
    assert!(sent[1].0 + sent[1].1 < sent[0].0 + sent[0].1, "{sent:?}");
}

#[test]
fn franc_carries_tcp_over_a_chain_of_segments() {
    let flow = flow(
        "
title: Two segments
seed: 1
duration: 20 s
topology:
  nodes: [{ name: a }, { name: b }, { name: c }]
  links:
    - { name: first, medium: [a, b], rate: 12 Mbit/s, mac: csma, loss: 20 % }
    - { name: second, medium: [b, c], rate: 12 Mbit/s, mac: csma, loss: 20 % }
flows:
  - { name: file, from: a, to: c, over: [tcp-cubic, franc], app: { file: { path: ../../Cargo.lock } } }
",
    );
    assert_eq!(flow.figures.hash_ok, Some(true), "{:?}", flow.figures);
}

/// A file from `s` to receivers behind `r`, each behind a link of its own.
fn to_group(over: &str, app: &str, branches: &[&str], events: &str) -> String {
    let mut text = format!(
        "title: A group\nseed: 1\nduration: 60 s\n{events}\ntopology:\n  nodes: [{{ name: s }}, {{ name: r }}"
    );
    let names: Vec<String> = (0..branches.len()).map(|branch| format!("x{branch}")).collect();
    names.iter().for_each(|name| text += &format!(", {{ name: {name} }}"));
    text += "]\n  links:\n    - { between: [s, r], rate: 100 Mbit/s, delay: 5 ms }\n";
    for (name, branch) in names.iter().zip(branches) {
        text += &format!("    - {{ between: [r, {name}], {branch} }}\n");
    }
    let to = names.join(", ");
    text + &format!("flows:\n  - {{ name: data, from: s, to: [{to}], over: {over}, app: {app} }}\n")
}

#[test]
fn a_file_to_a_group_is_paced_by_its_slowest_branch_and_arrives_whole_at_all() {
    let slow = ["rate: 10 Mbit/s, delay: 5 ms", "rate: 1 Mbit/s, delay: 5 ms"];
    let lossy = ["rate: 10 Mbit/s, delay: 5 ms", "rate: 10 Mbit/s, delay: 5 ms, loss: 50 %"];
    let far =
        ["rate: 10 Mbit/s, delay: 5 ms", "rate: 10 Mbit/s, delay: 300 ms", "rate: 20 Mbit/s, delay: 1 ms"];
    for branches in [&slow[..], &lossy, &far] {
        for over in ["brtp", "{ brtp: { feedback: none } }"] {
            let flow = flow(&to_group(over, FILE, branches, ""));
            assert_eq!(flow.figures.hash_ok, Some(true), "{over}, {branches:?}: {:?}", flow.figures);
            let refused: Vec<_> =
                flow.counters.iter().filter(|(name, _)| name.contains("units_refused")).collect();
            assert!(!refused.is_empty() && refused.iter().all(|(_, count)| **count == 0), "{refused:?}");
        }
    }
}

#[test]
fn a_bulk_to_a_group_sends_no_more_than_all_take() {
    let branches =
        ["rate: 100 Mbit/s, delay: 5 ms", "rate: 10 Mbit/s, delay: 5 ms", "rate: 20 Mbit/s, delay: 5 ms"];
    let flow = flow(&to_group("brtp", "{ bulk: { stop: 10 s } }", &branches, "measure: { to: 10 s }"));
    assert_eq!(flow.figures.reliability, Some(1.0));
    assert!(flow.figures.goodput_mbps.unwrap() > 9.3, "of 10: {:?}", flow.figures.goodput_mbps);
}

#[test]
fn a_branch_that_vanishes_delays_a_file_to_the_others_and_does_not_end_it() {
    let branches = ["rate: 2 Mbit/s, delay: 5 ms", "rate: 2 Mbit/s, delay: 5 ms"];
    let gone = "events: [{ at: 200 ms, links: r-x1, down: true }]";
    let flow = flow(&to_group("{ brtp: { window: 8 } }", FILE, &branches, gone));
    let done: Vec<_> = flow.receivers.iter().map(|receiver| receiver.figures.hash_ok).collect();
    assert_eq!(done, [Some(true), Some(false)], "{:?}", flow.receivers);
}

#[test]
fn btp_hands_nothing_up_after_its_deadline() {
    for (over, limit) in [("{ btp: { deadline: 30 ms } }", 30.0), ("{ btp: { rounds: 0 } }", 200.0)] {
        let text = format!(
            "
title: A deadline
seed: 1
duration: 5 s
topology:
  chain: {{ hops: 3, link: {{ rate: 20 Mbit/s, delay: 9 ms, loss: 5 % }} }}
flows:
  - {{ name: data, from: n0, to: n3, over: {over}, app: {{ cbr: {{ rate: 4 Mbit/s, size: 1000 B }} }} }}
"
        );
        let figures = flow(&text).figures;
        assert!(figures.latency_ms.as_ref().unwrap().max <= limit, "{over}: {:?}", figures.latency_ms);
        assert!(figures.reliability.unwrap() > 0.8, "{over}: {:?}", figures.reliability);
    }
}

#[test]
fn a_file_over_btp_is_whole_however_slow_its_links_are() {
    for (rate, hops) in [("40 kbit/s", 1), ("100 kbit/s", 3), ("400 kbit/s", 1), ("2 Mbit/s", 3)] {
        for over in ["btp", "{ btp: { feedback: none } }"] {
            let text = format!(
                "
title: Slow links
seed: 1
duration: 60 s
topology:
  chain: {{ hops: {hops}, link: {{ rate: {rate}, delay: 5 ms }} }}
flows:
  - {{ name: data, from: n0, to: n{hops}, over: {over}, app: {FILE} }}
"
            );
            let flow = flow(&text);
            let lost = ["units_expired", "units_refused", "units_late"].map(|name| flow.counters.get(name));
            assert_eq!(flow.figures.hash_ok, Some(true), "{over}, {rate}, {hops} hops: {lost:?}");
        }
    }
}
