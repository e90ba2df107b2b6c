//! From a world that has run to its part of the document.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use hopcast_core::Instant;
use serde_json::Value;

use crate::app::FrameLog;
use crate::meter::Meter;
use crate::results::{Figures, Flow, LatencyCurve, Link, Parameters, Receiver, Run, Series};
use crate::scenario::Capacities;
use crate::scenario::model::{self, Case, Scenario};
use crate::world::{RunningFlow, World};

/// Points of a latency curve: enough for a smooth line.
const CURVE_POINTS: usize = 200;

/// What each flow of a case can have at the most; the same for every repeat, and worked out once.
#[derive(Default)]
pub(crate) struct Bounds(OnceLock<Vec<Vec<Option<f64>>>>);

impl Bounds {
    /// For each of its receivers.
    fn of_flow(&self, scenario: &Scenario, number: usize) -> &[Option<f64>] {
        let all = self.0.get_or_init(|| {
            let capacities = Capacities::of(scenario);
            scenario.flows.iter().map(|flow| towards_all(&capacities, flow)).collect()
        });
        &all[number]
    }
}

fn towards_all(capacities: &Capacities, flow: &model::Flow) -> Vec<Option<f64>> {
    flow.to.iter().map(|&to| capacities.between(flow.from, to)).collect()
}

/// What a run found.
pub(crate) fn collect(case: &Case, repeat: u64, bounds: &Bounds, world: &World) -> Run {
    let scenario = &case.scenario;
    let mut latency = Vec::new();
    let mut flows = Vec::new();
    for number in 0..scenario.flows.len() {
        flows.push(flow(scenario, number, bounds, world, &mut latency));
    }
    let parameters: Parameters =
        case.parameters.iter().map(|(path, value)| (path.clone(), Value::String(value.clone()))).collect();
    Run {
        parameters,
        repeat,
        seed: scenario.seed,
        flows,
        links: links(scenario, world),
        hosts: hosts(scenario, world),
        series: series(scenario, world),
        latency,
    }
}

fn curves(flow: &str, meter: &Meter) -> impl Iterator<Item = LatencyCurve> {
    let latency = meter.latency.curve(flow, "latency", CURVE_POINTS);
    latency.into_iter().chain(meter.round_trip.curve(flow, "round_trip", CURVE_POINTS))
}

/// The span over which a flow's goodput is taken: the scenario's window, or of a bounded flow as much of it as the flow
/// lasted.
fn window(scenario: &Scenario, spec: &model::Flow, meter: &Meter) -> Option<(Instant, Instant)> {
    let bounded = matches!(spec.app, model::App::File { .. } | model::App::Bulk { bytes: Some(_), .. });
    if bounded { meter.lasted() } else { Some((scenario.measure.from, scenario.measure.to)) }
}

/// The min-cut towards each receiver over a span, in bit/s.
fn min_cuts(
    scenario: &Scenario,
    number: usize,
    window: Option<(Instant, Instant)>,
    bounds: &Bounds,
) -> Vec<Option<f64>> {
    let flow = &scenario.flows[number];
    let Some((from, to)) = window else { return vec![None; flow.to.len()] };
    let whole = (from, to) == (scenario.measure.from, scenario.measure.to);
    let changes = scenario.events.iter().any(|event| matches!(event.action, model::Action::Link { .. }));
    let rates = if whole || !changes {
        bounds.of_flow(scenario, number).to_vec()
    } else {
        towards_all(&Capacities::over(scenario, from, to), flow)
    };
    rates.into_iter().map(|rate| rate.filter(|&rate| rate > 0.0)).collect()
}

fn flow(
    scenario: &Scenario,
    number: usize,
    bounds: &Bounds,
    world: &World,
    latency: &mut Vec<LatencyCurve>,
) -> Flow {
    let (spec, running) = (&scenario.flows[number], &world.flows()[number]);
    let mut receivers = Vec::new();
    let mut all: Option<Meter> = None;
    // Mostly all windows are the same one.
    let mut cuts = BTreeMap::new();
    let mut cuts_over = |window| -> Vec<Option<f64>> {
        cuts.entry(window).or_insert_with(|| min_cuts(scenario, number, window, bounds)).clone()
    };
    for (place, (&node, meter)) in spec.to.iter().zip(running.meters.iter()).enumerate() {
        let meter = meter.borrow();
        let window = window(scenario, spec, &meter);
        let min_cut = cuts_over(window)[place];
        let figures = figures(spec, running, &meter, 1, window, min_cut);
        receivers.push(Receiver { node: scenario.nodes[node].name.clone(), figures });
        match &mut all {
            Some(all) => all.add(&meter),
            None => all = Some(meter.clone()),
        }
    }
    let names: Vec<&str> = receivers.iter().map(|receiver| &*receiver.node).collect();
    let to = names.join(", ");
    let mut counters = world.flow_counters(running);
    let mut total = Figures::default();
    if let Some(all) = all {
        latency.extend(curves(&spec.name, &all));
        let window = window(scenario, spec, &all);
        // What all can have is what the worst placed can.
        let least = cuts_over(window).into_iter().flatten().min_by(f64::total_cmp);
        total = figures(spec, running, &all, spec.to.len(), window, least);
        counters.insert("damaged_units".to_owned(), all.damaged_units);
        counters.insert("duplicate_units".to_owned(), all.duplicate_units);
        counters.insert("too_old_units".to_owned(), all.too_old_units);
    }
    Flow {
        name: spec.name.clone(),
        protocol: spec.protocol.clone(),
        from: scenario.nodes[spec.from].name.clone(),
        to,
        figures: total,
        counters,
        receivers,
    }
}

/// What was measured at one receiver, or at several together.
fn figures(
    spec: &model::Flow,
    running: &RunningFlow,
    meter: &Meter,
    receivers: usize,
    window: Option<(Instant, Instant)>,
    min_cut: Option<f64>,
) -> Figures {
    let bits = meter.payload_bytes as f64 * 8.0 / receivers as f64;
    let goodput = window.map(|(from, to)| bits / to.since(from).as_secs_f64());
    let share = |bound: f64| goodput.map(|goodput| goodput / bound);
    Figures {
        goodput_mbps: goodput.map(|goodput| goodput / 1e6),
        sent_units: meter.sent_units,
        delivered_units: meter.delivered_units,
        reliability: (meter.sent_units > 0).then(|| meter.delivered_units as f64 / meter.sent_units as f64),
        min_cut_fraction: min_cut.and_then(share),
        payload_bound_fraction: min_cut.and_then(|rate| share(rate * payload_share(spec, running.frame))),
        completed_s: meter.completed.zip(meter.started).map(|(end, start)| end.since(start).as_secs_f64()),
        hash_ok: matches!(spec.app, model::App::File { .. }).then(|| meter.hash_ok == Some(true)),
        latency_ms: meter.latency.quantiles(),
        round_trip_ms: meter.round_trip.quantiles(),
        jitter_ms: meter.jitter.millis(),
        video: meter.frames.as_ref().map(FrameLog::figures),
    }
}

/// The share of the payload in a full packet that repairs nothing, after the headers of the stack.
fn payload_share(flow: &model::Flow, frame: u64) -> f64 {
    let overhead = flow.overhead(0);
    let payload = match &flow.app {
        model::App::Cbr { size, .. } | model::App::Messages { size, .. } if !flow.on_stream() => size.get(),
        model::App::Cbr { .. }
        | model::App::Messages { .. }
        | model::App::Bulk { .. }
        | model::App::File { .. }
        | model::App::Video { .. }
        | model::App::ShortFlows { .. } => frame.saturating_sub(overhead),
    };
    payload as f64 / (payload + overhead - flow.repair_overhead()) as f64
}

fn links(scenario: &Scenario, world: &World) -> Vec<Link> {
    let window = scenario.measure.to.since(scenario.measure.from).as_secs_f64();
    let mut links = Vec::new();
    for (number, spec) in scenario.links.iter().enumerate() {
        for ((from, to), counters) in world.link_figures(number) {
            let rate = spec.direction(from).rate;
            links.push(Link {
                from: scenario.nodes[spec.ends[from]].name.clone(),
                to: scenario.nodes[spec.ends[to]].name.clone(),
                sent_bytes: counters.sent_bytes,
                sent_packets: counters.sent_packets,
                delivered_packets: counters.delivered_packets,
                lost_packets: counters.lost_packets,
                queue_dropped_packets: counters.queue_dropped_packets,
                utilisation: rate.map(|_| counters.busy.as_secs_f64() / window),
            });
        }
    }
    links
}

fn hosts(scenario: &Scenario, world: &World) -> BTreeMap<String, u64> {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for node in 0..scenario.nodes.len() {
        for (counter, value) in world.host_counters(node) {
            if value > 0 {
                *sums.entry(counter.to_owned()).or_default() += value;
            }
        }
    }
    sums
}

fn series(scenario: &Scenario, world: &World) -> Series {
    let step_s = scenario.measure.interval.as_secs_f64();
    let steps = (scenario.duration.as_nanos() / scenario.measure.interval.as_nanos().max(1)) as usize;
    let mbps = |bytes: u64| bytes as f64 * 8.0 / step_s / 1e6;
    let flows = scenario.flows.iter().zip(world.flows()).map(|(spec, running)| {
        // The mean over the receivers.
        let bytes = |step: usize| -> u64 {
            running.meters.iter().filter_map(|meter| meter.borrow().step_bytes.get(step).copied()).sum()
        };
        let mean = |step| mbps(bytes(step)) / spec.to.len() as f64;
        let values = (0..steps).map(mean).collect();
        (spec.name.clone(), values)
    });
    let mut links = Vec::new();
    for (number, spec) in scenario.links.iter().enumerate() {
        let pairs = crate::world::directions(spec.ends.len());
        for ((from, to), steps) in pairs.zip(world.link_samples(number).steps()) {
            if steps.is_empty() {
                continue;
            }
            let name =
                format!("{}>{}", scenario.nodes[spec.ends[from]].name, scenario.nodes[spec.ends[to]].name);
            let lost = |&[_, lost, delivered]: &[u64; 3]| lost as f64 / ((lost + delivered) as f64).max(1.0);
            links.push((
                name,
                steps.iter().map(|&[bytes, _, _]| mbps(bytes)).collect(),
                steps.iter().map(lost).collect(),
            ));
        }
    }
    Series { step_s, flows: flows.collect(), links }
}
