//! When SPMs are sent (RFC 3208, sections 5.1.4 and 5.1.5): ambient ones, and a heartbeat after the last data.

use hopcast_core::{Duration, Instant};

/// The schedule of SPMs.
#[derive(Debug)]
pub(super) struct Schedule {
    ambient: Duration,
    /// When one is due, whatever else there is to send.
    urgent: Instant,
    /// When one is due if there is nothing else to send.
    heartbeat: Option<Instant>,
    /// Interval before the next heartbeat.
    interval: Duration,
    last: Option<Instant>,
}

/// Minimum interval of the heartbeat, and between SPMs that are asked for. Chosen: a receiver that has lost one waits
/// that long, and each is a packet.
const MIN: Duration = Duration::from_millis(10);
/// Maximum time before the first heartbeat after data: data that follows faster has none in between.
const MAX_FIRST: Duration = Duration::from_millis(50);

impl Schedule {
    /// A schedule whose first SPM is due at once.
    pub(super) const fn new(ambient: Duration) -> Self {
        Self { ambient, urgent: Instant::ZERO, heartbeat: None, interval: ambient, last: None }
    }

    /// Whether one is due, where there is something else to send or not.
    pub(super) fn is_due(&self, now: Instant, is_idle: bool) -> bool {
        self.urgent <= now || is_idle && self.heartbeat.is_some_and(|at| at <= now)
    }

    /// When the next one is due.
    pub(super) fn due(&self, is_idle: bool) -> Instant {
        self.heartbeat.filter(|_| is_idle).map_or(self.urgent, |at| at.min(self.urgent))
    }

    /// Data was sent, which takes `packet_time`: the heartbeat begins again.
    pub(super) fn data(&mut self, now: Instant, packet_time: Duration) {
        self.interval = MIN.max(packet_time * 2);
        self.heartbeat = Some(now + packet_time + (packet_time * 2).min(MAX_FIRST));
    }

    /// A repair was sent: whoever lacks more learns by an SPM right behind it that it is over.
    pub(super) fn repair(&mut self, now: Instant, packet_time: Duration) {
        self.interval = MIN.max(packet_time * 2);
        self.heartbeat = Some(now);
    }

    /// Somebody asks for an SPM.
    pub(super) fn request(&mut self, now: Instant) {
        let earliest = self.last.map_or(now, |last| (last + MIN).max(now));
        self.urgent = self.urgent.min(earliest);
    }

    /// An SPM was sent.
    pub(super) fn sent(&mut self, now: Instant) {
        self.last = Some(now);
        self.urgent = now + self.ambient;
        self.heartbeat = (self.interval < self.ambient).then_some(now + self.interval);
        self.interval = (self.interval * 2).min(self.ambient);
    }
}
