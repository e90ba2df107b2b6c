//! Carrier sense, back-off, collisions, acknowledgements and retries: 802.11's distributed coordination function
//! (IEEE 802.11-2020, section 10.3), of stations that all hear one another.

use std::mem;

use hopcast_core::{Buffer, Duration, FrameOutcome, Instant, Stream};

use crate::air::{Air, is_group};
use crate::config::{Csma, DropReason};
use crate::{Attachment, Change};

/// The contention for the medium, and the transmission on it.
///
/// Time is idle or busy for all stations alike. The slots of an idle period are counted from its `origin`, DIFS after
/// the medium fell idle; each station that has something to send has a slot in which it begins. Those whose slots are
/// equal begin together and collide. For the others, the slots that have passed come off theirs.
#[derive(Debug)]
pub(crate) struct Contention {
    config: Csma,
    contenders: Vec<Contender>,
    /// When slot 0 of the idle period begins, or will.
    origin: Instant,
    on_air: Option<Transmission>,
    spare: Spare,
}

/// Lists to be used again, so that a frame allocates nothing: never more than there are stations.
#[derive(Debug, Default)]
struct Spare {
    by: Vec<Attachment>,
    heard: Vec<Vec<bool>>,
}

/// A station, as it contends.
#[derive(Debug)]
struct Contender {
    stream: Stream,
    /// Back-offs are drawn from 0 to this, in slots.
    window: u32,
    /// In which slot of the idle period it may begin; of the next one, while the medium is busy.
    slot: u64,
    head: Option<Head>,
}

/// The frame with which a station contends.
#[derive(Debug)]
struct Head {
    frame: Buffer,
    retries: u32,
    /// The stations that have heard it already; a frame that was retried is not heard twice.
    heard: Vec<bool>,
    /// How long it is on the air; known once it has begun.
    airtime: Duration,
}

/// The transmission on the air.
#[derive(Debug)]
struct Transmission {
    by: Vec<Attachment>,
    start: Instant,
    end: Instant,
    collision: bool,
}

impl Contention {
    pub(crate) fn new(config: Csma, streams: impl Iterator<Item = Stream>) -> Self {
        let window = config.cw_min;
        let contender = |stream| Contender { stream, window, slot: 0, head: None };
        let contenders = streams.map(contender).collect();
        Self { config, contenders, origin: Instant::ZERO, on_air: None, spare: Spare::default() }
    }

    /// Catches up with `now`.
    pub(crate) fn advance(&mut self, now: Instant, air: &mut Air) {
        loop {
            match &self.on_air {
                Some(transmission) if transmission.end > now => return,
                Some(_) => self.finish(air),
                None => match self.next_start(air) {
                    Some((slot, start)) if start <= now => self.begin(slot, start, air),
                    Some(_) | None => return,
                },
            }
        }
    }

    pub(crate) fn offer(&mut self, now: Instant, from: Attachment, frame: Buffer, air: &mut Air) {
        let free = self.contenders[from].head.is_none();
        if let Some(frame) = air.senders[from].admit(now, frame, free, &mut air.reports) {
            self.contend(now, from, frame, air.len());
        }
    }

    /// The time of the next event that somebody may notice.
    pub(crate) fn deadline(&self, air: &Air) -> Option<Instant> {
        match &self.on_air {
            Some(transmission) => Some(transmission.end),
            None => self.next_start(air).map(|(_, start)| start),
        }
    }

    /// Applies what a change means for the contention, and begins to contend with what it has made possible.
    pub(crate) fn change(&mut self, now: Instant, from: Option<Attachment>, change: &Change, air: &mut Air) {
        for station in 0..self.contenders.len() {
            if *change == Change::Down && from.is_none_or(|from| from == station) {
                self.silence(now, station, air);
            }
            self.next_head(now, station, air);
            if self.contenders[station].head.is_some() && self.on_air.is_none() {
                let slot = self.slot_at(now);
                let contender = &mut self.contenders[station];
                contender.slot = contender.slot.max(slot);
            }
        }
    }

    /// The first slot in which somebody begins, and when that is.
    fn next_start(&self, air: &Air) -> Option<(u64, Instant)> {
        let ready = self.contenders.iter().zip(&air.senders);
        let ready = ready.filter(|(contender, sender)| contender.head.is_some() && !sender.stopped());
        let slot = ready.map(|(contender, _)| contender.slot).min()?;
        Some((slot, self.origin + self.config.slot * slot))
    }

    /// All stations whose slot it is begin to send.
    fn begin(&mut self, slot: u64, start: Instant, air: &mut Air) {
        let (mut by, mut end) = (mem::take(&mut self.spare.by), start);
        for (station, contender) in self.contenders.iter_mut().enumerate() {
            let sender = &mut air.senders[station];
            match &mut contender.head {
                Some(head) if contender.slot == slot && !sender.stopped() => {
                    head.airtime = self.config.overhead + sender.airtime(&head.frame);
                    end = end.max(start + head.airtime);
                    by.push(station);
                }
                _ => contender.slot = contender.slot.saturating_sub(slot),
            }
        }
        let collision = by.len() > 1;
        self.on_air = Some(Transmission { by, start, end, collision });
    }

    /// The transmission on the air has ended: its frames are heard, and acknowledged or not.
    fn finish(&mut self, air: &mut Air) {
        let Some(Transmission { mut by, end, collision, .. }) = self.on_air.take() else { return };
        let one = by.first().and_then(|&from| self.contenders[from].head.as_ref());
        let to_group = one.is_some_and(|head| is_group(&head.frame));
        // After a frame that it cannot read a station waits as long as an acknowledgement would take (EIFS).
        let exchange =
            if collision || !to_group { self.config.sifs + self.config.ack } else { Duration::ZERO };
        self.origin = end + exchange + self.config.difs;
        for &from in &by {
            let Some(mut head) = self.contenders[from].head.take() else { continue };
            air.senders[from].occupied(head.airtime);
            let done = if collision {
                air.senders[from].collided();
                is_group(&head.frame)
            } else {
                self.attempt(end, from, &mut head, air)
            };
            if done || head.retries >= self.config.retries {
                let missed = |to: Attachment| match collision {
                    true if by.contains(&to) => DropReason::HalfDuplex,
                    true => DropReason::Collision,
                    false => DropReason::RetryLimit,
                };
                let outcome = if done { FrameOutcome::Acknowledged } else { FrameOutcome::Unacknowledged };
                air.reports.status(end + exchange, from, &head.frame, outcome, head.retries + 1);
                self.settle(end, end + exchange, from, head, missed, air);
                self.contenders[from].window = self.config.cw_min;
                self.next_head(end, from, air);
            } else {
                head.retries += 1;
                air.senders[from].retried();
                let contender = &mut self.contenders[from];
                contender.window = (2 * contender.window + 1).min(self.config.cw_max);
                contender.head = Some(head);
            }
            // After each transmission, also when nothing waits (IEEE 802.11-2020, section 10.3.4.3).
            self.contenders[from].back_off();
        }
        by.clear();
        self.spare.by = by;
    }

    /// A frame is on the air alone: those hear it to whom the channel carries it. Whether its sender is done with it.
    fn attempt(&self, end: Instant, from: Attachment, head: &mut Head, air: &mut Air) -> bool {
        let addressee = air.addressee(from, &head.frame);
        for to in (0..air.len()).filter(|&to| to != from) {
            let Some(path) = air.path_mut(from, to) else { continue };
            let lost = path.channel_lost();
            let (wanted, addressed) = air.wants(to, &head.frame);
            if wanted && !lost && !head.heard[to] {
                head.heard[to] = true;
                air.listen(end, from, to, &head.frame, addressed);
            }
        }
        let acknowledged = addressee.is_some_and(|to| head.heard[to]);
        if let Some(to) = addressee.filter(|_| acknowledged) {
            air.senders[to].occupied(self.config.ack);
        }
        acknowledged || is_group(&head.frame)
    }

    /// The sender is done with a frame at `done`, whose last bit left at `end`; who has not heard it has missed it.
    fn settle(
        &mut self,
        end: Instant,
        done: Instant,
        from: Attachment,
        head: Head,
        missed: impl Fn(Attachment) -> DropReason,
        air: &mut Air,
    ) {
        air.senders[from].sent(end, &head.frame, &mut air.reports);
        for to in 0..air.len() {
            let (wanted, addressed) = air.wants(to, &head.frame);
            let Some(path) = air.path_mut(from, to) else { continue };
            if addressed {
                path.sent(&head.frame);
            }
            if !wanted {
                path.pass();
            } else if !head.heard[to] {
                air.miss(end, from, to, &head.frame, missed(to));
            }
        }
        air.echo(done, from, &head.frame);
        head.frame.recycle();
        self.spare.heard.push(head.heard);
    }

    /// A station goes down, also in the middle of a transmission.
    fn silence(&mut self, now: Instant, station: Attachment, air: &mut Air) {
        let Some(head) = self.contenders[station].head.take() else { return };
        let mut transmissions = head.retries;
        if let Some(transmission) = &mut self.on_air
            && transmission.by.contains(&station)
        {
            air.senders[station].occupied(now.since(transmission.start));
            transmissions += 1;
            transmission.by.retain(|&by| by != station);
            if transmission.by.is_empty() {
                self.on_air = None;
                self.origin = now + self.config.difs;
            }
        }
        self.contenders[station].window = self.config.cw_min;
        let outcome = if transmissions > 0 { FrameOutcome::Unacknowledged } else { FrameOutcome::Unsent };
        air.reports.status(now, station, &head.frame, outcome, transmissions);
        if head.heard.contains(&true) {
            self.settle(now, now, station, head, |_| DropReason::Down, air);
        } else {
            self.spare.heard.push(head.heard);
            air.senders[station].give_up(now, head.frame, DropReason::Down, &mut air.reports);
        }
    }

    /// A station contends with what has waited longest in its queue, if it has nothing else to contend with.
    fn next_head(&mut self, now: Instant, station: Attachment, air: &mut Air) {
        if self.contenders[station].head.is_none()
            && let Some(frame) = air.senders[station].pull(now, &mut air.reports)
        {
            self.contend(now, station, frame, air.len());
        }
    }

    fn contend(&mut self, now: Instant, station: Attachment, frame: Buffer, stations: usize) {
        let idle = self.on_air.is_none() && now >= self.origin;
        let slot = self.slot_at(now);
        let mut heard = self.spare.heard.pop().unwrap_or_default();
        heard.clear();
        heard.resize(stations, false);
        let contender = &mut self.contenders[station];
        contender.head = Some(Head { frame, retries: 0, heard, airtime: Duration::ZERO });
        if idle {
            // Its back-off is over, or what is left of it.
            contender.slot = contender.slot.max(slot);
        } else if contender.slot == 0 {
            contender.back_off();
        }
    }

    /// The first slot that begins at `now` or later.
    fn slot_at(&self, now: Instant) -> u64 {
        let slot = self.config.slot.as_nanos().max(1);
        now.since(self.origin).as_nanos().div_ceil(slot)
    }
}

impl Contender {
    fn back_off(&mut self) {
        self.slot = self.stream.below(u64::from(self.window) + 1);
    }
}
