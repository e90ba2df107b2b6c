//! BBR as quinn-proto's congestion controller, with pacing.
//!
//! quinn-proto's own BBR draws from the machine's entropy, and its pacer knows only the window and the round trip: at
//! 1.25 windows a round trip, a BBR of two bandwidth-delay products would not be paced at all. So this controller is
//! the BBR that the crate's TCP has, and says whether a packet may leave as the window that quinn-proto asks for: none
//! while its pacer holds packets back, and one without bounds, which puts quinn-proto's pacer out of action, when they
//! may go.

use core::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hopcast_core::{Instant, Stream};
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory};

use super::clock::{Moment, instant};
use crate::tcp::bbr_adapter::{Bbr, Gate};

/// More than quinn-proto's pacer paces (2^32).
const OPEN: u64 = 1 << 40;
/// Window of a sender that may not send: 1 byte, less than any packet.
const SHUT: u64 = 1;

/// The BBR of one connection, between the connection's driver and quinn-proto.
#[derive(Clone, Debug)]
pub(super) struct BbrHandle(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    bbr: Bbr,
    now: Instant,
    /// Whether quinn-proto wanted to send and was held back, and until when if that was by the pacer.
    refused: bool,
    until: Option<Instant>,
}

impl BbrHandle {
    pub(super) fn new(now: Instant, segment: u16, random: Stream) -> Self {
        let bbr = Bbr::new(now, segment.into(), random);
        Self(Arc::new(Mutex::new(State { bbr, now, refused: false, until: None })))
    }

    /// Something may be sent now: takes note of all that has happened until now.
    pub(super) fn begin(&self, now: Instant) {
        let mut state = self.state();
        state.now = now;
        state.refused = false;
        state.until = None;
        state.bbr.settle(now);
    }

    /// A datagram leaves that counts as in flight. quinn-proto reports those too that do not.
    pub(super) fn on_sent(&self, bytes: u64) {
        let state = &mut *self.state();
        state.bbr.on_sent(state.now, bytes);
    }

    /// Nothing more is sent now. Says when to go on if only the pacer holds packets back.
    pub(super) fn end(&self) -> Option<Instant> {
        let state = &mut *self.state();
        let idle = !state.refused && state.bbr.gate(state.now) == Gate::Open;
        state.bbr.pause(state.now, idle);
        state.until
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ControllerFactory for BbrHandle {
    fn build(self: Arc<Self>, _now: Moment, _current_mtu: u16) -> Box<dyn Controller> {
        Box::new((*self).clone())
    }
}

impl Controller for BbrHandle {
    fn on_ack(&mut self, _now: Moment, sent: Moment, bytes: u64, _app_limited: bool, _rtt: &RttEstimator) {
        self.state().bbr.on_delivered(instant(sent), bytes);
    }

    fn on_end_acks(&mut self, _now: Moment, in_flight: u64, _app_limited: bool, _largest: Option<u64>) {
        self.state().bbr.correct_in_flight(in_flight);
    }

    fn on_congestion_event(&mut self, _now: Moment, _sent: Moment, persistent: bool, lost_bytes: u64) {
        self.state().bbr.on_lost(lost_bytes, persistent);
    }

    fn on_mtu_update(&mut self, _new_mtu: u16) {}

    fn window(&self) -> u64 {
        let state = &mut *self.state();
        match state.bbr.gate(state.now) {
            Gate::Open => OPEN,
            Gate::Full => {
                state.refused = true;
                SHUT
            }
            Gate::Paced(until) => {
                state.refused = true;
                state.until = Some(until);
                SHUT
            }
        }
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.state().bbr.window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
