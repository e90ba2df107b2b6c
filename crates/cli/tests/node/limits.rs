//! Too many connections, servers that do not answer, and readers that stall.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use crate::carry::{ask, serve};
use crate::lab::{Lab, Node, possible, within};

fn pair(tcp: &str, more: &str) -> (Lab, Node, Node) {
    let lab = Lab::row(&["harbour", "island"]);
    lab.run("harbour", "ip route add 10.20.0.0/16 via 192.0.2.2");
    lab.run("island", "ip address add 10.20.0.1/32 dev lo");
    let harbour = format!(
        "name: harbour
listen: 192.0.2.1:7400
peers: {{ island: 192.0.2.2:7400 }}
carry: {{ tcp: {{ take: [10.20.0.0/16], {tcp} }} }}
{more}"
    );
    let island = format!(
        "name: island
listen: 192.0.2.2:7400
peers: {{ harbour: 192.0.2.1:7400 }}
carry: {{ tcp: {{ reach: [10.20.0.0/16], {tcp} }} }}
{more}"
    );
    let (harbour, island) = (lab.node("harbour", &harbour), lab.node("island", &island));
    harbour.is_up();
    island.is_up();
    (lab, harbour, island)
}

#[test]
fn a_server_that_is_gone_holds_some_connections_for_some_time_and_others_are_served() {
    if !possible() {
        return;
    }
    let (lab, harbour, island) = pair("streams: 40, per-source: 40, connect-timeout: 4 s", "");
    // Whoever writes to it hears nothing.
    lab.run("island", "ip route add 10.20.9.9/32 dev left");
    lab.run("island", "nft add table ip mute");
    lab.run("island", "nft add chain ip mute out { type filter hook output priority 0 ; }");
    lab.run("island", "nft add rule ip mute out ip daddr 10.20.9.9 drop");
    let started = Instant::now();
    let waiting = lab.inside("harbour", move || {
        let connect = |_| {
            let stream = TcpStream::connect("10.20.9.9:80").unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            stream
        };
        let mut streams: Vec<_> = (0..30).map(connect).collect();
        // Each is reset: those that are too many at once, the others after the timeout.
        let read = |stream: &mut TcpStream| {
            let read = stream.read(&mut [0; 1]);
            assert!(read.as_ref().map_or(true, |&len| len == 0), "{read:?}");
        };
        streams.iter_mut().for_each(read);
        started.elapsed()
    });
    let server = serve(&lab, "island", "10.20.0.1:80", b"yes".to_vec());
    assert_eq!(ask(&lab, "harbour", "10.20.0.1:80", b"you?".to_vec()).join().unwrap(), b"yes");
    server.join().unwrap();
    let took = waiting.join().unwrap();
    eprintln!("all 30 were reset after {took:?}");
    assert!(took >= Duration::from_secs(4));
    island.logs("too many wait for a server that does not answer");
    island.logs("connections were reset: their server did not answer within `connect-timeout`");
    let counted = || {
        let status = island.status();
        let refused = status.carriers[0].count("connections_refused_unanswered");
        (refused, status.sockets["socket_streams_timed_out"])
    };
    assert!(within(Duration::from_secs(5), || counted() == (20, 10)), "{:?}", counted());
    assert!(within(Duration::from_secs(5), || harbour.status().carriers[0].connections == 0));
}

#[test]
fn as_many_connections_as_allowed_are_carried_and_one_more_is_refused_aloud() {
    if !possible() {
        return;
    }
    let (lab, harbour, _island) = pair("streams: 80, per-source: 10", "");
    let listener = lab.inside("island", || TcpListener::bind("10.20.0.1:80").unwrap()).join().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || stream.read_to_end(&mut Vec::new()));
        }
    });
    let mut streams = lab
        .inside("harbour", || {
            (0..12).map(|_| TcpStream::connect("10.20.0.1:80").unwrap()).collect::<Vec<_>>()
        })
        .join()
        .unwrap();
    harbour.logs("as many as `per-source` allows");
    let carried = |count| move |node: &Node| node.status().carriers[0].connections == count;
    assert!(within(Duration::from_secs(5), || carried(10)(&harbour)), "{:?}", harbour.status().carriers[0]);
    // When one ends there is room again.
    drop(streams.remove(0));
    assert!(within(Duration::from_secs(10), || carried(9)(&harbour)), "{:?}", harbour.status().carriers[0]);
}

/// Starts `readers` readers that ask for all there is and read none of it, and returns what the processes of the two
/// sites take meanwhile.
fn stalled(lab: &Lab, nodes: [&Node; 2], readers: usize) -> (Vec<TcpStream>, u64) {
    const EACH: usize = 4 << 20;
    // The kernel's own part is small, so that it is the node that has to wait.
    let small = "net.ipv4.tcp_rmem=4096\t8192\t8192";
    lab.command("harbour", &["sysctl", "-q", small]);
    let listener = lab.inside("island", || TcpListener::bind("10.20.0.1:80").unwrap()).join().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            // It is cut short in the end.
            let write = move || drop(stream.write_all(&vec![7; EACH]));
            thread::Builder::new().stack_size(64 << 10).spawn(write).unwrap();
        }
    });
    let streams = lab
        .inside("harbour", move || {
            (0..readers).map(|_| TcpStream::connect("10.20.0.1:80").unwrap()).collect::<Vec<_>>()
        })
        .join()
        .unwrap();
    let resident = || nodes.map(Node::resident).into_iter().max().unwrap();
    let mut peak = 0;
    let (mut before, mut since) = (0, Instant::now());
    // Until no more comes than what a site says that is asked each second whether it is still there.
    assert!(within(Duration::from_secs(120), || {
        peak = peak.max(resident());
        let came = nodes[0].status().carriers[0].count("symbols_delivered");
        // About 1,400 bytes each, of 300 readers.
        if came > before + 40 {
            (before, since) = (came, Instant::now());
        }
        since.elapsed() > Duration::from_secs(4)
    }));
    (streams, peak)
}

#[test]
fn readers_that_stall_take_no_more_than_the_memory_there_is() {
    if !possible() {
        return;
    }
    let memory = 96_u64 << 20;
    let (lab, harbour, island) = pair("per-source: 400", "memory: 96 MiB");
    let (streams, peak) = stalled(&lab, [&harbour, &island], 300);
    let held = || harbour.status().sockets["streams_held_bytes"];
    let held_before = held();
    eprintln!("300 readers that stall: {} MiB resident, {} MiB held", peak >> 20, held_before >> 20);
    // Readers have a quarter, of which one source has a quarter; each begins with a 1,024th of it however little is
    // left.
    assert!((1 << 20..=memory / 16 + 300 * (memory / 4 / 1024)).contains(&held_before), "{held_before}");
    // The program itself takes some.
    assert!(peak < memory + (48 << 20), "{peak}");
    // And others are served while they stall.
    let server = serve(&lab, "island", "10.20.0.1:81", vec![5; 300_000]);
    let answer = ask(&lab, "harbour", "10.20.0.1:81", b"you?".to_vec()).join().unwrap();
    assert_eq!(answer.len(), 300_000);
    server.join().unwrap();
    assert!(held() >= held_before / 2, "{} of {held_before}", held());
    drop(streams);
    assert!(within(Duration::from_secs(20), || held() == 0), "{}", held());
}
