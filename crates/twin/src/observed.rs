//! Observations of a run, before they are part of the document.

use std::collections::BTreeMap;

use hopcast_core::Instant;
use hopcast_link::{Attachment, Counters};

use crate::meter::Meter;
use crate::results::{FlowRoute, ServiceTable};

/// The observations of a run, in either world.
pub(crate) struct Observed {
    /// The flows, in the order of the scenario.
    pub(crate) flows: Vec<ObservedFlow>,
    /// The links, in the order of the scenario.
    pub(crate) links: Vec<ObservedLink>,
    /// Bytes of frames sent on all links in the measurement window, each frame counted once; `None` if it is not known.
    pub(crate) network_bytes: Option<u64>,
    /// The part of `network_bytes` that was sent until the last receiver had all of the run's only flow; `None`
    /// unless that flow is of bounded size and complete.
    pub(crate) transfer_bytes: Option<u64>,
    /// Counters of the hosts, summed over the network.
    pub(crate) hosts: BTreeMap<String, u64>,
    /// The tables of services in the end.
    pub(crate) tables: Vec<ServiceTable>,
    /// For each moment of the maps of ships, and each radio link, the routes of flows; empty if they are not known.
    pub(crate) flow_routes: Vec<Vec<Vec<FlowRoute>>>,
}

/// The observations of a flow.
pub(crate) struct ObservedFlow {
    /// The meter of each receiver.
    pub(crate) meters: Vec<Meter>,
    /// The counters of its machines, by name, summed over machines of one name.
    pub(crate) counters: BTreeMap<String, u64>,
    /// How the deliveries of its senders serve the members in the end, in lines for people.
    pub(crate) delivery: Vec<String>,
    /// Maximum length of a frame that fits its route, in bytes.
    pub(crate) frame: u64,
    /// Bytes of frames that its sender's node sent on all links in the measurement window, each counted once, or in the
    /// part of it until the last receiver had all of the run's only flow; `None` if they are not known.
    pub(crate) sender_bytes: Option<u64>,
}

/// The observations of a link.
#[derive(Clone, Debug, Default)]
pub struct ObservedLink {
    /// The ends of each direction, in order, and its figures in the measurement window.
    pub window: Vec<((Attachment, Attachment), Counters)>,
    /// For each direction, (bytes sent, frames lost, frames delivered) in each step of the time series; empty if it
    /// carried nothing.
    pub steps: Vec<Vec<[u64; 3]>>,
}

/// Bytes of frames that were sent on all links, each counted once where it was sent, over the time of a run.
#[derive(Clone, Debug, Default)]
pub struct SentBytes {
    /// For each link, the bytes so far at the times at which they had grown.
    pub links: Vec<Vec<(Instant, u64)>>,
}

impl SentBytes {
    /// The bytes that were sent by `at`.
    pub fn until(&self, at: Instant) -> u64 {
        let of_link = |steps: &Vec<(Instant, u64)>| {
            let known = steps.partition_point(|&(time, _)| time <= at);
            known.checked_sub(1).map_or(0, |last| steps[last].1)
        };
        self.links.iter().map(of_link).sum()
    }
}
