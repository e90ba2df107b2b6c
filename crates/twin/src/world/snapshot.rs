//! The state of a world at one instant of its run, for a viewer.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{RunningFlow, World, directions, lines};
use crate::meter::Meter;
use crate::results::Quantiles;

/// The nodes, queues and flows of a world at one instant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Virtual time since the start of the run, in seconds.
    pub at_s: f64,
    /// The nodes, in the order of the scenario.
    pub nodes: Vec<NodeState>,
    /// Each direction of each link, in the order of the scenario.
    pub links: Vec<LinkState>,
    /// The flows, in the order of the scenario.
    pub flows: Vec<FlowState>,
}

/// A node at one instant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeState {
    /// The node's name.
    pub name: String,
    /// The counters of its host since the start of the run.
    pub counters: BTreeMap<String, u64>,
}

/// One direction of a link at one instant, with its counters since the start of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkState {
    /// The link's name, the same in all directions.
    pub name: String,
    /// The sending node.
    pub from: String,
    /// The receiving node.
    pub to: String,
    /// Whether the sending end is down: it drops what it is offered.
    pub down: bool,
    /// Frames in the queue, without the one that is being sent. A medium or switch has one queue for all directions
    /// of a station.
    pub queued_frames: u64,
    /// Bytes of the frames in the queue.
    pub queued_bytes: u64,
    /// Bytes of frames that entered the link, after its queue.
    pub sent_bytes: u64,
    /// Frames that entered the link, after its queue.
    pub sent_packets: u64,
    /// Bytes of frames that left the far end.
    pub delivered_bytes: u64,
    /// Frames that left the far end.
    pub delivered_packets: u64,
    /// Frames lost in transit.
    pub lost_packets: u64,
    /// Frames that the queue dropped, that found the link down, or that were too big for it.
    pub queue_dropped_packets: u64,
    /// Time in which the sender was sending, in seconds.
    pub busy_s: f64,
}

/// A flow at one instant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowState {
    /// The flow's name.
    pub name: String,
    /// Each of its receivers, in the order of the scenario.
    pub receivers: Vec<ReceiverState>,
    /// The counters of its machines since the start of the run, summed over machines of one name.
    pub counters: BTreeMap<String, u64>,
    /// How the delivery of its sender serves the members, in lines for people, if it says so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delivery: Vec<String>,
}

/// A receiver of a flow at one instant; its figures are those of the measurement window so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReceiverState {
    /// The receiving node.
    pub node: String,
    /// Payload bytes delivered for the first time.
    pub payload_bytes: u64,
    /// Units to be delivered.
    pub sent_units: u64,
    /// Units delivered.
    pub delivered_units: u64,
    /// Latency of delivered units, in milliseconds; `None` if there are none.
    pub latency_ms: Option<Quantiles>,
}

impl World {
    /// The current state of the world. Links carry out their due events first, which changes no result.
    pub fn snapshot(&mut self) -> Snapshot {
        let nodes = (0..self.nodes.len()).map(|node| self.node_state(node)).collect();
        let links = (0..self.links.len()).flat_map(|link| self.link_states(link)).collect();
        let flows =
            self.flows.iter().enumerate().map(|(number, flow)| self.flow_state(number, flow)).collect();
        Snapshot { at_s: self.now.as_secs_f64(), nodes, links, flows }
    }

    fn node_state(&self, node: usize) -> NodeState {
        let counters = self.host_counters(node).into_iter();
        NodeState {
            name: self.scenario.nodes[node].name.clone(),
            counters: counters.map(|(counter, value)| (counter.to_owned(), value)).collect(),
        }
    }

    fn link_states(&mut self, number: usize) -> Vec<LinkState> {
        let (now, wired, spec) = (self.now, &mut self.links[number], &self.scenario.links[number]);
        let name = |end: usize| self.scenario.nodes[spec.ends[end]].name.clone();
        let state = |(from, to)| {
            let (backlog, counters) = (wired.model.backlog(now, from), wired.model.counters(now, from, to));
            LinkState {
                name: spec.name.clone(),
                from: name(from),
                to: name(to),
                down: backlog.down,
                queued_frames: backlog.frames,
                queued_bytes: backlog.bytes,
                sent_bytes: counters.sent_bytes,
                sent_packets: counters.sent_packets,
                delivered_bytes: counters.delivered_bytes,
                delivered_packets: counters.delivered_packets,
                lost_packets: counters.lost_packets,
                queue_dropped_packets: counters.queue_dropped_packets,
                busy_s: counters.busy.as_secs_f64(),
            }
        };
        directions(spec.ends.len()).map(state).collect()
    }

    fn flow_state(&self, number: usize, flow: &RunningFlow) -> FlowState {
        let spec = &self.scenario.flows[number];
        let receiver = |(node, meter): (&usize, &Meter)| ReceiverState {
            node: self.scenario.nodes[*node].name.clone(),
            payload_bytes: meter.payload_bytes,
            sent_units: meter.units(),
            delivered_units: meter.delivered_units,
            latency_ms: meter.latency.quantiles(),
        };
        let receivers = spec.to.iter().zip(flow.meters.iter());
        FlowState {
            name: spec.name.clone(),
            receivers: receivers.map(|(node, meter)| receiver((node, &meter.borrow()))).collect(),
            counters: self.flow_counters(flow),
            delivery: lines(&flow.shown),
        }
    }
}
