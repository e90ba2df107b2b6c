//! Segments: hosts' interfaces between which frames pass, a link or a VLAN on it.

use hopcast_host::Prefix;
use hopcast_link::Attachment;
use hopcast_wire::vlan::{self, Tag};

use super::{Hop, Link, LinkId, NodeId};

/// A segment's place among the segments of a network.
pub type SegmentId = usize;

/// The segments of a network, in the order of the links, and those of one link in that of their tags.
#[derive(Clone, Debug, Default)]
pub struct Segments(Vec<Segment>);

/// Hosts' interfaces between which frames pass: a link, or a VLAN on it, with all that bridges join to it.
#[derive(Clone, Debug)]
pub struct Segment {
    /// The link; of several, the first.
    pub link: LinkId,
    /// The tags that its frames have there, from the outermost.
    pub(crate) tags: Vec<Tag>,
    /// The interfaces, in the order in which the link names its ends.
    pub ends: Vec<SegmentEnd>,
    /// The prefixes whose addresses its hosts have.
    pub(crate) prefixes: Vec<SegmentPrefix>,
    /// The links that bridges join, and the tags that its frames have on each; empty if there is but one and no mesh.
    pub(super) joins: Vec<(LinkId, Vec<Tag>)>,
    /// Whether a mesh is a part of it, whose frames are in the mesh's own on the links below.
    pub(super) is_meshed: bool,
    /// The smallest MTU of those links and of the mesh, in bytes; `None` if there is but one link.
    pub(super) joined_mtu: Option<u32>,
}

/// A host's interface on a segment.
#[derive(Clone, Copy, Debug)]
pub struct SegmentEnd {
    /// The node.
    pub node: NodeId,
    /// The number of the interface at its host.
    pub interface: u32,
    /// The link by which it leaves; of a bridge's host, that of the bridge's first port.
    pub link: LinkId,
    /// The attachment to that link.
    pub attachment: Attachment,
    /// Whether its frames leave by a mesh, whatever becomes of that link.
    pub(super) is_meshed: bool,
}

/// A prefix of a segment, and where it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentPrefix {
    /// The prefix.
    pub prefix: Prefix,
    /// The service whose interfaces have it; `None` of the link's own.
    pub service: Option<usize>,
}

impl Segments {
    /// The segments of a network without services: its links.
    pub fn plain(nodes: usize, links: &[Link]) -> Self {
        let mut interfaces = vec![0; nodes];
        let segment = |(number, link): (LinkId, &Link)| {
            let end = |(attachment, &node): (Attachment, &NodeId)| {
                interfaces[node] += 1;
                SegmentEnd {
                    node,
                    interface: interfaces[node] - 1,
                    link: number,
                    attachment,
                    is_meshed: false,
                }
            };
            let ends = link.ends.iter().enumerate().map(end).collect();
            let (tags, prefixes, joins) = (Vec::new(), given(link), Vec::new());
            Segment { link: number, tags, ends, prefixes, joins, is_meshed: false, joined_mtu: None }
        };
        Self(links.iter().enumerate().map(segment).collect())
    }

    /// These segments, which are in order.
    pub(super) const fn new(segments: Vec<Segment>) -> Self {
        Self(segments)
    }

    /// The segments.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Segment> {
        self.0.iter()
    }

    /// One segment.
    pub fn get(&self, segment: SegmentId) -> &Segment {
        &self.0[segment]
    }

    /// The first segment that joins a node with all `others`: the node's end of it.
    pub fn joining(&self, node: NodeId, others: &[NodeId]) -> Option<SegmentEnd> {
        self.iter().find_map(|segment| {
            let end = |node: NodeId| segment.ends.iter().find(|end| end.node == node);
            end(node).filter(|_| others.iter().all(|&other| end(other).is_some())).copied()
        })
    }

    /// Whether all hosts' interfaces have the same MTU.
    pub(super) fn have_one_mtu(&self, links: &[Link]) -> bool {
        let of_segment =
            |segment: &'_ Segment| segment.ends.iter().map(|end| segment.mtu(links, end.hop())).collect();
        let mut all = self.iter().flat_map::<Vec<u32>, _>(of_segment);
        let first = all.next();
        all.all(|mtu| Some(mtu) == first)
    }
}

impl SegmentEnd {
    /// The hop that leaves by it.
    pub const fn hop(&self) -> Hop {
        Hop { link: self.link, attachment: self.attachment }
    }
}

impl Segment {
    /// Maximum length of a packet that can be sent on it by `from`, in bytes. Of links that bridges join, the smallest
    /// counts: whoever sends does not know by which its packets leave.
    pub fn mtu(&self, links: &[Link], from: Hop) -> u32 {
        self.joined_mtu.unwrap_or_else(|| mtu_within(&links[from.link], from.attachment, &self.tags))
    }

    /// Whether its frames are on a link.
    pub fn covers(&self, link: LinkId) -> bool {
        self.links().any(|other| other == link)
    }

    /// The links that its frames are on.
    pub fn links(&self) -> impl Iterator<Item = LinkId> {
        let alone = (self.joins.is_empty() && !self.is_meshed).then_some(self.link);
        self.joins.iter().map(|&(link, _)| link).chain(alone)
    }

    /// The links on which its frames have no tag.
    pub fn untagged_links(&self) -> impl Iterator<Item = LinkId> {
        let alone = (self.joins.is_empty() && !self.is_meshed && self.tags.is_empty()).then_some(self.link);
        self.joins.iter().filter(|(_, tags)| tags.is_empty()).map(|&(link, _)| link).chain(alone)
    }

    /// Whether a mesh is a part of it.
    pub const fn is_meshed(&self) -> bool {
        self.is_meshed
    }

    /// The name for people: the link's, `mesh over radio`, or `VLAN 7 of lan`.
    pub fn name(&self, links: &[Link]) -> String {
        let link = &links[self.link].name;
        let whole = if self.is_meshed { format!("mesh over {link}") } else { link.clone() };
        self.vlan().map_or_else(|| whole.clone(), |vlan| format!("{vlan} of {whole}"))
    }

    /// The VLAN that it is on its link, `VLAN 7`, or `VLAN 100.7` within another; `None` of a link itself.
    pub fn vlan(&self) -> Option<String> {
        let ids: Vec<String> = self.tags.iter().map(|tag| tag.id.to_string()).collect();
        let kind = if self.tags.first()?.kind == vlan::PROVIDER { " (802.1ad)" } else { "" };
        Some(format!("VLAN {}{kind}", ids.join(".")))
    }

    /// The prefixes whose addresses its hosts have.
    pub fn prefixes(&self) -> impl Iterator<Item = Prefix> {
        self.prefixes.iter().map(|given| given.prefix)
    }
}

/// Maximum length of a packet in frames with these tags, which a link counts as a part of the packet.
pub(super) fn mtu_within(link: &Link, from: Attachment, tags: &[Tag]) -> u32 {
    less_tags(link.direction(from).mtu, tags)
}

/// The smallest MTU of these links, with the tags of frames on each.
pub(super) fn smallest_mtu(joins: &[(LinkId, Vec<Tag>)], links: &[Link]) -> Option<u32> {
    let of_link = |(link, tags): &'_ (LinkId, Vec<Tag>)| {
        let link = &links[*link];
        (0..link.ends.len()).map(|attachment| mtu_within(link, attachment, tags)).min()
    };
    joins.iter().filter_map(of_link).min()
}

/// The length that is left beside these tags.
pub(super) const fn less_tags(mtu: u32, tags: &[Tag]) -> u32 {
    mtu.saturating_sub((tags.len() * vlan::TAG) as u32)
}

/// The prefixes that a link itself has.
pub(super) fn given(link: &Link) -> Vec<SegmentPrefix> {
    link.prefixes.iter().map(|&prefix| SegmentPrefix { prefix, service: None }).collect()
}
