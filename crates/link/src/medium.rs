//! A medium that several stations share.

use hopcast_core::{Buffer, Instant, Stream, earliest};

use crate::air::Air;
use crate::config::{Mac, MediumConfig};
use crate::csma::Contention;
use crate::dcf::Dcf;
use crate::sender::longest_waiting;
use crate::{Attachment, Backlog, Change, Counters, Event, Link, Quality};

/// A half-duplex medium: one transmission at a time, heard by every other station, each of which loses on its own.
///
/// A frame to a group address is for everyone, any other for the station that has its address; stations that are
/// promiscuous overhear what is not for them, and the others never see it. Whose turn it is, [`Mac`] says:
///
/// - [`Mac::Perfect`]: the station whose head frame has waited longest sends first; of several, the one with the lowest
///   number. There is no contention, no collision and no retry: this is what a perfect schedule would give.
/// - [`Mac::Csma`]: stations listen before they talk, back off at random and collide, as in 802.11's distributed
///   coordination function; frames to one station are acknowledged and retried.
///
/// Which stations hear one another, [`MediumConfig::hears`] says: what a station does not hear, it neither receives nor
/// senses, so that two that do not hear each other may collide at a third. The perfect schedule spares them that.
#[derive(Debug)]
pub struct Medium {
    air: Air,
    access: Access,
}

/// Whose turn it is.
#[derive(Debug)]
enum Access {
    Perfect(Schedule),
    /// All stations hear all.
    Csma(Contention),
    /// Each hears some, or asks before it sends.
    Dcf(Dcf),
}

/// The perfect schedule: who is sending.
#[derive(Debug, Default)]
struct Schedule {
    sending: Option<Attachment>,
}

impl Medium {
    /// A medium; `stream` gives, for each sender and listener, what decides about the frames between them, and, under
    /// [`Mac::Csma`], for each station and itself, what it draws its back-offs from.
    pub fn new(config: MediumConfig, mut stream: impl FnMut(Attachment, Attachment) -> Stream) -> Self {
        let air = Air::of_medium(&config, &mut stream);
        let access = match config.mac {
            Mac::Perfect => Access::Perfect(Schedule::default()),
            Mac::Csma(csma) => {
                let streams = (0..config.stations.len()).map(|station| stream(station, station));
                if config.hears.is_some() || csma.rts.is_some() {
                    Access::Dcf(Dcf::new(csma, streams))
                } else {
                    Access::Csma(Contention::new(csma, streams))
                }
            }
        };
        Self { air, access }
    }

    fn advance(&mut self, now: Instant) {
        match &mut self.access {
            Access::Perfect(schedule) => schedule.advance(now, &mut self.air),
            Access::Csma(contention) => contention.advance(now, &mut self.air),
            Access::Dcf(dcf) => dcf.advance(now, &mut self.air),
        }
    }
}

impl Link for Medium {
    fn attachments(&self) -> usize {
        self.air.len()
    }

    fn offer(&mut self, now: Instant, from: Attachment, frame: Buffer) {
        self.advance(now);
        match &mut self.access {
            Access::Perfect(schedule) => schedule.offer(now, from, frame, &mut self.air),
            Access::Csma(contention) => contention.offer(now, from, frame, &mut self.air),
            Access::Dcf(dcf) => dcf.offer(now, from, frame, &mut self.air),
        }
    }

    fn wake(&mut self, now: Instant) {
        self.advance(now);
    }

    fn poll(&mut self, now: Instant) -> Option<Event> {
        self.advance(now);
        self.air.poll(now)
    }

    fn deadline(&self) -> Option<Instant> {
        let next = match &self.access {
            Access::Perfect(schedule) => schedule.deadline(&self.air),
            Access::Csma(contention) => contention.deadline(&self.air),
            Access::Dcf(dcf) => dcf.deadline(&self.air),
        };
        let next = earliest(self.air.reports.next(), next);
        earliest(self.air.flight.next(), next)
    }

    fn change(&mut self, now: Instant, from: Option<Attachment>, change: &Change) {
        self.advance(now);
        self.air.change(now, from, change);
        match &mut self.access {
            Access::Perfect(schedule) => schedule.resume(now, &mut self.air),
            Access::Csma(contention) => contention.change(now, from, change, &mut self.air),
            Access::Dcf(dcf) => dcf.change(now, from, change, &mut self.air),
        }
        self.advance(now);
    }

    fn report_sent(&mut self, report: bool) {
        self.air.reports.turn(report);
    }

    fn report_status(&mut self, from: Attachment) {
        if !matches!(self.access, Access::Perfect(_)) && from < self.air.len() {
            self.air.reports.ask(from);
        }
    }

    fn quality(&self, from: Attachment, to: Attachment) -> Option<Quality> {
        self.air.quality(from, to)
    }

    fn sender_counters(&mut self, now: Instant, from: Attachment) -> Counters {
        self.advance(now);
        self.air.senders.get(from).map_or_else(Counters::default, |sender| sender.counters(now))
    }

    fn counters(&mut self, now: Instant, from: Attachment, to: Attachment) -> Counters {
        self.advance(now);
        self.air.counters(now, from, to)
    }

    fn backlog(&mut self, now: Instant, from: Attachment) -> Backlog {
        self.advance(now);
        self.air.backlog(from)
    }
}

impl Schedule {
    fn advance(&mut self, now: Instant, air: &mut Air) {
        while let Some(from) = self.sending {
            let Some(end) = air.senders[from].end().filter(|&end| end <= now) else {
                break;
            };
            let Some(frame) = air.senders[from].finish(&mut air.reports) else {
                break;
            };
            air.hear(end, from, &frame);
            self.take_turn(end, air);
        }
    }

    fn offer(&mut self, now: Instant, from: Attachment, frame: Buffer, air: &mut Air) {
        let free = self.sending.is_none();
        let sender = &mut air.senders[from];
        sender.offer(now, frame, free, &mut air.reports);
        if free && sender.end().is_some() {
            self.sending = Some(from);
        }
    }

    fn deadline(&self, air: &Air) -> Option<Instant> {
        let end = self.sending.and_then(|from| air.senders[from].end());
        if air.reports.on() { end } else { end.map(|end| end + air.min_delay) }
    }

    /// Begins to send what a change has made possible.
    fn resume(&mut self, now: Instant, air: &mut Air) {
        if self.sending.is_none_or(|from| air.senders[from].end().is_none()) {
            self.take_turn(now, air);
        }
    }

    /// The medium is free at `at`: the station that has waited longest sends.
    fn take_turn(&mut self, at: Instant, air: &mut Air) {
        let next = longest_waiting(air.senders.iter());
        if let Some(next) = next {
            air.senders[next].start_next(at, &mut air.reports);
        }
        self.sending = next;
    }
}
