//! The cost of one relay on real sockets: processor time for each gigabit that it passes on, sockets included.
//!
//! An edge, a relay and an edge talk over UDP on the loopback interface, each on a thread of its own, and the first
//! edge loses some of its datagrams on purpose, so that the relay recodes. Beside it stands a forwarder of the same
//! runtime that passes every datagram on as it is: what sockets cost by themselves. Only the time of the relay's thread
//! counts.
//!
//! Edges send without congestion control: what is offered is what the hop gets, however busy the machine is. At a low
//! rate each datagram costs calls of its own; at full rate many share them, and that is what a core can carry.

use std::cell::Cell;
use std::collections::VecDeque;
use std::error::Error;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::mpsc::channel;
use std::thread;

use hopcast_coded::bats::{Config, Node};
use hopcast_core::plug::Plug;
use hopcast_core::{
    Datagram, Duration, Instant, Item, Machine, Port, Reactive, Seed, Stream, StreamId, StreamItem,
    StreamReader, StreamWriter, earliest,
};
use hopcast_node::Clock;
use hopcast_node::runtime::{Runtime, Stop};
use rustix::time::{ClockId, clock_gettime};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SECONDS: u64 = 4;
const WARM: Duration = Duration::from_secs(2);
/// Minimum length of the application's writes, in bytes.
const UNIT: usize = 1400;
/// Receive window of the application at the sink, in bytes.
const WINDOW: u64 = 8 << 20;

/// Any error, which ends the measurement; it can come from another thread.
type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    println!(
        "{:<18} {:<16} {:>8} {:>8} {:>12} {:>14} {:>15} {:>13} {:>10}",
        "offered",
        "in the middle",
        "lost",
        "Gbit/s",
        "its core",
        "CPU s / Gbit",
        "Gbit/s a core",
        "calls / Mbit",
        "recoded"
    );
    for offered in [Some(100.0), Some(500.0), None] {
        for percent in [0.0, 5.0, 10.0] {
            for relay in [false, true] {
                let seen = run(relay, percent / 100.0, offered.map(|rate| rate / 8000.0))?;
                println!(
                    "{:<18} {:<16} {:>6} % {:>8.3} {:>10.0} % {:>14.3} {:>15.2} {:>13.1} {:>10}",
                    offered.map_or_else(|| "as much as goes".to_owned(), |rate| format!("{rate} Mbit/s")),
                    if relay { "relay" } else { "plain forwarder" },
                    percent,
                    seen.gbit / SECONDS as f64,
                    100.0 * seen.cpu / SECONDS as f64,
                    seen.cpu / seen.gbit,
                    seen.gbit / seen.cpu,
                    seen.syscalls as f64 / seen.gbit / 1000.0,
                    seen.recoded,
                );
            }
        }
    }
    Ok(())
}

/// Measurements in the window: the application's goodput, and the cost of the node in the middle.
#[derive(Default)]
struct Seen {
    gbit: f64,
    cpu: f64,
    syscalls: u64,
    recoded: u64,
}

/// `offered` is in bytes a nanosecond.
fn run(relay: bool, loss: f64, offered: Option<f64>) -> Result<Seen, Failure> {
    let seed = Seed::new(1, 0);
    let at = |place: u16| SocketAddr::from(([127, 0, 0, 1], 47_000 + place));
    let (ends, config) = ((at(10), at(11)), Config { congestion_control: false, ..Config::default() });
    let clock = Clock::starting_now();
    let stop = Stop::new()?;
    let (warm, end) = (Instant::ZERO + WARM, Instant::ZERO + WARM + Duration::from_secs(SECONDS));
    let (delivered, deliveries) = channel();
    thread::scope(|scope| {
        for source in [true, false] {
            let (stop, config, delivered) = (stop.clone(), config.clone(), delivered.clone());
            scope.spawn(move || {
                let (own, name) = if source { (0, "source") } else { (2, "sink") };
                let node = Node::edge(config, at(own), ends, &[at(1)], seed.stream(&[name], 0));
                let got = Rc::new(Cell::new(0));
                let random = seed.stream(&["loss"], 0);
                let loss = if source { loss } else { 0.0 };
                let application = Application::new(node, source, (loss, random), offered, &got);
                let mut runtime = Runtime::open(Box::new(application), &[Plug::Udp(at(own))], clock)?;
                runtime.run(Some(warm), &stop)?;
                let before = got.get();
                runtime.run(Some(end), &stop)?;
                let _ = delivered.send(got.get() - before);
                // The others may not have come to the end.
                runtime.run(Some(end + Duration::from_millis(100)), &stop)?;
                Ok::<_, Failure>(())
            });
        }
        let middle = scope.spawn(move || {
            let machine: Box<dyn Machine> = if relay {
                Box::new(Node::relay(config, at(1), &[at(0)], &[at(2)], seed.stream(&["relay"], 0)))
            } else {
                Box::new(Forwarder { ends: [at(0), at(2)], out: None })
            };
            let mut runtime = Runtime::open(machine, &[Plug::Udp(at(1))], clock)?;
            runtime.run(Some(warm), &stop)?;
            let before = (cpu(), figure(&runtime, "syscalls"), recoded(runtime.machine()));
            runtime.run(Some(end), &stop)?;
            let after = (cpu(), figure(&runtime, "syscalls"), recoded(runtime.machine()));
            if std::env::var_os("RELAY_FIGURES").is_some() {
                runtime.counters(&mut |name, figure| eprintln!("  {name} {figure}"));
            }
            runtime.run(Some(end + Duration::from_millis(100)), &stop)?;
            Ok::<_, Failure>((after.0 - before.0, after.1 - before.1, after.2 - before.2))
        });
        let (cpu, syscalls, recoded) = middle.join().map_err(|_| "the relay broke down")??;
        drop(delivered);
        let bytes: u64 = deliveries.iter().sum();
        Ok(Seen { gbit: bytes as f64 * 8e-9, cpu, syscalls, recoded })
    })
}

/// Seconds of processor time of this thread.
fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn figure(runtime: &Runtime, wanted: &str) -> u64 {
    let mut found = 0;
    runtime.counters(&mut |name, figure| found += if name == wanted { figure } else { 0 });
    found
}

fn recoded(machine: &dyn Machine) -> u64 {
    let mut found = 0;
    machine.counters(&mut |name, figure| found += if name == "packets_recoded" { figure } else { 0 });
    found
}

/// Passes on what comes from one end to the other.
struct Forwarder {
    ends: [SocketAddr; 2],
    out: Option<Datagram>,
}

impl Reactive for Forwarder {
    fn react(&mut self, _now: Instant, _port: Port, item: Item) {
        let Item::Datagram(Datagram { local, remote, payload, .. }) = item else { return };
        let to = if remote == self.ends[0] { self.ends[1] } else { self.ends[0] };
        self.out = Some(Datagram::new(local, to, payload));
    }

    fn next(&mut self) -> Option<(Port, Item)> {
        self.out.take().map(|datagram| (Port::Below(0), Item::Datagram(datagram)))
    }
}

/// An edge with what stands above it: one stream, filled at one end and emptied at the other. Of what it sends, some is
/// lost.
struct Application {
    edge: Node,
    opening: Option<Item>,
    /// Items for the edge.
    line: VecDeque<StreamItem>,
    writer: StreamWriter,
    reader: StreamReader,
    got: Rc<Cell<u64>>,
    piece: Vec<u8>,
    /// Bytes that the application offers in a nanosecond (`None`: no limit), and has written.
    offered: Option<f64>,
    written: u64,
    loss: f64,
    random: Stream,
}

const STREAM: StreamId = StreamId(0);

impl Application {
    fn new(
        edge: Node,
        source: bool,
        (loss, random): (f64, Stream),
        offered: Option<f64>,
        got: &Rc<Cell<u64>>,
    ) -> Self {
        let any = SocketAddr::from(([0, 0, 0, 0], 0));
        let open = Item::Stream(STREAM, StreamItem::Open { local: any, remote: any });
        Self {
            edge,
            opening: source.then_some(open),
            line: VecDeque::new(),
            writer: StreamWriter::default(),
            reader: StreamReader::new(WINDOW),
            got: Rc::clone(got),
            piece: vec![7; 64 << 10],
            offered: offered.filter(|_| source),
            written: 0,
            loss,
            random,
        }
    }

    fn take(&mut self, item: StreamItem) {
        match item {
            StreamItem::Open { .. } => self.line.push_back(self.reader.first_grant()),
            StreamItem::Data(bytes) => {
                self.got.set(self.got.get() + bytes.len() as u64);
                self.reader.received(bytes.len());
                self.line.extend(self.reader.consumed(bytes.len()));
            }
            StreamItem::Credit(credit) => {
                self.writer.credit(credit);
            }
            _ => {}
        }
    }

    /// Writes what there is, as far as the edge takes it.
    fn write(&mut self, now: Instant) {
        loop {
            let has = self.offered.map_or(u64::MAX, |rate| (now.as_nanos() as f64 * rate) as u64);
            let has = has.saturating_sub(self.written).min(self.piece.len() as u64) as usize;
            if has < UNIT {
                return;
            }
            let Some((item, len)) = self.writer.write(&self.piece[..has]) else {
                // Without room, a limited load is lost here: it must not build up for later.
                self.written += if self.offered.is_some() { has as u64 } else { 0 };
                return;
            };
            self.written += len as u64;
            self.edge.handle(now, Port::Above(0), Item::Stream(STREAM, item));
        }
    }
}

impl Machine for Application {
    fn handle(&mut self, now: Instant, port: Port, item: Item) {
        self.edge.handle(now, port, item);
    }

    fn wake(&mut self, now: Instant) {
        if let Some(open) = self.opening.take() {
            self.edge.handle(now, Port::Above(0), open);
        }
        self.edge.wake(now);
    }

    fn poll(&mut self, now: Instant) -> Option<(Port, Item)> {
        loop {
            self.write(now);
            match self.edge.poll(now) {
                Some((Port::Below(_), _)) if self.random.chance(self.loss) => {}
                Some((Port::Above(_), Item::Stream(id, item))) => {
                    self.take(item);
                    while let Some(item) = self.line.pop_front() {
                        self.edge.handle(now, Port::Above(0), Item::Stream(id, item));
                    }
                }
                other => return other,
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        if self.opening.is_some() {
            return Some(Instant::ZERO);
        }
        let next = self
            .offered
            .map(|rate| Instant::from_nanos(((self.written + UNIT as u64) as f64 / rate) as u64 + 1));
        earliest(self.edge.deadline(), next)
    }
}
