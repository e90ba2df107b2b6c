//! What became of the packets of a story, in a line for each kind of packet and fate.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;

use hopcast_wire::{arp, icmp, ip};

use crate::content::Layers;
use crate::course::course;
use crate::fragment::{Fragment, are_all};
use crate::log::{EventKind, Log, Place};
use crate::notes::Notes;
use crate::story::{Fate, IcmpError, Packet, Step, Story};

/// The packets of one kind that had one fate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The kind of packet, with its ends: `ARP reply from b to a`.
    pub kind: String,
    /// What became of them.
    pub finding: Finding,
    /// Number of packets of the kind with this finding.
    pub packets: usize,
    /// Number of packets of the kind.
    pub of: usize,
    /// Their places in [`Story::packets`].
    pub places: Vec<usize>,
    /// How one of them became several copies or fragments on its way, and where fragments were put together; `None` of
    /// what remained one.
    pub course: Option<String>,
    /// What else is to be known: who else claims the receiver's address, which MTUs there are, who took a tag off, or
    /// that nobody queries for members.
    pub note: Option<String>,
}

/// What became of a packet. The order is that in which findings are of interest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Finding {
    /// No copy arrived, and the last one was dropped.
    Died {
        /// Where, for example `at r1` or `on link r1-b`.
        place: String,
        /// The reason in words.
        reason: String,
        /// The name of the counter that rose; `None` of a link.
        counter: Option<String>,
        /// The nodes that it went round, if it did.
        round: Vec<String>,
    },
    /// All who received it left it to others.
    Unclaimed {
        /// The nodes.
        at: BTreeSet<String>,
    },
    /// It was not seen again.
    Lost {
        /// After which place.
        place: String,
        /// Whether a node had received it, of whose inside the log has nothing; otherwise it was on its way.
        inside: bool,
    },
    /// It waited when the log ended, or became part of something else.
    Held {
        /// Where.
        place: String,
    },
    /// Some copies arrived, and some were dropped.
    Partly {
        /// The nodes that have it.
        at: BTreeSet<String>,
        /// Where copies were dropped, by the reason.
        died: BTreeMap<String, BTreeSet<String>>,
    },
    /// It arrived.
    Arrived {
        /// The nodes that have it.
        at: BTreeSet<String>,
    },
}

/// The verdicts on a story: what is of most interest first.
pub fn verdicts(story: &Story<'_>) -> Vec<Verdict> {
    let mut groups: BTreeMap<(String, Finding), Vec<usize>> = BTreeMap::new();
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for (place, packet) in story.packets.iter().enumerate() {
        let kind = kind_of(story, packet);
        *kinds.entry(kind.clone()).or_default() += 1;
        groups.entry((kind, finding(story, packet))).or_default().push(place);
    }
    let notes = Notes::of(story);
    let verdict = |((kind, finding), places): ((String, Finding), Vec<usize>)| {
        let of = kinds.get(&kind).copied().unwrap_or_default();
        let note = places.first().and_then(|&place| notes.of_packet(&story.packets[place], &finding));
        let mut errors = places.iter().filter_map(|&place| story.error_about(&story.packets[place]));
        let note = note.or_else(|| errors.next().map(|error| error_text(story.log, error)));
        let mut courses = places.iter().map(|&place| course(story, &story.packets[place]));
        let course = courses.find_map(|course| course);
        Verdict { kind, finding, packets: places.len(), of, places, course, note }
    };
    let mut verdicts: Vec<Verdict> = groups.into_iter().map(verdict).collect();
    let interest = |verdict: &Verdict| {
        let (has_note, is_fault) =
            (verdict.note.is_some(), !matches!(verdict.finding, Finding::Arrived { .. }));
        // What was on its way when the log ended is no fault.
        let is_clear = matches!(
            verdict.finding,
            Finding::Died { .. } | Finding::Unclaimed { .. } | Finding::Lost { inside: true, .. }
        );
        Reverse((has_note || is_clear, verdict.packets, is_fault))
    };
    verdicts.sort_by_key(interest);
    verdicts
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.kind)?;
        match &self.finding {
            Finding::Died { place, reason, counter, round } => {
                if !round.is_empty() {
                    write!(f, "went round a loop {} and ", round.join(" → "))?;
                }
                write!(f, "died {place}: {reason}")?;
                if let Some(counter) = counter {
                    write!(f, " ({counter})")?;
                }
            }
            Finding::Unclaimed { at } => {
                write!(f, "was taken by nobody: {} left it to others", listed(at))?;
            }
            Finding::Lost { place, .. } => write!(f, "was not seen again after {place}")?,
            Finding::Held { place } => {
                write!(f, "stayed {place}: it waits there, or became part of what is sent later")?;
            }
            Finding::Partly { at, died } => {
                let died: Vec<String> =
                    died.iter().map(|(reason, places)| format!("{}: {reason}", listed(places))).collect();
                write!(f, "arrived at {}, and copies died {}", listed(at), died.join(", "))?;
            }
            Finding::Arrived { at } => write!(f, "arrived at {}", listed(at))?,
        }
        write!(f, ", {} of {}", self.packets, self.of)?;
        if let Some(course) = &self.course {
            write!(f, "; {course}")?;
        }
        self.note.as_ref().map_or(Ok(()), |note| write!(f, "; {note}"))
    }
}

pub(crate) fn listed(names: &BTreeSet<String>) -> String {
    names.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// What a packet is, with its ends.
pub(crate) fn kind_of(story: &Story<'_>, packet: &Packet) -> String {
    let first = || packet.steps.first().map(|&step| story.layers(&story.steps[step]));
    match with_addresses(story, packet).or_else(first) {
        Some(layers) => kind_of_layers(story.log, &layers),
        None => "packet".to_owned(),
    }
}

/// The layers of a packet's first step that has addresses: before it there may be steps of a payload alone.
pub(crate) fn with_addresses(story: &Story<'_>, packet: &Packet) -> Option<Layers> {
    let mut layers = packet.steps.iter().map(|&step| story.layers(&story.steps[step]));
    layers.find(|layers| layers.ip.is_some() || layers.arp.is_some())
}

/// What a packet with these layers is, with its ends by their names.
pub(crate) fn kind_of_layers(log: &Log, layers: &Layers) -> String {
    let name = |address: IpAddr| log.name_of(address).map_or_else(|| address.to_string(), ToOwned::to_owned);
    if let Some(arp) = layers.arp {
        let what = match arp.operation {
            arp::Operation::Request => "ARP request",
            arp::Operation::Reply => "ARP reply",
            arp::Operation::Other(_) => "ARP packet",
        };
        let by = log.owner_of_mac(arp.sender.mac).map(ToOwned::to_owned);
        let by = by.unwrap_or_else(|| name(arp.sender.address.into()));
        return match arp.operation {
            arp::Operation::Request => format!("{what} from {by} for {}", name(arp.target.address.into())),
            arp::Operation::Reply | arp::Operation::Other(_) => {
                format!("{what} from {by} to {}", name(arp.target.address.into()))
            }
        };
    }
    let vlans: String = layers.vlans.iter().map(|vlan| format!(" in VLAN {vlan}")).collect();
    let Some(header) = layers.ip else {
        return match layers.ethernet {
            Some(ethernet) => format!("frame of type 0x{:04x}{vlans}", ethernet.ether_type),
            None => "payload".to_owned(),
        };
    };
    let what = match (header.protocol, layers.icmp) {
        (_, Some(message)) => match message {
            icmp::Message::EchoRequest { .. } => "ICMP echo request",
            icmp::Message::EchoReply { .. } => "ICMP echo reply",
            icmp::Message::Unreachable(_) => "ICMP destination unreachable",
            icmp::Message::TimeExceeded => "ICMP time exceeded",
            icmp::Message::PacketTooBig { .. } => "ICMP packet too big",
            icmp::Message::Other { .. } => "ICMP message",
        }
        .to_owned(),
        (ip::UDP, _) => "UDP".to_owned(),
        (ip::TCP, _) => "TCP".to_owned(),
        (ip::IGMP, _) => "IGMP".to_owned(),
        (protocol, _) => format!("IP protocol {protocol}"),
    };
    let (from, to) = (name(header.source), name(header.destination));
    match layers.ports {
        Some((source, destination)) => format!("{what} from {from}:{source} to {to}:{destination}"),
        None => format!("{what} from {from} to {to}"),
    }
}

/// What became of one packet.
pub(crate) fn finding(story: &Story<'_>, packet: &Packet) -> Finding {
    let mut taken = BTreeSet::new();
    let mut ignored = BTreeSet::new();
    let mut died: Vec<(&Step, &str, Option<&'static str>)> = Vec::new();
    let mut open = None;
    let mut fragments: BTreeMap<&str, (&Step, Vec<Fragment>)> = BTreeMap::new();
    for step in story.ends(packet) {
        let node = story.log.places()[step.event.place as usize].node();
        if step.is_merged {
            continue;
        }
        if story.has_fragments
            && let Some(fragment) = story.layers(step).fragment
            && story.fate(step) == Fate::Taken
        {
            fragments.entry(node).or_insert_with(|| (step, Vec::new())).1.push(fragment);
            continue;
        }
        match story.fate(step) {
            Fate::Taken | Fate::Repeated => _ = taken.insert(node.to_owned()),
            Fate::Ignored => _ = ignored.insert(node.to_owned()),
            Fate::Dropped { reason, words } => died.push((step, reason, words)),
            fate @ (Fate::Held | Fate::Lost) => open = Some((step, fate)),
        }
    }
    for (node, (step, fragments)) in fragments {
        if are_all(fragments) {
            taken.insert(node.to_owned());
        } else {
            // It waits for the others.
            open.get_or_insert((step, Fate::Held));
        }
    }
    if !taken.is_empty() {
        let mut by_reason: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (step, reason, words) in died {
            let places = by_reason.entry(words.unwrap_or(reason).to_owned()).or_default();
            places.insert(where_it_died(story.log, step));
        }
        return if by_reason.is_empty() {
            Finding::Arrived { at: taken }
        } else {
            Finding::Partly { at: taken, died: by_reason }
        };
    }
    if let Some(&(step, reason, words)) = died.last() {
        return Finding::Died {
            place: where_it_died(story.log, step),
            reason: words.unwrap_or(reason).to_owned(),
            counter: words.map(|_| reason.to_owned()),
            round: round_of(story, step),
        };
    }
    match open {
        Some((step, Fate::Held)) if story.layers(step).fragment.is_some() => {
            Finding::Held { place: format!("at {}", story.log.places()[step.event.place as usize].node()) }
        }
        Some((step, Fate::Held)) => Finding::Held { place: where_it_died(story.log, step) },
        Some((step, _)) => {
            let inside = matches!(step.event.kind, EventKind::Delivered { .. });
            Finding::Lost { place: place_in_words(&story.log.places()[step.event.place as usize]), inside }
        }
        None => Finding::Unclaimed { at: ignored },
    }
}

/// The nodes of a loop that a copy went round before its last step; empty if it did not.
fn round_of(story: &Story<'_>, last: &Step) -> Vec<String> {
    let path = story.path(last);
    let arrivals = path.iter().filter(|step| matches!(step.event.kind, EventKind::Delivered { .. }));
    let nodes: Vec<&str> =
        arrivals.map(|step| story.log.places()[step.event.place as usize].node()).collect();
    let Some((&end, before)) = nodes.split_last() else { return Vec::new() };
    let Some(begin) = before.iter().rposition(|&node| node == end) else { return Vec::new() };
    nodes[begin..].iter().map(|&node| node.to_owned()).collect()
}

/// The place of a drop: `at r1`, `at r1's vlan`, `on link a-b`.
pub(crate) fn where_it_died(log: &Log, step: &Step) -> String {
    let place = &log.places()[step.event.place as usize];
    let to = match step.event.kind {
        EventKind::Dropped { to, .. } => to,
        _ => None,
    };
    match (place, to) {
        (Place::Interface { node, link, .. }, Some(to)) if !link.is_empty() => {
            format!("on link {link}, {}", from_to(log, node, step.event.place, to))
        }
        (Place::Interface { node, name, link, .. }, _) if !link.is_empty() => {
            format!("at {node}:{name}, before link {link}")
        }
        (Place::Interface { node, name, .. }, _) => format!("at {node}:{name}"),
        (Place::Machine { node, .. }, _) if place.is_host() => format!("at {node}"),
        (Place::Machine { .. }, _) => format!("at {}", name_of_place(place)),
    }
}

/// The ends of the way on which a link lost a frame; captures may not say who was to receive it.
pub(crate) fn from_to(log: &Log, node: &str, from: u32, to: u32) -> String {
    match log.places().get(to as usize) {
        Some(receiver) if to != from => format!("from {node} to {}", receiver.node()),
        Some(_) | None => format!("from {node}"),
    }
}

/// A place in words: `a:eth0`, `a's host`, `a's application of flow f`.
pub(crate) fn name_of_place(place: &Place) -> String {
    match place {
        Place::Interface { node, name, .. } => format!("{node}:{name}"),
        Place::Machine { node, name, flow: None } => format!("{node}'s {name}"),
        Place::Machine { node, name, flow: Some(flow) } => {
            let name = if name.is_empty() { "application" } else { name };
            format!("{node}'s {name} of flow {flow}")
        }
    }
}

/// A place as a sentence has it.
fn place_in_words(place: &Place) -> String {
    match place {
        Place::Interface { node, name, .. } => format!("interface {name} of node {node}"),
        Place::Machine { .. } => name_of_place(place),
    }
}

/// What an ICMP error says, and who sent it.
fn error_text(log: &Log, error: IcmpError) -> String {
    let by = log.name_of(error.by).map_or_else(|| error.by.to_string(), ToOwned::to_owned);
    let what = match error.message {
        icmp::Message::Unreachable(reason) => match reason {
            icmp::Unreachable::Network => "there is no route",
            icmp::Unreachable::Host => "the host does not answer",
            icmp::Unreachable::Protocol => "nothing takes its protocol",
            icmp::Unreachable::Port => "nothing has its port",
            icmp::Unreachable::Prohibited => "it is forbidden",
            icmp::Unreachable::Other(_) => "it cannot be delivered",
        }
        .to_owned(),
        icmp::Message::TimeExceeded => "its hop limit is used up, or a fragment is missing".to_owned(),
        icmp::Message::PacketTooBig { mtu } => format!("packet too big, the next link takes {mtu} B"),
        icmp::Message::EchoRequest { .. } | icmp::Message::EchoReply { .. } | icmp::Message::Other { .. } => {
            "it is at fault".to_owned()
        }
    };
    format!("{by} reports by ICMP: {what}")
}
