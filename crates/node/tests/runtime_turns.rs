//! The order of a machine's turns, the end of a runtime, and a flood of datagrams.

#![allow(clippy::unwrap_used)] // in what the tests share

mod common;

use std::cell::RefCell;
use std::net::UdpSocket;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use common::{Bench, Traffic, address, figure};
use hopcast_coded::bats::{Config, Node};
use hopcast_core::plug::Plug;
use hopcast_core::{Duration, Instant, Item, Machine, Port, Seed};
use hopcast_node::Clock;
use hopcast_node::runtime::{Runtime, Stop};

/// Is due at certain times, and notes when it is woken.
struct Alarm {
    times: Vec<Instant>,
    woken: Rc<RefCell<Vec<(Instant, Instant)>>>,
}

impl Machine for Alarm {
    fn handle(&mut self, _now: Instant, _port: Port, _item: Item) {}

    fn wake(&mut self, now: Instant) {
        while let Some(at) = self.times.pop_if(|at| *at <= now) {
            self.woken.borrow_mut().push((at, now));
        }
    }

    fn poll(&mut self, _now: Instant) -> Option<(Port, Item)> {
        None
    }

    fn deadline(&self) -> Option<Instant> {
        self.times.last().copied()
    }
}

fn millis(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

#[test]
fn a_machine_is_woken_when_it_is_due_and_never_before() {
    let woken = Rc::default();
    let mut times =
        vec![Instant::ZERO, millis(1), millis(5), millis(5), millis(80), Instant::from_nanos(u64::MAX)];
    times.reverse();
    let bench = Bench::new();
    let mut runtime = bench.open(Box::new(Alarm { times, woken: Rc::clone(&woken) }), &[]);
    // In two parts: what is due in between is not lost.
    for until in [millis(3), millis(100)] {
        runtime.run(Some(until), &bench.stop).unwrap();
        assert!(bench.clock.now() >= until);
    }
    let woken = woken.borrow();
    assert_eq!(woken.iter().map(|&(at, _)| at).collect::<Vec<_>>(), [0, 1, 5, 5, 80].map(millis));
    assert!(woken.iter().all(|(at, now)| at <= now), "{woken:?}");
    // Deadlines that pass together take one wake: at 5 ms, and wherever the host is late.
    let mut wakes: Vec<_> = woken.iter().map(|&(_, now)| now).collect();
    wakes.dedup();
    assert_eq!(figure(&runtime, "wakes"), wakes.len() as u64);
}

#[test]
fn nothing_happens_before_the_clock_is_at_zero() {
    let woken = Rc::default();
    let clock = Clock::starting_in(Duration::from_millis(100));
    let alarm = Alarm { times: vec![Instant::ZERO], woken: Rc::clone(&woken) };
    let mut runtime = Runtime::open(Box::new(alarm), &[], clock).unwrap();
    runtime.run(Some(millis(1)), &Stop::new().unwrap()).unwrap();
    assert!(clock.until(Instant::ZERO).is_zero());
    assert_eq!(woken.borrow().len(), 1);
}

#[test]
fn whoever_sleeps_for_ever_is_stopped_from_another_thread() {
    let bench = Bench::new();
    let (mut runtime, _) = bench.played(&[Plug::Udp(address("127.0.0.1:0"))]);
    let stop = bench.stop.clone();
    let pulling = thread::spawn(move || {
        let pause = rustix::time::Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
        let _ = rustix::thread::nanosleep(&pause);
        assert!(!stop.is_requested());
        stop.request();
    });
    runtime.run(None, &bench.stop).unwrap();
    pulling.join().unwrap();
    // And a runtime that is to continue returns at once.
    runtime.run(None, &bench.stop).unwrap();
}

/// Throws rubbish at `at` from a thread of its own, until told to stop.
fn flood(at: std::net::SocketAddr, over: &Arc<AtomicBool>) -> thread::JoinHandle<u64> {
    let over = Arc::clone(over);
    thread::spawn(move || {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut random = Seed::new(3, 0).stream(&["rubbish"], 0);
        let mut thrown = 0;
        while !over.load(Ordering::Relaxed) {
            let mut rubbish = vec![0; random.below(1400) as usize];
            random.fill(&mut rubbish);
            thrown += u64::from(socket.send_to(&rubbish, at).is_ok());
        }
        thrown
    })
}

/// An edge to which the test gives units.
struct Edge {
    node: Node,
    units: Rc<RefCell<Traffic>>,
}

impl Machine for Edge {
    fn handle(&mut self, now: Instant, port: Port, item: Item) {
        self.node.handle(now, port, item);
    }

    fn wake(&mut self, now: Instant) {
        while let Some((_, unit)) = self.units.borrow_mut().out.pop() {
            self.node.handle(now, Port::Above(0), unit);
        }
        self.node.wake(now);
    }

    fn poll(&mut self, now: Instant) -> Option<(Port, Item)> {
        loop {
            match self.node.poll(now)? {
                (Port::Above(_), item) => self.units.borrow_mut().arrived.push((0, item)),
                below => return Some(below),
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let given = (!self.units.borrow().out.is_empty()).then_some(Instant::ZERO);
        given.or_else(|| self.node.deadline())
    }
}

#[test]
fn a_flood_of_rubbish_leaves_an_edge_alive() {
    let bench = Bench::new();
    let [own, far] = [address("127.0.0.1:47801"), address("127.0.0.1:47802")];
    let edge = |own, far, name| {
        let units = Rc::<RefCell<Traffic>>::default();
        let random = Seed::new(1, 0).stream(&[name], 0);
        let node = Node::edge(Config::default(), own, (own, far), &[far], random);
        let edge = Edge { node, units: Rc::clone(&units) };
        (bench.open(Box::new(edge), &[Plug::Udp(own)]), units)
    };
    let (mut one, at_one) = edge(own, far, "one");
    let (mut two, at_two) = edge(far, own, "two");
    let over = Arc::default();
    let flooding = flood(far, &over);
    for number in 0..20_u8 {
        at_one.borrow_mut().send(own, far, &[number; 500]);
        let arrived = || at_two.borrow().arrived.len() > usize::from(number);
        assert!(bench.until(30, &mut [&mut one, &mut two], arrived), "unit {number} arrives");
    }
    over.store(true, Ordering::Relaxed);
    assert!(flooding.join().unwrap() > 0);
    let (heard, drops) = (figure(&two, "socket_received"), figure(&two, "socket_receive_dropped"));
    assert!(heard + drops > 1000, "it was flooded: {heard} heard, {drops} dropped by the kernel");
}
