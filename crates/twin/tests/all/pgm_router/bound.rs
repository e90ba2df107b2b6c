//! How often the links of a tree must carry a packet until all receivers have it.

use std::collections::{BTreeMap, BTreeSet};

use hopcast_twin::results::Run;

/// Times that are looked at: with a loss of 1 %, more do not happen.
const MOST: usize = 24;

/// A tree of links, each from a node to one or, over a switch, to several.
pub(crate) struct Tree {
    root: String,
    /// For each node, the links down from it, each with the nodes that it leads to.
    down: BTreeMap<String, Vec<Vec<String>>>,
    receivers: BTreeSet<String>,
}

/// For each number of arrivals, the probability that so many are enough.
type Enough = [f64; MOST];

impl Tree {
    /// The tree that carries the data of a run, whose members are nodes without links down.
    pub(crate) fn of(run: &Run, root: &str) -> Self {
        let data = run.flows[0].counters["data_bytes_sent"];
        let carries = run.links.iter().filter(|link| link.sent_bytes > data / 2);
        let mut links: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
        for link in carries {
            links.entry((link.from.clone(), link.name.clone())).or_default().push(link.to.clone());
        }
        let parents: BTreeSet<String> = links.keys().map(|(from, _)| from.clone()).collect();
        let mut down: BTreeMap<String, Vec<Vec<String>>> = BTreeMap::new();
        for ((from, _), mut to) in links {
            if from == root {
                // Others of the sender's own network hear it, and are no members.
                to.retain(|to| parents.contains(to));
            }
            down.entry(from).or_default().push(to);
        }
        let ends = down.values().flatten().flatten().filter(|to| !down.contains_key(*to)).cloned();
        let receivers = ends.collect();
        Self { root: root.to_owned(), down, receivers }
    }

    pub(crate) fn links(&self) -> usize {
        self.down.values().map(Vec::len).sum()
    }

    pub(crate) fn receivers(&self) -> usize {
        self.receivers.len()
    }

    /// Mean transmissions of a packet over all links, at this loss of each: if a repair goes over the whole tree, down
    /// the branches that lack it, or over the link that lost it.
    pub(crate) fn transmissions(&self, loss: f64) -> [f64; 3] {
        let (mut in_branches, mut on_link) = (0.0, 0.0);
        let all = self.below(&self.root, loss, &mut in_branches);
        for to in self.down.values().flatten() {
            on_link += mean(&over(&vec![at_once(); to.len()], loss));
        }
        [mean(&all) * self.reached(&self.root, 1.0, loss), in_branches, on_link]
    }

    /// The arrivals at a node that are enough for all behind it. Adds those at the head of each link there.
    fn below(&self, node: &str, loss: f64, sum: &mut f64) -> Enough {
        let mut enough = if self.receivers.contains(node) { at_once() } else { [1.0; MOST] };
        for to in self.down.get(node).into_iter().flatten() {
            let behind: Vec<Enough> = to.iter().map(|to| self.below(to, loss, sum)).collect();
            let link = over(&behind, loss);
            *sum += mean(&link);
            enough = both(&enough, &link);
        }
        enough
    }

    /// Links that a packet crosses on average that is sent to all, from a node that it reaches with this probability.
    fn reached(&self, node: &str, here: f64, loss: f64) -> f64 {
        let links = self.down.get(node).into_iter().flatten();
        links
            .map(|to| here + to.iter().map(|to| self.reached(to, here * (1.0 - loss), loss)).sum::<f64>())
            .sum()
    }
}

/// One arrival is enough.
fn at_once() -> Enough {
    let mut enough = [1.0; MOST];
    enough[0] = 0.0;
    enough
}

/// Arrivals at the head of a link that are enough for what is behind each of its ends, of which each loses for itself.
fn over(behind: &[Enough], loss: f64) -> Enough {
    let one = |enough: &Enough| {
        std::array::from_fn(|arrivals| {
            (0..=arrivals).map(|through| share(arrivals, through, loss) * enough[through]).sum()
        })
    };
    behind.iter().map(one).fold([1.0; MOST], |all, one: Enough| both(&all, &one))
}

fn both(one: &Enough, other: &Enough) -> Enough {
    std::array::from_fn(|arrivals| one[arrivals] * other[arrivals])
}

/// The probability that so many of some arrivals get through.
fn share(arrivals: usize, through: usize, loss: f64) -> f64 {
    let choices = (0..through).map(|n| (arrivals - n) as f64 / (n + 1) as f64).product::<f64>();
    choices * (1.0 - loss).powi(through as i32) * loss.powi((arrivals - through) as i32)
}

/// Mean of the number of arrivals that are needed.
fn mean(enough: &Enough) -> f64 {
    enough.iter().map(|enough| 1.0 - enough).sum()
}

/// Bytes of all data as frames on one link.
pub(crate) fn bytes_of_frames(run: &Run) -> f64 {
    let counters = &run.flows[0].counters;
    (counters["data_bytes_sent"] + super::HEADERS * counters["data_packets_sent"]) as f64
}
