//! The results of runs: the document that `--format json` prints and that `summary.json` holds.
//!
//! The document holds no host name, path or wall-clock time, so that two runs of one seed are the same bytes.
//! Field names are the interface that users' scripts read: change them only with a line in the changelog.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use serde::{Deserialize, Serialize};

/// All results of one scenario file with its sweep and repeats.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// The scenario's title.
    pub scenario: String,
    /// Every run, by case of the sweep and by repeat.
    pub runs: Vec<Run>,
    /// Figures of each case and flow over the repeats.
    pub summary: Vec<Summary>,
    /// True if the runs were cut short: each run here is complete, but some are missing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// Origin of the figures in `published`, if they are not published ones: `measured`, `expected`, or `virtual time`
    /// beside those of live runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<String>,
    /// Notes on transports, by their names in tables: the reasons for their figures.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub notes: BTreeMap<String, String>,
    /// Remarks on the comparison with published figures: that they are left out because the command line changed the
    /// experiment, or that `--quick` did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// The publication whose experiment the scenario repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Publication>,
    /// Swept paths with the values of the runs against which savings are told; empty if there are none.
    #[serde(default, skip_serializing_if = "Parameters::is_empty")]
    pub reference: Parameters,
    /// The swept path along which plots go; `None` for the first of numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub axis: Option<String>,
}

/// A publication.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Publication {
    /// Its authors, in its order; an organisation is one.
    pub authors: Vec<String>,
    /// Its title.
    pub title: String,
    /// The year in which it was published.
    pub year: u16,
    /// The section, figure or table that describes the experiment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub section: Option<String>,
    /// The journal, proceedings or institution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub venue: Option<String>,
    /// Its URL or DOI.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// A scheduled event of the scenario.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScheduledEvent {
    /// Time, in seconds after the start of the run.
    pub at_s: f64,
    /// The event, in a few words.
    pub what: String,
}

/// Each swept path with its value as it is written in the file, in the order of the sweep.
pub type Parameters = serde_json::Map<String, serde_json::Value>;

/// A table of what a service of a node knows: `batctl o` of a mesh, say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceTable {
    /// The node.
    pub node: String,
    /// The name of the service.
    pub service: String,
    /// The name of the table.
    pub table: String,
    /// The names of its columns.
    pub columns: Vec<String>,
    /// Its rows, each with a cell for each column; addresses of nodes' interfaces by their names, `n1 eth0`.
    pub rows: Vec<Vec<String>>,
    /// Number of rows that there is no room for: the tables of a run have 4000.
    pub left_out: usize,
}

/// The ships of a radio link over a run: their tracks, and at some moments the links that there were between them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ShipMap {
    /// The name of the radio link.
    pub link: String,
    /// Whether places are degrees of longitude and latitude; else they are metres to the east and to the north.
    pub degrees: bool,
    /// The rates of the radio in Mbit/s, from the highest to the lowest.
    pub rates_mbps: Vec<f64>,
    /// The ships.
    pub ships: Vec<ShipTrack>,
    /// The moments, in the order of time.
    pub moments: Vec<ShipMoment>,
}

/// The track of a ship during a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ShipTrack {
    /// The node.
    pub node: String,
    /// Number of its antennas.
    pub antennas: u8,
    /// Second, place (metres east and north, or longitude and latitude), and heading in degrees clockwise from north,
    /// at a hundred equal steps of the run; one point of a ship that stands still all the time, none of one that is
    /// there at none of these times.
    pub points: Vec<[f64; 4]>,
}

/// The links between ships at one time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ShipMoment {
    /// Time, in seconds after the start of the run.
    pub at_s: f64,
    /// The pairs of ships that hear each other.
    pub links: Vec<ShipLink>,
    /// Number of weaker ones that there is no room for: a moment has 3000.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: usize,
    /// The routes of flows through a mesh at this time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<FlowRoute>,
}

/// A radio link between two ships at one time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ShipLink {
    /// The two ships, by their numbers among those of the map.
    pub ships: [usize; 2],
    /// Signal strength in dBm: the weaker of both directions.
    pub signal_dbm: f64,
    /// Rate in Mbit/s: the lower of both directions.
    pub rate_mbps: f64,
}

/// The route of a flow to one receiver at one time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowRoute {
    /// The flow.
    pub flow: String,
    /// The ships on the route, by their numbers among those of the map, from the sender on; it does not end at the
    /// receiver if the mesh has no route at that time.
    pub ships: Vec<usize>,
    /// Whether it ends at the receiver.
    pub arrives: bool,
}

/// One repeat of one case.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The swept values of this case.
    pub parameters: Parameters,
    /// Number of the repeat, from 0.
    pub repeat: u64,
    /// The scenario's seed; with `repeat` it keys all randomness.
    pub seed: u64,
    /// The flows.
    pub flows: Vec<Flow>,
    /// The directions of the links.
    pub links: Vec<Link>,
    /// Bytes of Ethernet frames that all nodes sent on all links in the measurement window, each frame counted once
    /// where it was sent, whatever the number of stations of a medium or switch that it was for; null if that is not
    /// known, as in a live run with such links.
    #[serde(default)]
    pub network_bytes: Option<u64>,
    /// Counters of the hosts, summed over all of them and over the whole run, without those at zero.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hosts: BTreeMap<String, u64>,
    /// Tables of what the services of nodes know at the end of the run, in the order of the nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<ServiceTable>,
    /// Maps of ships, one for each radio link; in the first repeat of each case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub maps: Vec<ShipMap>,
    /// The first hundred scheduled events, in the order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<ScheduledEvent>,
    /// Fidelity of a live run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<Live>,
    /// The time series; written to `timeseries.csv`, not to the document.
    #[serde(skip)]
    pub series: Series,
    /// The latency distributions; written to `latency.csv`, not to the document.
    #[serde(skip)]
    pub latency: Vec<LatencyCurve>,
}

/// Fidelity of a live run: whether this computer kept up with it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Live {
    /// The reason why the run is invalid: the machine could not keep up. Such a run is left out of the summary; null if
    /// it is valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalid: Option<String>,
    /// Number of attempts before this one, in each of which the machine could not keep up.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retries: u64,
    /// Time from a frame's departure by its link's model to its departure from the emulator, in microseconds: median,
    /// 99th percentile and maximum.
    pub lateness_us: [f64; 3],
    /// Frames that were more than a millisecond late.
    pub late_frames: u64,
    /// Frames that the emulator delivered.
    pub frames: u64,
    /// Frames that the machine dropped before the emulator or after it.
    pub host_drops: u64,
    /// Maximum delay of a scheduled change of routes, in milliseconds: until then packets took the old ones.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub routes_late_ms: f64,
    /// Seconds of processor time that the emulator took.
    pub emulator_cpu_s: f64,
    /// Seconds of processor time that each node's machines took.
    pub node_cpu_s: BTreeMap<String, f64>,
    /// Frames of videos that real programs streamed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pictures: Vec<FramePictures>,
    /// Outcomes of real programs, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub programs: BTreeMap<String, String>,
    /// Number of programs that failed by themselves, or did not end as the scenario expects.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed_programs: u64,
}

/// A frame of a video as it was sent and as it arrived: pictures in the run directory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FramePictures {
    /// The flow's name.
    pub flow: String,
    /// The frame's number, which the picture shows too.
    pub number: u64,
    /// The picture of the frame that was sent: a path below the run directory.
    pub sent: String,
    /// The picture of the frame that arrived; null if none did.
    pub received: Option<String>,
}

impl FramePictures {
    /// Paths of the pictures below the run directory; a document's path that leads elsewhere is left out.
    pub fn pictures(&self) -> impl Iterator<Item = &Path> {
        let below = |path: &&Path| path.components().all(|part| matches!(part, Component::Normal(_)));
        std::iter::once(&self.sent).chain(&self.received).map(Path::new).filter(below)
    }
}

/// The figures of one flow in the measurement window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    /// The flow's name.
    pub name: String,
    /// The name in the file of this flow and those of other senders, which have one summary together; null if it has
    /// one sender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub senders: Option<String>,
    /// The transport, stack or variant, by the name that tables show.
    pub protocol: String,
    /// The sending node.
    pub from: String,
    /// The receiving node; several are joined with a comma.
    pub to: String,
    /// Whether a coded transport takes part in its stack.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub coded: bool,
    /// Figures over all receivers: goodput is the mean, latency and the rest are of all together.
    #[serde(flatten)]
    pub figures: Figures,
    /// The protocol's own counters, summed over both ends.
    pub counters: BTreeMap<String, u64>,
    /// Figures of each receiver.
    pub receivers: Vec<Receiver>,
    /// How the delivery of its sender serves the members in the end, in lines for people, if it says so: of MEADcast
    /// the tree of routers that it has found, and its lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delivery: Vec<String>,
}

/// A flow at one of its receivers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Receiver {
    /// The receiving node.
    pub node: String,
    /// Its figures.
    #[serde(flatten)]
    pub figures: Figures,
}

/// The figures of a flow. `None` prints as null: not applicable, or nothing to measure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Payload bytes delivered for the first time, in Mbit/s over the window, without those that must have crossed the
    /// network before it, and with those that had crossed by its end and were released later; null if the flow, being
    /// bounded, did not last into the window.
    pub goodput_mbps: Option<f64>,
    /// Units sent in the window, and of a flow of bounded size that began before its end also those that were not sent
    /// by then.
    pub sent_units: u64,
    /// Units sent in the window that were delivered, by the end of the run.
    pub delivered_units: u64,
    /// `delivered_units` over `sent_units`; null if that is zero.
    pub reliability: Option<f64>,
    /// Goodput over the min-cut, limited to 1, since random losses may be fewer than the mean; null if the min-cut is
    /// zero or unbounded.
    pub min_cut_fraction: Option<f64>,
    /// Goodput over the part of the min-cut that is left after the stack's headers, limited to 1.
    pub payload_bound_fraction: Option<f64>,
    /// Time from the start of a flow of bounded size to its complete delivery, in seconds.
    pub completed_s: Option<f64>,
    /// Whether the received file has the hash of the sent one; null unless the flow is a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash_ok: Option<bool>,
    /// One-way latency of a unit.
    pub latency_ms: Option<Quantiles>,
    /// Round-trip time of an echo.
    pub round_trip_ms: Option<Quantiles>,
    /// Interarrival jitter by RFC 3550, of datagrams.
    pub jitter_ms: Option<f64>,
    /// Maximum of `reliability`: units that a message ferry could have delivered, over `sent_units`. It holds what it
    /// has for ever, at every node, and sends it on over each link as soon as that is up; its units do not share links.
    /// Absent unless an event takes a link down, and in a live run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reliability_bound: Option<f64>,
    /// One-way latency of those units with the message ferry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_bound_ms: Option<Quantiles>,
    /// Bytes of Ethernet frames that the flow put on all links in the window, as in [`Run::network_bytes`], and of a
    /// flow of bounded size those sent until its last receiver had all of it; absent unless the flow is the run's only
    /// one, or all are those of several senders to one group, and is to a group or to several receivers, or has a
    /// `network_bytes_bound`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_bytes: Option<u64>,
    /// The part of these that the flow's sender put on its links: copies for its receivers, repairs, and what else its
    /// node sent. Known of each flow to a group or to several receivers that is the only one of its sender; absent in a
    /// live run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender_bytes: Option<u64>,
    /// Minimum of `network_bytes`, on average, for repairs of blocks of 64 packets by an ideal code, or by repetition
    /// if its transport repeats what is lost; absent unless the flow is of bounded size, to one or several receivers
    /// on one switch, with independent losses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_bytes_bound: Option<f64>,
    /// Time that these bytes take at the sender's rate, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_bound_s: Option<f64>,
    /// Requests for a block that came to the sender, for each time that it repaired one; absent unless the flow's
    /// transport repairs blocks for a group, and repaired any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nacks_per_round: Option<f64>,
    /// Share of `network_bytes` that is saved against the run of the scenario's `reference` with the same repeat: 1
    /// less ours over that run's. Negative if it is more; absent in that run itself, and without a `reference`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_saving: Option<f64>,
    /// The same share of `sender_bytes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender_saving: Option<f64>,
    /// The same share of `completed_s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_saving: Option<f64>,
    /// Frames of a video; absent unless it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub video: Option<Video>,
}

/// The fates of the frames of a video that were sent in the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Video {
    /// Frames sent.
    pub frames_sent: u64,
    /// Frames that arrived complete, late ones included.
    pub frames_delivered: u64,
    /// Frames that arrived complete after their deadline.
    pub frames_late: u64,
    /// Frames that never arrived complete.
    pub frames_lost: u64,
    /// Frames in time that refer to a frame that was not.
    pub frames_undecodable: u64,
    /// Frames complete before their deadline, over those sent.
    pub in_time_ratio: Option<f64>,
    /// Frames that can be decoded, over those sent: they and all frames that they refer to were in time.
    pub decodable_frame_ratio: Option<f64>,
}

/// A distribution in milliseconds, from a full histogram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)] // the names say it
pub struct Quantiles {
    pub mean: f64,
    pub p50: f64,
    pub p95: f64,
    pub p99: f64,
    pub p99_9: f64,
    pub max: f64,
}

/// The figures of one direction of a link in the measurement window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// The link's name, the same in both directions.
    #[serde(default)]
    pub name: String,
    /// The sending node.
    pub from: String,
    /// The receiving node.
    pub to: String,
    /// Bytes of frames that entered the link, after its queue.
    pub sent_bytes: u64,
    /// Frames that entered the link, after its queue.
    pub sent_packets: u64,
    /// Frames that left its far end.
    pub delivered_packets: u64,
    /// Frames lost in transit.
    pub lost_packets: u64,
    /// Frames that its queue dropped, or that found it down.
    pub queue_dropped_packets: u64,
    /// Time spent serialising, over the window; null if the link has no rate.
    pub utilisation: Option<f64>,
    /// Scheduled time down, in seconds of the window.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub down_s: f64,
}

/// One flow of one case, over its repeats; of a flow with several senders, the mean over these.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The swept values of this case.
    pub parameters: Parameters,
    /// The flow's name.
    pub flow: String,
    /// The transport, stack or variant.
    pub protocol: String,
    /// Whether a coded transport takes part in it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub coded: bool,
    /// The mean of each figure over the repeats that have it (`n` of them), by the name it has in [`Figures`]
    /// (`latency_ms.p99` and so on), in the order of that type.
    #[serde(flatten)]
    pub figures: serde_json::Map<String, serde_json::Value>,
    /// Repeats that are left out because the machine could not keep up with them; live only.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub invalid_runs: u64,
    /// Published figures beside ours, by our name of the figure; absent where there are none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub published: BTreeMap<String, f64>,
}

/// A mean over repeats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Mean {
    /// The arithmetic mean.
    pub mean: f64,
    /// Half the width of the 95 % confidence interval (Student t); null for a single repeat.
    pub ci95: Option<f64>,
    /// Number of repeats.
    pub n: u64,
}

/// The time series of a run, in steps of the scenario's `measure.interval`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// The length of a step, in seconds.
    pub step_s: f64,
    /// The name of each flow, and its goodput in Mbit/s in each step from time 0.
    pub flows: Vec<(String, Vec<f64>)>,
    /// Each link direction `from>to`, with the rate of frames sent in Mbit/s, and the share lost, in each step.
    pub links: Vec<(String, Vec<f64>, Vec<f64>)>,
}

/// The cumulative distribution of one flow's latency.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyCurve {
    /// The flow's name.
    pub flow: String,
    /// `latency` or `round_trip`.
    pub kind: String,
    /// (milliseconds, share at or below), rising.
    pub points: Vec<(f64, f64)>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde wants it
fn is_nothing(number: &f64) -> bool {
    *number == 0.0
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde wants it
fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}
