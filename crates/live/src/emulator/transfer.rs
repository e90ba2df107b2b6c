//! The traffic of a run's one transfer: when its data began, and the bytes on a link over time.

use hopcast_core::{Duration, Instant};
use hopcast_link::{Attachment, Link};
use hopcast_twin::collect::SentBytes;

/// Minimum time between two entries of the bytes of a link. Chosen: a full frame takes longer at 10 Mbit/s; finer ones
/// cost memory, in all that a run lasts.
const RESOLUTION: Duration = Duration::from_millis(1);

/// A transfer whose traffic is reported.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// Number of the node that sends it.
    pub sender: usize,
    /// Minimum length of a frame of its data, in bytes: those that announce it are shorter.
    pub data_frame: usize,
}

/// Traffic of a transfer.
#[derive(Clone, Debug, Default)]
pub struct TransferReport {
    /// Time at which its sender sent its first frame of data.
    pub began: Option<Instant>,
    /// Bytes sent on all links.
    pub sent: SentBytes,
}

/// Traffic of a transfer on one link.
pub(super) struct TransferMeter {
    /// Attachments of the sender.
    senders: Vec<Attachment>,
    data_frame: usize,
    attachments: Attachment,
    pub(super) began: Option<Instant>,
    pub(super) sent: Vec<(Instant, u64)>,
}

impl TransferMeter {
    /// Of `transfer` on a link that joins these nodes, each with the number of its interface.
    pub(super) fn new(transfer: Transfer, ends: &[(usize, u32)]) -> Self {
        let senders = ends.iter().enumerate().filter(|(_, (node, _))| *node == transfer.sender);
        Self {
            senders: senders.map(|(attachment, _)| attachment).collect(),
            data_frame: transfer.data_frame,
            attachments: ends.len(),
            began: None,
            sent: Vec::new(),
        }
    }

    /// A frame of `length` bytes was offered.
    pub(super) fn offered(&mut self, now: Instant, from: Attachment, length: usize) {
        if self.began.is_none() && length >= self.data_frame && self.senders.contains(&from) {
            self.began = Some(now);
        }
    }

    /// Notes the bytes that were sent on the link by now.
    pub(super) fn look(&mut self, now: Instant, link: &mut (dyn Link + Send)) {
        let bytes = (0..self.attachments).map(|from| link.sender_counters(now, from).sent_bytes).sum();
        self.note(now, bytes);
    }

    fn note(&mut self, now: Instant, bytes: u64) {
        let (last, before) = self.sent.last().map_or((None, 0), |&(at, bytes)| (Some(at), bytes));
        if bytes == before {
            return;
        }
        // A step begins when its first byte was sent, so that what was sent by a time is never too little.
        match self.sent.last_mut() {
            Some((_, sent)) if last.is_some_and(|at| now < at + RESOLUTION) => *sent = bytes,
            _ => self.sent.push((now, bytes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(micros)
    }

    #[test]
    fn a_transfer_begins_with_the_first_long_frame_of_its_sender() {
        let mut meter = TransferMeter::new(Transfer { sender: 7, data_frame: 700 }, &[(3, 0), (7, 1)]);
        meter.offered(at(1), 1, 60);
        meter.offered(at(2), 0, 1400);
        assert_eq!(meter.began, None);
        meter.offered(at(3), 1, 700);
        meter.offered(at(4), 1, 1400);
        assert_eq!(meter.began, Some(at(3)));
    }

    #[test]
    fn bytes_are_known_to_a_millisecond_and_take_no_more_memory_than_the_time() {
        let mut meter = TransferMeter::new(Transfer { sender: 0, data_frame: 0 }, &[(0, 0), (1, 0)]);
        for step in 0..=10_000 {
            meter.note(at(step), step * 3);
        }
        assert!(meter.sent.len() <= 11, "{:?}", meter.sent);
        let sent = SentBytes { links: vec![meter.sent.clone(), meter.sent] };
        assert_eq!(sent.until(Instant::ZERO), 0);
        for step in 1..10_000 {
            let found = sent.until(at(step));
            assert!((step * 6..=(step + 1_000) * 6).contains(&found), "{step}: {found}");
        }
        assert_eq!(sent.until(at(20_000)), 60_000);
    }
}
