//! The checks of a network on a kernel: what is to be sent there, and what became of what did not arrive.

use std::collections::BTreeMap;

use hopcast_core::{Duration, Instant};
use hopcast_stack::network::NodeId;
use hopcast_trace::Log;
use hopcast_wire::ethernet;

use super::echoes::{HostPair, claims, pairs};
use super::links::{LinkDirection, directions};
use super::why::followed;
use super::{Check, Findings, Pairs, Stage, frozen, groups};
use crate::scenario::model::{Action, Measure, Scenario};

/// Maximum time of the checks on a kernel: then nothing is sent to groups any more. Chosen: longer than a thousand
/// pairs take that answer.
const MAX_TIME: Duration = Duration::from_secs(1800);
/// Time at which what has happened in the scenario by the time of the checks happens on the kernel. Chosen: once all
/// nodes run.
const CHANGED: Instant = Instant::from_nanos(1_000_000);
/// Maximum number of checks of a stage that are explained: they are more than a person reads.
const EXPLAINED: usize = 8;

/// The checks of a network on a kernel.
#[derive(Clone, Debug)]
pub struct KernelChecks {
    /// The network as it is at the time that is asked for: what has happened by then happens at once, and its only
    /// flows send datagrams to groups, [`SETTLING`](super::SETTLING) after the start.
    pub scenario: Scenario,
    /// The links to send frames over.
    pub directions: Vec<LinkDirection>,
    /// The hosts to ask, by stage.
    pub pairs: Vec<HostPair>,
    /// The findings, without a check.
    pub findings: Findings,
}

/// Results of the checks on a kernel.
#[derive(Debug, Default)]
pub struct KernelResults {
    /// The checks of links, each with its number among [`KernelChecks::directions`].
    pub links: Vec<(usize, Check)>,
    /// The checks of hosts, each with its number among [`KernelChecks::pairs`].
    pub hosts: Vec<(usize, Check)>,
    /// Number of datagrams that each receiver of each flow has, in the order of the scenario.
    pub groups: Vec<Vec<u64>>,
    /// The counters of each node's services, by service and name.
    pub services: Vec<BTreeMap<String, u64>>,
}

impl KernelChecks {
    /// The checks of a scenario's network as it is at `at`.
    pub fn of(scenario: &Scenario, at: Instant, wanted: Pairs) -> Self {
        let mut findings = Findings { at_s: at.as_secs_f64(), checks: Vec::new(), left_out: Vec::new() };
        let frozen = frozen(scenario, at);
        let directions = directions(&frozen, &mut findings);
        let pairs = pairs(&frozen, &frozen.flows, wanted, &mut findings);
        let scenario = on_kernel(frozen, at, &mut findings);
        Self { scenario, directions, pairs, findings }
    }

    /// The [`scenario`](Self::scenario) alone, for the processes of its nodes.
    pub fn scenario_of(scenario: &Scenario, at: Instant) -> Scenario {
        let mut findings = Findings { at_s: at.as_secs_f64(), checks: Vec::new(), left_out: Vec::new() };
        on_kernel(frozen(scenario, at), at, &mut findings)
    }

    /// The findings, by the results and the log of the run.
    pub fn findings(self, results: KernelResults, log: &Log) -> Findings {
        let Self { scenario, directions, pairs, mut findings } = self;
        let KernelResults { links, hosts, groups, services } = results;
        let mut explained: BTreeMap<Stage, usize> = BTreeMap::new();
        let mut explain = |check: &mut Check, lines: &dyn Fn() -> Vec<String>| {
            let explained = explained.entry(check.stage).or_default();
            if !check.passed && check.reasons.is_empty() && *explained < EXPLAINED {
                *explained += 1;
                check.reasons = lines();
            }
        };
        for (number, mut check) in links {
            let [to, from] = directions[number].macs().map(ethernet::text);
            explain(&mut check, &|| followed(log, &format!("from {from} to {to}")).lines);
            findings.checks.push(check);
        }
        let rivals = claims(log);
        for (number, mut check) in hosts {
            let pair = &pairs[number];
            let claims = [pair.from.1, pair.to.1].into_iter().filter_map(|address| rivals.get(&address));
            check.reasons.extend(claims.cloned());
            check.passed &= check.reasons.is_empty();
            explain(&mut check, &|| of_hosts(log, pair));
            findings.checks.push(check);
        }
        for (flow, receivers) in scenario.flows.iter().zip(groups) {
            for (&member, delivered) in flow.to.iter().zip(receivers) {
                let passed = delivered > 0;
                let mut check = Check { passed, ..groups::check_of(&scenario, flow, member) };
                explain(&mut check, &|| groups::lines(&scenario, flow, log));
                findings.checks.push(check);
            }
        }
        let counters = |node: NodeId| services.get(node).cloned().unwrap_or_default();
        if !scenario.flows.is_empty() {
            findings.checks.extend(groups::unasked(&scenario, counters));
        }
        for check in findings.checks.iter_mut().filter(|check| !check.passed) {
            check.reasons.extend(counted(&scenario, &services, &check.reasons));
        }
        findings
    }
}

/// A frozen scenario for a kernel, whose time begins with the checks.
fn on_kernel(mut frozen: Scenario, at: Instant, findings: &mut Findings) -> Scenario {
    let convergence = frozen.routing.convergence;
    let moves = |action: &Action| matches!(action, Action::Link { .. });
    if frozen.events.iter().all(|event| !moves(&event.action) || event.at + convergence <= at) {
        frozen.routing.convergence = Duration::ZERO;
    }
    frozen.events.iter_mut().for_each(|event| event.at = CHANGED);
    let changes = frozen.services.iter_mut().flat_map(|service| &mut service.changes);
    changes.for_each(|change| change.at = CHANGED);
    let flows = groups::flows(&frozen, Instant::ZERO, findings);
    let measure = Measure { from: Instant::ZERO, to: Instant::ZERO + MAX_TIME, interval: MAX_TIME };
    Scenario { flows, duration: MAX_TIME, measure, ..frozen }
}

/// The fate of the requests of a pair of hosts, or of the questions for their Ethernet addresses where a kernel had
/// nobody to send the requests to.
fn of_hosts(log: &Log, HostPair { from, to, .. }: &HostPair) -> Vec<String> {
    let between = format!("between {} and {}", from.1, to.1);
    let questions = if to.1.is_ipv4() { "arp" } else { "nd" };
    let all = [between.clone(), format!("{questions} {between}"), questions.to_owned()];
    let mut found = all.iter().map(|query| followed(log, query).lines);
    found.find(|lines| !lines.is_empty()).unwrap_or_default()
}

/// The counters of the services at the first node at which packets ended by these reasons: a kernel's log ends at its
/// interfaces, and what a service behind one has dropped is in its counters.
fn counted(scenario: &Scenario, services: &[BTreeMap<String, u64>], reasons: &[String]) -> Option<String> {
    let node = reasons.iter().find_map(|line| {
        let (_, place) = line.split_once(" of node ").or_else(|| line.split_once(" by nobody: "))?;
        let name = place.split([',', ';', ':', ' ']).next()?;
        scenario.nodes.iter().position(|node| node.name == name)
    })?;
    let counters = services.get(node)?.iter().filter(|(_, value)| **value > 0);
    let counters: Vec<String> = counters.map(|(name, value)| format!("{name} {value}")).collect();
    let node = &scenario.nodes[node].name;
    (!counters.is_empty()).then(|| format!("the services of {node} count {}", counters.join(", ")))
}
