//! Carrier sense, back-off, collisions, acknowledgements and retries: 802.11's distributed coordination function
//! (IEEE 802.11-2020, section 10.3), of stations that all hear one another.

use std::mem;

use hopcast_core::{Buffer, Duration, FrameOutcome, Instant, Stream};

use crate::address::is_group;
use crate::config::{Csma, DropReason};
use crate::stations::Stations;
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
    /// The time at which slot 0 of the idle period begins.
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
    /// Contention window: back-offs are drawn from 0 to this, in slots.
    window: u32,
    /// The slot of the idle period in which it may begin; of the next period, while the medium is busy.
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
    /// Time on the air; known once it has begun.
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
    pub(crate) fn advance(&mut self, now: Instant, stations: &mut Stations) {
        loop {
            match &self.on_air {
                Some(transmission) if transmission.end > now => return,
                Some(_) => self.finish(stations),
                None => match self.next_start(stations) {
                    Some((slot, start)) if start <= now => self.begin(slot, start, stations),
                    Some(_) | None => return,
                },
            }
        }
    }

    pub(crate) fn offer(&mut self, now: Instant, from: Attachment, frame: Buffer, stations: &mut Stations) {
        let free = self.contenders[from].head.is_none();
        if let Some(frame) = stations.senders[from].admit(now, frame, free, &mut stations.reports) {
            self.contend(now, from, frame, stations.len());
        }
    }

    /// The time of the next event that somebody may notice.
    pub(crate) fn deadline(&self, stations: &Stations) -> Option<Instant> {
        match &self.on_air {
            Some(transmission) => Some(transmission.end),
            None => self.next_start(stations).map(|(_, start)| start),
        }
    }

    /// Applies what a change means for the contention, and begins to contend with what it has made possible.
    pub(crate) fn change(
        &mut self,
        now: Instant,
        from: Option<Attachment>,
        change: &Change,
        stations: &mut Stations,
    ) {
        for station in 0..self.contenders.len() {
            if *change == Change::Down && from.is_none_or(|from| from == station) {
                self.silence(now, station, stations);
            }
            self.next_head(now, station, stations);
            if self.contenders[station].head.is_some() && self.on_air.is_none() {
                let slot = self.slot_at(now);
                let contender = &mut self.contenders[station];
                contender.slot = contender.slot.max(slot);
            }
        }
    }

    /// The first slot in which somebody begins, and when that is.
    fn next_start(&self, stations: &Stations) -> Option<(u64, Instant)> {
        let ready = self.contenders.iter().zip(&stations.senders);
        let ready = ready.filter(|(contender, sender)| contender.head.is_some() && !sender.stopped());
        let slot = ready.map(|(contender, _)| contender.slot).min()?;
        Some((slot, self.origin + self.config.slot * slot))
    }

    /// The stations whose slot has come begin to send.
    fn begin(&mut self, slot: u64, start: Instant, stations: &mut Stations) {
        let (mut by, mut end) = (mem::take(&mut self.spare.by), start);
        for (station, contender) in self.contenders.iter_mut().enumerate() {
            let sender = &mut stations.senders[station];
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
    fn finish(&mut self, stations: &mut Stations) {
        let Some(Transmission { mut by, end, collision, .. }) = self.on_air.take() else { return };
        let one = by.first().and_then(|&from| self.contenders[from].head.as_ref());
        let to_group = one.is_some_and(|head| is_group(&head.frame));
        // After a frame that it cannot read a station waits as long as an acknowledgement would take (EIFS).
        let exchange =
            if collision || !to_group { self.config.sifs + self.config.ack } else { Duration::ZERO };
        self.origin = end + exchange + self.config.difs;
        for &from in &by {
            let Some(mut head) = self.contenders[from].head.take() else { continue };
            stations.senders[from].occupied(head.airtime);
            let done = if collision {
                stations.senders[from].collided();
                is_group(&head.frame)
            } else {
                self.attempt(end, from, &mut head, stations)
            };
            if done || head.retries >= self.config.retries {
                let missed = |to: Attachment| match collision {
                    true if by.contains(&to) => DropReason::HalfDuplex,
                    true => DropReason::Collision,
                    false => DropReason::RetryLimit,
                };
                let outcome = if done { FrameOutcome::Acknowledged } else { FrameOutcome::Unacknowledged };
                stations.reports.status(end + exchange, from, &head.frame, outcome, head.retries + 1);
                self.settle(end, end + exchange, from, head, missed, stations);
                self.contenders[from].window = self.config.cw_min;
                self.next_head(end, from, stations);
            } else {
                head.retries += 1;
                stations.senders[from].retried();
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

    /// Delivers a frame that was on the air alone to the stations at which the channel does not lose it. Returns
    /// whether its sender is done with it.
    fn attempt(&self, end: Instant, from: Attachment, head: &mut Head, stations: &mut Stations) -> bool {
        let addressee = stations.addressee(from, &head.frame);
        for to in (0..stations.len()).filter(|&to| to != from) {
            let Some(path) = stations.path_mut(from, to) else { continue };
            let lost = path.channel_lost();
            let (wanted, addressed) = stations.wants(to, &head.frame);
            if wanted && !lost && !head.heard[to] {
                head.heard[to] = true;
                stations.listen(end, from, to, &head.frame, addressed, None);
            }
        }
        let acknowledged = addressee.is_some_and(|to| head.heard[to]);
        if let Some(to) = addressee.filter(|_| acknowledged) {
            stations.senders[to].occupied(self.config.ack);
        }
        acknowledged || is_group(&head.frame)
    }

    /// The sender is done at `done` with a frame whose last bit left at `end`: the stations that have not heard it have
    /// missed it.
    fn settle(
        &mut self,
        end: Instant,
        done: Instant,
        from: Attachment,
        head: Head,
        missed: impl Fn(Attachment) -> DropReason,
        stations: &mut Stations,
    ) {
        stations.senders[from].sent(end, &head.frame, &mut stations.reports);
        for to in 0..stations.len() {
            let (wanted, addressed) = stations.wants(to, &head.frame);
            let Some(path) = stations.path_mut(from, to) else { continue };
            if addressed {
                path.sent(&head.frame);
            }
            if !wanted {
                path.pass();
            } else if !head.heard[to] {
                stations.miss(end, from, to, &head.frame, missed(to));
            }
        }
        stations.echo(done, from, &head.frame);
        head.frame.recycle();
        self.spare.heard.push(head.heard);
    }

    /// A station goes down, also in the middle of a transmission.
    fn silence(&mut self, now: Instant, station: Attachment, stations: &mut Stations) {
        let Some(head) = self.contenders[station].head.take() else { return };
        let mut transmissions = head.retries;
        if let Some(transmission) = &mut self.on_air
            && transmission.by.contains(&station)
        {
            stations.senders[station].occupied(now.since(transmission.start));
            transmissions += 1;
            transmission.by.retain(|&by| by != station);
            if transmission.by.is_empty() {
                self.on_air = None;
                self.origin = now + self.config.difs;
            }
        }
        self.contenders[station].window = self.config.cw_min;
        let outcome = if transmissions > 0 { FrameOutcome::Unacknowledged } else { FrameOutcome::Unsent };
        stations.reports.status(now, station, &head.frame, outcome, transmissions);
        if head.heard.contains(&true) {
            self.settle(now, now, station, head, |_| DropReason::Down, stations);
        } else {
            self.spare.heard.push(head.heard);
            stations.senders[station].give_up(now, head.frame, DropReason::Down, &mut stations.reports);
        }
    }

    /// A station contends with what has waited longest in its queue, if it has nothing else to contend with.
    fn next_head(&mut self, now: Instant, station: Attachment, stations: &mut Stations) {
        if self.contenders[station].head.is_none()
            && let Some(frame) = stations.senders[station].pull(now, &mut stations.reports)
        {
            self.contend(now, station, frame, stations.len());
        }
    }

    fn contend(&mut self, now: Instant, station: Attachment, frame: Buffer, count: usize) {
        let idle = self.on_air.is_none() && now >= self.origin;
        let slot = self.slot_at(now);
        let mut heard = self.spare.heard.pop().unwrap_or_default();
        heard.clear();
        heard.resize(count, false);
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
