//! One station, as it contends: its back-off, what it senses, and the exchange that it is in.

use hopcast_core::{Buffer, Duration, Instant, Rate, Stream};

use super::transmission::{Kind, Mark, ReceptionState};
use crate::Attachment;
use crate::config::{Csma, DropReason};

/// A station with its view of the medium.
#[derive(Debug)]
pub(super) struct Contender {
    stream: Stream,
    /// Contention window: back-offs are drawn from 0 to this, in slots.
    window: u32,
    /// Slots of back-off that are left, from the origin of the idle period on.
    slots: u64,
    pub(super) head: Option<Head>,
    /// Transmissions on the air that it hears, and its own.
    busy: u32,
    pub(super) sending: bool,
    /// Number of transmissions that it has heard begin, and of those that it has begun.
    heard: u64,
    begun: u64,
    /// The time at which its medium fell idle.
    idle_since: Instant,
    /// Whether the last frame that it heard had errors.
    erroneous: bool,
    pub(super) nav: Nav,
    /// End of its last wait for an answer that did not come.
    waited_until: Instant,
    /// The instant at which it begins to send although another transmission began within the slot before: too late to
    /// be sensed.
    committed: Option<Instant>,
    /// The frame that it sends a SIFS after another, whatever it senses.
    pub(super) reply: Option<Reply>,
    /// The end of its wait for a CTS or an acknowledgement, while it waits.
    pub(super) awaits: Option<Instant>,
}

/// The frame with which a station contends.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) frame: Buffer,
    /// The one station that is to acknowledge it.
    pub(super) to: Option<Attachment>,
    pub(super) retries: u32,
    /// For each station, whether it has heard the frame, and if not, why it missed it last.
    pub(super) heard: Vec<Result<(), DropReason>>,
    /// With radios, the stations that want the frame and were reached by an attempt.
    pub(super) audience: Vec<Attachment>,
    /// Whether it has been counted as sent.
    pub(super) counted: bool,
    /// Time on the air, of this attempt.
    pub(super) airtime: Duration,
    /// With radios, the rate of this attempt.
    pub(super) rate: Option<Rate>,
}

/// A frame that follows another after a SIFS.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reply {
    pub(super) at: Instant,
    pub(super) kind: Kind,
    pub(super) to: Attachment,
    /// The end of the exchange.
    pub(super) reserved: Instant,
}

/// The network allocation vector: the time until which others have reserved the medium (IEEE 802.11-2020, section
/// 10.3.2.4).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Nav {
    until: Instant,
    /// The time at which the reservation of an RTS lapses, unless something is heard before.
    lapses: Option<Instant>,
}

impl Nav {
    /// The time at which the reservation ends, if nothing more is heard.
    pub(super) fn end(&self) -> Instant {
        self.lapses.map_or(self.until, |lapses| lapses.min(self.until))
    }

    /// A frame for another station reserves the medium.
    pub(super) fn reserve(&mut self, until: Instant, lapses: Option<Instant>) {
        if until > self.until {
            *self = Self { until, lapses };
        }
    }

    /// A transmission is heard that begins at `start`.
    fn heard(&mut self, start: Instant) {
        if let Some(lapsed) = self.lapses.take().filter(|&lapses| lapses < start) {
            self.until = lapsed.min(self.until);
        }
    }
}

impl Contender {
    pub(super) fn new(stream: Stream, config: &Csma) -> Self {
        Self {
            stream,
            window: config.cw_min,
            slots: 0,
            head: None,
            busy: 0,
            sending: false,
            heard: 0,
            begun: 0,
            idle_since: Instant::ZERO,
            erroneous: false,
            nav: Nav::default(),
            waited_until: Instant::ZERO,
            committed: None,
            reply: None,
            awaits: None,
        }
    }

    /// The time at which slot 0 of the idle period begins, if nothing more is heard; `None` while the medium is busy,
    /// or the station is in an exchange of its own.
    fn origin(&self, config: &Csma) -> Option<Instant> {
        if self.busy > 0 || self.awaits.is_some() || self.reply.is_some() {
            return None;
        }
        // EIFS is counted from the end of the frame with errors, whatever is reserved (section 10.3.2.3.7).
        let sensed = self.idle_since + if self.erroneous { config.eifs() } else { config.difs };
        Some(sensed.max(self.nav.end().max(self.waited_until) + config.difs))
    }

    /// The time at which it begins to send its frame, if nothing is heard before.
    pub(super) fn starts(&self, config: &Csma) -> Option<Instant> {
        self.head.as_ref()?;
        let start = || Some(self.origin(config)? + config.slot * self.slots);
        self.committed.or_else(start)
    }

    /// Contends with a frame.
    pub(super) fn contend(&mut self, now: Instant, head: Head, config: &Csma) {
        self.head = Some(head);
        if self.origin(config).is_some_and(|origin| origin <= now) {
            // Its back-off is over, or what is left of it.
            self.catch_up(now, config);
        } else if self.slots == 0 {
            self.back_off();
        }
    }

    /// Moves its back-off to the next slot from `now` on, if it would have ended before.
    pub(super) fn catch_up(&mut self, now: Instant, config: &Csma) {
        if let Some(origin) = self.origin(config) {
            let slot = config.slot.as_nanos().max(1);
            self.slots = self.slots.max(now.since(origin).as_nanos().div_ceil(slot));
        }
    }

    /// Notes a transmission that it hears from `start` on, for [`reception`](Self::reception) at its end.
    pub(super) fn hear(&mut self, start: Instant, config: &Csma) -> Mark {
        let state = match (self.sending, self.busy > 0) {
            (true, _) => ReceptionState::Deaf,
            (false, true) => ReceptionState::Collided,
            (false, false) => ReceptionState::Clean,
        };
        if let Some(origin) = self.origin(config) {
            let begins = self.starts(config).filter(|&begins| begins >= start);
            self.committed = begins.filter(|&begins| begins < start + config.slot);
            let elapsed = start.since(origin).as_nanos() / config.slot.as_nanos().max(1);
            self.slots = self.slots.saturating_sub(elapsed);
        }
        self.nav.heard(start);
        self.busy += 1;
        self.heard += 1;
        Mark { state, heard: self.heard, begun: self.begun }
    }

    /// Its reception, so far, of the transmission that it hears since `mark`.
    pub(super) fn reception(&self, mark: &Mark) -> ReceptionState {
        match mark.state {
            ReceptionState::Deaf => ReceptionState::Deaf,
            _ if self.begun != mark.begun => ReceptionState::Deaf,
            _ if self.heard != mark.heard => ReceptionState::Collided,
            state => state,
        }
    }

    /// Notes that a transmission that it heard is over.
    pub(super) fn fall_silent(&mut self, end: Instant) {
        self.busy = self.busy.saturating_sub(1);
        self.idle_since = end;
    }

    /// Begins to send.
    pub(super) fn send(&mut self) {
        self.busy += 1;
        self.begun += 1;
        self.sending = true;
        self.erroneous = false;
        self.committed = None;
    }

    /// Its back-off is over, and its attempt begins.
    pub(super) fn attempt(&mut self) -> Option<&mut Head> {
        self.slots = 0;
        self.head.as_mut()
    }

    /// Notes that it has sent, also if only in part.
    pub(super) fn sent(&mut self, end: Instant) {
        self.sending = false;
        self.fall_silent(end);
    }

    /// Notes that it has received a frame, with errors or without.
    pub(super) fn received(&mut self, erroneous: bool) {
        self.erroneous = erroneous;
    }

    /// Notes that an answer that it waited for has not come.
    pub(super) fn timed_out(&mut self, now: Instant) {
        self.awaits = None;
        self.waited_until = now;
    }

    /// Draws a back-off.
    pub(super) fn back_off(&mut self) {
        self.slots = self.stream.below(u64::from(self.window) + 1);
    }

    /// The next back-off is drawn from a window twice as wide, or as at first.
    pub(super) fn set_window(&mut self, wider: bool, config: &Csma) {
        self.window = if wider { (2 * self.window + 1).min(config.cw_max) } else { config.cw_min };
    }

    /// Gives up the exchange that it is in.
    pub(super) fn reset(&mut self, config: &Csma) -> Option<Head> {
        (self.committed, self.reply, self.awaits) = (None, None, None);
        self.set_window(false, config);
        self.head.take()
    }
}
