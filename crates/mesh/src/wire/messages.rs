//! The originator messages of a packet, of either version.

use std::marker::PhantomData;

use hopcast_core::{Malformed, Reader};

use super::{Header, packet_type};

/// An originator message, of which a packet holds one or several, each with its own containers.
pub trait OriginatorMessage: Header {
    /// Length of the containers behind it, in bytes.
    fn containers_len(&self) -> usize;
}

/// The messages of a packet, each with the bytes of its containers. It ends where the packet does, or at bytes that are
/// no message: a link may pad a packet with zeros, and zero is no version.
#[derive(Clone, Copy, Debug)]
pub struct Messages<'a, M> {
    rest: &'a [u8],
    of: PhantomData<M>,
}

impl<'a, M: OriginatorMessage> Messages<'a, M> {
    /// Those of a packet, of which the first must be whole.
    pub(super) fn parse(packet: &'a [u8]) -> Result<Self, Malformed> {
        first::<M>(packet).map(|_| Self { rest: packet, of: PhantomData })
    }
}

fn first<M: OriginatorMessage>(packet: &[u8]) -> Result<(M, &[u8], &[u8]), Malformed> {
    let (ogm, rest) = M::parse(packet)?;
    // The next message begins at an even place (`batadv_iv_ogm_aggr_packet`, `batadv_v_ogm_aggr_packet`).
    Malformed::unless(ogm.containers_len().is_multiple_of(2), "tvlv_len")?;
    let mut reader = Reader::new(rest);
    let containers = reader.take(ogm.containers_len(), "tvlv_len")?;
    Ok((ogm, containers, reader.rest()))
}

impl<'a, M: OriginatorMessage> Iterator for Messages<'a, M> {
    type Item = (M, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        // Each message takes at least its header's length, so the loop ends.
        if packet_type(self.rest) != Ok(M::TYPE) {
            return None;
        }
        let (ogm, containers, rest) = first(self.rest).ok()?;
        self.rest = rest;
        Some((ogm, containers))
    }
}
