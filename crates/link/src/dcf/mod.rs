//! 802.11's distributed coordination function where each station hears only some of the others, with RTS and CTS
//! (IEEE 802.11-2020, section 10.3).
//!
//! Each station senses for itself, and each receives for itself: a frame is received if nothing else that the receiver
//! hears, and nothing of its own, overlaps it. Acknowledgements, RTS and CTS are transmissions like others, but that
//! the channel's loss spares them. A transmission is sensed a slot after it began, so that stations whose slots begin
//! meanwhile begin as well.

mod contender;
mod exchange;
mod transmission;

use std::mem;

use hopcast_core::{Buffer, Duration, FrameOutcome, Instant, Stream, earliest};

use crate::address::is_group;
use crate::config::{Csma, DropReason};
use crate::stations::Stations;
use crate::{Attachment, Change};
use contender::{Contender, Head, Reply};
use transmission::{Kind, ReceptionState, Transmission};

/// The contention for the medium, and the transmissions on it.
#[derive(Debug)]
pub(crate) struct Dcf {
    config: Csma,
    contenders: Vec<Contender>,
    /// In the order in which they began.
    on_air: Vec<Transmission>,
    /// The time of the next event, which each event changes.
    next: Option<Instant>,
    spare: Spare,
}

/// Lists to be used again, so that a frame allocates nothing: never more of each than there are stations.
#[derive(Debug, Default)]
struct Spare {
    receptions: Vec<Vec<ReceptionState>>,
    heard: Vec<Vec<Result<(), DropReason>>>,
    ended: Vec<Transmission>,
    beginning: Vec<Attachment>,
}

impl Dcf {
    pub(crate) fn new(config: Csma, streams: impl Iterator<Item = Stream>) -> Self {
        let contenders = streams.map(|stream| Contender::new(stream, &config)).collect();
        Self { config, contenders, on_air: Vec::new(), next: None, spare: Spare::default() }
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
            self.contenders[from].contend(now, head, &self.config);
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
            if self.contenders[station].head.is_some() {
                self.contenders[station].catch_up(now, &self.config);
            } else if let Some(frame) = stations.senders[station].pull(now, &mut stations.reports) {
                let head = self.head(station, frame, stations);
                self.contenders[station].contend(now, head, &self.config);
            }
        }
        self.look_ahead(stations);
    }

    /// Finds the time of the next event.
    fn look_ahead(&mut self, stations: &Stations) {
        let ends = self.on_air.iter().map(|transmission| transmission.end).min();
        let own = (0..self.contenders.len()).filter_map(|station| self.acts(station, stations)).min();
        self.next = earliest(ends, own);
    }

    /// The time of a station's next action, if nothing is heard before.
    fn acts(&self, station: Attachment, stations: &Stations) -> Option<Instant> {
        let own = &self.contenders[station];
        let answers = earliest(own.reply.map(|reply| reply.at), own.awaits);
        earliest(answers, self.starts(station, stations))
    }

    /// The time at which a station begins to send the frame with which it contends.
    fn starts(&self, station: Attachment, stations: &Stations) -> Option<Instant> {
        let own = &self.contenders[station];
        if own.sending || stations.senders[station].stopped() { None } else { own.starts(&self.config) }
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
            self.spare.receptions.push(transmission.receptions);
        }
        self.spare.ended = ended;
        for station in 0..self.contenders.len() {
            if self.contenders[station].awaits.is_some_and(|until| until <= at) {
                self.contenders[station].timed_out(at);
                self.fail(at, station, stations);
            }
        }
        let mut beginning = mem::take(&mut self.spare.beginning);
        // Who begins now has not heard the others who do.
        let due = |station: &Attachment| {
            let reply = self.contenders[*station].reply.is_some_and(|reply| reply.at <= at);
            reply || self.starts(*station, stations).is_some_and(|start| start <= at)
        };
        beginning.extend((0..self.contenders.len()).filter(due));
        for station in beginning.drain(..) {
            match self.contenders[station].reply.take() {
                Some(reply) => self.answer(at, station, reply, stations),
                None => self.attempt(at, station, stations),
            }
        }
        self.spare.beginning = beginning;
    }

    /// A station sends a frame SIFS after another, unless it has just begun to send or is down.
    fn answer(&mut self, now: Instant, from: Attachment, reply: Reply, stations: &Stations) {
        let Reply { kind, to, reserved, .. } = reply;
        if self.contenders[from].sending || stations.senders[from].backlog().down {
            return;
        }
        let airtime = match kind {
            Kind::Data => self.contenders[from].head.as_ref().map_or(Duration::ZERO, |head| head.airtime),
            Kind::Rts | Kind::Cts => self.config.rts.map_or(Duration::ZERO, |rts| rts.cts),
            Kind::Ack => self.config.ack,
        };
        self.begin(now, from, Some(to), kind, airtime, reserved, stations);
    }

    /// A station begins an attempt to send the frame with which it contends.
    fn attempt(&mut self, now: Instant, from: Attachment, stations: &mut Stations) {
        let Csma { sifs, ack, overhead, rts, .. } = self.config;
        let Some(head) = self.contenders[from].attempt() else { return };
        head.airtime = overhead + stations.senders[from].airtime(&head.frame);
        let (to, airtime) = (head.to, head.airtime);
        let alone = !is_group(&head.frame);
        let rts = rts.filter(|rts| alone && head.frame.len() as u64 >= rts.threshold.get());
        // Nobody has an unknown address, and nobody answers.
        let answered = if alone { sifs + ack } else { Duration::ZERO };
        match rts {
            Some(rts) => {
                let reserved = now + rts.rts + sifs + rts.cts + sifs + airtime + answered;
                self.begin(now, from, to, Kind::Rts, rts.rts, reserved, stations);
            }
            None => self.begin(now, from, to, Kind::Data, airtime, now + airtime + answered, stations),
        }
    }

    /// A transmission begins: the stations that hear it sense it, and lose what they were receiving.
    #[allow(clippy::too_many_arguments, reason = "each is a field of the transmission")]
    fn begin(
        &mut self,
        now: Instant,
        from: Attachment,
        to: Option<Attachment>,
        kind: Kind,
        airtime: Duration,
        reserved: Instant,
        stations: &Stations,
    ) {
        let mut receptions = self.spare.receptions.pop().unwrap_or_default();
        receptions.clear();
        receptions.resize(self.contenders.len(), ReceptionState::Unheard);
        for transmission in &mut self.on_air {
            transmission.disturb(from, true);
        }
        self.contenders[from].send();
        for station in (0..self.contenders.len()).filter(|&station| stations.hears(from, station)) {
            let listener = &mut self.contenders[station];
            receptions[station] = match (listener.sending, listener.is_busy()) {
                (true, _) => ReceptionState::Deaf,
                (false, true) => ReceptionState::Collided,
                (false, false) => ReceptionState::Clean,
            };
            for transmission in &mut self.on_air {
                transmission.disturb(station, false);
            }
            listener.hear(now, &self.config);
        }
        let end = now + airtime;
        self.on_air.push(Transmission { from, to, kind, start: now, end, reserved, receptions });
    }

    /// A transmission is over: the stations that heard it no longer sense it.
    fn clear(&mut self, transmission: &Transmission, stations: &mut Stations) {
        let &Transmission { from, start, end, .. } = transmission;
        stations.senders[from].occupied(end.since(start));
        self.contenders[from].sent(end);
        for station in (0..self.contenders.len()).filter(|&station| stations.hears(from, station)) {
            self.contenders[station].fall_silent(end);
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
            for (listener, reception) in self.contenders.iter_mut().zip(&cut_off.receptions) {
                if matches!(reception, ReceptionState::Clean | ReceptionState::Collided) {
                    listener.received(true);
                }
            }
            self.spare.receptions.push(cut_off.receptions);
        }
        let Some(head) = self.contenders[station].reset(&self.config) else { return };
        let outcome = if transmissions > 0 { FrameOutcome::Unacknowledged } else { FrameOutcome::Unsent };
        stations.reports.status(now, station, &head.frame, outcome, transmissions);
        if head.counted || head.heard.contains(&Ok(())) {
            self.settle(now, station, head, Some(DropReason::Down), stations);
        } else {
            self.spare.heard.push(head.heard);
            stations.senders[station].give_up(now, head.frame, DropReason::Down, &mut stations.reports);
        }
    }

    fn head(&mut self, from: Attachment, frame: Buffer, stations: &Stations) -> Head {
        let to = stations.addressee(from, &frame);
        let mut heard = self.spare.heard.pop().unwrap_or_default();
        heard.clear();
        // Until it has been sent, nobody has missed it for another reason.
        heard.resize(stations.len(), Err(DropReason::RetryLimit));
        Head { frame, to, retries: 0, heard, counted: false, airtime: Duration::ZERO }
    }
}
