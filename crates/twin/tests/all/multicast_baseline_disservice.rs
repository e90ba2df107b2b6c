//! The study `multicast-baseline` over `disservice`: all is complete, near what repeating lost packets takes at least,
//! and takes no more bytes and no longer than published.

#![allow(clippy::unwrap_used)] // in helpers of tests too

use crate::common::scenarios::scenarios;
use crate::common::{mean, repetitions};
use hopcast_runner::{load, run};
use hopcast_twin::Monitor;
use hopcast_twin::scenario::Overrides;

/// Full packets of a transfer: 819,200 bytes in pieces of 1,368, and the bytes of each with its Ethernet header.
const PACKETS: f64 = 599.0;
const FRAME: f64 = 1456.0;

#[test]
fn every_cell_of_disservice_is_complete_and_near_the_bound_of_repeating_what_is_lost() {
    let path = scenarios().join("studies/multicast-baseline.yaml");
    let overrides = Overrides {
        sets: vec!["sweep.flows.file.over=[disservice-fixed]".to_owned()],
        ..Overrides::default()
    };
    let plan = load(&path, &overrides).unwrap_or_else(|error| panic!("{error}"));
    let document = run(&plan, 2, None, &Monitor::default()).unwrap();
    assert_eq!(document.summary.len(), 48);
    for cell in &document.summary {
        let what = &cell.parameters;
        let text = |path: &str| what.get(path).and_then(|found| found.as_str()).unwrap_or_default();
        let (to, loss, rate) =
            (text("flows.file.to"), text("topology.switch.link.loss"), text("topology.switch.link.rate"));
        // All receivers of all repeats have all of it.
        assert_eq!(cell.figures["completed_s"]["n"].as_u64(), Some(10), "{what:?}");
        assert_eq!(mean(cell, "reliability"), 1.0, "{what:?}");
        let (bytes, seconds) = (mean(cell, "network_bytes"), mean(cell, "completed_s"));
        let share = loss.trim_end_matches(" %").parse::<f64>().unwrap() / 100.0;
        let kbit = rate.trim_end_matches(" kbit/s").parse::<f64>().unwrap();
        let least = PACKETS * FRAME * repetitions(if to == "[n1]" { 1 } else { 3 }, share);
        let bound = (least, least * 8.0 / (kbit * 1e3));
        let published = (cell.published["network_bytes"], cell.published["completed_s"]);
        println!("{to} {loss} {rate}: {bytes:.0} {seconds:.2} of {bound:.2?}, {published:?}");
        assert!(
            bytes <= published.0 && seconds <= published.1,
            "{what:?}: {bytes}, {seconds}, {published:?}"
        );
        // A mean of ten runs is a little below a mean at most, and headers of small numbers are shorter. Receivers
        // repeat what others lack while the sender sends, so the time can be that of sending each packet once.
        let once = PACKETS * FRAME * 8.0 / (kbit * 1e3);
        assert!(bytes > 0.97 * bound.0 && bytes < 1.08 * bound.0, "{what:?}: {bytes} of {bound:?}");
        assert!(seconds > 0.97 * once && seconds < 1.13 * bound.1 + 0.4, "{what:?}: {seconds} of {bound:?}");
    }
}
