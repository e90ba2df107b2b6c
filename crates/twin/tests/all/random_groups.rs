//! Random groups in random networks without loss: a member gets each datagram of its time once, whichever nodes join,
//! leave and come back meanwhile.

#![allow(clippy::unwrap_used)] // in helpers of tests too

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::common::document;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Length of a run, in milliseconds.
const LENGTH: u64 = 3000;
/// Time between two datagrams of a flow, in milliseconds: 200 B at 80 kbit/s.
const INTERVAL: u64 = 20;

/// Spans of a run, each from its first millisecond to just before its last.
type Spans = Vec<(u64, u64)>;

/// A node that joins a group or leaves it, in the order of time.
#[derive(Clone, Debug)]
struct Change {
    /// Milliseconds after the one before.
    after: u64,
    group: Index,
    node: Index,
    /// Whether a member that leaves comes back at the same instant.
    comes_back: bool,
}

/// A random scenario of groups.
#[derive(Clone, Debug)]
struct Groups {
    /// Whether all nodes are on one switch, and not in a tree of links.
    on_switch: bool,
    /// For each node but the first, one before it that it has a link to.
    parents: Vec<Index>,
    /// For each group, which nodes are members from the beginning.
    members: Vec<Vec<bool>>,
    /// For each group, its delivery.
    deliveries: Vec<&'static str>,
    /// For each group, how long those who leave go on to receive, in milliseconds.
    linger: Vec<u64>,
    /// Flows: from a node, to a group, over IPv6 or not.
    flows: Vec<(Index, Index, bool)>,
    changes: Vec<Change>,
    reported: bool,
}

fn change() -> impl Strategy<Value = Change> {
    // A full interval is an instant at which datagrams are sent.
    let after = prop_oneof![1u64..400, (1u64..20).prop_map(|intervals| intervals * INTERVAL)];
    (after, any::<Index>(), any::<Index>(), any::<bool>())
        .prop_map(|(after, group, node, comes_back)| Change { after, group, node, comes_back })
}

fn groups() -> impl Strategy<Value = Groups> {
    (3usize..8, any::<bool>()).prop_flat_map(|(nodes, on_switch)| {
        let deliveries: &[&str] = match on_switch {
            true => &["unicast", "broadcast", "ip-multicast", "{ ip-multicast: { one-source: true } }"],
            false => &["unicast", "ip-multicast", "{ ip-multicast: { one-source: true } }"],
        };
        (
            prop::collection::vec(any::<Index>(), nodes - 1),
            // Two groups, most of whose members are the other's too.
            prop::collection::vec(prop::collection::vec(prop::bool::weighted(0.6), nodes), 2),
            prop::collection::vec(select(deliveries), 2),
            prop::collection::vec(select(&[30u64, 1000][..]), 2),
            prop::collection::vec(any::<(Index, Index, bool)>(), 1..4),
            prop::collection::vec(change(), 0..12),
            any::<bool>(),
        )
            .prop_map(move |(parents, members, deliveries, linger, flows, changes, reported)| {
                Groups { on_switch, parents, members, deliveries, linger, flows, changes, reported }
            })
    })
}

impl Groups {
    fn nodes(&self) -> usize {
        self.parents.len() + 1
    }

    /// The scenario, and for each group and node the spans in which it is a member.
    fn scenario(&self) -> (String, Vec<Vec<Spans>>) {
        let nodes: Vec<_> = (0..self.nodes()).map(|node| format!("n{node}")).collect();
        let all = nodes.join(", ");
        let reported = if self.reported { "membership: report\n" } else { "" };
        let mut text = format!("duration: {LENGTH} ms\n{reported}topology:\n  nodes: [{all}]\n  links:\n");
        if self.on_switch {
            writeln!(text, "    - {{ name: yard, switch: [{all}], rate: 10 Mbit/s, delay: 1 ms }}").unwrap();
        } else {
            for (place, parent) in self.parents.iter().enumerate() {
                let ends = format!("[n{}, n{}]", parent.index(place + 1), place + 1);
                writeln!(text, "    - {{ between: {ends}, rate: 10 Mbit/s, delay: 1 ms }}").unwrap();
            }
        }
        text += "groups:\n";
        let mut spans = vec![vec![Vec::new(); self.nodes()]; self.members.len()];
        for (group, members) in self.members.iter().enumerate() {
            let first: Vec<_> = (0..self.nodes()).filter(|&node| members[node]).collect();
            first.iter().for_each(|&node| spans[group][node].push((0, LENGTH)));
            let names: Vec<_> = first.iter().map(|&node| &*nodes[node]).collect();
            let (names, delivery, linger) = (names.join(", "), self.deliveries[group], self.linger[group]);
            writeln!(
                text,
                "  - {{ name: g{group}, members: [{names}], delivery: {delivery}, linger: {linger} ms }}"
            )
            .unwrap();
        }
        let mut events = String::new();
        let mut at = 0;
        for change in &self.changes {
            let (group, node) = (change.group.index(self.members.len()), change.node.index(self.nodes()));
            at += change.after;
            let mut write = |what: &str| {
                writeln!(events, "  - {{ at: {at} ms, group: g{group}, {what}: n{node} }}").unwrap();
            };
            match spans[group][node].last_mut().filter(|(_, until)| *until == LENGTH) {
                Some(member) => {
                    write("leave");
                    member.1 = at;
                    if change.comes_back {
                        write("join");
                        spans[group][node].push((at, LENGTH));
                    }
                }
                None => {
                    write("join");
                    spans[group][node].push((at, LENGTH));
                }
            }
        }
        if !events.is_empty() {
            text = text + "events:\n" + &events;
        }
        text += "flows:\n";
        for (number, (from, group, six)) in self.flows.iter().enumerate() {
            let (from, group) = (from.index(self.nodes()), group.index(self.members.len()));
            let ip = if *six { 6 } else { 4 };
            writeln!(
                text,
                "  - {{ name: f{number}, from: n{from}, to: g{group}, over: udp, ip: {ip}, \
                 app: {{ cbr: {{ rate: 80 kbit/s, size: 200 B }} }} }}"
            )
            .unwrap();
        }
        (text, spans)
    }

    /// Whether each flow has a receiver at some time, without which its file is refused.
    fn has_receivers(&self, spans: &[Vec<Spans>]) -> bool {
        self.flows.iter().all(|(from, group, _)| {
            let from = from.index(self.nodes());
            let members = spans[group.index(self.members.len())].iter().enumerate();
            members.filter(|(node, _)| *node != from).any(|(_, spans)| !spans.is_empty())
        })
    }
}

/// Number of datagrams that a flow sends in spans of milliseconds: from the first instant to just before the last.
fn sent_in(spans: &[(u64, u64)]) -> u64 {
    let sent = (0..LENGTH).step_by(INTERVAL as usize);
    sent.filter(|at| spans.iter().any(|(from, to)| (from..to).contains(&at))).count() as u64
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 80, ..ProptestConfig::default() })]

    #[test]
    fn each_member_gets_each_datagram_of_its_time_once(groups in groups()) {
        let (text, spans) = groups.scenario();
        prop_assume!(groups.has_receivers(&spans));
        let run = document(&text).runs.remove(0);
        for (flow, (from, group, _)) in run.flows.iter().zip(&groups.flows) {
            let (from, group) = (from.index(groups.nodes()), group.index(groups.members.len()));
            let members = spans[group].iter().enumerate();
            let members: BTreeSet<String> = members
                .filter(|(node, spans)| *node != from && !spans.is_empty())
                .map(|(node, _)| format!("n{node}"))
                .collect();
            // A flow to one node has no list of receivers.
            let receivers: BTreeSet<String> = flow.receivers.iter().map(|one| one.node.clone()).collect();
            prop_assert_eq!(&receivers, &members, "{}", text);
            for receiver in &flow.receivers {
                let node: usize = receiver.node[1..].parse().unwrap();
                let figures = &receiver.figures;
                let expected = sent_in(&spans[group][node]);
                prop_assert_eq!(
                    (figures.sent_units, figures.delivered_units), (expected, expected),
                    "{} at {}: {}", flow.name, receiver.node, text
                );
            }
            for counter in ["damaged_units", "duplicate_units"] {
                prop_assert_eq!(flow.counters[counter], 0, "{} of {}: {}", counter, flow.name, text);
            }
        }
    }
}
