//! The cost of groups grows with their members and not with the square: memory and allocations of loading, building,
//! running and measuring, counted on trees of ten times the nodes or with ten times the groups.

#![allow(clippy::unwrap_used)]

use std::fmt::Write;
use std::path::Path;

use hopcast_counting::{Counting, allocations, peak_bytes};
use hopcast_runner::load_text;
use hopcast_twin::bounds::Bounds;
use hopcast_twin::scenario::Overrides;
use hopcast_twin::{Monitor, World};

#[global_allocator]
static COUNTING: Counting = Counting;

/// Allocations, and the maximum of allocated bytes, of a scenario from its text to its results.
#[derive(Clone, Copy, Debug)]
struct Cost {
    allocations: u64,
    bytes: u64,
}

fn cost(text: &str) -> Cost {
    let mut bytes = 0;
    let allocations = allocations(|| {
        bytes = peak_bytes(|| {
            let plan = load_text(Path::new("test.yaml"), text, &Overrides::default()).unwrap();
            let case = &plan.cases[0];
            let world = World::new(case.scenario.clone(), 0, None).unwrap();
            let run = world.run_to_end(case, 0, &Bounds::default(), &Monitor::default()).unwrap().unwrap();
            for flow in &run.flows {
                assert_eq!(flow.figures.reliability, Some(1.0), "{}", flow.name);
            }
        });
    });
    Cost { allocations, bytes }
}

/// A tree all of whose nodes are members of some groups, to each of which node 0 sends; `more` of topology and events.
fn tree(depth: u32, groups: usize, app: &str, [topology, events]: [&str; 2]) -> String {
    let mut text = format!(
        "duration: 2 s
topology: {{ tree: {{ depth: {depth}, fanout: 10, link: {{ rate: 100 Mbit/s, delay: 100us }} }}{topology} }}
groups:
"
    );
    (0..groups).for_each(|n| {
        writeln!(text, "  - {{ name: g{n}, members: all, delivery: ip-multicast }}").unwrap();
    });
    writeln!(text, "{events}flows:").unwrap();
    (0..groups).for_each(|n| {
        writeln!(text, "  - {{ name: f{n}, from: n0, to: g{n}, over: udp, app: {app} }}").unwrap();
    });
    text
}

/// Fails if the larger of two costs more than 12.5 times the smaller.
#[track_caller]
fn tenfold(what: &str, small: Cost, large: Cost) {
    let [allocations, bytes] = [(small.allocations, large.allocations), (small.bytes, large.bytes)]
        .map(|(s, l)| l as f64 / s as f64);
    assert!(
        allocations < 12.5 && bytes < 12.5,
        "{what}: {allocations} and {bytes} from {small:?} to {large:?}"
    );
}

const CBR: &str = "{ cbr: { rate: 800 kbit/s, size: 1000 B, stop: 100 ms } }";

#[test]
fn ten_times_the_nodes_cost_ten_times_as_much() {
    let plain = ["", ""];
    let file = format!("{{ file: {{ path: {}/Cargo.toml }} }}", env!("CARGO_MANIFEST_DIR"));
    let other_mtu = [", nodes: [m], links: [{ between: [n1, m], rate: 100 Mbit/s, mtu: 1400 }]", ""];
    let link_changes = ["", "events: [{ at: 1 s, links: n0-n1, rate: 10 Mbit/s }]\n"];
    for (what, app, more) in [
        ("datagrams", CBR, plain),
        ("a file, which each receiver has at another time", &file, plain),
        ("links of two MTUs", CBR, other_mtu),
        ("a file and links that change", &file, link_changes),
    ] {
        tenfold(what, cost(&tree(2, 2, app, more)), cost(&tree(3, 2, app, more)));
    }
}

#[test]
fn ten_times_the_groups_cost_ten_times_as_much() {
    tenfold("groups", cost(&tree(2, 3, CBR, ["", ""])), cost(&tree(2, 30, CBR, ["", ""])));
}

#[test]
fn a_member_costs_a_few_kilobytes() {
    let Cost { bytes, .. } = cost(&tree(3, 10, CBR, ["", ""]));
    let each = bytes / (10 * 1110);
    // Ten thousand nodes with ten groups each have 4 GiB together, which is 38 kB for each.
    assert!(each < 10_000, "{each} bytes for a member");
}
