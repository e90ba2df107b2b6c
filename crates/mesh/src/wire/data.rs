//! Packets that carry clients' frames, and containers for one originator.
//!
//! ```text
//!  0      1         2     3      4             10       16        17         18
//! | type | version | TTL | TTVN | destination |                               frame …      (unicast)
//! | type | version | TTL | TTVN | destination | source | subtype | reserved | frame …      (unicast with source)
//!
//!  0      1         2     3                 4             10           16       18       20
//! | type | version | TTL | no. | prio | rsv | destination | originator | number | length | fragment …  (fragment)
//!
//!  0      1         2     3          4             10       16         18         20
//! | type | version | TTL | reserved | destination | source | TVLV len | reserved | containers …
//!
//!  0      1         2     3          4          8            14
//! | type | version | TTL | reserved | number   | originator | frame …                      (broadcast)
//! | type | version | TTL | reserved | TVLV len | containers, frame …                       (multicast, 6 bytes)
//! ```

use hopcast_core::{Malformed, Reader, Writer};
use hopcast_wire::ethernet::Mac;

use super::field::{Field, header};

/// Subtype of a packet with its source that carries a client's frame (`BATADV_P_DATA`). The others are those of the
/// distributed ARP table.
pub const SUBTYPE_DATA: u8 = 1;
/// Subtype: a question to the distributed ARP table.
pub const SUBTYPE_ARP_GET: u8 = 2;
/// Subtype: an entry for the distributed ARP table.
pub const SUBTYPE_ARP_PUT: u8 = 3;
/// Subtype: an answer from a node's own cache.
pub const SUBTYPE_ARP_CACHE_REPLY: u8 = 4;

header! {
    /// A frame for one originator.
    Unicast of Unicast, 10 bytes {
        /// Hops that it may go yet.
        ttl: u8;
        /// Version of the destination's translation table by which the destination was chosen.
        ttvn: u8;
        /// Originator that is to hand the frame to its client.
        destination: Mac;
    }
}

header! {
    /// A frame for one originator, with its sender.
    Unicast4Addr of Unicast4Addr, 18 bytes {
        /// Hops that it may go yet.
        ttl: u8;
        /// Version of the destination's translation table by which the destination was chosen.
        ttvn: u8;
        /// Originator that is to hand the frame to its client.
        destination: Mac;
        /// Originator that sent it.
        source: Mac;
        /// Purpose: [`SUBTYPE_DATA`], or one of the distributed ARP table's.
        subtype: u8, reserved 1;
    }
}

header! {
    /// A frame that is flooded through the mesh.
    Broadcast of Broadcast, 14 bytes {
        /// Hops that it may go yet.
        ttl: u8, reserved 1;
        /// Sequence number of the originator's broadcasts.
        seqno: u32;
        /// Originator that sent it first.
        originator: Mac;
    }
}

header! {
    /// A fragment of a packet.
    Fragment of Fragment, 20 bytes {
        /// Hops that it may go yet.
        ttl: u8;
        /// Place in the packet, and priority.
        place: Place;
        /// Originator that is to have the packet.
        destination: Mac;
        /// Originator that cut the packet.
        originator: Mac;
        /// Number of the packet, the same in each of its fragments.
        seqno: u16;
        /// Length of the packet in bytes.
        total_len: u16;
    }
}

/// Place of a fragment in its packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Number of the fragment, 0 to 15: 0 is the packet's end, and the highest its begin.
    pub number: u8,
    /// Priority of the packet (IEEE 802.1Q), 0 to 7.
    pub priority: u8,
}

impl Field for Place {
    const LEN: usize = 1;
    fn read(reader: &mut Reader<'_>, name: &'static str) -> Result<Self, Malformed> {
        let byte = reader.u8(name)?;
        Ok(Self { number: byte >> 4, priority: byte >> 1 & 7 })
    }
    fn write(&self, writer: &mut Writer<'_>) {
        writer.u8(self.number << 4 | (self.priority & 7) << 1);
    }
}

header! {
    /// Containers for one originator.
    UnicastTvlv of UnicastTvlv, 20 bytes {
        /// Hops that it may go yet.
        ttl: u8, reserved 1;
        /// Originator that they are for.
        destination: Mac;
        /// Originator that they are of.
        source: Mac;
        /// Length of the containers in bytes.
        tvlv_len: u16, reserved 2;
    }
}

header! {
    /// A frame for several originators, whom a [tracker](super::tvlv::Tracker) among its containers lists.
    Multicast of Multicast, 6 bytes {
        /// Hops that it may go yet.
        ttl: u8, reserved 1;
        /// Length of the containers in front of the frame, in bytes.
        tvlv_len: u16;
    }
}
