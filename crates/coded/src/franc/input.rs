//! The encoder's input: packets wait here, bounded by delay, and fill symbols.
//!
//! A symbol begins with the number of bytes in it that are used (16 bits), and the used bytes of all symbols, one after
//! the other, are a row of packets, each behind its length (16 bits). So packets fill symbols without regard to their
//! edges, and small ones share one.

use hopcast_core::codel::{Backlog, CoDel};
use hopcast_core::{Buffer, Duration, Instant};

use super::config::Queue;

/// Bytes of the length in front of a packet, and of that of what is used of a symbol: 16 bits count to 65,535, and a
/// frame has 1500.
const LENGTH: usize = 2;
/// Maximum number of packets that wait, however short. Chosen: it bounds memory where CoDel does not.
const MAX_PACKETS: usize = 4_000;

/// The packets that wait for the encoder.
#[derive(Debug)]
pub(super) struct Input {
    backlog: Backlog,
    discipline: Queue,
    codel: Option<CoDel>,
    /// The packet that is being put into symbols, with its length in front.
    current: Option<Buffer>,
    dropped: u64,
    taken: u64,
}

impl Input {
    pub(super) fn new(discipline: Queue, mtu: u16) -> Self {
        let codel = match discipline {
            Queue::Fifo { .. } => None,
            Queue::CoDel { target, interval, .. } => Some(CoDel::new(target, interval, u64::from(mtu))),
        };
        Self { backlog: Backlog::default(), discipline, codel, current: None, dropped: 0, taken: 0 }
    }

    /// Queues a packet.
    pub(super) fn push(&mut self, now: Instant, packet: Buffer) {
        let room = match self.discipline {
            Queue::Fifo { packets } => packets,
            Queue::CoDel { .. } => MAX_PACKETS,
        };
        if self.backlog.len() >= room {
            self.dropped += 1;
        } else {
            self.backlog.push(packet, now);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.current.is_none() && self.backlog.is_empty()
    }

    /// Whether the packets that wait fill `len` bytes of symbols, as far as is known without taking them.
    pub(super) fn fills(&self, len: usize) -> bool {
        let current = self.current.as_ref().map_or(0, |packet| packet.len());
        current + self.backlog.bytes() as usize + LENGTH * self.backlog.len() + LENGTH >= len
    }

    /// Since when the oldest packet waits; `None` if a packet is half sent, or none waits.
    pub(super) fn since(&self) -> Option<Instant> {
        if self.current.is_some() { None } else { self.backlog.since() }
    }

    /// For how long the head of the queue has waited.
    pub(super) fn waited(&self, now: Instant) -> Duration {
        self.backlog.since().map_or(Duration::ZERO, |since| now.since(since))
    }

    /// Fills a symbol: with as many packets as fit, or with one whole packet if `single`. False if there was nothing
    /// to fill it with. What is not used is zero.
    pub(super) fn fill(&mut self, now: Instant, symbol: &mut [u8], single: bool) -> bool {
        symbol.fill(0);
        let Some((length, bytes)) = symbol.split_first_chunk_mut::<LENGTH>() else { return false };
        let mut used = 0;
        while used < bytes.len() {
            let Some(mut packet) = self.current.take().or_else(|| self.next(now)) else { break };
            let len = packet.len().min(bytes.len() - used);
            bytes[used..used + len].copy_from_slice(&packet[..len]);
            used += len;
            packet.advance(len);
            if !packet.is_empty() {
                self.current = Some(packet);
            }
            if single {
                break;
            }
        }
        *length = (used as u16).to_be_bytes();
        used > 0
    }

    /// Forgets the packet that is half sent.
    pub(super) fn restart(&mut self) {
        self.current = None;
    }

    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// The next packet, with its length in front.
    fn next(&mut self, now: Instant) -> Option<Buffer> {
        loop {
            let dropped = &mut self.dropped;
            let waiting = match &mut self.codel {
                None => self.backlog.pop(),
                Some(codel) => codel.pop(now, &mut self.backlog, &mut |_| *dropped += 1),
            }?;
            let max_wait = match self.discipline {
                Queue::Fifo { .. } => None,
                Queue::CoDel { max_wait, .. } => Some(max_wait),
            };
            if max_wait.is_some_and(|max_wait| now.since(waiting.since) > max_wait) {
                self.dropped += 1;
                continue;
            }
            let mut packet = waiting.frame;
            let len = packet.len() as u16;
            packet.prepend(LENGTH).copy_from_slice(&len.to_be_bytes());
            self.taken += 1;
            return Some(packet);
        }
    }
}

/// Puts packets together again from symbols in order.
#[derive(Debug, Default)]
pub(super) struct Output {
    /// The length's bytes and the packet's, as far as they have come.
    partial: Vec<u8>,
}

impl Output {
    /// Takes the next symbol; `deliver` gets each packet that it completes. False if it is none that [`Input`] filled.
    pub(super) fn take(&mut self, symbol: &[u8], mut deliver: impl FnMut(&[u8])) -> bool {
        let Some((length, bytes)) = symbol.split_first_chunk::<LENGTH>() else { return false };
        let Some(mut bytes) = bytes.get(..usize::from(u16::from_be_bytes(*length))) else { return false };
        while !bytes.is_empty() {
            let wanted = match self.partial.first_chunk::<LENGTH>() {
                Some(length) => LENGTH + usize::from(u16::from_be_bytes(*length)),
                None => LENGTH,
            };
            let (taken, rest) = bytes.split_at(bytes.len().min(wanted - self.partial.len()));
            self.partial.extend_from_slice(taken);
            bytes = rest;
            if let Some((length, packet)) = self.partial.split_first_chunk::<LENGTH>()
                && packet.len() == usize::from(u16::from_be_bytes(*length))
            {
                deliver(packet);
                self.partial.clear();
            }
        }
        true
    }

    /// Forgets the packet that has come in part.
    pub(super) fn restart(&mut self) {
        self.partial.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const QUEUE: Queue = Queue::CoDel {
        target: Duration::from_millis(5),
        interval: Duration::from_millis(100),
        max_wait: Duration::from_millis(50),
    };

    proptest! {
        #[test]
        fn packets_come_out_as_they_went_in_whatever_the_symbols_length(
            packets in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..300), 0..30),
            len in 3usize..200,
        ) {
            let (mut input, mut output) = (Input::new(QUEUE, 1500), Output::default());
            for packet in &packets {
                input.push(Instant::ZERO, Buffer::copy_from(packet));
            }
            let (mut symbol, mut found) = (vec![0; len], Vec::new());
            while input.fill(Instant::ZERO, &mut symbol, false) {
                prop_assert!(output.take(&symbol, |packet| found.push(packet.to_vec())));
            }
            prop_assert!(input.is_empty());
            prop_assert_eq!(found, packets);
        }

        #[test]
        fn no_symbol_panics(symbols in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..60), 0..20)) {
            let mut output = Output::default();
            for symbol in symbols {
                output.take(&symbol, |_| ());
                prop_assert!(output.partial.len() <= LENGTH + usize::from(u16::MAX));
            }
        }
    }

    #[test]
    fn what_has_waited_too_long_is_not_sent() {
        let mut input = Input::new(QUEUE, 1500);
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        input.push(at(0), Buffer::copy_from(&[1; 100]));
        input.push(at(40), Buffer::copy_from(&[2; 100]));
        let mut symbol = [0; 200];
        assert!(input.fill(at(60), &mut symbol, false));
        assert_eq!((&symbol[..5], input.dropped()), (&[0, 102, 0, 100, 2][..], 1));
    }

    #[test]
    fn no_more_packets_wait_than_4000_however_small_they_are() {
        let mut input = Input::new(QUEUE, 1500);
        (0..4003).for_each(|_| input.push(Instant::ZERO, Buffer::copy_from(&[1])));
        assert_eq!((input.backlog.len(), input.dropped()), (4000, 3));
    }

    #[test]
    fn packets_fill_a_symbol_with_their_lengths_and_its_own() {
        let mut input = Input::new(QUEUE, 1500);
        let fills = |input: &Input| (0..1000).rfind(|&len| input.fills(len)).unwrap();
        input.push(Instant::ZERO, Buffer::zeroed(100));
        assert_eq!(fills(&input), 2 + (2 + 100));
        input.push(Instant::ZERO, Buffer::zeroed(50));
        input.push(Instant::ZERO, Buffer::zeroed(30));
        assert_eq!(fills(&input), 2 + (2 + 100) + (2 + 50) + (2 + 30));
        // Of the first 82 bytes are left.
        assert!(input.fill(Instant::ZERO, &mut [0; 22], false));
        assert_eq!(fills(&input), 2 + 82 + (2 + 50) + (2 + 30));
    }
}
