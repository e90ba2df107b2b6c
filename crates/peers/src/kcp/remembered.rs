//! Conversations that are over, so that nothing late opens them again.

use std::collections::{BTreeMap, VecDeque};

use super::config::MAX_REMEMBERED;
use super::wire::{ACK, PUSH, Packet, Segment};

/// End that a conversation had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Both directions finished, after this many segments arrived.
    Closed(u32),
    /// With a reset.
    Reset,
}

/// The last of them, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    ends: BTreeMap<u32, End>,
    order: VecDeque<u32>,
}

impl Remembered {
    pub(super) fn insert(&mut self, conv: u32, end: End) {
        if self.ends.insert(conv, end).is_some() {
            return;
        }
        self.order.push_back(conv);
        if self.order.len() > MAX_REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.ends.remove(&oldest);
        }
    }

    pub(super) fn contains(&self, conv: u32) -> bool {
        self.ends.contains_key(&conv)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        assert_eq!(self.ends.len(), self.order.len());
        self.ends.len()
    }

    /// The answer to a late datagram: one that closed acknowledges again what the peer repeats, in case the last
    /// acknowledgement was lost. `Err` if nothing is known of its conversation.
    pub(super) fn answer(&self, packet: &Packet<'_>) -> Result<Option<Segment>, ()> {
        match self.ends.get(&packet.conv()) {
            None => Err(()),
            Some(_) if packet.is_reset() => Ok(None),
            Some(End::Reset) => Ok(Some(Segment::reset(packet.conv()))),
            Some(&End::Closed(una)) => {
                let pushed = packet.segments().find(|segment| segment.command == PUSH);
                Ok(pushed.map(|segment| Segment { command: ACK, window: u16::MAX, una, len: 0, ..segment }))
            }
        }
    }
}
