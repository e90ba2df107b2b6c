//! Entries of the table of originators, as B.A.T.M.A.N. IV has them.

use hopcast_core::Instant;

use super::tq::Average;
use crate::routing::{Algorithm, Originator, Via};
use crate::window;

/// The algorithm.
pub(crate) struct Iv;

impl Algorithm for Iv {
    type Neighbour = ();
    type Out = Out;
    type Path = Path;

    fn metric(path: &Path) -> Option<u32> {
        Some(u32::from(path.quality.get()))
    }

    fn keep<'a>(out: &mut Out, paths: impl Iterator<Item = &'a Path>) {
        out.received = paths.fold(0, |bits, path| bits | path.received);
    }
}

/// State of an originator for packets that leave by one interface.
#[derive(Clone, Debug, Default)]
pub(crate) struct Out {
    /// The sequence numbers that came by any candidate, as [`Path::received`] has those of each.
    received: u64,
    pub(super) last_ttl: u8,
    /// Number of the message whose containers were taken last; of the node's own packets alone.
    pub(super) announced: Option<u32>,
    /// The last of the node's own messages of that interface that came back from the originator: bit 0 is that of the
    /// message that was the last one sent when any came back last, and had this number.
    echoes: u64,
    last_sent: u32,
}

/// The path by a neighbour.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Path {
    /// The last sequence numbers that came by it: bit 0 is that of the newest that came by any.
    pub(super) received: u64,
    pub(super) quality: Average,
}

/// How a message's sequence number was known before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Duplicate {
    No,
    /// It came by another neighbour.
    OfOriginator,
    /// It came by the same neighbour.
    OfNeighbour,
    /// The originator may not have restarted so soon.
    Refused,
}

impl Originator<Iv> {
    /// Number of the node's own messages of an interface that came back, of the 64 up to the last one sent.
    #[inline]
    pub(super) fn echoed(&self, interface: usize, last_sent: u32) -> u32 {
        let Out { echoes, last_sent: before, .. } = self.outs[interface].state;
        echoes.checked_shl(last_sent.wrapping_sub(before)).unwrap_or(0).count_ones()
    }

    /// Notes that one of the node's own messages came back, so many before the last one sent.
    pub(super) fn echo(&mut self, interface: usize, last_sent: u32, behind: u32) {
        let Out { echoes, last_sent: before, .. } = &mut self.outs[interface].state;
        let ago = last_sent.wrapping_sub(std::mem::replace(before, last_sent));
        *echoes = echoes.checked_shl(ago).unwrap_or(0) | 1 << behind;
    }

    /// Takes a message's sequence number that came by a neighbour.
    pub(super) fn receive(&mut self, now: Instant, out: usize, seqno: u32, from: Via) -> Duplicate {
        let place = self.place(from);
        let Self { outs, candidates, .. } = self;
        let entry = &mut outs[out];
        let ahead = seqno.wrapping_sub(entry.newest).cast_signed();
        if !candidates.is_empty() && entry.protection.refuses(now, ahead) {
            return Duplicate::Refused;
        }
        let received = place.map_or(0, |place| candidates[place].out(out).received);
        let duplicate = if window::contains(received, entry.newest, seqno) {
            Duplicate::OfNeighbour
        } else if window::contains(entry.state.received, entry.newest, seqno) {
            Duplicate::OfOriginator
        } else {
            Duplicate::No
        };
        if window::advance(&mut entry.state.received, ahead, place.is_some()) {
            // Until there is a candidate, no number is the newest.
            if !candidates.is_empty() {
                entry.newest = seqno;
            }
            for (number, candidate) in candidates.iter_mut().enumerate() {
                window::advance(&mut candidate.out(out).received, ahead, Some(number) == place);
            }
        } else if let Some(place) = place {
            window::advance(&mut candidates[place].out(out).received, ahead, true);
        }
        duplicate
    }

    /// Notes that a message did not come by any neighbour but one.
    pub(super) fn missed_by_others(&mut self, out: usize, from: Via) {
        let others = self.candidates.iter_mut().filter(|candidate| candidate.via != from);
        others.for_each(|candidate| candidate.out(out).quality.push(0));
    }
}
