//! A flow being built: a stack of machines at both of its ends, with an application on top.

use std::cell::RefCell;
use std::rc::Rc;

use hopcast_coded::Tunnel;
use hopcast_core::{Instant, Machine, Port, Seed, Slot};
use hopcast_host::Udp;
use hopcast_peers::tcp::{self, Tcp};

use super::RunningFlow;
use super::cabling::{Cabling, path_mtu};
use super::node::{Builder, HOP_LIMIT};
use super::routing::{Oracle, addresses_of};
use crate::app::{
    Contents, DatagramEcho, DatagramSink, DatagramSource, Ends, FileReceiver, FileSender, MessageClient,
    Pace, STAMP, Schedule, StreamEcho, StreamSink, StreamSource, Transport,
};
use crate::meter::{Meter, SharedMeter};
use crate::scenario::model::{Action, App, ETHERNET, Event, Flow, Layer, NodeId, Scenario, Span};

/// The receiving end's port of the first flow; the sending end has the next, and each flow two below the last. The
/// scenario language bounds their number. Up here Wireshark knows no protocol by its port, and guesses none.
const FIRST_PORT: u16 = 60_000;
const TCP_PROTOCOL: u8 = 6;

/// Builds both ends of a flow into their nodes.
pub(super) fn build_flow(
    scenario: &Scenario,
    cabling: &Cabling,
    oracle: &RefCell<Oracle>,
    seed: Seed,
    nodes: &mut [Builder],
    number: usize,
) -> Result<RunningFlow, String> {
    let flow = &scenario.flows[number];
    let port = FIRST_PORT - 2 * number as u16;
    let version = usize::from(flow.ipv6);
    let addresses = [addresses_of(flow.from)[version], addresses_of(flow.to)[version]];
    let source = Ends::new(addresses, port + 1, port);
    let route = cabling.route(&mut oracle.borrow_mut(), flow.from, flow.to);
    let parts = Parts {
        scenario,
        cabling,
        seed,
        number,
        flow,
        mtu: path_mtu(scenario, &route),
        rates: route.first().and_then(|&first| Cabling::rates(scenario, first)),
        meter: Meter::shared(scenario.measure, scenario.duration),
    };
    let (sender, receiver) = parts.applications(source)?;
    let mut machines = Vec::new();
    for (node, application, ends) in [(flow.from, sender, source), (flow.to, receiver, source.other())] {
        let layers = parts.stack(node, ends);
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
    Ok(RunningFlow { meter: parts.meter, machines, frame: u64::from(parts.mtu) + ETHERNET })
}

type Pair = (Box<dyn Machine>, Box<dyn Machine>);

/// What both ends of a flow are made from.
struct Parts<'a> {
    scenario: &'a Scenario,
    cabling: &'a Cabling,
    seed: Seed,
    number: usize,
    flow: &'a Flow,
    /// The longest packet that fits the route, in bytes.
    mtu: u32,
    /// The rates of the first link over time, if it has any.
    rates: Option<Vec<(Instant, hopcast_core::Rate)>>,
    meter: SharedMeter,
}

impl Parts<'_> {
    /// The machines of the stack at one node, from the bottom up; none where the host's UDP is all there is.
    fn stack(&self, node: NodeId, ends: Ends) -> Vec<(&'static str, Box<dyn Machine>)> {
        let Self { flow, scenario, .. } = self;
        let machine = |(depth, layer): (usize, &Layer)| -> Option<(&'static str, Box<dyn Machine>)> {
            match layer {
                // At the bottom UDP is the host's.
                Layer::Udp if depth + 1 == flow.over.len() => None,
                Layer::Udp => Some(("udp", Box::new(Udp::new(ends.local, HOP_LIMIT)))),
                Layer::Tcp(config) => {
                    let names = ["flow", &flow.name, &scenario.nodes[node].name];
                    let random = self.seed.stream(&names, depth as u64);
                    let listens = node == flow.to;
                    let port = listens.then_some(ends.local.port());
                    // What a host knows is the MTU of its own link; it finds a smaller one on the way by itself.
                    let own = self.cabling.interfaces[node].iter();
                    let own = own.map(|&(link, attachment)| scenario.links[link].direction(attachment).mtu);
                    let mtu = own.max().unwrap_or(config.mtu);
                    let config = tcp::Config { mtu, hop_limit: HOP_LIMIT, ..config.clone() };
                    Some(("tcp", Box::new(Tcp::new(config, port, vec![ends.local.ip()], random))))
                }
                Layer::Tunnel => {
                    let mtu = u64::from(self.mtu) + ETHERNET - flow.overhead(depth);
                    Some(("tunnel", Box::new(Tunnel::new(ends.local, ends.remote, mtu as u32))))
                }
            }
        };
        flow.over.iter().enumerate().rev().filter_map(machine).collect()
    }

    /// The sending and the receiving application.
    fn applications(&self, source: Ends) -> Result<Pair, String> {
        let on_stream = matches!(self.flow.over.first(), Some(Layer::Tcp(_)));
        // The payload of a full frame: 1,472 bytes where UDP over IPv4 and an MTU of 1,500 are all there is.
        let full = (u64::from(self.mtu) + ETHERNET).saturating_sub(self.flow.overhead(0)) as usize;
        let full = full.max(STAMP + 1);
        let meter = || self.meter.clone();
        Ok(match &self.flow.app {
            App::Cbr { rate, size, span } => {
                let pace = rate.map_or_else(|| self.saturating(), |rate| Ok(Pace::constant(rate)))?;
                let size = size.get() as usize;
                let sender = DatagramSource::new(source, self.schedule(span), pace, size, None, meter());
                (Box::new(sender), Box::new(DatagramSink::new(None, meter())))
            }
            App::Bulk { bytes, span } if on_stream => {
                self.streams(Contents::pattern(bytes.map(|bytes| bytes.get())), source, span)
            }
            App::Bulk { bytes, span } => {
                let bytes = bytes.map(|bytes| bytes.get());
                let (schedule, pace) = (self.schedule(span), self.saturating()?);
                let count = bytes.map(|bytes| DatagramSource::count(bytes, full));
                let sender = DatagramSource::new(source, schedule, pace, full, bytes, meter());
                (Box::new(sender), Box::new(DatagramSink::new(count, meter())))
            }
            App::File { contents, span } if on_stream => {
                self.streams(Contents::file(contents.clone()), source, span)
            }
            App::File { contents, span } => {
                let (schedule, pace, piece) = (self.schedule(span), self.saturating()?, full - STAMP);
                let sender = FileSender::new(source, schedule, pace, contents.clone(), piece, meter());
                (Box::new(sender), Box::new(FileReceiver::new(contents.clone(), piece, meter())))
            }
            App::Messages { size, every, span } => {
                let size = size.get() as usize;
                let transport = if on_stream { Transport::Stream } else { Transport::Datagrams };
                let client =
                    MessageClient::new(source, self.schedule(span), transport, size, *every, meter());
                let server: Box<dyn Machine> = match transport {
                    Transport::Stream => Box::new(StreamEcho::new(size, meter())),
                    Transport::Datagrams => Box::new(DatagramEcho::new(meter())),
                };
                (Box::new(client), server)
            }
        })
    }

    fn streams(&self, contents: Contents, source: Ends, span: &Span) -> Pair {
        let transmissions = Rc::default();
        let sink = StreamSink::new(contents.clone(), self.meter.clone(), Rc::clone(&transmissions));
        let schedule = self.schedule(span);
        let source = StreamSource::new(source, schedule, contents, self.meter.clone(), transmissions);
        (Box::new(source), Box::new(sink))
    }

    /// As fast as the first link takes it.
    fn saturating(&self) -> Result<Pace, String> {
        let Some(rates) = self.rates.clone() else {
            let (flow, node) = (&self.flow.name, &self.scenario.nodes[self.flow.from].name);
            return Err(format!(
                "flow `{flow}` saturates its first link, so that link of `{node}` needs a rate"
            ));
        };
        Ok(Pace::saturating(rates, self.flow.overhead(0)))
    }

    /// When the application sends: its own span, with the `start` and `stop` events of its flow.
    fn schedule(&self, span: &Span) -> Schedule {
        let end = Instant::ZERO + self.scenario.duration;
        let mut spans = Vec::new();
        let mut started = span.start;
        let mut push =
            |start: Instant, stop: Instant| spans.push((start, span.stop.map_or(stop, |at| at.min(stop))));
        for Event { at, action } in &self.scenario.events {
            match action {
                Action::Start(flow) if *flow == self.number => {
                    started = Some(started.map_or(*at, |start| start.min(*at)));
                }
                Action::Stop(flow) if *flow == self.number => {
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
}
