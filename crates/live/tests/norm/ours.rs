//! A member of ours: the machine, on a UDP socket of a node of the network.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration as Span, Instant as Moment};

use hopcast_core::plug::Plug;
use hopcast_core::{Buffer, Duration, Instant, Item, Machine, Membership, Port, Seed, StreamId, StreamItem};
use hopcast_node::runtime::{Runtime, Stop};
use hopcast_reliable::norm::wire::NodeId;
use hopcast_reliable::norm::{Config, Framing, RateControl, ReceiverConfig, SenderConfig, Session};

use crate::common::Running;
use crate::peer::Transfer;
use crate::program::PORT;
use crate::segment::{GROUP, address};

/// Data that is handed to a sender of ours.
#[derive(Clone, Debug)]
pub(crate) enum Given {
    /// An object of data.
    Data(Vec<u8>),
    /// A file, with its name.
    File(Vec<u8>, String),
    /// A stream.
    Stream(Vec<u8>),
}

/// The data that a member has received.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heard {
    /// Objects, as they came.
    pub(crate) objects: Vec<Vec<u8>>,
    /// Streams: their bytes, and whether they ended well.
    pub(crate) streams: BTreeMap<u64, (Vec<u8>, Option<bool>)>,
    /// Whether every receiver that was to acknowledge has.
    pub(crate) acknowledged: bool,
}

impl Heard {
    /// The complete transfers, in the form of a member of libnorm; all objects have the kind `data`.
    pub(crate) fn completed(&self) -> Vec<Transfer> {
        let objects = self.objects.iter().map(|bytes| Transfer::of("data", bytes));
        let streams = self.streams.values().filter(|(_, ended)| *ended == Some(true));
        let mut all: Vec<_> =
            objects.chain(streams.map(|(bytes, _)| Transfer::of("stream", bytes))).collect();
        all.sort();
        all
    }
}

/// A running member.
pub(crate) struct Ours {
    heard: Arc<Mutex<Heard>>,
    stop: Stop,
    thread: Option<JoinHandle<BTreeMap<String, u64>>>,
}

/// Settings of a sender for the segment, which is slow enough for a busy machine.
pub(crate) fn sender() -> SenderConfig {
    let rate = RateControl::Fixed(hopcast_core::Rate::from_mbit(8));
    SenderConfig { rate, group_size: Some(10), slack: Duration::from_millis(1), ..SenderConfig::default() }
}

/// Settings of a receiver that takes a stream as bytes, wherever libnorm marks messages in it.
pub(crate) fn receiver() -> ReceiverConfig {
    ReceiverConfig { framing: Framing::Bytes, ..ReceiverConfig::default() }
}

impl Ours {
    /// Starts a member as `node` of the network, whose identifier is one more. `given` is sent at once.
    pub(crate) fn start(
        net: &Running,
        node: usize,
        instance: u16,
        sender: Option<SenderConfig>,
        receiver: Option<ReceiverConfig>,
        given: Vec<Given>,
    ) -> Self {
        let config = Config {
            node: NodeId(node as u32 + 1),
            instance,
            local: SocketAddr::from((address(node), PORT)),
            group: format!("{GROUP}:{PORT}").parse().unwrap(),
            sender,
            receiver,
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
                    let plug = Plug::Udp(config.local);
                    let member = Member::new(config, random, given, shared);
                    let mut runtime = Runtime::open(Box::new(member), &[plug], clock).unwrap();
                    runtime.run(None, &stopped).unwrap();
                    let mut counters = BTreeMap::new();
                    runtime.machine().counters(&mut |name, value| {
                        *counters.entry(name.to_owned()).or_default() += value;
                    });
                    runtime
                        .counters(&mut |name, value| *counters.entry(name.to_owned()).or_default() += value);
                    counters
                })
                .unwrap()
        });
        Self { heard, stop, thread: Some(thread) }
    }

    /// Starts a receiver.
    pub(crate) fn receiver(net: &Running, node: usize) -> Self {
        Self::start(net, node, 1, None, Some(receiver()), Vec::new())
    }

    /// Starts a sender.
    pub(crate) fn sender(net: &Running, node: usize, given: Vec<Given>) -> Self {
        Self::start(net, node, 1, Some(sender()), None, given)
    }

    /// The data that it has received so far.
    pub(crate) fn heard(&self) -> Heard {
        self.heard.lock().unwrap().clone()
    }

    /// Waits until `enough` of what it has received; panics with what there is if that takes more than a minute.
    pub(crate) fn wait_until(&mut self, enough: impl Fn(&Heard) -> bool) {
        self.wait_at_most(60, enough);
    }

    /// The same, with a limit in seconds.
    pub(crate) fn wait_at_most(&mut self, seconds: u64, enough: impl Fn(&Heard) -> bool) {
        let end = Moment::now() + Span::from_secs(seconds);
        while !enough(&self.heard.lock().unwrap()) {
            if Moment::now() > end {
                let heard = self.heard();
                panic!("only {:?} came: {:#?}", heard.completed(), self.finish());
            }
            std::thread::sleep(Span::from_millis(10));
        }
    }

    /// Waits until this number of objects and streams are complete.
    pub(crate) fn wait_for(&mut self, complete: usize) {
        self.wait_until(|heard| heard.completed().len() >= complete);
    }

    /// Stops it; its counters.
    pub(crate) fn finish(&mut self) -> BTreeMap<String, u64> {
        self.stop.request();
        self.thread.take().map(|thread| thread.join().unwrap()).unwrap_or_default()
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
    local: SocketAddr,
    join: Option<Membership>,
    given: Vec<Given>,
    /// Bytes of each stream that are still to be written.
    writing: BTreeMap<u64, Vec<u8>>,
    heard: Arc<Mutex<Heard>>,
}

impl Member {
    fn new(
        config: Config,
        random: hopcast_core::Stream,
        given: Vec<Given>,
        heard: Arc<Mutex<Heard>>,
    ) -> Self {
        let group = config.group.ip();
        let join = Some(Membership { group, source: None, interface: None, joined: true });
        let local = config.local;
        Self { session: Session::new(config, random), local, join, given, writing: BTreeMap::new(), heard }
    }

    fn give(&mut self, now: Instant) {
        for (number, given) in std::mem::take(&mut self.given).into_iter().enumerate() {
            match given {
                Given::Data(bytes) => {
                    self.session.send(now, bytes.into(), None, false).unwrap();
                }
                Given::File(bytes, name) => {
                    self.session.send(now, bytes.into(), Some(name.into_bytes().into()), true).unwrap();
                }
                Given::Stream(bytes) => {
                    let id = 2 * number as u64;
                    self.writing.insert(id, bytes);
                    let open = StreamItem::Open { local: self.local, remote: self.local };
                    self.session.handle(now, Port::Above(0), Item::Stream(StreamId(id), open));
                }
            }
        }
    }

    fn take(&mut self, now: Instant, item: Item) {
        let mut answer = Vec::new();
        match item {
            Item::Message(message) => self.heard.lock().unwrap().objects.push(message.payload.to_vec()),
            Item::Stream(id, item) => match item {
                StreamItem::Open { .. } => answer.push((id, StreamItem::Credit(u64::MAX / 2))),
                StreamItem::Data(bytes) => {
                    self.heard.lock().unwrap().streams.entry(id.0).or_default().0.extend_from_slice(&bytes);
                }
                StreamItem::Finish | StreamItem::Reset if id.0 % 2 == 1 => {
                    let well = item == StreamItem::Finish;
                    self.heard.lock().unwrap().streams.entry(id.0).or_default().1 = Some(well);
                }
                StreamItem::Credit(credit) => {
                    let Some(bytes) = self.writing.get_mut(&id.0) else { return };
                    let len = bytes.len().min(credit as usize);
                    let rest = bytes.split_off(len);
                    let piece = std::mem::replace(bytes, rest);
                    answer.push((id, StreamItem::Data(Buffer::copy_from(&piece))));
                    if self.writing[&id.0].is_empty() {
                        self.writing.remove(&id.0);
                        answer.push((id, StreamItem::Finish));
                    }
                }
                _ => {}
            },
            _ => {}
        }
        for (id, item) in answer {
            self.session.handle(now, Port::Above(0), Item::Stream(id, item));
        }
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
                Some((Port::Above(_), item)) => self.take(now, item),
                other => {
                    self.heard.lock().unwrap().acknowledged = self.session.is_acknowledged();
                    return other;
                }
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.session.deadline()
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        self.session.counters(report);
    }
}
