//! Units that a message ferry could have brought, and when.

use std::cell::RefCell;
use std::rc::Rc;

use hopcast_core::{Duration, Instant};

use super::Distribution;
use crate::results::Quantiles;
use crate::run::DRAIN;
use crate::scenario::model::NodeId;
use crate::scenario::{Ferry, TooMuchWork};

/// The units of a flow that could have arrived at one receiver, or at several together, and after what time.
#[derive(Clone)]
pub(crate) struct Earliest {
    /// The bound, shared by the receivers of the flow.
    ferry: Rc<RefCell<Ferry>>,
    receiver: NodeId,
    /// End of the time in which units may arrive.
    end: Instant,
    /// Units that could have arrived by then; `None` if to find out takes too long.
    units: Option<u64>,
    latency: Distribution,
}

impl Earliest {
    /// The bound of units of which none is sent yet, in a run of `duration`.
    pub(super) fn new(ferry: Rc<RefCell<Ferry>>, receiver: NodeId, duration: Duration) -> Self {
        let end = Instant::ZERO + duration + DRAIN;
        Self { ferry, receiver, end, units: Some(0), latency: Distribution::default() }
    }

    /// Notes a unit that counts and is sent at `at`.
    pub(super) fn sent(&mut self, at: Instant) {
        let Some(units) = &mut self.units else { return };
        match self.ferry.borrow_mut().arrival(at, self.receiver) {
            Ok(Some(arrival)) if arrival <= self.end => {
                *units += 1;
                self.latency.record(arrival.since(at));
            }
            Ok(_) => {}
            Err(TooMuchWork) => self.units = None,
        }
    }

    /// Adds the units of another receiver of the same flow.
    pub(super) fn add(&mut self, other: &Self) {
        self.units = self.units.zip(other.units).map(|(one, other)| one + other);
        self.latency.add(&other.latency);
    }

    /// Share of the units that were sent that could have arrived.
    pub(crate) fn reliability(&self, sent: u64) -> Option<f64> {
        self.units.filter(|_| sent > 0).map(|units| units as f64 / sent as f64)
    }

    /// The time that those take at least.
    pub(crate) fn latency(&self) -> Option<Quantiles> {
        self.units.and_then(|_| self.latency.quantiles())
    }
}
