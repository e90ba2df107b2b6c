//! iperf2 sends to a group over a router of the kernel, and a server at each member says what it got.

#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods)] // A live run waits for real.

mod common;

use std::path::Path;
use std::sync::Arc;

use common::{ms, networks_can_be_set_up, pause, whole_run};
use hopcast_core::{Duration, Instant};
use hopcast_live::emulator::Options;
use hopcast_live::lab::Lab;
use hopcast_live::network;
use hopcast_live::programs::{
    ChildProcess, CommandLine, Ends, Error, FlowOutcome, GroupMember, Measurement, Programs, Running, Spawner,
};
use hopcast_node::Clock;
use hopcast_node::testing::{Requirement, require};
use hopcast_runner::load_text;
use hopcast_stack::network::addresses_of;
use hopcast_twin::scenario::Overrides;
use hopcast_twin::scenario::model::Scenario;

/// Starts programs at the nodes of a lab.
struct AtNodes<'l>(&'l Lab);

impl Spawner for AtNodes<'_> {
    fn spawn(&mut self, node: usize, line: &CommandLine, output: &Path) -> Result<Box<dyn Running>, Error> {
        let mut command = self.0.command(node, &line.program);
        line.apply_to(&mut command, output)?;
        let child = self.0.start(command).map_err(|error| Error::start(&line.program, error))?;
        Ok(Box::new(ChildProcess::new(child)))
    }
}

/// A sender, a router and three members, whose links lose nothing, a part and all of it.
const SCENARIO: &str = "\
title: t
duration: 3 s
measure: { from: 500 ms, to: 2500 ms, interval: 100 ms }
topology:
  nodes: [s, r, a, b, c]
  links:
    - { between: [s, r], rate: 20 Mbit/s, delay: 5 ms }
    - { between: [r, a], rate: 20 Mbit/s, delay: 5 ms }
    - { between: [r, b], rate: 20 Mbit/s, delay: 5 ms, loss: 30 % }
    - { between: [r, c], rate: 20 Mbit/s, delay: 5 ms, loss: 100 % }
groups: [{ name: film, members: [a, b, c], delivery: ip-multicast }]
flows:
  - { name: four, from: s, to: film, over: udp, app: { iperf2: { rate: 1 Mbit/s, size: 1000 B } } }
  - { name: six, from: s, to: film, over: udp, ip: 6, app: { iperf2: { rate: 1 Mbit/s, size: 1000 B } } }
";

/// Each member has one interface.
fn ends(scenario: &Scenario, flow: usize) -> Vec<Ends> {
    let spec = &scenario.flows[flow];
    let group = scenario.groups[spec.group.unwrap()].address(spec.ipv6);
    let ends = Ends {
        from: addresses_of(spec.from)[usize::from(spec.ipv6)],
        to: group,
        connect: group,
        port: 10_000 + 2 * flow as u16,
        member: Some(GroupMember::alone(addresses_of(spec.to[0])[usize::from(spec.ipv6)])),
    };
    vec![ends; spec.to.len()]
}

#[test]
fn each_member_of_a_group_has_the_figures_of_its_own_server_and_who_gets_nothing_has_them_too() {
    if !networks_can_be_set_up() || !require(&[Requirement::Program("iperf")]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let plan = load_text(&dir.path().join("t.yaml"), SCENARIO, &Overrides::default()).unwrap();
    let scenario = Arc::clone(&plan.cases[0].scenario);
    let options = Options { without_reports: true, ..whole_run() };
    let net = common::Running::start(network::layout(&scenario, 0, false), Vec::new(), options);
    let mut programs = Programs::new(scenario.clone(), dir.path(), |flow| ends(&scenario, flow)).unwrap();
    let limit = Instant::ZERO + Duration::from_secs(60);
    let waiting = Clock::starting_now();
    while !programs.prepare(&mut AtNodes(&net.lab)) {
        assert!(waiting.now() < limit, "servers do not open");
        pause(ms(10));
    }
    let clock = Clock::starting_now();
    while !programs.is_done() {
        programs.step(clock.now(), &mut AtNodes(&net.lab));
        let Some(next) = programs.next_deadline() else { break };
        pause(clock.until(next));
        assert!(clock.now() < limit, "programs do not end");
    }
    let ended = programs.finish();
    let window = (scenario.measure.from, scenario.measure.to);
    for FlowOutcome { measured, note, failed, .. } in &ended.flows {
        assert_eq!((note, failed), (&None, &false));
        let measured: Vec<Measurement> =
            measured.iter().map(|found| found.as_ref().unwrap().clone()).collect();
        for (measured, share) in measured.iter().zip([1.0, 0.7, 0.0]) {
            let figures = measured.figures(window);
            // 125 datagrams a second for 2 s.
            assert!(figures.sent_units.abs_diff(250) < 8, "{figures:?}");
            // The deviation of 250 draws is 0.03.
            let slack = if share == 0.7 { 0.12 } else { 0.02 };
            assert!((figures.reliability.unwrap() - share).abs() < slack, "{share}: {figures:?}");
            assert!((figures.goodput_mbps.unwrap() - share).abs() < slack + 0.05, "{share}: {figures:?}");
            assert_eq!(figures.latency_ms.is_some(), share > 0.0, "{figures:?}");
        }
        let all = Measurement::together(&measured).figures(window);
        assert!((all.reliability.unwrap() - 1.7 / 3.0).abs() < 0.05, "{all:?}");
    }
    for name in ["four.server-a.out", "six.server-c.out", "six.client.out"] {
        assert!(dir.path().join("programs").join(name).exists(), "{name}");
    }
    net.finish();
}
