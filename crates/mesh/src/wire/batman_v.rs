//! Packets of B.A.T.M.A.N. V: originator messages, whose metric is throughput, and probes of links (ELP).
//!
//! ```text
//!  0      1         2            8        12              16
//! | type | version | originator | number | interval in ms |                                   (ELP)
//!
//!  0      1         2     3       4        8            14         16           20
//! | type | version | TTL | flags | number | originator | TVLV len | throughput | containers … (OGM2)
//! ```

use hopcast_core::{Malformed, Reader};
use hopcast_wire::ethernet::Mac;

use super::field::header;
use super::{Header, PacketType, packet_type};

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

/// The originator messages of a packet, as [`ogm::Messages`](super::ogm::Messages).
#[derive(Clone, Copy, Debug)]
pub struct Messages<'a> {
    rest: &'a [u8],
}

/// Reads the messages of a packet of type [`PacketType::Ogm2`], each with the bytes of its containers.
///
/// # Errors
/// The first message is malformed.
pub fn messages(packet: &[u8]) -> Result<Messages<'_>, Malformed> {
    first(packet).map(|_| Messages { rest: packet })
}

fn first(packet: &[u8]) -> Result<(Ogm2, &[u8], &[u8]), Malformed> {
    let (ogm, rest) = Ogm2::parse(packet)?;
    // The next message begins at an even place (`batadv_iv_ogm_aggr_packet`, `batadv_v_ogm_aggr_packet`).
    Malformed::unless(ogm.tvlv_len.is_multiple_of(2), "tvlv_len")?;
    let mut reader = Reader::new(rest);
    let containers = reader.take(usize::from(ogm.tvlv_len), "tvlv_len")?;
    Ok((ogm, containers, reader.rest()))
}

impl<'a> Iterator for Messages<'a> {
    type Item = (Ogm2, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        if packet_type(self.rest) != Ok(PacketType::Ogm2) {
            return None;
        }
        let (ogm, containers, rest) = first(self.rest).ok()?;
        self.rest = rest;
        Some((ogm, containers))
    }
}
