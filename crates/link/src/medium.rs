//! A medium that several stations share.

use hopcast_core::{Buffer, Instant, Seed, Stream};

use crate::config::{Mac, MediumConfig};
use crate::csma::Contention;
use crate::dcf::Dcf;
use crate::lines::Lines;
use crate::multipoint::Multipoint;
use crate::sender::longest_waiting;
use crate::stations::Stations;
use crate::{Attachment, Change, Counters, Event, Link, Quality, QueueSnapshot};

/// A half-duplex medium: one transmission at a time, heard by every other station, each of which loses on its own.
///
/// A frame to a group address is for everyone, any other for the station that has its address; stations that are
/// promiscuous overhear what is not for them, and the others never see it. [`Mac`] says which station may send:
///
/// - [`Mac::Perfect`]: the station whose head frame has waited longest sends first; of several, the one with the lowest
///   number. There is no contention, no collision and no retry: this is what a perfect schedule would give.
/// - [`Mac::Csma`]: stations listen before they talk, back off at random and collide, as in 802.11's distributed
///   coordination function; frames to one station are acknowledged and retried.
///
/// [`MediumConfig::hears`] says which stations hear one another: a station neither receives nor senses what it does not
/// hear, so that two that do not hear each other may collide at a third. The perfect schedule spares them that.
///
/// With [`MediumConfig::radios`], these say who hears whom at which rate, and what is lost:
///
/// - Under [`Mac::Csma`] a transmission is sensed by all that hear its sender as it begins, whatever its rate, and read
///   by those whose rate then is at least that of the frame. To the others it is noise. A frame to a group is sent at
///   the lowest rate; one to a station at the highest that it can read, and each retry at a lower one. The radios lose
///   a frame as its last bit leaves, below the acknowledgements.
/// - Under [`Mac::Perfect`] nobody disturbs anybody, and frames have the same rates, and are lost without retries.
/// - Under [`Mac::EthernetLike`] each ordered pair of stations has a line of its own, and there is no medium to share.
#[derive(Debug)]
pub struct Medium {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Shared(Box<SharedMedium>),
    Lines(Box<Lines>),
}

/// A medium on which stations disturb each other.
#[derive(Debug)]
struct SharedMedium {
    stations: Stations,
    access: Access,
}

/// The medium access at work.
#[derive(Debug)]
enum Access {
    Perfect(Schedule),
    /// All stations hear all.
    Csma(Box<Contention>),
    /// Each hears some, or asks before it sends.
    Dcf(Box<Dcf>),
}

/// The perfect schedule: who is sending.
#[derive(Debug, Default)]
struct Schedule {
    sending: Option<Attachment>,
}

impl Medium {
    /// A medium; `stream` gives, for each sender and listener, what decides about the frames between them, and, under
    /// [`Mac::Csma`], for each station and itself, what it draws its back-offs from. Radios get `seed`, the root of the
    /// run's randomness.
    pub fn new(
        config: MediumConfig,
        mut stream: impl FnMut(Attachment, Attachment) -> Stream,
        seed: &Seed,
    ) -> Self {
        if config.mac == Mac::EthernetLike
            && let Some(model) = &config.radios
        {
            let radios = model.0.radios(seed);
            let lines = Lines::new(config.stations, &config.direction, radios, stream);
            return Self { kind: Kind::Lines(Box::new(lines)) };
        }
        let stations = Stations::of_medium(&config, &mut stream, seed);
        let access = match config.mac {
            Mac::Perfect | Mac::EthernetLike => Access::Perfect(Schedule::default()),
            Mac::Csma(csma) => {
                let streams = (0..config.stations.len()).map(|station| stream(station, station));
                if config.hears.is_some() || csma.rts.is_some() || stations.radios.is_some() {
                    Access::Dcf(Box::new(Dcf::new(csma, streams, &stations)))
                } else {
                    Access::Csma(Box::new(Contention::new(csma, streams)))
                }
            }
        };
        Self { kind: Kind::Shared(Box::new(SharedMedium { stations, access })) }
    }

    fn link(&self) -> &dyn Link {
        match &self.kind {
            Kind::Shared(shared) => &**shared,
            Kind::Lines(lines) => &**lines,
        }
    }

    fn link_mut(&mut self) -> &mut dyn Link {
        match &mut self.kind {
            Kind::Shared(shared) => &mut **shared,
            Kind::Lines(lines) => &mut **lines,
        }
    }
}

/// Each call goes to the kind of medium that it is.
impl Link for Medium {
    fn attachments(&self) -> usize {
        self.link().attachments()
    }

    fn offer(&mut self, now: Instant, from: Attachment, frame: Buffer) {
        self.link_mut().offer(now, from, frame);
    }

    fn wake(&mut self, now: Instant) {
        self.link_mut().wake(now);
    }

    fn poll(&mut self, now: Instant) -> Option<Event> {
        self.link_mut().poll(now)
    }

    fn deadline(&self) -> Option<Instant> {
        self.link().deadline()
    }

    fn change(&mut self, now: Instant, from: Option<Attachment>, change: &Change) {
        self.link_mut().change(now, from, change);
    }

    fn report_sent(&mut self, report: bool) {
        self.link_mut().report_sent(report);
    }

    fn keep_drops(&mut self) {
        self.link_mut().keep_drops();
    }

    fn take_drop(&mut self) -> Option<(Instant, Event)> {
        self.link_mut().take_drop()
    }

    fn report_status(&mut self, from: Attachment) {
        self.link_mut().report_status(from);
    }

    fn quality(&mut self, now: Instant, from: Attachment, to: Attachment) -> Option<Quality> {
        self.link_mut().quality(now, from, to)
    }

    fn sender_counters(&mut self, now: Instant, from: Attachment) -> Counters {
        self.link_mut().sender_counters(now, from)
    }

    fn counters(&mut self, now: Instant, from: Attachment, to: Attachment) -> Counters {
        self.link_mut().counters(now, from, to)
    }

    fn backlog(&mut self, now: Instant, from: Attachment) -> QueueSnapshot {
        self.link_mut().backlog(now, from)
    }
}

impl Multipoint for SharedMedium {
    fn stations(&self) -> &Stations {
        &self.stations
    }

    fn stations_mut(&mut self) -> &mut Stations {
        &mut self.stations
    }

    fn advance(&mut self, now: Instant) {
        match &mut self.access {
            Access::Perfect(schedule) => schedule.advance(now, &mut self.stations),
            Access::Csma(contention) => contention.advance(now, &mut self.stations),
            Access::Dcf(dcf) => dcf.advance(now, &mut self.stations),
        }
    }

    fn admit(&mut self, now: Instant, from: Attachment, frame: Buffer) {
        match &mut self.access {
            Access::Perfect(schedule) => schedule.offer(now, from, frame, &mut self.stations),
            Access::Csma(contention) => contention.offer(now, from, frame, &mut self.stations),
            Access::Dcf(dcf) => dcf.offer(now, from, frame, &mut self.stations),
        }
    }

    fn resume(&mut self, now: Instant, from: Option<Attachment>, change: &Change) {
        match &mut self.access {
            Access::Perfect(schedule) => schedule.resume(now, &mut self.stations),
            Access::Csma(contention) => contention.change(now, from, change, &mut self.stations),
            Access::Dcf(dcf) => dcf.change(now, from, change, &mut self.stations),
        }
    }

    fn next(&self) -> Option<Instant> {
        match &self.access {
            Access::Perfect(schedule) => schedule.deadline(&self.stations),
            Access::Csma(contention) => contention.deadline(&self.stations),
            Access::Dcf(dcf) => dcf.deadline(),
        }
    }

    fn acknowledges(&self) -> bool {
        !matches!(self.access, Access::Perfect(_))
    }
}

impl Schedule {
    fn advance(&mut self, now: Instant, stations: &mut Stations) {
        while let Some(from) = self.sending {
            let Some(end) = stations.senders[from].end().filter(|&end| end <= now) else {
                break;
            };
            let Some(frame) = stations.senders[from].finish(&mut stations.reports) else {
                break;
            };
            stations.hear(end, from, &frame);
            frame.recycle();
            self.take_turn(end, stations);
        }
    }

    fn offer(&mut self, now: Instant, from: Attachment, frame: Buffer, stations: &mut Stations) {
        let free = self.sending.is_none();
        if let Some(frame) = stations.senders[from].admit(now, frame, free, &mut stations.reports) {
            stations.start(now, from, frame);
            self.sending = Some(from);
        }
    }

    fn deadline(&self, stations: &Stations) -> Option<Instant> {
        stations.noticed(self.sending.and_then(|from| stations.senders[from].end()))
    }

    /// Begins to send the frames that a change has made possible.
    fn resume(&mut self, now: Instant, stations: &mut Stations) {
        if self.sending.is_none_or(|from| stations.senders[from].end().is_none()) {
            self.take_turn(now, stations);
        }
    }

    /// The medium is free at `at`: the station that has waited longest sends.
    fn take_turn(&mut self, at: Instant, stations: &mut Stations) {
        let next = longest_waiting(stations.senders.iter());
        if let Some(next) = next
            && let Some(frame) = stations.senders[next].pull(at, &mut stations.reports)
        {
            stations.start(at, next, frame);
        }
        self.sending = next;
    }
}
