//! Echo requests between hosts.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use hopcast_core::{Buffer, Duration, Instant, Item, Machine, Message, Port, Shared, Slot};
use hopcast_stack::network::{HOP_LIMIT, NetworkPlan, NodeId, SegmentEnd};
use hopcast_stack::{BuildError, BuiltNodes, PingConfig};
use hopcast_trace::log::Truncation;
use hopcast_trace::{Log, Query, follow};
use hopcast_wire::{icmp, ip};

use super::links::Changes;
use super::why::{Followed, MAX_LOG, followed, recorded, recorded_within};
use super::{Check, Findings, Pairs, SETTLING, Stage, TRIES, bounded};
use crate::WorldError;
use crate::monitor::Monitor;
use crate::scenario::model::{Action, Flow, Scenario};
use crate::world::World;

/// Payload of a small request, in bytes (ping(8)).
const SMALL: usize = 56;
/// Time from one request to the next while none is answered. Chosen: the answer to a first request comes before a
/// second one over most paths; with less, slow paths are filled, and with more, nothing but virtual time is lost.
const EVERY: Duration = Duration::from_millis(250);
/// Time for which the answer to the last request is awaited. Chosen: longer than any path's round trip and its hosts'
/// resolution of neighbours.
const PATIENCE: Duration = Duration::from_secs(20);
/// Maximum number of pairs of a stage that are checked. Chosen: a report that can be read, in a time that can be waited
/// for; with more, large networks take long, and with fewer, faults stay unseen.
const MAX_PAIRS: usize = 1000;

/// Maximum number of pairs that are listed as having no direct route to each other.
const LISTED: usize = 8;

/// Maximum number of checks of a stage that fail; those that remain of the stage are left out. Chosen: each sends all
/// of its requests, which takes half a second in a network of thousands of hosts.
const MAX_FAILED: usize = 50;

/// Maximum number of checks of a stage whose packets are followed where they fail. Chosen: they are more than a person
/// reads, and each takes a run of its own.
const EXPLAINED: usize = 8;
/// Number of requests that are followed then. Chosen: enough for neighbours to be asked, and given up.
const FOLLOWED: u64 = 24;

/// Two hosts, and where they are to reach each other.
#[derive(Clone, Debug)]
pub struct HostPair {
    /// The stage that checks them.
    pub stage: Stage,
    /// The node that asks, and its address.
    pub from: (NodeId, IpAddr),
    /// The node that answers, and its address.
    pub to: (NodeId, IpAddr),
    /// The link, VLAN or number of hops between them.
    pub over: String,
    /// Maximum length of a packet between them, in bytes.
    pub mtu: u32,
    /// Hops that a request may take.
    pub hop_limit: u8,
}

/// Checks the hosts of each link and VLAN, and the ends of flows.
pub(super) fn check(
    scenario: &Scenario,
    at: Instant,
    wanted: Pairs,
    findings: &mut Findings,
) -> Result<(), WorldError> {
    check_within(MAX_LOG, scenario, at, wanted, findings)
}

/// The same with logs of at most about `max_log` bytes. Addresses of two hosts are found in them: when one is half
/// full, the pairs that remain are checked in a world that has a log of its own.
fn check_within(
    max_log: u64,
    scenario: &Scenario,
    at: Instant,
    wanted: Pairs,
    findings: &mut Findings,
) -> Result<(), WorldError> {
    let flows = &scenario.flows;
    let scenario = Scenario { flows: Vec::new(), ..scenario.clone() };
    let pairs = pairs(&scenario, flows, wanted, findings);
    let scenario = Arc::new(scenario);
    let mut checks = Vec::new();
    let mut failures: BTreeMap<Stage, usize> = BTreeMap::new();
    let mut left_out: BTreeMap<Stage, usize> = BTreeMap::new();
    let mut rivals = BTreeMap::new();
    let mut begin = 0;
    loop {
        let mut askers = Vec::new();
        let put = |nodes: &mut BuiltNodes| {
            for (number, pair) in pairs.iter().enumerate().skip(begin) {
                askers.push(put_asker(&scenario, nodes, number, pair)?);
            }
            Ok(())
        };
        let mut world = World::with(scenario.clone(), 0, None, put)?;
        let mut end = pairs.len();
        let log = recorded_within(max_log, &mut world, |world, log| {
            world.run_until(at + SETTLING, &Monitor::default());
            // A log that is soon full of what hosts do unasked leaves no room for more than one pair in any world.
            let is_divided = log.size() < max_log / 4;
            for (number, asker) in (begin..).zip(&askers) {
                if is_divided && number > begin && log.size() >= max_log / 2 {
                    end = number;
                    break;
                }
                let pair = &pairs[number];
                if failures.get(&pair.stage).is_some_and(|&failed| failed >= MAX_FAILED) {
                    *left_out.entry(pair.stage).or_default() += 1;
                    continue;
                }
                for size in pair.sizes() {
                    let mut check = pair.check(&scenario, size);
                    ask(world, pair.from.0, asker, (size, TRIES), &mut check);
                    let failed = !check.passed;
                    checks.push((number, size, check));
                    if failed {
                        *failures.entry(pair.stage).or_default() += 1;
                        break;
                    }
                }
            }
        });
        if let Some(log) = log {
            rivals.extend(claims(&log));
            if let Some(Truncation::Full { from, .. }) = log.truncation() {
                let after = from.as_secs_f64();
                findings.left_out.push(format!(
                    "addresses that two hosts claim, by what was sent after {after:.3} s: the log of a check was full"
                ));
            }
        }
        begin = end;
        if begin >= pairs.len() {
            break;
        }
    }
    for (stage, pairs) in left_out {
        findings.left_out.push(format!("{stage}: {pairs} pairs, after {MAX_FAILED} checks that failed"));
    }
    let mut explained = BTreeMap::new();
    for (number, size, mut check) in checks {
        let pair = &pairs[number];
        let claims = [pair.from.1, pair.to.1].into_iter().filter_map(|address| rivals.get(&address));
        check.reasons.extend(claims.cloned());
        // Whoever has answered, an address of two is a fault.
        check.passed &= check.reasons.is_empty();
        let explained: &mut usize = explained.entry(check.stage).or_default();
        if !check.passed && check.reasons.is_empty() && *explained < EXPLAINED {
            *explained += 1;
            check.reasons = why(&scenario, at, pair, size)?;
        }
        findings.checks.push(check);
    }
    Ok(())
}

/// The IPv4 addresses that several stations claim, each with the line that says so.
pub(super) fn claims(log: &Log) -> BTreeMap<IpAddr, String> {
    let story = Query::parse("arp", log).map(|query| follow(log, &query)).ok();
    let rivals = story.into_iter().flat_map(|story| story.rivals);
    let line = |(address, macs): (Ipv4Addr, BTreeSet<_>)| {
        let owners: BTreeSet<&str> = macs.iter().filter_map(|&mac| log.owner_of_mac(mac)).collect();
        let names = owners.iter().copied().collect::<Vec<_>>().join(" and ");
        (owners.len() > 1).then(|| (IpAddr::from(address), format!("{address} is claimed by {names}")))
    };
    rivals.filter_map(line).collect()
}

/// What becomes of a pair's requests and answers, and of those the other way: a bridge that does not send a frame by a
/// port drops nothing, and one that does not let it in does.
fn why(
    scenario: &Arc<Scenario>,
    at: Instant,
    pair: &HostPair,
    size: usize,
) -> Result<Vec<String>, WorldError> {
    let back = HostPair { from: pair.to, to: pair.from, over: pair.over.clone(), ..*pair };
    let there = follow_requests(scenario, at, pair, size)?;
    let back = follow_requests(scenario, at, &back, size)?;
    // Where one of them names a place, the other's silence is no news.
    let mut lines = if there.names_a_place || !back.names_a_place { there.lines } else { Vec::new() };
    for line in back.lines.into_iter().filter(|_| back.names_a_place) {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    Ok(lines)
}

/// What becomes of a pair's requests and answers, in a world of their own.
fn follow_requests(
    scenario: &Arc<Scenario>,
    at: Instant,
    pair: &HostPair,
    size: usize,
) -> Result<Followed, WorldError> {
    let mut asker = None;
    let put = |nodes: &mut BuiltNodes| {
        asker = Some(put_asker(scenario, nodes, 0, pair)?);
        Ok(())
    };
    let mut world = World::with(scenario.clone(), 0, None, put)?;
    let Some(asker) = asker else { return Ok(Followed::default()) };
    let log = recorded(&mut world, |world| {
        world.run_until(at + SETTLING, &Monitor::default());
        ask(world, pair.from.0, &asker, (size, FOLLOWED), &mut pair.check(scenario, size));
    });
    let query = format!("between {} and {}", pair.from.1, pair.to.1);
    Ok(log.map(|log| followed(&log, &query)).unwrap_or_default())
}

/// The pairs to check, in the order of the stages.
pub(super) fn pairs(
    scenario: &Scenario,
    flows: &[Flow],
    wanted: Pairs,
    findings: &mut Findings,
) -> Vec<HostPair> {
    let network = scenario.network();
    let plan = NetworkPlan::of(network);
    let mut routes = scenario.global_routes(&plan);
    for event in &scenario.events {
        if let Action::Link { link, from, change } = &event.action {
            routes.change_link(*link, *from, change);
        }
    }
    let versions: BTreeSet<bool> = flows.iter().map(|flow| flow.ipv6).collect();
    let versions = if versions.is_empty() { BTreeSet::from([false]) } else { versions };
    let (mut vlans, mut neighbours) = (Vec::new(), Vec::new());
    for segment in plan.segments().iter() {
        let Some((first, others)) = segment.ends.split_first() else { continue };
        // Across bridges it may be untagged on some links.
        let is_vlan = segment.links().count() > segment.untagged_links().count();
        let of_stage = if is_vlan { &mut vlans } else { &mut neighbours };
        let ends = others.iter().flat_map(|end| versions.iter().map(move |&ipv6| (end, ipv6)));
        of_stage.extend(ends.map(|(end, ipv6)| (segment, [first, end], ipv6)));
    }
    let changes = Changes::of(scenario);
    let mut pairs = Vec::new();
    for (stage, all) in [(Stage::Neighbours, neighbours), (Stage::Vlans, vlans)] {
        let (count, mut indirect) = (all.len(), 0);
        for (segment, ends, ipv6) in bounded(all, (count, MAX_PAIRS), stage, findings) {
            let over = segment.name(network.links);
            let [from, to] = ends.map(|end| (end.node, plan.addresses().on(end.node, end.interface, ipv6)));
            let [first, end] = ends;
            if !routes.is_direct(from.0, first.interface, to.1)
                || !routes.is_direct(to.0, end.interface, from.1)
            {
                indirect += 1;
                if indirect <= LISTED {
                    let [from, to] = [from, to].map(|(node, _)| &scenario.nodes[node].name);
                    findings.left_out.push(format!(
                        "neighbours: {from} and {to} on {over}: their routes to each other go another way, or nowhere"
                    ));
                }
                continue;
            }
            let [one, other] = ends.map(|end| host_mtu(scenario, &plan, end, &changes));
            pairs.push(HostPair { stage, from, to, over, mtu: one.min(other), hop_limit: 1 });
        }
        if indirect > LISTED {
            findings.left_out.push(format!("{stage}: and {} more such pairs", indirect - LISTED));
        }
    }
    for (from, to, ipv6) in ends(scenario, flows, wanted, findings) {
        let [source, address] = [from, to].map(|node| plan.address(node, ipv6));
        let [there, back] = [(from, to, address), (to, from, source)]
            .map(|(from, to, address)| plan.route(network, &mut routes, (from, to), address));
        pairs.push(HostPair {
            stage: Stage::EndToEnd,
            from: (from, source),
            to: (to, address),
            over: format!("{} hops", there.hops.len()),
            mtu: there.mtu.min(back.mtu),
            hop_limit: HOP_LIMIT,
        });
    }
    pairs
}

/// Maximum length of a packet that a host sends by its end of a segment, in bytes: as its links have it by now.
fn host_mtu(scenario: &Scenario, plan: &NetworkPlan, end: &SegmentEnd, changes: &Changes<'_>) -> u32 {
    let own = plan.mtus(scenario.network(), end.node).nth(end.interface as usize).unwrap_or(0);
    let written = scenario.links[end.link].direction(end.attachment).mtu;
    let now = changes.mtu(scenario, end.link, end.attachment);
    own.saturating_sub(written.saturating_sub(now))
}

/// The pairs of nodes to check end to end, each once, with their version of IP: the ends of flows, or all.
fn ends(
    scenario: &Scenario,
    flows: &[Flow],
    pairs: Pairs,
    findings: &mut Findings,
) -> Vec<(NodeId, NodeId, bool)> {
    if pairs == Pairs::All {
        let nodes = scenario.nodes.len();
        let all = nodes * nodes.saturating_sub(1) / 2;
        let numbers = bounded(0..all, (all, MAX_PAIRS), Stage::EndToEnd, findings);
        let mut of_first = (0, 0);
        let pair = |number: usize| {
            // The pairs of the first nodes, each with all after it, come before.
            while number >= of_first.1 + (nodes - 1 - of_first.0) {
                of_first = (of_first.0 + 1, of_first.1 + (nodes - 1 - of_first.0));
            }
            (of_first.0, of_first.0 + 1 + (number - of_first.1), false)
        };
        return numbers.into_iter().map(pair).collect();
    }
    let mut known = BTreeSet::new();
    let of_flows = flows.iter().flat_map(|flow| flow.to.iter().map(|&to| (flow.from, to, flow.ipv6)));
    let is_new = |&(from, to, ipv6): &(NodeId, NodeId, bool)| {
        from != to && known.insert((from.min(to), from.max(to), ipv6))
    };
    let all: Vec<_> = of_flows.filter(is_new).collect();
    let count = all.len();
    bounded(all, (count, MAX_PAIRS), Stage::EndToEnd, findings)
}

impl HostPair {
    /// Headers of a request, in bytes.
    fn headers(&self) -> usize {
        ip::Version::of(self.to.1).header_len() + icmp::HEADER
    }

    /// The payloads of the requests to send, in bytes: of a small one, and of the longest.
    pub fn sizes(&self) -> [usize; 2] {
        [SMALL, (self.mtu as usize).saturating_sub(self.headers()).max(SMALL)]
    }

    /// The check by requests with this payload, of which none has been sent.
    pub fn check(&self, scenario: &Scenario, size: usize) -> Check {
        Check {
            stage: self.stage,
            from: scenario.nodes[self.from.0].name.clone(),
            to: scenario.nodes[self.to.0].name.clone(),
            over: format!("{}, {} to {}, {} bytes", self.over, self.from.1, self.to.1, size + self.headers()),
            passed: false,
            sent: 0,
            answered_ms: None,
            reasons: Vec::new(),
        }
    }
}

/// Puts an asker on the host that asks.
fn put_asker(
    scenario: &Scenario,
    nodes: &mut BuiltNodes,
    number: usize,
    pair: &HostPair,
) -> Result<(Slot, Shared<Asker>), WorldError> {
    let asker = Shared::new(Asker::default());
    let config = PingConfig {
        identifier: number as u16 + 1,
        hop_limit: pair.hop_limit,
        ..PingConfig::new(pair.from.1, pair.to.1)
    };
    let placed = nodes.put_ping(pair.from.0, config, Box::new(asker.clone()));
    let error = |cause| BuildError::AtNode {
        flow: "probe".to_owned(),
        node: scenario.nodes[pair.from.0].name.clone(),
        cause,
    };
    Ok((placed.map_err(error)?, asker))
}

/// Sends requests until one is answered.
fn ask(
    world: &mut World,
    node: NodeId,
    (slot, asker): &(Slot, Shared<Asker>),
    (size, tries): (usize, u64),
    check: &mut Check,
) {
    let (began, monitor) = (world.now(), Monitor::default());
    *asker.get_mut() = Asker { size, ..Asker::default() };
    while check.sent < tries && asker.get().answered.is_none() {
        asker.get_mut().is_due = true;
        world.wake_from_outside(node, *slot);
        check.sent += 1;
        world.run_until(world.now() + EVERY, &monitor);
    }
    if asker.get().answered.is_none() {
        world.run_until(world.now() + PATIENCE, &monitor);
    }
    let answered = asker.get().answered;
    check.passed = answered.is_some();
    check.answered_ms = answered.map(|at| at.since(began).as_secs_f64() * 1e3);
}

/// Sends a request when it is woken for one, and notes when the first answer came.
#[derive(Default)]
struct Asker {
    /// Payload of requests, in bytes.
    size: usize,
    /// Whether one is to be sent.
    is_due: bool,
    answered: Option<Instant>,
}

impl Machine for Asker {
    fn handle(&mut self, now: Instant, _: Port, item: Item) {
        // Those of another size answer the requests of an earlier check.
        if matches!(item, Item::Message(message) if message.payload.len() == self.size) {
            self.answered.get_or_insert(now);
        }
    }

    fn wake(&mut self, _: Instant) {}

    fn poll(&mut self, _: Instant) -> Option<(Port, Item)> {
        let is_due = std::mem::take(&mut self.is_due);
        is_due.then(|| (Port::Below(0), Item::Message(Message::new(0, Buffer::zeroed(self.size)))))
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::scenario::{MemoryFiles, Overrides, load_text};

    /// Forty hosts on one segment, of which the last two have one address.
    fn segment() -> String {
        let names: Vec<String> = (0..39).map(|number| format!("h{number}")).collect();
        let names = names.join(", ");
        format!(
            "
duration: 1 s
neighbours: resolve
topology:
  nodes: [{names}, {{ name: h39, claims: 10.0.0.39 }}]
  links: [{{ medium: [{names}, h39], rate: 100 Mbit/s, delay: 1 ms }}]
flows: [{{ from: h0, to: h1, over: udp, app: bulk }}]
"
        )
    }

    #[test]
    fn an_address_of_two_is_found_after_the_log_was_full() {
        let (files, path) = (MemoryFiles::default(), Path::new("segment.yaml"));
        let plan = load_text(&files, path, &segment(), &Overrides::default()).unwrap();
        let found = |max_log| {
            let mut findings = Findings { at_s: 0.0, checks: Vec::new(), left_out: Vec::new() };
            let scenario = &plan.cases[0].scenario;
            check_within(max_log, scenario, Instant::ZERO, Pairs::OfFlows, &mut findings).unwrap();
            let failed = findings.checks.iter().filter(|check| !check.passed);
            (failed.map(|check| check.reasons.clone()).collect::<Vec<_>>(), findings.left_out)
        };
        let (reasons, left_out) = found(MAX_LOG);
        // Small requests and full ones.
        assert_eq!(reasons, [["10.0.0.39 is claimed by h38 and h39"]; 2]);
        assert!(left_out.is_empty(), "{left_out:?}");
        assert_eq!(found(60_000).0, reasons, "logs of the pairs before are full of them");
        assert!(found(2_000).1[0].starts_with("addresses that two hosts claim, by what was sent after "));
    }
}
