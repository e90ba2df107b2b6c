//! Packets that are too long for a link: they are cut into fragments, and put together again by the node that they are
//! for, or by one on the way whose next link has room for the whole.

use std::collections::BTreeMap;

use hopcast_core::{Duration, Instant};
use hopcast_wire::ethernet::Mac;

use crate::wire::Header;
use crate::wire::data::Fragment;

/// Maximum number of fragments of a packet (`BATADV_FRAG_MAX_FRAGMENTS`).
pub(super) const MAX_FRAGMENTS: usize = 16;
/// Maximum length of a fragment with its header (`BATADV_FRAG_MAX_FRAG_SIZE`), so that no other link cuts it again.
const MAX_FRAGMENT: usize = 1280;
/// Maximum length of a packet in fragments.
const MAX_PACKET: usize = (MAX_FRAGMENT - Fragment::LEN) * MAX_FRAGMENTS;
/// Packets of an originator that can be incomplete at a time (`BATADV_FRAG_BUFFER_COUNT`).
const CHAINS: u16 = 8;
/// Time after which the fragments of an incomplete packet are dropped (`BATADV_FRAG_TIMEOUT`).
const TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of bytes in incomplete packets. Chosen: 50 packets of the longest; beyond, the oldest are dropped.
/// The kernel has no bound but that of each originator.
const MAX_BYTES: usize = 1 << 20;
/// Maximum number of incomplete packets, each of which takes half a kilobyte beside its bytes. Chosen: as many as 32
/// nodes can have under way to this one; beyond, the oldest are dropped.
const MAX_CHAINS: usize = 256;

/// The fragments of an incomplete packet.
#[derive(Debug)]
struct Chain {
    seqno: u16,
    total: usize,
    bytes: usize,
    since: Instant,
    fragments: [Option<Vec<u8>>; MAX_FRAGMENTS],
}

/// The incomplete packets, by originator and number.
#[derive(Debug, Default)]
pub(super) struct Fragments {
    chains: BTreeMap<(Mac, u16), Chain>,
    bytes: usize,
    last_seqno: u16,
}

impl Fragments {
    /// No fragments yet, and the number before that of the first packet that is cut: random in each life of a node, as
    /// the kernel's.
    pub(super) fn new(last_seqno: u16) -> Self {
        Self { last_seqno, ..Self::default() }
    }

    /// Number of the next packet that is cut.
    pub(super) const fn next_seqno(&mut self) -> u16 {
        self.last_seqno = self.last_seqno.wrapping_add(1);
        self.last_seqno
    }

    /// Takes a fragment. Returns the packet if it is complete.
    pub(super) fn receive(&mut self, now: Instant, header: Fragment, payload: &[u8]) -> Option<Vec<u8>> {
        let key = (header.originator, header.seqno % CHAINS);
        let total = usize::from(header.total_len);
        // One without a byte brings nothing, but would be kept.
        if total > MAX_PACKET || payload.is_empty() || payload.len() > total {
            return None;
        }
        if self.chains.get(&key).is_some_and(|chain| chain.seqno != header.seqno || chain.total != total) {
            self.drop_chain(key);
        }
        let new =
            || Chain { seqno: header.seqno, total, bytes: 0, since: now, fragments: Default::default() };
        let chain = self.chains.entry(key).or_insert_with(new);
        let slot = &mut chain.fragments[usize::from(header.place.number)];
        if slot.is_some() {
            return None;
        }
        *slot = Some(payload.to_vec());
        chain.bytes += payload.len();
        chain.since = now;
        self.bytes += payload.len();
        let (bytes, total) = (chain.bytes, chain.total);
        if bytes >= total {
            let chain = self.drop_chain(key)?;
            // The fragment with the highest number is the first.
            return (bytes == total).then(|| chain.fragments.into_iter().rev().flatten().flatten().collect());
        }
        while (self.bytes > MAX_BYTES || self.chains.len() > MAX_CHAINS)
            && let Some(oldest) = self.chains.iter().min_by_key(|(_, chain)| chain.since).map(|(&key, _)| key)
        {
            self.drop_chain(oldest);
        }
        None
    }

    fn drop_chain(&mut self, key: (Mac, u16)) -> Option<Chain> {
        let chain = self.chains.remove(&key)?;
        self.bytes -= chain.bytes;
        Some(chain)
    }

    /// Drops the fragments of an originator.
    pub(super) fn forget(&mut self, originator: Mac) {
        let dropped = self.chains.extract_if((originator, 0)..(originator, CHAINS), |_, _| true);
        self.bytes -= dropped.map(|(_, chain)| chain.bytes).sum::<usize>();
    }

    /// Drops the fragments of packets that will not be complete any more.
    pub(super) fn purge(&mut self, now: Instant) {
        self.chains.retain(|_, chain| {
            let kept = chain.since + TIMEOUT > now;
            if !kept {
                self.bytes -= chain.bytes;
            }
            kept
        });
    }
}

/// Maximum length of a packet that a node may send, if its shortest link takes packets of `mtu` bytes.
pub(super) fn max_packet(mtu: usize) -> usize {
    mtu.min(MAX_FRAGMENT).saturating_sub(Fragment::LEN) * MAX_FRAGMENTS
}

/// Cuts a packet for a link. Numbers and payloads of the fragments, in the order in which they are sent: the end of the
/// packet first. `None` if there would be too many.
pub(super) fn cut(packet: &[u8], mtu: usize) -> Option<impl Iterator<Item = (u8, &[u8])>> {
    let max = mtu.min(MAX_FRAGMENT).checked_sub(Fragment::LEN).filter(|&max| max > 0)?;
    let number = packet.len().div_ceil(max);
    if number > MAX_FRAGMENTS || packet.is_empty() {
        return None;
    }
    Some((0_u8..).zip(packet.rchunks(packet.len().div_ceil(number))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::data::Place;

    const NOW: Instant = Instant::ZERO;

    fn header(number: u8, seqno: u16, total_len: u16) -> Fragment {
        let place = Place { number, priority: 0 };
        Fragment { ttl: 50, place, destination: [1; 6], originator: [2; 6], seqno, total_len }
    }

    #[test]
    fn a_packet_is_cut_into_equal_parts_and_put_together_in_any_order() {
        let packet: Vec<u8> = (0..1510_u16).map(|n| n as u8).collect();
        let pieces: Vec<_> = cut(&packet, 1500).unwrap().collect();
        assert_eq!(
            pieces.iter().map(|(number, payload)| (*number, payload.len())).collect::<Vec<_>>(),
            [(0, 755), (1, 755)]
        );
        for order in [[0, 1], [1, 0]] {
            let mut fragments = Fragments::default();
            let (first, second) = (pieces[order[0]], pieces[order[1]]);
            assert_eq!(fragments.receive(NOW, header(first.0, 7, 1510), first.1), None);
            assert_eq!(fragments.receive(NOW, header(first.0, 7, 1510), first.1), None, "twice");
            assert_eq!(fragments.receive(NOW, header(second.0, 7, 1510), second.1).as_ref(), Some(&packet));
            assert_eq!(fragments.bytes, 0);
        }
        assert_eq!(cut(&[0; 20_160], 1500).unwrap().count(), 16);
        assert!(cut(&[0; 20_161], 1500).is_none() && cut(&packet, 20).is_none());
        assert_eq!(max_packet(1500), 20_160);
    }

    #[test]
    fn parts_that_never_complete_a_packet_are_bounded_and_dropped() {
        let mut fragments = Fragments::default();
        for originator in 0..255_u8 {
            for seqno in 0..20 {
                let header = Fragment { originator: [originator; 6], ..header(0, seqno, 20_000) };
                fragments.receive(NOW, header, &[0; 1400]);
                assert!(fragments.bytes <= MAX_BYTES && fragments.chains.len() <= MAX_CHAINS);
            }
        }
        let held: usize = fragments.chains.values().map(|chain| chain.bytes).sum();
        assert_eq!(held, fragments.bytes);
        fragments.purge(NOW + TIMEOUT);
        assert_eq!((fragments.bytes, fragments.chains.len()), (0, 0));
        assert_eq!(fragments.receive(NOW, header(0, 1, 20_161), &[0; 9]), None);
        assert_eq!(fragments.receive(NOW, header(0, 1, 10), &[0; 9]), None);
        assert_eq!(fragments.receive(NOW, header(1, 1, 10), &[0; 2]), None, "more than its length");
        assert_eq!(fragments.bytes, 0);
    }

    #[test]
    fn packets_of_one_byte_fragments_are_bounded_by_their_number_and_the_oldest_go_first() {
        let mut fragments = Fragments::default();
        let of = |originator: u8| Fragment { originator: [originator; 6], ..header(0, 1, 2) };
        for (millis, originator) in (0..).zip(0..=255) {
            let now = NOW + Duration::from_millis(millis);
            assert_eq!(fragments.receive(now, of(originator), b"b"), None);
        }
        assert_eq!(fragments.chains.len(), MAX_CHAINS);
        let late = NOW + Duration::from_secs(1);
        assert_eq!(fragments.receive(late, Fragment { seqno: 2, ..of(255) }, b"b"), None);
        assert_eq!(fragments.chains.len(), MAX_CHAINS);
        let end = |originator| Fragment { place: Place { number: 1, priority: 0 }, ..of(originator) };
        assert_eq!(fragments.receive(late, end(1), b"a").as_deref(), Some(&b"ab"[..]));
        assert_eq!(fragments.receive(late, end(0), b"a"), None, "the oldest was dropped");
    }

    #[test]
    fn a_fragment_without_a_byte_is_not_kept_and_those_of_a_forgotten_originator_are_dropped() {
        let mut fragments = Fragments::default();
        assert_eq!(fragments.receive(NOW, header(0, 1, 10), b""), None);
        assert!(fragments.chains.is_empty());
        for (originator, seqno) in [([2; 6], 0), ([2; 6], 7), ([3; 6], 0)] {
            fragments.receive(NOW, Fragment { originator, ..header(0, seqno, 10) }, b"abc");
        }
        fragments.forget([2; 6]);
        assert_eq!((fragments.bytes, fragments.chains.len()), (3, 1));
    }
}
