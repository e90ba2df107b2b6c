//! Settings of multicast.

/// Settings of multicast in a mesh. The defaults are the kernel's.
#[derive(Clone, Debug)]
pub struct MulticastConfig {
    /// How frames to groups are sent; default [`MulticastMode::Packet`].
    pub mode: MulticastMode,
    /// Whether all frames to groups are flooded, whoever wants them (`batctl multicast_forceflood`); default false.
    /// Set, every node transmits every frame; unset, a node whose memberships are not known is not reached.
    pub force_flood: bool,
    /// Maximum number of unicast copies of a frame (`batctl multicast_fanout`); default 16. Lower, frames to few nodes
    /// are flooded; higher, the sender's links carry more copies.
    pub fanout: usize,
    /// Limit of the size of multicast packets; default [`SizeLimit::Kernel`].
    pub size_limit: SizeLimit,
    /// Maximum number of multicast packets among which the destinations of a frame are divided if one has no room for
    /// all; default 1, as the kernel, which then does without. Higher, links near the sender carry the frame more than
    /// once.
    pub max_packets: usize,
    /// The client of the node's own interface, from which it learns which groups are wanted; default [`Above::Host`].
    pub above: Above,
    /// Whether the node's own host routes packets to groups, of IPv4 and of IPv6: all routable groups are wanted then;
    /// default neither.
    pub router: [bool; 2],
    /// Maximum number of groups that are announced; default 512. Beyond, all groups of the IP version are wanted.
    pub max_groups: usize,
}

impl Default for MulticastConfig {
    fn default() -> Self {
        Self {
            mode: MulticastMode::Packet,
            force_flood: false,
            fanout: 16,
            size_limit: SizeLimit::Kernel,
            max_packets: 1,
            above: Above::Host,
            router: [false; 2],
            max_groups: 512,
        }
    }
}

/// How a frame to a group that some nodes want is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MulticastMode {
    /// The kernel's decision: in a multicast packet; if one cannot be sent, as unicast copies; if they are too many,
    /// flooded.
    Packet,
    /// As unicast copies; if they are too many, flooded.
    Unicast,
    /// Flooded.
    Broadcast,
    /// As is expected to reach most; see the [module's documentation](super).
    Auto,
}

/// Limit of the size of multicast packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeLimit {
    /// The kernel's code: the packet has at most 1280 bytes.
    Kernel,
    /// The kernel's documentation (the wiki's page on multicast optimizations): a frame has at most 1222 bytes for 2
    /// destinations, 1186 for 8, 1030 for 32, 454 for 128 and 46 for 196. That is 1234 - 6n, and 12 less in the rows
    /// from 32 on.
    Documented,
}

impl SizeLimit {
    /// Whether a frame of this length, with its Ethernet header, fits a multicast packet to a number of destinations.
    pub fn fits(self, frame_len: usize, destinations: usize) -> bool {
        match self {
            Self::Kernel => frame_len + super::packet::header_len(destinations) <= super::MAX_PACKET,
            Self::Documented => {
                let stricter = if destinations >= 32 { 12 } else { 0 };
                frame_len + 6 * destinations + stricter <= 1234
            }
        }
    }
}

/// The client of a node's own interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Above {
    /// A host. The groups that it reports by IGMP and MLD, or by
    /// [memberships](hopcast_core::Item::Membership), are wanted, and those of all nodes. A leave is believed, and no
    /// report is ever too old: a host that is a member without a report is not reached.
    Host,
    /// A bridge, whose snooping says what is wanted behind its other ports, by
    /// [memberships](hopcast_core::Item::Membership): in a group, when that gets its first member or loses its last; in
    /// the unspecified address of an IP version, when it does not know who listens, or knows again. It does not know
    /// without a querier, with one behind another port, to which alone members may have reported, and with a multicast
    /// router there. Until it says that it knows, all groups are wanted.
    Bridge,
    /// Clients of which nothing is known: all groups are wanted, always.
    Unknown,
}
