//! Groups of many members: loading, building, running and measuring grow with the members and not with their square.

use std::path::Path;

use hopcast_runner::{load, run};
use hopcast_twin::Monitor;
use hopcast_twin::scenario::Overrides;

/// Bytes of a frame: the payload of 1,000 B with its headers of UDP, IPv4 and Ethernet.
const FRAME: u64 = 1000 + 8 + 20 + 14;

#[test]
fn ten_thousand_nodes_are_members_of_ten_groups() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/large-groups.yaml");
    // Each sender sends at 0 s and at 100 ms.
    let sets = vec!["duration=300 ms".to_owned(), "measure.to=200 ms".to_owned()];
    let plan =
        load(&file, &Overrides { sets, ..Overrides::default() }).unwrap_or_else(|error| panic!("{error}"));
    let document = run(&plan, 1, None, &Monitor::default()).unwrap();
    let run = &document.runs[0];
    assert_eq!(run.flows.len(), 10);
    for flow in &run.flows {
        assert_eq!(flow.receivers.len(), 11_110);
        assert_eq!(flow.figures.reliability, Some(1.0), "{}", flow.name);
        assert_eq!(flow.figures.sent_units, 2 * 11_110);
        // A bound of 100 Mbit/s everywhere.
        let share = flow.figures.goodput_mbps.unwrap() / 100.0;
        assert!((flow.figures.min_cut_fraction.unwrap() - share).abs() < 1e-9);
    }
    assert_eq!(run.network_bytes, Some(10 * 2 * 11_110 * FRAME));
}
