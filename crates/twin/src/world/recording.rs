//! Recording what happens to each packet: what links and machines do with it, into a log.
//!
//! Links say what they sent, delivered and dropped. Of machines an [`Observer`] sees what they receive and hand over; a
//! machine that hands nothing on that is like what it received has the reason in its counters: those that rose are read
//! then, and their names are the reasons.

use std::cell::RefCell;
use std::rc::Rc;

use hopcast_core::{Buffer, Instant, Item, Machine, Observer, Port, Slot, StreamItem};
use hopcast_link::{Event, Link};
use hopcast_stack::PlacedMachine;
use hopcast_stack::network::NetworkPlan;
use hopcast_trace::content::Layers;
use hopcast_trace::log::{Content, ContentId, HOST, Layer, MAX_STORED, Place, RELAY};
use hopcast_trace::outcome::{Outcome, outcome};
use hopcast_trace::{Recorder, log};

use super::World;
use super::places::{log_interfaces, log_names};

/// A log that links and machines write to.
pub(super) struct Recording {
    recorder: Rc<RefCell<Recorder>>,
    /// The number of the first interface of each link among the log's places.
    interfaces: Vec<u32>,
}

impl World {
    /// Records what happens to each packet, from now on. Called before the run begins.
    pub fn record(&mut self, mut recorder: Recorder) {
        let plan = NetworkPlan::of(self.scenario.network());
        let places = log_interfaces(&self.scenario, &plan);
        let of_link = |link: &Vec<Place>| link.iter().map(|place| recorder.place(place)).min().unwrap_or(0);
        let interfaces = places.iter().map(of_link).collect();
        let machines: Vec<(u32, Vec<bool>)> =
            (0..self.nodes.len()).map(|node| self.machines_of(node, &mut recorder)).collect();
        log_names(&self.scenario, &plan).iter().for_each(|named| recorder.name(named));
        let recorder = Rc::new(RefCell::new(recorder));
        for (node, (first, belongs_to_flow)) in self.nodes.iter_mut().zip(machines) {
            let known = vec![Known::default(); belongs_to_flow.len()];
            let recorder = recorder.clone();
            let observer = NodeObserver { recorder, first, belongs_to_flow, known, arrival: None };
            node.assembly.observe(Box::new(observer));
        }
        for wired in &mut self.links {
            wired.model.keep_drops();
        }
        self.recording = Some(Recording { recorder, interfaces });
    }

    /// Ends the recording, if there is one; says what the log holds.
    ///
    /// # Errors
    /// If not all of it could be written.
    pub fn finish_recording(&mut self) -> std::io::Result<Option<log::Written>> {
        if self.recording.is_none() {
            return Ok(None);
        }
        for link in 0..self.links.len() {
            // What was dropped last may not be known yet.
            self.links[link].model.wake(self.now);
            self.drain_link(link);
        }
        let Some(Recording { recorder, .. }) = self.recording.take() else { return Ok(None) };
        // The observers hold it too, and are not needed any more.
        self.nodes.iter_mut().for_each(|node| node.assembly.unobserve());
        Rc::into_inner(recorder).map(|recorder| recorder.into_inner().finish()).transpose()
    }

    /// Defines the machines of a node; returns the number of the first, and which ones belong to a flow.
    fn machines_of(&self, node: usize, recorder: &mut Recorder) -> (u32, Vec<bool>) {
        let station = &self.nodes[node];
        let place = |name: &str, flow: Option<&str>| Place::Machine {
            node: self.scenario.nodes[node].name.clone(),
            name: name.to_owned(),
            flow: flow.map(ToOwned::to_owned),
        };
        let mut places: Vec<Place> =
            (0..station.assembly.machines()).map(|slot| place(&format!("machine {slot}"), None)).collect();
        places[station.host.index()] = place(HOST, None);
        for PlacedMachine { name, slot, .. } in &station.services {
            places[slot.index()] = place(name, None);
        }
        for (spec, flow) in self.scenario.flows.iter().zip(&self.flows) {
            for machine in flow.machines.iter().filter(|machine| machine.node == node) {
                // A machine between the ends has the node's name.
                let name =
                    if machine.name == self.scenario.nodes[node].name { RELAY } else { &*machine.name };
                places[machine.slot.index()] = place(name, Some(&spec.name));
            }
        }
        let numbers: Vec<u32> = places.iter().map(|place| recorder.place(place)).collect();
        let belongs = places.iter().map(|place| matches!(place, Place::Machine { flow: Some(_), .. }));
        (numbers.first().copied().unwrap_or(0), belongs.collect())
    }
}

impl Recording {
    /// Records what a link has dropped since it was last asked.
    pub(super) fn record_drops(&self, link: usize, model: &mut dyn Link) {
        while let Some((at, event)) = model.take_drop() {
            self.record(link, at, &event);
        }
    }

    /// Records an event of a link.
    pub(super) fn record(&self, link: usize, now: Instant, event: &Event) {
        let mut recorder = self.recorder.borrow_mut();
        let place = |attachment: usize| self.interfaces[link] + attachment as u32;
        match event {
            Event::Sent { from, frame } => recorder.sent(now, place(*from), frame),
            Event::Delivered { from, to, frame, .. } => {
                recorder.delivered(now, place(*to), place(*from), frame);
            }
            Event::Dropped { from, to, frame, reason } => {
                recorder.dropped(now, place(*from), to.map(place), frame, reason.words());
            }
            Event::Status { .. } => {}
        }
    }
}

/// Number of last bytes by which two items are taken for copies of one packet.
const TAIL: usize = 16;

/// Records what the machines of a node do.
struct NodeObserver {
    recorder: Rc<RefCell<Recorder>>,
    /// The number of the node's first machine among the log's places.
    first: u32,
    belongs_to_flow: Vec<bool>,
    /// The counters of each machine when they were last read.
    known: Vec<Known>,
    /// What a machine is being given.
    arrival: Option<Arrival>,
}

/// An item with bytes that a machine is being given.
struct Arrival {
    port: Port,
    content: ContentId,
    length: usize,
    tail: [u8; TAIL],
    /// Whether the machine has handed on something like it.
    goes_on: bool,
}

impl Observer for NodeObserver {
    fn arriving(&mut self, now: Instant, slot: Slot, port: Port, item: &mut Item) {
        let place = self.first + slot.index() as u32;
        self.arrival = bytes_of(item).map(|(layer, bytes)| {
            let content = self.recorder.borrow_mut().arrived(now, place, port, layer, &*bytes);
            bytes.set_mark(content.mark(layer));
            Arrival { port, content, length: bytes.len(), tail: tail_of(bytes), goes_on: false }
        });
    }

    fn handed_over(&mut self, now: Instant, slot: Slot, port: Port, item: &mut Item) {
        let Some((layer, bytes)) = bytes_of(item) else { return };
        let place = self.first + slot.index() as u32;
        let mut recorder = self.recorder.borrow_mut();
        let cause = self.arrival.as_mut().map(|arrival| {
            arrival.goes_on |= arrival.tail == tail_of(bytes)
                && (port != arrival.port || is_relayed(recorder.last_arrival(), layer, bytes))
                && !(bytes.len() > arrival.length && is_error(layer, bytes));
            arrival.content
        });
        let content = recorder.handed_on(now, place, port, (layer, &*bytes), cause);
        bytes.set_mark(content.mark(layer));
    }

    fn drained(&mut self, now: Instant, slot: Slot, machine: &dyn Machine) {
        let arrival = self.arrival.take();
        let slot = slot.index();
        let place = self.first + slot as u32;
        // Read each time, or the next arrival would be blamed for what rose now.
        let risen = self.known[slot].risen(machine);
        let reason = risen.map(|(_, counter)| counter);
        match arrival {
            Some(Arrival { goes_on: true, port, content, .. }) => {
                // One copy may be dropped where another goes on.
                if let Some((Outcome::Dropped, reason)) = risen {
                    self.recorder.borrow_mut().ended(now, place, Some((port, content)), Some(reason));
                }
            }
            Some(Arrival { port, content, .. }) => {
                self.recorder.borrow_mut().ended(now, place, Some((port, content)), reason);
            }
            // What a host or a service has held back may be dropped by its timer.
            None if !self.belongs_to_flow[slot] => {
                if let Some(reason) = reason {
                    self.recorder.borrow_mut().ended(now, place, None, Some(reason));
                }
            }
            None => {}
        }
    }
}

/// The bytes that an item carries.
fn bytes_of(item: &mut Item) -> Option<(Layer, &mut Buffer)> {
    match item {
        Item::Frame(frame) => Some((Layer::Frame, &mut frame.bytes)),
        Item::Packet(packet) => Some((Layer::Packet, packet)),
        Item::Transit(transit) => Some((Layer::Packet, &mut transit.packet)),
        Item::Datagram(datagram) => Some((Layer::Payload, &mut datagram.payload)),
        Item::Message(message) => Some((Layer::Payload, &mut message.payload)),
        Item::Stream(_, StreamItem::Data(data)) => Some((Layer::Payload, data)),
        Item::Stream(..)
        | Item::ReportFrameStatus
        | Item::FrameStatus(_)
        | Item::Mtu(_)
        | Item::Membership(_)
        | Item::Credit(_) => None,
    }
}

/// Whether an item is an ICMP error: it quotes what a machine has dropped, and may end with the same bytes.
fn is_error(layer: Layer, bytes: &[u8]) -> bool {
    let length = bytes.len() as u32;
    Layers::of(Content { layer, length, bytes: &bytes[..bytes.len().min(MAX_STORED)] }).is_icmp_error()
}

/// Whether an item that leaves where it arrived is relayed, as in a radio network, and no answer to it.
fn is_relayed(arrival: Content<'_>, layer: Layer, bytes: &[u8]) -> bool {
    let destination = |content| Layers::of(content).ip.map(|ip| ip.destination);
    let before = destination(arrival);
    let length = bytes.len() as u32;
    let content = Content { layer, length, bytes: &bytes[..bytes.len().min(MAX_STORED)] };
    before.is_some() && before == destination(content)
}

/// The last bytes of an item; zeros in front of a shorter one.
fn tail_of(bytes: &[u8]) -> [u8; TAIL] {
    match bytes.last_chunk() {
        Some(tail) => *tail,
        None => {
            let mut tail = [0; TAIL];
            tail[TAIL - bytes.len()..].copy_from_slice(bytes);
            tail
        }
    }
}

/// The counters of a machine, as they were last read.
#[derive(Clone, Default)]
struct Known {
    discards: u64,
    counters: Vec<Counter>,
}

#[derive(Clone, Copy)]
struct Counter {
    name: &'static str,
    value: u64,
    /// Meaning of its rise for a packet.
    outcome: Option<Outcome>,
}

impl Known {
    /// A counter that has risen and says what became of a packet, a drop before anything else.
    fn risen(&mut self, machine: &dyn Machine) -> Option<(Outcome, &'static str)> {
        match machine.discards() {
            Some(discards) if discards == self.discards => {
                debug_assert_eq!(self.read(machine), None, "a counter that is not among the discards");
                None
            }
            discards => {
                self.discards = discards.unwrap_or(0);
                self.read(machine)
            }
        }
    }

    fn read(&mut self, machine: &dyn Machine) -> Option<(Outcome, &'static str)> {
        let mut found: Option<(Outcome, &'static str)> = None;
        let mut place = 0;
        machine.counters(&mut |name, value| {
            let new = || Counter { name, value, outcome: outcome(name).map(|(outcome, _)| outcome) };
            let before = match self.counters.get_mut(place) {
                // Distributions have counters that come and go.
                Some(known) if !std::ptr::eq(known.name, name) && known.name != name => {
                    *known = new();
                    value
                }
                Some(known) => std::mem::replace(&mut known.value, value),
                None => {
                    self.counters.push(new());
                    0
                }
            };
            place += 1;
            if before < value
                && let Some(outcome) = self.counters[place - 1].outcome
                && (found.is_none() || outcome == Outcome::Dropped)
            {
                found = Some((outcome, name));
            }
        });
        found
    }
}
