//! The studies `multicast-tactical` and `multicast-tactical-norm`: what the publisher sends arrives, as far as those
//! that hear it hold it between them, and costs its peers little more than what has to be sent again.

#![allow(clippy::unwrap_used)] // in helpers of tests too

use crate::common::scenarios::scenarios;
use hopcast_runner::{load, run};
use hopcast_twin::Monitor;
use hopcast_twin::results::Run;
use hopcast_twin::scenario::Overrides;

/// Bytes of a fragment, and those before it in a frame of data that its publisher sends: headers of Ethernet, IP, UDP
/// and DisService.
const FRAGMENT: u64 = 1400;
const HEADERS: u64 = 14 + 28 + 26;
/// Bytes of a message's metadata.
const METADATA: u64 = 5;
/// Loss among the peers.
const PEERS: f64 = 0.1;
/// Nodes that hear the publisher, and those of them that subscribe.
const HEARERS: i32 = 9;
const SUBSCRIBERS: i32 = 3;

struct Cell {
    protocol: String,
    /// Share that is lost of what the publisher sends.
    loss: f64,
    is_one_way: bool,
    size: u64,
    sent: f64,
    success: f64,
    /// Milliseconds from a message's publication to its delivery: mean and 99th percentile.
    latency: (f64, f64),
    /// Bytes beside the payload that the publisher, and all others, sent for each message.
    overhead: (f64, f64),
    /// Share of messages that arrived in the paper, if this is one of its rows.
    published: Option<f64>,
}

fn cell(run: &Run) -> Cell {
    let text = |path: &str| run.parameters[path].as_str().unwrap().to_owned();
    let number = |path: &str| text(path).split(' ').next().unwrap().parse::<f64>().unwrap();
    let (flow, size) = (&run.flows[0], number("flows.recon.app.messages.size") as u64);
    let sent = flow.receivers[0].figures.sent_units as f64;
    // What goes to all counts at each listener alike.
    let bytes = |from: &str, to: &str| -> u64 {
        run.links.iter().filter(|link| link.from == from && link.to == to).map(|link| link.sent_bytes).sum()
    };
    let others: u64 = (1..=HEARERS).map(|node| bytes(&format!("n{node}"), "n0")).sum();
    // Of nothing that arrives there is no latency.
    let latency = flow.figures.latency_ms.unwrap_or_default();
    Cell {
        protocol: flow.protocol.clone(),
        loss: number("topology.links.lan.stations.n0.loss") / 100.0,
        is_one_way: number("events.towards.loss") == 100.0,
        size,
        sent,
        success: flow.figures.reliability.unwrap(),
        latency: (latency.mean, latency.p99),
        overhead: ((bytes("n0", "n1") as f64 - sent * size as f64) / sent, others as f64 / sent),
        published: None,
    }
}

impl Cell {
    fn fragments(&self) -> i32 {
        (self.size + METADATA).div_ceil(FRAGMENT) as i32
    }

    /// Share of messages of which those that hear the publisher have all fragments between them.
    fn held(&self) -> f64 {
        (1.0 - self.loss.powi(HEARERS)).powi(self.fragments())
    }

    /// Fewest bytes that have to be sent again for a message on average, each fragment by itself, until each subscriber
    /// has it that lacks it.
    fn fewest(&self) -> f64 {
        let transmissions =
            |lacking: i32| -> f64 { (0..200).map(|sent| 1.0 - (1.0 - PEERS.powi(sent)).powi(lacking)).sum() };
        let choose = [1.0, 3.0, 3.0, 1.0];
        let of = |lacking: i32| {
            let p = self.loss.powi(lacking) * (1.0 - self.loss).powi(SUBSCRIBERS - lacking);
            choose[lacking as usize] * p * transmissions(lacking)
        };
        let again: f64 = (1..=SUBSCRIBERS).map(of).sum();
        let bytes = self.size + METADATA + HEADERS * self.fragments() as u64;
        again * bytes as f64
    }
}

/// The cells of a study with these changes, each the mean over its repeats.
fn cells(study: &str, repeats: usize, sets: &[&str]) -> Vec<Cell> {
    let path = scenarios().join("studies").join(study);
    let sets = sets.iter().map(|&set| set.to_owned()).chain([format!("repeats={repeats}")]).collect();
    let overrides = Overrides { sets, ..Overrides::default() };
    let plan = load(&path, &overrides).unwrap_or_else(|error| panic!("{error}"));
    let document = run(&plan, 2, None, &Monitor::default()).unwrap();
    let runs: Vec<Cell> = document.runs.iter().map(cell).collect();
    let cells = runs.chunks(repeats).zip(&document.summary).map(|(runs, summary)| {
        let mean = |of: fn(&Cell) -> f64| runs.iter().map(of).sum::<f64>() / repeats as f64;
        Cell {
            protocol: runs[0].protocol.clone(),
            success: mean(|cell| cell.success),
            latency: (mean(|cell| cell.latency.0), mean(|cell| cell.latency.1)),
            overhead: (mean(|cell| cell.overhead.0), mean(|cell| cell.overhead.1)),
            published: summary.published.get("reliability").copied(),
            ..runs[0]
        }
    });
    cells.inspect(show).collect()
}

fn show(cell: &Cell) {
    let Cell { protocol, loss, is_one_way, size, sent, success, latency, overhead, published } = cell;
    let way = if *is_one_way { "one-way" } else { "symmetric" };
    println!(
        "{protocol}, loss {:.0} %, {way}, {size} B: of {sent} arrive {:.2} %, of {:.2} % that are held, in {:.0} ms (p99 {:.0}); \
         bytes a message beside it: sender {:.0}, others {:.0}, of {:.0}; published {:.1?}",
        loss * 100.0,
        success * 100.0,
        cell.held() * 100.0,
        latency.0,
        latency.1,
        overhead.0,
        overhead.1,
        cell.fewest(),
        published.map(|share| share * 100.0),
    );
}

const DISSERVICE: &str = "multicast-tactical.yaml";
const NORM: &str = "multicast-tactical-norm.yaml";
const ONE_WAY: &str = "events.towards.loss=100 %";

#[test]
fn peers_bring_subscribers_what_they_hold_of_a_publisher_that_hears_nothing() {
    let repeats = 5;
    let cells = cells(DISSERVICE, repeats, &["sweep.flows.recon.over=[disservice-quiet]", ONE_WAY]);
    assert_eq!(cells.len(), 16);
    for cell in cells {
        let held = cell.held();
        // Of so many messages the share that is held is a little less by chance.
        let chance = (held * (1.0 - held) / (cell.sent * repeats as f64)).sqrt();
        let wanted = (held - 0.005).min(0.995) - 2.5 * chance;
        assert!(cell.success >= wanted, "{} of {wanted}", cell.success);
        let fewest = cell.fewest();
        assert!(cell.overhead.1 <= 1.3 * fewest, "{:?} of {fewest}", cell.overhead);
    }
}

#[test]
fn a_publisher_that_hears_brings_the_rest_itself_when_it_has_nothing_new() {
    for loss in [10, 20, 30, 50] {
        let of = ["topology.links.lan.stations.n0.loss", "events.towards.loss"];
        let [there, back] = of.map(|path| format!("{path}={loss} %"));
        let cells = cells(DISSERVICE, 3, &["sweep.flows.recon.over=[disservice-idle]", &there, &back]);
        assert_eq!(cells.len(), 4);
        for cell in cells {
            assert!(!cell.is_one_way && cell.success >= 0.995, "{}", cell.success);
            let fewest = cell.fewest();
            assert!(cell.overhead.1 <= 1.3 * fewest, "{:?} of {fewest}", cell.overhead);
        }
    }
}

#[test]
fn without_what_peers_overhear_half_of_it_is_lost() {
    let deaf = [
        "sweep.flows.recon.over=[disservice-quiet]",
        ONE_WAY,
        "variants.disservice-quiet.disservice.listen=off",
    ];
    for cell in cells(DISSERVICE, 1, &deaf).iter().filter(|cell| cell.loss == 0.5) {
        // Of three that hear a fragment by half, one in eight has nobody to ask.
        let held = (1.0 - cell.loss.powi(SUBSCRIBERS)).powi(cell.fragments());
        assert!(cell.success <= held + 0.1, "{} of {held}", cell.success);
    }
}

/// Parity of the study for a message of so many packets.
fn parity(packets: i32) -> i32 {
    (packets + 1) / 3
}

/// Chance that of so many packets, each lost with `loss`, no more than `most` are lost.
fn binomial(packets: i32, loss: f64, most: i32) -> f64 {
    let mut term = (1.0 - loss).powi(packets);
    let mut sum = term;
    for lost in 1..=most {
        term *= f64::from(packets - lost + 1) / f64::from(lost) * loss / (1.0 - loss);
        sum += term;
    }
    sum
}

#[test]
fn norm_brings_what_its_parity_makes_up_for_and_all_that_is_asked_for() {
    let repeats = 3;
    let cells = cells(NORM, repeats, &[]);
    assert_eq!(cells.len(), 32);
    for cell in cells {
        let published = cell.published.unwrap() - 0.02;
        let packets = cell.fragments();
        // Nobody hears requests one-way: what is lost beyond the parity stays lost.
        let bound = if cell.is_one_way {
            binomial(packets + parity(packets), cell.loss, parity(packets))
        } else {
            1.0
        };
        let chance = (bound * (1.0 - bound) / (cell.sent * f64::from(SUBSCRIBERS) * repeats as f64)).sqrt();
        let wanted = published.min(bound) - 2.5 * chance;
        assert!(
            cell.success >= wanted,
            "{} of {wanted}, {bound}, published {:?}",
            cell.success,
            cell.published
        );
    }
}
