//! The state that the stations of a medium or a switch share: the stations, who hears whom, and the frames under way.

use std::collections::BTreeSet;

use hopcast_core::{Buffer, Duration, Fraction, Instant, Reception, Seed, Stream, earliest};

use crate::address::{Addresses, is_for, is_group};
use crate::config::{Direction, DropReason, Loss, Mac, MediumConfig, PairLoss, Station, SwitchConfig};
use crate::flight::{Due, Fate, Flight};
use crate::path::Path;
use crate::reports::Reports;
use crate::sender::Sender;
use crate::{Attachment, Change, Counters, Event, Hearing, Quality, QueueSnapshot, Radios};

/// The stations of a medium, under either medium access, or of a switch: their senders, and the paths and frames
/// between them.
#[derive(Debug)]
pub(crate) struct Stations {
    configs: Vec<Station>,
    addresses: Addresses,
    pub(crate) senders: Vec<Sender>,
    /// For each sender, one for each other station in order; see [`Stations::path`].
    paths: Vec<Path>,
    pub(crate) flight: Flight<Option<Reception>>,
    pub(crate) reports: Reports,
    /// The minimum time that any frame is under way.
    min_delay: Duration,
    /// Number of times that a frame to one station is repeated.
    retries: u32,
    /// Whether frames come by radio, so that their reception is known.
    radio: bool,
    /// For each sender and listener, whether it hears it; empty if all hear all.
    hears: Vec<bool>,
    /// The stations' radios, which say in place of `hears` who hears whom.
    pub(crate) radios: Option<Box<dyn Radios>>,
}

impl Stations {
    /// The stations of a medium; `stream` decides about the frames between two of them, and `seed` about their radios.
    pub(crate) fn of_medium(
        config: &MediumConfig,
        stream: &mut impl FnMut(Attachment, Attachment) -> Stream,
        seed: &Seed,
    ) -> Self {
        let MediumConfig { direction, stations, mac, pairs, hears, radios } = config;
        let radios = radios.as_ref().map(|model| model.0.radios(seed));
        let csma = match mac {
            Mac::Perfect | Mac::EthernetLike => None,
            Mac::Csma(csma) => Some(csma),
        };
        let (channel, retries) = (csma.map(|csma| &csma.channel), csma.map_or(0, |csma| csma.retries));
        let by_radio = Direction { rate: None, loss: Loss::None, ..direction.clone() };
        let (direction, pairs): (_, &[_]) =
            if radios.is_some() { (&by_radio, &[]) } else { (direction, pairs) };
        let all = Self::new(stations.clone(), |_| direction, pairs, channel, stream);
        let n = all.len();
        let known =
            |heard: &BTreeSet<_>| (0..n * n).map(|pair| heard.contains(&(pair / n, pair % n))).collect();
        let hears = hears.as_ref().filter(|_| radios.is_none()).map(known).unwrap_or_default();
        Self { retries, radio: true, hears, radios, ..all }
    }

    /// The stations of a switch; `stream` decides about the frames between two of them.
    pub(crate) fn of_switch(
        config: &SwitchConfig,
        stream: &mut impl FnMut(Attachment, Attachment) -> Stream,
    ) -> Self {
        let SwitchConfig { directions, addresses, pairs, bridges: _ } = config;
        let station = |&address| Station { address, ..Station::default() };
        let stations: Vec<Station> = addresses.iter().map(station).take(directions.len()).collect();
        Self::new(stations, |from| &directions[from], pairs, None, stream)
    }

    fn new<'c>(
        stations: Vec<Station>,
        direction: impl Fn(Attachment) -> &'c Direction,
        pairs: &[PairLoss],
        channel: Option<&Loss>,
        stream: &mut impl FnMut(Attachment, Attachment) -> Stream,
    ) -> Self {
        let n = stations.len();
        let others = |from| (0..n).filter(move |&to| to != from).map(move |to| (from, to));
        let mut path = |(from, to): (Attachment, Attachment)| {
            let direction = direction(from);
            let pair = pairs.iter().rev().find(|pair| (pair.from, pair.to) == (from, to));
            let loss = pair.map_or_else(|| direction.loss.clone(), |pair| pair.loss.clone());
            let mut path = Path::new(&Direction { loss, ..direction.clone() }, stream(from, to));
            if let Some(channel) = channel {
                path.set_channel(channel);
            }
            path
        };
        let mut all = Self {
            senders: (0..n).map(|from| Sender::new(from, direction(from))).collect(),
            paths: (0..n).flat_map(others).map(&mut path).collect(),
            addresses: Addresses::new(stations.iter().map(|station| station.address)),
            configs: stations,
            // Frames of different senders may overtake one another; a path keeps the order of its own.
            flight: Flight::new(true),
            reports: Reports::default(),
            min_delay: Duration::ZERO,
            retries: 0,
            radio: false,
            hears: Vec::new(),
            radios: None,
        };
        all.measure_min_delay();
        all
    }

    /// Number of stations.
    pub(crate) fn len(&self) -> usize {
        self.configs.len()
    }

    /// Whether the station `to` wants `frame`, and whether it is addressed to it.
    pub(crate) fn wants(&self, to: Attachment, frame: &Buffer) -> (bool, bool) {
        let station = self.configs[to];
        let addressed = is_for(frame, station.address);
        (addressed || station.promiscuous, addressed)
    }

    /// Whether one station hears what another sends.
    pub(crate) fn hears(&self, from: Attachment, to: Attachment) -> bool {
        from != to && self.hears.get(from * self.len() + to).is_none_or(|&hears| hears)
    }

    /// The one station that acknowledges a frame from `from`; nobody acknowledges one to a group.
    pub(crate) fn addressee(&self, from: Attachment, frame: &Buffer) -> Option<Attachment> {
        self.addresses.addressee(from, frame)
    }

    /// A station begins to send a frame: at its rate, or at the highest that a radio's receiver can read. Without a
    /// receiver that reads frames of any rate, that is the lowest.
    pub(crate) fn start(&mut self, now: Instant, from: Attachment, frame: Buffer) {
        let to = self.addressee(from, &frame);
        let sender = &mut self.senders[from];
        let rate = match &mut self.radios {
            None => sender.rate(),
            Some(radios) => {
                let found = to.and_then(|to| radios.hearing(now, from, to)).filter(Hearing::reads);
                found.map(|hearing| hearing.rate).or(radios.rates().last().copied())
            }
        };
        sender.start_at(now, frame, rate);
    }

    /// Every other station hears, or misses, the frame that has left at `end`.
    pub(crate) fn hear(&mut self, end: Instant, from: Attachment, frame: &Buffer) {
        for to in 0..self.len() {
            let Some(path) = self.path(from, to) else { continue };
            let (wanted, addressed) = self.wants(to, frame);
            let rate = self.senders[from].frame_rate();
            let hearing = self.radios.as_mut().and_then(|radios| radios.hearing(end, from, to));
            let heard = match &self.radios {
                None => self.hears(from, to),
                Some(_) => hearing.is_some_and(|hearing| Some(hearing.rate) >= rate),
            };
            if !heard {
                if addressed && !is_group(frame) {
                    self.paths[path].sent(frame);
                    self.miss(end, from, to, frame, DropReason::Unheard);
                }
                continue;
            }
            if !wanted {
                self.paths[path].pass();
                continue;
            }
            if addressed {
                self.paths[path].sent(frame);
            }
            self.listen(end, from, to, frame, addressed, hearing);
        }
        self.echo(end, from, frame);
    }

    /// One station hears, or misses, a frame that has left at `end`, of which its radio loses a share.
    pub(crate) fn listen(
        &mut self,
        end: Instant,
        from: Attachment,
        to: Attachment,
        frame: &Buffer,
        addressed: bool,
        hearing: Option<Hearing>,
    ) {
        let Some(path) = self.path(from, to) else { return };
        match self.paths[path].fate(end, hearing.map(|hearing| hearing.loss)) {
            Some(fate) => {
                let signal = hearing.and_then(|hearing| hearing.signal);
                let reception = Reception { signal, rate: self.senders[from].frame_rate() };
                let reception = self.radio.then_some(reception);
                self.flight.launch(fate, frame.clone(), from, to, !addressed, reception);
            }
            None if self.reports.wants_drops() => {
                self.reports.dropped(end, from, Some(to), frame.clone(), DropReason::Lost);
            }
            None => {}
        }
    }

    /// Gives a frame with which the link is done at `at` back to its sender, if that asks for it.
    pub(crate) fn echo(&mut self, at: Instant, from: Attachment, frame: &Buffer) {
        if self.configs[from].echo {
            let fate = Fate { at, twice: false, flip: None };
            self.flight.launch(fate, frame.clone(), from, from, true, None);
        }
    }

    /// One station misses a frame for another reason than its path's.
    pub(crate) fn miss(
        &mut self,
        end: Instant,
        from: Attachment,
        to: Attachment,
        frame: &Buffer,
        reason: DropReason,
    ) {
        let Some(path) = self.path(from, to) else { return };
        self.paths[path].missed();
        if self.reports.wants_drops() {
            self.reports.dropped(end, from, Some(to), frame.clone(), reason);
        }
    }

    /// The time at which the next arrival or report is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        earliest(self.reports.next(), self.flight.next())
    }

    /// The time at which anybody may notice that a frame leaves at `end`, on a link whose frames are not answered: as
    /// it leaves, if that is reported, and else when it can arrive.
    pub(crate) fn noticed(&self, end: Option<Instant>) -> Option<Instant> {
        if self.reports.on() { end } else { end.map(|end| end + self.min_delay) }
    }

    /// The next arrival or report up to `now`.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<Event> {
        let frame = match self.flight.take_due(&mut self.reports, now)? {
            Due::Report(event) => return Some(event),
            Due::Arrival(frame) => frame,
        };
        if let Some(path) = self.path_mut(frame.from(), frame.to()) {
            path.delivered(&frame);
        }
        Some(frame.into_event())
    }

    /// The queue of a station; empty if there is no such station.
    pub(crate) fn backlog(&self, from: Attachment) -> QueueSnapshot {
        self.senders.get(from).map_or_else(QueueSnapshot::default, Sender::backlog)
    }

    /// The path from a station to another.
    pub(crate) fn path_mut(&mut self, from: Attachment, to: Attachment) -> Option<&mut Path> {
        self.path(from, to).map(|path| &mut self.paths[path])
    }

    /// Applies a change to one station, or to all.
    pub(crate) fn change(&mut self, now: Instant, from: Option<Attachment>, change: &Change) {
        if self.radios.is_some() && change.is_by_radio() {
            return;
        }
        let others = self.len().saturating_sub(1);
        for (index, sender) in self.senders.iter_mut().enumerate() {
            if from.is_some_and(|from| from != index) {
                continue;
            }
            sender.change(now, change, &mut self.reports);
            for (place, path) in self.paths[index * others..(index + 1) * others].iter_mut().enumerate() {
                match change {
                    Change::LossTo(to, loss) if *to == place + usize::from(place >= index) => {
                        path.change(&Change::Loss(loss.clone()));
                    }
                    change => path.change(change),
                }
            }
        }
        self.measure_min_delay();
    }

    /// The quality of one ordered pair at `now`; `None` if the one does not hear the other, or the sender is down.
    pub(crate) fn quality(&mut self, now: Instant, from: Attachment, to: Attachment) -> Option<Quality> {
        let (above, below) = self.paths[self.path(from, to)?].loss_shares();
        let sender = &self.senders[from];
        if sender.backlog().down {
            return None;
        }
        if let Some(radios) = &mut self.radios {
            let hearing = radios.peek(now, from, to).filter(Hearing::reads)?;
            let passed = below.complement().get() * hearing.loss.complement().get();
            let below = Fraction::new(1.0 - passed).unwrap_or(Fraction::ONE);
            return Some(Quality::new(above, below, self.retries, Some(hearing.rate)).at(hearing.signal));
        }
        self.hears(from, to).then(|| Quality::new(above, below, self.retries, sender.rate()))
    }

    /// The figures of one ordered pair.
    pub(crate) fn counters(&self, now: Instant, from: Attachment, to: Attachment) -> Counters {
        let Some(path) = self.path(from, to) else {
            return Counters::default();
        };
        let due = self.flight.due(now).filter(|frame| (frame.from(), frame.to()) == (from, to));
        // A frame that was sent counts for the pair it was sent to.
        let station = Counters { sent_bytes: 0, sent_packets: 0, ..self.senders[from].counters(now) };
        station + self.paths[path].counters(due)
    }

    /// The index of the path from a station to another.
    fn path(&self, from: Attachment, to: Attachment) -> Option<usize> {
        let others = self.len().checked_sub(1)?;
        let known = from <= others && to <= others && from != to;
        known.then(|| from * others + if to > from { to - 1 } else { to })
    }

    fn measure_min_delay(&mut self) {
        let min = self.paths.iter().map(Path::min_delay).min().unwrap_or(Duration::ZERO);
        // An echo crosses no path.
        let echoes = self.configs.iter().any(|station| station.echo);
        self.min_delay = if echoes { Duration::ZERO } else { min };
    }
}
