//! The file that is being sent, and the pieces of it that are under way.

use std::collections::{BTreeSet, VecDeque};

use hopcast_core::{Duration, Instant};

use super::catalogue::File;

/// Maximum number of pieces that are under way: read, or sent and not acknowledged. Chosen: 8 MiB fill 100 Mbit/s at a
/// round trip of 0.6 s; more is memory, and what is lost when the transport gives up.
pub(super) const WINDOW: usize = 128;
/// Time for which the transport has sent no data after which it has given up what is not acknowledged. Chosen: above
/// the time between two packets at 12 kbit/s with a loss of two thirds.
const QUIET: Duration = Duration::from_secs(5);
/// Time by which a member's last progress may be older than another's, before the others no longer wait for it. Chosen:
/// a piece takes eight seconds at 64 kbit/s.
const MAX_LAG: Duration = Duration::from_secs(20);

/// One round of one file.
#[derive(Debug)]
pub(crate) struct Transfer {
    pub(crate) id: u64,
    /// The first piece that was not looked at.
    next: u32,
    /// Pieces that the disk is asked for.
    reading: BTreeSet<u32>,
    /// Pieces that were read, and that the transport has not taken.
    read: VecDeque<(u32, Vec<u8>)>,
    /// Pieces that the transport has taken, and that somebody lacks.
    sent: BTreeSet<u32>,
    /// When each member was heard to have more of it than before, or the round began.
    progress: Vec<Instant>,
    /// Packets of data that the transport had sent when it was looked at, and since when it is that number.
    packets: (u64, Instant),
}

impl Transfer {
    pub(crate) fn new(id: u64, now: Instant, members: usize, packets: u64) -> Self {
        Self {
            id,
            next: 0,
            reading: BTreeSet::new(),
            read: VecDeque::new(),
            sent: BTreeSet::new(),
            progress: vec![now; members],
            packets: (packets, now),
        }
    }

    /// The next piece to be read, if there is room for it.
    pub(crate) fn next(&mut self, file: &File, up: &[usize]) -> Option<u32> {
        if self.reading.len() + self.read.len() + self.sent.len() >= WINDOW {
            return None;
        }
        let piece = file.next_lacking(self.next, up)?;
        self.next = piece + 1;
        self.reading.insert(piece);
        Some(piece)
    }

    /// The disk has read a piece.
    pub(crate) fn was_read(&mut self, piece: u32, bytes: Vec<u8>) {
        if self.reading.remove(&piece) {
            self.read.push_back((piece, bytes));
        }
    }

    /// The next piece for the transport.
    pub(crate) fn to_send(&self) -> Option<&(u32, Vec<u8>)> {
        self.read.front()
    }

    /// The transport has taken that piece.
    pub(crate) fn was_sent(&mut self, now: Instant) {
        if let Some((piece, _)) = self.read.pop_front() {
            self.sent.insert(piece);
            self.packets.1 = now;
        }
    }

    /// A member has more than before.
    pub(crate) fn progressed(&mut self, now: Instant, member: usize) {
        self.progress[member] = now;
    }

    /// The members that the others wait for.
    fn in_pace(&self, up: &[usize]) -> Vec<usize> {
        let newest = up.iter().map(|&member| self.progress[member]).max().unwrap_or(Instant::ZERO);
        up.iter().copied().filter(|&member| self.progress[member] + MAX_LAG >= newest).collect()
    }

    /// Whether all that can be sent was, and members that the others wait for have yet to say that they have it.
    pub(crate) fn waits(&self, file: &File, up: &[usize]) -> bool {
        self.reading.is_empty() && self.read.is_empty() && file.next_lacking(self.next, up).is_none()
    }

    /// Strikes off what all have. True if the round is over: nothing more is to be sent or expected.
    pub(crate) fn settle(&mut self, now: Instant, file: &File, up: &[usize], packets: u64) -> bool {
        if packets != self.packets.0 {
            self.packets = (packets, now);
        }
        let in_pace = self.in_pace(up);
        self.sent.retain(|&piece| in_pace.iter().any(|&member| file.lacks(member, piece)));
        let quiet = now >= self.packets.1 + QUIET;
        if quiet {
            self.sent.clear();
        }
        self.waits(file, up) && self.sent.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::catalogue::Catalogue;
    use crate::group::wire::Standing;

    const UP: [usize; 2] = [0, 1];

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    /// A file of 300 pieces that both members lack, and its transfer.
    fn begun() -> (Catalogue, Transfer) {
        let mut catalogue = Catalogue::default();
        catalogue.add((1, "a".into(), 300 << 16), 300, 2);
        let all = Some(Standing::lacks(0..u32::MAX));
        catalogue.get_mut(1).unwrap().standings = vec![all.clone(), all];
        (catalogue, Transfer::new(1, at(0), 2, 0))
    }

    /// Reads and sends all that may be; the pieces.
    fn send(transfer: &mut Transfer, file: &File, now: Instant) -> Vec<u32> {
        let pieces: Vec<u32> = std::iter::from_fn(|| transfer.next(file, &UP)).collect();
        pieces.iter().for_each(|&piece| transfer.was_read(piece, vec![0]));
        while transfer.to_send().is_some() {
            transfer.was_sent(now);
        }
        pieces
    }

    #[test]
    fn no_more_is_under_way_than_the_slower_of_those_that_keep_pace_has() {
        let (mut catalogue, mut transfer) = begun();
        assert_eq!(send(&mut transfer, catalogue.get(1).unwrap(), at(0)).len(), WINDOW);
        let file = catalogue.get_mut(1).unwrap();
        file.standings[0] = Some(Standing::lacks(100..u32::MAX));
        transfer.progressed(at(1), 0);
        assert!(!transfer.settle(at(1), file, &UP, 1));
        assert_eq!(send(&mut transfer, file, at(1)), [0; 0], "the other has nothing yet");
        file.standings[1] = Some(Standing::lacks(50..u32::MAX));
        transfer.progressed(at(2), 1);
        transfer.settle(at(2), file, &UP, 2);
        assert_eq!(send(&mut transfer, file, at(2)).len(), 50);
        // The other falls silent.
        file.standings[0] = Some(Standing::lacks(178..u32::MAX));
        transfer.progressed(at(30), 0);
        transfer.settle(at(30), file, &UP, 3);
        assert_eq!(send(&mut transfer, file, at(30)).len(), 122, "it is no longer waited for");
    }

    #[test]
    fn a_round_ends_when_all_have_it_or_the_transport_has_given_up() {
        for given_up in [false, true] {
            let (mut catalogue, mut transfer) = begun();
            let file = catalogue.get_mut(1).unwrap();
            file.pieces = 20;
            assert_eq!(send(&mut transfer, file, at(0)).len(), 20);
            assert!(transfer.waits(file, &UP) && !transfer.settle(at(1), file, &UP, 1));
            if given_up {
                assert!(!transfer.settle(at(5), file, &UP, 1));
                assert!(transfer.settle(at(6), file, &UP, 1));
            } else {
                file.standings = vec![Some(Standing::Has), Some(Standing::Has)];
                assert!(transfer.settle(at(1), file, &UP, 1));
            }
        }
    }
}
