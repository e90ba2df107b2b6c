//! The bound of a message ferry: the earliest time at which any scheme that stores and forwards can bring a unit to a
//! node, while links come and go.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use hopcast_core::{Duration, Instant};
use hopcast_link::Change;
use hopcast_stack::network::directions;

use super::contacts::Contacts;
use crate::scenario::model::{Action, App, Flow, LinkModel, NodeId, Scenario};

/// Maximum number of contacts that are looked at for one flow in one run. Chosen: some seconds; a flow that takes more
/// has no such bound.
const MAX_WORK: usize = 200_000_000;

/// The earliest arrivals of what a flow's sender sends, at each node.
///
/// Every node keeps what it has for ever and sends it on over each link as soon as that is up. A unit takes the link's
/// delay, and if a packet can carry it the time of its payload at the link's rate. It shares links with nothing else,
/// and no frame is lost unless its loss is certain. So no protocol is earlier.
#[derive(Debug)]
pub(crate) struct Ferry {
    from: NodeId,
    /// Bytes of a unit's payload; zero where units differ.
    bytes: u64,
    /// For each node, the nodes that it sends to, each with its contacts.
    leaving: Vec<Vec<(NodeId, Contacts)>>,
    /// The times at which contacts change, in order.
    changes: Vec<Instant>,
    /// Arrivals of units that are sent between two changes, by the number of changes before.
    phases: BTreeMap<usize, Phase>,
    /// The last unit for which nothing was known, with its arrivals.
    last: Option<(Instant, Arrivals)>,
    /// Number of contacts that have been looked at.
    work: usize,
}

/// For each node, the earliest arrival of something.
type Arrivals = Vec<Option<Instant>>;

/// Arrivals of units that are sent between two changes, and reach all nodes that they can reach before the next one.
#[derive(Debug)]
struct Phase {
    /// For each node, the time that a unit takes; `None` if it has to wait for a change.
    takes: Vec<Option<Duration>>,
    /// Last time at which a unit can be sent that reaches all those nodes in time; `None` if there is none.
    until: Option<Instant>,
    /// For each node that has to wait, its arrival.
    waits: Arrivals,
}

impl Ferry {
    /// The bound of a flow. `None` where no link ever goes down, and of flows whose receiver answers.
    pub(crate) fn of(scenario: &Scenario, flow: &Flow) -> Option<Self> {
        // What happens after the end of the run does not happen.
        let end = Instant::ZERO + scenario.duration;
        let mut changes = vec![Vec::new(); scenario.links.len()];
        for event in scenario.events.iter().filter(|event| event.at <= end) {
            if let Action::Link { link, from, change } = &event.action {
                changes[*link].push((event.at, *from, change));
            }
        }
        let fails = changes.iter().flatten().any(|(_, _, change)| **change == Change::Down);
        if !fails || flow.is_echoed() || flow.is_ping() {
            return None;
        }
        let mut leaving: Vec<Vec<(NodeId, Contacts)>> = scenario.nodes.iter().map(|_| Vec::new()).collect();
        for (link, changes) in scenario.links.iter().zip(&changes) {
            for (from, to) in directions(link.ends.len()) {
                let is_heard = match &link.model {
                    LinkModel::Medium(medium) => {
                        medium.hears.as_ref().is_none_or(|hears| hears.contains(&(from, to)))
                    }
                    LinkModel::PointToPoint(_) | LinkModel::Switch(_) => true,
                };
                if is_heard {
                    let contacts = Contacts::of(link, (from, to), changes);
                    leaving[link.ends[from]].push((link.ends[to], contacts));
                }
            }
        }
        let bytes = match &flow.app {
            App::Cbr { size, .. } | App::Messages { size, .. } => size.get(),
            App::Bulk { .. }
            | App::File { .. }
            | App::Video { .. }
            | App::ShortFlows { .. }
            | App::Program { .. } => 0,
        };
        let contacts = leaving.iter().flatten().flat_map(|(_, contacts)| contacts.changes());
        let mut changes: Vec<Instant> = contacts.collect();
        changes.sort_unstable();
        changes.dedup();
        Some(Self { from: flow.from, bytes, leaving, changes, phases: BTreeMap::new(), last: None, work: 0 })
    }

    /// Earliest arrival at a node of a unit that is sent at `at`; `None` if it cannot arrive.
    ///
    /// # Errors
    /// If to find out takes too long.
    pub(crate) fn arrival(&mut self, at: Instant, to: NodeId) -> Result<Option<Instant>, TooMuchWork> {
        let number = self.changes.partition_point(|&change| change <= at);
        if !self.phases.contains_key(&number) {
            let phase = self.phase(number)?;
            self.phases.insert(number, phase);
        }
        let phase = &self.phases[&number];
        if phase.until.is_some_and(|until| at <= until) {
            return Ok(phase.takes[to].map(|takes| at + takes).or(phase.waits[to]));
        }
        // It is under way when something changes.
        if self.last.as_ref().is_none_or(|(known, _)| *known != at) {
            let found = self.arrivals(&[(self.from, at)], Instant::from_nanos(u64::MAX))?;
            self.last = Some((at, found.arrivals));
        }
        Ok(self.last.as_ref().and_then(|(_, arrivals)| arrivals[to]))
    }

    /// The arrivals of units that are sent after so many changes and before the next.
    fn phase(&mut self, number: usize) -> Result<Phase, TooMuchWork> {
        let start = number.checked_sub(1).map_or(Instant::ZERO, |before| self.changes[before]);
        let end = self.changes.get(number).copied().unwrap_or(Instant::from_nanos(u64::MAX));
        let Found { arrivals, is_cut_off } = self.arrivals(&[(self.from, start)], end)?;
        let reached = arrivals.iter().enumerate().filter_map(|(node, arrival)| Some((node, (*arrival)?)));
        let longest = reached.clone().map(|(_, arrival)| arrival.since(start)).max().unwrap_or_default();
        let holders: Vec<_> = reached.map(|(node, _)| (node, start)).collect();
        let waits = self.arrivals(&holders, Instant::from_nanos(u64::MAX))?.arrivals;
        Ok(Phase {
            takes: arrivals.iter().map(|arrival| arrival.map(|arrival| arrival.since(start))).collect(),
            until: (!is_cut_off).then(|| Instant::ZERO + end.since(Instant::ZERO + longest)),
            waits,
        })
    }

    /// The arrivals before `until` of something that some nodes have from given times on.
    fn arrivals(&mut self, holders: &[(NodeId, Instant)], until: Instant) -> Result<Found, TooMuchWork> {
        let mut found = Found { arrivals: vec![None; self.leaving.len()], is_cut_off: false };
        let mut next: BinaryHeap<Reverse<(Instant, NodeId)>> = BinaryHeap::new();
        for &(node, at) in holders {
            found.arrivals[node] = Some(at);
            next.push(Reverse((at, node)));
        }
        while let Some(Reverse((at, node))) = next.pop() {
            if found.arrivals[node] != Some(at) {
                continue;
            }
            self.work += self.leaving[node].len();
            if self.work > MAX_WORK {
                return Err(TooMuchWork);
            }
            for (to, contacts) in &self.leaving[node] {
                let Some(arrival) = contacts.arrival(at, self.bytes) else { continue };
                if arrival >= until {
                    found.is_cut_off |= contacts.is_open(at);
                } else if found.arrivals[*to].is_none_or(|known| arrival < known) {
                    found.arrivals[*to] = Some(arrival);
                    next.push(Reverse((arrival, *to)));
                }
            }
        }
        Ok(found)
    }
}

/// The arrivals before some time.
struct Found {
    arrivals: Arrivals,
    /// Whether something is under way at that time.
    is_cut_off: bool,
}

/// The bound of a flow takes too long to compute.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TooMuchWork;

#[cfg(test)]
mod tests {
    use std::path::Path;

    use hopcast_core::Seed;

    use super::*;
    use crate::scenario::{MemoryFiles, Overrides, load_text};

    fn ferry(topology: &str, events: &str) -> Ferry {
        let text = format!(
            "duration: 200s
topology: {topology}
events: [{events}]
flows: [{{ from: n0, to: n3, over: udp, app: {{ cbr: {{ rate: 8 kbit/s, size: 1000 B }} }} }}]
"
        );
        let files = MemoryFiles::default();
        let plan = load_text(&files, Path::new("test.yaml"), &text, &Overrides::default()).unwrap();
        let scenario = &plan.cases[0].scenario;
        Ferry::of(scenario, &scenario.flows[0]).unwrap()
    }

    fn at(seconds: f64) -> Instant {
        Instant::ZERO + Duration::from_secs_f64(seconds)
    }

    #[test]
    fn what_crosses_one_link_waits_for_the_next() {
        // n0 has n1 until 10 s, n1 has n2 from 20 s to 30 s, and n2 has n3 from 25 s on.
        let mut ferry = ferry(
            "{ chain: { hops: 3, link: { rate: 8 kbit/s, delay: 1s } } }",
            "{ at: 10s, links: n0-n1, down: true }, { at: 0s, links: [n1-n2, n2-n3], down: true },
             { at: 20s, links: n1-n2, up: true }, { at: 30s, links: n1-n2, down: true },
             { at: 25s, links: n2-n3, up: true }",
        );
        for (sent, arrivals) in [
            (0.0, [Some(2.0), Some(22.0), Some(27.0)]),
            (8.5, [Some(10.5), Some(22.0), Some(27.0)]),
            (9.0, [Some(11.0), Some(22.0), Some(27.0)]),
            (9.5, [None; 3]),
            (50.0, [None; 3]),
        ] {
            for (to, arrival) in (1..).zip(arrivals) {
                let found = ferry.arrival(at(sent), to).unwrap();
                assert_eq!(found, arrival.map(at), "sent at {sent} to n{to}");
            }
        }
    }

    #[test]
    fn a_network_in_which_nothing_goes_down_has_no_ferry() {
        let text = "
duration: 10s
topology: { chain: { hops: 1, link: { rate: 1 Mbit/s } } }
events: [{ at: 1s, links: all, loss: 5 % }]
flows: [{ from: n0, to: n1, over: udp, app: { cbr: { rate: 8 kbit/s, size: 1000 B } } }]
";
        let files = MemoryFiles::default();
        let plan = load_text(&files, Path::new("test.yaml"), text, &Overrides::default()).unwrap();
        let scenario = &plan.cases[0].scenario;
        assert!(Ferry::of(scenario, &scenario.flows[0]).is_none());
    }

    /// The arrivals that are known between two changes are those of a search for each unit.
    #[test]
    fn arrivals_are_those_of_a_search_from_each_time() {
        let mut late = 0;
        for seed in 0..20 {
            let mut random = Seed::new(seed, 0).stream(&["ferry"], 0);
            let links = ["n0-n1", "n0-n2", "n1-n2", "n1-n3", "n2-n3"];
            let mut events = Vec::new();
            for _ in 0..30 {
                let (second, link) = (random.below(200), links[random.below(5) as usize]);
                let what = [
                    "down: true",
                    "up: true",
                    "delay: 3s",
                    "delay: 100ms",
                    "rate: 4 kbit/s",
                    "rate: 80 kbit/s",
                ][random.below(6) as usize];
                events.push(format!("{{ at: {second}s, links: {link}, {what} }}"));
            }
            events.push("{ at: 200s, links: n0-n1, down: true }".to_owned());
            let mut ferry =
                ferry("{ full: { nodes: 4, link: { rate: 8 kbit/s, delay: 1s } } }", &events.join(", "));
            for tenth in 0..2000 {
                let sent = at(f64::from(tenth) / 10.0);
                let searched = ferry.arrivals(&[(0, sent)], Instant::from_nanos(u64::MAX)).unwrap().arrivals;
                for (to, &searched) in searched.iter().enumerate().skip(1) {
                    let found = ferry.arrival(sent, to).unwrap();
                    assert_eq!(found, searched, "seed {seed}: sent at {sent} to n{to}");
                    late +=
                        usize::from(found.is_some_and(|arrival| arrival > sent + Duration::from_secs(10)));
                }
            }
        }
        assert!(late > 100, "{late} have to wait for long");
    }
}
