//! The one stream that a receiving application accepts.

use std::collections::VecDeque;

use hopcast_core::{Item, Port, StreamId, StreamItem};

/// The first stream that is opened, and the items that the application hands over on it.
#[derive(Default)]
pub(crate) struct Accepted {
    stream: Option<StreamId>,
    out: VecDeque<StreamItem>,
}

impl Accepted {
    /// Takes an item that arrived; answers the opening of the stream with `first_grant`, and returns its later items.
    pub(crate) fn take(&mut self, item: Item, first_grant: StreamItem) -> Option<StreamItem> {
        let Item::Stream(stream, item) = item else { return None };
        if let StreamItem::Open { .. } = item {
            if self.stream.is_none() {
                self.stream = Some(stream);
                self.out.push_back(first_grant);
            }
            return None;
        }
        (self.stream == Some(stream)).then_some(item)
    }

    /// Queues these items to be handed over, in their order.
    pub(crate) fn say(&mut self, items: impl IntoIterator<Item = StreamItem>) {
        self.out.extend(items);
    }

    /// The next item to hand over.
    pub(crate) fn poll(&mut self) -> Option<(Port, Item)> {
        let stream = self.stream?;
        self.out.pop_front().map(|item| (Port::Below(0), Item::Stream(stream, item)))
    }
}
