//! A medium that several stations share.

use hopcast_core::{Buffer, Duration, Instant, Stream, earliest};

use crate::config::{Drop, MediumConfig, Station};
use crate::flight::Flight;
use crate::path::Path;
use crate::reports::Reports;
use crate::sender::{Sender, longest_waiting};
use crate::{Attachment, Change, Counters, Event, Link};

/// A half-duplex medium: one transmission at a time, heard by every other station, each of which loses on its own.
///
/// The station whose head frame has waited longest sends first; of several, the one with the lowest number. A frame
/// to a group address is for everyone, any other for the station that has its address; stations that are promiscuous
/// overhear what is not for them, and the others never see it. There is no contention, no collision and no retry:
/// this is what a perfect schedule would give.
#[derive(Debug)]
pub struct Medium {
    stations: Vec<Station>,
    senders: Vec<Sender>,
    /// For each sender, one for each other station in order; see [`Medium::path`].
    paths: Vec<Path>,
    /// Who is sending.
    sending: Option<Attachment>,
    flight: Flight,
    /// The least time that any frame is under way.
    least_delay: Duration,
    reports: Reports,
}

impl Medium {
    /// A medium; `stream` gives, for each sender and listener, what decides about the frames between them.
    pub fn new(config: MediumConfig, mut stream: impl FnMut(Attachment, Attachment) -> Stream) -> Self {
        let MediumConfig { direction, stations } = config;
        let others = |from| (0..stations.len()).filter(move |&to| to != from).map(move |to| (from, to));
        let pairs = (0..stations.len()).flat_map(others);
        let mut medium = Self {
            senders: (0..stations.len()).map(|from| Sender::new(from, &direction)).collect(),
            paths: pairs.map(|(from, to)| Path::new(&direction, stream(from, to))).collect(),
            stations,
            sending: None,
            // Frames of different senders may overtake one another; a path keeps the order of its own.
            flight: Flight::new(true),
            least_delay: Duration::ZERO,
            reports: Reports::default(),
        };
        medium.measure_least_delay();
        medium
    }

    fn advance(&mut self, now: Instant) {
        while let Some(from) = self.sending {
            let Some(end) = self.senders[from].end().filter(|&end| end <= now) else {
                break;
            };
            let Some(frame) = self.senders[from].finish(&mut self.reports) else {
                break;
            };
            self.hear(end, from, &frame);
            self.take_turn(end);
        }
    }

    /// Every other station hears, or misses, the frame that has left at `end`.
    fn hear(&mut self, end: Instant, from: Attachment, frame: &Buffer) {
        for to in 0..self.stations.len() {
            let Some(path) = self.path(from, to) else {
                continue;
            };
            let station = self.stations[to];
            let addressed = is_for(frame, station.address);
            if !addressed && !station.promiscuous {
                self.paths[path].pass();
                continue;
            }
            if addressed {
                self.paths[path].sent(frame);
            }
            match self.paths[path].fate(end) {
                Some(fate) => self.flight.launch(fate, frame.clone(), from, to, !addressed),
                None if self.reports.on() => {
                    self.reports.dropped(end, from, Some(to), frame.clone(), Drop::Lost);
                }
                None => {}
            }
        }
    }

    /// The medium is free at `at`: the station that has waited longest sends.
    fn take_turn(&mut self, at: Instant) {
        let next = longest_waiting(self.senders.iter());
        if let Some(next) = next {
            self.senders[next].start_next(at, &mut self.reports);
        }
        self.sending = next;
    }

    /// The index of the path from a station to another.
    fn path(&self, from: Attachment, to: Attachment) -> Option<usize> {
        let others = self.stations.len().checked_sub(1)?;
        let known = from <= others && to <= others && from != to;
        known.then(|| from * others + if to > from { to - 1 } else { to })
    }

    fn measure_least_delay(&mut self) {
        self.least_delay = self.paths.iter().map(Path::least_delay).min().unwrap_or(Duration::ZERO);
    }
}

/// Whether `frame` is for the station with this address. A frame too short to have an address is for nobody.
fn is_for(frame: &Buffer, address: [u8; 6]) -> bool {
    match frame.first_chunk::<6>() {
        // The lowest bit of the first octet marks a group address (IEEE 802-2014, section 8.2.2).
        Some(destination) => destination[0] & 1 == 1 || *destination == address,
        None => false,
    }
}

impl Link for Medium {
    fn attachments(&self) -> usize {
        self.stations.len()
    }

    fn offer(&mut self, now: Instant, from: Attachment, frame: Buffer) {
        self.advance(now);
        let free = self.sending.is_none();
        let sender = &mut self.senders[from];
        sender.offer(now, frame, free, &mut self.reports);
        if free && sender.end().is_some() {
            self.sending = Some(from);
        }
    }

    fn wake(&mut self, now: Instant) {
        self.advance(now);
    }

    fn poll(&mut self, now: Instant) -> Option<Event> {
        self.advance(now);
        let arrival = self.flight.next();
        if let Some(report) = self.reports.next()
            && arrival.is_none_or(|arrival| report <= arrival)
        {
            return self.reports.pop();
        }
        if arrival? > now {
            return None;
        }
        let frame = self.flight.pop()?;
        if let Some(path) = self.path(frame.from(), frame.to()) {
            self.paths[path].delivered(&frame);
        }
        Some(frame.into_event())
    }

    fn deadline(&self) -> Option<Instant> {
        let end = self.sending.and_then(|from| self.senders[from].end());
        let next = if self.reports.on() { end } else { end.map(|end| end + self.least_delay) };
        earliest(self.flight.next(), next)
    }

    fn change(&mut self, now: Instant, from: Option<Attachment>, change: &Change) {
        self.advance(now);
        let others = self.stations.len().saturating_sub(1);
        for (index, sender) in self.senders.iter_mut().enumerate() {
            if from.is_none_or(|from| from == index) {
                sender.change(now, change, &mut self.reports);
                for path in &mut self.paths[index * others..(index + 1) * others] {
                    path.change(change);
                }
            }
        }
        self.measure_least_delay();
        if self.sending.is_none_or(|from| self.senders[from].end().is_none()) {
            self.take_turn(now);
        }
        self.advance(now);
    }

    fn report_sent(&mut self, report: bool) {
        self.reports.turn(report);
    }

    fn counters(&mut self, now: Instant, from: Attachment, to: Attachment) -> Counters {
        self.advance(now);
        let Some(path) = self.path(from, to) else {
            return Counters::default();
        };
        let due = self.flight.due(now).filter(|frame| (frame.from(), frame.to()) == (from, to));
        // What was sent counts for the pair it was sent to.
        let station = Counters { sent_bytes: 0, sent_packets: 0, ..self.senders[from].counters(now) };
        station + self.paths[path].counters(due)
    }
}
