//! Stations with a line of their own for each pair, as MaritimeManet's digital twin models a pair of beams.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hopcast_core::{Buffer, Duration, Fraction, Instant, Rate, Reception, Stream, earliest};

use crate::address::{Addresses, is_group};
use crate::config::{Direction, DropReason, Loss, Station};
use crate::flight::{Fate, Flight};
use crate::path::{Path, min_delay};
use crate::reports::Reports;
use crate::sender::{ETHERNET_HEADER, Sender};
use crate::{Attachment, Change, Counters, Event, Hearing, Link, Quality, QueueSnapshot, Radios};

/// The lines between stations with radios, without contention and acknowledgements.
///
/// A frame to one station is sent on the line to it, at the rate of the radios as it begins, and is lost by their share
/// as it ends. A frame to a group is copied, as it is offered, onto the line of each station that hears its sender
/// then, and counts as sent at that time. A frame to an address that nobody has is copied likewise, to the stations
/// that are promiscuous: bridges, behind which are others.
#[derive(Debug)]
pub(crate) struct Lines {
    stations: Vec<Own>,
    addresses: Addresses,
    radios: Box<dyn Radios>,
    /// Whatever decides about the frames of each pair; see [`Lines::place`].
    streams: Vec<Stream>,
    /// Made when first used: of many stations few pairs ever hear each other.
    lines: Vec<Option<Box<Line>>>,
    /// When the frames in serialisation have left, each with its line. Some of them were cut off meanwhile.
    ends: BinaryHeap<Reverse<(Instant, usize)>>,
    flight: Flight<Option<Reception>>,
    reports: Reports,
    /// The minimum time that any frame is under way.
    min_delay: Duration,
    /// Lists to be used again.
    hearers: Vec<Hearing>,
}

/// A station.
#[derive(Debug)]
struct Own {
    config: Station,
    /// The configuration of its lines that are made from now on.
    direction: Direction,
    down: bool,
    /// The figures of frames that are not on one line alone.
    counters: Counters,
}

/// The line from a station to another.
#[derive(Debug)]
struct Line {
    sender: Sender,
    path: Path,
}

impl Lines {
    pub(crate) fn new(
        stations: Vec<Station>,
        direction: &Direction,
        radios: Box<dyn Radios>,
        mut stream: impl FnMut(Attachment, Attachment) -> Stream,
    ) -> Self {
        let direction = Direction { rate: None, loss: Loss::None, ..direction.clone() };
        let n = stations.len();
        let own = |&config: &Station| {
            let (direction, counters) = (direction.clone(), Counters::default());
            Own { config, direction, down: false, counters }
        };
        let mut all = Self {
            addresses: Addresses::new(stations.iter().map(|station| station.address)),
            stations: stations.iter().map(own).collect(),
            radios,
            streams: (0..n * n).map(|pair| stream(pair / n, pair % n)).collect(),
            lines: (0..n * n).map(|_| None).collect(),
            ends: BinaryHeap::new(),
            flight: Flight::new(true),
            reports: Reports::default(),
            min_delay: Duration::ZERO,
            hearers: Vec::new(),
        };
        all.measure_min_delay();
        all
    }

    /// The place of the line from a station to another; `None` without such a pair.
    fn place(&self, from: Attachment, to: Attachment) -> Option<usize> {
        let n = self.stations.len();
        (from < n && to < n && from != to).then(|| from * n + to)
    }

    fn line(&self, from: Attachment, to: Attachment) -> Option<&Line> {
        self.lines[self.place(from, to)?].as_deref()
    }

    /// The lines of a station that are in use.
    fn lines_of(&self, from: Attachment) -> impl Iterator<Item = &Line> {
        let n = self.stations.len();
        let row = if from < n { from * n..(from + 1) * n } else { 0..0 };
        self.lines[row].iter().flatten().map(Box::as_ref)
    }

    /// Sends all that is sent by `now`, in the order of time.
    fn advance(&mut self, now: Instant) {
        while let Some(&Reverse((end, place))) = self.ends.peek()
            && end <= now
        {
            self.ends.pop();
            self.finish(end, place);
        }
    }

    /// The frame of a line has left at `end`, unless it was cut off, and the next begins.
    fn finish(&mut self, end: Instant, place: usize) {
        let n = self.stations.len();
        let (from, to) = (place / n, place % n);
        let Self { lines, reports, radios, flight, ends, stations, .. } = self;
        let Some(line) = &mut lines[place] else { return };
        if line.sender.end() != Some(end) {
            return;
        }
        let Some(frame) = line.sender.finish_copy(reports) else { return };
        let hearing = radios.hearing(end, from, to);
        line.path.sent(&frame);
        let echo = stations[from].config.echo && line.sender.copied_to(&frame).is_none();
        let echo = echo.then(|| frame.clone());
        line.arrive(end, (from, to), frame, hearing, stations[to].config.address, flight, reports);
        if let Some(frame) = echo {
            flight.launch(Fate { at: end, twice: false, flip: None }, frame, from, from, true, None);
        }
        if let Some(end) = line.start_next(end, hearing, reports) {
            ends.push(Reverse((end, place)));
        }
    }

    /// Puts a frame onto the line from a station to one that hears it, or does not.
    fn put(&mut self, now: Instant, from: Attachment, to: Attachment, frame: Buffer, rate: Option<Rate>) {
        let Some(place) = self.place(from, to) else { return };
        let Self { lines, stations, streams, reports, ends, .. } = self;
        let line = lines[place].get_or_insert_with(|| {
            let direction = &stations[from].direction;
            let sender = Sender::on_line(from, (to, stations[to].config.address), direction);
            Box::new(Line { sender, path: Path::new(direction, streams[place].clone()) })
        });
        let Some(rate) = rate else {
            return line.sender.discard(now, frame, DropReason::Unheard, reports);
        };
        let free = line.sender.end().is_none();
        if let Some(frame) = line.sender.admit(now, frame, free, reports) {
            line.sender.start_at(now, frame, Some(rate));
            ends.extend(line.sender.end().map(|end| Reverse((end, place))));
        }
    }

    /// Copies a frame onto the line of each station that hears its sender, of those for which `takes` says so.
    fn spread(
        &mut self,
        now: Instant,
        from: Attachment,
        frame: &Buffer,
        takes: impl Fn(&Station) -> bool,
    ) -> bool {
        let mut hearers = std::mem::take(&mut self.hearers);
        hearers.clear();
        self.radios.hearers(now, from, &mut hearers);
        hearers.retain(|hearing| self.stations.get(hearing.to).is_some_and(|station| takes(&station.config)));
        for hearing in &hearers {
            self.put(now, from, hearing.to, frame.clone(), Some(hearing.rate));
        }
        let any = !hearers.is_empty();
        self.hearers = hearers;
        any
    }

    /// Drops a frame that is put onto no line.
    fn drop(&mut self, now: Instant, from: Attachment, frame: Buffer, reason: DropReason) {
        self.stations[from].counters.queue_dropped_packets += 1;
        self.reports.dropped(now, from, None, frame, reason);
    }

    fn measure_min_delay(&mut self) {
        let echoes = self.stations.iter().any(|station| station.config.echo);
        let min = |station: &Own| min_delay(station.direction.delay, station.direction.jitter);
        let min = self.stations.iter().map(min).min().filter(|_| !echoes);
        self.min_delay = min.unwrap_or(Duration::ZERO);
    }
}

impl Line {
    /// A frame has left at `end`, and arrives at a station of this address if that still hears it and does not lose it.
    #[allow(clippy::too_many_arguments, reason = "the parts of a link that a frame goes through")]
    fn arrive(
        &mut self,
        end: Instant,
        (from, to): (Attachment, Attachment),
        frame: Buffer,
        hearing: Option<Hearing>,
        address: [u8; 6],
        flight: &mut Flight<Option<Reception>>,
        reports: &mut Reports,
    ) {
        let Some(Hearing { loss, signal, .. }) = hearing else {
            self.path.missed();
            return reports.dropped(end, from, Some(to), frame, DropReason::Unheard);
        };
        match self.path.fate(end, Some(loss)) {
            Some(fate) => {
                let reception = Reception { signal, rate: self.sender.frame_rate() };
                let overheard = !crate::address::is_for(&frame, address);
                flight.launch(fate, frame, from, to, overheard, Some(reception));
            }
            None => reports.dropped(end, from, Some(to), frame, DropReason::Lost),
        }
    }

    /// Begins the next frame, and returns when that will have left. Those that wait for a station that hears nothing
    /// are dropped.
    fn start_next(
        &mut self,
        now: Instant,
        hearing: Option<Hearing>,
        reports: &mut Reports,
    ) -> Option<Instant> {
        while let Some(frame) = self.sender.pull(now, reports) {
            match hearing {
                Some(hearing) => {
                    self.sender.start_at(now, frame, Some(hearing.rate));
                    return self.sender.end();
                }
                None => self.sender.discard(now, frame, DropReason::Unheard, reports),
            }
        }
        None
    }
}

impl Link for Lines {
    fn attachments(&self) -> usize {
        self.stations.len()
    }

    fn offer(&mut self, now: Instant, from: Attachment, frame: Buffer) {
        self.advance(now);
        let own = &self.stations[from];
        if own.down {
            return self.drop(now, from, frame, DropReason::Down);
        }
        if frame.len() as u64 > u64::from(own.direction.mtu) + ETHERNET_HEADER {
            return self.drop(now, from, frame, DropReason::TooBig);
        }
        if let Some(to) = self.addresses.addressee(from, &frame) {
            let rate = self.radios.hearing(now, from, to).map(|hearing| hearing.rate);
            return self.put(now, from, to, frame, rate);
        }
        let group = is_group(&frame);
        if !self.spread(now, from, &frame, |station| group || station.promiscuous) && !group {
            return self.drop(now, from, frame, DropReason::Unheard);
        }
        let own = &mut self.stations[from];
        own.counters.sent_packets += 1;
        own.counters.sent_bytes += frame.len() as u64;
        self.reports.sent(now, from, &frame);
        if own.config.echo {
            self.flight.launch(Fate { at: now, twice: false, flip: None }, frame, from, from, true, None);
        } else {
            frame.recycle();
        }
    }

    fn wake(&mut self, now: Instant) {
        self.advance(now);
    }

    fn poll(&mut self, now: Instant) -> Option<Event> {
        self.advance(now);
        let arrival = self.flight.next();
        if let Some(report) = self.reports.next().filter(|&report| report <= now)
            && arrival.is_none_or(|arrival| report <= arrival)
        {
            return self.reports.pop();
        }
        if arrival? > now {
            return None;
        }
        let frame = self.flight.pop()?;
        if let Some(place) = self.place(frame.from(), frame.to())
            && let Some(line) = &mut self.lines[place]
        {
            line.path.delivered(&frame);
        }
        Some(frame.into_event())
    }

    fn deadline(&self) -> Option<Instant> {
        let left = self.ends.peek().map(|&Reverse((end, _))| end);
        // Nobody notices that a frame has left before it can arrive, unless that is reported.
        let noticed = if self.reports.on() { left } else { left.map(|left| left + self.min_delay) };
        earliest(earliest(self.reports.next(), self.flight.next()), noticed)
    }

    fn change(&mut self, now: Instant, from: Option<Attachment>, change: &Change) {
        self.advance(now);
        if change.is_by_radio() {
            return;
        }
        let n = self.stations.len();
        for (index, own) in self.stations.iter_mut().enumerate() {
            if from.is_some_and(|from| from != index) {
                continue;
            }
            own.direction.apply(change);
            match change {
                Change::Down => own.down = true,
                Change::Up => own.down = false,
                _ => {}
            }
            for line in self.lines[index * n..(index + 1) * n].iter_mut().flatten() {
                line.sender.change(now, change, &mut self.reports);
                line.path.change(change);
            }
        }
        self.measure_min_delay();
    }

    fn report_sent(&mut self, report: bool) {
        self.reports.turn(report);
    }

    fn keep_drops(&mut self) {
        self.reports.keep_drops();
    }

    fn take_drop(&mut self) -> Option<(Instant, Event)> {
        self.reports.take_drop()
    }

    fn quality(&mut self, now: Instant, from: Attachment, to: Attachment) -> Option<Quality> {
        self.advance(now);
        self.place(from, to)?;
        if self.stations[from].down {
            return None;
        }
        let Hearing { rate, loss, signal, .. } = self.radios.peek(now, from, to)?;
        Some(Quality::new(Fraction::ZERO, loss, 0, Some(rate)).at(signal))
    }

    fn sender_counters(&mut self, now: Instant, from: Attachment) -> Counters {
        self.advance(now);
        let Some(own) = self.stations.get(from) else { return Counters::default() };
        self.lines_of(from).fold(own.counters, |sum, line| sum + line.sender.counters(now))
    }

    fn counters(&mut self, now: Instant, from: Attachment, to: Attachment) -> Counters {
        self.advance(now);
        let Some(line) = self.line(from, to) else { return Counters::default() };
        let due = self.flight.due(now).filter(|frame| (frame.from(), frame.to()) == (from, to));
        let sender = Counters { sent_bytes: 0, sent_packets: 0, ..line.sender.counters(now) };
        sender + line.path.counters(due)
    }

    fn backlog(&mut self, now: Instant, from: Attachment) -> QueueSnapshot {
        self.advance(now);
        let Some(own) = self.stations.get(from) else { return QueueSnapshot::default() };
        let none = QueueSnapshot { down: own.down, ..QueueSnapshot::default() };
        self.lines_of(from).map(|line| line.sender.backlog()).fold(none, |sum, line| QueueSnapshot {
            frames: sum.frames + line.frames,
            bytes: sum.bytes + line.bytes,
            ..sum
        })
    }
}
