//! A segment of stations that are joined by a switch.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use hopcast_core::{Buffer, Instant, Stream};

use crate::address::is_group;
use crate::config::SwitchConfig;
use crate::multipoint::Multipoint;
use crate::stations::Stations;
use crate::{Attachment, Change};

/// A switched segment: every station has a line of its own, full duplex, and sends at its own rate.
///
/// A frame to a group address is replicated to every other station, and is serialised once, where it is sent; any other
/// goes to the station that has its address, and to nobody else; one to an unknown address goes to bridges. Each
/// listener loses, and each frame is delayed, on the way from one station to another, independently of what the others
/// get. The switch forwards at once and its ports to the stations have no rate: what limits a frame is its sender's
/// line.
#[derive(Debug)]
pub struct Switch {
    stations: Stations,
    /// The station with each address.
    by_address: BTreeMap<[u8; 6], Attachment>,
    /// The stations that are given frames to other addresses.
    bridges: Vec<Attachment>,
    /// For each frame in serialisation, the time at which it leaves, and its sender.
    leaving: BinaryHeap<Reverse<(Instant, Attachment)>>,
}

impl Switch {
    /// A switch; `stream` gives, for each sender and listener, what decides about the frames between them.
    pub fn new(config: &SwitchConfig, mut stream: impl FnMut(Attachment, Attachment) -> Stream) -> Self {
        let stations = Stations::of_switch(config, &mut stream);
        // Of several stations with one address the first has it.
        let by_address = config.addresses.iter().copied().zip(0..stations.len()).rev().collect();
        Self { stations, by_address, bridges: config.bridges.clone(), leaving: BinaryHeap::new() }
    }

    /// A frame has left its sender at `end`.
    fn forward(&mut self, end: Instant, from: Attachment, frame: &Buffer) {
        let Self { stations, by_address, bridges, .. } = self;
        let count = stations.len();
        let mut forward = |to| {
            // A station does not hear itself.
            let Some(path) = stations.path_mut(from, to) else { return };
            path.sent(frame);
            stations.listen(end, from, to, frame, true, None);
        };
        match frame.first_chunk::<6>() {
            Some(_) if is_group(frame) => (0..count).for_each(forward),
            Some(address) => match by_address.get(address) {
                Some(&to) => forward(to),
                None => bridges.iter().copied().for_each(forward),
            },
            None => {}
        }
    }

    fn start_next(&mut self, at: Instant, from: Attachment) {
        let sender = &mut self.stations.senders[from];
        if sender.end().is_none() {
            sender.start_next(at, &mut self.stations.reports);
            self.leaving.extend(sender.end().map(|end| Reverse((end, from))));
        }
    }
}

impl Multipoint for Switch {
    fn stations(&self) -> &Stations {
        &self.stations
    }

    fn stations_mut(&mut self) -> &mut Stations {
        &mut self.stations
    }

    /// In the order of time.
    fn advance(&mut self, now: Instant) {
        while let Some(&Reverse((end, from))) = self.leaving.peek()
            && end <= now
        {
            self.leaving.pop();
            if let Some(frame) = self.stations.senders[from].finish(&mut self.stations.reports) {
                self.forward(end, from, &frame);
                frame.recycle();
            }
            self.start_next(end, from);
        }
    }

    fn admit(&mut self, now: Instant, from: Attachment, frame: Buffer) {
        let sender = &mut self.stations.senders[from];
        let busy = sender.end().is_some();
        sender.offer(now, frame, true, &mut self.stations.reports);
        if let Some(end) = sender.end().filter(|_| !busy) {
            self.leaving.push(Reverse((end, from)));
        }
    }

    fn resume(&mut self, now: Instant, _: Option<Attachment>, _: &Change) {
        let senders = &self.stations.senders;
        self.leaving.retain(|&Reverse((end, from))| senders[from].end() == Some(end));
        (0..self.stations.len()).for_each(|station| self.start_next(now, station));
    }

    fn next(&self) -> Option<Instant> {
        self.stations.noticed(self.leaving.peek().map(|&Reverse((end, _))| end))
    }

    fn acknowledges(&self) -> bool {
        false
    }
}
