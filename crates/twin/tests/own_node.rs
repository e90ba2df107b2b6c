//! A process of a live run makes the applications of its own node, and none of others.

#![allow(clippy::unwrap_used)]

use std::fmt::Write;
use std::path::Path;

use hopcast_counting::{Counting, allocations};
use hopcast_runner::load_text;
use hopcast_twin::scenario::Overrides;
use hopcast_twin::world::NodeInstance;

#[global_allocator]
static COUNTING: Counting = Counting;

const APPS: [&str; 4] = [
    "over: udp, app: { video: { rate: 1 Mbit/s } }",
    "over: brtp, app: bulk",
    "over: btp, app: { messages: { size: 100 B, rate: 1 Hz } }",
    "over: fec, app: { cbr: { rate: 1 Mbit/s, size: 1000 B } }",
];

#[test]
fn flows_of_others_cost_a_node_little_more_than_their_routes() {
    // From n0 to n1, over a link of which n2 and n3 know nothing.
    let mut text = "duration: 10 s
topology: { chain: { hops: 3, link: { rate: 10 Mbit/s } } }
flows:
"
    .to_owned();
    (0..100).for_each(|n| writeln!(text, "  - {{ from: n0, to: n1, {} }}", APPS[n % 4]).unwrap());
    let plan = load_text(Path::new("test.yaml"), &text, &Overrides::default()).unwrap();
    let scenario = &plan.cases[0].scenario;
    let at = |node| {
        let mut has_flows = false;
        let counted =
            allocations(|| has_flows = NodeInstance::at(scenario, 0, node, &Vec::new()).unwrap().is_some());
        (has_flows, counted)
    };
    let [(_, sender), (_, receiver), (others, other), _] = [0, 1, 2, 3].map(at);
    assert!(!others);
    // Routes and who takes part are found out for each flow at every node.
    assert!(other < 100 * 40, "{other} allocations");
    assert!(other * 2 < sender && other * 2 < receiver, "{sender}, {receiver} and {other} allocations");
}
