//! The study `multicast-coded`: combinations save repairs where several lack others of them, and cost little where one
//! does.

#![allow(clippy::unwrap_used)] // in helpers of tests too

use crate::common::mean;
use crate::common::scenarios::scenarios;
use hopcast_runner::{load, run};
use hopcast_twin::Monitor;
use hopcast_twin::scenario::Overrides;

#[test]
fn coded_repairs_serve_several_at_a_time() {
    let path = scenarios().join("studies/multicast-coded.yaml");
    let plan = load(&path, &Overrides { quick: true, ..Overrides::default() }).unwrap();
    let document = run(&plan, 2, None, &Monitor::default()).unwrap();
    assert_eq!(document.summary.len(), 16);
    // Each cell of `disservice-coded` follows that of `disservice-plain`.
    for pair in document.summary.chunks(2) {
        let what = &pair[0].parameters;
        let of = |figure: &str| [0, 1].map(|place: usize| mean(&pair[place], figure));
        assert_eq!(of("reliability"), [1.0; 2], "{what:?}");
        let [plain, coded] = of("network_bytes");
        let (several, loss) = (what["flows.file.to"] != "[n1]", &what["topology.switch.link.loss"]);
        println!("{what:?}: {plain:.0} {coded:.0}");
        let (least, most) = match loss.as_str().unwrap() {
            "0 %" => (1.0, 1.01),
            _ if !several => (1.0, 1.04),
            "10 %" => (0.9, 0.96),
            "20 %" => (0.84, 0.92),
            _ => (0.82, 0.92),
        };
        assert!((least..most).contains(&(coded / plain)), "{what:?}: {coded} of {plain}");
    }
}
