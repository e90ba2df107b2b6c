//! The steps of packets through a log: for each packet a tree, whose branches are its copies.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::Ipv4Addr;

use hopcast_core::{Instant, Port};
use hopcast_wire::ethernet::Mac;

use crate::content::{Keys, Layers, carries};
use crate::log::{Content, Event, EventKind, Layer, Log, Place};
use crate::outcome::{Outcome, outcome};
use crate::query::Query;

/// What became of the packets that a query chose.
pub struct Story<'l> {
    /// The log that they are in.
    pub log: &'l Log,
    /// All their steps, in the order of time.
    pub steps: Vec<Step>,
    /// The packets, in the order in which they appeared.
    pub packets: Vec<Packet>,
    /// The Ethernet addresses that claimed each IPv4 address by ARP, where there are several.
    pub rivals: BTreeMap<Ipv4Addr, BTreeSet<Mac>>,
    /// Whether the log says what happened inside nodes, as captures do not.
    has_machines: bool,
    /// For each machine the times at which it dropped what it had held back, with the reason.
    expiries: BTreeMap<u32, Vec<(Instant, u16)>>,
}

/// A packet: the first of its steps, and the number by which queries name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Its number: that of its first content in the log.
    pub number: u32,
    /// The places of its steps in [`Story::steps`]; the first is where it was first seen.
    pub steps: Vec<usize>,
}

/// A step of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The event.
    pub event: Event,
    /// The step before it, by its place in [`Story::steps`]; `None` where the packet was first seen.
    pub before: Option<usize>,
    /// How it differs from the step before.
    pub relation: Relation,
    /// Whether other steps follow it.
    pub goes_on: bool,
    /// Whether a machine took it next, and handed on another packet that it had decoded with it.
    pub decoded: bool,
    /// Whether it, or a step before it, is inside another packet.
    carried: bool,
}

/// How a packet at a step differs from the one at the step before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// It was first seen here.
    First,
    /// The bytes are the same.
    Same,
    /// Headers were changed, added or taken off.
    Changed,
    /// It is carried inside another packet from here on.
    Carried,
    /// The machine had held it back.
    HeldBack,
    /// It had become part of what another machine of its flow sent, and was decoded.
    Decoded,
}

/// The end of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate<'l> {
    /// A machine took it.
    Taken,
    /// It was dropped.
    Dropped {
        /// The counter, or the link's reason.
        reason: &'l str,
        /// The reason in words; `None` of a link's, which is in words.
        words: Option<&'static str>,
    },
    /// It was not for whoever heard it.
    Ignored,
    /// It had arrived before.
    Repeated,
    /// It waits in a machine, or became part of something else there.
    Held,
    /// Nothing more is known of it.
    Lost,
}

/// Follows the packets that `query` chooses through a log.
pub fn follow<'l>(log: &'l Log, query: &Query) -> Story<'l> {
    let (chosen, rivals) = Chosen::of(log, query);
    let mut follower = Follower {
        log,
        nodes: numbered_nodes(log),
        has_machines: log.places().iter().any(|place| matches!(place, Place::Machine { .. })),
        chosen,
        steps: Vec::new(),
        packets: Vec::new(),
        packet_of: Vec::new(),
        at: HashMap::new(),
        by_key: HashMap::new(),
        held: HashMap::new(),
        coded: HashMap::new(),
    };
    for event in log.events() {
        follower.take(event);
    }
    let Follower { mut steps, mut packets, has_machines, chosen, .. } = follower;
    // The payload of another packet may be the same, and its key with it.
    packets.retain(|packet| {
        packet.steps.iter().any(|&step| chosen.fitting.contains(&steps[step].event.content))
    });
    if let Some(flow) = query.flow.as_deref() {
        // Applications of several flows may send the same bytes.
        let is_of_flow = |&step: &usize| log.places()[steps[step].event.place as usize].flow() == Some(flow);
        packets.retain(|packet| packet.steps.iter().any(is_of_flow));
    }
    for place in 0..steps.len() {
        if let Some(before) = steps[place].before {
            steps[before].goes_on = true;
        }
    }
    Story { log, steps, packets, rivals, has_machines, expiries: expiries(log) }
}

impl<'l> Story<'l> {
    /// The ends of a packet's copies: its steps that no other follows.
    pub fn ends(&self, packet: &Packet) -> impl Iterator<Item = &Step> {
        packet.steps.iter().map(|&step| &self.steps[step]).filter(|step| !step.goes_on)
    }

    /// The fate of a copy whose last step this is.
    pub fn fate(&self, step: &Step) -> Fate<'l> {
        let place = &self.log.places()[step.event.place as usize];
        let by_reason = |reason: u16| self.log.reason(reason);
        if step.decoded {
            return Fate::Taken;
        }
        match step.event.kind {
            EventKind::Dropped { reason, .. } => {
                Fate::Dropped { reason: by_reason(reason).unwrap_or("unknown"), words: None }
            }
            EventKind::Ended { reason, port } => match by_reason(reason) {
                Some(reason) => match outcome(reason) {
                    Some((Outcome::Dropped, words)) => Fate::Dropped { reason, words: Some(words) },
                    Some((Outcome::Ignored, _)) => Fate::Ignored,
                    Some((Outcome::Repeated, _)) => Fate::Repeated,
                    None if self.is_held(step, place, port) => self.fate_of_held(step),
                    None => Fate::Taken,
                },
                None if self.is_held(step, place, port) => self.fate_of_held(step),
                None => Fate::Taken,
            },
            EventKind::HandedOn { port: Port::Above(_), .. } => {
                Fate::Dropped { reason: "unconnected", words: Some("nothing is attached to the port") }
            }
            // What a node did with it is not in captures.
            EventKind::Delivered { .. } if !self.has_machines => Fate::Taken,
            EventKind::HandedOn { .. } | EventKind::Delivered { .. } | EventKind::Sent | EventKind::Seen => {
                Fate::Lost
            }
        }
    }

    /// The layers of a step's content.
    pub fn layers(&self, step: &Step) -> Layers {
        self.log.content(step.event.content).map(Layers::of).unwrap_or_default()
    }

    /// The steps to one, from the first on.
    pub fn path(&self, step: &Step) -> Vec<&Step> {
        let before = |step: &&'_ Step| step.before.map(|before| &self.steps[before]);
        let mut path: Vec<&Step> = std::iter::successors(before(&step), before).collect();
        path.reverse();
        path
    }

    /// Whether a machine holds a packet back: it is on its way down, or inside what a relay took, or waits in a
    /// host for its neighbour's address.
    fn is_held(&self, step: &Step, place: &Place, port: Port) -> bool {
        let is_for_another = || {
            let ip = self.layers(step).ip.filter(|ip| !ip.destination.is_multicast());
            ip.is_some_and(|ip| {
                self.log.owner(ip.destination).is_some()
                    && !self.log.has_address(place.node(), ip.destination)
            })
        };
        matches!(port, Port::Above(_))
            || place.is_relay() && step.carried
            || place.is_host() && is_for_another()
    }

    /// The fate of a packet that a machine held back to the end: what it dropped next, at a time of its own.
    fn fate_of_held(&self, step: &Step) -> Fate<'l> {
        let expiries = self.expiries.get(&step.event.place).map_or(&[][..], |all| all);
        let next = expiries.partition_point(|&(at, _)| at < step.event.at);
        let reason = expiries.get(next).and_then(|&(_, reason)| self.log.reason(reason));
        let dropped = reason.and_then(|reason| outcome(reason).map(|(_, words)| (reason, Some(words))));
        dropped.map_or(Fate::Held, |(reason, words)| Fate::Dropped { reason, words })
    }
}

/// The times at which each machine dropped something that it had held back.
fn expiries(log: &Log) -> BTreeMap<u32, Vec<(Instant, u16)>> {
    let mut expiries: BTreeMap<u32, Vec<_>> = BTreeMap::new();
    for event in log.events() {
        if let (0, EventKind::Ended { reason, .. }) = (event.content, event.kind) {
            expiries.entry(event.place).or_default().push((event.at, reason));
        }
    }
    expiries
}

/// Number of places in the sieve of keys. Chosen: it stays in the processor's cache.
const SIEVE: usize = 1 << 16;

/// The contents that a query chooses, and those that are copies of them.
struct Chosen<'l> {
    log: &'l Log,
    keys: Vec<Keys>,
    /// The contents that fit the query, each by its first number.
    fitting: HashSet<u32>,
    /// The first number of each followed content: a recorder that has forgotten a content numbers it anew.
    first: HashMap<(Layer, u32, &'l [u8]), u32>,
    /// The keys of chosen packets, and of those that carry them.
    followed: HashSet<u64>,
    /// Whether any followed key has these last bits: most contents are told apart by a look at it.
    sieve: Vec<bool>,
    /// Contents without a key that were chosen.
    alone: HashSet<u32>,
}

impl<'l> Chosen<'l> {
    fn of(log: &'l Log, query: &Query) -> (Self, BTreeMap<Ipv4Addr, BTreeSet<Mac>>) {
        let mut keys = Vec::with_capacity(log.contents() as usize + 1);
        keys.push(Keys::default());
        let of_flow = query.flow.as_deref().map(|flow| contents_of_flow(log, flow));
        let at_time = query.at.map(|at| contents_at(log, at));
        let mut fitting = Vec::new();
        let mut claims: BTreeMap<Ipv4Addr, BTreeSet<Mac>> = BTreeMap::new();
        for number in 1..=log.contents() {
            let Some(content) = log.content(number) else { break };
            let layers = Layers::of(content);
            if let Some(arp) = layers.arp.filter(|arp| !arp.sender.address.is_unspecified()) {
                claims.entry(arp.sender.address).or_default().insert(arp.sender.mac);
            }
            keys.push(layers.keys);
            let fits = (!query.has_terms() || query.fits(&layers))
                && query.packet.is_none_or(|packet| packet == number)
                && at_time.as_ref().is_none_or(|contents| contents.contains(&number));
            if fits {
                fitting.push(number);
            }
        }
        let mut chosen = Self {
            log,
            keys,
            fitting: HashSet::new(),
            first: HashMap::new(),
            followed: HashSet::new(),
            sieve: vec![false; SIEVE],
            alone: HashSet::new(),
        };
        if let Some(of_flow) = of_flow {
            let keys: HashSet<u64> =
                of_flow.iter().flat_map(|&number| chosen.keys_of(number).iter()).collect();
            fitting.retain(|number| {
                of_flow.contains(number) || chosen.keys_of(*number).iter().any(|key| keys.contains(&key))
            });
        }
        for number in fitting {
            chosen.follow(number);
            let first = chosen.first_number(number);
            chosen.fitting.insert(first);
        }
        claims.retain(|_, macs| macs.len() > 1);
        (chosen, claims)
    }

    fn keys_of(&self, content: u32) -> Keys {
        self.keys.get(content as usize).copied().unwrap_or_default()
    }

    /// Follows a content and its copies from now on.
    fn follow(&mut self, content: u32) {
        let keys = self.keys_of(content);
        for key in keys.iter() {
            self.followed.insert(key);
            self.sieve[key as usize % SIEVE] = true;
        }
        if keys == Keys::default() {
            self.alone.insert(content);
        }
    }

    fn has(&self, content: u32) -> bool {
        let is_followed = |key: u64| self.sieve[key as usize % SIEVE] && self.followed.contains(&key);
        self.keys_of(content).iter().any(is_followed) || self.alone.contains(&content)
    }

    /// The number by which a content is followed: that of the first followed one with the same bytes.
    fn first_number(&mut self, content: u32) -> u32 {
        match self.log.content(content) {
            Some(Content { layer, length, bytes }) if self.has(content) => {
                *self.first.entry((layer, length, bytes)).or_insert(content)
            }
            _ => content,
        }
    }

    /// Whether two contents are copies of one packet.
    fn alike(&self, one: u32, other: u32) -> bool {
        let (first, second) = (self.keys_of(one), self.keys_of(other));
        one == other
            || first.packet != 0 && first.packet == second.packet
            || first.payload != 0 && first.payload == second.payload
    }
}

/// The contents that machines of a flow handed on.
fn contents_of_flow(log: &Log, name: &str) -> BTreeSet<u32> {
    let of_flow = |event: &Event| {
        matches!(event.kind, EventKind::HandedOn { .. })
            && matches!(&log.places()[event.place as usize], Place::Machine { flow: Some(flow), .. } if flow == name)
    };
    log.events().filter(of_flow).map(|event| event.content).collect()
}

/// The contents of frames at the time of events that is nearest to this one.
fn contents_at(log: &Log, at: Instant) -> BTreeSet<u32> {
    let is_of_frame = |event: &Event| {
        matches!(
            event.kind,
            EventKind::Sent | EventKind::Delivered { .. } | EventKind::Dropped { .. } | EventKind::Seen
        )
    };
    let distance = |event: &Event| event.at.as_nanos().abs_diff(at.as_nanos());
    let Some(least) = log.events().filter(is_of_frame).map(|event| distance(&event)).min() else {
        return BTreeSet::new();
    };
    let nearest = log.events().filter(|event| is_of_frame(event) && distance(event) == least);
    nearest.map(|event| event.content).collect()
}

/// The number of each place's node.
fn numbered_nodes(log: &Log) -> Vec<u32> {
    let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
    let number = |place| {
        let next = numbers.len() as u32;
        *numbers.entry(Place::node(place)).or_insert(next)
    };
    log.places().iter().map(number).collect()
}

/// A position between two events.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum At {
    /// Inside a node.
    Node(u32),
    /// On the link, sent by an interface.
    Link(u32),
}

/// Links the events of chosen packets to the steps before them, in one pass.
struct Follower<'l> {
    log: &'l Log,
    nodes: Vec<u32>,
    /// Whether there is more than captures.
    has_machines: bool,
    chosen: Chosen<'l>,
    steps: Vec<Step>,
    packets: Vec<Packet>,
    /// The packet of each step.
    packet_of: Vec<usize>,
    /// The latest step of a content at a position.
    at: HashMap<(At, u32), usize>,
    /// The latest step of a key at a position, where bytes change unseen: in captures.
    by_key: HashMap<(At, u64), usize>,
    /// The step at which a machine held a packet back.
    held: HashMap<(u32, u64), usize>,
    /// The step at which a packet went into a machine of a flow, and became part of something else.
    coded: HashMap<(&'l str, u64), usize>,
}

impl<'l> Follower<'l> {
    fn take(&mut self, mut event: Event) {
        let node = At::Node(self.nodes[event.place as usize]);
        let link = At::Link(event.place);
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
            EventKind::Sent => {
                let before = self.find(node, content);
                let step = self.add(event, before);
                self.note(link, content, step);
            }
            EventKind::Delivered { from } => {
                // A log has what was sent only where it was captured too.
                let sender = At::Node(self.nodes[from as usize]);
                let before = self.find(At::Link(from), content);
                let before = before.or_else(|| self.find(sender, content).filter(|_| self.has_machines));
                let before = before.or_else(|| self.on_any_link(content));
                let step = self.add(event, before);
                self.note(node, content, step);
            }
            EventKind::Dropped { to, .. } => {
                // Captures do not say who missed a frame that was sent.
                let on_link = self.find(link, content).filter(|_| to.is_some() || !self.has_machines);
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
                let before = self.on_any_link(content);
                let step = self.add(event, before);
                self.note(node, content, step);
                self.note(At::Link(u32::MAX), content, step);
            }
        }
    }

    fn handed_on(&mut self, event: Event, node: At, cause: u32) {
        let content = event.content;
        let caused = self.at.get(&(node, cause)).copied().filter(|_| cause != 0);
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
        let carries = self.at.contains_key(&(node, cause)) && self.derives(cause, event.content);
        if carries {
            self.chosen.follow(event.content);
        }
        carries
    }

    /// The latest step of a content at a position, and how the next one relates to it.
    fn find(&self, at: At, content: u32) -> Option<(usize, Relation)> {
        if let Some(&step) = self.at.get(&(at, content)) {
            return Some((step, Relation::Same));
        }
        if self.has_machines {
            return None;
        }
        let found = self.chosen.keys_of(content).iter().find_map(|key| self.by_key.get(&(at, key)));
        found.map(|&step| (step, Relation::Changed))
    }

    /// The latest step of a content on whatever link, in captures, which do not say who is on which link.
    fn on_any_link(&self, content: u32) -> Option<(usize, Relation)> {
        if self.has_machines {
            return None;
        }
        self.find(At::Link(u32::MAX), content)
    }

    fn note(&mut self, at: At, content: u32, step: usize) {
        self.at.insert((at, content), step);
        if !self.has_machines {
            for at in
                [Some(at), matches!(at, At::Link(_)).then_some(At::Link(u32::MAX))].into_iter().flatten()
            {
                self.at.insert((at, content), step);
                for key in self.chosen.keys_of(content).iter() {
                    self.by_key.insert((at, key), step);
                }
            }
        }
    }

    fn add(&mut self, event: Event, before: Option<(usize, Relation)>) -> usize {
        let place = self.steps.len();
        let packet = match before {
            Some((before, _)) => self.packet_of[before],
            None => {
                self.packets.push(Packet { number: event.content, steps: Vec::new() });
                self.packets.len() - 1
            }
        };
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
            carried: relation == Relation::Carried || was_carried,
        });
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{HOST, Named};
    use crate::verdict::verdicts;
    use crate::{MemoryLog, Recorder};

    /// Four nodes with an interface and a host each: the places `n` and `4 + n`, of the address `10.0.0.n`.
    fn log(write: impl FnOnce(&mut Recorder)) -> Log {
        let memory = MemoryLog::default();
        let mut recorder = memory.recorder(1 << 30);
        for node in 0..4 {
            let (node, name, link) = (format!("n{node}"), "eth0".to_owned(), format!("l{}", node / 2));
            recorder.place(&Place::Interface { node, name, link, mtu: 1500, mac: [0; 6] });
        }
        for node in 0..4 {
            recorder.place(&Place::Machine { node: format!("n{node}"), name: HOST.to_owned(), flow: None });
        }
        for node in 0..4 {
            let addresses = vec![Ipv4Addr::new(10, 0, 0, node).into()];
            recorder.name(&Named::Node { name: format!("n{node}"), addresses });
        }
        write(&mut recorder);
        recorder.finish().unwrap();
        let bytes = memory.take();
        Log::read(bytes).unwrap()
    }

    /// A UDP datagram in a frame.
    fn frame(from: u8, to: u8, number: u32) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 8, 0];
        frame.extend([0x45, 0, 0, 60, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, from, 10, 0, 0, to]);
        frame.extend([0, 7, 0, 7, 0, 40, 0, 0]);
        frame.extend(number.to_be_bytes());
        frame.extend([9; 28]);
        frame
    }

    fn lines(log: &Log, query: &str) -> Vec<String> {
        verdicts(&follow(log, &Query::parse(query, log).unwrap())).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_frame_that_the_recorder_has_forgotten_on_its_way_is_followed_on() {
        let all = 40_000;
        let log = log(|recorder| {
            for number in 0..all {
                recorder.sent(Instant::from_nanos(number.into()), 0, &frame(0, 1, number));
            }
            for number in 0..all {
                let at = Instant::from_nanos((all + number).into());
                recorder.delivered(at, 1, 0, &frame(0, 1, number));
                let content = recorder.arrived(at, 5, Port::Below(0), Layer::Frame, &frame(0, 1, number));
                recorder.ended(at, 5, Some((Port::Below(0), content)), None);
            }
        });
        assert!(log.contents() > all, "the recorder has numbered some twice");
        let story = follow(&log, &Query::parse("udp", &log).unwrap());
        assert_eq!(story.packets.len(), all as usize);
        assert!(story.packets.iter().all(|packet| packet.steps.len() == 3));
    }

    #[test]
    fn a_packet_with_the_same_payload_between_others_is_not_chosen() {
        let log = log(|recorder| {
            for number in 0..10 {
                let at = Instant::from_nanos(number.into());
                recorder.sent(at, 0, &frame(0, 1, number));
                recorder.sent(at, 2, &frame(2, 3, number));
                recorder.dropped(at, 2, Some(3), &frame(2, 3, number), "lost on the link");
                recorder.delivered(at, 1, 0, &frame(0, 1, number));
                let content = recorder.arrived(at, 5, Port::Below(0), Layer::Frame, &frame(0, 1, number));
                recorder.ended(at, 5, Some((Port::Below(0), content)), None);
            }
        });
        let found = lines(&log, "udp from n0 to n1");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("arrived at n1, 10 of 10"), "{found:?}");
        assert_eq!(lines(&log, "packet 1").len(), 1);
    }

    #[test]
    fn an_icmp_error_that_quotes_a_packet_does_not_carry_it() {
        let log = log(|recorder| {
            let at = Instant::ZERO;
            let packet = frame(0, 1, 1).split_off(14);
            let mut error = vec![0x45, 0, 0, 88, 0, 0, 0, 0, 64, 1, 0, 0, 10, 0, 0, 1, 10, 0, 0, 0];
            error.extend([3, 3, 0, 0, 0, 0, 0, 0]);
            error.extend(&packet);
            recorder.handed_on(at, 4, Port::Below(0), (Layer::Packet, &packet), None);
            let content = recorder.arrived(at, 4, Port::Above(0), Layer::Packet, &packet);
            recorder.handed_on(at, 4, Port::Above(0), (Layer::Packet, &error), Some(content));
            recorder.ended(at, 4, Some((Port::Above(0), content)), Some("too_big"));
            let content = recorder.arrived(at, 4, Port::Below(0), Layer::Packet, &error);
            recorder.ended(at, 4, Some((Port::Below(0), content)), None);
        });
        let found = lines(&log, "udp from n0 to n1");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains(" died at n0: "), "{found:?}");
        let story = follow(&log, &Query::parse("udp", &log).unwrap());
        assert_eq!(story.packets[0].steps.len(), 2, "it is handed on, and dropped");
    }
}
