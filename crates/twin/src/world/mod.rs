//! The virtual-time world: a deterministic event engine over link models and nodes.
//!
//! A world is built from a [`Scenario`] and runs on one thread. Nothing in it reads a clock or draws ambient
//! randomness, and every order is defined: simultaneous actors are in the order of their numbers (the script, then
//! links, then nodes, each in the order of the file), and items that are handed over at one instant pass through one
//! first-in first-out queue. The same scenario, seed and repeat therefore give the same bytes.
//!
//! The same flows run on real hosts: a [`NodeInstance`] is the machines of a flow on one node there.

mod agenda;
mod applications;
mod build;
mod error;
mod flow;
mod flow_routes;
mod instance;
mod places;
mod recording;
mod route_changes;
mod script;
mod snapshot;
mod tables;

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use hopcast_core::{Duration, Frame, FrameStatus, Instant, Item, Machine, Port, Slot};
use hopcast_link::{Attachment, Change, Counters, Event, Link};
use hopcast_stack::PlacedMachine;
use hopcast_stack::VirtualNode;
use hopcast_stack::flow::Join;
use hopcast_stack::group::Shown;
use hopcast_stack::network::{GlobalRoutes, Hop, MeshNode};
use hopcast_stack::service::{ORIGINATORS, StatusTable};

use crate::capture::{InterfaceId, PcapngWriter};
use crate::meter::Meters;
use crate::monitor::Monitor;
use crate::observed::{Observed, ObservedFlow, ObservedLink};
use crate::results::{FlowRoute, ServiceTable};
use crate::scenario::model::{Action, Flow, LinkId, NodeId, Scenario};
use agenda::Agenda;
use recording::Recording;
use script::{Script, Step};
use tables::Tables;

pub(crate) use tables::limit_tables;

pub use error::WorldError;
pub use hopcast_stack::network::directions;
pub use instance::{InstanceReport, NodeInstance};
pub use places::{known_network, log_interfaces, log_names};
pub use snapshot::{FlowState, LinkState, NodeState, ReceiverState, Snapshot};

/// A scenario that is being run in virtual time.
pub struct World {
    scenario: Arc<Scenario>,
    now: Instant,
    agenda: Agenda,
    script: Script,
    links: Vec<Wired>,
    nodes: Vec<VirtualNode>,
    routes: Rc<RefCell<GlobalRoutes>>,
    /// The services of each node that find its routes.
    route_finders: BTreeMap<NodeId, Vec<Slot>>,
    flows: Vec<RunningFlow>,
    /// Work that remains to be done at this instant.
    work: VecDeque<Work>,
    capture: Option<PcapngWriter>,
    recording: Option<Recording>,
    opened: Vec<Vec<Counters>>,
    closed: Vec<Vec<Counters>>,
    /// What had been sent when the window opened and when it closed.
    sent: [SentSoFar; 2],
    /// The transfer whose completion is measured.
    transfer: Option<Transfer>,
    samples: Vec<LinkSamples>,
    /// For each moment of the maps of ships, and each radio link, the routes of flows.
    flow_routes: Vec<Vec<Vec<FlowRoute>>>,
}

/// A flow of bounded size that is the run's only one.
enum Transfer {
    UnderWay {
        /// Number of receivers, from the first in the file, that have all of it.
        complete: usize,
    },
    Over {
        /// What had been sent when the last receiver had it.
        sent: SentSoFar,
    },
}

/// Bytes of frames sent on all links, each counted once where it was sent.
#[derive(Clone, Debug, Default)]
struct SentSoFar {
    /// By all nodes.
    all: u64,
    /// By each node that a flow is from.
    by_sender: BTreeMap<NodeId, u64>,
}

impl SentSoFar {
    /// The bytes that all nodes, or one that a flow is from, have sent.
    fn of(&self, sender: Option<NodeId>) -> u64 {
        sender.map_or(self.all, |node| self.by_sender.get(&node).copied().unwrap_or(0))
    }
}

struct Wired {
    model: Box<dyn Link>,
    /// The node and interface of each attachment.
    ends: Vec<(NodeId, u32)>,
    /// The interface of each attachment in the capture; `None` if it is not captured.
    captured: Vec<Option<InterfaceId>>,
}

/// A flow's machines and meters.
struct RunningFlow {
    meters: Meters,
    /// Its applications and layers, by the layer's name, and its relays, by the node's.
    machines: Vec<PlacedMachine>,
    /// The joins and leaves of its receivers.
    joins: Vec<Join>,
    /// How the deliveries of its senders serve the members.
    shown: Vec<Shown>,
    /// Maximum length of a frame that fits its route, in bytes.
    frame: u64,
}

/// The lines of what deliveries say.
fn lines(shown: &[Shown]) -> Vec<String> {
    shown.iter().flat_map(|shown| shown().lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}

enum Work {
    /// Poll a link.
    Link(LinkId),
    /// Hand a frame to a node.
    Deliver(NodeId, u32, Frame),
    /// Tell a node that the link of an interface has another MTU.
    Mtu(NodeId, u32, u32),
    /// Tell a node the outcome of a frame that it sent.
    Status(NodeId, u32, FrameStatus),
}

/// Traffic of the directions of a link in each step of the time series, in either world.
pub struct LinkSamples {
    last: Vec<Counters>,
    /// Number of steps so far.
    count: usize,
    /// Bytes sent, frames lost and frames delivered in each step, by direction; empty until it carries something.
    steps: Vec<Vec<[u64; 3]>>,
}

impl LinkSamples {
    /// No samples yet of a link with `ends` ends.
    pub fn new(ends: usize) -> Self {
        let directions = directions(ends).count();
        Self { last: vec![Counters::default(); directions], count: 0, steps: vec![Vec::new(); directions] }
    }

    /// Ends a step, with these figures of each direction, in order.
    pub fn sample(&mut self, figures: impl IntoIterator<Item = Counters>) {
        for ((last, steps), counters) in self.last.iter_mut().zip(&mut self.steps).zip(figures) {
            let carried = counters - std::mem::replace(last, counters);
            let step = [carried.sent_bytes, carried.lost_packets, carried.delivered_packets];
            if steps.is_empty() && step == [0; 3] {
                continue;
            }
            // All earlier steps had no traffic.
            steps.resize(self.count, [0; 3]);
            steps.push(step);
        }
        self.count += 1;
    }

    /// Bytes sent, frames lost and frames delivered in each step, by direction; empty if it carried nothing.
    pub fn steps(&self) -> &[Vec<[u64; 3]>] {
        &self.steps
    }
}

impl World {
    /// Number of completed link transmissions, lost ones included.
    pub fn packet_hops(&mut self) -> u64 {
        let now = self.now;
        let each = |link: &mut Wired| -> u64 {
            let pairs = directions(link.ends.len());
            let figures = pairs.map(|(from, to)| link.model.counters(now, from, to));
            figures.map(|c| c.delivered_packets + c.lost_packets).sum()
        };
        self.links.iter_mut().map(each).sum()
    }

    /// Number of frames that nodes have finished sending, each counted once, whatever the number of stations of a
    /// medium or switch that it was for.
    pub fn transmissions(&mut self) -> u64 {
        let now = self.now;
        let of_link = |Wired { model, ends, .. }: &mut Wired| -> u64 {
            (0..ends.len()).map(|from| model.sender_counters(now, from).sent_packets).sum()
        };
        self.links.iter_mut().map(of_link).sum()
    }

    /// Runs until `end`, and reports the progress to `monitor`; false if the monitor was cancelled.
    pub fn run_until(&mut self, end: Instant, monitor: &Monitor) -> bool {
        self.go(end, monitor, |span| monitor.advance(span))
    }

    /// Runs on until `end`, while data under way arrives; the monitor does not count this time.
    pub(crate) fn drain_until(&mut self, end: Instant, monitor: &Monitor) -> bool {
        self.go(end, monitor, |_| ())
    }

    fn go(&mut self, end: Instant, monitor: &Monitor, advance: impl Fn(Duration)) -> bool {
        let mut events = 0u32;
        let mut reported = self.now;
        while let Some((at, actor)) = self.agenda.next() {
            if at > end {
                break;
            }
            // A machine with a deadline in the past is woken now; time does not run backwards.
            self.now = self.now.max(at);
            self.step(actor);
            events = events.wrapping_add(1);
            if events.is_multiple_of(8192) {
                advance(self.now.since(reported));
                reported = self.now;
                if monitor.is_cancelled() {
                    return false;
                }
            }
        }
        self.now = self.now.max(end);
        advance(self.now.since(reported));
        true
    }

    fn step(&mut self, actor: usize) {
        let now = self.now;
        match actor.checked_sub(1) {
            None => {
                while let Some(step) = self.script.next(now) {
                    self.perform(step);
                }
                self.agenda.set(0, self.script.deadline());
            }
            Some(index) if index < self.links.len() => {
                self.links[index].model.wake(now);
                self.drain_link(index);
            }
            Some(index) => self.wake_node(index - self.links.len()),
        }
        self.settle();
        self.look_at_transfer();
    }

    /// Notes what was sent by the instant at which the last receiver of a transfer has it.
    fn look_at_transfer(&mut self) {
        let Some(Transfer::UnderWay { complete }) = &mut self.transfer else { return };
        let meters = self.flows[0].meters.iter();
        let receivers = meters.len();
        *complete += meters.skip(*complete).take_while(|meter| meter.borrow().completed.is_some()).count();
        if *complete == receivers {
            self.transfer = Some(Transfer::Over { sent: self.sent_so_far() });
        }
    }

    /// Does all work of this instant.
    fn settle(&mut self) {
        while let Some(work) = self.work.pop_front() {
            match work {
                Work::Link(link) => self.drain_link(link),
                Work::Deliver(node, interface, frame) => self.hand(node, interface, Item::Frame(frame)),
                Work::Mtu(node, interface, mtu) => self.hand(node, interface, Item::Mtu(mtu)),
                Work::Status(node, interface, status) => {
                    self.hand(node, interface, Item::FrameStatus(status));
                }
            }
        }
    }

    /// Hands an item to a node at one of its interfaces.
    fn hand(&mut self, node: NodeId, interface: u32, item: Item) {
        let VirtualNode { assembly, attachments, .. } = &mut self.nodes[node];
        assembly.handle_into(
            self.now,
            Port::Below(interface),
            item,
            &mut offering(self.now, attachments, &mut self.links, &mut self.work),
        );
        self.schedule_node(node);
    }

    /// Wakes the machines of a node that are due.
    fn wake_node(&mut self, node: NodeId) {
        let VirtualNode { assembly, attachments, .. } = &mut self.nodes[node];
        assembly.wake_into(self.now, &mut offering(self.now, attachments, &mut self.links, &mut self.work));
        self.schedule_node(node);
    }

    /// The time that it has come to.
    pub(crate) fn now(&self) -> Instant {
        self.now
    }

    /// Wakes one machine of a node from outside, and does all work of this instant.
    pub(crate) fn wake_from_outside(&mut self, node: NodeId, slot: Slot) {
        self.wake_machine(node, slot);
        self.settle();
    }

    /// Wakes one machine of a node.
    fn wake_machine(&mut self, node: NodeId, slot: Slot) {
        let VirtualNode { assembly, attachments, .. } = &mut self.nodes[node];
        assembly.wake_machine_into(
            self.now,
            slot,
            &mut offering(self.now, attachments, &mut self.links, &mut self.work),
        );
        self.schedule_node(node);
    }

    fn schedule_node(&mut self, node: NodeId) {
        self.agenda.set(1 + self.links.len() + node, self.nodes[node].assembly.deadline());
    }

    fn drain_link(&mut self, link: LinkId) {
        let wired = &mut self.links[link];
        while let Some(event) = wired.model.poll(self.now) {
            if self.capture.is_some() {
                record(&mut self.capture, wired, self.now, &event, || self.scenario.links[link].name.clone());
            }
            if let Some(recording) = &self.recording {
                recording.record(link, self.now, &event);
            }
            match event {
                Event::Delivered { to, frame, overheard, reception, .. } => {
                    let (node, interface) = wired.ends[to];
                    let frame = Frame { bytes: frame, overheard, reception };
                    self.work.push_back(Work::Deliver(node, interface, frame));
                }
                Event::Status { from, status } => {
                    let (node, interface) = wired.ends[from];
                    self.work.push_back(Work::Status(node, interface, status));
                }
                Event::Sent { .. } | Event::Dropped { .. } => {}
            }
        }
        if let Some(recording) = &self.recording {
            recording.record_drops(link, &mut *wired.model);
        }
        self.agenda.set(1 + link, wired.model.deadline());
    }

    fn perform(&mut self, step: Step) {
        match step {
            Step::Event(number) => {
                let scenario = self.scenario.clone();
                // Starting and stopping are in the applications' and services' schedules from the beginning.
                if let Action::Link { link, from, change } = &scenario.events[number].action {
                    self.change(*link, *from, change);
                }
                if scenario.routing.convergence == Duration::ZERO {
                    self.change_routes(number);
                }
            }
            Step::Routes(number) => self.change_routes(number),
            Step::Join(Join { node, slot, .. }) => self.wake_machine(node, slot),
            Step::Open => (self.opened, self.sent[0]) = (self.read_counters(), self.sent_so_far()),
            Step::Close => (self.closed, self.sent[1]) = (self.read_counters(), self.sent_so_far()),
            Step::Routings => self.flow_routes.push(self.routes_of_flows()),
            Step::Sample => self.sample(),
        }
    }

    fn change_routes(&mut self, number: usize) {
        let scenario = self.scenario.clone();
        let event = &scenario.events[number];
        route_changes::change_routes(&mut self.routes.borrow_mut(), event, &scenario.services);
        if let Action::Link { link, change: Change::Down | Change::Up, .. } = &event.action {
            self.wake_routers_on(*link);
        }
    }

    /// Wakes the services of the nodes on a link that find routes.
    fn wake_routers_on(&mut self, link: LinkId) {
        if self.route_finders.is_empty() {
            return;
        }
        let scenario = self.scenario.clone();
        for &node in &scenario.links[link].ends {
            for slot in self.route_finders.get(&node).cloned().unwrap_or_default() {
                self.wake_machine(node, slot);
            }
        }
    }

    fn change(&mut self, link: LinkId, from: Option<Attachment>, change: &Change) {
        self.links[link].model.change(self.now, from, change);
        self.work.push_back(Work::Link(link));
        if let Change::Mtu(mtu) = change {
            let ends = self.links[link].ends.iter().enumerate();
            let ends = ends.filter(|(attachment, _)| from.is_none_or(|from| from == *attachment));
            self.work.extend(ends.map(|(_, &(node, interface))| Work::Mtu(node, interface, *mtu)));
        }
    }

    fn read_counters(&mut self) -> Vec<Vec<Counters>> {
        let now = self.now;
        let read = |link: &mut Wired| {
            directions(link.ends.len()).map(|(from, to)| link.model.counters(now, from, to)).collect()
        };
        self.links.iter_mut().map(read).collect()
    }

    fn sent_so_far(&mut self) -> SentSoFar {
        let by_sender = self.scenario.flows.iter().map(|flow| (flow.from, 0)).collect();
        let mut sent = SentSoFar { all: 0, by_sender };
        for Wired { model, ends, .. } in &mut self.links {
            for (from, (node, _)) in ends.iter().enumerate() {
                let bytes = model.sender_counters(self.now, from).sent_bytes;
                sent.all += bytes;
                if let Some(own) = sent.by_sender.get_mut(node) {
                    *own += bytes;
                }
            }
        }
        sent
    }

    /// Bytes of frames that all nodes, or one that a flow is from, sent in the measurement window.
    fn sent_in_window(&self, sender: Option<NodeId>) -> u64 {
        self.sent[1].of(sender).saturating_sub(self.sent[0].of(sender))
    }

    /// The part of that until the last receiver had all of the run's only flow.
    fn sent_in_transfer(&self, sender: Option<NodeId>) -> Option<u64> {
        let Some(Transfer::Over { sent }) = &self.transfer else { return None };
        Some(sent.of(sender).min(self.sent[1].of(sender)).saturating_sub(self.sent[0].of(sender)))
    }

    fn sample(&mut self) {
        let now = self.now;
        for (wired, samples) in self.links.iter_mut().zip(&mut self.samples) {
            let pairs = directions(wired.ends.len());
            samples.sample(pairs.map(|(from, to)| wired.model.counters(now, from, to)));
        }
    }

    /// The observations of the run, after its end; the samples of links, which may be most of them, are moved.
    pub(crate) fn observe(mut self) -> Observed {
        let samples = std::mem::take(&mut self.samples);
        let link = |(number, samples): (usize, LinkSamples)| {
            let (opened, closed) = (&self.opened[number], &self.closed[number]);
            let figures = opened.iter().zip(closed).map(|(&opened, &closed)| closed - opened);
            let window = directions(self.links[number].ends.len()).zip(figures).collect();
            ObservedLink { window, steps: samples.steps }
        };
        let flow = |(spec, flow): (&Flow, &RunningFlow)| ObservedFlow {
            meters: flow.meters.iter().map(|meter| meter.borrow().clone()).collect(),
            counters: self.flow_counters(flow),
            delivery: lines(&flow.shown),
            frame: flow.frame,
            sender_bytes: Some(
                self.sent_in_transfer(Some(spec.from))
                    .unwrap_or_else(|| self.sent_in_window(Some(spec.from))),
            ),
        };
        let mut hosts: BTreeMap<String, u64> = BTreeMap::new();
        for node in 0..self.nodes.len() {
            for (counter, value) in self.host_counters(node).into_iter().filter(|&(_, value)| value > 0) {
                *hosts.entry(counter.to_owned()).or_default() += value;
            }
        }
        for node in 0..self.nodes.len() {
            for (counter, value) in self.service_counters(node).into_iter().filter(|&(_, value)| value > 0) {
                *hosts.entry(counter).or_default() += value;
            }
        }
        Observed {
            flows: self.scenario.flows.iter().zip(&self.flows).map(flow).collect(),
            links: samples.into_iter().enumerate().map(link).collect(),
            network_bytes: Some(self.sent_in_window(None)),
            transfer_bytes: self.sent_in_transfer(None),
            hosts,
            tables: self.tables(),
            flow_routes: self.flow_routes.clone(),
        }
    }

    fn flow_counters(&self, flow: &RunningFlow) -> BTreeMap<String, u64> {
        let machines = flow.machines.iter();
        sum_counters(
            machines.map(|placed| (&*placed.name, self.nodes[placed.node].assembly.machine(placed.slot))),
        )
    }

    /// The counters of a node's host.
    pub fn host_counters(&self, node: NodeId) -> BTreeMap<&'static str, u64> {
        let station = &self.nodes[node];
        let mut counters = BTreeMap::new();
        station.assembly.machine(station.host).counters(&mut |counter, value| {
            *counters.entry(counter).or_default() += value;
        });
        counters
    }

    /// The counters of a node's services, each under the service's name before a dot.
    pub fn service_counters(&self, node: NodeId) -> BTreeMap<String, u64> {
        let station = &self.nodes[node];
        let services = station.services.iter();
        sum_counters(services.map(|placed| (&*placed.name, station.assembly.machine(placed.slot))))
    }

    /// The tables of a node's services, each with the place of its service among the node's and its name.
    pub fn service_tables(&self, node: NodeId) -> Vec<(usize, &str, StatusTable)> {
        let VirtualNode { services, statuses, .. } = &self.nodes[node];
        let mut all = Vec::new();
        for (place, (placed, status)) in services.iter().zip(statuses).enumerate() {
            all.extend(status.tables().into_iter().map(|table| (place, &*placed.name, table)));
        }
        all
    }

    /// The table of the originators that a node of a mesh knows.
    pub(crate) fn originators(&self, at: &MeshNode) -> Option<StatusTable> {
        let mut tables = self.service_tables(at.node).into_iter();
        let (.., table) =
            tables.find(|(place, _, table)| *place == at.service && table.name == ORIGINATORS)?;
        Some(table)
    }

    /// The tables of all nodes' services, as the document has them.
    fn tables(&self) -> Vec<ServiceTable> {
        let mut tables = Tables::new(&self.scenario);
        for node in 0..self.nodes.len() {
            for (_, service, table) in self.service_tables(node) {
                tables.add(node, service, &table);
            }
        }
        tables.finish()
    }

    /// Ends the capture, if there is one; an error if not all of it could be written.
    pub(crate) fn finish_capture(&mut self) -> io::Result<()> {
        self.capture.take().map_or(Ok(()), PcapngWriter::finish)
    }
}

/// Takes the items that leave a node: offers frames to the links of its interfaces, and notes that these links are to
/// be polled.
fn offering<'a>(
    now: Instant,
    attachments: &'a [Hop],
    links: &'a mut [Wired],
    work: &'a mut VecDeque<Work>,
) -> impl FnMut(Port, Item) + 'a {
    move |port, item| {
        let Port::Below(interface) = port else { return };
        let Some(&Hop { link, attachment: from }) = attachments.get(interface as usize) else { return };
        let model = &mut links[link].model;
        match item {
            Item::Frame(frame) => model.offer(now, from, frame.bytes),
            Item::ReportFrameStatus => return model.report_status(from),
            _ => return,
        }
        // Several frames for one link need one poll.
        if !matches!(work.back(), Some(&Work::Link(last)) if last == link) {
            work.push_back(Work::Link(link));
        }
    }
}

/// The counters of machines, each under its name before a dot, summed over machines of one name.
fn sum_counters<'a>(machines: impl Iterator<Item = (&'a str, &'a dyn Machine)>) -> BTreeMap<String, u64> {
    let mut counters = BTreeMap::new();
    for (name, machine) in machines {
        machine.counters(&mut |counter, value| {
            let key = if name.is_empty() { counter.to_owned() } else { format!("{name}.{counter}") };
            *counters.entry(key).or_default() += value;
        });
    }
    counters
}

/// Writes one event of a link into the capture.
fn record(
    capture: &mut Option<PcapngWriter>,
    wired: &Wired,
    now: Instant,
    event: &Event,
    name: impl FnOnce() -> String,
) {
    let Some(capture) = capture else { return };
    match event {
        Event::Sent { from, frame } => {
            if let Some(interface) = wired.captured[*from] {
                capture.sent(now, interface, frame);
            }
        }
        Event::Delivered { to, frame, .. } => {
            if let Some(interface) = wired.captured[*to] {
                capture.received(now, interface, frame);
            }
        }
        Event::Dropped { from, to, frame, reason } => {
            if let Some(interface) = wired.captured[*from] {
                let name = name();
                let comment = match to {
                    Some(_) => format!("dropped on {name}: {reason}"),
                    None => format!("dropped before {name}: {reason}"),
                };
                capture.dropped(now, interface, frame, comment);
            }
        }
        Event::Status { .. } => {}
    }
}
