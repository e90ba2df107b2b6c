//! A member of ours: the machine, on a UDP socket of a node of the network. What it sends is a file's bytes, in
//! datagrams of a packet each, and what it receives is put together again.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration as Span, Instant as Moment};

use hopcast_core::plug::Plug;
use hopcast_core::{Buffer, Datagram, Duration, Instant, Item, Machine, Membership, Port, Rate, Seed};
use hopcast_node::runtime::{Runtime, Stop};
use hopcast_reliable::pgm::wire::{IP_PROTOCOL, Tsi};
use hopcast_reliable::pgm::{Config, Framing, RateControl, ReceiverConfig, Session, SourceConfig};

use crate::common::Running;
use crate::peer::Transfer;
use crate::program::PORT;
use crate::segment::{GROUP, address};

/// The bytes that a member has received, by the address of their sender.
pub(crate) type Heard = BTreeMap<SocketAddr, Vec<u8>>;

/// A running member.
pub(crate) struct Ours {
    heard: Arc<Mutex<Heard>>,
    stop: Stop,
    thread: Option<JoinHandle<BTreeMap<String, u64>>>,
}

/// Settings of a source for OpenPGM: units as they are, without parity, which OpenPGM reads in a way of its own.
pub(crate) fn source() -> SourceConfig {
    SourceConfig {
        rate: RateControl::Fixed(Rate::from_mbit(8)),
        framing: Framing::Plain,
        parity: 0,
        slack: Duration::from_millis(1),
        ..SourceConfig::default()
    }
}

/// Bytes of a datagram that is sent.
const UNIT: usize = 1400;

impl Ours {
    /// Starts a member as `node` of the network, in its run `run`. `given` is sent after a moment.
    pub(crate) fn start(
        net: &Running,
        node: usize,
        run: u16,
        source: Option<SourceConfig>,
        receiver: Option<ReceiverConfig>,
        given: Vec<u8>,
    ) -> Self {
        let plug = Plug::Udp(SocketAddr::from((address(node), PORT)));
        Self::start_on(plug, net, node, run, (source, receiver), given)
    }

    /// Starts a member on raw sockets of IP, as a sender or a receiver.
    pub(crate) fn start_raw(net: &Running, node: usize, given: Option<Vec<u8>>) -> Self {
        let plug = Plug::Raw(IP_PROTOCOL, address(node).into());
        let receiver = given.is_none().then(ReceiverConfig::default);
        let source = given.is_some().then(source);
        Self::start_on(plug, net, node, 1, (source, receiver), given.unwrap_or_default())
    }

    fn start_on(
        plug: Plug,
        net: &Running,
        node: usize,
        run: u16,
        (source, receiver): (Option<SourceConfig>, Option<ReceiverConfig>),
        given: Vec<u8>,
    ) -> Self {
        let config = Config {
            session: Tsi { gsi: [9, 9, 9, 9, 9, node as u8], port: run },
            port: 7500,
            local: SocketAddr::from((address(node), PORT)),
            group: format!("{GROUP}:{PORT}").parse().unwrap(),
            number: None,
            source,
            receiver: receiver.map(|receiver| ReceiverConfig { unicast_port: Some(PORT), ..receiver }),
            unit_credit: false,
        };
        let heard = Arc::new(Mutex::new(Heard::default()));
        let stop = Stop::new().unwrap();
        let (shared, stopped) = (Arc::clone(&heard), stop.clone());
        let (namespace, clock) = (net.lab.namespace(node).clone(), net.clock);
        let thread = std::thread::spawn(move || {
            namespace
                .run(|| {
                    let random = Seed::new(1, 0).stream(&["member"], node as u64);
                    let member = Member::new(config, random, given, shared);
                    let mut runtime = Runtime::open(Box::new(member), &[plug], clock).unwrap();
                    runtime.run(None, &stopped).unwrap();
                    let mut counters = BTreeMap::new();
                    runtime.machine().counters(&mut |name, value| {
                        *counters.entry(name.to_owned()).or_default() += value;
                    });
                    counters
                })
                .unwrap()
        });
        Self { heard, stop, thread: Some(thread) }
    }

    /// Starts a receiver.
    pub(crate) fn receiver(net: &Running, node: usize) -> Self {
        Self::start(net, node, 1, None, Some(ReceiverConfig::default()), Vec::new())
    }

    /// Starts a sender.
    pub(crate) fn sender(net: &Running, node: usize, given: Vec<u8>) -> Self {
        Self::start(net, node, 1, Some(source()), None, given)
    }

    /// Bytes received so far from each sender.
    pub(crate) fn heard(&self) -> Vec<Vec<u8>> {
        self.heard.lock().unwrap().values().cloned().collect()
    }

    /// Waits until it has this many bytes of some sender; panics with what there is if that takes more than a minute.
    pub(crate) fn wait_for(&mut self, len: usize) -> Vec<u8> {
        let end = Moment::now() + Span::from_secs(60);
        loop {
            let most = self.heard().into_iter().max_by_key(Vec::len).unwrap_or_default();
            if most.len() >= len {
                return most;
            }
            assert!(Moment::now() < end, "only {} of {len} bytes came: {:#?}", most.len(), self.finish());
            std::thread::sleep(Span::from_millis(10));
        }
    }

    /// Stops it; its counters.
    pub(crate) fn finish(&mut self) -> BTreeMap<String, u64> {
        self.stop.request();
        self.thread.take().map(|thread| thread.join().unwrap()).unwrap_or_default()
    }

    /// Stops it; panics if there was a packet that it could not read.
    pub(crate) fn finish_having_read_all(&mut self) -> BTreeMap<String, u64> {
        let counters = self.finish();
        assert_eq!(counters["malformed"], 0, "{counters:#?}");
        counters
    }

    /// The `len` bytes that it received, in the form in which OpenPGM's member reports them.
    pub(crate) fn transfer(&mut self, len: usize) -> Transfer {
        Transfer::of("data", &self.wait_for(len))
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        self.stop.request();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// A session with its application, which joins the group, gives what there is to send, and keeps what comes.
struct Member {
    session: Session,
    ends: (SocketAddr, SocketAddr),
    join: Option<Membership>,
    given: Vec<u8>,
    /// When it begins to send: receivers of others hear an SPM before data.
    begins: Option<Instant>,
    heard: Arc<Mutex<Heard>>,
}

/// Time between the first SPM and data.
const LEAD: Duration = Duration::from_millis(300);

impl Member {
    fn new(config: Config, random: hopcast_core::Stream, given: Vec<u8>, heard: Arc<Mutex<Heard>>) -> Self {
        let group = config.group.ip();
        let join = Some(Membership { group, source: None, interface: None, joined: true });
        let ends = (config.local, config.group);
        Self { session: Session::new(config, random), ends, join, given, begins: None, heard }
    }

    fn give(&mut self, now: Instant) {
        let begins = *self.begins.get_or_insert(now + LEAD);
        if now < begins {
            return;
        }
        for bytes in std::mem::take(&mut self.given).chunks(UNIT) {
            let datagram = Datagram::new(self.ends.0, self.ends.1, Buffer::copy_from(bytes));
            self.session.handle(now, Port::Above(0), Item::Datagram(datagram));
        }
    }

    fn take(&self, item: Item) {
        let (from, bytes) = match item {
            Item::Datagram(datagram) => (datagram.remote, datagram.payload),
            Item::Message(message) => (message.sender.unwrap(), message.payload),
            _ => return,
        };
        self.heard.lock().unwrap().entry(from).or_default().extend_from_slice(&bytes);
    }
}

impl Machine for Member {
    fn handle(&mut self, now: Instant, port: Port, item: Item) {
        self.session.handle(now, port, item);
    }

    fn wake(&mut self, now: Instant) {
        self.session.wake(now);
    }

    fn poll(&mut self, now: Instant) -> Option<(Port, Item)> {
        if let Some(join) = self.join.take() {
            return Some((Port::Below(0), Item::Membership(join)));
        }
        self.give(now);
        loop {
            match self.session.poll(now) {
                Some((Port::Above(_), item)) => self.take(item),
                other => return other,
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let begins = self.begins.filter(|_| !self.given.is_empty());
        self.session.deadline().into_iter().chain(begins).min()
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        self.session.counters(report);
    }
}
