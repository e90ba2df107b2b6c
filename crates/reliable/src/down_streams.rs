//! Streams on their way down: an application writes no faster than they are sent.

use std::collections::BTreeMap;

use hopcast_core::{Instant, Item, Outbox, StreamId, StreamItem};

/// A sender of streams, each of which it numbers.
pub(crate) trait SendsStreams {
    /// Opens a stream; `None` if there is no room for one.
    fn open(&mut self, now: Instant) -> Option<u64>;

    /// Appends bytes.
    fn write(&mut self, number: u64, bytes: &[u8]);

    /// Ends it after these.
    fn end(&mut self, number: u64);

    /// Bytes that wait to be sent.
    fn waiting(&self, number: u64) -> u64;

    /// Bytes that were sent at least once, and whether it has been sent to its end; `None` if it is no longer held.
    fn progress(&mut self, number: u64) -> Option<(u64, bool)>;
}

/// The streams of the application.
#[derive(Debug, Default)]
pub(crate) struct DownStreams(BTreeMap<StreamId, Down>);

#[derive(Clone, Copy, Debug)]
struct Down {
    /// Number of its object.
    number: u64,
    /// Bytes that it was granted and has not written.
    credit: u64,
    /// Bytes of which the application knows that they were sent.
    transmitted: u64,
    /// Whether the application has ended it.
    is_finished: bool,
}

/// Bytes of a stream that may wait to be sent. Chosen: two blocks of 64 segments; less starves fast senders between two
/// grants, more is memory and delay.
pub(crate) const WINDOW: u64 = 192 << 10;

impl DownStreams {
    /// Takes an item of the application's. False if it is refused, as by a member without a sender.
    pub(crate) fn handle(
        &mut self,
        now: Instant,
        id: StreamId,
        item: StreamItem,
        sender: Option<&mut impl SendsStreams>,
        out: &mut Outbox,
    ) -> bool {
        let Some(sender) = sender else {
            let is_new = matches!(item, StreamItem::Open { .. });
            if is_new {
                out.up(Item::Stream(id, StreamItem::Reset));
            }
            return !is_new;
        };
        match item {
            StreamItem::Open { .. } => {
                let Some(number) = sender.open(now) else {
                    out.up(Item::Stream(id, StreamItem::Reset));
                    return false;
                };
                self.0.insert(id, Down { number, credit: 0, transmitted: 0, is_finished: false });
                out.up(Item::Stream(id, StreamItem::Opened));
            }
            StreamItem::Data(bytes) => {
                let Some(down) = self.0.get_mut(&id).filter(|down| !down.is_finished) else { return true };
                let Some(left) = down.credit.checked_sub(bytes.len() as u64) else {
                    // Who writes more than it was granted would fill the memory.
                    self.end(id, sender);
                    self.0.remove(&id);
                    out.up(Item::Stream(id, StreamItem::Reset));
                    return false;
                };
                down.credit = left;
                sender.write(down.number, &bytes);
            }
            StreamItem::Finish => {
                // The other direction, in which nothing comes, ends with it.
                if self.end(id, sender) {
                    out.up(Item::Stream(id, StreamItem::Finish));
                }
            }
            StreamItem::Reset => {
                self.end(id, sender);
                self.0.remove(&id);
            }
            StreamItem::Opened | StreamItem::Credit(_) | StreamItem::Transmitted(_) => {}
        }
        true
    }

    /// Nothing more is sent of any stream: each application is told.
    pub(crate) fn reset_all(&mut self, out: &mut Outbox) {
        for id in std::mem::take(&mut self.0).into_keys() {
            out.up(Item::Stream(id, StreamItem::Reset));
        }
    }

    /// Ends a stream after the bytes that were written. False if it had ended.
    fn end(&mut self, id: StreamId, sender: &mut impl SendsStreams) -> bool {
        let Some(down) = self.0.get_mut(&id) else { return false };
        sender.end(down.number);
        !std::mem::replace(&mut down.is_finished, true)
    }

    /// Says what was sent, and grants what has become free.
    pub(crate) fn grant(&mut self, sender: &mut impl SendsStreams, out: &mut Outbox) {
        self.0.retain(|&id, down| {
            let waiting = sender.waiting(down.number);
            let Some((sent, is_over)) = sender.progress(down.number) else { return false };
            if sent > down.transmitted {
                down.transmitted = sent;
                out.up(Item::Stream(id, StreamItem::Transmitted(down.transmitted)));
            }
            if down.is_finished {
                return !is_over;
            }
            let free = WINDOW.saturating_sub(waiting + down.credit);
            if free >= WINDOW / 2 {
                down.credit += free;
                out.up(Item::Stream(id, StreamItem::Credit(free)));
            }
            true
        });
    }
}
