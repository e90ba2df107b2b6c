//! From a scenario to a world: hosts on their links, and for each flow a stack of machines at both ends.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use hopcast_coded::Tunnel;
use hopcast_core::{Assembly, Instant, Machine, Port, Rate, Seed, Slot};
use hopcast_host::{Host, Interface, Udp};
use hopcast_link::{Link, Medium, MediumConfig, PointToPoint, Station as MediumStation};
use hopcast_peers::tcp::Tcp;

use super::routing::{Edge, Mac, Oracle, OracleRoutes, addresses_of};
use super::{Agenda, LinkSamples, RunningFlow, Script, Station, Wired, World, directions};
use crate::app::{
    Contents, DatagramEcho, DatagramSink, DatagramSource, Ends, FileReceiver, FileSender, MessageClient,
    Pace, STAMP, Schedule, StreamEcho, StreamSink, StreamSource, Transport,
};
use crate::capture::Capture;
use crate::meter::{Meter, SharedMeter};
use crate::scenario::model::{
    self, Action, App, Capture as CaptureSpec, Event, Flow, Layer, LinkModel, NodeId, Scenario, Span,
};

/// A full Ethernet frame, without FCS.
const FULL_FRAME: u64 = 1514;
/// The first port of the receiving ends; each flow has the next two.
const FIRST_PORT: u16 = 10_000;
/// What limits the number of flows: two ports each.
const MAX_FLOWS: usize = 25_000;

/// What hosts send with: the most there is, so that paths may be longer than an operating system's default of 64.
const HOP_LIMIT: u8 = 255;

const TCP_PROTOCOL: u8 = 6;

impl World {
    /// The world of `scenario`, for repeat number `repeat`, at time zero. With a capture, the interfaces that the
    /// scenario names are written to it.
    ///
    /// # Errors
    /// What cannot be built, in one line.
    pub fn new(scenario: Arc<Scenario>, repeat: u64, capture: Option<Capture>) -> Result<Self, String> {
        let mut capture = capture;
        if scenario.flows.len() > MAX_FLOWS {
            return Err(format!(
                "{} flows are more than the {MAX_FLOWS} that one run can hold",
                scenario.flows.len()
            ));
        }
        let seed = Seed::new(scenario.seed, repeat);
        let plan = Cabling::new(&scenario);
        let oracle = Rc::new(RefCell::new(plan.oracle(&scenario)));
        let mut links: Vec<Wired> =
            (0..scenario.links.len()).map(|link| plan.wired(&scenario, link, seed)).collect();
        let mut nodes: Vec<Builder> =
            (0..scenario.nodes.len()).map(|node| Builder::new(&scenario, &plan, node, &oracle)).collect();
        let flows = (scenario.flows.iter().enumerate())
            .map(|(number, flow)| build_flow(&scenario, &plan, &oracle, seed, &mut nodes, number, flow))
            .collect::<Result<Vec<_>, _>>()?;
        let nodes: Vec<Station> = nodes.into_iter().map(Builder::finish).collect();

        if let Some(capture) = &mut capture {
            capture_interfaces(&scenario, &mut links, capture);
        }
        let mut script = Script::new(&scenario);
        let mut agenda = Agenda::new(1 + links.len() + nodes.len());
        agenda.set(0, script.deadline());
        for (index, station) in nodes.iter().enumerate() {
            agenda.set(1 + links.len() + index, station.assembly.deadline());
        }
        let samples = links
            .iter()
            .map(|wired| LinkSamples {
                last: directions(wired.ends.len()).map(|_| Default::default()).collect(),
                steps: Vec::new(),
            })
            .collect();
        Ok(Self {
            scenario,
            now: Instant::ZERO,
            agenda,
            script,
            links,
            nodes,
            oracle,
            flows,
            work: VecDeque::new(),
            capture,
            opened: Vec::new(),
            closed: Vec::new(),
            samples,
        })
    }
}

/// Which interface of which node is which attachment of which link.
struct Cabling {
    /// For each link, for each attachment, the node and its interface.
    ends: Vec<Vec<(NodeId, u32)>>,
    /// For each node, for each interface, the link and the attachment.
    interfaces: Vec<Vec<(usize, usize)>>,
    /// For each link, how many before it join the same nodes: parallel links have random streams of their own.
    ordinals: Vec<u64>,
}

impl Cabling {
    fn new(scenario: &Scenario) -> Self {
        let mut interfaces: Vec<Vec<(usize, usize)>> = vec![Vec::new(); scenario.nodes.len()];
        let mut ends = Vec::with_capacity(scenario.links.len());
        let mut parallel: BTreeMap<&[NodeId], u64> = BTreeMap::new();
        let mut ordinals = Vec::with_capacity(scenario.links.len());
        for (number, link) in scenario.links.iter().enumerate() {
            let plug = |(attachment, &node): (usize, &NodeId)| {
                interfaces[node].push((number, attachment));
                (node, interfaces[node].len() as u32 - 1)
            };
            ends.push(link.ends.iter().enumerate().map(plug).collect());
            let before = parallel.entry(&link.ends).or_default();
            ordinals.push(*before);
            *before += 1;
        }
        Self { ends, interfaces, ordinals }
    }

    /// The Ethernet address of a link's attachment: locally administered, the link and the attachment in it.
    fn mac(link: usize, attachment: usize) -> Mac {
        let link = (link as u32).to_be_bytes();
        let [high, low] = (attachment as u16).to_be_bytes();
        // The first byte: bit 1 says "locally administered", bit 0 would say "group".
        [0x02 | (high << 2), low, link[0], link[1], link[2], link[3]]
    }

    fn wired(&self, scenario: &Scenario, link: usize, seed: Seed) -> Wired {
        let spec = &scenario.links[link];
        let name = |end: usize| scenario.nodes[spec.ends[end]].name.as_str();
        let ordinal = self.ordinals[link];
        let stream = |from: usize, to: usize| seed.stream(&["link", name(from), name(to)], ordinal);
        let model: Box<dyn Link> = match &spec.model {
            LinkModel::PointToPoint(config) => {
                Box::new(PointToPoint::new(config.clone(), [stream(0, 1), stream(1, 0)]))
            }
            LinkModel::Medium(direction) => {
                let station =
                    |attachment| MediumStation { address: Self::mac(link, attachment), promiscuous: false };
                let stations = (0..spec.ends.len()).map(station).collect();
                Box::new(Medium::new(MediumConfig { direction: direction.clone(), stations }, stream))
            }
        };
        let ends = self.ends[link].clone();
        Wired { model, captured: vec![None; ends.len()], ends }
    }

    fn oracle(&self, scenario: &Scenario) -> Oracle {
        let mut arriving = vec![Vec::new(); scenario.nodes.len()];
        for (link, ends) in self.ends.iter().enumerate() {
            for (from, to) in directions(ends.len()) {
                let (node, interface) = ends[from];
                arriving[ends[to].0].push(Edge {
                    from: node,
                    interface,
                    link,
                    attachment: from,
                    delay: direction(&scenario.links[link], from).delay,
                    mac: Self::mac(link, to),
                });
            }
        }
        Oracle::new(arriving, self.ends.iter().map(Vec::len).collect())
    }

    /// The rate of the link by which `node` sends towards `to`, at the start.
    fn first_rate(
        &self,
        scenario: &Scenario,
        oracle: &RefCell<Oracle>,
        node: NodeId,
        to: NodeId,
    ) -> Option<Rate> {
        let hop = oracle.borrow_mut().next_hop(node, to)?;
        let (link, attachment) = self.interfaces[node][hop.interface as usize];
        direction(&scenario.links[link], attachment).rate
    }
}

/// The configuration of what attachment `from` of a link sends.
fn direction(link: &model::Link, from: usize) -> &hopcast_link::Direction {
    match &link.model {
        LinkModel::PointToPoint(config) if from == 0 => &config.forward,
        LinkModel::PointToPoint(config) => &config.backward,
        LinkModel::Medium(direction) => direction,
    }
}

/// A node being built.
struct Builder {
    host: Host,
    assembly: Assembly,
    /// What is wired to the host once it is added: (above port of the host, machine).
    wires: Vec<(u32, Slot)>,
    interfaces: Vec<(usize, usize)>,
}

impl Builder {
    fn new(scenario: &Scenario, plan: &Cabling, node: NodeId, oracle: &Rc<RefCell<Oracle>>) -> Self {
        let interfaces = plan.interfaces[node].clone();
        let interface = |&(link, attachment): &(usize, usize)| Interface {
            mac: Cabling::mac(link, attachment),
            mtu: direction(&scenario.links[link], attachment).mtu,
        };
        let config = hopcast_host::Config {
            addresses: addresses_of(node).to_vec(),
            interfaces: interfaces.iter().map(interface).collect(),
            forwarding: true,
            hop_limit: HOP_LIMIT,
        };
        let routes = OracleRoutes { node, oracle: oracle.clone() };
        let host = Host::new(config, Box::new(routes));
        Self { host, assembly: Assembly::new(), wires: Vec::new(), interfaces }
    }

    /// Adds `machine` on top of the host's port `above`.
    fn add_on_host(&mut self, above: u32, machine: Box<dyn Machine>) -> Slot {
        let slot = self.assembly.add(machine);
        self.wires.push((above, slot));
        slot
    }

    fn finish(self) -> Station {
        let Self { host, mut assembly, wires, interfaces } = self;
        let host = assembly.add(Box::new(host));
        for (above, slot) in wires {
            assembly.wire((host, Port::Above(above)), (slot, Port::Below(0)));
        }
        for interface in 0..interfaces.len() as u32 {
            assembly.expose((host, Port::Below(interface)), Port::Below(interface));
        }
        Station { assembly, host, interfaces }
    }
}

/// Builds both ends of a flow into their nodes.
fn build_flow(
    scenario: &Scenario,
    plan: &Cabling,
    oracle: &RefCell<Oracle>,
    seed: Seed,
    nodes: &mut [Builder],
    number: usize,
    flow: &Flow,
) -> Result<RunningFlow, String> {
    let meter = Meter::shared(scenario.measure);
    let port = FIRST_PORT + 2 * number as u16;
    let version = usize::from(flow.ipv6);
    let addresses = [addresses_of(flow.from)[version], addresses_of(flow.to)[version]];
    let (source, sink) = (Ends::new(addresses, port + 1, port), Ends::new(addresses, port + 1, port).other());
    let (sender, receiver) = applications(scenario, plan, oracle, number, flow, source, &meter)?;
    let mut machines = Vec::new();
    for (node, application, ends) in [(flow.from, sender, source), (flow.to, receiver, sink)] {
        let layers = stack(scenario, seed, flow, node, ends);
        let builder = &mut nodes[node];
        let above = number as u32;
        let bound = match layers.first().map(|(name, _)| *name) {
            // The lowest machine is a TCP that talks IP itself; everything else stands on the host's UDP.
            Some("tcp") => builder.host.bind_protocol(above, TCP_PROTOCOL, Some(ends.local.port())),
            _ => builder.host.bind_udp(above, ends.local.port()),
        };
        bound.map_err(|error| format!("flow `{}` at `{}`: {error}", flow.name, scenario.nodes[node].name))?;
        let several = layers.len() > 1;
        let mut lower: Option<Slot> = None;
        for (name, machine) in layers.into_iter().chain([("", application)]) {
            let slot = match lower {
                None => builder.add_on_host(above, machine),
                Some(lower) => {
                    let slot = builder.assembly.add(machine);
                    builder.assembly.wire((lower, Port::Above(0)), (slot, Port::Below(0)));
                    slot
                }
            };
            machines.push((if several { name } else { "" }, node, slot));
            lower = Some(slot);
        }
    }
    Ok(RunningFlow { meter, machines })
}

/// The machines of a flow's stack at one node, from the bottom up; none where the host's UDP is all there is.
fn stack(
    scenario: &Scenario,
    seed: Seed,
    flow: &Flow,
    node: NodeId,
    ends: Ends,
) -> Vec<(&'static str, Box<dyn Machine>)> {
    let machine = |(depth, layer): (usize, &Layer)| -> Option<(&'static str, Box<dyn Machine>)> {
        match layer {
            // At the bottom UDP is the host's.
            Layer::Udp if depth + 1 == flow.over.len() => None,
            Layer::Udp => Some(("udp", Box::new(Udp::new(ends.local, HOP_LIMIT)))),
            Layer::Tcp(config) => {
                let names = ["flow", &flow.name, &scenario.nodes[node].name];
                let random = seed.stream(&names, depth as u64);
                let listens = node == flow.to;
                let port = listens.then_some(ends.local.port());
                let tcp = Tcp::new(config.clone(), port, vec![ends.local.ip()], random);
                Some(("tcp", Box::new(tcp)))
            }
            Layer::Tunnel => {
                let mtu = FULL_FRAME - flow.overhead(depth);
                Some(("tunnel", Box::new(Tunnel::new(ends.local, ends.remote, mtu as u32))))
            }
        }
    };
    flow.over.iter().enumerate().rev().filter_map(machine).collect()
}

type Pair = (Box<dyn Machine>, Box<dyn Machine>);

/// The sending and the receiving application.
fn applications(
    scenario: &Scenario,
    plan: &Cabling,
    oracle: &RefCell<Oracle>,
    number: usize,
    flow: &Flow,
    source: Ends,
    meter: &SharedMeter,
) -> Result<Pair, String> {
    let on_stream = matches!(flow.over.first(), Some(Layer::Tcp(_)));
    let schedule = |span: &Span| schedule(scenario, number, span);
    let saturating = |size: usize| -> Result<Pace, String> {
        let rate = plan.first_rate(scenario, oracle, flow.from, flow.to).ok_or_else(|| {
            format!(
                "flow `{}` saturates its first link, so that link from `{}` needs a rate",
                flow.name, scenario.nodes[flow.from].name
            )
        })?;
        Ok(Pace { rate, bytes: size as u64 + flow.overhead(0) })
    };
    // The payload of a full frame: 1,472 bytes where UDP over IPv4 is all there is.
    let full = (FULL_FRAME - flow.overhead(0)) as usize;
    let meter = || meter.clone();
    Ok(match &flow.app {
        App::Cbr { rate, size, span } => {
            let size = size.get() as usize;
            let pace = match rate {
                Some(rate) => Pace { rate: *rate, bytes: size as u64 },
                None => saturating(size)?,
            };
            let sender = DatagramSource::new(source, schedule(span), pace, size, None, meter());
            (Box::new(sender), Box::new(DatagramSink::new(None, meter())))
        }
        App::Bulk { bytes, span } if on_stream => {
            let contents = Contents::pattern(bytes.map(|bytes| bytes.get()));
            stream_pair(contents, source, schedule(span), meter())
        }
        App::Bulk { bytes, span } => {
            let pace = saturating(full)?;
            let count = bytes.map(|bytes| bytes.get().div_ceil(full as u64));
            let sender = DatagramSource::new(source, schedule(span), pace, full, count, meter());
            (Box::new(sender), Box::new(DatagramSink::new(count, meter())))
        }
        App::File { contents, span } if on_stream => {
            stream_pair(Contents::file(contents.clone()), source, schedule(span), meter())
        }
        App::File { contents, span } => {
            let (pace, piece) = (saturating(full)?, full - STAMP);
            let sender = FileSender::new(source, schedule(span), pace, contents.clone(), piece, meter());
            (Box::new(sender), Box::new(FileReceiver::new(contents.clone(), piece, meter())))
        }
        App::Messages { size, every, span } => {
            let size = size.get() as usize;
            let transport = if on_stream { Transport::Stream } else { Transport::Datagrams };
            let client = MessageClient::new(source, schedule(span), transport, size, *every, meter());
            let server: Box<dyn Machine> = match transport {
                Transport::Stream => Box::new(StreamEcho::new(size, meter())),
                Transport::Datagrams => Box::new(DatagramEcho::new(meter())),
            };
            (Box::new(client), server)
        }
    })
}

fn stream_pair(contents: Contents, source: Ends, schedule: Schedule, meter: SharedMeter) -> Pair {
    let transmissions = Rc::default();
    let sink = StreamSink::new(contents.clone(), meter.clone(), Rc::clone(&transmissions));
    (Box::new(StreamSource::new(source, schedule, contents, meter, transmissions)), Box::new(sink))
}

/// When an application sends: its own span, with the `start` and `stop` events of its flow.
fn schedule(scenario: &Scenario, flow: usize, span: &Span) -> Schedule {
    let end = Instant::ZERO + scenario.duration;
    let mut spans = Vec::new();
    let mut started = span.start;
    let mut push =
        |start: Instant, stop: Instant| spans.push((start, span.stop.map_or(stop, |at| at.min(stop))));
    for Event { at, action } in &scenario.events {
        match action {
            Action::Start(id) if *id == flow => started = Some(started.map_or(*at, |start| start.min(*at))),
            Action::Stop(id) if *id == flow => {
                if let Some(start) = started.take_if(|start| *start < *at) {
                    push(start, *at);
                }
            }
            Action::Start(_) | Action::Stop(_) | Action::Link { .. } => {}
        }
    }
    if let Some(start) = started {
        push(start, end);
    }
    Schedule::new(spans.into_iter().map(|(start, stop)| (start, stop.min(end))))
}

fn capture_interfaces(scenario: &Scenario, links: &mut [Wired], capture: &mut Capture) {
    for wired in links {
        for (attachment, &(node, interface)) in wired.ends.iter().enumerate() {
            if includes(&scenario.capture, node) {
                let name = format!("{}:eth{interface}", scenario.nodes[node].name);
                wired.captured[attachment] = Some(capture.add_interface(&name));
            }
        }
        wired.model.report_sent(wired.captured.iter().any(Option::is_some));
    }
}

fn includes(capture: &CaptureSpec, node: NodeId) -> bool {
    match capture {
        CaptureSpec::Nothing => false,
        CaptureSpec::Nodes(nodes) => nodes.contains(&node),
    }
}
