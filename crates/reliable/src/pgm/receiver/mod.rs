//! What a member receives: the sources it hears, each for itself.

mod acks;
mod asks;
mod group;
mod nak;
mod remote;
mod round_trip;
mod start;
mod units;
mod window;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use hopcast_core::{Buffer, Instant, Stream};

use self::remote::Remote;
use super::config::ReceiverConfig;
use super::wire::{Body, Packet, Tsi};
use crate::statistics::{Deliveries, Kind, Requests, Traffic};

/// The receiving side of a member.
#[derive(Debug)]
pub(super) struct Receiver {
    shared: Shared,
    remotes: BTreeMap<Tsi, Remote>,
    /// Deliveries of sources that were forgotten, and sources that were.
    past: (Deliveries, u64),
}

/// What all sources of a receiver share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) config: ReceiverConfig,
    pub(super) random: Stream,
    /// Own random identifier, for polls.
    node: u32,
    /// The address by which it is the acker, and the group's.
    pub(super) name: IpAddr,
    pub(super) group: SocketAddr,
    pub(super) traffic: Traffic,
    pub(super) requests: Requests,
    pub(super) counts: Counts,
}

/// What is counted beside what all protocols count.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) overruns: u64,
    pub(super) unconfirmed: u64,
    pub(super) unanswered: u64,
    pub(super) decoded: u64,
    pub(super) duplicates: u64,
    pub(super) refused: u64,
    pub(super) ended: u64,
    pub(super) resynchronised: u64,
    pub(super) malformed: u64,
}

/// What comes of a packet or of time.
#[derive(Debug, Default)]
pub(super) struct Output {
    /// Packets to be sent, and where to.
    pub(super) packets: Vec<(SocketAddr, Buffer)>,
    pub(super) delivered: Vec<Delivery>,
}

/// Something to be handed up.
#[derive(Debug)]
pub(super) struct Delivery {
    pub(super) session: Tsi,
    pub(super) address: SocketAddr,
    pub(super) what: Delivered,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Delivered {
    Datagram(Vec<u8>),
    Message {
        name: Option<Vec<u8>>,
        bytes: Vec<u8>,
    },
    Stream {
        number: u16,
        bytes: Vec<u8>,
        is_end: bool,
    },
    /// Some of a stream is missing.
    Missing(u16),
}

impl Receiver {
    pub(super) fn new(config: ReceiverConfig, name: IpAddr, group: SocketAddr, mut random: Stream) -> Self {
        let node = random.bits() as u32;
        let shared = Shared {
            config,
            node,
            name,
            group,
            random,
            traffic: Traffic::default(),
            requests: Requests::default(),
            counts: Counts::default(),
        };
        Self { shared, remotes: BTreeMap::new(), past: (Deliveries::default(), 0) }
    }

    /// Takes a packet that a source has sent.
    pub(super) fn heard(&mut self, now: Instant, from: SocketAddr, packet: &Packet<'_>, output: &mut Output) {
        if !self.remotes.contains_key(&packet.session) {
            // A confirmation says nothing to whoever has heard nothing else.
            if !matches!(packet.body, Body::Spm(_) | Body::Original(_) | Body::Repair(_)) {
                return;
            }
            self.make_room();
            let remote = Remote::new(now, packet.session, packet.port, from, &self.shared);
            self.remotes.insert(packet.session, remote);
        }
        let Some(remote) = self.remotes.get_mut(&packet.session) else { return };
        remote.heard(now, from, packet, &mut self.shared, output);
    }

    /// Takes a request of another receiver.
    pub(super) fn nak_of_others(&mut self, now: Instant, packet: &Packet<'_>) {
        self.shared.requests.heard += 1;
        if let (Some(remote), Body::Nak(nak)) = (self.remotes.get_mut(&packet.session), packet.body) {
            remote.asked_by_others(now, packet, &nak, &mut self.shared);
        }
    }

    /// Forgets the source that was silent for longest, if there are as many as may be.
    fn make_room(&mut self) {
        if self.remotes.len() < self.shared.config.sources.max(1) {
            return;
        }
        let silent = self.remotes.iter().min_by_key(|(_, remote)| remote.last_heard()).map(|(&tsi, _)| tsi);
        if let Some(remote) = silent.and_then(|tsi| self.remotes.remove(&tsi)) {
            let deliveries = remote.deliveries();
            self.past.0.objects += deliveries.objects;
            self.past.0.messages += deliveries.messages;
            self.past.0.given_up += deliveries.given_up;
            self.past.1 += 1;
        }
    }

    /// Makes the requests whose time has come.
    pub(super) fn wake(&mut self, now: Instant, output: &mut Output) {
        for remote in self.remotes.values_mut() {
            if remote.deadline().is_some_and(|at| at <= now) {
                remote.wake(now, &mut self.shared, output);
            }
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.remotes.values().filter_map(Remote::deadline).min()
    }

    /// Notes a packet of its own.
    pub(super) fn sent(&mut self, bytes: usize) {
        self.shared.traffic.add(Kind::Feedback, bytes);
    }

    pub(super) fn counters(&self, nacks_received: u64, report: &mut dyn FnMut(&'static str, u64)) {
        self.shared.traffic.counters(report);
        Requests { received: nacks_received, ..self.shared.requests }.counters(report);
        let mut deliveries = self.past.0;
        for of_one in self.remotes.values().map(Remote::deliveries) {
            deliveries.objects += of_one.objects;
            deliveries.messages += of_one.messages;
            deliveries.given_up += of_one.given_up;
        }
        deliveries.counters(report);
        let counts = &self.shared.counts;
        for (name, value) in [
            ("window_overruns", counts.overruns),
            ("nacks_unconfirmed", counts.unconfirmed),
            ("nacks_unanswered", counts.unanswered),
            ("packets_decoded", counts.decoded),
            ("duplicate_packets", counts.duplicates),
            ("packets_refused", counts.refused),
            ("sessions_ended", counts.ended),
            ("sources_forgotten", self.past.1),
            ("sources_resynchronised", counts.resynchronised),
            ("malformed_units", counts.malformed),
        ] {
            report(name, value);
        }
    }

    /// Bytes held of all sources.
    #[cfg(test)]
    pub(super) fn held(&self) -> u64 {
        self.remotes.values().map(Remote::held).sum()
    }
}

impl Shared {
    /// Where packets to an element on the path go: at a port that is settled, or the one that it sends from.
    pub(super) fn upstream(&self, path: IpAddr, from: SocketAddr) -> SocketAddr {
        SocketAddr::new(path, self.config.unicast_port.unwrap_or(from.port()))
    }

    /// Whether a poll asks this member.
    pub(super) const fn is_polled(&self, poll: &super::wire::Poll) -> bool {
        matches!(poll.kind, super::wire::PollKind::General) && poll.matches(self.node)
    }
}
