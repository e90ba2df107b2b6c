//! 802.11's distributed coordination function where each station hears only some of the others, with RTS and CTS
//! (IEEE 802.11-2020, section 10.3).
//!
//! Each station senses for itself, and each receives for itself: a frame is received if nothing else that the receiver
//! hears, and nothing of its own, overlaps it. Acknowledgements, RTS and CTS are transmissions like others, but that
//! the channel's loss spares them. A transmission is sensed a slot after it began, so that stations whose slots begin
//! meanwhile begin as well.

mod contender;
mod contenders;
mod exchange;
mod transmission;

use std::mem;

use hopcast_core::{Buffer, Duration, FrameOutcome, Instant, Rate, Stream, earliest};

use crate::address::is_group;
use crate::config::{Csma, DropReason};
use crate::stations::Stations;
use crate::{Attachment, Change, Hearing};
use contender::{Contender, Head, Reply};
use contenders::Contenders;
use transmission::{Kind, Listener, ReceptionState, Transmission};

/// The contention for the medium, and the transmissions on it.
#[derive(Debug)]
pub(crate) struct Dcf {
    config: Csma,
    contenders: Contenders,
    /// For each station, those that hear it, in their order; empty if radios say who does.
    hearers: Vec<Vec<Attachment>>,
    /// In the order in which they began.
    on_air: Vec<Transmission>,
    /// The time of the next event, which each event changes.
    next: Option<Instant>,
    spare: Spare,
}

/// Lists to be used again, so that a frame allocates nothing: never more of each than there are stations.
#[derive(Debug, Default)]
struct Spare {
    listeners: Vec<Vec<Listener>>,
    heard: Vec<Vec<Result<(), DropReason>>>,
    audience: Vec<Vec<Attachment>>,
    ended: Vec<Transmission>,
    due: Vec<Attachment>,
    reached: Vec<Attachment>,
    hearings: Vec<Hearing>,
}

impl Dcf {
    pub(crate) fn new(config: Csma, streams: impl Iterator<Item = Stream>, stations: &Stations) -> Self {
        let contenders = Contenders::new(streams.map(|stream| Contender::new(stream, &config)).collect());
        let count = if stations.radios.is_some() { 0 } else { stations.len() };
        let hearers = |from| (0..count).filter(|&to| stations.hears(from, to)).collect();
        let hearers = (0..count).map(hearers).collect();
        Self { config, contenders, hearers, on_air: Vec::new(), next: None, spare: Spare::default() }
    }

    /// Catches up with `now`.
    pub(crate) fn advance(&mut self, now: Instant, stations: &mut Stations) {
        while let Some(at) = self.next.filter(|&at| at <= now) {
            self.step(at, stations);
            self.look_ahead(stations);
        }
    }

    pub(crate) fn offer(&mut self, now: Instant, from: Attachment, frame: Buffer, stations: &mut Stations) {
        let free = self.contenders[from].head.is_none();
        if let Some(frame) = stations.senders[from].admit(now, frame, free, &mut stations.reports) {
            let head = self.head(from, frame, stations);
            self.contenders.touch(from).contend(now, head, &self.config);
            self.look_ahead(stations);
        }
    }

    /// The time of the next event.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.next
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
            // A rate of 0, or another, is a reason to ask it anew.
            self.contenders.touch(station);
            if self.contenders[station].head.is_some() {
                self.contenders.touch(station).catch_up(now, &self.config);
            } else if let Some(frame) = stations.senders[station].pull(now, &mut stations.reports) {
                let head = self.head(station, frame, stations);
                self.contenders.touch(station).contend(now, head, &self.config);
            }
        }
        self.look_ahead(stations);
    }

    /// Finds the time of the next event.
    fn look_ahead(&mut self, stations: &Stations) {
        let ends = self.on_air.iter().map(|transmission| transmission.end).min();
        self.next = earliest(ends, self.contenders.next(&self.config, stations));
    }

    /// Handles the events of one instant: transmissions end, waits for answers are over, transmissions begin.
    fn step(&mut self, at: Instant, stations: &mut Stations) {
        let mut ended = mem::take(&mut self.spare.ended);
        ended.extend(self.on_air.extract_if(.., |transmission| transmission.end <= at));
        for transmission in &ended {
            self.clear(transmission, stations);
        }
        for transmission in ended.drain(..) {
            self.finish(&transmission, stations);
            self.spare.listeners.push(transmission.listeners);
        }
        self.spare.ended = ended;
        let mut due = mem::take(&mut self.spare.due);
        self.contenders.due(at, &self.config, stations, &mut due);
        for &station in &due {
            if self.contenders[station].awaits.is_some_and(|until| until <= at) {
                self.contenders.touch(station).timed_out(at);
                self.fail(at, station, stations);
            }
        }
        // Who begins now has not heard the others who do.
        self.contenders.due(at, &self.config, stations, &mut due);
        due.retain(|&station| {
            let reply = self.contenders[station].reply.is_some_and(|reply| reply.at <= at);
            let starts = self.contenders.starts(station, &self.config, stations);
            reply || starts.is_some_and(|start| start <= at)
        });
        for station in due.drain(..) {
            match self.contenders.touch(station).reply.take() {
                Some(reply) => self.answer(at, station, reply, stations),
                None => self.attempt(at, station, stations),
            }
        }
        self.spare.due = due;
    }

    /// A station sends a frame SIFS after another, unless it has just begun to send or is down.
    fn answer(&mut self, now: Instant, from: Attachment, reply: Reply, stations: &mut Stations) {
        let Reply { kind, to, reserved, .. } = reply;
        if self.contenders[from].sending || stations.senders[from].backlog().down {
            return;
        }
        let head = self.contenders[from].head.as_ref();
        let (airtime, rate) = match kind {
            Kind::Data => head.map_or((Duration::ZERO, None), |head| (head.airtime, head.rate)),
            Kind::Rts | Kind::Cts => (self.config.rts.map_or(Duration::ZERO, |rts| rts.cts), None),
            Kind::Ack => (self.config.ack, None),
        };
        self.begin(now, from, Some(to), kind, (airtime, rate), reserved, stations);
    }

    /// A station begins an attempt to send the frame with which it contends.
    fn attempt(&mut self, now: Instant, from: Attachment, stations: &mut Stations) {
        let Csma { sifs, ack, overhead, rts, .. } = self.config;
        let Some(head) = self.contenders.touch(from).attempt() else { return };
        let sender = &mut stations.senders[from];
        let airtime = match &mut stations.radios {
            None => sender.airtime(&head.frame),
            Some(radios) => {
                let found = head.to.and_then(|to| radios.hearing(now, from, to));
                head.rate = attempt_rate(radios.rates(), found.map(|hearing| hearing.rate), head.rate);
                sender.airtime_at(&head.frame, head.rate)
            }
        };
        head.airtime = overhead + airtime;
        let (to, airtime, rate) = (head.to, head.airtime, head.rate);
        let alone = !is_group(&head.frame);
        let rts = rts.filter(|rts| alone && head.frame.len() as u64 >= rts.threshold.get());
        // Nobody has an unknown address, and nobody answers.
        let answered = if alone { sifs + ack } else { Duration::ZERO };
        match rts {
            Some(rts) => {
                let reserved = now + rts.rts + sifs + rts.cts + sifs + airtime + answered;
                self.begin(now, from, to, Kind::Rts, (rts.rts, None), reserved, stations);
            }
            None => {
                let reserved = now + airtime + answered;
                self.begin(now, from, to, Kind::Data, (airtime, rate), reserved, stations);
            }
        }
    }

    /// A transmission begins, with its time on the air and the rate that a radio must read, if not any: the stations
    /// that hear it sense it, and lose what they were receiving.
    #[allow(clippy::too_many_arguments, reason = "each is a field of the transmission")]
    fn begin(
        &mut self,
        now: Instant,
        from: Attachment,
        to: Option<Attachment>,
        kind: Kind,
        (airtime, rate): (Duration, Option<Rate>),
        reserved: Instant,
        stations: &mut Stations,
    ) {
        let new = || Vec::with_capacity(stations.len());
        let mut listeners = self.spare.listeners.pop().unwrap_or_else(new);
        listeners.clear();
        let Self { contenders, config, hearers, spare, .. } = self;
        contenders.touch(from).send();
        let mut listen = |station: Attachment, reads: bool| {
            let mark = contenders.touch(station).hear(now, config);
            listeners.push(Listener { station, reads, mark });
        };
        match &mut stations.radios {
            None => hearers[from].iter().for_each(|&station| listen(station, true)),
            Some(radios) => {
                spare.hearings.clear();
                radios.hearers(now, from, &mut spare.hearings);
                for hearing in &spare.hearings {
                    listen(hearing.to, hearing.reads() && rate.is_none_or(|rate| hearing.rate >= rate));
                }
            }
        }
        let end = now + airtime;
        self.on_air.push(Transmission { from, to, kind, start: now, end, reserved, listeners });
    }

    /// A transmission is over: the stations that heard it no longer sense it.
    fn clear(&mut self, transmission: &Transmission, stations: &mut Stations) {
        let &Transmission { from, start, end, .. } = transmission;
        stations.senders[from].occupied(end.since(start));
        self.contenders.touch(from).sent(end);
        for listener in &transmission.listeners {
            self.contenders.touch(listener.station).fall_silent(end);
        }
    }

    /// A station goes down, also in the middle of a transmission.
    fn silence(&mut self, now: Instant, station: Attachment, stations: &mut Stations) {
        let mut transmissions = self.contenders[station].head.as_ref().map_or(0, |head| head.retries);
        if self.contenders[station].awaits.is_some() {
            transmissions += 1;
        }
        let cut_off = self.on_air.iter().position(|transmission| transmission.from == station);
        if let Some(mut cut_off) = cut_off.map(|place| self.on_air.remove(place)) {
            transmissions += u32::from(matches!(cut_off.kind, Kind::Rts | Kind::Data));
            cut_off.end = now;
            self.clear(&cut_off, stations);
            for listener in &cut_off.listeners {
                let own = self.contenders.touch(listener.station);
                if own.reception(&listener.mark) != ReceptionState::Deaf {
                    own.received(true);
                }
            }
            self.spare.listeners.push(cut_off.listeners);
        }
        let Some(head) = self.contenders.touch(station).reset(&self.config) else { return };
        let outcome = if transmissions > 0 { FrameOutcome::Unacknowledged } else { FrameOutcome::Unsent };
        stations.reports.status(now, station, &head.frame, outcome, transmissions);
        if head.counted || head.heard.contains(&Ok(())) {
            self.settle(now, station, head, Some(DropReason::Down), stations);
        } else {
            self.spare.heard.push(head.heard);
            self.spare.audience.push(head.audience);
            stations.senders[station].give_up(now, head.frame, DropReason::Down, &mut stations.reports);
        }
    }

    fn head(&mut self, from: Attachment, frame: Buffer, stations: &Stations) -> Head {
        let to = stations.addressee(from, &frame);
        let mut heard = self.spare.heard.pop().unwrap_or_default();
        heard.clear();
        // Until it has been sent, nobody has missed it for another reason.
        let missed = if stations.radios.is_some() { DropReason::Unheard } else { DropReason::RetryLimit };
        heard.resize(stations.len(), Err(missed));
        // As many as there can be, so that lists stop growing.
        let count = if stations.radios.is_some() { stations.len() } else { 0 };
        let new = || Vec::with_capacity(count);
        let mut audience = self.spare.audience.pop().unwrap_or_else(new);
        audience.clear();
        let airtime = Duration::ZERO;
        Head { frame, to, retries: 0, heard, audience, counted: false, airtime, rate: None }
    }
}

/// The rate of an attempt, of `rates` from the highest to the lowest: the highest that its receiver can read, but lower
/// than that of the attempt before, if there was one. Without a receiver that hears it is the lowest.
fn attempt_rate(rates: &[Rate], found: Option<Rate>, before: Option<Rate>) -> Option<Rate> {
    let usable = |rate: &&Rate| found.is_some_and(|found| **rate <= found);
    let lower = |rate: &&Rate| before.is_none_or(|before| **rate < before);
    rates.iter().find(|rate| usable(rate) && lower(rate)).or(rates.last()).copied()
}
