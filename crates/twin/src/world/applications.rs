//! The applications at both ends of a flow.

use std::ops::Range;

use hopcast_core::{Instant, Machine, Rate, Stream};

use super::WorldError;
use super::flow::FlowApps;
use crate::app::{
    Carriage, Contents, DatagramEcho, DatagramSink, DatagramSource, Ends, FileReceiver, FileSender,
    FrameAssembler, FrameSource, FrameStreamSink, MessageClient, PIECE_HEADER, PORTS, Pace, STAMP, Schedule,
    ShortFlowSink, ShortFlowSource, Sizes, StreamEcho, StreamSink, StreamSource, Transport, UnitStreamSink,
    UnitStreamSource, VideoSender, WholeFileReceiver, WholeFileSender,
};
use crate::meter::SharedMeter;
use crate::scenario::model::{Action, App, Event, Flow, FlowId, NodeId, Program, Scenario, SendSpan};

/// First local port of senders that open many connections: the first one that needs no privilege. The ports of flows
/// are above all of these.
const FIRST_CLIENT_PORT: u16 = 1024;

/// An application; `None` if its node is not built here, or it has none there.
type Application = Option<Box<dyn Machine>>;
/// The sending application, and that of each receiver.
type Applications = (Application, Vec<Application>);

impl FlowApps<'_> {
    /// The sending application, and those that receive.
    pub(super) fn applications(&self, source: Ends) -> Result<Applications, WorldError> {
        let on_stream = self.flow.on_stream();
        // The payload of a full frame: 1,472 bytes where UDP over IPv4 and an MTU of 1,500 are all there is.
        let full = self.plan.longest_frame().saturating_sub(self.plan.overhead(0)) as usize;
        let full = full.max(PIECE_HEADER + 1);
        let meters = || self.meters.clone();
        // An application that is answered has one receiver.
        let meter = || self.meters.of(0);
        Ok(match &self.flow.app {
            App::Cbr { rate, size, arrivals, span } => {
                let pace = rate.map_or_else(|| self.saturating(), |rate| Ok(Pace::constant(rate)))?;
                let pace = pace.spread(arrivals.gaps, self.draws(0)).on_off(arrivals.on_off, self.draws(1));
                let size = size.get() as usize;
                let sender = || DatagramSource::new(source, self.schedule(span), pace, size, None, meters());
                (self.sender(sender), self.receivers(|meter| DatagramSink::new(None, meter)))
            }
            App::Bulk { rate, bytes, span, .. } if on_stream && !self.flow.is_to_several() => {
                self.streams(Contents::pattern(bytes.map(|bytes| bytes.get())), *rate, source, span)
            }
            App::Bulk { rate, bytes, span, .. } => {
                let bytes = bytes.map(|bytes| bytes.get());
                let pace = rate.map_or_else(|| self.saturating(), |rate| Ok(Pace::constant(rate)))?;
                let count = bytes.map(|bytes| DatagramSource::count(bytes, full));
                if on_stream {
                    let sender = || {
                        let schedule = self.schedule(span);
                        let units = DatagramSource::new(source, schedule, pace, full, bytes, meters());
                        UnitStreamSource::new(source, units, full, count)
                    };
                    let receivers = self.receivers(|meter| {
                        UnitStreamSink::new(source, DatagramSink::new(count, meter), full)
                    });
                    return Ok((self.sender(sender), receivers));
                }
                let sender = || {
                    let schedule = self.schedule(span);
                    let sender = DatagramSource::new(source, schedule, pace, full, bytes, meters());
                    if self.plan.is_granted() { sender.granted() } else { sender }
                };
                (self.sender(sender), self.receivers(|meter| DatagramSink::new(count, meter)))
            }
            App::File { contents, span } if on_stream => {
                self.streams(Contents::file(contents.clone()), None, source, span)
            }
            App::File { contents, span } if self.flow.on_messages() => {
                let sender = || WholeFileSender::new(self.schedule(span), contents.clone(), meters());
                (self.sender(sender), self.receivers(|meter| WholeFileReceiver::new(contents.clone(), meter)))
            }
            App::File { contents, span } => {
                let (pace, piece) = (self.saturating()?, full - STAMP);
                let sender = || {
                    let schedule = self.schedule(span);
                    let sender = FileSender::new(source, schedule, pace, contents.clone(), piece, meters());
                    if self.plan.is_granted() { sender.granted() } else { sender }
                };
                let receivers = self.receivers(|meter| FileReceiver::new(contents.clone(), piece, meter));
                (self.sender(sender), receivers)
            }
            App::Messages { size, every, span } if !self.flow.is_echoed() => {
                let (pace, size) = (Pace::every(*every), size.get() as usize);
                let sender = || {
                    let sender = DatagramSource::new(source, self.schedule(span), pace, size, None, meters());
                    if self.flow.on_messages() { sender.of_messages() } else { sender }
                };
                (self.sender(sender), self.receivers(|meter| DatagramSink::new(None, meter)))
            }
            App::Messages { size, every, span } => {
                let size = size.get() as usize;
                let (transport, server) = match on_stream {
                    true => (Transport::Stream, self.receivers(|meter| StreamEcho::new(size, meter))),
                    false => (Transport::Datagrams, self.receivers(DatagramEcho::new)),
                };
                let client =
                    || MessageClient::new(source, self.schedule(span), transport, size, *every, meter());
                (self.sender(client), server)
            }
            App::Video { frames, deadline, span } => {
                let piece = full - PIECE_HEADER;
                let carriage = if on_stream { Carriage::stream() } else { Carriage::Datagrams { piece } };
                let sender = || {
                    let frames = FrameSource::new(frames.clone(), self.draws(0));
                    VideoSender::new(source, self.schedule(span), frames, *deadline, carriage, meters())
                };
                let receivers = match on_stream {
                    true => self.receivers(FrameStreamSink::new),
                    false => self.receivers(|meter| FrameAssembler::new(piece, meter)),
                };
                (self.sender(sender), receivers)
            }
            App::Program { program: Program::Ping(ping), span } => {
                let size = ping.size.get() as usize;
                let client = || {
                    let schedule = self.schedule(span);
                    MessageClient::new(source, schedule, Transport::Echoes, size, ping.every, meter())
                };
                // The host answers, or the echo responder above the stack.
                (self.sender(client), vec![None])
            }
            App::Program { program, .. } => {
                let (flow, program) = (self.flow.name.clone(), program.name());
                return Err(WorldError::RealProgram { flow, program });
            }
            App::ShortFlows { size, every, gaps, span } => {
                let sender = || {
                    let pace = Pace::every(*every).spread(*gaps, self.draws(0));
                    let sizes = Sizes { law: *size, random: self.draws(1) };
                    let (schedule, ports) = (self.schedule(span), self.plan.spec.client_ports.clone());
                    ShortFlowSource::new(source, schedule, pace, sizes, ports, meter())
                };
                (self.sender(sender), self.receivers(ShortFlowSink::new))
            }
        })
    }

    /// A random stream of the application, by its purpose.
    fn draws(&self, purpose: u64) -> Stream {
        self.seed.stream(&["app", &self.flow.name], purpose)
    }

    /// The sending application, if its node is built.
    fn sender<M: Machine + 'static>(&self, make: impl FnOnce() -> M) -> Application {
        self.built.contains(&self.flow.from).then(|| Box::new(make()) as Box<dyn Machine>)
    }

    /// The application of each receiver whose node is built, with its meter.
    fn receivers<M: Machine + 'static>(&self, make: impl Fn(SharedMeter) -> M) -> Vec<Application> {
        let receiver = |(meter, node): (&SharedMeter, &NodeId)| {
            self.built.contains(node).then(|| Box::new(make(meter.clone())) as Box<dyn Machine>)
        };
        self.meters.iter().zip(&self.flow.to).map(receiver).collect()
    }

    fn streams(&self, contents: Contents, rate: Option<Rate>, source: Ends, span: &SendSpan) -> Applications {
        let sinks = self.receivers(|meter| StreamSink::new(contents.clone(), meter));
        let source =
            || StreamSource::new(source, self.schedule(span), contents.clone(), rate, self.meters.of(0));
        (self.sender(source), sinks)
    }

    /// The pace at the rate of the first link.
    fn saturating(&self) -> Result<Pace, WorldError> {
        let Some(rates) = self.rates.clone() else {
            let (flow, node) = (self.flow.name.clone(), self.scenario.nodes[self.flow.from].name.clone());
            return Err(WorldError::NoRate { flow, node });
        };
        Ok(Pace::saturating(rates, self.plan.overhead(0)))
    }

    /// The schedule by which the application sends: its own span, with the `start` and `stop` events of its flow.
    fn schedule(&self, span: &SendSpan) -> Schedule {
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
                Action::Start(_)
                | Action::Stop(_)
                | Action::Link { .. }
                | Action::Service { .. }
                | Action::Restart(_)
                | Action::Join { .. }
                | Action::Leave { .. } => {}
            }
        }
        if let Some(start) = started {
            push(start, end);
        }
        Schedule::new(spans.into_iter().map(|(start, stop)| (start, stop.min(end))))
    }
}

/// The local ports of a sender that opens many connections at a time; empty for one that opens a single one.
pub(super) fn client_ports(scenario: &Scenario, number: FlowId) -> Range<u16> {
    let own = &scenario.flows[number];
    let opens_many = |flow: &&Flow| matches!(flow.app, App::ShortFlows { .. }) && flow.from == own.from;
    if !opens_many(&own) {
        return 0..0;
    }
    let many = scenario.flows[..number].iter().filter(opens_many).count() as u16;
    let first = FIRST_CLIENT_PORT + many * PORTS;
    first..first + PORTS
}
