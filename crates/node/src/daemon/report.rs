//! The [`Status`] of the running machines.

use std::collections::{BTreeMap, VecDeque};

use hopcast_core::{Duration, Instant, Slot};
use log::warn;

use super::complaints::Complaints;
use super::groups::GroupPart;
use super::host::HostPart;
use super::site::Site;
use super::stack::{Part, headers};
use crate::config::Config;
use crate::hello::peer::{Peer, State};
use crate::hello::wire::VERSION;
use crate::runtime::Runtime;
use crate::status::{Board, CarrierStatus, PeerStatus, Status};

/// Time between two reports. Chosen; shorter takes time from the data, with longer `hopcast node status` shows older
/// figures.
const INTERVAL: Duration = Duration::from_millis(500);
/// Number of reports over which rates are taken. Chosen: two seconds; fewer are noisy, more follow a change late.
const RATE_REPORTS: usize = 4;
/// Publishes the status.
pub(super) struct Report {
    node: String,
    listen: String,
    headers: u16,
    parts: Vec<Part>,
    groups: Vec<GroupPart>,
    host: Vec<HostPart>,
    board: Board,
    /// Number of requests for tables that are answered.
    answered: u64,
    complaints: Complaints,
    next: Instant,
    /// Recent counts of bytes from and to each peer.
    before: VecDeque<(Instant, Vec<(u64, u64)>)>,
}

impl Report {
    pub(super) fn new(
        config: &Config,
        parts: Vec<Part>,
        (groups, host): (Vec<GroupPart>, Vec<HostPart>),
        board: Board,
    ) -> Self {
        if host.iter().any(HostPart::has_tables) {
            board.expect_tables();
        }
        Self {
            node: config.name.clone(),
            listen: config.listen.to_string(),
            headers: headers(config),
            parts,
            groups,
            host,
            board,
            answered: 0,
            complaints: Complaints::default(),
            next: Instant::ZERO,
            before: VecDeque::new(),
        }
    }

    /// The groups.
    pub(super) fn groups(&self) -> &[GroupPart] {
        &self.groups
    }

    /// Current number of TCP connections.
    pub(super) fn connections(&self) -> usize {
        self.parts.iter().map(Part::streams).sum()
    }

    /// Resets all TCP connections, here and at the far sites.
    pub(super) fn reset_connections(&self) {
        let splices = self.parts.iter().filter_map(|part| part.splice.as_ref());
        splices.for_each(|splice| splice.get_mut().reset());
    }

    /// Publishes a new status, if it is time.
    pub(super) fn publish(&mut self, now: Instant, site: &Site, runtime: &Runtime) {
        if now < self.next {
            return;
        }
        self.next = now + INTERVAL;
        let bytes: Vec<_> =
            site.switchboard.peers.iter().map(|peer| (peer.received.bytes, peer.sent.bytes)).collect();
        let peers = site.switchboard.peers.iter().enumerate().map(|(place, peer)| {
            let mut status = status_of(peer, now, self.headers);
            if let Some((since, before)) = self.before.front() {
                let rate = |now_bytes: u64, before: u64, span: Duration| {
                    (now_bytes - before) as f64 * 8e-6 / span.as_secs_f64().max(1e-3)
                };
                let span = now.since(*since);
                status.rate_in_mbps = rate(bytes[place].0, before[place].0, span);
                status.rate_out_mbps = rate(bytes[place].1, before[place].1, span);
            }
            status
        });
        let dropped = site.switchboard.dropped;
        let dropped = [
            ("of no peer", dropped.foreign),
            ("malformed", dropped.malformed),
            ("unwanted", dropped.unwanted),
            ("to a peer that is not up", dropped.nowhere),
        ];
        let asked = self.board.asked();
        let with_tables = asked > self.answered;
        let mut sockets = BTreeMap::new();
        runtime.counters(&mut |name, count| {
            *sockets.entry(name.to_owned()).or_insert(0) += count;
        });
        let status = Status {
            node: self.node.clone(),
            program: env!("CARGO_PKG_VERSION").to_owned(),
            speaks: VERSION,
            process: std::process::id(),
            uptime_s: now.as_secs_f64(),
            listen: self.listen.clone(),
            encrypted: false,
            peers: peers.collect(),
            carriers: self.parts.iter().map(|part| carrier(part, site)).collect(),
            groups: self.groups.iter().map(|group| group.status(now)).collect(),
            host: self.host.iter().map(|part| part.status(now, site, with_tables)).collect(),
            dropped: dropped.into_iter().map(|(cause, count)| (cause.to_owned(), count)).collect(),
            turned_away: self.board.count_turned_away(),
            sockets,
        };
        self.before.push_back((now, bytes));
        if self.before.len() > RATE_REPORTS {
            self.before.pop_front();
        }
        let up = |part: &Part| part.peers.iter().any(|&peer| site.switchboard.peers[peer].is_up());
        let up: Vec<bool> = self.parts.iter().map(up).collect();
        self.complaints.look(now, &status, &up).iter().for_each(|line| warn!("{line}"));
        if self.board.publish(status, asked) {
            self.answered = asked;
        }
    }
}

fn status_of(peer: &Peer, now: Instant, headers: u16) -> PeerStatus {
    let (state, since) = match peer.state {
        State::Up { since } => ("up", Some(since)),
        State::Down { since } => ("down", Some(since)),
        State::Unknown { .. } => ("unknown", None),
        State::Version(_) => ("version", None),
    };
    PeerStatus {
        name: peer.name.clone(),
        state: state.to_owned(),
        since_s: since.map(|since| now.since(since).as_secs_f64()),
        address: peer.address().map(|address| address.to_string()),
        silent_s: peer.silence(now).map(|silence| silence.as_secs_f64()),
        round_trip_ms: peer.round_trip.map(|trip| trip.as_millis_f64()),
        loss_in: peer.loss_in.share(),
        loss_out: peer.loss_out.share(),
        rate_in_mbps: 0.0,
        rate_out_mbps: 0.0,
        datagrams_in: peer.received.datagrams,
        datagrams_out: peer.sent.datagrams,
        bytes_in: peer.received.bytes,
        bytes_out: peer.sent.bytes,
        restarts: peer.restarts,
        moves: peer.moves,
        disbelieved: peer.disbelieved,
        path_mtu: peer.probe.passes.filter(|&bytes| bytes > 0).map(|bytes| bytes + headers),
    }
}

fn carrier(part: &Part, site: &Site) -> CarrierStatus {
    CarrierStatus {
        name: part.name.clone(),
        via: part.via.clone(),
        carries: part.tag.payload().to_owned(),
        role: if part.relay { "relay" } else { "site" }.to_owned(),
        channel: part.tag.channel(),
        connections: part.streams() as u64,
        counters: counters(site, &part.slots),
    }
}

/// The counters of machines, each summed over them.
pub(super) fn counters(site: &Site, slots: &[Slot]) -> BTreeMap<String, u64> {
    let mut counters = BTreeMap::new();
    for &slot in slots {
        site.machines.machine(slot).counters(&mut |name, count| {
            *counters.entry(name.to_owned()).or_insert(0) += count;
        });
    }
    counters
}
