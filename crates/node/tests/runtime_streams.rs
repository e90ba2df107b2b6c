//! Stream ports on the kernel's TCP.

#![allow(clippy::unwrap_used)] // in what the tests share

mod common;

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;

use common::{Bench, address, figure};
use hopcast_core::plug::{Accept, Plug, TcpPlug};
use hopcast_core::{
    Buffer, Instant, Item, Outbox, Port, Reactive, StreamId, StreamItem, StreamReader, StreamWriter,
};
use hopcast_node::runtime::Runtime;

const WINDOW: u64 = 1 << 20;

fn server() -> Plug {
    Plug::Tcp(TcpPlug { accept: Some(Accept::At(address("127.0.0.1:0"))), ..TcpPlug::default() })
}

fn client() -> Plug {
    Plug::Tcp(TcpPlug::default())
}

fn open(remote: SocketAddr) -> StreamItem {
    StreamItem::Open { local: address("0.0.0.0:0"), remote }
}

/// The bytes of a stream of the test at an offset.
fn byte(offset: u64) -> u8 {
    (offset ^ offset >> 8 ^ offset >> 17) as u8
}

/// Sends every byte back, and finishes after the peer.
#[derive(Default)]
struct Echo {
    streams: BTreeMap<StreamId, (StreamReader, StreamWriter, VecDeque<u8>, bool)>,
    out: Outbox,
}

impl Reactive for Echo {
    fn react(&mut self, _now: Instant, port: Port, item: Item) {
        let Item::Stream(id, item) = item else { panic!("no stream") };
        let mut give = |item| self.out.push(port, Item::Stream(id, item));
        let new = || (StreamReader::new(WINDOW), StreamWriter::default(), VecDeque::new(), false);
        let (reader, writer, waiting, finished) = self.streams.entry(id).or_insert_with(new);
        match item {
            StreamItem::Open { .. } => give(reader.first_grant()),
            StreamItem::Data(bytes) => {
                assert!(reader.received(bytes.len()), "no more than was granted");
                waiting.extend(bytes.iter());
            }
            StreamItem::Credit(credit) => {
                writer.credit(credit);
            }
            StreamItem::Finish => *finished = true,
            StreamItem::Reset => {
                self.streams.remove(&id);
                return;
            }
            StreamItem::Opened | StreamItem::Transmitted(_) => {}
        }
        if let Some((item, len)) = writer.write(waiting.make_contiguous()) {
            waiting.drain(..len);
            give(item);
            reader.consumed(len).into_iter().for_each(&mut give);
        }
        if *finished && waiting.is_empty() {
            give(StreamItem::Finish);
            self.streams.remove(&id);
        }
    }

    fn next(&mut self) -> Option<(Port, Item)> {
        self.out.pop()
    }
}

/// Sends `total` bytes on each of its streams, and holds what comes back against them.
struct Asker {
    total: u64,
    writer: BTreeMap<StreamId, (StreamWriter, u64)>,
    reader: BTreeMap<StreamId, (StreamReader, u64)>,
    out: Outbox,
    done: Rc<RefCell<u64>>,
}

impl Asker {
    fn new(remote: SocketAddr, streams: u64, total: u64) -> (Box<Self>, Rc<RefCell<u64>>) {
        let done = Rc::default();
        let ids = (0..streams).map(|i| StreamId(2 * i));
        let mut out = Outbox::new();
        ids.clone().for_each(|id| out.down(Item::Stream(id, open(remote))));
        let asker = Self {
            total,
            writer: ids.clone().map(|id| (id, Default::default())).collect(),
            reader: ids.map(|id| (id, (StreamReader::new(WINDOW), 0))).collect(),
            out,
            done: Rc::clone(&done),
        };
        (Box::new(asker), done)
    }
}

impl Reactive for Asker {
    fn react(&mut self, _now: Instant, port: Port, item: Item) {
        let Item::Stream(id, item) = item else { panic!("no stream") };
        let mut give = |item| self.out.push(port, Item::Stream(id, item));
        let (reader, read) = self.reader.get_mut(&id).unwrap();
        match item {
            StreamItem::Opened => give(reader.first_grant()),
            StreamItem::Data(bytes) => {
                assert!(reader.received(bytes.len()), "no more than was granted");
                for &got in bytes.iter() {
                    assert_eq!(got, byte(*read), "byte {read} of {id:?}");
                    *read += 1;
                }
                reader.consumed(bytes.len()).into_iter().for_each(&mut give);
            }
            StreamItem::Credit(credit) => {
                let (writer, written) = self.writer.get_mut(&id).unwrap();
                writer.credit(credit);
                let rest: Vec<u8> = (*written..self.total.min(*written + credit)).map(byte).collect();
                if let Some((item, len)) = writer.write(&rest) {
                    *written += len as u64;
                    give(item);
                    if *written == self.total {
                        give(StreamItem::Finish);
                    }
                }
            }
            StreamItem::Transmitted(offset) => assert!(offset <= self.total),
            StreamItem::Finish => {
                assert_eq!(*read, self.total, "all came before the end");
                *self.done.borrow_mut() += 1;
            }
            StreamItem::Open { .. } | StreamItem::Reset => panic!("{item:?}"),
        }
    }

    fn next(&mut self) -> Option<(Port, Item)> {
        self.out.pop()
    }

    fn is_pending(&self) -> bool {
        !self.out.is_empty()
    }
}

#[test]
fn fifty_megabytes_come_back_as_they_were() {
    let bench = Bench::new();
    let mut echo = bench.open(Box::<Echo>::default(), &[server()]);
    let (asker, done) = Asker::new(echo.address(0).unwrap(), 1, 50_000_000);
    let mut asker = bench.open(asker, &[client()]);
    assert!(bench.until(120, &mut [&mut asker, &mut echo], || *done.borrow() == 1));
    assert_eq!(figure(&echo, "socket_received_bytes"), 50_000_000);
    assert_eq!(figure(&echo, "socket_streams_accepted"), 1);
}

#[test]
fn five_hundred_streams_go_on_beside_one_another() {
    let bench = Bench::new();
    let mut echo = bench.open(Box::<Echo>::default(), &[server()]);
    let (asker, done) = Asker::new(echo.address(0).unwrap(), 500, 40_000);
    let mut asker = bench.open(asker, &[client()]);
    assert!(bench.until(120, &mut [&mut asker, &mut echo], || *done.borrow() == 500));
    assert_eq!(figure(&echo, "socket_streams_accepted"), 500);
}

/// A server that the test plays, a client that it plays, and the stream between them: 0 at the client, 1 at the server.
fn pair(bench: &Bench) -> [(Runtime, Rc<RefCell<common::Traffic>>); 2] {
    let mut server = bench.played(&[server()]);
    let mut client = bench.played(&[client()]);
    client.1.borrow_mut().stream(0, open(server.0.address(0).unwrap()));
    let opened =
        || client.1.borrow().has_stream(0, &StreamItem::Opened) && server.1.borrow().arrived.len() > 1;
    assert!(bench.until(10, &mut [&mut server.0, &mut client.0], opened));
    [server, client]
}

#[test]
fn a_reader_that_grants_nothing_stops_the_writer() {
    let bench = Bench::new();
    // The peer's host accepts, and nobody reads.
    let peer = TcpListener::bind("127.0.0.1:0").unwrap();
    let (asker, _) = Asker::new(peer.local_addr().unwrap(), 1, 1 << 30);
    let mut asker = bench.open(asker, &[client()]);
    bench.until(2, &mut [&mut asker], || false);
    let sent = figure(&asker, "socket_sent_bytes");
    assert!(sent > 100_000, "{sent}");
    assert!(sent < 64 << 20, "what the kernels hold, and no more: {sent}");
}

#[test]
fn no_more_is_read_than_the_machine_has_granted() {
    let bench = Bench::new();
    let [(mut server, at_server), (mut client, at_client)] = pair(&bench);
    at_client.borrow_mut().stream(0, StreamItem::Data(Buffer::copy_from(&[7; 10_000])));
    at_client.borrow_mut().stream(0, StreamItem::Finish);
    for granted in [10_u64, 1000, 8_989, 1] {
        let before = at_server.borrow().bytes_of(1).len() as u64;
        at_server.borrow_mut().stream(1, StreamItem::Credit(granted));
        let got = || at_server.borrow().bytes_of(1).len() as u64;
        assert!(bench.until(10, &mut [&mut server, &mut client], || got() == before + granted));
        bench.until(0, &mut [&mut server], || false);
        assert_eq!(got(), before + granted);
    }
    // The end needs no credit.
    let ended = || at_server.borrow().has_stream(1, &StreamItem::Finish);
    assert!(bench.until(10, &mut [&mut server, &mut client], ended));
}

#[test]
fn one_direction_ends_and_the_other_goes_on() {
    let bench = Bench::new();
    let [(mut server, at_server), (mut client, at_client)] = pair(&bench);
    at_client.borrow_mut().stream(0, StreamItem::Credit(1_000_000));
    at_client.borrow_mut().stream(0, StreamItem::Finish);
    let ended = || at_server.borrow().has_stream(1, &StreamItem::Finish);
    assert!(bench.until(10, &mut [&mut server, &mut client], ended));
    at_server.borrow_mut().stream(1, StreamItem::Data(Buffer::copy_from(&[1; 16_000])));
    at_server.borrow_mut().stream(1, StreamItem::Finish);
    let ended = || at_client.borrow().has_stream(0, &StreamItem::Finish);
    assert!(bench.until(10, &mut [&mut server, &mut client], ended));
    assert_eq!(at_client.borrow().bytes_of(0).len(), 16_000);
    assert!(at_server.borrow().has_stream(1, &StreamItem::Transmitted(16_000)));
    for runtime in [&server, &client] {
        assert_eq!(figure(runtime, "socket_streams_failed"), 0);
    }
}

#[test]
fn a_reset_reaches_the_other_end() {
    let bench = Bench::new();
    let [(mut server, at_server), (mut client, at_client)] = pair(&bench);
    at_server.borrow_mut().stream(1, StreamItem::Reset);
    let reset = || at_client.borrow().has_stream(0, &StreamItem::Reset);
    assert!(bench.until(10, &mut [&mut server, &mut client], reset));
    assert!(!at_server.borrow().has_stream(1, &StreamItem::Reset), "its own is not told back");
}

#[test]
fn a_connection_that_is_refused_is_reset() {
    let bench = Bench::new();
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (mut client, at_client) = bench.played(&[client()]);
    at_client.borrow_mut().stream(4, open(nobody));
    let reset = || at_client.borrow().has_stream(4, &StreamItem::Reset);
    assert!(bench.until(10, &mut [&mut client], reset));
    assert!(!at_client.borrow().has_stream(4, &StreamItem::Opened));
}

#[test]
fn bytes_beyond_the_grant_reset_the_stream() {
    let bench = Bench::new();
    let [(mut server, at_server), (mut client, at_client)] = pair(&bench);
    at_client.borrow_mut().stream(0, StreamItem::Data(Buffer::zeroed(4 << 20)));
    let reset = || {
        at_client.borrow().has_stream(0, &StreamItem::Reset)
            && at_server.borrow().has_stream(1, &StreamItem::Reset)
    };
    assert!(bench.until(10, &mut [&mut client, &mut server], reset));
}

#[test]
fn an_unknown_congestion_control_is_named_with_those_that_there_are() {
    let bench = Bench::new();
    let (machine, _) = common::Played::new();
    let plug = Plug::Tcp(TcpPlug { congestion: Some("vegaz".to_owned()), ..TcpPlug::default() });
    let Err(why) = Runtime::open(machine, &[plug], bench.clock) else { panic!("opened") };
    let why = why.to_string();
    assert!(why.contains("no congestion control `vegaz` (has: ") && why.lines().count() == 1, "{why}");
    // Everybody may use it.
    let plug = Plug::Tcp(TcpPlug { congestion: Some("reno".to_owned()), ..TcpPlug::default() });
    bench.played(&[plug]);
}
