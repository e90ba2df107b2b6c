//! Originator messages (OGM) of B.A.T.M.A.N. IV. A packet holds one or several, each with its own containers.
//!
//! ```text
//!  0      1         2     3       4        8            14             20         21   22         24
//! | type | version | TTL | flags | number | originator | prev. sender | reserved | TQ | TVLV len | containers …
//! ```

use hopcast_core::Malformed;
use hopcast_wire::ethernet::Mac;

use super::field::header;
use super::messages::{Messages, OriginatorMessage};

/// Flag: the message did not come from the sender's best next hop to the originator. It shows the originator that its
/// link works in both directions, and says nothing about routes.
pub const NOT_BEST_NEXT_HOP: u8 = 1;
/// Flag: the sender had it from the originator itself, by the link on which it sends it.
pub const DIRECT_LINK: u8 = 4;

header! {
    /// An originator message of B.A.T.M.A.N. IV.
    Ogm of OgmIv, 24 bytes {
        /// Hops that it may go yet.
        ttl: u8;
        /// [`NOT_BEST_NEXT_HOP`] and [`DIRECT_LINK`]; others are passed on.
        flags: u8;
        /// Sequence number of the originator's interface.
        seqno: u32;
        /// Interface of the node that made it.
        originator: Mac;
        /// Interface from which its sender had it.
        previous_sender: Mac, reserved 1;
        /// Transmit quality of the path from its sender to the originator, 0 to [`MAX_TQ`](super::MAX_TQ).
        tq: u8;
        /// Length of the containers behind it, in bytes.
        tvlv_len: u16;
    }
}

impl OriginatorMessage for Ogm {
    #[inline]
    fn containers_len(&self) -> usize {
        self.tvlv_len.into()
    }
}

/// Reads the messages of a packet of type [`PacketType::OgmIv`](super::PacketType::OgmIv).
///
/// # Errors
/// The first message is malformed.
pub fn messages(packet: &[u8]) -> Result<Messages<'_, Ogm>, Malformed> {
    Messages::parse(packet)
}
