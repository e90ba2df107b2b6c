//! The steps of packets through a log: for each packet a tree, whose branches are its copies.

mod chosen;
mod datagrams;
mod follower;
mod latest;
mod quick;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

use hopcast_core::{Instant, Port};
use hopcast_wire::ethernet::Mac;
use hopcast_wire::icmp;

use crate::content::Layers;
use crate::log::{Event, EventKind, Layer, Log, Named, Place};
use crate::outcome::{Outcome, outcome};
use crate::query::{Query, is_at};
use chosen::{Chosen, Noticed, has_machines_of};
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
    /// The ICMP errors about packets, by the keys of these; empty where the log says what happened inside nodes.
    errors: BTreeMap<u64, IcmpError>,
    /// Whether the log has fragments.
    pub(crate) has_fragments: bool,
    /// Whether the log says what happened inside nodes, as captures and live runs do not.
    has_machines: bool,
    /// Whether the log knows whose an address is.
    knows_owners: bool,
    /// For each machine the times at which it dropped what it had held back, with the reason.
    expiries: BTreeMap<u32, Vec<(Instant, u16)>>,
}

/// An ICMP error about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IcmpError {
    /// The address of its sender.
    pub by: IpAddr,
    /// The error.
    pub message: icmp::Message,
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
    /// Whether it is a fragment that was put together with others in the node where it ended.
    pub is_merged: bool,
    /// Whether the link delivered it once more than it was sent.
    pub is_duplicate: bool,
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
    /// It is a fragment of what it was before.
    Fragment,
    /// It was put together of fragments, of which the step before is one.
    Reassembled,
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
    let (chosen, Noticed { rivals, errors, has_fragments }) = Chosen::of(log, query);
    let mut follower = Follower::new(log, chosen);
    for event in log.events() {
        follower.take(event);
    }
    let Follower { mut steps, mut packets, has_machines, chosen, .. } = follower;
    // The payload of another packet may be the same, and its key with it.
    packets.retain(|packet| {
        packet.steps.iter().any(|&step| chosen.fitting.contains(&steps[step].event.content))
    });
    for places in &query.places {
        packets.retain(|packet| packet.steps.iter().any(|&step| is_at(places, &steps[step].event)));
    }
    if let Some(flow) = query.flow.as_ref().filter(|flow| has_machines_of(log, flow)) {
        // Applications of several flows may send the same bytes.
        let is_of_flow =
            |&step: &usize| log.places()[steps[step].event.place as usize].flow() == Some(&flow.name);
        packets.retain(|packet| packet.steps.iter().any(is_of_flow));
    }
    for place in 0..steps.len() {
        if let Some(before) = steps[place].before {
            steps[before].goes_on = true;
        }
    }
    // Where the log has the reasons themselves, errors say nothing more.
    let errors = if has_machines { BTreeMap::new() } else { errors };
    let knows_owners = log.named().iter().any(|named| matches!(named, Named::Node { .. }));
    let expiries = expiries(log);
    Story { log, steps, packets, rivals, errors, has_fragments, has_machines, knows_owners, expiries }
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
        if step.decoded || step.is_merged {
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
            EventKind::Delivered { .. } if !self.has_machines => self.fate_in_node(step, place),
            EventKind::Seen if self.is_at_destination(step, place) => Fate::Taken,
            EventKind::Offered => Fate::Held,
            // A machine is behind a device.
            EventKind::Sent if self.is_for_device(step, place) => Fate::Held,
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

    /// The fate of a packet that an interface of a node received, of which the log has nothing more: what a node did
    /// with it is not in captures, nor in the logs of live runs.
    fn fate_in_node(&self, step: &Step, place: &Place) -> Fate<'l> {
        let Place::Interface { node, mac, .. } = place else { return Fate::Lost };
        let layers = self.layers(step);
        let is_for_group = layers.ethernet.is_none_or(|header| header.destination[0] & 1 == 1);
        if !is_for_group && *mac != [0; 6] && layers.ethernet.is_some_and(|header| header.destination != *mac)
        {
            return Fate::Ignored;
        }
        let is_of_another =
            |address: IpAddr| self.log.owner(address).is_some() && !self.log.has_address(node, address);
        if let Some(arp) = layers.arp {
            return if is_of_another(arp.target.address.into()) { Fate::Ignored } else { Fate::Taken };
        }
        let Some(ip) = layers.ip.filter(|_| self.knows_owners && !is_for_group) else { return Fate::Taken };
        let is_local = match ip.destination {
            IpAddr::V4(address) => address.is_link_local(),
            IpAddr::V6(address) => address.is_unicast_link_local(),
        };
        if is_local || self.log.has_address(node, ip.destination) { Fate::Taken } else { Fate::Lost }
    }

    /// Whether a packet is at a node that has its destination's address.
    fn is_at_destination(&self, step: &Step, place: &Place) -> bool {
        let ip = self.layers(step).ip.filter(|_| self.knows_owners);
        ip.is_some_and(|ip| self.log.has_address(place.node(), ip.destination))
    }

    /// Whether a step is a packet on its way into the device of a machine, which is on no link.
    fn is_for_device(&self, step: &Step, place: &Place) -> bool {
        let is_packet =
            self.log.content(step.event.content).is_some_and(|content| content.layer == Layer::Packet);
        self.knows_owners && is_packet && matches!(place, Place::Interface { link, .. } if link.is_empty())
    }

    /// The ICMP error about a packet, and who sent it, if the log has one.
    pub(crate) fn error_about(&self, packet: &Packet) -> Option<IcmpError> {
        if self.errors.is_empty() {
            return None;
        }
        packet
            .steps
            .iter()
            .find_map(|&step| self.errors.get(&self.layers(&self.steps[step]).keys.packet).copied())
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
    use crate::log::HOST;
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

    /// A log of a live run of three nodes in a row, n0, n1 and n2: interfaces 0 and 1 are on one link, 2 and 3 on the
    /// other.
    fn live_log(write: impl FnOnce(&mut Recorder)) -> Log {
        let memory = MemoryLog::default();
        let mut recorder = memory.recorder(1 << 30);
        for (place, (node, name)) in
            [(0, "eth0"), (1, "eth0"), (1, "eth1"), (2, "eth0")].into_iter().enumerate()
        {
            let (node, name, link) = (format!("n{node}"), name.to_owned(), format!("l{}", place / 2));
            recorder.place(&Place::Interface { node, name, link, mtu: 1500, mac: mac(place as u8) });
        }
        for node in 0..3 {
            let addresses = vec![Ipv4Addr::new(10, 0, 0, node).into()];
            recorder.name(&Named::Node { name: format!("n{node}"), addresses });
        }
        write(&mut recorder);
        recorder.finish().unwrap();
        Log::read(memory.take()).unwrap()
    }

    fn mac(place: u8) -> [u8; 6] {
        [2, 0, 0, 0, 0, place]
    }

    /// The datagram from n0 to n2 of this number, on its first link or its second.
    fn hop(second: bool, number: u32) -> Vec<u8> {
        let mut frame = frame(0, 2, number);
        let (to, from) = if second { (3, 2) } else { (1, 0) };
        frame[..6].copy_from_slice(&mac(to));
        frame[6..12].copy_from_slice(&mac(from));
        frame[22] -= u8::from(second);
        frame
    }

    /// The datagram of this number crosses the first link.
    fn first_link(recorder: &mut Recorder, number: u32) {
        let at = |micros: u32| Instant::from_nanos(u64::from(number) * 1_000_000 + u64::from(micros) * 1_000);
        recorder.offered(at(0), 0, &hop(false, number));
        recorder.sent(at(100), 0, &hop(false, number));
        recorder.delivered(at(200), 1, 0, &hop(false, number));
    }

    #[test]
    fn in_a_live_run_a_packet_is_followed_over_each_interface_and_through_each_queue() {
        let log = live_log(|recorder| {
            first_link(recorder, 0);
            let at = Instant::from_nanos(300_000);
            // The thread of the second link has read it as if it had come before it arrived on the first.
            recorder.offered(Instant::from_nanos(190_000), 2, &hop(true, 0));
            recorder.sent(at, 2, &hop(true, 0));
            recorder.delivered(at, 3, 2, &hop(true, 0));
        });
        let story = follow(&log, &Query::parse("udp from n0", &log).unwrap());
        assert_eq!(story.packets.len(), 1);
        let steps: Vec<(EventKind, Option<usize>)> =
            story.steps.iter().map(|step| (step.event.kind, step.before)).collect();
        let expected = [
            (EventKind::Offered, None),
            (EventKind::Sent, Some(0)),
            (EventKind::Delivered { from: 0 }, Some(1)),
            (EventKind::Offered, Some(2)),
            (EventKind::Sent, Some(3)),
            (EventKind::Delivered { from: 2 }, Some(4)),
        ];
        assert_eq!(steps, expected);
        assert_eq!(lines(&log, "udp from n0"), ["UDP from n0:7 to n2:7 arrived at n2, 1 of 1"]);
    }

    #[test]
    fn what_a_link_of_a_live_run_drops_has_its_reason_and_place() {
        let log = live_log(|recorder| {
            for number in 0..3 {
                first_link(recorder, number);
                recorder.offered(Instant::from_nanos(300_000), 2, &hop(true, number));
            }
            let at = Instant::from_nanos(400_000);
            recorder.dropped(at, 2, None, &hop(true, 0), "queue full");
            recorder.sent(at, 2, &hop(true, 1));
            recorder.dropped(at, 2, Some(3), &hop(true, 1), "lost on the link");
        });
        let found = lines(&log, "udp from n0 to n2");
        let expected = [
            "UDP from n0:7 to n2:7 died at n1:eth1, before link l1: queue full, 1 of 3",
            "UDP from n0:7 to n2:7 died on link l1, from n1 to n2: lost on the link, 1 of 3",
            "UDP from n0:7 to n2:7 stayed at n1:eth1, before link l1: it waits there, or became part of what is \
             sent later, 1 of 3",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_a_kernel_kept_was_not_seen_again_and_an_icmp_error_about_it_is_told() {
        let log = live_log(|recorder| {
            first_link(recorder, 0);
            first_link(recorder, 1);
            let mut error = hop(false, 0)[..14].to_vec();
            error.extend([0x45, 0, 0, 88, 0, 0, 0, 0, 64, 1, 0, 0, 10, 0, 0, 1, 10, 0, 0, 0]);
            error.extend([3, 4, 0, 0, 0, 0, 0, 50]);
            error.extend(&hop(false, 1)[14..]);
            // Routers quote a packet as it was when they dropped it.
            error[14 + 20 + 8 + 8] -= 1;
            recorder.offered(Instant::from_nanos(2_000_000), 1, &error);
        });
        let found = lines(&log, "udp from n0 to n2");
        let expected = "UDP from n0:7 to n2:7 was not seen again after interface eth0 of node n1, 2 of 2; \
                        n1 reports by ICMP: packet too big, the next link takes 50 B";
        assert_eq!(found, [expected]);
    }

    #[test]
    fn an_answer_with_the_same_payload_is_no_copy() {
        let log = live_log(|recorder| {
            first_link(recorder, 0);
            let mut answer = frame(2, 0, 0);
            answer[22] = 63;
            recorder.offered(Instant::from_nanos(1_000_000), 1, &answer);
        });
        let story = follow(&log, &Query::parse("udp", &log).unwrap());
        assert_eq!(story.packets.len(), 2);
    }

    #[test]
    fn who_hears_a_frame_for_another_station_leaves_it() {
        let log = live_log(|recorder| {
            first_link(recorder, 0);
            recorder.delivered(Instant::from_nanos(200_000), 3, 0, &hop(false, 0));
        });
        let story = follow(&log, &Query::parse("udp", &log).unwrap());
        let fates: Vec<Fate<'_>> = story.ends(&story.packets[0]).map(|step| story.fate(step)).collect();
        assert_eq!(fates, [Fate::Lost, Fate::Ignored]);
    }

    /// A datagram from n0 to n2 on the first link or the second, with this time to live, in frames each of which has
    /// this offset and length, and says whether more follow.
    fn parts(second: bool, ttl: u8, cuts: &[(u16, u16, bool)]) -> Vec<Vec<u8>> {
        let part = |&(offset, length, more): &(u16, u16, bool)| {
            let mut frame = hop(second, 0)[..14].to_vec();
            let word = (offset / 8) | if more { 0x2000 } else { 0 };
            frame.extend([0x45, 0]);
            frame.extend((20 + length).to_be_bytes());
            frame.extend([0, 77]);
            frame.extend(word.to_be_bytes());
            frame.extend([ttl, 17, 0, 0, 10, 0, 0, 0, 10, 0, 0, 2]);
            if offset == 0 {
                frame.extend([0, 7, 0, 7, 11, 192, 0, 0]);
            }
            frame.resize(34 + usize::from(length), 9);
            frame
        };
        cuts.iter().map(part).collect()
    }

    const WHOLE: [(u16, u16, bool); 1] = [(0, 3008, false)];
    const CUT: [(u16, u16, bool); 3] = [(0, 1480, true), (1480, 1480, true), (2960, 48, false)];

    /// A frame crosses the link between two interfaces.
    fn cross(recorder: &mut Recorder, micros: u64, (from, to): (u32, u32), frame: &[u8]) {
        let at = Instant::from_nanos(micros * 1_000);
        recorder.offered(at, from, frame);
        recorder.sent(at, from, frame);
        recorder.delivered(at, to, from, frame);
    }

    #[test]
    fn a_datagram_is_followed_into_its_fragments_and_to_where_they_are_put_together() {
        let log = live_log(|recorder| {
            cross(recorder, 0, (0, 1), &parts(false, 64, &WHOLE)[0]);
            for part in parts(true, 63, &CUT) {
                cross(recorder, 100, (2, 3), &part);
            }
        });
        let expected =
            "UDP from n0:7 to n2:7 arrived at n2, 1 of 1; fragmented into 3 at n1, reassembled at n2";
        assert_eq!(lines(&log, "port 7"), [expected]);
        let story = follow(&log, &Query::parse("port 7", &log).unwrap());
        let made = story.steps.iter().filter(|step| step.relation == Relation::Fragment);
        assert!(made.clone().all(|step| step.before == Some(2)), "{:?}", story.steps);
        assert_eq!(made.count(), 3);
    }

    #[test]
    fn a_fragment_that_is_lost_is_the_death_of_its_datagram() {
        let log = live_log(|recorder| {
            // The host that makes the datagram hands its fragments to the link; nothing has it whole.
            let [first, second, third] = <[_; 3]>::try_from(parts(false, 64, &CUT)).unwrap();
            cross(recorder, 0, (0, 1), &first);
            recorder.offered(Instant::ZERO, 0, &second);
            recorder.dropped(Instant::ZERO, 0, None, &second, "queue full");
            cross(recorder, 0, (0, 1), &third);
            for part in parts(true, 63, &[CUT[0], CUT[2]]) {
                cross(recorder, 100, (2, 3), &part);
            }
        });
        let expected = "UDP from n0:7 to n2:7 died at n0:eth0, before link l0: queue full, 1 of 1; \
                        fragmented into 3 at n0";
        assert_eq!(lines(&log, "port 7"), [expected]);
    }

    #[test]
    fn fragments_of_which_one_never_comes_wait_at_their_end() {
        let log = live_log(|recorder| {
            for part in &parts(false, 64, &CUT)[..2] {
                cross(recorder, 0, (0, 1), part);
            }
            for part in &parts(true, 63, &CUT)[..2] {
                cross(recorder, 100, (2, 3), part);
            }
        });
        let found = lines(&log, "port 7");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("UDP from n0:7 to n2:7 stayed at n2: "), "{found:?}");
    }

    #[test]
    fn a_router_that_reassembles_hands_on_the_whole_and_a_later_datagram_is_another() {
        let log = live_log(|recorder| {
            for time in [0, 1_000] {
                for part in parts(false, 64, &CUT) {
                    cross(recorder, time, (0, 1), &part);
                }
                cross(recorder, time + 100, (2, 3), &parts(true, 63, &WHOLE)[0]);
            }
        });
        let expected =
            "UDP from n0:7 to n2:7 arrived at n2, 2 of 2; fragmented into 3 at n0, reassembled at n1";
        assert_eq!(lines(&log, "port 7"), [expected]);
    }

    #[test]
    fn a_link_that_delivers_a_frame_twice_has_duplicated_it_and_one_that_is_sent_twice_has_not() {
        let twice = |recorder: &mut Recorder| {
            cross(recorder, 0, (0, 1), &hop(false, 0));
            recorder.delivered(Instant::from_nanos(5), 1, 0, &hop(false, 0));
        };
        let line = "UDP from n0:7 to n2:7 was not seen again after interface eth0 of node n1, 1 of 1";
        let duplicated = lines(&live_log(twice), "port 7");
        assert_eq!(duplicated, [format!("{line}; duplicated on link l0")]);
        let sent_twice = live_log(|recorder| {
            for _ in 0..2 {
                recorder.offered(Instant::ZERO, 0, &hop(false, 0));
                recorder.sent(Instant::ZERO, 0, &hop(false, 0));
            }
            for _ in 0..2 {
                recorder.delivered(Instant::ZERO, 1, 0, &hop(false, 0));
            }
        });
        assert!(!lines(&sent_twice, "port 7")[0].contains("duplicated"));
    }

    #[test]
    fn an_error_of_icmpv6_tells_of_the_datagram_that_it_quotes() {
        let addresses = |from: u8, to: u8| {
            let address = |node| [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, node];
            [address(from), address(to)].concat()
        };
        let mut datagram = vec![0x60, 0, 0, 0, 5, 0, 17, 64];
        datagram.extend(addresses(0, 2));
        datagram.extend([0, 7, 0, 7, 5, 0, 0, 0]);
        datagram.resize(40 + 1280, 9);
        let frame = [&hop(false, 0)[..12], &[0x86, 0xdd], &datagram[..]].concat();
        let mut error = [&hop(false, 0)[..12], &[0x86, 0xdd, 0x60, 0, 0, 0, 4, 216, 58, 64]].concat();
        error.extend(addresses(1, 0));
        error.extend([2, 0, 0, 0, 0, 0, 5, 0]);
        error.extend(&datagram[..1232]);
        // Routers quote a packet as it was when they dropped it.
        error[14 + 40 + 8 + 7] -= 1;
        let log = live_log(|recorder| {
            cross(recorder, 0, (0, 1), &frame);
            cross(recorder, 10, (1, 0), &error);
        });
        let found = lines(&log, "port 7");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].ends_with("; fd00::1 reports by ICMP: packet too big, the next link takes 1280 B"),
            "{found:?}"
        );
    }
}
