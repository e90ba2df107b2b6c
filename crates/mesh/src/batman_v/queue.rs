//! The originator messages that are to be sent, which wait on each interface for one another and leave in one packet.

use hopcast_core::{Duration, Instant, Stream};

use crate::wire::Header;
use crate::wire::batman_v::Ogm2;

/// Maximum length of a packet of several messages, in bytes (`BATADV_MAX_AGGREGATION_BYTES`).
const MAX_BYTES: usize = 512;
/// Minimum time between two packets of an interface that are not full, and its largest extension: 100 ms with a
/// deviation of a tenth (`BATADV_MAX_AGGREGATION_MS`).
const MIN_GAP: Duration = Duration::from_millis(90);
const GAP_SPREAD: Duration = Duration::from_millis(20);
/// Maximum time for which a message waits on an interface that has sent none for longer than that.
const MAX_WAIT: Duration = Duration::from_millis(100);

/// A message that is to be sent.
pub(super) struct Message<'a> {
    pub(super) ogm: Ogm2,
    pub(super) containers: &'a [u8],
    pub(super) out: usize,
}

/// A packet of messages that is to be sent now.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Packet {
    pub(super) out: usize,
    pub(super) bytes: Vec<u8>,
    /// Number of messages.
    pub(super) messages: u64,
}

/// The messages that wait.
pub(super) struct OgmQueue {
    /// For each interface.
    waiting: Vec<Waiting>,
    aggregates: bool,
}

#[derive(Clone, Debug, Default)]
struct Waiting {
    bytes: Vec<u8>,
    messages: u64,
    /// When they leave, at the latest.
    at: Option<Instant>,
    /// Time at which the last left because they had waited.
    last: Option<Instant>,
}

impl Message<'_> {
    /// Length in bytes.
    pub(super) const fn len(&self) -> usize {
        Ogm2::LEN + self.containers.len()
    }
}

impl OgmQueue {
    /// No messages, of this many interfaces.
    pub(super) fn new(interfaces: usize, aggregates: bool) -> Self {
        Self { waiting: vec![Waiting::default(); interfaces], aggregates }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.waiting.iter().filter_map(|waiting| waiting.at).min()
    }

    /// The messages of an interface that have waited.
    pub(super) fn due(&mut self, now: Instant) -> Option<Packet> {
        let is_due = |waiting: &Waiting| waiting.at.is_some_and(|at| at <= now);
        let out = self.waiting.iter().position(is_due)?;
        self.waiting[out].at = None;
        self.waiting[out].last = Some(now);
        Some(self.take(out))
    }

    /// Adds a message. Returns the packet that is to be sent now: those before it, if it has no room beside them, or
    /// the message itself if none waits for others.
    pub(super) fn push(
        &mut self,
        now: Instant,
        message: &Message<'_>,
        mtu: usize,
        random: &mut Stream,
    ) -> Option<Packet> {
        let out = message.out;
        let waiting = &self.waiting[out];
        let fits = waiting.bytes.len() + message.len() <= mtu.min(MAX_BYTES);
        let full = (waiting.messages > 0 && !fits).then(|| self.take(out));
        let waiting = &mut self.waiting[out];
        waiting.append(message);
        if !self.aggregates {
            return Some(self.take(out));
        }
        if waiting.at.is_none() {
            waiting.at = Some(match waiting.last {
                Some(last) if now < last + MIN_GAP => last + MIN_GAP + up_to(GAP_SPREAD, random),
                _ => now + up_to(MAX_WAIT, random),
            });
        }
        full
    }

    fn take(&mut self, out: usize) -> Packet {
        let waiting = &mut self.waiting[out];
        Packet {
            out,
            bytes: std::mem::take(&mut waiting.bytes),
            messages: std::mem::take(&mut waiting.messages),
        }
    }
}

impl Waiting {
    fn append(&mut self, message: &Message<'_>) {
        let start = self.bytes.len();
        self.bytes.resize(start + Ogm2::LEN, 0);
        message.ogm.emit(&mut self.bytes[start..]);
        self.bytes.extend(message.containers);
        self.messages += 1;
    }
}

fn up_to(most: Duration, random: &mut Stream) -> Duration {
    Duration::from_nanos(random.below(most.as_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::batman_v::messages;
    use hopcast_core::Seed;

    const MTU: usize = 1500;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn message(seqno: u32, containers: &[u8]) -> Message<'_> {
        let tvlv_len = containers.len() as u16;
        let ogm = Ogm2 { ttl: 50, flags: 0, seqno, originator: [2; 6], tvlv_len, throughput: 10 };
        Message { ogm, containers, out: 0 }
    }

    fn seqnos(packet: &Packet) -> Vec<u32> {
        messages(&packet.bytes).unwrap().map(|(ogm, _)| ogm.seqno).collect()
    }

    #[test]
    fn messages_wait_100_milliseconds_at_most_and_packets_are_as_far_apart() {
        let mut random = Seed::new(1, 0).stream(&["queue"], 0);
        let mut queue = OgmQueue::new(1, true);
        assert_eq!(queue.push(at(0), &message(1, b""), MTU, &mut random), None);
        assert_eq!(queue.push(at(0), &message(2, b""), MTU, &mut random), None);
        let first = queue.deadline().unwrap();
        assert!(first <= at(100));
        assert_eq!(seqnos(&queue.due(first).unwrap()), [1, 2]);
        assert!(queue.due(first).is_none() && queue.deadline().is_none());
        queue.push(first + Duration::from_millis(1), &message(3, b""), MTU, &mut random);
        let second = queue.deadline().unwrap();
        assert!((first + MIN_GAP..=first + MIN_GAP + GAP_SPREAD).contains(&second));
        assert!(queue.due(first + MIN_GAP.saturating_sub(Duration::from_millis(1))).is_none());
        assert_eq!(seqnos(&queue.due(second).unwrap()), [3]);
    }

    #[test]
    fn a_packet_that_is_full_leaves_at_once_and_is_as_long_as_the_mtu_allows() {
        for (mtu, number) in [(1500, 512 / 20), (512, 25), (100, 5), (99, 4)] {
            let mut random = Seed::new(1, 0).stream(&["queue"], 0);
            let mut queue = OgmQueue::new(1, true);
            let full = (0..100).find_map(|seqno| queue.push(at(0), &message(seqno, b""), mtu, &mut random));
            assert_eq!(full.map(|packet| packet.messages), Some(number), "MTU {mtu}");
            assert_eq!(seqnos(&queue.due(at(100)).unwrap()), [number as u32]);
        }
        // One that is longer than a packet of several leaves alone.
        let mut random = Seed::new(1, 0).stream(&["queue"], 0);
        let mut queue = OgmQueue::new(1, true);
        assert_eq!(queue.push(at(0), &message(1, &[0; 700]), MTU, &mut random), None);
        assert_eq!(queue.push(at(0), &message(2, b""), MTU, &mut random).unwrap().bytes.len(), 720);
    }

    #[test]
    fn without_aggregation_each_leaves_alone_and_at_once() {
        let mut random = Seed::new(1, 0).stream(&["queue"], 0);
        let mut queue = OgmQueue::new(1, false);
        for seqno in 1..4 {
            assert_eq!(seqnos(&queue.push(at(0), &message(seqno, b""), MTU, &mut random).unwrap()), [seqno]);
        }
        assert_eq!(queue.deadline(), None);
    }
}
