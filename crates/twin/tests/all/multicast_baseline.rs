//! The study `multicast-baseline`: in each of its cells, bytes and time are at most the published ones, or a little
//! more than the bound.

#![allow(clippy::unwrap_used)] // in helpers of tests too

use crate::common::scenarios::scenarios;
use crate::common::{mean, repetitions};
use hopcast_runner::{load, run};
use hopcast_twin::Monitor;
use hopcast_twin::results::Summary;
use hopcast_twin::scenario::Overrides;

/// Bytes and seconds of 586 packets of 1,474 bytes to three receivers that lose a fifth, at 1024 kbit/s, in blocks of
/// 64 with an ideal code: computed outside this program.
const BOUND: (f64, f64) = (1.134e6, 8.86);

fn cells() -> Vec<Summary> {
    let path = scenarios().join("studies/multicast-baseline.yaml");
    let plan = load(&path, &Overrides::default()).unwrap_or_else(|error| panic!("{error}"));
    run(&plan, 2, None, &Monitor::default()).unwrap().summary
}

#[test]
fn every_cell_is_complete_and_near_its_bound() {
    let all = cells();
    let of = |protocol: &str| -> Vec<&Summary> {
        let cells: Vec<_> = all.iter().filter(|summary| summary.protocol == protocol).collect();
        assert_eq!(cells.len(), 48);
        cells
    };
    of("norm-fixed").into_iter().for_each(norm);
    let (repeats, parity) = (of("pgm-fixed"), of("pgm-parity"));
    pgm_that_repeats(&repeats);
    pgm_with_parity(&parity, &repeats);
}

/// All receivers of all repeats have all of it. Bytes and seconds, and the bound of blocks.
fn complete(cell: &Summary) -> ((f64, f64), (f64, f64)) {
    let what = &cell.parameters;
    assert_eq!(cell.figures["completed_s"]["n"].as_u64(), Some(10), "{what:?}");
    assert_eq!(mean(cell, "reliability"), 1.0, "{what:?}");
    let bound = (mean(cell, "network_bytes_bound"), mean(cell, "completed_bound_s"));
    ((mean(cell, "network_bytes"), mean(cell, "completed_s")), bound)
}

fn is(cell: &Summary, path: &str, value: &str) -> bool {
    cell.parameters.get(path).and_then(|found| found.as_str()) == Some(value)
}

/// Whether it is the cell of three receivers that lose a fifth, at 1024 kbit/s.
fn is_reference(cell: &Summary) -> bool {
    is(cell, "flows.file.to", "[n1, n2, n3]")
        && is(cell, "topology.switch.link.loss", "20 %")
        && is(cell, "topology.switch.link.rate", "1024 kbit/s")
}

fn norm(cell: &Summary) {
    let what = &cell.parameters;
    let ((bytes, seconds), bound) = complete(cell);
    let published = (cell.published["network_bytes"], cell.published["completed_s"]);
    assert!(bytes <= published.0.max(1.04 * bound.0), "{what:?}: {bytes} of {bound:?}, {published:?}");
    assert!(seconds <= published.1.max(1.15 * bound.1), "{what:?}: {seconds} of {bound:?}, {published:?}");
    // A mean of ten runs is a little below a mean at most.
    assert!(bytes >= 0.97 * bound.0 && seconds >= 0.97 * bound.1, "{what:?}: {bytes}, {seconds}, {bound:?}");
    if is_reference(cell) {
        // Libnorm, tuned well, takes 9.8 to 10.2 s and 1.13 to 1.17 MB, and the paper has 16.3 s.
        assert!(seconds <= 9.2 && bytes <= 1.155e6, "{seconds} s, {bytes} B");
        assert!(bytes <= 1.04 * BOUND.0 && seconds <= 1.15 * BOUND.1, "{seconds} s, {bytes} B");
        assert!(bound.0 >= BOUND.0 && bound.0 <= 1.01 * BOUND.0, "{bound:?}");
    }
}

/// Published bytes have no Ethernet headers: without loss 850,125 are 586 packets of 1,450.
fn with_ethernet(bytes: f64) -> f64 {
    bytes * FRAMED / (FRAMED - 14.0)
}

/// Bytes of a packet of data as it is on the link, and their number: 819,200 bytes in pieces of 1,408.
const FRAMED: f64 = 1474.0;
const PACKETS: f64 = 819_200.0 / 1408.0;

/// Published bytes and seconds of PGM; without a published figure there is nothing that ours could be above.
fn published(cell: &Summary) -> (f64, f64) {
    let of = |name: &str| cell.published.get(name).copied().unwrap_or(f64::MAX);
    (with_ethernet(of("network_bytes")), of("completed_s"))
}

/// A cell: receivers, loss in percent, rate in kbit/s.
type Place = (u32, u32, u32);

fn place(cell: &Summary) -> Place {
    let number = |path: &str| -> u32 {
        let text = cell.parameters[path].as_str().unwrap();
        text.split_whitespace().next().unwrap().parse().unwrap()
    };
    let receivers = if is(cell, "flows.file.to", "[n1]") { 1 } else { 3 };
    (receivers, number("topology.switch.link.loss"), number("topology.switch.link.rate"))
}

/// Cells whose published time no sender can have: at the link's rate a receiver that loses 30 % has 819,200 bytes after
/// 76.6 s, where the paper has 76.1.
const SOONER: [Place; 1] = [(1, 30, 128)];

/// Cells whose published bytes are fewer than any code over blocks of 64 packets takes.
const FEWER: [Place; 6] =
    [(1, 10, 10240), (1, 20, 10240), (1, 30, 10240), (1, 30, 56), (3, 10, 10240), (3, 30, 10240)];

/// Ours as it is by default; the published figures stand beside the cells that repeat.
fn pgm_with_parity(cells: &[&Summary], repeats: &[&Summary]) {
    let (mut more, mut later) = (Vec::new(), Vec::new());
    for (cell, theirs) in cells.iter().zip(repeats) {
        let what = &cell.parameters;
        let ((bytes, seconds), bound) = complete(cell);
        assert!(
            bytes <= 1.1 * bound.0 && seconds <= 1.15 * bound.1,
            "{what:?}: {bytes}, {seconds}, {bound:?}"
        );
        assert!(
            bytes >= 0.97 * bound.0 && seconds >= 0.97 * bound.1,
            "{what:?}: {bytes}, {seconds}, {bound:?}"
        );
        if is_reference(cell) {
            assert!(bytes <= 1.1 * BOUND.0 && seconds <= 1.1 * BOUND.1, "{seconds} s, {bytes} B");
        }
        let theirs = published(theirs);
        println!("{:?}: {bytes:.0} B in {seconds:.1} s of {bound:?}, published {theirs:?}", place(cell));
        // What its own headers of a unit and of SPMs cost, which the published cells have not.
        if bytes > 1.01 * theirs.0 {
            assert!(theirs.0 < bound.0, "{what:?}");
            more.push(place(cell));
        }
        if seconds > theirs.1 {
            assert!(theirs.1 < bound.1, "{what:?}");
            later.push(place(cell));
        }
    }
    assert_eq!((more, later), (FEWER.to_vec(), SOONER.to_vec()));
}

/// Cells whose published bytes are fewer than repetition takes. The last one's would leave 1.1 kB for everything but
/// packets of data, and the numbers alone of 592 lost packets have 2.4 kB in requests.
const FEWER_BY_REPETITION: [Place; 8] = [
    (1, 10, 10240),
    (1, 20, 10240),
    (1, 30, 10240),
    (1, 30, 56),
    (3, 10, 10240),
    (3, 20, 56),
    (3, 30, 10240),
    (3, 30, 256),
];

/// Repetition, as OpenPGM has it: no cell is above the published figures but those that are below what it can do.
fn pgm_that_repeats(cells: &[&Summary]) {
    let (mut more, mut later) = (Vec::new(), Vec::new());
    for cell in cells {
        let what = &cell.parameters;
        let ((bytes, seconds), bound) = complete(cell);
        let (receivers, loss, rate) = place(cell);
        let times = repetitions(receivers as i32, f64::from(loss) / 100.0);
        let least = PACKETS * FRAMED * times;
        assert!((bound.0 / least - 1.0).abs() < 1e-3, "{what:?}: {bound:?}, {least}");
        assert!((bound.1 / (least / f64::from(rate) / 125.0) - 1.0).abs() < 1e-3, "{what:?}: {bound:?}");
        let theirs = published(cell);
        println!("{:?}: {bytes:.0} B in {seconds:.2} s of {bound:?}, published {theirs:?}", place(cell));
        // Half a second is a few requests that are lost before the round trip is known.
        assert!(bytes <= 1.03 * bound.0 && seconds <= 1.03 * bound.1 + 0.5, "{what:?}: {bytes}, {seconds}");
        assert!(
            bytes >= 0.97 * bound.0 && seconds >= 0.97 * bound.1,
            "{what:?}: {bytes}, {seconds}, {bound:?}"
        );
        if bytes > theirs.0 {
            let numbers = 4.0 * PACKETS * (times - 1.0);
            assert!(theirs.0 < bound.0 + numbers, "{what:?}");
            more.push(place(cell));
        }
        if seconds > theirs.1 {
            assert!(theirs.1 < bound.1, "{what:?}");
            later.push(place(cell));
        }
    }
    assert_eq!((more, later), (FEWER_BY_REPETITION.to_vec(), SOONER.to_vec()));
}
