//! Networks on the kernel for tests, and datagrams that bear the time of their sending.

#![allow(dead_code, clippy::unwrap_used)] // each test needs some of it

use std::io::Write;
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration as Span;

use hopcast_core::{Duration, Instant, Seed};
use hopcast_link::{Config, Direction, Link, PointToPoint};
use hopcast_live::capture::{CaptureWriter, Outputs};
use hopcast_live::emulator::{Emulator, EmulatorReport, Options, Readings};
use hopcast_live::lab::Lab;
use hopcast_live::layout::{Captured, LinkChange, NetworkLayout, Scheduled};
use hopcast_node::Clock;
use hopcast_node::testing::{Requirement, require};
use hopcast_twin::capture::LinkType;
use rustix::event::{PollFd, PollFlags, poll};

/// Whether networks can be set up here; says loudly if not.
pub(crate) fn networks_can_be_set_up() -> bool {
    require(&[
        Requirement::Root,
        Requirement::Tun,
        Requirement::Program("ip"),
        Requirement::Program("setpriv"),
    ])
}

/// Says loudly what is not tested, and why.
pub(crate) fn skipped(what: &str) {
    // Past what tests print, which is only shown where they fail.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {what}");
}

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn at(millis: u64) -> Instant {
    Instant::ZERO + ms(millis)
}

/// A link between two nodes that does so to what goes forward, and nothing to what comes back.
pub(crate) fn one_way(direction: &Direction) -> Box<dyn Link + Send> {
    let config = Config { forward: direction.clone(), ..Config::default() };
    let stream = |name| Seed::new(7, 0).stream(&["test", name], 0);
    Box::new(PointToPoint::new(config, [stream("forward"), stream("backward")]))
}

/// A network with its links in motion.
pub(crate) struct Running {
    pub(crate) lab: Lab,
    pub(crate) emulator: Emulator,
    pub(crate) clock: Clock,
}

impl Running {
    pub(crate) fn start(
        mut layout: NetworkLayout,
        changes: Vec<Scheduled<LinkChange>>,
        options: Options,
    ) -> Self {
        let mut lab = Lab::set_up(&layout, &Lab::fresh_id()).unwrap();
        let clock = Clock::starting_now();
        let links = std::mem::take(&mut layout.links);
        let emulator = Emulator::start(&mut lab, links, changes, clock, options).unwrap();
        Self { lab, emulator, clock }
    }

    /// Two nodes and the link between them, measured from the start to the end.
    pub(crate) fn pair(direction: &Direction) -> Self {
        Self::start(NetworkLayout::chain([one_way(direction)], 1500), Vec::new(), whole_run())
    }

    pub(crate) fn finish(self) -> EmulatorReport {
        self.emulator.finish(&self.lab).unwrap()
    }

    /// Sends `count` datagrams of `size` bytes from the first node to the second, one every `pace`, and gives those
    /// that have arrived once all are sent and nothing more comes for half a second.
    pub(crate) fn send(&self, count: u64, size: usize, pace: Duration) -> Vec<Arrival> {
        let clock = self.clock;
        let receiver = self.lab.enter(1, || UdpSocket::bind("10.0.0.2:9000").unwrap()).unwrap();
        let sender = self.lab.enter(0, || UdpSocket::bind("10.0.0.1:9000").unwrap()).unwrap();
        // Wherever their owner is, sockets stay in the network that they were made in.
        receiver.set_read_timeout(Some(Span::from_millis(500))).unwrap();
        let sent = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let arrivals = scope.spawn(|| receive(&receiver, clock, &sent));
            let start = clock.now();
            let mut datagram = vec![0; size.max(16)];
            for number in 0..count {
                pause(clock.until(start + pace * number));
                datagram[..8].copy_from_slice(&number.to_be_bytes());
                datagram[8..16].copy_from_slice(&clock.now().as_nanos().to_be_bytes());
                sender.send_to(&datagram, "10.0.0.2:9000").unwrap();
            }
            sent.store(true, Ordering::Relaxed);
            arrivals.join().unwrap()
        })
    }
}

/// Two nodes and the link between them, of which both ends are captured.
pub(crate) fn captured(direction: &Direction, into: impl Write + Send + 'static) -> (Running, CaptureWriter) {
    let mut layout = NetworkLayout::chain([one_way(direction)], 1500);
    layout.links[0].captured = vec![Some(0), Some(1)];
    let interface = |node: usize| {
        let (name, carries) = ("eth0".to_owned(), LinkType::Frames);
        let captured = Captured { node, name, carries, by_link: true, in_capture: true };
        (format!("n{node}:eth0"), captured)
    };
    let outputs = Outputs { capture: Some(Box::new(into)), log: None };
    let tape = CaptureWriter::start(outputs, (0..2).map(interface).collect()).unwrap();
    let options = Options { capture: Some(tape.recorder()), ..whole_run() };
    (Running::start(layout, Vec::new(), options), tape)
}

/// A datagram that has arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) number: u64,
    pub(crate) sent: Instant,
    pub(crate) received: Instant,
}

fn receive(socket: &UdpSocket, clock: Clock, all_sent: &AtomicBool) -> Vec<Arrival> {
    let mut arrivals = Vec::new();
    let mut buffer = [0; 2048];
    loop {
        let last = all_sent.load(Ordering::Relaxed);
        if socket.recv(&mut buffer).is_ok() {
            let received = clock.now();
            let word = |from: usize| u64::from_be_bytes(buffer[from..from + 8].try_into().unwrap());
            arrivals.push(Arrival { number: word(0), sent: Instant::from_nanos(word(8)), received });
        } else if last {
            return arrivals;
        }
    }
}

/// Waits. Tests of live networks are the one place where that is meant.
pub(crate) fn pause(span: Duration) {
    let nanos = span.as_nanos();
    if nanos > 0 {
        let timeout = rustix::time::Timespec {
            tv_sec: (nanos / 1_000_000_000) as i64,
            tv_nsec: (nanos % 1_000_000_000) as i64,
        };
        let never = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).unwrap();
        let _ = poll(&mut [PollFd::new(&never.as_fd(), PollFlags::IN)], Some(&timeout));
    }
}

/// All figures are of the whole run.
pub(crate) fn whole_run() -> Options {
    let readings = Readings { to: at(3_600_000), ..Readings::default() };
    Options { readings, ..Options::default() }
}

/// A file in memory that can be read while something else writes it.
#[derive(Clone, Default)]
pub(crate) struct Shared(pub(crate) std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

impl std::io::Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
