//! Packets of B.A.T.M.A.N. V: originator messages, whose metric is throughput, and probes of links (ELP).
//!
//! ```text
//!  0      1         2            8        12              16
//! | type | version | originator | number | interval in ms |                                   (ELP)
//!
//!  0      1         2     3       4        8            14         16           20
//! | type | version | TTL | flags | number | originator | TVLV len | throughput | containers … (OGM2)
//! ```

use hopcast_core::Malformed;
use hopcast_wire::ethernet::Mac;

use super::field::header;
use super::messages::{Messages, OriginatorMessage};

header! {
    /// A probe of a link. The kernel sends four zero bytes behind it.
    Elp of Elp, 16 bytes {
        /// Primary interface of the node that sends it.
        originator: Mac;
        /// Sequence number of the interface.
        seqno: u32;
        /// Time to the next probe, in milliseconds.
        interval: u32;
    }
}

header! {
    /// An originator message of B.A.T.M.A.N. V.
    Ogm2 of Ogm2, 20 bytes {
        /// Hops that it may go yet.
        ttl: u8;
        /// None is defined; they are passed on.
        flags: u8;
        /// Sequence number of the originator.
        seqno: u32;
        /// Primary interface of the node that made it.
        originator: Mac;
        /// Length of the containers behind it, in bytes.
        tvlv_len: u16;
        /// Throughput of the path from its sender to the originator, in units of 100 kbit/s.
        throughput: u32;
    }
}

impl OriginatorMessage for Ogm2 {
    #[inline]
    fn containers_len(&self) -> usize {
        self.tvlv_len.into()
    }
}

/// Reads the messages of a packet of type [`PacketType::Ogm2`](super::PacketType::Ogm2).
///
/// # Errors
/// The first message is malformed.
pub fn messages(packet: &[u8]) -> Result<Messages<'_, Ogm2>, Malformed> {
    Messages::parse(packet)
}
