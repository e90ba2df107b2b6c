//! Originator messages (OGM) of B.A.T.M.A.N. IV. A packet holds one or several, each with its own containers.
//!
//! ```text
//!  0      1         2     3       4        8            14             20         21   22         24
//! | type | version | TTL | flags | number | originator | prev. sender | reserved | TQ | TVLV len | containers …
//! ```

use hopcast_core::{Malformed, Reader};
use hopcast_wire::ethernet::Mac;

use super::field::header;
use super::{Header, PacketType, packet_type};

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

/// The messages of a packet. It ends where the packet does, or at bytes that are no message: a link may pad a packet
/// with zeros, and zero is no version.
#[derive(Clone, Copy, Debug)]
pub struct Messages<'a> {
    rest: &'a [u8],
}

/// Reads the messages of a packet of type [`PacketType::OgmIv`], each with the bytes of its containers.
///
/// # Errors
/// The first message is malformed.
pub fn messages(packet: &[u8]) -> Result<Messages<'_>, Malformed> {
    first(packet).map(|_| Messages { rest: packet })
}

fn first(packet: &[u8]) -> Result<(Ogm, &[u8], &[u8]), Malformed> {
    let (ogm, rest) = Ogm::parse(packet)?;
    // The next message begins at an even place (`batadv_iv_ogm_aggr_packet`, `batadv_v_ogm_aggr_packet`).
    Malformed::unless(ogm.tvlv_len.is_multiple_of(2), "tvlv_len")?;
    let mut reader = Reader::new(rest);
    let containers = reader.take(usize::from(ogm.tvlv_len), "tvlv_len")?;
    Ok((ogm, containers, reader.rest()))
}

impl<'a> Iterator for Messages<'a> {
    type Item = (Ogm, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        // A message is 24 bytes at least, so that there are no more than the packet is long.
        if packet_type(self.rest) != Ok(PacketType::OgmIv) {
            return None;
        }
        let (ogm, containers, rest) = first(self.rest).ok()?;
        self.rest = rest;
        Some((ogm, containers))
    }
}
