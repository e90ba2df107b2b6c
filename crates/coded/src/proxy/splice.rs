//! Two stream ports joined: what is opened on one side goes on on the other.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use hopcast_core::{Instant, Item, Outbox, Port, Reactive, StreamId, StreamItem};

/// Maximum number of pairs of streams at once; a stream beyond them is reset. Chosen: it bounds memory.
const MAX_PAIRS: usize = 65_536;

/// Joins the streams of two machines below it, `Below(0)` and `Below(1)`.
///
/// A stream that a peer has opened on one side is opened on the other with its addresses exchanged: from who opened it
/// to whom it was opened; or, by [`Splice::towards`], always between the same two. Everything else passes as it comes,
/// so back-pressure, half-close and reset do.
#[derive(Default)]
pub struct Splice {
    /// For each side, the streams and the stream on the other that each is joined to.
    pairs: [BTreeMap<StreamId, JoinedStream>; 2],
    /// From where to where streams go on that were opened on side 0.
    onwards: Option<(SocketAddr, SocketAddr)>,
    next_id: u64,
    out: Outbox,
    opened: u64,
    resets: u64,
    refused: u64,
    wrong_items: u64,
}

/// The other stream of a pair.
struct JoinedStream {
    other: StreamId,
    /// Whether no more bytes come from it.
    finished: bool,
}

impl Splice {
    /// A splice without streams.
    pub fn new() -> Self {
        Self::default()
    }

    /// A splice that takes every stream from `Below(0)` on, over `Below(1)`, from `local` to `remote`.
    pub fn towards(local: SocketAddr, remote: SocketAddr) -> Self {
        Self { onwards: Some((local, remote)), ..Self::default() }
    }

    /// Resets all streams: whoever runs this is about to end.
    pub fn reset(&mut self) {
        for side in 0..2 {
            let ids: Vec<_> = self.pairs[side].keys().copied().collect();
            self.resets += ids.len() as u64 * u64::from(side == 0);
            ids.into_iter().for_each(|id| self.give(side, id, StreamItem::Reset));
        }
        self.pairs = Default::default();
    }

    /// Number of pairs of streams.
    pub fn pairs(&self) -> usize {
        self.pairs[0].len()
    }

    fn give(&mut self, side: usize, id: StreamId, item: StreamItem) {
        self.out.push(Port::Below(side as u32), Item::Stream(id, item));
    }

    fn on_stream(&mut self, side: usize, id: StreamId, item: StreamItem) {
        let far = 1 - side;
        if let StreamItem::Open { local, remote } = item {
            if self.pairs[side].contains_key(&id) || self.pairs() >= MAX_PAIRS {
                self.refused += 1;
                return self.give(side, id, StreamItem::Reset);
            }
            let other = StreamId(self.next_id);
            self.next_id += 2;
            self.opened += 1;
            self.pairs[side].insert(id, JoinedStream { other, finished: false });
            self.pairs[far].insert(other, JoinedStream { other: id, finished: false });
            let (local, remote) = self.onwards.filter(|_| side == 0).unwrap_or((remote, local));
            return self.give(far, other, StreamItem::Open { local, remote });
        }
        // What crosses the end of a stream on its way is for nobody.
        let Some(half) = self.pairs[side].get_mut(&id) else { return };
        let other = half.other;
        match item {
            StreamItem::Open { .. } | StreamItem::Opened | StreamItem::Transmitted(_) => {}
            StreamItem::Data(_) | StreamItem::Credit(_) => self.give(far, other, item),
            StreamItem::Finish => {
                half.finished = true;
                self.give(far, other, StreamItem::Finish);
                if self.pairs[far].get(&other).is_some_and(|half| half.finished) {
                    self.forget(side, id);
                }
            }
            StreamItem::Reset => {
                self.resets += 1;
                self.give(far, other, StreamItem::Reset);
                self.forget(side, id);
            }
        }
    }

    fn forget(&mut self, side: usize, id: StreamId) {
        if let Some(half) = self.pairs[side].remove(&id) {
            self.pairs[1 - side].remove(&half.other);
        }
    }
}

impl Reactive for Splice {
    fn react(&mut self, _now: Instant, port: Port, item: Item) {
        match (port, item) {
            (Port::Below(side @ (0 | 1)), Item::Stream(id, item)) => self.on_stream(side as usize, id, item),
            _ => self.wrong_items += 1,
        }
    }

    fn next(&mut self) -> Option<(Port, Item)> {
        self.out.pop()
    }

    fn is_pending(&self) -> bool {
        // After `reset`, which is called between turns.
        !self.out.is_empty()
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        report("streams_spliced", self.opened);
        report("streams_reset", self.resets);
        report("streams_refused", self.refused);
        report("wrong_items", self.wrong_items);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopcast_core::{Buffer, Machine};

    const NOW: Instant = Instant::ZERO;

    fn open() -> StreamItem {
        StreamItem::Open { local: "10.0.0.9:80".parse().unwrap(), remote: "10.0.0.1:4000".parse().unwrap() }
    }

    /// A splice with stream 1 of side 0 joined to stream 0 of side 1.
    fn spliced() -> Splice {
        let mut splice = Splice::new();
        splice.handle(NOW, Port::Below(0), Item::Stream(StreamId(1), open()));
        let across = StreamItem::Open {
            local: "10.0.0.1:4000".parse().unwrap(),
            remote: "10.0.0.9:80".parse().unwrap(),
        };
        assert_eq!(splice.poll(NOW), Some((Port::Below(1), Item::Stream(StreamId(0), across))));
        splice
    }

    fn pass(splice: &mut Splice, side: u32, id: u64, item: StreamItem) -> Option<(u32, u64, StreamItem)> {
        splice.handle(NOW, Port::Below(side), Item::Stream(StreamId(id), item));
        let passed = splice.poll(NOW).map(|(port, item)| match (port, item) {
            (Port::Below(side), Item::Stream(StreamId(id), item)) => (side, id, item),
            other => panic!("{other:?}"),
        });
        assert_eq!(splice.poll(NOW), None);
        passed
    }

    #[test]
    fn a_stream_goes_on_to_where_it_is_told() {
        let ends: [SocketAddr; 2] = ["10.0.0.9:81".parse().unwrap(), "10.0.0.10:80".parse().unwrap()];
        let mut splice = Splice::towards(ends[0], ends[1]);
        let onwards = StreamItem::Open { local: ends[0], remote: ends[1] };
        assert_eq!(pass(&mut splice, 0, 1, open()), Some((1, 0, onwards)));
    }

    #[test]
    fn bytes_and_credit_pass_both_ways() {
        let mut splice = spliced();
        let data = StreamItem::Data(Buffer::copy_from(b"x"));
        assert_eq!(pass(&mut splice, 0, 1, data.clone()), Some((1, 0, data.clone())));
        assert_eq!(pass(&mut splice, 1, 0, data.clone()), Some((0, 1, data)));
        assert_eq!(pass(&mut splice, 1, 0, StreamItem::Credit(7)), Some((0, 1, StreamItem::Credit(7))));
        assert_eq!(pass(&mut splice, 1, 0, StreamItem::Opened), None);
    }

    #[test]
    fn each_direction_ends_by_itself_and_a_pair_is_forgotten_after_both() {
        let mut splice = spliced();
        assert_eq!(pass(&mut splice, 0, 1, StreamItem::Finish), Some((1, 0, StreamItem::Finish)));
        assert_eq!(splice.pairs(), 1);
        assert_eq!(pass(&mut splice, 1, 0, StreamItem::Finish), Some((0, 1, StreamItem::Finish)));
        assert_eq!(splice.pairs(), 0);
        assert_eq!(pass(&mut splice, 1, 0, StreamItem::Credit(9)), None);
    }

    #[test]
    fn a_reset_passes_and_ends_both() {
        let mut splice = spliced();
        assert_eq!(pass(&mut splice, 1, 0, StreamItem::Reset), Some((0, 1, StreamItem::Reset)));
        assert_eq!(splice.pairs(), 0);
    }

    #[test]
    fn all_are_reset_on_both_sides_when_it_ends() {
        let mut splice = spliced();
        splice.reset();
        let resets: Vec<_> = core::iter::from_fn(|| splice.poll(NOW)).collect();
        let expected = [(0, 1), (1, 0)];
        assert_eq!(
            resets,
            expected.map(|(side, id)| (Port::Below(side), Item::Stream(StreamId(id), StreamItem::Reset)))
        );
        assert_eq!(splice.pairs(), 0);
    }

    #[test]
    fn a_stream_opened_twice_is_refused() {
        let mut splice = spliced();
        assert_eq!(pass(&mut splice, 0, 1, open()), Some((0, 1, StreamItem::Reset)));
        assert_eq!(splice.pairs(), 1);
    }

    #[test]
    fn beyond_65536_pairs_a_stream_is_reset() {
        let mut splice = Splice::new();
        for id in 0..65_536 {
            assert!(matches!(
                pass(&mut splice, 0, 2 * id + 1, open()),
                Some((1, _, StreamItem::Open { .. }))
            ));
        }
        assert_eq!(pass(&mut splice, 0, 1 << 20, open()), Some((0, 1 << 20, StreamItem::Reset)));
        assert_eq!(splice.pairs(), 65_536);
    }
}
