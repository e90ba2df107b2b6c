//! `btp`, `brtp`: BATS, with relays on the route that recode.

use std::ops::RangeInclusive;
use std::sync::Arc;

use hopcast_coded::bats::{BatchSize, Config, Delivery, Feedback as Reports, Node as BatsMachine};
use hopcast_config::Diagnostic;
use hopcast_config::decode::{choice, flag, percent, some_duration, whole};
use hopcast_config::yaml::Node;
use hopcast_core::{Buffer, Duration, Machine};

use crate::error::BuildError;
use crate::platform::LowerPort;
use crate::table::{Form, Opt, Options, on_off, shown};
use crate::transport::{
    Above, Count, End, Feedback, FlowNodes, FlowPlan, MemoryShare, PortKind, Ports, Row, SiteEdge, SiteRelay,
    SiteTransport, Transport,
};

pub(super) static BTP: Row = Row {
    name: "btp",
    about: "datagrams over relays that recode (BATS), each within a deadline or not at all",
    offers: Ports(&[PortKind::Datagram]),
    options: || BTP_OPTIONS.docs(&Bats::new(deadline())),
    read: |row, options| {
        BTP_OPTIONS.layer_as(row, options, Bats::new(deadline()), Bats::usual, |bats| Ok(bats.sized()))
    },
    ..BASE
};

pub(super) static BRTP: Row = Row {
    name: "brtp",
    about: "all of a stream, or of datagrams, in order, over relays that recode (BATS)",
    offers: Ports(&[PortKind::Stream, PortKind::Datagram]),
    options: || BRTP_OPTIONS.docs(&Bats::new(Config::default())),
    read: |row, options| BRTP_OPTIONS.layer_as(row, options, Bats::new(Config::default()), Bats::usual, Ok),
    ..BASE
};

const BASE: Row = Row {
    receivers: Count::Several,
    paths: Count::Several,
    feedback: Feedback::HopByHop,
    coded: true,
    ..Row::BASE
};

/// The settings of every node, and whether somebody has chosen the size of a batch.
#[derive(Clone, Debug)]
pub(super) struct Bats(pub(super) Config, bool);

/// Minimum window in a deployment, in batches. Chosen: with less, a hop of a few milliseconds is not filled; with more,
/// a small share of memory is exceeded.
const MIN_WINDOW: u64 = 16;
/// Maximum `overhead`, in percent. Chosen: with ten packets for each, a hop that loses nine of ten is made up for.
const MAX_OVERHEAD: u64 = 1000;
/// Maximum delay beyond that of the path that a TCP in a tunnel tolerates. Chosen: the minimum of its retransmission
/// timeout in Linux; with less, hops that could be asked in time send repairs ahead.
const TUNNEL_TOLERANCE: Duration = Duration::from_millis(200);
/// Time for which packets wait before a tunnel until none are taken. Chosen: a CUBIC inside then fills a satellite of
/// 600 ms (17.9 Mbit/s of 20; with 50 ms, 6.1); longer is delay for all that share the tunnel.
const TUNNEL_QUEUE: Duration = Duration::from_millis(200);
/// The deadlines that BTP's packets can carry: whole milliseconds in 16 bits.
const DEADLINES: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(65);

const FEEDBACK: Opt<Bats> = Opt {
    key: "feedback",
    about: "`ranks`: each hop repairs what the next one says it lacks. `none`: hops tell each other losses alone, recode as \
            far as these promise, and the source's outer code makes up for the rest.",
    form: Form::OneOf(&["ranks", "none"]),
    set: |bats, node, key| {
        if choice(node, key, &["ranks", "none"])?.0 == "none" {
            // The other options are read later, and change what they say.
            bats.0 = Config { delivery: bats.0.delivery, ..Config::strict() };
        }
        Ok(())
    },
    show: |bats| if bats.0.feedback == Reports::None { "none" } else { "ranks" }.to_owned(),
};

const BATCH_SIZE: Opt<Bats> = Opt {
    key: "batch-size",
    about: "Symbols of a batch: 4, 8, 16 or 32 (RFC 9426 section 4.2); 32 without feedback, before a deadline that is set, and in a tunnel. Small \
            ones waste more without feedback and before a deadline, large ones cost arithmetic, and without feedback delay.",
    form: Form::OneNumberOf(&[4, 8, 16, 32]),
    set: |bats, node, _| batch_size(node).map(|found| (bats.0.batch, bats.1) = (found, true)),
    show: |bats| shown(&bats.0.batch.symbols()),
};

const BLOCK: Opt<Bats> = Opt {
    key: "block",
    about: "Symbols of a block of the outer code, a multiple of the batch size, at most 8192; without feedback 1024. Small blocks need more on \
            top, large ones delay what is missing until their end.",
    form: Form::Count,
    set: |bats, node, key| {
        let symbols = bats.0.batch.symbols() as u64;
        let block = whole(node, key, symbols..=8192)?;
        if block % symbols != 0 {
            return Err(node.error(format!(
                "`{key}`: expected a multiple of the batch size {symbols}, found `{block}`"
            )));
        }
        bats.0.block = block as u16;
        Ok(())
    },
    show: |bats| shown(&bats.0.block),
};

const WINDOW: Opt<Bats> = Opt {
    key: "window",
    about: "Batches that a node holds each way, 4 to 2000; without feedback 256. It bounds memory, and what a path may have outstanding.",
    form: Form::Count,
    set: |bats, node, key| whole(node, key, 4..=2000).map(|found| bats.0.window = found as u16),
    show: |bats| shown(&bats.0.window),
};

const CONGESTION_CONTROL: Opt<Bats> = Opt {
    key: "congestion-control",
    about: "Whether a node sends no more than each hop carries; `off` with `ranks` only. Without it, what is too much is lost in queues and repaired.",
    form: Form::Flag,
    set: |bats, node, key| {
        bats.0.congestion_control = flag(node, key)?;
        if !bats.0.congestion_control && bats.0.feedback == Reports::None {
            return Err(node.error(format!("`{key}`: without rank feedback it is always on")));
        }
        Ok(())
    },
    show: |bats| on_off(bats.0.congestion_control),
};

const OVERHEAD: Opt<Bats> = Opt {
    key: "overhead",
    about: "The most that a hop may send of repairs before a loss is reported, for what they repair: where a report would come too \
            late for a deadline, and else where the hop has capacity to spare. With 0 % a loss waits for a round trip.",
    form: Form::Percent(MAX_OVERHEAD),
    set: |bats, node, key| percent(node, key, MAX_OVERHEAD).map(|found| bats.0.overhead = found / 100.0),
    show: |bats| format!("{} %", (bats.0.overhead * 1e8).round() / 1e6),
};

pub(super) static BRTP_OPTIONS: Options<Bats> = Options(&[
    FEEDBACK,
    BATCH_SIZE,
    BLOCK,
    WINDOW,
    CONGESTION_CONTROL,
    OVERHEAD,
    Opt {
        key: "stream-timeout",
        about: "How long the other edge may be silent before all streams are reset. Too short, and an outage ends them; too \
                long, and those of an edge that is gone hang.",
        form: Form::Duration,
        set: |bats, node, key| some_duration(node, key).map(|found| bats.0.stream_timeout = found),
        show: |bats| shown(&bats.0.stream_timeout),
    },
]);

static BTP_OPTIONS: Options<Bats> = Options(&[
    FEEDBACK,
    BATCH_SIZE,
    BLOCK,
    WINDOW,
    CONGESTION_CONTROL,
    OVERHEAD,
    Opt {
        key: "deadline",
        about: "The maximum age of a datagram that is handed up, from when the application sent it (`bulk` and `file`: from \
                when it leaves the source's queue), 1 ms to 65 s. Unless it is set, it is that of a `video`; else four times what \
                the path takes where that is more, and 65 s for `bulk` and `file` if `rounds` are not limited. What is older is dropped \
                wherever it is, and counted (`units_expired` at the source, `batches_given_up` on the path, `units_late` at \
                the receiver). Too short, and a loss is not repaired in time; too long, and what is late takes the rate of \
                what is not.",
        form: Form::Duration,
        set: |bats, node, key| {
            let found = some_duration(node, key)?;
            if !DEADLINES.contains(&found) {
                return Err(node.error(format!("`{key}`: expected 1 ms to 65 s, found {}", node.found())));
            }
            if let Delivery::Deadline { after, fixed, .. } = &mut bats.0.delivery {
                (*after, *fixed) = (found, true);
            }
            Ok(())
        },
        show: |bats| match bats.0.delivery {
            Delivery::Deadline { after, fixed: true, .. } => shown(&after),
            Delivery::Deadline { after, .. } => format!("{after} or more"),
            Delivery::Reliable => "none".to_owned(),
        },
    },
    Opt {
        key: "rounds",
        about: "How often a hop repairs a batch, 0 to 100. Unless it is set, as often as there is time before the deadline.",
        form: Form::Count,
        set: |bats, node, key| {
            let found = whole(node, key, 0..=100)? as u8;
            if let Delivery::Deadline { rounds, .. } = &mut bats.0.delivery {
                *rounds = found;
            }
            Ok(())
        },
        show: |bats| match bats.0.delivery {
            Delivery::Deadline { rounds: Delivery::UNTIL_DEADLINE, .. } => "until the deadline".to_owned(),
            Delivery::Deadline { rounds, .. } => shown(&rounds),
            Delivery::Reliable => "no bound".to_owned(),
        },
    },
]);

/// The defaults of `btp`.
fn deadline() -> Config {
    Config { delivery: Delivery::DEADLINE, ..Config::default() }
}

/// RFC 9426, section 4.2.
fn batch_size(node: &Node) -> Result<BatchSize, Diagnostic> {
    let found = whole(node, "batch-size", 1..=1000)?;
    let known = BatchSize::ALL.into_iter().find(|size| size.symbols() as u64 == found);
    known.ok_or_else(|| node.error(format!("`batch-size`: expected 4, 8, 16 or 32, found `{found}`")))
}

impl Bats {
    pub(super) const fn new(config: Config) -> Self {
        Self(config, false)
    }

    /// The same with the size of a batch that goes with it, unless somebody has chosen one: packets whose repairs are
    /// sent ahead of need share them, and larger batches need fewer.
    fn sized(mut self) -> Self {
        let Config { delivery, feedback, tolerance, .. } = self.0;
        let planned = matches!(delivery, Delivery::Deadline { fixed: true, .. }) || tolerance.is_some();
        if planned && feedback == Reports::Ranks && !self.1 {
            self.0.batch = BatchSize::M32;
        }
        self
    }

    /// The settings of a node of a flow.
    pub(super) fn on(&self, flow: &FlowPlan<'_>, depth: usize) -> Config {
        let (datagram, split) = (flow.room(depth), flow.spec.paths > 1);
        // Live, too, the nodes of a scenario are processes of one machine.
        Config { datagram, split, slack: flow.slack, one_clock: true, ..self.0.clone() }
    }

    /// The machine at an end of a flow.
    pub(super) fn edge(&self, end: &End<'_, '_>) -> Box<dyn Machine> {
        let ends = (end.ends.local, end.ends.remote);
        let unit_credit = end.depth == 0 && end.flow().is_granted();
        let config = Config { unit_credit, ..self.on(end.flow(), end.depth) };
        Box::new(BatsMachine::edge(config, ends.0, ends, &end.neighbours(), end.random()))
    }

    /// Puts the relays on their nodes.
    pub(super) fn put_relays(&self, nodes: &mut FlowNodes<'_>, depth: usize) -> Result<(), BuildError> {
        let plan = nodes.flow;
        if !plan.others_take_part(depth) {
            return Ok(());
        }
        for participant in nodes.relays() {
            let (node, address) = (participant.node, participant.address);
            let (left, right) = plan.participants.neighbours(participant);
            let random = plan.random(node, depth).fork();
            let relay = BatsMachine::relay(self.on(plan, depth), address, &left, &right, random);
            let below = nodes.put_below_relay(depth, node, address)?;
            nodes.attach(nodes.node_name(node), node, Box::new(relay), below);
        }
        Ok(())
    }

    /// The settings with a window and a queue that fit a share of memory.
    fn within(&self, share: MemoryShare, datagram: u16) -> Config {
        let over = &self.0;
        let batch = over.batch.symbols() as u64 * Buffer::footprint(datagram.into()) as u64;
        let window = (share.batches / batch).max(MIN_WINDOW).min(u64::from(over.window)) as u16;
        Config { window, queue: share.queue.min(over.queue), ..over.clone() }
    }

    /// The defaults of the transport with these settings' delivery and feedback.
    pub(super) fn usual(&self) -> Self {
        let usual = match self.0.delivery {
            Delivery::Reliable => Config::default(),
            Delivery::Deadline { .. } => deadline(),
        };
        let (delivery, feedback) = (usual.delivery, usual.feedback);
        // That there is no rank feedback is shown, and not what follows from it.
        let strict = || Config { delivery, feedback, ..Config::strict() };
        Self::new(if self.0.feedback == Reports::None { strict() } else { usual })
    }
}

impl Transport for Bats {
    fn overhead(&self, _: u64) -> u64 {
        self.0.overhead() as u64
    }

    fn repair_overhead(&self) -> u64 {
        self.0.batch.symbols() as u64
    }

    fn fitted(&self, above: Above) -> Option<Arc<dyn Transport>> {
        let Delivery::Deadline { fixed: false, rounds, .. } = self.0.delivery else { return None };
        let config = match above {
            Above::Deadline(deadline) => {
                let after = deadline.clamp(*DEADLINES.start(), *DEADLINES.end());
                Config { delivery: Delivery::Deadline { after, fixed: true, rounds }, ..self.0.clone() }
            }
            Above::Tunnel => {
                let tolerance = Some(TUNNEL_TOLERANCE);
                Config { tolerance, unit_delay: TUNNEL_QUEUE, ..self.0.clone() }
            }
        };
        Some(Arc::new(Self(config, self.1).sized()))
    }

    fn put_on_end(&self, end: &mut End<'_, '_>) -> Result<Option<LowerPort>, BuildError> {
        let edge = self.edge(end);
        end.attach("bats", edge).map(Some)
    }

    fn put_between(&self, nodes: &mut FlowNodes<'_>, depth: usize) -> Result<(), BuildError> {
        self.put_relays(nodes, depth)
    }

    fn grants_datagrams(&self) -> bool {
        true
    }

    fn between_sites(&self) -> Option<&dyn SiteTransport> {
        Some(self)
    }
}

impl SiteTransport for Bats {
    fn overhead(&self) -> u16 {
        self.0.overhead() as u16
    }

    fn edge(&self, site: SiteEdge<'_>) -> Box<dyn Machine> {
        let SiteEdge { datagram, slack, memory, streams, ends, neighbours, random } = site;
        let streams = streams.unwrap_or(self.0.streams);
        let split = neighbours.len() > 1;
        let config = Config { datagram, split, slack, streams, ..self.within(memory, datagram) };
        Box::new(BatsMachine::edge(config, ends.0, ends, neighbours, random))
    }

    fn relay(&self, site: SiteRelay) -> Box<dyn Machine> {
        let SiteRelay { datagram, slack, memory, address, between: [one, other], random } = site;
        let config = Config { datagram, slack, ..self.within(memory, datagram) };
        Box::new(BatsMachine::relay(config, address, &[one], &[other], random))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_memory_bounds_window_and_queue() {
        let bats = Bats::new(Config::default());
        let share = MemoryShare { batches: 100 * 16 * Buffer::footprint(1472) as u64, queue: 1000 };
        let fitted = bats.within(share, 1472);
        assert_eq!((fitted.window, fitted.queue), (100, 1000));
        let tiny = bats.within(MemoryShare { batches: 0, queue: u64::MAX }, 1472);
        assert_eq!((u64::from(tiny.window), tiny.queue), (MIN_WINDOW, bats.0.queue));
        let ample = bats.within(MemoryShare { batches: u64::MAX, queue: 0 }, 1472);
        assert_eq!(ample.window, bats.0.window);
    }

    #[test]
    fn a_video_gives_its_deadline_and_a_tunnel_tolerates_a_delay_unless_somebody_has_chosen_otherwise() {
        let fitted = |bats: Bats, above| {
            let fitted = bats.fitted(above)?;
            let settings: &dyn std::any::Any = &*fitted;
            settings.downcast_ref::<Bats>().map(|bats| bats.0.clone())
        };
        let video = Above::Deadline(Duration::from_millis(150));
        let config = fitted(Bats::new(deadline()), video).unwrap();
        let Delivery::Deadline { after, fixed, .. } = config.delivery else { panic!("{config:?}") };
        assert_eq!((after, fixed, config.batch), (Duration::from_millis(150), true, BatchSize::M32));
        assert_eq!(fitted(Bats(deadline(), true), video).unwrap().batch, BatchSize::M16, "it was chosen");
        let config = fitted(Bats::new(deadline()), Above::Tunnel).unwrap();
        assert_eq!((config.tolerance, config.batch), (Some(TUNNEL_TOLERANCE), BatchSize::M32));
        assert_eq!(fitted(Bats::new(Config::default()), video), None, "all of it is delivered");
        let mut chosen = deadline();
        if let Delivery::Deadline { fixed, .. } = &mut chosen.delivery {
            *fixed = true;
        }
        assert_eq!(fitted(Bats::new(chosen), video), None, "a deadline was chosen");
    }
}
