//! From the offer to the last bit on the wire: a queue and a serialiser.

use hopcast_core::{Buffer, Duration, Instant, Rate};

use crate::config::{Direction, DropReason};
use crate::queue::FrameQueue;
use crate::reports::Reports;
use crate::{Attachment, Change, Counters, QueueSnapshot};

/// Length of an Ethernet header, in bytes, which the MTU does not count: two addresses and the type (IEEE 802.3,
/// section 3.1.1).
pub(crate) const ETHERNET_HEADER: u64 = 14;

/// The sending side of one attachment.
#[derive(Debug)]
pub(crate) struct Sender {
    from: Attachment,
    /// The other end of a line of its own for two stations, and its address.
    line_to: Option<(Attachment, [u8; 6])>,
    rate: Option<Rate>,
    /// The rate at which the last frame was begun, which it keeps to its end.
    frame_rate: Option<Rate>,
    /// The time of the last frame beyond whole nanoseconds; see [`Rate::time_with_carry`].
    carry: u64,
    down: bool,
    max_frame: u64,
    queue: FrameQueue,
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
        let max_frame = u64::from(config.mtu) + ETHERNET_HEADER;
        Self {
            from,
            line_to: None,
            rate: config.rate,
            frame_rate: config.rate,
            carry: 0,
            down: false,
            max_frame,
            queue: FrameQueue::new(config.queue, max_frame),
            serialising: None,
            counters: Counters::default(),
        }
    }

    /// The sender of a line that has only one station at its other end.
    pub(crate) fn on_line(from: Attachment, to: (Attachment, [u8; 6]), config: &Direction) -> Self {
        Self { line_to: Some(to), ..Self::new(from, config) }
    }

    /// The other end of the line, if `frame` is not for it alone, and so may be on other lines too.
    pub(crate) fn copied_to(&self, frame: &Buffer) -> Option<Attachment> {
        copied_to(self.line_to, frame)
    }

    /// Takes a frame. `free` says that no other sender is using the line.
    pub(crate) fn offer(&mut self, now: Instant, frame: Buffer, free: bool, reports: &mut Reports) {
        let free = free && self.serialising.is_none();
        if let Some(frame) = self.admit(now, frame, free, reports) {
            self.start(now, frame);
        }
    }

    /// Takes a frame, and gives it back if it is its turn at once: nothing waits, and `free` says that nothing else is
    /// being sent.
    pub(crate) fn admit(
        &mut self,
        now: Instant,
        frame: Buffer,
        free: bool,
        reports: &mut Reports,
    ) -> Option<Buffer> {
        if self.down {
            self.discard(now, frame, DropReason::Down, reports);
        } else if frame.len() as u64 > self.max_frame {
            self.discard(now, frame, DropReason::TooBig, reports);
        } else if free && self.queue.is_empty() && !self.stopped() {
            self.queue.pass();
            return Some(frame);
        } else if let Err(frame) = self.queue.push(now, frame) {
            self.discard(now, frame, DropReason::QueueFull, reports);
        }
        None
    }

    /// The time at which the frame in serialisation will have left.
    #[inline]
    pub(crate) fn end(&self) -> Option<Instant> {
        self.serialising.as_ref().map(|frame| frame.end)
    }

    /// Takes the frame in serialisation, which has left at its end.
    #[inline]
    pub(crate) fn finish(&mut self, reports: &mut Reports) -> Option<Buffer> {
        let Serialising { frame, start, end } = self.serialising.take()?;
        self.occupied(end.since(start));
        self.sent(end, &frame, reports);
        Some(frame)
    }

    /// Takes the frame in serialisation, which has left at its end; unless it may be on other lines too, it counts as
    /// sent.
    pub(crate) fn finish_copy(&mut self, reports: &mut Reports) -> Option<Buffer> {
        let Serialising { frame, start, end } = self.serialising.take()?;
        self.occupied(end.since(start));
        if self.copied_to(&frame).is_none() {
            self.sent(end, &frame, reports);
        }
        Some(frame)
    }

    /// Notes that a frame has left at `end`.
    pub(crate) fn sent(&mut self, end: Instant, frame: &Buffer, reports: &mut Reports) {
        self.counters.sent_packets += 1;
        self.counters.sent_bytes += frame.len() as u64;
        reports.sent(end, self.from, frame);
    }

    /// Notes time on the line or on the air.
    pub(crate) fn occupied(&mut self, span: Duration) {
        self.counters.busy += span;
    }

    /// Notes a collision.
    pub(crate) fn collided(&mut self) {
        self.counters.collisions += 1;
    }

    /// Notes that a frame is sent again.
    pub(crate) fn retried(&mut self) {
        self.counters.retries += 1;
    }

    /// The time since which the first frame that could be sent has waited.
    pub(crate) fn ready_since(&self) -> Option<Instant> {
        if self.stopped() { None } else { self.queue.since() }
    }

    /// Whether frames wait behind the one in serialisation.
    pub(crate) fn has_backlog(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Serialises the next frame that waits, if there is one.
    pub(crate) fn start_next(&mut self, now: Instant, reports: &mut Reports) {
        if let Some(frame) = self.pull(now, reports) {
            self.start(now, frame);
        }
    }

    /// Takes the next frame that waits, if there is one.
    pub(crate) fn pull(&mut self, now: Instant, reports: &mut Reports) -> Option<Buffer> {
        if self.stopped() {
            return None;
        }
        let Self { from, line_to, counters, queue, .. } = self;
        let next = queue.pop(now, |waiting, reason| {
            counters.queue_dropped_packets += 1;
            reports.unsent(now, *from, &waiting.frame);
            let missed_by = copied_to(*line_to, &waiting.frame);
            reports.dropped(now, *from, missed_by, waiting.frame, reason);
        })?;
        self.counters.queued += now.since(next.since);
        Some(next.frame)
    }

    /// The rate at which frames are sent.
    pub(crate) fn rate(&self) -> Option<Rate> {
        self.rate
    }

    /// The rate of the frame that is being sent, or was last.
    pub(crate) fn frame_rate(&self) -> Option<Rate> {
        self.frame_rate
    }

    /// Time to send a frame that begins now.
    pub(crate) fn airtime(&mut self, frame: &Buffer) -> Duration {
        self.airtime_at(frame, self.rate)
    }

    /// Time to send a frame that begins now at another rate than the configured one.
    pub(crate) fn airtime_at(&mut self, frame: &Buffer, rate: Option<Rate>) -> Duration {
        self.frame_rate = rate;
        match rate {
            None => Duration::ZERO,
            Some(rate) => rate.time_with_carry(frame.len() as u64, &mut self.carry),
        }
    }

    /// Applies what concerns the sender. Afterwards the line may be free for frames that wait.
    pub(crate) fn change(&mut self, now: Instant, change: &Change, reports: &mut Reports) {
        match change {
            Change::Rate(rate) => self.rate = *rate,
            Change::Queue(discipline) => self.queue.replace(*discipline, self.max_frame),
            Change::Mtu(mtu) => {
                self.max_frame = u64::from(*mtu) + ETHERNET_HEADER;
                self.queue.resize_frames(self.max_frame);
            }
            Change::Up => self.down = false,
            Change::Down => {
                self.down = true;
                if let Some(Serialising { frame, start, .. }) = self.serialising.take() {
                    self.counters.busy += now.since(start);
                    self.discard(now, frame, DropReason::Down, reports);
                }
                while let Some(waiting) = self.queue.discard() {
                    self.discard(now, waiting.frame, DropReason::Down, reports);
                }
            }
            Change::Delay(_)
            | Change::Jitter(_)
            | Change::Loss(_)
            | Change::LossTo(..)
            | Change::Reorder(_)
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

    /// The frames that wait now.
    pub(crate) fn backlog(&self) -> QueueSnapshot {
        let (frames, bytes) = self.queue.size();
        QueueSnapshot { frames, bytes, down: self.down }
    }

    fn start(&mut self, now: Instant, frame: Buffer) {
        self.start_at(now, frame, self.rate);
    }

    /// Serialises a frame at this rate.
    pub(crate) fn start_at(&mut self, now: Instant, frame: Buffer, rate: Option<Rate>) {
        let time = self.airtime_at(&frame, rate);
        self.serialising = Some(Serialising { frame, start: now, end: now + time });
    }

    /// At a rate of zero no frame is begun, so that it can be sent once the rate has changed.
    pub(crate) fn stopped(&self) -> bool {
        self.rate == Some(Rate::default())
    }

    /// Drops a frame that never left.
    pub(crate) fn discard(&mut self, now: Instant, frame: Buffer, reason: DropReason, reports: &mut Reports) {
        reports.unsent(now, self.from, &frame);
        self.give_up(now, frame, reason, reports);
    }

    /// Drops a frame that has not left completely, and whose status has been reported.
    pub(crate) fn give_up(&mut self, now: Instant, frame: Buffer, reason: DropReason, reports: &mut Reports) {
        self.counters.queue_dropped_packets += 1;
        // The copies of a frame on other lines have another fate.
        let missed_by = self.copied_to(&frame);
        reports.dropped(now, self.from, missed_by, frame, reason);
    }
}

fn copied_to(line_to: Option<(Attachment, [u8; 6])>, frame: &Buffer) -> Option<Attachment> {
    line_to.filter(|(_, address)| frame.first_chunk() != Some(address)).map(|(to, _)| to)
}

/// The sender that is next on a shared line: of those whose frames could be sent, the one whose head frame has waited
/// longest; of several, the one with the lowest number.
pub(crate) fn longest_waiting<'a>(senders: impl Iterator<Item = &'a Sender>) -> Option<usize> {
    let ready = senders.enumerate().filter_map(|(index, sender)| Some((sender.ready_since()?, index)));
    ready.min().map(|(_, index)| index)
}
