//! The grouping of receivers into packets.

mod depth_first;
mod least_bytes;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;
use std::net::Ipv6Addr;

use super::config::{Config, Grouping};
use super::tree::{Place, Tree};
use crate::Bitmap;
use crate::meadcast::wire::short;

/// The packets that each data goes out in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    /// The lists of MEADcast packets.
    pub packets: Vec<Group>,
    /// The receivers that are served by unicast, in the order of the sender's receivers.
    pub unicast: Vec<Ipv6Addr>,
}

/// The list of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Routers, and behind each the receivers that it serves.
    pub list: Vec<[u8; 16]>,
    /// Places of the routers.
    pub routers: Bitmap,
    /// Number of MEADcast routers in front of the one at which the paths of its routers part; 0 without `hold`.
    pub hold: u8,
    /// Of each router, the distance at which its path parts from that of the router before; 0 of the first, and of all
    /// without `hold`.
    pub branches: Vec<u8>,
}

/// A place of the tree with receivers that its router is to serve.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Section {
    place: usize,
    receivers: Vec<Ipv6Addr>,
}

impl Group {
    /// The group of some sections, of which short lists are in depth-first order.
    fn new(tree: &Tree, config: &Config, sections: &mut [Section]) -> Self {
        if config.short_lists {
            sections.sort_by_key(|section| tree.places[section.place].order);
            // Receivers of a subnet together.
            sections.iter_mut().for_each(|section| section.receivers.sort_unstable());
        }
        let mut group = Self { list: Vec::new(), routers: Bitmap::EMPTY, hold: 0, branches: vec![0] };
        for Section { place, receivers } in &*sections {
            group.routers = group.routers.with(group.list.len());
            group.list.push(tree.places[*place].router.octets());
            group.list.extend(receivers.iter().map(Ipv6Addr::octets));
        }
        if !config.hold {
            group.branches.resize(sections.len(), 0);
            return group;
        }
        let pairs = sections.array_windows();
        group.branches.extend(pairs.map(|[one, next]| tree.places[tree.common(one.place, next.place)].hops));
        let of_one = sections.first().map_or(0, |section| tree.places[section.place].hops);
        group.hold = group.branches[1..].iter().copied().min().unwrap_or(of_one).saturating_sub(1);
        group
    }

    /// The receivers, in the order of the list.
    pub fn receivers(&self) -> impl Iterator<Item = Ipv6Addr> {
        let places = self.list.iter().enumerate().filter(|(place, _)| !self.routers.has(*place));
        places.map(|(_, address)| Ipv6Addr::from(*address))
    }

    /// Destination of its packet: the first router, or the first receiver.
    pub(super) fn destination(&self, is_router: bool) -> Option<Ipv6Addr> {
        let place = if is_router { 0 } else { 1 };
        self.list.get(place).map(|octets| Ipv6Addr::from(*octets))
    }

    /// Its sections, for a short list.
    pub(super) fn sections(&self) -> impl Iterator<Item = short::Section<'_>> + Clone {
        short::sections(&self.list, self.routers, &self.branches)
    }
}

impl Groups {
    /// The groups of the receivers in a tree, of which small routers have been [cut](Tree::cut) for depth-first
    /// grouping, of a sender with this address.
    pub(super) fn new(tree: &Tree, config: &Config, source: Ipv6Addr, receivers: &[Ipv6Addr]) -> Self {
        let found = match config.grouping {
            Grouping::DepthFirst => depth_first::packets(tree, config),
            Grouping::LeastBytes => least_bytes::packets(tree, config, source),
        };
        let mut packets = Vec::new();
        for sections in found {
            add(tree, config, source, sections, &mut packets);
        }
        let grouped: BTreeSet<Ipv6Addr> = packets.iter().flat_map(Group::receivers).collect();
        let unicast = receivers.iter().copied().filter(|receiver| !grouped.contains(receiver)).collect();
        Self { packets, unicast }
    }
}

/// Adds the group of some sections, or several if its short list would be too long.
fn add(tree: &Tree, config: &Config, source: Ipv6Addr, mut sections: Vec<Section>, packets: &mut Vec<Group>) {
    let group = Group::new(tree, config, &mut sections);
    let fits =
        !config.short_lists || short::overhead(&source.octets(), group.sections()) <= config.longest_header();
    let is_smallest = matches!(&sections[..], [only] if only.receivers.len() == 1);
    if fits || is_smallest {
        packets.push(group);
        return;
    }
    let rest = match &mut sections[..] {
        [only] => {
            let half = only.receivers.len() / 2;
            vec![Section { place: only.place, receivers: only.receivers.split_off(half) }]
        }
        all => {
            let half = all.len() / 2;
            sections.split_off(half)
        }
    };
    add(tree, config, source, sections, packets);
    add(tree, config, source, rest, packets);
}

/// A line for each packet, and one for those by unicast.
impl fmt::Display for Groups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for group in &self.packets {
            f.write_str("list")?;
            for (place, address) in group.list.iter().enumerate() {
                let mark = if group.routers.has(place) { " |" } else { "" };
                write!(f, "{mark} {}", Ipv6Addr::from(*address))?;
            }
            writeln!(f)?;
        }
        if !self.unicast.is_empty() {
            f.write_str("unicast:")?;
            self.unicast.iter().try_for_each(|receiver| write!(f, " {receiver}"))?;
            writeln!(f)?;
        }
        Ok(())
    }
}
