//! Stations with a line of their own for each pair, as MaritimeManet's digital twin models a pair of beams.

mod line;
mod link;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hopcast_core::{Buffer, Duration, Instant, Rate, Reception, Stream};

use crate::address::Addresses;
use crate::config::{Direction, DropReason, Loss, Station};
use crate::flight::{Fate, Flight};
use crate::path::min_delay;
use crate::reports::Reports;
use crate::{Attachment, Counters, Hearing, Radios};
use line::Line;

/// The lines between stations with radios, without contention and acknowledgements.
///
/// A frame to one station is sent on the line to it, at the rate of the radios as it begins, and is lost by their share
/// as it ends. A frame to a group is copied, as it is offered, onto the line of each station that hears its sender
/// then, and counts as sent at that time. A frame to an address that nobody has is copied likewise, to the stations
/// that are promiscuous: bridges, behind which are others.
#[derive(Debug)]
pub(crate) struct Lines {
    stations: Vec<LineStation>,
    addresses: Addresses,
    radios: Box<dyn Radios>,
    /// Whatever decides about the frames of each pair; see [`Lines::index`].
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

/// A station, with what all its lines have in common.
#[derive(Debug)]
struct LineStation {
    config: Station,
    /// The configuration of its lines that are made from now on.
    direction: Direction,
    down: bool,
    /// The figures of frames that are not on one line alone.
    counters: Counters,
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
        let station = |&config: &Station| {
            let (direction, counters) = (direction.clone(), Counters::default());
            LineStation { config, direction, down: false, counters }
        };
        let mut all = Self {
            addresses: Addresses::new(stations.iter().map(|station| station.address)),
            stations: stations.iter().map(station).collect(),
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

    /// The index of the line from a station to another; `None` without such a pair.
    fn index(&self, from: Attachment, to: Attachment) -> Option<usize> {
        let n = self.stations.len();
        (from < n && to < n && from != to).then(|| from * n + to)
    }

    fn line(&self, from: Attachment, to: Attachment) -> Option<&Line> {
        self.lines[self.index(from, to)?].as_deref()
    }

    /// The lines of a station that are in use.
    fn lines_of(&self, from: Attachment) -> impl Iterator<Item = &Line> {
        let n = self.stations.len();
        let row = if from < n { from * n..(from + 1) * n } else { 0..0 };
        self.lines[row].iter().flatten().map(Box::as_ref)
    }

    /// Sends all that is sent by `now`, in the order of time.
    fn advance(&mut self, now: Instant) {
        while let Some(&Reverse((end, index))) = self.ends.peek()
            && end <= now
        {
            self.ends.pop();
            self.finish(end, index);
        }
    }

    /// The frame of a line has left at `end`, unless it was cut off, and the next begins.
    fn finish(&mut self, end: Instant, index: usize) {
        let n = self.stations.len();
        let (from, to) = (index / n, index % n);
        let Self { lines, reports, radios, flight, ends, stations, .. } = self;
        let Some(line) = &mut lines[index] else { return };
        if line.sender.end() != Some(end) {
            return;
        }
        let Some(frame) = line.sender.finish_copy(reports) else { return };
        let hearing = radios.hearing(end, from, to).filter(Hearing::reads);
        line.path.sent(&frame);
        let echo = stations[from].config.echo && line.sender.copied_to(&frame).is_none();
        let echo = echo.then(|| frame.clone());
        line.arrive(end, frame, hearing, flight, reports);
        if let Some(frame) = echo {
            flight.launch(Fate { at: end, twice: false, flip: None }, frame, from, from, true, None);
        }
        if let Some(end) = line.start_next(end, hearing, reports) {
            ends.push(Reverse((end, index)));
        }
    }

    /// Puts a frame onto the line from a station to one that hears it, or does not.
    fn enqueue(&mut self, now: Instant, from: Attachment, to: Attachment, frame: Buffer, rate: Option<Rate>) {
        let Some(index) = self.index(from, to) else { return };
        let Self { lines, stations, streams, reports, ends, .. } = self;
        let line = lines[index].get_or_insert_with(|| {
            let (own, address) = (&stations[from], stations[to].config.address);
            Box::new(Line::new(from, (to, address), &own.direction, streams[index].clone()))
        });
        let Some(rate) = rate else {
            return line.sender.discard(now, frame, DropReason::Unheard, reports);
        };
        let free = line.sender.end().is_none();
        if let Some(frame) = line.sender.admit(now, frame, free, reports) {
            line.sender.start_at(now, frame, Some(rate));
            ends.extend(line.sender.end().map(|end| Reverse((end, index))));
        }
    }

    /// Copies a frame onto the line of each station that hears its sender, of those for which `takes` says so.
    fn flood(
        &mut self,
        now: Instant,
        from: Attachment,
        frame: &Buffer,
        takes: impl Fn(&Station) -> bool,
    ) -> bool {
        let mut hearers = std::mem::take(&mut self.hearers);
        hearers.clear();
        self.radios.hearers(now, from, &mut hearers);
        let takes = |hearing: &Hearing| self.stations.get(hearing.to).is_some_and(|own| takes(&own.config));
        hearers.retain(|hearing| hearing.reads() && takes(hearing));
        for hearing in &hearers {
            self.enqueue(now, from, hearing.to, frame.clone(), Some(hearing.rate));
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
        let min = |station: &LineStation| min_delay(station.direction.delay, station.direction.jitter);
        let min = self.stations.iter().map(min).min().filter(|_| !echoes);
        self.min_delay = min.unwrap_or(Duration::ZERO);
    }
}
