//! A block at its source.

use hopcast_code::bats::{Encoder, Error, Parameters};
use hopcast_core::{Buffer, Instant};

use super::order::Order;

/// Symbols, and which batches of them are on their way.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) number: u64,
    pub(super) order: Order,
    /// Number of symbols of the block before.
    pub(super) before: u16,
    /// The symbols in the order of the code; those that are not made are zeros.
    symbols: Vec<u8>,
    encoder: Option<Encoder<Vec<u8>>>,
    pub(super) made: u16,
    pub(super) begun: Instant,
    pub(super) grown: Instant,
    /// Time at which it was closed: nothing will be added to it.
    pub(super) closed: Option<Instant>,
    /// The batches that no end-to-end report has covered.
    sent: Vec<Sent>,
    /// The serial number of the batch of each BID that has been sent.
    serials: Vec<Option<u64>>,
    pub(super) next_repair: u16,
    /// Number of times that all that was sent of it had arrived as far as it would, and was not enough.
    pub(super) rounds: u8,
    /// Number of packets that were innovative at the sink, and whether that lacks nothing.
    pub(super) rank: u16,
    pub(super) is_complete: bool,
}

/// A batch that is under way.
#[derive(Clone, Copy, Debug)]
struct Sent {
    serial: u64,
    packets: u16,
    at: Instant,
}

impl Block {
    pub(super) fn new(
        number: u64,
        order: Order,
        before: u16,
        mut symbols: Vec<u8>,
        len: usize,
        now: Instant,
    ) -> Self {
        symbols.clear();
        symbols.resize(len, 0);
        Self {
            number,
            order,
            before,
            symbols,
            encoder: None,
            made: 0,
            begun: now,
            grown: now,
            closed: None,
            sent: Vec::new(),
            serials: Vec::new(),
            next_repair: 0,
            rounds: 0,
            rank: 0,
            is_complete: false,
        }
    }

    /// Adds a symbol; where it is: its batch and its index there.
    pub(super) fn push(&mut self, now: Instant, symbol: &[u8], len: usize) -> (usize, usize) {
        let position = usize::from(self.made);
        self.symbols[self.order.symbol(position) * len..][..symbol.len()].copy_from_slice(symbol);
        self.made += 1;
        self.grown = now;
        self.order.place(position)
    }

    /// Notes that a packet more of a batch is under way.
    pub(super) fn sent(&mut self, now: Instant, batch: usize, serial: u64, packets: u16) {
        if self.serials.len() <= batch {
            self.serials.resize(batch + 1, None);
        }
        self.serials[batch] = Some(serial);
        match self.sent.iter_mut().find(|sent| sent.serial == serial) {
            Some(sent) => (sent.packets, sent.at) = (sent.packets + packets, now),
            None => self.sent.push(Sent { serial, packets, at: now }),
        }
    }

    /// The serial number of a batch.
    pub(super) fn serial(&self, batch: u16) -> Option<u64> {
        self.serials.get(usize::from(batch)).copied().flatten()
    }

    /// Batches up to `serial` have arrived as far as they will; when the last of them was sent.
    pub(super) fn cover(&mut self, serial: u64) -> Option<Instant> {
        let last = self.sent.iter().filter(|sent| sent.serial <= serial).map(|sent| sent.at).max();
        self.sent.retain(|sent| sent.serial > serial);
        last
    }

    /// Whether something is under way.
    pub(super) fn is_waiting(&self) -> bool {
        !self.sent.is_empty()
    }

    /// The sizes of the batches under way.
    pub(super) fn under_way(&self) -> impl Iterator<Item = u16> {
        self.sent.iter().map(|sent| sent.packets)
    }

    /// Writes the first packets of a repair batch into buffers, without the zeros at their ends.
    pub(super) fn encode(
        &mut self,
        parameters: &Parameters,
        session: u32,
        spare: &mut Vec<Encoder<Vec<u8>>>,
        (bid, packets): (u16, u16),
        mut packet: impl FnMut(u8, Buffer),
    ) -> Result<(), Error> {
        let len = parameters.symbol_len();
        if self.encoder.is_none() {
            let mut encoder = match spare.pop() {
                Some(encoder) => encoder,
                None => Encoder::new(parameters, Vec::with_capacity(self.symbols.len()))?,
            };
            encoder.start(session);
            for symbol in self.symbols.chunks_exact(len) {
                encoder.push(symbol)?;
            }
            self.encoder = Some(encoder);
        }
        let Some(encoder) = &mut self.encoder else { return Ok(()) };
        let limit = parameters.batch().packets();
        if usize::from(packets) == limit {
            let mut payloads = vec![0; limit * len];
            encoder.batch(bid, &mut payloads)?;
            for (index, payload) in payloads.chunks_exact(len).enumerate() {
                packet(index as u8, Buffer::copy_from(trimmed(payload)));
            }
        } else {
            let mut payload = vec![0; len];
            for index in 0..packets {
                encoder.packet(bid, usize::from(index), &mut payload)?;
                packet(index as u8, Buffer::copy_from(trimmed(&payload)));
            }
        }
        Ok(())
    }

    /// Its memory, once it is over.
    pub(super) fn into_parts(self) -> (Vec<u8>, Option<Encoder<Vec<u8>>>) {
        (self.symbols, self.encoder)
    }
}

/// A symbol without the zeros at its end; of zeros, one.
fn trimmed(symbol: &[u8]) -> &[u8] {
    let last = symbol.iter().rposition(|&byte| byte != 0).unwrap_or(0);
    &symbol[..=last]
}
