//! NORM away from the table: a tenth and ten times its rate, delays up to a satellite's, loss up to a half, one
//! receiver and thirty, each delivery; and a receiver that hardly hears anything.

#![allow(clippy::unwrap_used)] // in helpers of tests too

use crate::common::document;
use hopcast_twin::results::Flow;

/// A file of `kilobytes` from `s` to `receivers` on one switch, and `more` of the scenario.
fn file(path: (u32, &str, u32), receivers: usize, delivery: &str, kilobytes: u32, more: &str) -> Flow {
    let (rate, delay, loss) = path;
    // Copies to each receiver share the sender's rate.
    let share = if delivery == "unicast" { receivers } else { 1 };
    let names: Vec<String> = (1..=receivers).map(|number| format!("r{number}")).collect();
    let members = names.join(", ");
    let mut document = document(&format!(
        "seed: 1
duration: 4000 s
topology:
  nodes: [s, {members}]
  links: [{{ name: lan, switch: [s, {members}], rate: {rate} bit/s, delay: {delay}, loss: {loss} %, queue: 100 packets }}]
flows: [{{ name: file, from: s, to: [{members}], delivery: {delivery}, over: {{ norm: {{ rate: {} bit/s }} }}, \
         app: {{ bulk: {{ bytes: {kilobytes} kB }} }} }}]
{more}",
        rate as usize / share
    ));
    document.runs.remove(0).flows.remove(0)
}

#[test]
fn a_file_arrives_in_every_regime_in_the_time_of_its_repairs_and_some_round_trips() {
    let rates = [100_000, 1_000_000, 10_000_000];
    let delays = [("1 ms", 0.001), ("100 ms", 0.1), ("600 ms", 0.6)];
    let (losses, sizes) = ([0, 1, 20, 50], [1, 3, 30]);
    let deliveries = ["ip-multicast", "broadcast", "unicast"];
    // Each pair of values meets: the last one varies fastest, and the others by other steps.
    let cells = (0..36).map(|cell| {
        let loss = losses[cell % 4];
        let (delay, receivers) = (delays[cell / 4 % 3], sizes[cell / 12 % 3]);
        (rates[(cell + cell / 4) % 3], delay, loss, receivers, deliveries[(cell / 4 + cell / 12) % 3])
    });
    let mut slow = Vec::new();
    for (rate, (delay, one_way), loss, receivers, delivery) in cells {
        let copies = if delivery == "unicast" { receivers as f64 } else { 1.0 };
        let what = format!("{rate} bit/s, {delay}, {loss} %, {receivers} receivers by {delivery}");
        let flow = file((rate, delay, loss), receivers, delivery, 200, "");
        assert_eq!(flow.figures.reliability, Some(1.0), "{what}: {:?}", flow.counters);
        let seconds = flow.figures.completed_s.unwrap();
        let share = 1.0 - f64::from(loss) / 100.0;
        let bound = copies * 200e3 * 8.0 / f64::from(rate) / share;
        // A round of requests takes some round trips, by the back-off of the group's size; a request and its answer
        // both arrive once in 1/(1-p)^2 rounds. The more is lost, the more rounds there are, since of each answer as
        // much is lost; and of thirty receivers the unluckiest of each block needs more.
        let (round_trips, unlucky) = match receivers {
            1 => (2.0, 1.0),
            3 => (3.0, 1.0),
            _ => (4.0, 2.0),
        };
        let rounds = (2.0 + 18.0 * (1.0 - share) * unlucky) / (share * share);
        let waiting = round_trips * 2.0 * one_way * rounds + 1.0;
        let allowed = 1.3 * bound * (1.0 + 0.7 * (unlucky - 1.0)) + waiting;
        if seconds > allowed {
            slow.push(format!("{what}: {seconds:.1} s of {allowed:.1} s, where {bound:.1} s is the least"));
        }
    }
    assert!(slow.is_empty(), "{slow:#?}");
}

#[test]
fn a_receiver_that_hardly_hears_anything_does_not_keep_others_from_their_file() {
    let events = "events: [{ at: 0 s, links: lan, to: r3, loss: 90 % }]\n";
    let flow = file((1_000_000, "5 ms", 1), 3, "ip-multicast", 400, events);
    let times: Vec<f64> = flow.receivers[..2].iter().map(|at| at.figures.completed_s.unwrap()).collect();
    assert!(times.iter().all(|&seconds| seconds < 12.0), "{times:?}");
    assert_eq!(flow.receivers[2].figures.reliability, Some(1.0), "it has its file too, in the end");
}
