//! The study `multicast-baseline`: in each of its cells, bytes and time are at most the published ones, or a little
//! more than the bound.

#![allow(clippy::unwrap_used)] // in helpers of tests too

mod common;

use common::scenarios::scenarios;
use hopcast_runner::{load, run};
use hopcast_twin::Monitor;
use hopcast_twin::results::Summary;
use hopcast_twin::scenario::Overrides;

/// Bytes and seconds of 586 packets of 1,474 bytes to three receivers that lose a fifth, at 1024 kbit/s, in blocks of
/// 64 with an ideal code: computed outside this program.
const BOUND: (f64, f64) = (1.134e6, 8.86);

fn mean(summary: &Summary, name: &str) -> f64 {
    summary.figures[name]["mean"].as_f64().unwrap_or_else(|| panic!("{name} of {:?}", summary.parameters))
}

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

/// Ours as it is by default; the published figures stand beside the cells that repeat.
fn pgm_with_parity(cells: &[&Summary], published: &[&Summary]) {
    let mut above = [0, 0];
    for (cell, published) in cells.iter().zip(published) {
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
        let published = published.published.get("network_bytes").zip(published.published.get("completed_s"));
        // Without a published figure there is nothing that ours could be above.
        let (theirs, time) =
            published.map_or((f64::MAX, f64::MAX), |(&bytes, &time)| (with_ethernet(bytes), time));
        // Where less is published than any code over these blocks takes, nothing could be as good.
        let is_above = [bytes > 1.005 * theirs && theirs >= bound.0, seconds > time && time >= bound.1];
        above.iter_mut().zip(is_above).for_each(|(above, is_above)| *above += usize::from(is_above));
        if bytes > 1.005 * theirs || seconds > time {
            println!(
                "{what:?}: {bytes:.0} B in {seconds:.1} s, published {theirs:.0} in {time}, bound {bound:?}"
            );
        }
    }
    assert!(above[0] <= 4 && above[1] <= 4, "{above:?}");
}

/// Published bytes have no Ethernet headers: without loss 850,125 are 586 packets of 1,450.
fn with_ethernet(bytes: f64) -> f64 {
    bytes * FRAMED / (FRAMED - 14.0)
}

/// Bytes of a packet of data as it is on the link, and their number: 819,200 bytes in pieces of 1,405.
const FRAMED: f64 = 1474.0;
const PACKETS: f64 = 584.0;

/// Times that a packet is sent on average until each of `receivers` has it that lose it independently: repetition
/// without a code can do no better, whoever asks and whenever.
fn repetitions(receivers: u32, loss: f64) -> f64 {
    (0..200).map(|sent| 1.0 - (1.0 - loss.powi(sent)).powi(receivers as i32)).sum()
}

/// Cells whose published figures are no more than ours, or are below what any repetition takes.
fn pgm_that_repeats(cells: &[&Summary]) {
    let mut above = [0, 0];
    let mut far = Vec::new();
    for cell in cells {
        let what = &cell.parameters;
        let ((bytes, seconds), _) = complete(cell);
        let receivers = if is(cell, "flows.file.to", "[n1]") { 1 } else { 3 };
        let number = |path: &str| -> f64 {
            let text = what[path].as_str().unwrap();
            text.split_whitespace().next().unwrap().parse().unwrap()
        };
        let loss = number("topology.switch.link.loss") / 100.0;
        let rate = number("topology.switch.link.rate") * 1000.0 / 8.0;
        let least = PACKETS * FRAMED * repetitions(receivers, loss);
        let bound = (least, least / rate);
        assert!(bytes <= 1.1 * bound.0, "{what:?}: {bytes} B of {bound:?}");
        assert!(seconds <= 1.25 * bound.1, "{what:?}: {seconds} s of {bound:?}");
        assert!(
            bytes >= 0.97 * bound.0 && seconds >= 0.97 * bound.1,
            "{what:?}: {bytes}, {seconds}, {bound:?}"
        );
        let published = cell.published.get("network_bytes").copied().map(with_ethernet);
        for (place, (ours, published, bound)) in
            [(bytes, published, bound.0), (seconds, cell.published.get("completed_s").copied(), bound.1)]
                .into_iter()
                .enumerate()
        {
            if published.is_some_and(|published| ours > published) {
                above[place] += 1;
                println!("{what:?}: {ours:.1}, published {published:?}, no repetition below {bound:.1}");
                // Each exception is one that no repetition could avoid, or within what ours is above its bound.
                assert!(published.is_some_and(|published| published < 1.1 * bound), "{what:?}");
                if place == 0 && ours > 1.04 * bound {
                    assert!(ours <= 1.07 * bound, "{what:?}");
                    far.push((receivers, number("topology.switch.link.loss"), rate * 8.0 / 1000.0));
                }
            }
        }
    }
    println!("above published: {above:?}");
    // Bytes are at most the published ones or 1.04 times the bound, but in two cells: 1,494 kB are 1.063 of 1,406 kB
    // (published 1,288 kB), and 1,826 kB are 1.052 of 1,736 kB (published 1,731 kB). What is published for both is
    // below what repetition takes.
    assert_eq!(far, [(3, 20.0, 56.0), (3, 30.0, 256.0)]);
}
