//! Counters of sockets.

/// The counters of one socket, or the sum of several.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    /// Items received: datagrams, packets, frames, or pieces of streams.
    pub(super) received: u64,
    pub(super) received_bytes: u64,
    pub(super) sent: u64,
    pub(super) sent_bytes: u64,
    /// Datagrams, packets or frames that the kernel refused to send: no route, too long, forbidden.
    pub(super) send_refused: u64,
    /// Calls for which the kernel had no room.
    pub(super) send_full: u64,
    /// Items dropped since they had waited longest for room.
    pub(super) send_dropped: u64,
    /// Datagrams that the kernel dropped since they were not read in time; its own UDP counters include them.
    pub(super) receive_dropped: u64,
    /// Packets and frames that the kernel dropped since a device was not read in time; no other counter includes them.
    pub(super) device_dropped: u64,
    pub(super) receive_errors: u64,
    /// Packets of a machine with a hook that were dropped because it had used up its number of answers.
    pub(super) hook_excess: u64,
    /// Packets of a machine with a hook dropped since their hop limit was used up; the kernel counts those that it
    /// routes.
    pub(super) hop_limit_exceeded: u64,
    /// Memberships that the kernel refused.
    pub(super) groups_refused: u64,
    /// MTUs of a device that the kernel refused.
    pub(super) mtu_refused: u64,
    /// Items of the machine that the port cannot carry.
    pub(super) wrong_items: u64,
    pub(super) streams_opened: u64,
    pub(super) streams_accepted: u64,
    /// Streams that could not be opened or accepted.
    pub(super) streams_refused: u64,
    /// Streams that failed, or whose contract the machine broke.
    pub(super) streams_failed: u64,
    /// Streams that were not established in time; below, those refused since the memory for streams was used up.
    pub(super) streams_timed_out: u64,
    pub(super) streams_without_memory: u64,
    pub(super) syscalls: u64,
}

impl Counters {
    pub(super) fn add(&mut self, other: &Self) {
        let Self { received, received_bytes, sent, sent_bytes, .. } = other;
        self.received += received;
        self.received_bytes += received_bytes;
        self.sent += sent;
        self.sent_bytes += sent_bytes;
        self.send_refused += other.send_refused;
        self.send_full += other.send_full;
        self.send_dropped += other.send_dropped;
        self.receive_dropped += other.receive_dropped;
        self.device_dropped += other.device_dropped;
        self.receive_errors += other.receive_errors;
        self.hook_excess += other.hook_excess;
        self.hop_limit_exceeded += other.hop_limit_exceeded;
        self.groups_refused += other.groups_refused;
        self.mtu_refused += other.mtu_refused;
        self.wrong_items += other.wrong_items;
        self.streams_opened += other.streams_opened;
        self.streams_accepted += other.streams_accepted;
        self.streams_refused += other.streams_refused;
        self.streams_failed += other.streams_failed;
        self.streams_timed_out += other.streams_timed_out;
        self.streams_without_memory += other.streams_without_memory;
        self.syscalls += other.syscalls;
    }

    pub(super) fn report(&self, report: &mut dyn FnMut(&'static str, u64)) {
        let figures = [
            ("socket_received", self.received),
            ("socket_received_bytes", self.received_bytes),
            ("socket_sent", self.sent),
            ("socket_sent_bytes", self.sent_bytes),
            ("socket_send_refused", self.send_refused),
            ("socket_send_full", self.send_full),
            ("socket_send_dropped", self.send_dropped),
            ("socket_receive_dropped", self.receive_dropped),
            ("socket_device_dropped", self.device_dropped),
            ("socket_receive_errors", self.receive_errors),
            ("socket_hook_excess", self.hook_excess),
            ("socket_hop_limit_exceeded", self.hop_limit_exceeded),
            ("socket_groups_refused", self.groups_refused),
            ("socket_mtu_refused", self.mtu_refused),
            ("socket_wrong_items", self.wrong_items),
            ("socket_streams_opened", self.streams_opened),
            ("socket_streams_accepted", self.streams_accepted),
            ("socket_streams_refused", self.streams_refused),
            ("socket_streams_failed", self.streams_failed),
            ("socket_streams_timed_out", self.streams_timed_out),
            ("socket_streams_without_memory", self.streams_without_memory),
            ("syscalls", self.syscalls),
        ];
        figures.into_iter().for_each(|(name, figure)| report(name, figure));
    }
}
