//! From the offer to the last bit on the wire: a queue and a serialiser.

use hopcast_core::{Buffer, Duration, Instant, Rate};

use crate::config::{Direction, Drop};
use crate::queue::Queue;
use crate::reports::Reports;
use crate::{Attachment, Change, Counters};

/// The bytes of an Ethernet header, which the MTU does not count.
const HEADER: u64 = 14;

/// The sending side of one attachment.
#[derive(Debug)]
pub(crate) struct Sender {
    from: Attachment,
    rate: Option<Rate>,
    /// What the last frame took beyond whole nanoseconds; see [`Rate::time_with_carry`].
    carry: u64,
    down: bool,
    max_frame: u64,
    queue: Queue,
    serialising: Option<Serialising>,
    counters: Counters,
}

#[derive(Debug)]
struct Serialising {
    frame: Buffer,
    start: Instant,
    end: Instant,
}

impl Sender {
    pub(crate) fn new(from: Attachment, config: &Direction) -> Self {
        let max_frame = u64::from(config.mtu) + HEADER;
        Self {
            from,
            rate: config.rate,
            carry: 0,
            down: false,
            max_frame,
            queue: Queue::new(config.queue, max_frame),
            serialising: None,
            counters: Counters::default(),
        }
    }

    /// Takes a frame. `free` says that nobody else is using the line.
    pub(crate) fn offer(&mut self, now: Instant, frame: Buffer, free: bool, reports: &mut Reports) {
        if self.down {
            self.drop(now, frame, Drop::Down, reports);
        } else if frame.len() as u64 > self.max_frame {
            self.drop(now, frame, Drop::TooBig, reports);
        } else if free && self.serialising.is_none() && self.queue.is_empty() && !self.stopped() {
            self.queue.pass();
            self.start(now, frame);
        } else if let Err(frame) = self.queue.push(now, frame) {
            self.drop(now, frame, Drop::QueueFull, reports);
        }
    }

    /// When the frame in serialisation will have left.
    #[inline]
    pub(crate) fn end(&self) -> Option<Instant> {
        self.serialising.as_ref().map(|frame| frame.end)
    }

    /// Takes the frame in serialisation, which has left at its end.
    pub(crate) fn finish(&mut self, reports: &mut Reports) -> Option<Buffer> {
        let Serialising { frame, start, end } = self.serialising.take()?;
        self.counters.sent_packets += 1;
        self.counters.sent_bytes += frame.len() as u64;
        self.counters.busy += end.since(start);
        reports.sent(end, self.from, &frame);
        Some(frame)
    }

    /// Since when a frame waits that could be sent.
    pub(crate) fn ready_since(&self) -> Option<Instant> {
        if self.stopped() { None } else { self.queue.since() }
    }

    /// Whether frames wait behind the one in serialisation.
    pub(crate) fn has_backlog(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Serialises the next frame that waits, if there is one.
    pub(crate) fn start_next(&mut self, now: Instant, reports: &mut Reports) {
        if self.stopped() {
            return;
        }
        let Self { from, counters, queue, .. } = self;
        let next = queue.pop(now, |waiting, reason| {
            counters.queue_dropped_packets += 1;
            reports.dropped(now, *from, None, waiting.frame, reason);
        });
        if let Some(next) = next {
            self.counters.queued += now.since(next.since);
            self.start(now, next.frame);
        }
    }

    /// Applies what concerns the sender. Afterwards the line may be free for frames that wait.
    pub(crate) fn change(&mut self, now: Instant, change: &Change, reports: &mut Reports) {
        match change {
            Change::Rate(rate) => self.rate = *rate,
            Change::Up => self.down = false,
            Change::Down => {
                self.down = true;
                if let Some(Serialising { frame, start, .. }) = self.serialising.take() {
                    self.counters.busy += now.since(start);
                    self.drop(now, frame, Drop::Down, reports);
                }
                while let Some(waiting) = self.queue.discard() {
                    self.drop(now, waiting.frame, Drop::Down, reports);
                }
            }
            Change::Delay(_)
            | Change::Jitter(_)
            | Change::Loss(_)
            | Change::Corrupt(_)
            | Change::Duplicate(_) => {}
        }
    }

    /// The sender's figures up to `now`.
    pub(crate) fn counters(&self, now: Instant) -> Counters {
        let mut counters = self.counters;
        if let Some(frame) = &self.serialising {
            counters.busy += now.since(frame.start);
        }
        counters
    }

    fn start(&mut self, now: Instant, frame: Buffer) {
        let time = match self.rate {
            None => Duration::ZERO,
            Some(rate) => rate.time_with_carry(frame.len() as u64, &mut self.carry),
        };
        self.serialising = Some(Serialising { frame, start: now, end: now + time });
    }

    /// At a rate of zero no frame is begun, so that it can be sent once the rate has changed.
    fn stopped(&self) -> bool {
        self.rate == Some(Rate::default())
    }

    fn drop(&mut self, now: Instant, frame: Buffer, reason: Drop, reports: &mut Reports) {
        self.counters.queue_dropped_packets += 1;
        reports.dropped(now, self.from, None, frame, reason);
    }
}

/// Whose turn it is on a shared line: of the senders whose frames could be sent, the one whose head frame has waited
/// longest; of several, the one with the lowest number.
pub(crate) fn longest_waiting<'a>(senders: impl Iterator<Item = &'a Sender>) -> Option<usize> {
    let ready = senders.enumerate().filter_map(|(index, sender)| Some((sender.ready_since()?, index)));
    ready.min().map(|(_, index)| index)
}
