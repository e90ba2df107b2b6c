//! One stream at one end: what the application has written and is not sent, and what has arrived and is not in order.

use std::collections::{BTreeMap, VecDeque};

use hopcast_core::{Buffer, StreamId, StreamItem};

use super::config::Config;
use super::wire::What;

/// Bytes of a stream's buffer for each piece out of order that it keeps: more pieces mean that they are tiny. Chosen:
/// it bounds the memory of the map of pieces; larger refuses more of what small writes send.
const BYTES_A_PIECE: u64 = 256;
/// Maximum length of a piece that others were joined to, in bytes. Chosen; longer pieces are copied more, shorter ones
/// are more.
const MAX_PIECE: usize = 64 << 10;
/// Bytes of credit that are given back to the application at once. Chosen; smaller lots cost more items, larger ones
/// let the other end wait.
const LOT: u64 = 32 << 10;

/// The other end does not keep to its grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken;

#[derive(Debug)]
pub(super) struct StreamEnd {
    pub id: StreamId,
    /// Whether the application here opened it, and whether it knows that it stands.
    opener: bool,
    stands: bool,
    written: VecDeque<u8>,
    sent: u64,
    /// The offset up to which the other end takes bytes.
    limit: u64,
    /// The bytes that the application may still write, and those that it will be granted.
    writable: u64,
    owed: u64,
    finish: bool,
    finish_sent: bool,
    arrived: BTreeMap<u64, Vec<u8>>,
    /// The first byte that the application has not been given, and where the bytes end.
    next: u64,
    end: Option<u64>,
    end_given: bool,
    /// The bytes that the application takes, and the offset that was granted to the other end.
    credit: u64,
    granted: u64,
}

impl StreamEnd {
    pub(super) fn new(config: &Config, id: StreamId, opener: bool) -> Self {
        Self {
            id,
            opener,
            stands: false,
            written: VecDeque::new(),
            sent: 0,
            limit: 0,
            writable: 0,
            owed: 0,
            finish: false,
            finish_sent: false,
            arrived: BTreeMap::new(),
            next: 0,
            end: None,
            end_given: false,
            credit: 0,
            granted: config.receive_buffer.get(),
        }
    }

    /// The grant of bytes that the other end may send.
    pub(super) fn grant(&self) -> What<'static> {
        What::Grant(self.granted)
    }

    /// Whether both directions are over.
    pub(super) fn is_over(&self) -> bool {
        self.finish_sent && self.end_given
    }

    /// Whether a chunk could be cut now.
    pub(super) fn has_chunk(&self) -> bool {
        (!self.written.is_empty() && self.sent < self.limit)
            || (self.finish && !self.finish_sent && self.written.is_empty())
    }

    /// The next bytes to send, at most `room` of them, with their offset and whether they are the last.
    pub(super) fn cut(&mut self, room: usize) -> (u64, Vec<u8>, bool) {
        let open = usize::try_from(self.limit - self.sent).unwrap_or(usize::MAX);
        let len = self.written.len().min(room).min(open);
        let (offset, bytes) = (self.sent, take_first(&mut self.written, len));
        self.sent += len as u64;
        self.owed += len as u64;
        let end = self.finish && self.written.is_empty();
        self.finish_sent |= end;
        (offset, bytes, end)
    }

    /// The items for the application after that.
    pub(super) fn told_after_cut(&mut self) -> impl Iterator<Item = StreamItem> + use<> {
        let transmitted = StreamItem::Transmitted(self.sent);
        let credit = (self.owed >= LOT || self.written.is_empty()).then(|| core::mem::take(&mut self.owed));
        let credit = credit.filter(|&bytes| bytes > 0 && !self.finish);
        self.writable += credit.unwrap_or(0);
        [Some(transmitted), credit.map(StreamItem::Credit)].into_iter().flatten()
    }

    /// The application writes. It never writes more than it may.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        self.writable =
            self.writable.checked_sub(bytes.len() as u64).filter(|_| !self.finish).ok_or(Broken)?;
        self.written.extend(bytes);
        Ok(())
    }

    pub(super) fn finish(&mut self) {
        self.finish = true;
    }

    pub(super) fn give_credit(&mut self, bytes: u64) {
        self.credit = self.credit.saturating_add(bytes);
    }

    /// The other end takes bytes before `limit`. The first such word makes the stream stand: what to tell the
    /// application.
    pub(super) fn on_grant(&mut self, config: &Config, limit: u64) -> Vec<StreamItem> {
        self.limit = self.limit.max(limit);
        self.stand(config)
    }

    fn stand(&mut self, config: &Config) -> Vec<StreamItem> {
        if core::mem::replace(&mut self.stands, true) {
            return Vec::new();
        }
        self.writable = config.send_buffer.get();
        let credit = StreamItem::Credit(self.writable);
        if self.opener { vec![StreamItem::Opened, credit] } else { vec![credit] }
    }

    /// Bytes arrive, in any order, each once.
    pub(super) fn on_data(
        &mut self,
        config: &Config,
        offset: u64,
        bytes: &[u8],
        end: bool,
    ) -> Result<(), Broken> {
        let upto = offset + bytes.len() as u64;
        let held = self.arrived.last_key_value().map_or(self.next, |(at, piece)| at + piece.len() as u64);
        let past_end = self.end.is_some_and(|known| upto > known || (end && upto != known));
        if upto > self.granted || past_end || (end && upto < held) {
            return Err(Broken);
        }
        if end {
            self.end = Some(upto);
        }
        if bytes.is_empty() {
            return Ok(());
        }
        let after = self.arrived.range(offset..).next().is_some_and(|(&at, _)| at < upto);
        let mut before = self.arrived.range_mut(..offset).next_back();
        let meets = before.as_ref().map_or(self.next, |(at, piece)| **at + piece.len() as u64);
        if offset < meets || after {
            return Err(Broken);
        }
        // Small pieces that meet become one, so that only gaps count.
        if let Some((_, piece)) = before.as_mut().filter(|(_, piece)| piece.len() + bytes.len() <= MAX_PIECE)
            && offset == meets
        {
            piece.extend(bytes);
            return Ok(());
        }
        if self.arrived.len() as u64 >= config.receive_buffer.get() / BYTES_A_PIECE + 64 {
            return Err(Broken);
        }
        self.arrived.insert(offset, bytes.to_vec());
        Ok(())
    }

    /// The next item for the application: bytes that are in order and that it takes.
    pub(super) fn next_up(&mut self) -> Option<StreamItem> {
        if let Some(piece) = self.arrived.first_entry()
            && *piece.key() == self.next
        {
            let mut bytes = piece.remove();
            let taken = usize::try_from(self.credit).unwrap_or(usize::MAX).min(bytes.len());
            let rest = bytes.split_off(taken);
            if !rest.is_empty() {
                self.arrived.insert(self.next + taken as u64, rest);
            }
            if bytes.is_empty() {
                return None;
            }
            self.credit -= taken as u64;
            self.next += taken as u64;
            return Some(StreamItem::Data(Buffer::copy_from(&bytes)));
        }
        let ended = self.end == Some(self.next) && !core::mem::replace(&mut self.end_given, true);
        ended.then_some(StreamItem::Finish)
    }

    /// A grant that is worth sending, once the application has taken enough.
    pub(super) fn next_grant(&mut self, config: &Config) -> Option<What<'static>> {
        let whole = config.receive_buffer.get();
        let worth = self.next + whole - self.granted >= whole.div_ceil(4) && self.end.is_none();
        worth.then(|| {
            self.granted = self.next + whole;
            What::Grant(self.granted)
        })
    }
}

/// Takes the first `len` bytes out of a queue, by its two slices: byte for byte took a fifth of a run's instructions.
fn take_first(queue: &mut VecDeque<u8>, len: usize) -> Vec<u8> {
    let (front, back) = queue.as_slices();
    let split = len.min(front.len());
    let mut bytes = Vec::with_capacity(len);
    bytes.extend_from_slice(&front[..split]);
    bytes.extend_from_slice(&back[..len - split]);
    queue.drain(..len);
    bytes
}

#[cfg(test)]
mod tests {
    use hopcast_core::Bytes;

    use super::*;

    fn stream(receive_buffer: u64) -> (Config, StreamEnd) {
        let config = Config { receive_buffer: Bytes::new(receive_buffer), ..Config::default() };
        let mut stream = StreamEnd::new(&config, StreamId(0), true);
        stream.on_grant(&config, 1 << 30);
        (config, stream)
    }

    #[test]
    fn a_piece_out_of_order_is_kept_for_each_256_bytes_of_the_buffer_and_64_more() {
        let (config, mut stream) = stream(25_600);
        for piece in 1..=164 {
            assert_eq!(stream.on_data(&config, 2 * piece, b"x", false), Ok(()));
        }
        assert_eq!(stream.on_data(&config, 2 * 165, b"x", false), Err(Broken));
    }

    #[test]
    fn what_has_met_is_given_to_the_application_in_items_of_64_kib() {
        let (config, mut stream) = stream(1 << 20);
        for piece in 1..200 {
            stream.on_data(&config, piece << 10, &[7; 1 << 10], false).unwrap();
        }
        stream.give_credit(1 << 20);
        assert_eq!(stream.next_up(), None);
        stream.on_data(&config, 0, &[7; 1 << 10], false).unwrap();
        let items = core::iter::from_fn(|| stream.next_up());
        let lengths: Vec<usize> =
            items.map(|item| if let StreamItem::Data(data) = item { data.len() } else { 0 }).collect();
        assert_eq!(lengths, [1 << 10, 64 << 10, 64 << 10, 64 << 10, 7 << 10]);
    }

    #[test]
    fn the_application_may_write_more_once_32_kib_or_all_has_been_sent() {
        let (_, mut stream) = stream(1 << 20);
        stream.write(&[7; 40 << 10]).unwrap();
        let credits: Vec<(u32, u64)> = (1..=40)
            .filter_map(|cut| {
                stream.cut(1 << 10);
                stream.told_after_cut().find_map(|item| match item {
                    StreamItem::Credit(bytes) => Some((cut, bytes)),
                    _ => None,
                })
            })
            .collect();
        assert_eq!(credits, [(32, 32 << 10), (40, 8 << 10)]);
    }
}
