//! The receive buffer: puts data in order, holds it until the application grants credit, and offers the window.

use std::collections::{BTreeMap, VecDeque};

use hopcast_core::Buffer;

use super::sack::SackBlocks;

/// Payloads shorter than this are joined with what they follow, so that they cost little more than their bytes. Chosen;
/// a larger limit copies more, a smaller one keeps more overhead.
const MAX_SMALL: usize = 512;
/// Maximum length of what they are joined to, in bytes. Chosen; longer would be copied more often as it grows.
const MAX_JOINED: usize = 4096;
/// The receive buffer's bytes for each segment out of order, so that tiny ones cannot use up the memory. Chosen; larger
/// drops more of what small writes send, smaller keeps more overhead.
const BYTES_PER_SEGMENT: u64 = 512;

/// The receiving half of a connection.
#[derive(Clone, Debug)]
pub(super) struct Receiver {
    /// The next sequence number expected.
    next: u64,
    /// The sequence number behind the last byte admitted, as advertised.
    edge: u64,
    /// The last acknowledgement number sent.
    pub(super) acknowledged: u64,
    capacity: u64,
    scale: u8,
    /// In order, waiting for credit.
    ready: VecDeque<Buffer>,
    ready_bytes: u64,
    credit: u64,
    out_of_order: BTreeMap<u64, Buffer>,
    pub(super) blocks: SackBlocks,
    /// The sequence number of the FIN, once one has come.
    fin: Option<u64>,
    /// Maximum length of a payload so far: what the peer's full segments seem to be.
    largest_segment: u64,
}

/// The verdict on a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// Nothing with a sequence number.
    Nothing,
    /// The next bytes; with `gap_filled` they joined all that had come out of order.
    InOrder { gap_filled: bool },
    /// Something behind a gap.
    OutOfOrder,
    /// Something that was there already.
    Duplicate,
    /// More than there is room for.
    Pruned,
}

impl Receiver {
    /// A receiver that expects `next` first and holds up to `capacity` bytes.
    pub(super) fn new(next: u64, capacity: u64) -> Self {
        Self {
            next,
            edge: next,
            acknowledged: next,
            capacity,
            scale: 0,
            ready: VecDeque::new(),
            ready_bytes: 0,
            credit: 0,
            out_of_order: BTreeMap::new(),
            blocks: SackBlocks::default(),
            fin: None,
            largest_segment: 536,
        }
    }

    /// Begins anew once the peer's first sequence number is known; the credit stays.
    pub(super) fn begin(&mut self, next: u64, scale: u8) {
        *self = Self { credit: self.credit, scale, ..Self::new(next, self.capacity) };
    }

    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    pub(super) const fn capacity(&self) -> u64 {
        self.capacity
    }

    pub(super) const fn largest_segment(&self) -> u64 {
        self.largest_segment
    }

    /// Whether the segment `seq..end` lies in the window (RFC 9293 section 3.10.7.4, as lenient as Linux).
    pub(super) fn admits(&self, seq: u64, end: u64) -> bool {
        end >= self.acknowledged && seq <= self.edge.max(self.next)
    }

    /// Whether the FIN and everything before it has arrived.
    pub(super) fn is_finished(&self) -> bool {
        self.fin.is_some_and(|fin| self.next > fin)
    }

    pub(super) fn has_gap(&self) -> bool {
        !self.out_of_order.is_empty()
    }

    /// Takes a segment in.
    pub(super) fn take(&mut self, seq: u64, mut payload: Buffer, fin: bool) -> Arrival {
        let end = seq + payload.len() as u64;
        self.largest_segment = self.largest_segment.max(payload.len() as u64);
        // A FIN in front of what has already come is a lie.
        let held =
            self.out_of_order.last_key_value().map_or(0, |(start, payload)| start + payload.len() as u64);
        if fin && end >= self.next.max(held) && end <= self.edge && self.fin.is_none_or(|known| known == end)
        {
            self.fin = Some(end);
        }
        if payload.is_empty() && !fin {
            return Arrival::Nothing;
        }
        // Data behind the FIN, and data behind the window's edge, are not there.
        let limit = self.fin.unwrap_or(u64::MAX).min(self.edge);
        if end <= self.next && !(fin && self.fin == Some(self.next)) {
            self.blocks.duplicated(seq, end.max(seq + 1));
            return Arrival::Duplicate;
        }
        if end > limit {
            payload.truncate(usize::try_from(limit.saturating_sub(seq)).unwrap_or(usize::MAX));
        }
        if seq <= self.next {
            let had_gap = self.has_gap();
            if seq < self.next && !payload.is_empty() {
                self.blocks.duplicated(seq, self.next.min(end));
                payload.advance((self.next - seq) as usize);
            }
            let before = self.next;
            self.accept(payload);
            self.join();
            if self.next == before {
                return Arrival::Pruned;
            }
            self.blocks.advance(self.next);
            return Arrival::InOrder { gap_filled: had_gap && !self.has_gap() };
        }
        self.keep(seq, payload)
    }

    /// Puts a payload that comes next at the end of what is ready.
    fn accept(&mut self, payload: Buffer) {
        let len = payload.len();
        self.next += len as u64;
        self.ready_bytes += len as u64;
        match self.ready.back_mut() {
            _ if len == 0 => {}
            Some(last) if len < MAX_SMALL && last.len() + len <= MAX_JOINED => last.append(&payload),
            _ => self.ready.push_back(payload),
        }
    }

    /// Moves data that is now in order, and the FIN, over.
    fn join(&mut self) {
        while let Some(first) = self.out_of_order.first_entry() {
            let start = *first.key();
            if start > self.next {
                break;
            }
            let mut payload = first.remove();
            let known = (self.next - start) as usize;
            if known >= payload.len() {
                continue;
            }
            payload.advance(known);
            self.accept(payload);
        }
        if self.fin == Some(self.next) {
            self.next += 1;
            self.out_of_order.clear();
        }
    }

    /// Keeps a payload that lies behind a gap.
    fn keep(&mut self, mut start: u64, mut payload: Buffer) -> Arrival {
        if payload.is_empty() {
            return Arrival::OutOfOrder;
        }
        let limit = (self.capacity / BYTES_PER_SEGMENT).max(16);
        if self.out_of_order.len() as u64 >= limit {
            return Arrival::Pruned;
        }
        let mut end = start + payload.len() as u64;
        let whole = (start, end);
        if let Some((&before, known)) = self.out_of_order.range(..=start).next_back() {
            let known_end = before + known.len() as u64;
            if known_end >= end {
                self.blocks.duplicated(start, end);
                self.blocks.arrived(start, end);
                return Arrival::Duplicate;
            }
            if known_end > start {
                self.blocks.duplicated(start, known_end);
                payload.advance((known_end - start) as usize);
                start = known_end;
            }
        }
        while let Some((&after, known)) = self.out_of_order.range(start..end).next() {
            let known_end = after + known.len() as u64;
            self.blocks.duplicated(after, known_end.min(end));
            if known_end > end {
                payload.truncate((after - start) as usize);
                end = after;
                break;
            }
            self.out_of_order.remove(&after);
        }
        self.blocks.arrived(whole.0, whole.1);
        if end == start {
            return Arrival::Duplicate;
        }
        let small = payload.len() < MAX_SMALL;
        match self.out_of_order.range_mut(..start).next_back() {
            Some((&before, last))
                if small
                    && before + last.len() as u64 == start
                    && last.len() + payload.len() <= MAX_JOINED =>
            {
                last.append(&payload);
            }
            _ => {
                self.out_of_order.insert(start, payload);
            }
        }
        Arrival::OutOfOrder
    }

    /// Takes a grant of the application.
    pub(super) fn grant(&mut self, credit: u64) {
        self.credit = self.credit.saturating_add(credit);
    }

    /// The next bytes for the application, as far as it has granted credit.
    pub(super) fn deliver(&mut self) -> Option<Buffer> {
        let first = self.ready.front_mut()?;
        if self.credit == 0 {
            return None;
        }
        let part = if first.len() as u64 <= self.credit {
            self.ready.pop_front()?
        } else {
            let granted = self.credit as usize;
            let part = Buffer::copy_from(&first[..granted]);
            first.advance(granted);
            part
        };
        self.credit -= part.len() as u64;
        self.ready_bytes -= part.len() as u64;
        Some(part)
    }

    /// Whether everything that came has been delivered.
    pub(super) fn is_drained(&self) -> bool {
        self.ready.is_empty()
    }

    /// The edge that the free space permits: never back, and not by silly steps (RFC 9293 section 3.8.6.2.2).
    fn permitted_edge(&self) -> u64 {
        let edge = self.free_edge();
        let step = self.largest_segment.min(self.capacity / 2);
        if edge >= self.edge + step { edge } else { self.edge.max(self.next) }
    }

    /// End of the free space of the buffer: a place in the stream that only reading moves, and which may lie before
    /// what has already come.
    fn free_edge(&self) -> u64 {
        (self.next + self.capacity).saturating_sub(self.ready_bytes)
    }

    /// The window field for a segment that is about to be sent, which thereby is advertised.
    pub(super) fn advertise(&mut self) -> u16 {
        let permitted = self.permitted_edge();
        let window = permitted - self.next;
        // Rounded down, unless that would take back what was advertised; but rounding up never adds up to more than one
        // unit beyond the buffer, however small the steps are in which a stalled reader's window is used up.
        let unit = 1u64 << self.scale;
        let limit = (self.free_edge() + unit).max(self.edge);
        let up = window.div_ceil(unit);
        let field = if permitted == self.edge && self.next + (up << self.scale) <= limit {
            up
        } else {
            window / unit
        };
        let field = field.min(u64::from(u16::MAX));
        self.edge = self.edge.max(self.next + (field << self.scale));
        field as u16
    }

    /// The window field of a SYN, which is not scaled.
    pub(super) fn advertise_unscaled(&mut self) -> u16 {
        let field = self.capacity.min(u64::from(u16::MAX));
        self.edge = self.edge.max(self.next + field);
        field as u16
    }

    /// Whether the window has opened so far that the peer should hear of it at once (Linux `tcp_cleanup_rbuf`).
    pub(super) fn has_opened(&self) -> bool {
        let advertised = self.edge.saturating_sub(self.next);
        let now = self.permitted_edge() - self.next;
        2 * advertised <= self.capacity && now > 0 && now >= 2 * advertised
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(range: core::ops::Range<u64>) -> Buffer {
        Buffer::copy_from(&range.map(|n| n as u8).collect::<Vec<_>>())
    }

    fn receiver(capacity: u64) -> Receiver {
        let mut receiver = Receiver::new(0, capacity);
        receiver.begin(0, 0);
        receiver.advertise();
        receiver
    }

    #[test]
    fn pieces_in_any_order_with_any_overlap_become_the_stream() {
        let mut receiver = receiver(5000);
        receiver.grant(1000);
        for range in [50..60, 20..30, 25..55, 58..70, 10..22, 0..5, 3..12] {
            receiver.take(range.start, payload(range), false);
        }
        let mut stream = Vec::new();
        while let Some(part) = receiver.deliver() {
            stream.extend_from_slice(&part);
        }
        assert_eq!(stream, (0..70).collect::<Vec<u8>>());
        assert_eq!(receiver.next(), 70);
    }

    #[test]
    fn the_window_shuts_without_credit_and_opens_by_more_than_a_silly_step() {
        let mut receiver = receiver(2000);
        for start in (0..2000).step_by(500) {
            receiver.take(start, payload(start..start + 500), false);
        }
        assert_eq!(receiver.advertise(), 0);
        receiver.grant(100);
        while receiver.deliver().is_some() {}
        assert!(!receiver.has_opened());
        assert_eq!(receiver.advertise(), 0);
        receiver.grant(900);
        while receiver.deliver().is_some() {}
        assert!(receiver.has_opened());
        assert_eq!(receiver.advertise(), 1000);
    }

    #[test]
    fn a_stalled_readers_window_shuts_however_small_the_steps_in_which_it_is_used() {
        let capacity = 6 << 20;
        let mut receiver = Receiver::new(0, capacity);
        receiver.begin(0, 7);
        receiver.advertise();
        for _ in 0..200_000 {
            receiver.take(receiver.next(), Buffer::zeroed(100), false);
            receiver.advertise();
        }
        assert!(receiver.ready_bytes <= capacity + 128, "{} bytes held", receiver.ready_bytes);
        assert!(receiver.ready_bytes > capacity - 1000);
    }

    #[test]
    fn a_fin_in_front_of_what_has_come_does_not_count() {
        let mut receiver = receiver(2000);
        receiver.take(40, payload(40..60), false);
        receiver.take(50, payload(50..50), true);
        receiver.take(0, payload(0..40), false);
        assert_eq!(receiver.next(), 60);
        assert!(!receiver.is_finished());
    }

    #[test]
    fn a_fin_counts_once_everything_before_it_is_there() {
        let mut receiver = receiver(2000);
        assert_eq!(receiver.take(10, payload(10..20), true), Arrival::OutOfOrder);
        assert!(!receiver.is_finished());
        assert_eq!(receiver.take(0, payload(0..10), false), Arrival::InOrder { gap_filled: true });
        assert!(receiver.is_finished());
        assert_eq!(receiver.next(), 21);
        assert_eq!(receiver.take(10, payload(10..20), true), Arrival::Duplicate);
    }

    #[test]
    fn one_segment_out_of_order_is_kept_for_each_512_bytes_of_the_buffer() {
        let mut receiver = receiver(64 * 512);
        let kept =
            (1..200).filter(|n| receiver.take(100 * n, payload(0..1), false) == Arrival::OutOfOrder).count();
        assert_eq!(kept, 64);
    }

    #[test]
    fn payloads_below_512_bytes_are_joined_up_to_4096() {
        let joined = |len: u64, count: u64| {
            let mut receiver = receiver(1 << 16);
            for n in 0..count {
                receiver.take(n * len, Buffer::zeroed(len as usize), false);
            }
            receiver.ready.iter().map(|buffer| buffer.len()).collect::<Vec<_>>()
        };
        assert_eq!(joined(511, 9), [8 * 511, 511]);
        assert_eq!(joined(512, 3), [512; 3]);
        assert_eq!(joined(256, 17), [4096, 256]);
    }
}
