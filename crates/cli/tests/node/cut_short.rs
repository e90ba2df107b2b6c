//! TCP connections whose site is killed: they end with a reset, in bounded time, and never as if all
//! had come.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::carry::SILENCE;
use crate::lab::{Lab, Node, possible, within};

/// The far site is behind a relay, so that no hello reports it.
const HARBOUR: &str = "name: harbour
listen: 192.0.2.1:7400
peers: { hill: 192.0.2.2:7400 }
hello: { every: 200 ms }
carry:
  to: island
  packets: { tun: hop0, address: 10.77.0.1/30, routes: [10.20.0.0/16] }
  tcp: { take: [10.20.0.0/16], over: { brtp: { stream-timeout: 6 s } } }";
const HILL: &str = "name: hill
listen: 0.0.0.0:7400
peers: { harbour: 192.0.2.1:7400, island: 192.0.3.2:7400 }
hello: { every: 200 ms }
relay: [harbour, island]";
const ISLAND: &str = "name: island
listen: 192.0.3.2:7400
peers: { hill: 192.0.3.1:7400 }
hello: { every: 200 ms }
carry:
  to: harbour
  packets: { tun: hop0, address: 10.77.0.2/30 }
  tcp: { reach: [10.20.0.0/16] }";

const DOWNLOADS: usize = 10;
/// Bytes that every download brings at once; each second one then waits for more, the others go on for ever.
const FIRST: usize = 50_000;
/// Time that a slow machine may take besides the times that are stated.
const SLOW: Duration = Duration::from_secs(20);

/// End that a connection had.
type Ending = Result<usize, ErrorKind>;

fn row() -> (Lab, [Node; 3]) {
    let lab = Lab::row(&["harbour", "hill", "island"]);
    lab.run("island", "ip address add 10.20.0.1/32 dev lo");
    let nodes = [lab.node("harbour", HARBOUR), lab.node("hill", HILL), lab.node("island", ISLAND)];
    nodes.iter().for_each(|node| node.is_up());
    (lab, nodes)
}

/// A server that sends without an end, on every second connection after a while nothing more.
fn serve(lab: &Lab) -> JoinHandle<()> {
    let (ready, is_ready) = std::sync::mpsc::channel();
    let server = lab.inside("island", move || {
        let listener = TcpListener::bind("10.20.0.1:80").unwrap();
        ready.send(()).unwrap();
        for number in 0..DOWNLOADS {
            let (mut stream, _) = listener.accept().unwrap();
            thread::spawn(move || {
                stream.write_all(&[7; FIRST]).unwrap();
                if number % 2 == 0 {
                    let _ = stream.read(&mut [0]);
                } else {
                    while stream.write_all(&[7; 10_000]).is_ok() {}
                }
            });
        }
    });
    is_ready.recv().unwrap();
    server
}

/// Downloads that have begun.
fn downloads(lab: &Lab) -> Vec<JoinHandle<Ending>> {
    let begun = Arc::new(AtomicUsize::new(0));
    let clients = (0..DOWNLOADS).map(|_| {
        let begun = Arc::clone(&begun);
        lab.inside("harbour", move || {
            let mut stream = TcpStream::connect("10.20.0.1:80").unwrap();
            stream.set_read_timeout(Some(SILENCE)).unwrap();
            let (mut came, mut piece) = (0, vec![0; 10_000]);
            loop {
                let len = match stream.read(&mut piece) {
                    Ok(0) => return Ok(came),
                    Ok(len) => len,
                    Err(error) => return Err(error.kind()),
                };
                assert!(piece[..len].iter().all(|&byte| byte == 7));
                if came < FIRST && came + len >= FIRST {
                    begun.fetch_add(1, Ordering::Relaxed);
                }
                came += len;
            }
        })
    });
    let clients: Vec<_> = clients.collect();
    assert!(within(SLOW * 2, || begun.load(Ordering::Relaxed) == DOWNLOADS), "{begun:?} have begun");
    clients
}

fn assert_reset(clients: Vec<JoinHandle<Ending>>, after: Duration) {
    let begun = Instant::now();
    let over = || clients.iter().all(JoinHandle::is_finished);
    assert!(within(after + SLOW, over), "{} hang", clients.iter().filter(|it| !it.is_finished()).count());
    eprintln!("all are over after {:?}", begun.elapsed());
    let endings: Vec<_> = clients.into_iter().map(|client| client.join().unwrap()).collect();
    assert_eq!(endings, [Err(ErrorKind::ConnectionReset); DOWNLOADS]);
}

#[test]
fn downloads_are_reset_when_the_far_site_is_killed_and_started_anew() {
    if !possible() {
        return;
    }
    let (lab, [harbour, hill, mut island]) = row();
    for _ in 0..2 {
        let (server, clients) = (serve(&lab), downloads(&lab));
        island.kill();
        island = lab.node("island", ISLAND);
        // Who waits asks every second.
        assert_reset(clients, Duration::from_secs(2));
        server.join().unwrap();
        island.is_up();
        hill.is_up();
    }
    harbour.logs("the far site was started anew");
    // And not because nothing came of it.
    assert!(!harbour.log().contains("too long"), "{}", harbour.log());
}

#[test]
fn downloads_are_reset_when_the_far_site_is_killed_and_stays_away() {
    if !possible() {
        return;
    }
    let (lab, [harbour, _hill, mut island]) = row();
    let (_server, clients) = (serve(&lab), downloads(&lab));
    island.kill();
    assert_reset(clients, Duration::from_secs(6));
    harbour.logs("nothing has come from the far site for too long");
}

#[test]
fn what_a_site_carries_ends_with_a_reset_when_it_is_killed() {
    if !possible() {
        return;
    }
    let (lab, [mut harbour, _hill, mut island]) = row();
    // An upload that is cut short does not look complete to the server,
    let (connected, is_connected) = std::sync::mpsc::channel();
    let server = lab.inside("island", move || {
        let listener = TcpListener::bind("10.20.0.1:81").unwrap();
        connected.send(()).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; FIRST]).unwrap();
        connected.send(()).unwrap();
        stream.read_to_end(&mut Vec::new()).map_err(|error| error.kind())
    });
    is_connected.recv().unwrap();
    let upload = lab.inside("harbour", || {
        let mut stream = TcpStream::connect("10.20.0.1:81").unwrap();
        stream.set_read_timeout(Some(SILENCE)).unwrap();
        stream.write_all(&[7; FIRST]).unwrap();
        stream.read(&mut [0]).map_err(|error| error.kind())
    });
    is_connected.recv().unwrap();
    island.kill();
    assert_eq!(server.join().unwrap(), Err(ErrorKind::ConnectionReset));
    let _island = lab.node("island", ISLAND);
    assert_eq!(upload.join().unwrap(), Err(ErrorKind::ConnectionReset));

    // nor a download to the client.
    let (_server, clients) = (serve(&lab), downloads(&lab));
    harbour.kill();
    assert_reset(clients, Duration::ZERO);
}

#[test]
fn what_a_site_cuts_short_as_it_stops_is_reset_at_the_other_one_too() {
    if !possible() {
        return;
    }
    let (lab, [harbour, _hill, mut island]) = row();
    let (_server, clients) = (serve(&lab), downloads(&lab));
    island.signal("TERM");
    assert_eq!(island.ends(), Some(0));
    // Before it would have been missed.
    assert_reset(clients, Duration::ZERO);
    assert!(!harbour.log().contains("too long"), "{}", harbour.log());
}
