//! Machines and namespaces that the tests of the runtime share.

#![allow(clippy::unwrap_used, dead_code)] // each test file uses its part

use std::cell::RefCell;
use std::fs::File;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::process::Command;
use std::rc::Rc;
use std::thread::{self, JoinHandle};

use hopcast_core::plug::Plug;
use hopcast_core::{
    Buffer, Datagram, Duration, Instant, Item, Machine, Outbox, Port, Reactive, StreamId, StreamItem,
};
use hopcast_node::Clock;
use hopcast_node::runtime::{Runtime, Stop};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Items that a test hands to the machine's ports below, and those that came back.
#[derive(Default)]
pub(crate) struct Traffic {
    pub(crate) out: Outbox,
    pub(crate) arrived: Vec<(u32, Item)>,
}

/// A machine that a test plays: it hands over what the test queued, and keeps what arrives.
pub(crate) struct Played(Rc<RefCell<Traffic>>);

impl Played {
    pub(crate) fn new() -> (Box<Self>, Rc<RefCell<Traffic>>) {
        let traffic = Rc::new(RefCell::new(Traffic::default()));
        (Box::new(Self(Rc::clone(&traffic))), traffic)
    }
}

impl Reactive for Played {
    fn react(&mut self, _now: Instant, port: Port, item: Item) {
        let Port::Below(port) = port else { panic!("from above") };
        self.0.borrow_mut().arrived.push((port, item));
    }

    fn next(&mut self) -> Option<(Port, Item)> {
        self.0.borrow_mut().out.pop()
    }

    fn is_pending(&self) -> bool {
        !self.0.borrow().out.is_empty()
    }
}

impl Traffic {
    pub(crate) fn send(&mut self, local: SocketAddr, remote: SocketAddr, payload: &[u8]) {
        let datagram = Datagram::new(local, remote, Buffer::copy_from(payload));
        self.out.down(Item::Datagram(datagram));
    }

    pub(crate) fn stream(&mut self, id: u64, item: StreamItem) {
        self.out.down(Item::Stream(StreamId(id), item));
    }

    /// The datagrams that have arrived, taken out.
    pub(crate) fn datagrams(&mut self) -> Vec<Datagram> {
        let items = self.arrived.drain(..).map(|(_, item)| match item {
            Item::Datagram(datagram) => datagram,
            other => panic!("no datagram: {other:?}"),
        });
        items.collect()
    }

    /// The items of streams that have arrived.
    pub(crate) fn streams(&self) -> impl Iterator<Item = (u64, &StreamItem)> {
        self.arrived.iter().map(|(_, item)| match item {
            Item::Stream(id, item) => (id.0, item),
            other => panic!("no stream: {other:?}"),
        })
    }

    pub(crate) fn has_stream(&self, wanted: u64, item: &StreamItem) -> bool {
        self.streams().any(|(id, it)| id == wanted && it == item)
    }

    pub(crate) fn bytes_of(&self, wanted: u64) -> Vec<u8> {
        let of = self.streams().filter(|&(id, _)| id == wanted);
        of.flat_map(|(_, item)| if let StreamItem::Data(bytes) = item { bytes.to_vec() } else { vec![] })
            .collect()
    }
}

/// Several runtimes of one thread and one clock, which take turns.
pub(crate) struct Bench {
    pub(crate) clock: Clock,
    pub(crate) stop: Stop,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self { clock: Clock::starting_now(), stop: Stop::new().unwrap() }
    }

    pub(crate) fn played(&self, plugs: &[Plug]) -> (Runtime, Rc<RefCell<Traffic>>) {
        let (machine, traffic) = Played::new();
        (self.open(machine, plugs), traffic)
    }

    pub(crate) fn open(&self, machine: Box<dyn Machine>, plugs: &[Plug]) -> Runtime {
        Runtime::open(machine, plugs, self.clock).unwrap()
    }

    /// Lets each run for a moment, until `done`; false if that takes more than `seconds`.
    pub(crate) fn until(
        &self,
        seconds: u64,
        runtimes: &mut [&mut Runtime],
        mut done: impl FnMut() -> bool,
    ) -> bool {
        let end = self.clock.now() + Duration::from_secs(seconds);
        while self.clock.now() < end {
            if done() {
                return true;
            }
            for runtime in runtimes.iter_mut() {
                let until = self.clock.now() + Duration::from_micros(500);
                runtime.run(Some(until), &self.stop).unwrap();
            }
        }
        done()
    }
}

pub(crate) fn figure(runtime: &Runtime, wanted: &str) -> u64 {
    let mut found = None;
    runtime.counters(&mut |name, figure| found = found.or((name == wanted).then_some(figure)));
    found.unwrap_or_else(|| panic!("no figure {wanted}"))
}

pub(crate) fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// A network namespace, gone with this.
pub(crate) struct Namespace(String);

impl Namespace {
    pub(crate) fn new(name: &str) -> Self {
        let name = format!("runtime-{}-{name}", std::process::id());
        sh(&format!("ip netns add {name}"));
        let namespace = Self(name);
        namespace.sh("ip link set lo up");
        namespace
    }

    pub(crate) fn name(&self) -> &str {
        &self.0
    }

    /// Runs a command inside.
    pub(crate) fn sh(&self, command: &str) -> String {
        sh(&format!("ip netns exec {} {command}", self.0))
    }

    /// Joins two by a pair of interfaces, each with its name and address.
    pub(crate) fn join(
        &self,
        name: &str,
        addresses: &[&str],
        other: &Self,
        others: &str,
        others_addresses: &[&str],
    ) {
        let (own, far) = (&self.0, &other.0);
        sh(&format!("ip link add {name} netns {own} type veth peer name {others} netns {far}"));
        for (namespace, name, addresses) in [(self, name, addresses), (other, others, others_addresses)] {
            for address in addresses {
                let nodad = if address.contains(':') { "nodad" } else { "" };
                namespace.sh(&format!("ip address add {address} dev {name} {nodad}"));
            }
            namespace.sh(&format!("ip link set {name} up"));
        }
    }

    /// Takes a device over from another namespace, and gives it addresses.
    pub(crate) fn take_device(&self, name: &str, from: &Self, addresses: &[String]) {
        sh(&format!("ip -n {} link set {name} netns {}", from.0, self.0));
        for address in addresses {
            let nodad = if address.contains(':') { "nodad" } else { "" };
            self.sh(&format!("ip address add {address} dev {name} {nodad}"));
        }
        self.sh(&format!("ip link set {name} up"));
    }

    /// Moves this thread inside, for good: what it has opened elsewhere stays there.
    pub(crate) fn enter(&self) {
        inside(&self.open(), || {});
    }

    /// Does something inside, on a thread of its own.
    pub(crate) fn spawn<T: Send + 'static>(&self, act: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        let file = self.open();
        thread::spawn(move || inside(&file, act))
    }

    /// Does something inside.
    pub(crate) fn run<T: Send>(&self, act: impl FnOnce() -> T + Send) -> T {
        let file = self.open();
        thread::scope(|scope| scope.spawn(|| inside(&file, act)).join()).unwrap()
    }

    fn open(&self) -> File {
        File::open(format!("/var/run/netns/{}", self.0)).unwrap()
    }
}

/// Moves this thread into a namespace and acts.
fn inside<T>(namespace: &File, act: impl FnOnce() -> T) -> T {
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
    act()
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.0]).status();
    }
}

/// The rules and routes of a namespace, but those of the addresses that IPv6 gives itself in time.
pub(crate) fn state(namespace: &Namespace) -> String {
    let commands = [
        "nft list ruleset",
        "ip rule",
        "ip -6 rule",
        "ip route show table all",
        "ip -6 route show table all",
    ];
    let all = commands.map(|command| namespace.sh(command)).concat();
    let own = |line: &&str| line.contains("fe80::") || line.contains("ff00::");
    all.lines().filter(|line| !own(line)).map(|line| format!("{line}\n")).collect()
}

/// Runs a command, which is to succeed, and gives what it wrote.
pub(crate) fn sh(command: &str) -> String {
    let mut words = command.split_whitespace();
    let output = Command::new(words.next().unwrap()).args(words).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command}: {err}");
    out.into_owned()
}
