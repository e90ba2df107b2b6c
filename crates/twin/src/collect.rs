//! From the observations of a run to its part of the document.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use hopcast_core::{Duration, Instant};
use hopcast_link::Change;
use serde_json::Value;

use crate::app::FrameLog;
use crate::bounds::Bounds;
use crate::meter::{Meter, PartialMeter};
use crate::observed::{Observed, ObservedFlow};
use crate::results::{
    Figures, Flow, LatencyCurve, Link, Live, Parameters, Receiver, Run, ScheduledEvent, Series, ServiceTable,
};
use crate::scenario::BlockBound;
use crate::scenario::model::{self, Action, Case, LinkId, Measure, Scenario};
use crate::ship_maps::ship_maps;
use crate::world::{InstanceReport, limit_tables};

pub use crate::observed::{ObservedLink, SentBytes};

/// Number of points of a latency curve. Chosen: enough for a smooth line; more make results longer.
const CURVE_POINTS: usize = 200;

/// Observations of a live run, before they are part of the document.
#[derive(Default)]
pub struct LiveObservations {
    /// The report of each site, in any order.
    pub sites: Vec<InstanceReport>,
    /// The observations of each link, in the order of the scenario.
    pub links: Vec<ObservedLink>,
    /// Bytes sent over the time of the run, if its only flow is of bounded size and to several receivers.
    pub sent: Option<SentBytes>,
    /// Measurements of real programs.
    pub programs: Vec<ProgramResult>,
    /// Counters of services, by service and name, summed over the network.
    pub services: BTreeMap<String, u64>,
    /// Tables of services in the end, in the order of the nodes.
    pub tables: Vec<ServiceTable>,
    /// Figures of the machine itself: lateness, drops, validity.
    pub live: Live,
}

/// The measurement of a flow's real program.
pub struct ProgramResult {
    /// The flow.
    pub flow: model::FlowId,
    /// Its figures, of all receivers together, except those that depend on the network.
    pub figures: Figures,
    /// The figures of each receiver of the flow.
    pub receivers: Vec<Figures>,
    /// Time at which the last receiver had all of it, if it is of bounded size and all have it.
    pub completed: Option<Instant>,
    /// Goodput in Mbit/s in each step of the time series.
    pub series: Vec<f64>,
    /// Its latency distributions.
    pub latency: Vec<LatencyCurve>,
    /// Counters by name, for results that are no figures.
    pub counters: BTreeMap<String, u64>,
}

impl LiveObservations {
    /// The part of the document of one repeat of `case`.
    pub fn collect(self, case: &Case, repeat: u64, bounds: &Bounds) -> Run {
        let scenario = &case.scenario;
        let Self { sites, links, sent, programs, services, mut tables, live } = self;
        limit_tables(&mut tables);
        let flows: Vec<_> =
            (0..scenario.flows.len()).map(|number| joined(scenario, number, &sites)).collect();
        let Measure { from, to, .. } = scenario.measure;
        let sent_in = |sent: &SentBytes, to: Instant| sent.until(to).saturating_sub(sent.until(from));
        let completed = match &*programs {
            [program] => program.completed,
            _ => flows.first().and_then(|flow| all_completed(&flow.meters)),
        };
        let transfer_bytes = sent.as_ref().zip(completed).map(|(sent, at)| sent_in(sent, at.min(to)));
        let network_bytes = match &sent {
            Some(sent) => Some(sent_in(sent, to)),
            None => sent_on_pairs(scenario, &links),
        };
        let hosts = services.into_iter().filter(|&(_, count)| count > 0).collect();
        let observed =
            Observed { flows, links, network_bytes, transfer_bytes, hosts, tables, flow_routes: Vec::new() };
        let mut run = Run { live: Some(live), ..collect(case, repeat, bounds, observed) };
        for ProgramResult { flow: number, figures, receivers, series, latency, counters, .. } in programs {
            let cuts = bounds.of_flow(scenario, number);
            let flow = &mut run.flows[number];
            let goodputs: Vec<f64> = receivers.iter().filter_map(|figures| figures.goodput_mbps).collect();
            for (place, (receiver, figures)) in flow.receivers.iter_mut().zip(receivers).enumerate() {
                let cut = cuts.get(place).copied().flatten();
                let min_cut_fraction = mean_share(figures.goodput_mbps.as_slice(), cut);
                receiver.figures = Figures { min_cut_fraction, ..figures };
            }
            // The bound of all receivers together is that of the worst placed one.
            let cut = cuts.iter().copied().flatten().min_by(f64::total_cmp);
            let min_cut_fraction = mean_share(&goodputs, cut);
            let Figures { network_bytes, network_bytes_bound, completed_bound_s, .. } = flow.figures;
            let of_network = Figures {
                network_bytes,
                network_bytes_bound,
                completed_bound_s,
                min_cut_fraction,
                ..figures
            };
            flow.figures = of_network;
            flow.counters.extend(counters);
            run.series.flows[number].1 = series;
            run.latency.extend(latency);
        }
        run
    }
}

/// The time at which the last of the receivers had all of a flow of bounded size; `None` unless all have it.
fn all_completed(meters: &[Meter]) -> Option<Instant> {
    let times: Option<Vec<Instant>> = meters.iter().map(|meter| meter.completed).collect();
    times?.into_iter().max()
}

/// The mean of rates in Mbit/s as shares of a bound in bit/s, each at most 1.
fn mean_share(rates: &[f64], bound: Option<f64>) -> Option<f64> {
    let bound = bound.filter(|&bound| bound > 0.0 && !rates.is_empty())?;
    let shares = rates.iter().map(|rate| (rate * 1e6 / bound).min(1.0));
    Some(shares.sum::<f64>() / rates.len() as f64)
}

/// Bytes sent on all links in the measurement window; `None` if a link joins more than two nodes, where each direction
/// has counted a frame to a group.
fn sent_on_pairs(scenario: &Scenario, links: &[ObservedLink]) -> Option<u64> {
    let all_pairs = scenario.links.iter().all(|link| link.ends.len() == 2);
    let sent = links.iter().flat_map(|link| &link.window).map(|(_, counters)| counters.sent_bytes);
    all_pairs.then(|| sent.sum())
}

/// Joins the observations of one flow from the reports of its nodes.
fn joined(scenario: &Scenario, number: usize, sites: &[InstanceReport]) -> ObservedFlow {
    let spec = &scenario.flows[number];
    let sites: Vec<&InstanceReport> = sites.iter().filter(|site| site.flow == number).collect();
    // A node that was lost has no report.
    let half = |node, place: usize| -> PartialMeter {
        let site = sites.iter().find(|site| site.node == node);
        site.and_then(|site| site.meters.get(place)).cloned().unwrap_or_default()
    };
    let (measure, duration) = (scenario.measure, scenario.duration);
    let meter = |(place, &to): (usize, &model::NodeId)| {
        let member = scenario.member(spec, to);
        Meter::joined(measure, duration, member, &half(spec.from, place), &half(to, place))
    };
    let mut counters: BTreeMap<String, u64> = BTreeMap::new();
    for (name, value) in sites.iter().flat_map(|site| &site.counters) {
        *counters.entry(name.clone()).or_default() += value;
    }
    ObservedFlow {
        meters: spec.to.iter().enumerate().map(meter).collect(),
        counters,
        delivery: sites.iter().flat_map(|site| site.delivery.clone()).collect(),
        frame: sites.first().map_or(0, |site| site.frame),
        sender_bytes: None,
    }
}

/// The part of the document of one repeat of `case`.
pub(crate) fn collect(case: &Case, repeat: u64, bounds: &Bounds, observed: Observed) -> Run {
    let scenario = &case.scenario;
    let mut latency = Vec::new();
    let mut flows = Vec::new();
    for number in 0..scenario.flows.len() {
        flows.push(flow(scenario, number, bounds, &observed, &mut latency));
    }
    let parameters: Parameters =
        case.parameters.iter().map(|(path, value)| (path.clone(), Value::String(value.clone()))).collect();
    Run {
        parameters,
        repeat,
        seed: scenario.seed,
        flows,
        links: links(scenario, &observed),
        network_bytes: observed.network_bytes,
        events: events(scenario),
        live: None,
        series: series(scenario, &observed),
        hosts: observed.hosts,
        tables: observed.tables,
        maps: ship_maps(scenario, repeat, &observed.flow_routes),
        latency,
    }
}

fn curves(flow: &str, meter: &Meter) -> impl Iterator<Item = LatencyCurve> {
    let latency = meter.latency.curve(flow, "latency", CURVE_POINTS);
    latency.into_iter().chain(meter.round_trip.curve(flow, "round_trip", CURVE_POINTS))
}

/// The span over which a flow's goodput is measured: the scenario's window, or the part of it in which a bounded flow
/// lasted.
fn window(scenario: &Scenario, spec: &model::Flow, meter: &Meter) -> Option<(Instant, Instant)> {
    if spec.is_bounded() { meter.lasted() } else { Some((scenario.measure.from, scenario.measure.to)) }
}

fn flow(
    scenario: &Scenario,
    number: usize,
    bounds: &Bounds,
    observed: &Observed,
    latency: &mut Vec<LatencyCurve>,
) -> Flow {
    let spec = &scenario.flows[number];
    let links = &observed.links;
    // With several flows it is unknown whose frame it was.
    let network_bytes = observed.transfer_bytes.or(observed.network_bytes);
    let together = |flow: &model::Flow| spec.senders.is_some() && flow.senders == spec.senders;
    let is_whole = scenario.flows.len() == 1 || scenario.flows.iter().all(together);
    let network_bytes = network_bytes.filter(|_| is_whole);
    let observed = &observed.flows[number];
    let bound = BlockBound::of(scenario, spec, observed.frame);
    // Of one with one receiver links say the same, unless there is a bound on it that stands beside.
    let network_bytes = network_bytes.filter(|_| spec.is_to_several() || bound.is_some());
    // What its node sends for other flows is not known apart.
    let is_alone = || scenario.flows.iter().filter(|other| other.from == spec.from).count() == 1;
    let sender_bytes = observed.sender_bytes.filter(|_| spec.is_to_several() && is_alone());
    let share = payload_share(spec, observed.frame);
    let mut receivers = Vec::new();
    let mut all: Option<Meter> = None;
    // For each receiver, the bytes that count and its meter.
    let mut counted: Vec<(f64, &Meter)> = Vec::new();
    let windows: Vec<_> = observed.meters.iter().map(|meter| window(scenario, spec, meter)).collect();
    let cuts = min_cuts(scenario, number, bounds, &windows);
    let arrived = OnceCell::new();
    for (place, (&node, meter)) in spec.to.iter().zip(&observed.meters).enumerate() {
        let window = windows[place];
        let bytes = match window {
            Some(window) if spec.holds_back() => {
                let arrived = arrived.get_or_init(|| arrived_bytes(scenario, links));
                bounds.counted(scenario, (number, place), window, share, (meter, arrived[node]))
            }
            _ => meter.payload_bytes as f64,
        };
        counted.push((bytes, meter));
        let bound = Bound { min_cut: cuts[place], share };
        let figures = figures(spec, meter, &[(bytes, meter)], window, bound);
        receivers.push(Receiver { node: scenario.nodes[node].name.clone(), figures });
        match &mut all {
            Some(all) => all.add(meter),
            None => all = Some(meter.clone()),
        }
    }
    let names: Vec<&str> = receivers.iter().map(|receiver| &*receiver.node).collect();
    let group = spec.group.map(|group| &scenario.groups[group].name).filter(|name| !name.is_empty());
    let to = group.cloned().unwrap_or_else(|| names.join(", "));
    let mut counters = observed.counters.clone();
    let mut total = Figures::default();
    if let Some(all) = all {
        latency.extend(curves(&spec.name, &all));
        let window = window(scenario, spec, &all);
        // The bound of all receivers together is that of the worst placed one.
        let min_cuts = min_cuts(scenario, number, bounds, &vec![window; spec.to.len()]);
        let min_cut = min_cuts.into_iter().flatten().min_by(f64::total_cmp);
        total = figures(spec, &all, &counted, window, Bound { min_cut, share });
        total.network_bytes = network_bytes;
        total.sender_bytes = sender_bytes;
        total.nacks_per_round = nacks_per_round(&counters);
        if let Some(bound) = bound {
            (total.network_bytes_bound, total.completed_bound_s) = (Some(bound.bytes), bound.seconds);
        }
        counters.insert("damaged_units".to_owned(), all.damaged_units);
        counters.insert("duplicate_units".to_owned(), all.duplicate_units);
        counters.insert("too_old_units".to_owned(), all.too_old_units);
    }
    Flow {
        name: spec.name.clone(),
        senders: spec.senders.clone(),
        protocol: spec.protocol.clone(),
        from: scenario.nodes[spec.from].name.clone(),
        to,
        coded: spec.is_coded(),
        figures: total,
        counters,
        receivers,
        delivery: observed.delivery.clone(),
    }
}

/// Requests for a block for each round of repairs of one, by what the flow's transports have counted.
fn nacks_per_round(counters: &BTreeMap<String, u64>) -> Option<f64> {
    // Where the stack has several layers, a name has its layer's before it.
    let of = |name: &str| -> u64 {
        let own = |found: &str| found.rsplit('.').next() == Some(name);
        counters.iter().filter(|(found, _)| own(found)).map(|(_, count)| count).sum()
    };
    let rounds = of("repair_rounds");
    (rounds > 0).then(|| of("blocks_requested") as f64 / rounds as f64)
}

/// The min-cut of a flow towards each receiver over its window, in bit/s.
fn min_cuts(
    scenario: &Scenario,
    number: model::FlowId,
    bounds: &Bounds,
    windows: &[Option<(Instant, Instant)>],
) -> Vec<Option<f64>> {
    let mut cuts = vec![None; windows.len()];
    // Usually all receivers have the same window; the window of a file ends when its receiver is complete.
    let mut places: BTreeMap<(Instant, Instant), Vec<usize>> = BTreeMap::new();
    for (place, window) in windows.iter().enumerate() {
        if let Some(window) = *window {
            places.entry(window).or_default().push(place);
        }
    }
    for (window, places) in places {
        let found = bounds.over(scenario, (number, &places), window);
        places.into_iter().zip(found).for_each(|(place, cut)| cuts[place] = cut);
    }
    cuts
}

/// For each node, the bytes of frames that links delivered to it in the measurement window.
fn arrived_bytes(scenario: &Scenario, links: &[ObservedLink]) -> Vec<u64> {
    let mut arrived = vec![0; scenario.nodes.len()];
    for (spec, link) in scenario.links.iter().zip(links) {
        for ((_, to), counters) in &link.window {
            arrived[spec.ends[*to]] += counters.delivered_bytes;
        }
    }
    arrived
}

/// The bound of a flow.
struct Bound {
    /// Min-cut in bit/s; `None` if it is unbounded.
    min_cut: Option<f64>,
    /// Share of the min-cut that can be payload.
    share: f64,
}

/// The figures of one receiver, or of several together; `counted` has each one's bytes that count and its meter.
fn figures(
    spec: &model::Flow,
    meter: &Meter,
    counted: &[(f64, &Meter)],
    window: Option<(Instant, Instant)>,
    bound: Bound,
) -> Figures {
    // The mean over the receivers, each with at most `limit` bit/s.
    let rate = |limit: f64| {
        let window = window?;
        let times = counted.iter().map(|(bytes, meter)| (bytes, meter.member_time(window).as_secs_f64()));
        let there: Vec<_> = times.filter(|&(_, seconds)| seconds > 0.0).collect();
        let sum: f64 = there.iter().map(|&(bytes, seconds)| (bytes * 8.0 / seconds).min(limit)).sum();
        (!there.is_empty()).then(|| sum / there.len() as f64)
    };
    let goodput = rate(f64::INFINITY);
    // Where random losses are fewer than the mean, a little more than the bound arrives.
    let share = |bound: f64| rate(bound).map(|rate| (rate / bound).min(1.0));
    let min_cut = bound.min_cut.filter(|&rate| rate > 0.0);
    let sent_units = meter.units();
    Figures {
        goodput_mbps: goodput.map(|goodput| goodput / 1e6),
        sent_units,
        delivered_units: meter.delivered_units,
        reliability: (sent_units > 0).then(|| meter.delivered_units as f64 / sent_units as f64),
        min_cut_fraction: min_cut.and_then(share),
        payload_bound_fraction: min_cut.and_then(|rate| share(rate * bound.share)),
        completed_s: meter.completed.zip(meter.started).map(|(end, start)| end.since(start).as_secs_f64()),
        hash_ok: matches!(spec.app, model::App::File { .. }).then(|| meter.hash_ok == Some(true)),
        latency_ms: meter.latency.quantiles(),
        round_trip_ms: meter.round_trip.quantiles(),
        jitter_ms: meter.jitter.millis(),
        reliability_bound: meter.earliest.as_ref().and_then(|earliest| earliest.reliability(sent_units)),
        latency_bound_ms: meter.earliest.as_ref().and_then(|earliest| earliest.latency()),
        network_bytes: None,
        sender_bytes: None,
        network_bytes_bound: None,
        completed_bound_s: None,
        nacks_per_round: None,
        network_saving: None,
        sender_saving: None,
        time_saving: None,
        video: meter.frames.as_ref().map(FrameLog::figures),
    }
}

/// The share of a full packet, of those that are no repairs, that is payload: without the headers of the stack.
fn payload_share(flow: &model::Flow, frame: u64) -> f64 {
    let overhead = flow.full_overhead();
    let payload = match &flow.app {
        model::App::Program { program: model::Program::Ping(ping), .. } => ping.size.get(),
        model::App::Cbr { size, .. } | model::App::Messages { size, .. }
            if !flow.on_stream() && !flow.on_messages() =>
        {
            size.get()
        }
        model::App::Cbr { .. }
        | model::App::Messages { .. }
        | model::App::Bulk { .. }
        | model::App::File { .. }
        | model::App::Video { .. }
        | model::App::ShortFlows { .. }
        | model::App::Program { .. } => frame.saturating_sub(overhead),
    };
    payload as f64 / (payload + overhead - flow.repair_overhead()) as f64
}

fn events(scenario: &Scenario) -> Vec<ScheduledEvent> {
    let event =
        |(at, what): &(Instant, String)| ScheduledEvent { at_s: at.as_secs_f64(), what: what.clone() };
    scenario.schedule.iter().map(event).collect()
}

fn links(scenario: &Scenario, observed: &Observed) -> Vec<Link> {
    let window = scenario.measure.to.since(scenario.measure.from).as_secs_f64();
    let down = down(scenario);
    let mut links = Vec::new();
    for (number, (spec, link)) in scenario.links.iter().zip(&observed.links).enumerate() {
        for &((from, to), counters) in &link.window {
            let takes_time = spec.has_radios() || spec.direction(from).rate.is_some();
            links.push(Link {
                name: spec.name.clone(),
                from: scenario.nodes[spec.ends[from]].name.clone(),
                to: scenario.nodes[spec.ends[to]].name.clone(),
                sent_bytes: counters.sent_bytes,
                sent_packets: counters.sent_packets,
                delivered_packets: counters.delivered_packets,
                lost_packets: counters.lost_packets,
                queue_dropped_packets: counters.queue_dropped_packets,
                utilisation: takes_time.then(|| counters.busy.as_secs_f64() / window),
                down_s: down.get(&(number, from)).map_or(0.0, |down| down.as_secs_f64()),
            });
        }
    }
    links
}

/// Time in the measurement window for which an attachment of a link was down, for those that were.
fn down(scenario: &Scenario) -> BTreeMap<(LinkId, usize), Duration> {
    let Measure { from, to, .. } = scenario.measure;
    let mut since: BTreeMap<(LinkId, usize), Instant> = BTreeMap::new();
    let mut down: BTreeMap<(LinkId, usize), Duration> = BTreeMap::new();
    let mut add = |which, since: Instant, until: Instant| {
        let span = until.min(to).since(since.max(from));
        if span > Duration::ZERO {
            *down.entry(which).or_insert(Duration::ZERO) += span;
        }
    };
    for event in &scenario.events {
        let Action::Link { link, from, change } = &event.action else { continue };
        let ends = from.map_or(0..scenario.links[*link].ends.len(), |from| from..from + 1);
        for end in ends {
            match change {
                Change::Down => {
                    since.entry((*link, end)).or_insert(event.at);
                }
                Change::Up => {
                    if let Some(since) = since.remove(&(*link, end)) {
                        add((*link, end), since, event.at);
                    }
                }
                _ => {}
            }
        }
    }
    for (which, since) in since {
        add(which, since, to);
    }
    down
}

fn series(scenario: &Scenario, observed: &Observed) -> Series {
    let step_s = scenario.measure.interval.as_secs_f64();
    let steps = (scenario.duration.as_nanos() / scenario.measure.interval.as_nanos().max(1)) as usize;
    // One division of whole numbers, so that nothing is rounded twice.
    let step_ns = scenario.measure.interval.as_nanos() as f64;
    let mbps = |bytes: u64| (bytes * 8_000) as f64 / step_ns;
    let flows = scenario.flows.iter().zip(&observed.flows).map(|(spec, flow)| {
        // The mean over the receivers.
        let bytes = |step: usize| -> u64 {
            flow.meters.iter().filter_map(|meter| meter.step_bytes.get(step).copied()).sum()
        };
        let interval = scenario.measure.interval;
        // For a group, the mean number of members during the step.
        let receivers = |step: usize| {
            let from = Instant::ZERO + interval * step as u64;
            let times = flow.meters.iter().map(|meter| meter.member_time((from, from + interval)).as_nanos());
            times.sum::<u64>() as f64 / step_ns
        };
        let mean = |step| match receivers(step) {
            _ if spec.group.is_none() => mbps(bytes(step)) / spec.to.len() as f64,
            receivers if receivers > 0.0 => mbps(bytes(step)) / receivers,
            _ => 0.0,
        };
        let values = (0..steps).map(mean).collect();
        (spec.name.clone(), values)
    });
    let mut joining: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for spec in &scenario.links {
        for (from, to) in crate::world::directions(spec.ends.len()) {
            *joining.entry((spec.ends[from], spec.ends[to])).or_default() += 1;
        }
    }
    let mut links = Vec::new();
    for (spec, link) in scenario.links.iter().zip(&observed.links) {
        let pairs = crate::world::directions(spec.ends.len());
        for ((from, to), steps) in pairs.zip(&link.steps) {
            if steps.is_empty() {
                continue;
            }
            let (from, to) = (spec.ends[from], spec.ends[to]);
            let direction = format!("{}>{}", scenario.nodes[from].name, scenario.nodes[to].name);
            // Parallel links between two nodes have their names beside those of the nodes.
            let name =
                if joining[&(from, to)] == 1 { direction } else { format!("{} {direction}", spec.name) };
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
