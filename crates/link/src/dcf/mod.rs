//! 802.11's distributed coordination function where each station hears only some of the others, with RTS and CTS
//! (IEEE 802.11-2020, section 10.3).
//!
//! Each station senses for itself, and each receives for itself: a frame is received if nothing else that the receiver
//! hears, and nothing of its own, overlaps it. Acknowledgements, RTS and CTS are transmissions like others, but that
//! the channel's loss spares them. A transmission is sensed a slot after it began, so that stations whose slots begin
//! meanwhile begin as well.

mod exchange;
mod station;
mod transmission;

use std::mem;

use hopcast_core::{Buffer, Duration, FrameOutcome, Instant, Stream, earliest};

use crate::air::Air;
use crate::config::{Csma, DropReason};
use crate::{Attachment, Change};
use station::{Head, Reply, Station};
use transmission::{Kind, Reception, Transmission};

/// The contention for the medium, and the transmissions on it.
#[derive(Debug)]
pub(crate) struct Dcf {
    config: Csma,
    stations: Vec<Station>,
    /// In the order in which they began.
    on_air: Vec<Transmission>,
    /// The time of the next event, which each event changes.
    next: Option<Instant>,
    spare: Spare,
}

/// Lists to be used again, so that a frame allocates nothing: never more of each than there are stations.
#[derive(Debug, Default)]
struct Spare {
    receptions: Vec<Vec<Reception>>,
    heard: Vec<Vec<Result<(), DropReason>>>,
    ended: Vec<Transmission>,
    beginning: Vec<Attachment>,
}

impl Dcf {
    pub(crate) fn new(config: Csma, streams: impl Iterator<Item = Stream>) -> Self {
        let stations = streams.map(|stream| Station::new(stream, &config)).collect();
        Self { config, stations, on_air: Vec::new(), next: None, spare: Spare::default() }
    }

    /// Catches up with `now`.
    pub(crate) fn advance(&mut self, now: Instant, air: &mut Air) {
        while let Some(at) = self.next.filter(|&at| at <= now) {
            self.step(at, air);
            self.look_ahead(air);
        }
    }

    pub(crate) fn offer(&mut self, now: Instant, from: Attachment, frame: Buffer, air: &mut Air) {
        let free = self.stations[from].head.is_none();
        if let Some(frame) = air.senders[from].admit(now, frame, free, &mut air.reports) {
            let head = self.head(from, frame, air);
            self.stations[from].contend(now, head, &self.config);
            self.look_ahead(air);
        }
    }

    /// The time of the next event.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.next
    }

    /// Applies what a change means for the contention, and begins to contend with what it has made possible.
    pub(crate) fn change(&mut self, now: Instant, from: Option<Attachment>, change: &Change, air: &mut Air) {
        for station in 0..self.stations.len() {
            if *change == Change::Down && from.is_none_or(|from| from == station) {
                self.silence(now, station, air);
            }
            if self.stations[station].head.is_some() {
                self.stations[station].catch_up(now, &self.config);
            } else if let Some(frame) = air.senders[station].pull(now, &mut air.reports) {
                let head = self.head(station, frame, air);
                self.stations[station].contend(now, head, &self.config);
            }
        }
        self.look_ahead(air);
    }

    /// Finds the time of the next event.
    fn look_ahead(&mut self, air: &Air) {
        let ends = self.on_air.iter().map(|transmission| transmission.end).min();
        let own = (0..self.stations.len()).filter_map(|station| self.acts(station, air)).min();
        self.next = earliest(ends, own);
    }

    /// When a station does something next, if nothing is heard before.
    fn acts(&self, station: Attachment, air: &Air) -> Option<Instant> {
        let own = &self.stations[station];
        let answers = earliest(own.reply.map(|reply| reply.at), own.awaits);
        earliest(answers, self.starts(station, air))
    }

    /// When a station begins to send what it contends with.
    fn starts(&self, station: Attachment, air: &Air) -> Option<Instant> {
        let own = &self.stations[station];
        if own.sending || air.senders[station].stopped() { None } else { own.starts(&self.config) }
    }

    /// All that happens at one instant: transmissions end, waits for answers are over, transmissions begin.
    fn step(&mut self, at: Instant, air: &mut Air) {
        let mut ended = mem::take(&mut self.spare.ended);
        ended.extend(self.on_air.extract_if(.., |transmission| transmission.end <= at));
        for transmission in &ended {
            self.clear(transmission, air);
        }
        for transmission in ended.drain(..) {
            self.finish(&transmission, air);
            self.spare.receptions.push(transmission.receptions);
        }
        self.spare.ended = ended;
        for station in 0..self.stations.len() {
            if self.stations[station].awaits.is_some_and(|until| until <= at) {
                self.stations[station].timed_out(at);
                self.fail(at, station, air);
            }
        }
        let mut beginning = mem::take(&mut self.spare.beginning);
        // Who begins now has not heard the others who do.
        let due = |station: &Attachment| {
            let reply = self.stations[*station].reply.is_some_and(|reply| reply.at <= at);
            reply || self.starts(*station, air).is_some_and(|start| start <= at)
        };
        beginning.extend((0..self.stations.len()).filter(due));
        for station in beginning.drain(..) {
            match self.stations[station].reply.take() {
                Some(reply) => self.answer(at, station, reply, air),
                None => self.attempt(at, station, air),
            }
        }
        self.spare.beginning = beginning;
    }

    /// A station sends a frame SIFS after another, unless it has just begun to send or is down.
    fn answer(&mut self, now: Instant, from: Attachment, reply: Reply, air: &Air) {
        let Reply { kind, to, reserved, .. } = reply;
        if self.stations[from].sending || air.senders[from].backlog().down {
            return;
        }
        let airtime = match kind {
            Kind::Data => self.stations[from].head.as_ref().map_or(Duration::ZERO, |head| head.airtime),
            Kind::Rts | Kind::Cts => self.config.rts.map_or(Duration::ZERO, |rts| rts.cts),
            Kind::Ack => self.config.ack,
        };
        self.begin(now, from, Some(to), kind, airtime, reserved, air);
    }

    /// A station begins an attempt to send the frame with which it contends.
    fn attempt(&mut self, now: Instant, from: Attachment, air: &mut Air) {
        let Csma { sifs, ack, overhead, rts, .. } = self.config;
        let Some(head) = self.stations[from].attempt() else { return };
        head.airtime = overhead + air.senders[from].airtime(&head.frame);
        let (to, airtime) = (head.to, head.airtime);
        let alone = !crate::air::is_group(&head.frame);
        let rts = rts.filter(|rts| alone && head.frame.len() as u64 >= rts.threshold.get());
        // Nobody has an unknown address, and nobody answers.
        let answered = if alone { sifs + ack } else { Duration::ZERO };
        match rts {
            Some(rts) => {
                let reserved = now + rts.rts + sifs + rts.cts + sifs + airtime + answered;
                self.begin(now, from, to, Kind::Rts, rts.rts, reserved, air);
            }
            None => self.begin(now, from, to, Kind::Data, airtime, now + airtime + answered, air),
        }
    }

    /// A transmission begins: those who hear it sense it, and what they were receiving is lost.
    #[allow(clippy::too_many_arguments, reason = "each is a field of the transmission")]
    fn begin(
        &mut self,
        now: Instant,
        from: Attachment,
        to: Option<Attachment>,
        kind: Kind,
        airtime: Duration,
        reserved: Instant,
        air: &Air,
    ) {
        let mut receptions = self.spare.receptions.pop().unwrap_or_default();
        receptions.clear();
        receptions.resize(self.stations.len(), Reception::Unheard);
        for transmission in &mut self.on_air {
            transmission.disturb(from, true);
        }
        self.stations[from].send();
        for station in (0..self.stations.len()).filter(|&station| air.hears(from, station)) {
            let listener = &mut self.stations[station];
            receptions[station] = match (listener.sending, listener.is_busy()) {
                (true, _) => Reception::Deaf,
                (false, true) => Reception::Collided,
                (false, false) => Reception::Clean,
            };
            for transmission in &mut self.on_air {
                transmission.disturb(station, false);
            }
            listener.hear(now, &self.config);
        }
        let end = now + airtime;
        self.on_air.push(Transmission { from, to, kind, start: now, end, reserved, receptions });
    }

    /// A transmission is over: those who heard it hear it no longer.
    fn clear(&mut self, transmission: &Transmission, air: &mut Air) {
        let &Transmission { from, start, end, .. } = transmission;
        air.senders[from].occupied(end.since(start));
        self.stations[from].sent(end);
        for station in (0..self.stations.len()).filter(|&station| air.hears(from, station)) {
            self.stations[station].fall_silent(end);
        }
    }

    /// A station goes down, also in the middle of a transmission.
    fn silence(&mut self, now: Instant, station: Attachment, air: &mut Air) {
        let mut transmissions = self.stations[station].head.as_ref().map_or(0, |head| head.retries);
        if self.stations[station].awaits.is_some() {
            transmissions += 1;
        }
        let cut_off = self.on_air.iter().position(|transmission| transmission.from == station);
        if let Some(mut cut_off) = cut_off.map(|place| self.on_air.remove(place)) {
            transmissions += u32::from(matches!(cut_off.kind, Kind::Rts | Kind::Data));
            cut_off.end = now;
            self.clear(&cut_off, air);
            for (listener, reception) in self.stations.iter_mut().zip(&cut_off.receptions) {
                if matches!(reception, Reception::Clean | Reception::Collided) {
                    listener.received(true);
                }
            }
            self.spare.receptions.push(cut_off.receptions);
        }
        let Some(head) = self.stations[station].reset(&self.config) else { return };
        let outcome = if transmissions > 0 { FrameOutcome::Unacknowledged } else { FrameOutcome::Unsent };
        air.reports.status(now, station, &head.frame, outcome, transmissions);
        if head.counted || head.heard.contains(&Ok(())) {
            self.settle(now, station, head, Some(DropReason::Down), air);
        } else {
            self.spare.heard.push(head.heard);
            air.senders[station].give_up(now, head.frame, DropReason::Down, &mut air.reports);
        }
    }

    fn head(&mut self, from: Attachment, frame: Buffer, air: &Air) -> Head {
        let to = air.addressee(from, &frame);
        let mut heard = self.spare.heard.pop().unwrap_or_default();
        heard.clear();
        // Until it has been sent, nobody has missed it for another reason.
        heard.resize(air.len(), Err(DropReason::RetryLimit));
        Head { frame, to, retries: 0, heard, counted: false, airtime: Duration::ZERO }
    }
}
