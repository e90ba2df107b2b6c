//! Whole messages of the application that wait for room among the objects of the sender.

use std::collections::VecDeque;
use std::sync::Arc;

use hopcast_core::{Instant, Message as Unit};

use super::sender::{Refusal, Sender};
use super::wire::Flags;

/// Messages that wait, in their order. What is granted, or the bound on their bytes, holds the application back.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    waiting: VecDeque<Waiting>,
    bytes: u64,
}

#[derive(Debug)]
struct Waiting {
    bytes: Arc<[u8]>,
    name: Option<Arc<[u8]>>,
}

/// Bytes of messages that wait for room, with [`UNIT`] for each; more are refused. One is always taken, whatever its
/// size. Chosen: a few of the longest messages of an application that is not granted them; one that is has a fraction.
const MAX_BYTES: u64 = 64 << 20;
/// Bytes that each message counts beside its own, so that empty ones are bounded too.
const UNIT: u64 = 256;

impl Backlog {
    /// Takes a message, which is a file if it has a name. False if it is refused: too much waits, or it can never be
    /// sent.
    pub(super) fn take(&mut self, now: Instant, unit: Unit, sender: &mut Sender) -> bool {
        let waiting = Waiting { bytes: Arc::from(&unit.payload[..]), name: unit.name };
        if !sender.takes(waiting.bytes.len(), waiting.name.as_deref()) {
            return false;
        }
        if self.waiting.is_empty() && waiting.send(now, sender).is_ok() {
            return true;
        }
        let bytes = waiting.cost();
        if !self.waiting.is_empty() && self.bytes + bytes > MAX_BYTES {
            return false;
        }
        self.bytes += bytes;
        self.waiting.push_back(waiting);
        true
    }

    /// Sends those for which there is room now.
    pub(super) fn send(&mut self, now: Instant, sender: &mut Sender) {
        while let Some(first) = self.waiting.front()
            && first.send(now, sender).is_ok()
        {
            self.bytes -= self.waiting.pop_front().map_or(0, |sent| sent.cost());
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Bytes of those that wait.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Waiting {
    fn cost(&self) -> u64 {
        UNIT + self.bytes.len() as u64
    }

    fn send(&self, now: Instant, sender: &mut Sender) -> Result<u64, Refusal> {
        let flags = if self.name.is_some() { Flags::FILE } else { Flags::default() };
        sender.push(now, self.bytes.clone(), self.name.clone(), flags)
    }
}
