//! Others' connections: redirected on their own host, taken out of transit, and opened in others' names.

#![allow(clippy::unwrap_used)] // in what the tests share

mod common;

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;

use common::{Bench, Namespace, state};
use hopcast_coded::proxy::Splice;
use hopcast_core::plug::{Accept, Destination, Plug, TcpPlug};
use hopcast_node::Clock;
use hopcast_node::runtime::{Runtime, Stop};
use hopcast_node::testing::{Requirement, require};

const NEEDS: [Requirement<'_>; 3] =
    [Requirement::Root, Requirement::Program("ip"), Requirement::Program("nft")];
const BYTES: usize = 3_000_000;

/// A client, a gateway and a server in a row, each in a namespace of its own, over IPv4 and IPv6.
struct Row {
    client: Namespace,
    gateway: Namespace,
    server: Namespace,
}

impl Row {
    fn new(name: &str) -> Self {
        let [client, gateway, server] =
            ["client", "gateway", "server"].map(|place| Namespace::new(&format!("{name}-{place}")));
        client.join("c0", &["10.1.0.1/24", "fd01::1/64"], &gateway, "g0", &["10.1.0.2/24", "fd01::2/64"]);
        gateway.join("g1", &["10.2.0.1/24", "fd02::1/64"], &server, "s0", &["10.2.0.2/24", "fd02::2/64"]);
        client.sh("ip route add default via 10.1.0.2");
        client.sh("ip -6 route add default via fd01::2");
        server.sh("ip route add default via 10.2.0.1");
        server.sh("ip -6 route add default via fd02::1");
        // Nothing is forwarded but by what the runtime opens itself.
        gateway.sh("sysctl -q net.ipv4.ip_forward=0");
        Self { client, gateway, server }
    }

    /// A server that takes one connection, sends what it gets back until its end, and says from whom it came.
    fn serve(&self, address: SocketAddr) -> JoinHandle<SocketAddr> {
        let listener = self.server.spawn(move || TcpListener::bind(address).unwrap()).join().unwrap();
        std::thread::spawn(move || {
            let (mut stream, from) = listener.accept().unwrap();
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).unwrap();
            stream.write_all(&bytes).unwrap();
            from
        })
    }

    /// A client that sends, ends its direction, and gets all back; where it was connected from.
    fn ask(&self, address: SocketAddr) -> JoinHandle<SocketAddr> {
        self.client.spawn(move || {
            let mut stream = TcpStream::connect(address).unwrap();
            let from = stream.local_addr().unwrap();
            assert_eq!(stream.peer_addr().unwrap(), address);
            let sent: Vec<u8> = (0..BYTES).map(|i| (i ^ i >> 8) as u8).collect();
            let mut writer = stream.try_clone().unwrap();
            let all = sent.clone();
            let writing = std::thread::spawn(move || {
                writer.write_all(&all).unwrap();
                writer.shutdown(std::net::Shutdown::Write).unwrap();
            });
            let mut got = Vec::new();
            stream.read_to_end(&mut got).unwrap();
            writing.join().unwrap();
            assert!(got == sent, "{} bytes of {BYTES}", got.len());
            from
        })
    }
}

/// A splice whose streams come by `plug` and go on by the same host's TCP.
fn splice(namespace: &Namespace, accept: Accept, spoof: bool, stop: &Stop) -> JoinHandle<()> {
    let stop = stop.clone();
    let (opened, is_open) = std::sync::mpsc::channel();
    let running = namespace.spawn(move || {
        let plugs = [
            Plug::Tcp(TcpPlug { accept: Some(accept), ..TcpPlug::default() }),
            Plug::Tcp(TcpPlug { spoof, ..TcpPlug::default() }),
        ];
        let mut runtime = Runtime::open(Box::new(Splice::new()), &plugs, Clock::starting_now()).unwrap();
        opened.send(()).unwrap();
        runtime.run(None, &stop).unwrap();
    });
    is_open.recv().unwrap();
    running
}

fn to(network: &str, prefix: u8, port: Option<u16>) -> Destination {
    Destination { network: network.parse().unwrap(), prefix, port }
}

fn everywhere() -> Vec<Destination> {
    vec![to("10.2.0.0", 16, Some(7)), to("fd02::", 32, None)]
}

#[test]
fn connections_of_this_host_are_redirected_and_our_own_are_not() {
    if !require(&NEEDS) {
        return;
    }
    let row = Row::new("redirect");
    row.gateway.sh("sysctl -q net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1");
    let before = state(&row.client);
    let stop = Stop::new().unwrap();
    let running = splice(&row.client, Accept::LocalOutput { to: everywhere() }, false, &stop);
    for server in ["10.2.0.2:7", "[fd02::2]:7"] {
        let server: SocketAddr = server.parse().unwrap();
        let serving = row.serve(server);
        let client = row.ask(server).join().unwrap();
        let seen = serving.join().unwrap();
        assert_eq!(seen.ip(), client.ip());
        assert_ne!(seen, client, "the server's connection is the runtime's");
    }
    stop.request();
    running.join().unwrap();
    assert_eq!(state(&row.client), before, "rules and routes are gone");
}

fn in_transit(name: &str, spoof: bool, seen_as: [&str; 2]) {
    if !require(&NEEDS) {
        return;
    }
    let row = Row::new(name);
    let before = state(&row.gateway);
    let stop = Stop::new().unwrap();
    let running = splice(&row.gateway, Accept::Forwarded { to: everywhere() }, spoof, &stop);
    for (server, seen_as) in ["10.2.0.2:7", "[fd02::2]:7"].into_iter().zip(seen_as) {
        let server: SocketAddr = server.parse().unwrap();
        let serving = row.serve(server);
        let client = row.ask(server).join().unwrap();
        let seen = serving.join().unwrap();
        assert_eq!(seen.ip(), seen_as.parse::<IpAddr>().unwrap());
        assert_eq!(seen == client, spoof);
    }
    stop.request();
    running.join().unwrap();
    assert_eq!(state(&row.gateway), before, "rules and routes are gone");
}

#[test]
fn who_writes_to_the_port_that_others_are_diverted_to_is_turned_away() {
    if !require(&NEEDS) {
        return;
    }
    let namespace = Namespace::new("direct");
    for accept in [Accept::LocalOutput { to: everywhere() }, Accept::Forwarded { to: everywhere() }] {
        namespace.run(|| {
            let bench = Bench::new();
            let (mut runtime, traffic) =
                bench.played(&[Plug::Tcp(TcpPlug { accept: Some(accept), ..TcpPlug::default() })]);
            let mut client = TcpStream::connect(runtime.address(0).unwrap()).unwrap();
            client.set_nonblocking(true).unwrap();
            let mut closed =
                || !matches!(client.read(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock);
            assert!(bench.until(10, &mut [&mut runtime], &mut closed));
            assert!(traffic.borrow().arrived.is_empty());
        });
    }
}

#[test]
fn connections_in_transit_are_taken_over() {
    in_transit("transit", false, ["10.2.0.1", "fd02::1"]);
}

#[test]
fn a_server_sees_the_client_where_its_address_is_used() {
    in_transit("spoof", true, ["10.1.0.1", "fd01::1"]);
}

#[test]
fn rules_that_cannot_be_made_leave_nothing_behind() {
    if !require(&NEEDS) {
        return;
    }
    let namespace = Namespace::new("halfway");
    let before = state(&namespace);
    let why = namespace.spawn(|| {
        let accept = Some(Accept::Forwarded { to: vec![to("10.0.0.0", 8, None)] });
        let taken = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let held = TcpListener::bind(taken).unwrap();
        let plugs = [
            Plug::Tcp(TcpPlug { accept, ..TcpPlug::default() }),
            Plug::Tcp(TcpPlug { accept: Some(Accept::At(taken)), ..TcpPlug::default() }),
        ];
        let opened = Runtime::open(Box::new(Splice::new()), &plugs, Clock::starting_now());
        drop(held);
        opened.err().unwrap().to_string()
    });
    let why = why.join().unwrap();
    assert!(why.starts_with("cannot open TCP: cannot listen on ") && why.lines().count() == 1, "{why}");
    assert_eq!(state(&namespace), before);
    let bad = namespace.spawn(|| {
        let accept = Some(Accept::Forwarded { to: vec![to("10.0.0.0", 77, None)] });
        let plugs = [Plug::Tcp(TcpPlug { accept, ..TcpPlug::default() })];
        Runtime::open(Box::new(Splice::new()), &plugs, Clock::starting_now()).err().unwrap().to_string()
    });
    let why = bad.join().unwrap();
    assert!(why.starts_with("cannot open TCP: `nft -f -`: ") && why.lines().count() == 1, "{why}");
    assert_eq!(state(&namespace), before);
}
