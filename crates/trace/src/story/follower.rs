//! The steps of chosen packets, each linked to the one before it.

use std::collections::BTreeMap;

use hopcast_core::Port;

use super::chosen::Chosen;
use super::datagrams::{Datagrams, Found};
use super::latest::Latest;
use super::quick::QuickMap;
use super::{Packet, Relation, Step};
use crate::content::{Layers, carries};
use crate::fragment::Fragment;
use crate::log::{Event, EventKind, Log, Place};

/// The number of each place's node.
fn numbered_nodes(log: &Log) -> Vec<u32> {
    let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
    let number = |place| {
        let next = numbers.len() as u32;
        *numbers.entry(Place::node(place)).or_insert(next)
    };
    log.places().iter().map(number).collect()
}

/// The number of the link of each place; [`NO_LINK`] where the log does not say it, as captures do not.
fn numbered_links(log: &Log) -> Vec<u32> {
    let mut known: BTreeMap<&str, u32> = BTreeMap::new();
    let mut numbers = Vec::with_capacity(log.places().len());
    for place in log.places() {
        let link = match place {
            Place::Interface { link, .. } if !link.is_empty() => Some(link.as_str()),
            Place::Interface { .. } | Place::Machine { .. } => None,
        };
        let next = known.len() as u32;
        numbers.push(link.map_or(NO_LINK, |link| *known.entry(link).or_insert(next)));
    }
    numbers
}

/// The number of a link that is not known. Captures may have gaps, so each step that they have is there too.
const NO_LINK: u32 = u32::MAX;

/// A position between two events.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum At {
    /// Inside a node.
    Node(u32),
    /// In the queue in front of the link, at an interface.
    Queue(u32),
    /// On the link, sent by an interface.
    Sent(u32),
    /// On the link of this number, whoever sent it.
    Link(u32),
}

/// Links the events of chosen packets to the steps before them, in one pass.
pub(super) struct Follower<'l> {
    log: &'l Log,
    nodes: Vec<u32>,
    links: Vec<u32>,
    /// Whether there is more than captures.
    pub(super) has_machines: bool,
    pub(super) chosen: Chosen<'l>,
    pub(super) steps: Vec<Step>,
    pub(super) packets: Vec<Packet>,
    /// The packet of each step.
    packet_of: Vec<usize>,
    /// The latest step of a content at a position.
    at: Latest,
    /// The latest step of a key at a position, where bytes change unseen: in captures.
    by_key: QuickMap<(At, u64), usize>,
    /// The step at which a machine held a packet back.
    held: QuickMap<(u32, u64), usize>,
    /// Datagrams and their fragments in each node.
    datagrams: Datagrams,
    /// The step at which a packet went into a machine of a flow, and became part of something else.
    coded: QuickMap<(&'l str, u64), usize>,
}

impl<'l> Follower<'l> {
    /// A follower of these contents that has seen no event yet.
    pub(super) fn new(log: &'l Log, chosen: Chosen<'l>) -> Self {
        Self {
            log,
            nodes: numbered_nodes(log),
            links: numbered_links(log),
            has_machines: log.places().iter().any(|place| matches!(place, Place::Machine { .. })),
            chosen,
            steps: Vec::new(),
            packets: Vec::new(),
            packet_of: Vec::new(),
            at: Latest::new(log.contents()),
            by_key: QuickMap::default(),
            held: QuickMap::default(),
            datagrams: Datagrams::default(),
            coded: QuickMap::default(),
        }
    }

    pub(super) fn take(&mut self, mut event: Event) {
        let node = At::Node(self.nodes[event.place as usize]);
        let (queue, sent) = (At::Queue(event.place), At::Sent(event.place));
        let link = At::Link(self.links[event.place as usize]);
        if let EventKind::HandedOn { cause, .. } = &mut event.kind {
            *cause = self.chosen.first_number(*cause);
        }
        if !self.chosen.has(event.content) && !self.is_carrier(node, event) {
            return;
        }
        event.content = self.chosen.first_number(event.content);
        let content = event.content;
        match event.kind {
            EventKind::HandedOn { cause, .. } => self.handed_on(event, node, cause),
            EventKind::Offered => {
                let before = self.find(node, content);
                let step = self.add_of_datagram(event, node, before);
                self.note(queue, content, step);
            }
            EventKind::Sent => {
                let before = self.find_exactly(queue, content).or_else(|| self.find(node, content));
                let step = self.add_of_datagram(event, node, before);
                self.note(sent, content, step);
                self.note_on_link(link, content, step);
            }
            EventKind::Delivered { from } => {
                // A log has what was sent only where it was captured too.
                let sender = At::Node(self.nodes[from as usize]);
                let before = self.find(At::Sent(from), content).filter(|_| from != event.place);
                let before = before.or_else(|| self.find(sender, content).filter(|_| self.has_machines));
                let before = before.or_else(|| self.on_link(link, content));
                let is_duplicate = self.is_duplicate(node, &event, before);
                let step = self.add(event, before);
                self.steps[step].is_duplicate = is_duplicate;
                self.note(node, content, step);
                self.note_datagram(node, content, step);
            }
            EventKind::Dropped { to, .. } => {
                let in_queue = self.find_exactly(queue, content).filter(|_| to.is_none());
                // Captures do not say who missed a frame that was sent.
                let is_sent = to.is_some() || !self.has_machines;
                let on_link = in_queue.or_else(|| self.find(sent, content).filter(|_| is_sent));
                let before = on_link.or_else(|| self.find(node, content));
                self.add(event, before);
            }
            EventKind::Ended { .. } => {
                let before = self.find(node, content);
                let step = self.add(event, before);
                for key in self.chosen.keys_of(content).iter() {
                    self.held.insert((event.place, key), step);
                }
                if matches!(event.kind, EventKind::Ended { port: Port::Above(_), .. }) {
                    self.note_coded(event, content, step);
                }
            }
            EventKind::Seen => {
                let here = self.find(link, content).or_else(|| self.find(node, content));
                let before = here.or_else(|| self.on_link(link, content));
                let step = self.add_of_datagram(event, node, before);
                self.note(node, content, step);
                self.note_on_link(link, content, step);
                self.note_datagram(node, content, step);
            }
        }
    }

    fn handed_on(&mut self, event: Event, node: At, cause: u32) {
        let content = event.content;
        let caused = self.at.get(node, cause).filter(|_| cause != 0);
        let coded = self.coded_before(event);
        let is_alike = self.chosen.alike(cause, content);
        let mut caused = caused.filter(|_| is_alike || self.derives(cause, content));
        // What a machine decodes is another packet than the one that it came in, which ends here.
        if let (Some(inside), Some(carrier), false) = (coded, caused, is_alike)
            && self.packet_of[inside] != self.packet_of[carrier]
        {
            self.steps[carrier].decoded = true;
            caused = None;
        }
        let before = caused.map(|before| {
            let relation = if cause == content {
                Relation::Same
            } else if is_alike {
                Relation::Changed
            } else {
                self.note_coded(event, cause, before);
                Relation::Carried
            };
            (before, relation)
        });
        let before = before.or_else(|| {
            let mut keys = self.chosen.keys_of(content).iter();
            let held = keys.find_map(|key| self.held.get(&(event.place, key)));
            match held {
                Some(&before) => Some((before, Relation::HeldBack)),
                None => coded.map(|before| (before, Relation::Decoded)),
            }
        });
        let step = self.add(event, before);
        self.note(node, content, step);
    }

    /// The step at which what a machine of a flow hands up went into another one.
    fn coded_before(&self, event: Event) -> Option<usize> {
        let flow = self.log.places()[event.place as usize].flow()?;
        let is_up = matches!(event.kind, EventKind::HandedOn { port: Port::Above(_), .. });
        let mut keys = self.chosen.keys_of(event.content).iter().filter(|_| is_up);
        keys.find_map(|key| self.coded.get(&(flow, key))).copied()
    }

    /// Notes that a content went into a machine of a flow, and goes on as a part of something else.
    fn note_coded(&mut self, event: Event, content: u32, step: usize) {
        if let Some(flow) = self.log.places()[event.place as usize].flow() {
            for key in self.chosen.keys_of(content).iter() {
                self.coded.insert((flow, key), step);
            }
        }
    }

    /// Whether what a machine hands on is what it had received, changed or inside something else.
    fn derives(&self, cause: u32, content: u32) -> bool {
        if self.chosen.alike(cause, content) {
            return true;
        }
        let (Some(one), Some(other)) = (self.log.content(cause), self.log.content(content)) else {
            return false;
        };
        // An ICMP error that quotes a packet does not carry it on.
        carries(other, one) && !Layers::of(other).is_icmp_error() || carries(one, other)
    }

    /// Whether an event is the first of a packet that carries a chosen one; it is followed from now on.
    fn is_carrier(&mut self, node: At, event: Event) -> bool {
        let EventKind::HandedOn { cause, .. } = event.kind else { return false };
        let carries = self.at.get(node, cause).is_some() && self.derives(cause, event.content);
        if carries {
            self.chosen.follow(event.content);
        }
        carries
    }

    /// The latest step of a content at a position, and how the next one relates to it.
    fn find(&self, at: At, content: u32) -> Option<(usize, Relation)> {
        let exactly = self.find_exactly(at, content);
        if exactly.is_some() || self.has_machines {
            return exactly;
        }
        let found = self.chosen.keys_of(content).iter().find_map(|key| self.by_key.get(&(at, key)));
        let found = found.filter(|&&step| !self.is_answer(self.steps[step].event.content, content));
        found.map(|&step| (step, Relation::Changed))
    }

    /// The latest step of a content at a position, with the same bytes.
    fn find_exactly(&self, at: At, content: u32) -> Option<(usize, Relation)> {
        self.at.get(at, content).map(|step| (step, Relation::Same))
    }

    /// Notes a step of what is on a link.
    fn note_on_link(&mut self, link: At, content: u32, step: usize) {
        self.note(link, content, step);
        if link != At::Link(NO_LINK) && !self.has_machines {
            self.note(At::Link(NO_LINK), content, step);
        }
    }

    /// The latest step of a content on a link, or else on any, whoever sent it: captures do not say that.
    fn on_link(&self, link: At, content: u32) -> Option<(usize, Relation)> {
        if self.has_machines {
            return None;
        }
        self.find(link, content).or_else(|| self.find(At::Link(NO_LINK), content))
    }

    /// Whether a content goes back to where another one came from: it may have the same payload, and is no copy.
    fn is_answer(&self, one: u32, other: u32) -> bool {
        let header = |content| self.log.content(content).and_then(|content| Layers::of(content).ip);
        let pair = header(one).zip(header(other));
        pair.is_some_and(|(one, other)| one.source == other.destination && one.destination == other.source)
    }

    /// Adds a step of what leaves a node. What no step is found before may be a fragment of what arrived, or was put
    /// together of fragments that did.
    fn add_of_datagram(&mut self, event: Event, node: At, before: Option<(usize, Relation)>) -> usize {
        let key = self.chosen.keys_of(event.content).datagram;
        if before.is_some() || key == 0 {
            return self.add(event, before);
        }
        let fragment = self.fragment_of(event.content);
        match self.datagrams.find(node, key, fragment) {
            Some(Found::Whole(step)) => self.add(event, Some((step, Relation::Fragment))),
            Some(Found::Fragments(steps)) => {
                steps.iter().for_each(|&step| self.steps[step].is_merged = true);
                self.add(event, steps.last().map(|&step| (step, Relation::Reassembled)))
            }
            // Other fragments that were made here.
            Some(Found::Sibling(step)) => {
                let step = self.add_to(self.packet_of[step], event, None);
                self.note_datagram(node, event.content, step);
                step
            }
            None => {
                let step = self.add(event, None);
                if fragment.is_some() {
                    self.note_datagram(node, event.content, step);
                }
                step
            }
        }
    }

    /// Notes that a datagram, or a fragment of one, is in a node.
    fn note_datagram(&mut self, node: At, content: u32, step: usize) {
        let key = self.chosen.keys_of(content).datagram;
        if key != 0 {
            let has_arrived = !matches!(self.steps[step].event.kind, EventKind::Offered | EventKind::Sent);
            self.datagrams.note(node, key, self.fragment_of(content), has_arrived, step);
        }
    }

    fn fragment_of(&self, content: u32) -> Option<Fragment> {
        self.log.content(content).and_then(|content| Layers::of(content).fragment)
    }

    /// Whether a frame arrives where it has arrived already, though its sender gave it to the link once.
    fn is_duplicate(&self, node: At, event: &Event, before: Option<(usize, Relation)>) -> bool {
        /// Maximum number of steps that are searched. Chosen: those of a queue and a link full of frames.
        const MAX_SOUGHT: usize = 1024;
        let (Some((sent, _)), Some(latest)) = (before, self.at.get(node, event.content)) else {
            return false;
        };
        if self.packet_of[sent] != self.packet_of[latest] {
            return false;
        }
        let latest = self.steps.iter().rev().take(MAX_SOUGHT);
        let like = latest.filter(|step| step.event.content == event.content);
        // What was handed to the link as often as it arrived is no duplicate: the same bytes were sent again.
        let (mut arrived, mut offered) = (0, BTreeMap::<_, usize>::new());
        for step in like {
            let (kind, place) = (step.event.kind, step.event.place);
            if kind == event.kind && place == event.place {
                arrived += 1;
            } else if self.nodes[place as usize] == self.nodes[self.steps[sent].event.place as usize] {
                let kind = match kind {
                    EventKind::HandedOn { .. } => 0,
                    EventKind::Offered => 1,
                    EventKind::Sent => 2,
                    _ => continue,
                };
                *offered.entry((kind, place)).or_default() += 1;
            }
        }
        arrived > 0 && offered.into_values().max().is_some_and(|offered| arrived >= offered)
    }

    fn note(&mut self, at: At, content: u32, step: usize) {
        self.at.set(at, content, step);
        if !self.has_machines {
            for key in self.chosen.keys_of(content).iter() {
                self.by_key.insert((at, key), step);
            }
        }
    }

    fn add(&mut self, event: Event, before: Option<(usize, Relation)>) -> usize {
        let packet = match before {
            Some((before, _)) => self.packet_of[before],
            None => {
                self.packets.push(Packet { number: event.content, steps: Vec::new() });
                self.packets.len() - 1
            }
        };
        self.add_to(packet, event, before)
    }

    fn add_to(&mut self, packet: usize, event: Event, before: Option<(usize, Relation)>) -> usize {
        let place = self.steps.len();
        self.packets[packet].steps.push(place);
        self.packet_of.push(packet);
        let relation = before.map_or(Relation::First, |(_, relation)| relation);
        let was_carried = before.is_some_and(|(before, _)| self.steps[before].carried);
        self.steps.push(Step {
            event,
            before: before.map(|(step, _)| step),
            relation,
            goes_on: false,
            decoded: false,
            is_merged: false,
            is_duplicate: false,
            carried: relation == Relation::Carried || was_carried,
        });
        place
    }
}
