//! The counters of a QUIC.

use quinn_proto::ConnectionStats;

/// Cumulative figures over all connections, by the names under which results show them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters {
    pub datagrams_sent: u64,
    pub datagrams_received: u64,
    pub packets_sent: u64,
    pub packets_lost: u64,
    pub congestion_events: u64,
    pub acks_sent: u64,
    pub stream_frames_sent: u64,
    pub retransmits: u64,
    pub handshakes_completed: u64,
    pub connections_opened: u64,
    pub connections_accepted: u64,
    pub connections_refused: u64,
    pub connections_lost: u64,
    pub no_connection: u64,
    pub foreign: u64,
    pub wrong_items: u64,
    pub streams_opened: u64,
    pub streams_accepted: u64,
    pub streams_refused: u64,
    pub streams_broken: u64,
    pub streams_reset: u64,
}

impl Counters {
    /// Adds quinn-proto's counts of a connection.
    pub(super) fn add(&mut self, stats: &ConnectionStats) {
        self.packets_sent += stats.path.sent_packets;
        self.packets_lost += stats.path.lost_packets;
        self.congestion_events += stats.path.congestion_events;
        self.acks_sent += stats.frame_tx.acks;
        self.stream_frames_sent += stats.frame_tx.stream;
    }

    pub(super) fn report(&self, report: &mut dyn FnMut(&'static str, u64)) {
        for (name, value) in [
            ("datagrams_sent", self.datagrams_sent),
            ("datagrams_received", self.datagrams_received),
            ("packets_sent", self.packets_sent),
            ("packets_lost", self.packets_lost),
            ("congestion_events", self.congestion_events),
            ("acks_sent", self.acks_sent),
            ("stream_frames_sent", self.stream_frames_sent),
            ("retransmits", self.retransmits),
            ("handshakes_completed", self.handshakes_completed),
            ("connections_opened", self.connections_opened),
            ("connections_accepted", self.connections_accepted),
            ("connections_refused", self.connections_refused),
            ("connections_lost", self.connections_lost),
            ("no_connection", self.no_connection),
            ("foreign", self.foreign),
            ("wrong_items", self.wrong_items),
            ("streams_opened", self.streams_opened),
            ("streams_accepted", self.streams_accepted),
            ("streams_refused", self.streams_refused),
            ("streams_broken", self.streams_broken),
            ("streams_reset", self.streams_reset),
        ] {
            report(name, value);
        }
    }
}
