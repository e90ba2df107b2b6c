//! The workloads: applications as machines, over a datagram, a stream or a message port.
//!
//! Each workload has a sending and a receiving end that share a [`Meter`](crate::meter::Meter). They send real bytes:
//! numbered, with time stamps and a pattern (which repeats every 64 KiB). The receiving end compares every byte with
//! what was sent, so that every run detects a protocol that delivers wrong bytes.

mod accepted;
mod admission;
mod datagrams;
mod echo;
mod file;
mod message_stream;
mod pace;
mod piece;
mod seen;
mod short_flows;
mod stream;
mod video;
mod whole_file;

use std::sync::{Arc, LazyLock};

use hopcast_core::{Buffer, Instant};
pub(crate) use hopcast_stack::transport::Ends;

pub(crate) use datagrams::{DatagramSink, DatagramSource};
pub(crate) use echo::{DatagramEcho, MessageClient, StreamEcho, Transport};
pub(crate) use file::{FileReceiver, FileSender};
pub(crate) use pace::Pace;
pub(crate) use piece::PIECE_HEADER;
pub(crate) use short_flows::{PORTS, ShortFlowSink, ShortFlowSource, Sizes};
pub(crate) use stream::{Contents, StreamSink, StreamSource};
pub(crate) use video::{Carriage, FrameAssembler, FrameLog, FrameSource, FrameStreamSink, VideoSender};
pub(crate) use whole_file::{WholeFileReceiver, WholeFileSender};

/// Schedule by which an application sends: spans that do not overlap, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schedule {
    spans: Vec<(Instant, Instant)>,
}

impl Schedule {
    /// A schedule of `spans` from start to stop, in order; empty ones are dropped.
    pub(crate) fn new(spans: impl IntoIterator<Item = (Instant, Instant)>) -> Self {
        Self { spans: spans.into_iter().filter(|(start, stop)| start < stop).collect() }
    }

    /// The earliest time, not before `at`, at which the application may send; `None` after the last span.
    pub(crate) fn next_active(&self, at: Instant) -> Option<Instant> {
        self.spans.iter().find(|&&(_, stop)| at < stop).map(|&(start, _)| at.max(start))
    }

    /// The time after `at` at which the current span ends, if `at` is in one.
    pub(crate) fn end_of_span(&self, at: Instant) -> Option<Instant> {
        self.spans.iter().find(|&&(start, stop)| (start..stop).contains(&at)).map(|&(_, stop)| stop)
    }
}

/// Length of the header with a unit's number and time, in bytes:
///
/// ```text
/// 0   3        8               16
/// | tag | number | nanoseconds |      network order
/// ```
pub(crate) const STAMP: usize = 16;

/// Mark at the start of a unit. It begins with a letter, since Wireshark takes a small number there for a protocol of
/// its own.
const TAG: [u8; 3] = *b"hc1";

/// Writes a unit's stamp: the lowest 40 bits of its number, and the time at which it was sent.
pub(crate) fn write_stamp(into: &mut [u8], number: u64, at: Instant) {
    into[..3].copy_from_slice(&TAG);
    into[3..8].copy_from_slice(&number.to_be_bytes()[3..]);
    into[8..STAMP].copy_from_slice(&at.as_nanos().to_be_bytes());
}

/// Reads a unit's stamp; `None` if `from` does not begin with one.
pub(crate) fn read_stamp(from: &[u8]) -> Option<(u64, Instant)> {
    let (tag, _) = from.split_first_chunk()?;
    let mut number = [0; 8];
    number[3..].copy_from_slice(from.get(3..8)?);
    let at = from.get(8..STAMP)?.try_into().ok()?;
    (*tag == TAG).then(|| (u64::from_be_bytes(number), Instant::from_nanos(u64::from_be_bytes(at))))
}

/// Length of a block, in bytes: the unit of `bulk` over a stream, and the period of the pattern. Chosen; with longer
/// blocks latency is sampled less often, shorter ones cost more items.
pub(crate) const BLOCK: usize = 64 * 1024;

/// The contents of units without a file: a block of letters that equals no shifted copy of itself, and that no
/// dissector takes for a protocol.
static PATTERN: LazyLock<Arc<[u8]>> = LazyLock::new(|| {
    let mut random = hopcast_core::Seed::new(0, 0).stream(&["pattern"], 0);
    (0..BLOCK).map(|_| b'a' + random.below(26) as u8).collect()
});

/// A unit of `size` bytes, at least [`STAMP`]: room for the stamp, then the repeated pattern.
pub(crate) fn unit(size: usize) -> Buffer {
    let mut unit = Buffer::zeroed(size);
    for chunk in unit.chunks_mut(BLOCK) {
        chunk.copy_from_slice(&PATTERN[..chunk.len()]);
    }
    unit
}

/// The stamp of a unit that arrived; `None` if any of its bytes differs from [`unit()`].
pub(crate) fn check_unit(bytes: &[u8], now: Instant) -> Option<(u64, Instant)> {
    let (number, sent) = read_stamp(bytes)?;
    let mut chunks = bytes.chunks(BLOCK);
    let first = chunks.next()?;
    let whole =
        first[STAMP..] == PATTERN[STAMP..first.len()] && chunks.all(|chunk| *chunk == PATTERN[..chunk.len()]);
    (whole && sent <= now).then_some((number, sent))
}

/// [`BLOCK`] bytes of pattern.
pub(crate) fn pattern() -> Arc<[u8]> {
    PATTERN.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_with_one_wrong_byte_is_found_out_wherever_it_is() {
        for size in [STAMP, STAMP + 1, 1000, BLOCK, 3 * BLOCK + 5] {
            let mut bytes = unit(size);
            write_stamp(&mut bytes, 7, Instant::from_nanos(9));
            let now = Instant::from_nanos(10);
            assert_eq!(check_unit(&bytes, now), Some((7, Instant::from_nanos(9))));
            for place in
                [STAMP, size / 2, size - 1].into_iter().filter(|&place| (STAMP..size).contains(&place))
            {
                bytes[place] ^= 1;
                assert_eq!(check_unit(&bytes, now), None, "byte {place} of {size}");
                bytes[place] ^= 1;
            }
            assert_eq!(check_unit(&bytes, Instant::ZERO), None, "nothing arrives before it was sent");
        }
        assert_eq!(check_unit(&[0; STAMP - 1], Instant::ZERO), None);
    }

    #[test]
    fn a_schedule_says_when_to_send_next() {
        let at = Instant::from_nanos;
        let schedule = Schedule::new([(at(10), at(20)), (at(25), at(25)), (at(30), at(40))]);
        assert_eq!(schedule.next_active(at(0)), Some(at(10)));
        assert_eq!(schedule.next_active(at(15)), Some(at(15)));
        assert_eq!(schedule.next_active(at(20)), Some(at(30)));
        assert_eq!(schedule.next_active(at(40)), None);
        assert_eq!(schedule.end_of_span(at(15)), Some(at(20)));
        assert_eq!(schedule.end_of_span(at(25)), None);
    }
}
