//! Applications with streams at both edges of a chain.

use std::collections::BTreeMap;

use hopcast_core::{Buffer, Duration, StreamId, StreamItem, StreamReader};

use super::chain::{Chain, address};

/// Bytes that are read of a stream before more is granted.
const WINDOW: u64 = 50_000;
/// Maximum number of bytes written at once.
const WRITE: u64 = 10_000;

/// The applications, and the streams between them. Edges are 0, the first node, and 1, the last.
#[derive(Default)]
pub(super) struct Apps {
    ends: [BTreeMap<u64, End>; 2],
    opened: [u64; 2],
    /// Bytes that each stream carries there and back, by who opened it and its number.
    plans: BTreeMap<(usize, u64), [u64; 2]>,
    /// Streams that were over in both directions, with everything in them; by edge.
    pub(super) complete: [usize; 2],
    /// Streams that ended with a reset, by edge.
    pub(super) reset: [usize; 2],
    pub(super) read: [u64; 2],
}

/// A stream at one edge.
struct End {
    reader: StreamReader,
    /// Whether arriving bytes are read, or wait.
    reads: bool,
    unread: usize,
    credit: u64,
    plan: u64,
    written: u64,
    expected: u64,
    read: u64,
    finished: bool,
    peer_finished: bool,
}

impl Apps {
    /// Opens a stream that carries these numbers of bytes there and back.
    pub(super) fn open(&mut self, chain: &mut Chain, edge: usize, there: u64, back: u64) -> StreamId {
        let id = 2 * self.opened[edge];
        self.opened[edge] += 1;
        self.plans.insert((edge, id), [there, back]);
        let item = StreamItem::Open { local: address(200), remote: address(201) };
        chain.give_stream(node(chain, edge), StreamId(id), item);
        self.begin(chain, edge, id, there, back);
        StreamId(id)
    }

    fn begin(&mut self, chain: &mut Chain, edge: usize, id: u64, plan: u64, expected: u64) {
        let end = End {
            reader: StreamReader::new(WINDOW),
            reads: true,
            unread: 0,
            credit: 0,
            plan,
            written: 0,
            expected,
            read: 0,
            finished: false,
            peer_finished: false,
        };
        let grant = end.reader.first_grant();
        self.ends[edge].insert(id, end);
        chain.give_stream(node(chain, edge), StreamId(id), grant);
        self.write(chain, edge, id);
    }

    /// An application reads no more, or reads on.
    pub(super) fn set_reads(&mut self, chain: &mut Chain, edge: usize, reads: bool) {
        for id in self.ends[edge].keys().copied().collect::<Vec<_>>() {
            let Some(end) = self.ends[edge].get_mut(&id) else { continue };
            end.reads = reads;
            let unread = core::mem::take(&mut end.unread);
            if let Some(grant) = end.reader.consumed(unread) {
                chain.give_stream(node(chain, edge), StreamId(id), grant);
            }
        }
    }

    pub(super) fn reset(&mut self, chain: &mut Chain, edge: usize, id: StreamId) {
        if self.ends[edge].remove(&id.0).is_some() {
            self.reset[edge] += 1;
            chain.give_stream(node(chain, edge), id, StreamItem::Reset);
        }
    }

    /// The applications of an edge, and what they have open, are gone with it.
    pub(super) fn forget(&mut self, edge: usize) {
        self.ends[edge].clear();
    }

    pub(super) fn open_streams(&self) -> usize {
        self.ends.iter().map(BTreeMap::len).sum()
    }

    /// Runs the chain for a while, and the applications with it.
    pub(super) fn run(&mut self, chain: &mut Chain, span: Duration) {
        let end = chain.now + span;
        while chain.now < end {
            chain.run((chain.now + Duration::from_millis(1)).min(end));
            self.pump(chain);
        }
    }

    fn pump(&mut self, chain: &mut Chain) {
        while !chain.streamed.is_empty() {
            for (at, StreamId(id), item) in core::mem::take(&mut chain.streamed) {
                let edge = usize::from(at != 0);
                assert_eq!(at, node(chain, edge));
                self.on_item(chain, edge, id, item);
            }
        }
    }

    fn on_item(&mut self, chain: &mut Chain, edge: usize, id: u64, item: StreamItem) {
        if let StreamItem::Open { local, remote } = item {
            assert_eq!((local, remote), (address(201), address(200)));
            let [there, back] = self.plans[&(1 - edge, id - 1)];
            chain.give_stream(node(chain, edge), StreamId(id), StreamItem::Opened);
            self.begin(chain, edge, id, back, there);
            return;
        }
        let Some(end) = self.ends[edge].get_mut(&id) else { return };
        match item {
            StreamItem::Credit(bytes) => {
                end.credit += bytes;
                self.write(chain, edge, id);
            }
            StreamItem::Data(bytes) => {
                assert!(!end.peer_finished && end.reader.received(bytes.len()), "within the credit");
                let from = direction(edge, id, 1 - edge);
                for &byte in &bytes[..] {
                    assert_eq!(byte, pattern(from, end.read));
                    end.read += 1;
                }
                self.read[edge] += bytes.len() as u64;
                if !end.reads {
                    end.unread += bytes.len();
                } else if let Some(grant) = end.reader.consumed(bytes.len()) {
                    chain.give_stream(node(chain, edge), StreamId(id), grant);
                }
            }
            StreamItem::Finish => {
                assert_eq!(end.read, end.expected, "all of it");
                end.peer_finished = true;
                self.close(edge, id);
            }
            StreamItem::Reset => {
                self.ends[edge].remove(&id);
                self.reset[edge] += 1;
            }
            StreamItem::Opened | StreamItem::Transmitted(_) => {}
            StreamItem::Open { .. } => unreachable!(),
        }
    }

    fn write(&mut self, chain: &mut Chain, edge: usize, id: u64) {
        let from = direction(edge, id, edge);
        while let Some(end) = self.ends[edge].get_mut(&id) {
            let len = end.credit.min(end.plan - end.written).min(WRITE);
            if len == 0 {
                if end.written == end.plan && !end.finished {
                    end.finished = true;
                    chain.give_stream(node(chain, edge), StreamId(id), StreamItem::Finish);
                    self.close(edge, id);
                }
                return;
            }
            let bytes: Vec<u8> = (end.written..end.written + len).map(|at| pattern(from, at)).collect();
            (end.written, end.credit) = (end.written + len, end.credit - len);
            chain.give_stream(node(chain, edge), StreamId(id), StreamItem::Data(Buffer::copy_from(&bytes)));
        }
    }

    fn close(&mut self, edge: usize, id: u64) {
        if self.ends[edge].get(&id).is_some_and(|end| end.finished && end.peer_finished) {
            self.ends[edge].remove(&id);
            self.complete[edge] += 1;
        }
    }
}

fn node(chain: &Chain, edge: usize) -> usize {
    if edge == 0 { 0 } else { chain.last() }
}

/// A key of one direction of one stream, by which its bytes differ from others: the stream, as `edge` calls it, and who
/// writes.
fn direction(edge: usize, id: u64, writer: usize) -> u64 {
    let opener = if id.is_multiple_of(2) { edge } else { 1 - edge };
    (id & !1) * 4 + opener as u64 * 2 + writer as u64
}

fn pattern(direction: u64, at: u64) -> u8 {
    (direction.wrapping_mul(0x9E37_79B9) ^ at.wrapping_mul(0x85EB_CA6B) >> 7) as u8
}
