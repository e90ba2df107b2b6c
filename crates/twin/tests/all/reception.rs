//! The reception of frames at a machine below a host, and the status of those that it sent, over a whole run; and the
//! quality of the links, which agrees with their deliveries.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use hopcast_config::Diagnostic;
use hopcast_config::yaml::{Node, Source, parse};
use hopcast_core::{
    Duration, FrameOutcome, Instant, Item, Machine, Outbox, Port, Rate, Reactive, Reception, Seed,
};
use hopcast_link::Quality;
use hopcast_runner::load_text;
use hopcast_stack::network::{NetworkPlan, ServiceSpec};
use hopcast_stack::service::{
    AttachError, HostConfig, LowerInterface, Service, ServiceLayer, ServiceRoutes, ServiceRow, UpperInterface,
};
use hopcast_stack::table::{Options, Worlds};
use hopcast_twin::scenario::Overrides;
use hopcast_twin::{Monitor, World};

/// The receptions of frames, those to one station and those to several.
type Received = [Vec<(Instant, Option<Reception>)>; 2];

/// The frames of the machine at one node.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// Frames that it sent: to one station, and to several.
    sent: [u64; 2],
    /// The frames of each sender.
    received: BTreeMap<[u8; 6], Received>,
    acknowledged: u64,
    unacknowledged: u64,
    unsent: u64,
    /// Transmissions that all of these took.
    transmissions: u64,
}

impl Seen {
    fn statuses(&self) -> u64 {
        self.acknowledged + self.unacknowledged + self.unsent
    }
}

/// The notes of each machine, by the node's address on its link.
type All = Arc<Mutex<BTreeMap<[u8; 6], Seen>>>;

/// A service that passes everything on, and takes notes.
#[derive(Clone, Debug)]
struct Listening(All);

static ROW: ServiceRow = ServiceRow {
    name: "listen",
    about: "takes notes of the frames of an interface",
    worlds: Worlds::Virtual,
    on_host: false,
    for_sites: false,
    options: Vec::new,
    read: |row, node| layer(row, node, &All::default()),
};

fn layer(row: &'static ServiceRow, node: &Node, all: &All) -> Result<ServiceLayer, Diagnostic> {
    Options(&[]).service(row, node, Listening(all.clone()))
}

impl Service for Listening {
    fn makes(&self, name: &str, _: &[LowerInterface]) -> Result<Vec<UpperInterface>, AttachError> {
        Ok(vec![UpperInterface { name: name.to_owned(), over: 0, tags: Vec::new(), prefixes: Vec::new() }])
    }

    fn machine(
        &self,
        host: &HostConfig,
        _: &[LowerInterface],
        _: &Rc<dyn ServiceRoutes>,
    ) -> Box<dyn Machine> {
        let own = host.interfaces[0].mac;
        Box::new(Listener { own, all: self.0.clone(), asked: false, out: Outbox::new() })
    }
}

struct Listener {
    own: [u8; 6],
    all: All,
    asked: bool,
    out: Outbox,
}

impl Reactive for Listener {
    fn react(&mut self, now: Instant, port: Port, item: Item) {
        let mut all = self.all.lock().unwrap();
        let seen = all.entry(self.own).or_default();
        if !std::mem::replace(&mut self.asked, true) {
            self.out.down(Item::ReportFrameStatus);
        }
        match (port, item) {
            (Port::Above(_), Item::Frame(frame)) => {
                seen.sent[usize::from(frame.bytes[0] & 1)] += 1;
                self.out.down(Item::Frame(frame));
            }
            (Port::Below(_), Item::Frame(frame)) => {
                let source: [u8; 6] = frame.bytes[6..12].try_into().unwrap();
                let kind = usize::from(frame.bytes[0] & 1);
                seen.received.entry(source).or_default()[kind].push((now, frame.reception));
                self.out.up(Item::Frame(frame));
            }
            (Port::Below(_), Item::FrameStatus(status)) => {
                assert_eq!(status.bytes[6..12], self.own, "of a frame of its own");
                seen.transmissions += u64::from(status.transmissions);
                *match status.outcome {
                    FrameOutcome::Acknowledged => &mut seen.acknowledged,
                    FrameOutcome::Unacknowledged => &mut seen.unacknowledged,
                    FrameOutcome::Unsent => &mut seen.unsent,
                } += 1;
            }
            (_, item) => panic!("{item:?}"),
        }
    }

    fn next(&mut self) -> Option<(Port, Item)> {
        self.out.pop()
    }
}

/// A run of a file with one link, to its end.
struct Run {
    all: BTreeMap<[u8; 6], Seen>,
    /// By the numbers of two stations: frames sent, delivered, lost, and dropped by the queue of the one.
    counters: BTreeMap<(usize, usize), [u64; 4]>,
    qualities: BTreeMap<(usize, usize), Quality>,
}

impl Run {
    fn of(text: &str) -> Self {
        let plan = load_text(Path::new("test.yaml"), text, &Overrides::default())
            .unwrap_or_else(|error| panic!("{error}"));
        let mut scenario = (*plan.cases[0].scenario).clone();
        let all = All::default();
        let source = Source { name: "test".to_owned(), dir: "".into(), lines: false };
        let layer = layer(&ROW, &parse("{}", &Arc::new(source)).unwrap(), &all).unwrap();
        scenario.services.push(ServiceSpec {
            name: "listen".to_owned(),
            layer,
            on: (0..scenario.nodes.len()).collect(),
            interfaces: vec!["eth0".to_owned()],
            changes: Vec::new(),
        });
        let scenario = Arc::new(scenario);
        let mut world = World::new(scenario.clone(), 0, None).unwrap();
        // What is under way when the flows stop arrives.
        assert!(world.run_until(Instant::ZERO + scenario.duration, &Monitor::default()));
        let number = |name: &str| scenario.nodes.iter().position(|node| node.name == name).unwrap();
        let counters = world.snapshot().links.into_iter().map(|link| {
            let figures =
                [link.sent_packets, link.delivered_packets, link.lost_packets, link.queue_dropped_packets];
            ((number(&link.from), number(&link.to)), figures)
        });
        let counters = counters.collect();
        let network = scenario.network();
        let mut model = NetworkPlan::of(network).model(network, 0, false, Seed::new(scenario.seed, 0));
        let n = scenario.nodes.len();
        let pairs = (0..n * n).map(|pair| (pair / n, pair % n));
        let qualities = pairs
            .filter_map(|(from, to)| Some(((from, to), model.quality(Instant::ZERO, from, to)?)))
            .collect();
        drop(world);
        let all = Arc::try_unwrap(all).unwrap_or_else(|all| Mutex::new(all.lock().unwrap().clone()));
        Self { all: all.into_inner().unwrap(), counters, qualities }
    }

    fn seen(&self, station: usize) -> Seen {
        self.all.get(&NetworkPlan::mac(0, station)).cloned().unwrap_or_default()
    }

    /// Receptions at one station of the frames of another: those to one station, and those to several.
    fn heard(&self, from: usize, to: usize) -> Received {
        self.seen(to).received.get(&NetworkPlan::mac(0, from)).cloned().unwrap_or_default()
    }
}

/// Datagrams from a, and also from c if `contended`, to b; and from a to all.
fn file(link: &str, contended: bool) -> String {
    let other = "  - { name: other, from: c, to: b, over: udp, app: { cbr: { rate: 2 Mbit/s, size: 1000 B, stop: 28 s } } }\n";
    format!(
        "duration: 30 s
topology:
  nodes: [a, b, c]
  links: [{{ name: air, {link} }}]
groups: [{{ name: all, members: [b, c], delivery: broadcast }}]
flows:
  - {{ name: one, from: a, to: b, over: udp, app: {{ cbr: {{ rate: 2 Mbit/s, size: 1000 B, stop: 28 s }} }} }}
  - {{ name: several, from: a, to: all, over: udp, app: {{ cbr: {{ rate: 1 Mbit/s, size: 1000 B, stop: 28 s }} }} }}
{}",
        if contended { other } else { "" }
    )
}

const CSMA: &str = "medium: [a, b, c], rate: 12 Mbit/s, mac: { csma: { retries: 2, channel-loss: 40 % } }, \
                    pairs: [{ from: a, to: b, loss: 10 % }]";

fn dcf() -> String {
    CSMA.replace("retries: 2,", "retries: 2, rts: 500 B,") + ", hears: [[a, b], [b, c]]"
}

const SWITCH: &str =
    "switch: [a, b, c], rate: 12 Mbit/s, loss: 20 %, pairs: [{ from: a, to: b, loss: 10 % }]";

/// Fails unless a share of `n` trials is within five standard errors of what it should be.
#[track_caller]
fn binomial(found: u64, n: u64, expected: f64) {
    let (share, error) = (found as f64 / n as f64, (expected * (1.0 - expected) / n as f64).sqrt());
    println!("{found} of {n}: {share:.4} for {expected:.4} ± {:.4}", 5.0 * error);
    assert!((share - expected).abs() <= 5.0 * error, "{share} of {n} is not {expected}");
}

#[test]
fn a_sender_learns_of_each_frame_to_one_station_what_the_counters_of_the_medium_say() {
    for link in [CSMA.to_owned(), dcf()] {
        let link = link.replace("pairs: [{ from: a, to: b, loss: 10 % }]", "queue: 10 packets");
        let run = Run::of(&file(&link, true).replace("rate: 2 Mbit/s", "rate: 6 Mbit/s"));
        for from in [0, 2] {
            let seen = run.seen(from);
            let [sent, delivered, lost, dropped] = run.counters[&(from, 1)];
            println!("{from}: {:?} sent, {:?}; {:?}", seen.sent, seen.statuses(), run.counters[&(from, 1)]);
            // Frames to all count for each pair too, and have no status.
            let [one_heard, all_heard] = run.heard(from, 1).map(|heard| heard.len() as u64);
            let all_sent = seen.sent[1] - (dropped - seen.unsent);
            assert_eq!(seen.statuses(), seen.sent[0], "{link}");
            assert_eq!(seen.acknowledged + seen.unacknowledged, sent - all_sent, "{link}");
            assert_eq!(seen.acknowledged, delivered - all_heard, "{link}");
            assert_eq!(seen.unacknowledged, lost - (all_sent - all_heard), "{link}");
            assert_eq!(seen.acknowledged, one_heard, "{link}");
            assert!(seen.acknowledged > 2_000 && seen.unacknowledged > 100, "{seen:?}");
            assert!(seen.unsent > 1_000 && (from == 0 || seen.unsent == dropped), "{seen:?}");
            let tried = seen.acknowledged + seen.unacknowledged;
            assert!(seen.transmissions > tried + tried / 4 && seen.transmissions <= 3 * tried);
        }
        // Who sends nothing learns nothing.
        assert_eq!(run.seen(1).statuses(), 0);
    }
}

#[test]
fn the_quality_between_two_stations_is_what_the_link_delivers() {
    for link in [CSMA.to_owned(), dcf(), SWITCH.to_owned()] {
        let run = Run::of(&file(&link, false));
        let seen = run.seen(0);
        assert!(seen.sent.iter().all(|frames| *frames > 3_000), "{link}: {:?}", seen.sent);
        let to_b = run.qualities[&(0, 1)];
        assert_eq!((to_b.rate, to_b.signal), (Some(Rate::from_mbit(12)), None));
        let [to_one, to_all] = run.heard(0, 1).map(|heard| heard.len() as u64);
        binomial(to_one, seen.sent[0], to_b.delivery_with_retries.get());
        binomial(to_all, seen.sent[1], to_b.delivery.get());
        match run.qualities.get(&(0, 2)) {
            Some(to_c) => binomial(run.heard(0, 2)[1].len() as u64, seen.sent[1], to_c.delivery.get()),
            None => assert!(link.contains("hears") && run.heard(0, 2)[1].is_empty(), "{link}"),
        }
    }
}

#[test]
fn a_frame_bears_the_rate_of_its_medium_when_it_was_sent_and_none_of_a_switch() {
    let slower = "events: [{ at: 10 s, links: air, rate: 6 Mbit/s }]\n";
    for link in [CSMA.to_owned(), dcf(), SWITCH.to_owned()] {
        let run = Run::of(&(file(&link, false) + slower));
        let heard = run.heard(0, 1).concat();
        assert!(heard.len() > 5_000);
        for (at, reception) in heard {
            // A frame that is on the air meanwhile was begun at the old rate.
            let change = Instant::ZERO + Duration::from_secs(10);
            let known = |mbit| Some(Reception { signal: None, rate: Some(Rate::from_mbit(mbit)) });
            if link == SWITCH {
                assert_eq!(reception, None);
            } else if at <= change {
                assert_eq!(reception, known(12), "{at:?}");
            } else if at > change + Duration::from_millis(3) {
                assert_eq!(reception, known(6), "{at:?}");
            }
        }
    }
    // Where nobody acknowledges, nobody learns anything.
    assert_eq!(Run::of(&file(SWITCH, false)).seen(0).statuses(), 0);
}
