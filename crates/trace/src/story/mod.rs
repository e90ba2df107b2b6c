//! The steps of packets through a log: for each packet a tree, whose branches are its copies.

mod chosen;
mod follower;

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use hopcast_core::{Instant, Port};
use hopcast_wire::ethernet::Mac;

use crate::content::Layers;
use crate::log::{Event, EventKind, Log, Place};
use crate::outcome::{Outcome, outcome};
use crate::query::Query;
use chosen::Chosen;
use follower::Follower;

/// What became of the packets that a query chose.
pub struct Story<'l> {
    /// The log that they are in.
    pub log: &'l Log,
    /// All their steps, in the order of the log: a link tells drops afterwards, so that one may be earlier than the
    /// step before it.
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
    /// Whether it ended in a machine that decoded another packet with its help.
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
    let mut follower = Follower::new(log, chosen);
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
            EventKind::Ended { reason, port } => {
                let known = by_reason(reason).and_then(|reason| Some((reason, outcome(reason)?)));
                match known {
                    Some((reason, (Outcome::Dropped, words))) => Fate::Dropped { reason, words: Some(words) },
                    Some((_, (Outcome::Ignored, _))) => Fate::Ignored,
                    Some((_, (Outcome::Repeated, _))) => Fate::Repeated,
                    None if self.is_held(step, place, port) => self.fate_of_held(step),
                    None => Fate::Taken,
                }
            }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{HOST, Layer, Named};
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
