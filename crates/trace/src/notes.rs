//! What else is to be known of packets whose place of death does not say it all.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use hopcast_wire::ethernet;

use crate::content::{Layers, Membership};
use crate::log::{EventKind, Log, Place};
use crate::story::{Fate, Packet, Step, Story};
use crate::verdict::{Finding, listed, name_of_place, with_addresses};

/// The notes on the packets of a story.
pub(crate) struct Notes<'s, 'l> {
    story: &'s Story<'l>,
    /// Whether hosts report to nobody, by version of IP; the whole log is searched for it.
    unasked: [OnceCell<bool>; 2],
}

impl<'s, 'l> Notes<'s, 'l> {
    pub(crate) fn of(story: &'s Story<'l>) -> Self {
        Self { story, unasked: Default::default() }
    }

    /// What else is to be known of a packet with a fate.
    pub(crate) fn of_packet(&self, packet: &Packet, finding: &Finding) -> Option<String> {
        claimed(self.story, packet)
            .or_else(|| self.flooded(packet))
            .or_else(|| of_counter(self.story, packet, finding))
    }

    /// The bridges that have sent a packet to a group by all ports, where hosts report that they are members and nobody
    /// asks: a bridge then does not know who is none.
    fn flooded(&self, packet: &Packet) -> Option<String> {
        let story = self.story;
        let group = with_addresses(story, packet)?.ip.map(|ip| ip.destination)?;
        let is_no_member =
            |step: &Step| matches!(story.fate(step), Fate::Dropped { reason, .. } if reason == NO_MEMBER);
        if !group.is_multicast() || !story.ends(packet).any(is_no_member) {
            return None;
        }
        let unasked =
            self.unasked[usize::from(group.is_ipv6())].get_or_init(|| is_unasked(story.log, group.is_ipv6()));
        let bridges = copiers(story, packet);
        (*unasked && !bridges.is_empty()).then(|| {
            format!(
                "no querier: nobody asks hosts which groups they are members of, and {} sent it by all ports",
                listed(&bridges)
            )
        })
    }
}

/// The counter of a host that is no member of a packet's group.
const NO_MEMBER: &str = "multicast_dropped";

/// Whether hosts report their groups in a version of IP, and no query is in the log.
fn is_unasked(log: &Log, ipv6: bool) -> bool {
    let all = (1..=log.contents()).filter_map(|number| log.content(number)).map(Layers::of);
    let of_version = all.filter(|layers| layers.ip.is_some_and(|ip| ip.destination.is_ipv6() == ipv6));
    let mut reports = false;
    for membership in of_version.filter_map(|layers| layers.membership) {
        match membership {
            Membership::Query => return false,
            Membership::Report => reports = true,
        }
    }
    reports
}

/// The services that have made several copies of a packet from one.
fn copiers(story: &Story<'_>, packet: &Packet) -> BTreeSet<String> {
    let mut copies: BTreeMap<(Option<usize>, u32), usize> = BTreeMap::new();
    for step in packet.steps.iter().map(|&step| &story.steps[step]) {
        let place = &story.log.places()[step.event.place as usize];
        let is_service = matches!(place, Place::Machine { flow: None, .. }) && !place.is_host();
        let is_copy = |of: &Step| {
            of.event.place == step.event.place && matches!(of.event.kind, EventKind::HandedOn { .. })
        };
        if is_service && is_copy(step) {
            // Copies with the same bytes follow each other.
            let mut before = step.before;
            while let Some(copy) = before.map(|before| &story.steps[before]).filter(|step| is_copy(step)) {
                before = copy.before;
            }
            *copies.entry((before, step.event.place)).or_default() += 1;
        }
    }
    let several = copies.into_iter().filter(|&(_, count)| count > 1);
    several.map(|((_, place), _)| name_of_place(&story.log.places()[place as usize])).collect()
}

/// The end of a packet whose IPv4 address several stations claim, and they.
fn claimed(story: &Story<'_>, packet: &Packet) -> Option<String> {
    let ends = ends(story, packet)?;
    ends.into_iter().find_map(|address| {
        let IpAddr::V4(v4) = address else { return None };
        let macs = story.rivals.get(&v4)?;
        let owners = macs.iter().map(|&mac| match story.log.owner_of_mac(mac) {
            Some(node) => node.to_owned(),
            None => ethernet::text(mac),
        });
        let owners: BTreeSet<String> = owners.collect();
        (owners.len() > 1).then(|| format!("{address} is claimed by {}", listed(&owners)))
    })
}

/// The addresses of the receiver and the sender.
fn ends(story: &Story<'_>, packet: &Packet) -> Option<[IpAddr; 2]> {
    let layers = with_addresses(story, packet)?;
    match (layers.ip, layers.arp) {
        (Some(ip), _) => Some([ip.destination, ip.source]),
        (None, Some(arp)) => Some([arp.target.address.into(), arp.sender.address.into()]),
        (None, None) => None,
    }
}

/// What is behind the rise of a counter of a packet that died.
fn of_counter(story: &Story<'_>, packet: &Packet, finding: &Finding) -> Option<String> {
    let Finding::Died { counter: Some(counter), .. } = finding else { return None };
    match &**counter {
        "too_big" | "unfragmented" => mtu_note(story, packet),
        "frames_without_tag" | "frames_of_other_vlans" => tag_note(story, packet),
        "unresolved" => {
            let name =
                |end: IpAddr| story.log.name_of(end).map_or_else(|| end.to_string(), ToOwned::to_owned);
            let [to, from] = ends(story, packet)?.map(name);
            Some(format!("ask for `arp between {from} and {to}`"))
        }
        _ => None,
    }
}

/// The machine that was the last to take a tag off a packet which died without it.
fn tag_note(story: &Story<'_>, packet: &Packet) -> Option<String> {
    let last = story.ends(packet).filter(|step| matches!(story.fate(step), Fate::Dropped { .. })).last()?;
    let mut path = story.path(last);
    path.push(last);
    let vlans: Vec<Vec<u16>> = path.iter().map(|step| story.layers(step).vlans).collect();
    let at = (1..path.len()).rfind(|&at| vlans[at].len() < vlans[at - 1].len())?;
    let off = vlans[at - 1].first()?;
    let place = name_of_place(&story.log.places()[path[at].event.place as usize]);
    Some(format!("{place} took its tag of VLAN {off} off"))
}

/// The length of a packet that was too long, and the MTUs of the links of the node that dropped it.
fn mtu_note(story: &Story<'_>, packet: &Packet) -> Option<String> {
    let last = story.ends(packet).last()?;
    let node = story.log.places()[last.event.place as usize].node();
    let length = story.layers(last).ip?.total_len;
    let mtus: Vec<String> = story
        .log
        .places()
        .iter()
        .filter_map(|place| match place {
            Place::Interface { node: of, link, mtu, .. } if of == node => Some(format!("{link} {mtu} B")),
            Place::Interface { .. } | Place::Machine { .. } => None,
        })
        .collect();
    Some(format!("it has {length} B, and the links take: {}", mtus.join(", ")))
}
