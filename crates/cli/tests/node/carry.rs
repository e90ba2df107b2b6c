//! Packets and TCP connections arrive whole, over one hop and over many, at any loss.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::lab::{Lab, possible, within};

/// Bytes that say where they belong.
fn pattern(len: usize, key: u64) -> Vec<u8> {
    (0..len as u64).map(|i| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15 ^ key) >> 56) as u8).collect()
}

/// Maximum silence of a connection that works: longer than any outage of the tests.
pub(crate) const SILENCE: Duration = Duration::from_secs(100);

/// A plain server that reads everything, then answers with as much of its own; says who it was and what came.
pub(crate) fn serve(lab: &Lab, host: &str, at: &str, answer: Vec<u8>) -> JoinHandle<(SocketAddr, Vec<u8>)> {
    let at: SocketAddr = at.parse().unwrap();
    let (ready, is_ready) = std::sync::mpsc::channel();
    let server = lab.inside(host, move || {
        let listener = TcpListener::bind(at).unwrap();
        ready.send(()).unwrap();
        let (mut stream, from) = listener.accept().unwrap();
        stream.set_read_timeout(Some(SILENCE)).unwrap();
        let mut came = Vec::new();
        stream.read_to_end(&mut came).unwrap();
        stream.write_all(&answer).unwrap();
        (from, came)
    });
    is_ready.recv().unwrap();
    server
}

/// A plain client that writes everything, ends its side, and reads the answer.
pub(crate) fn ask(lab: &Lab, host: &str, to: &str, question: Vec<u8>) -> JoinHandle<Vec<u8>> {
    let to: SocketAddr = to.parse().unwrap();
    lab.inside(host, move || {
        let mut stream = TcpStream::connect(to).unwrap();
        stream.set_read_timeout(Some(SILENCE)).unwrap();
        stream.write_all(&question).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        answer
    })
}

#[test]
fn connections_in_transit_cross_a_lossy_link_and_neither_end_knows() {
    if !possible() {
        return;
    }
    let lab = Lab::row(&["client", "harbour", "island", "server"]);
    lab.lose("harbour", 10);
    lab.lose("island", 10);
    lab.default_route("client", "192.0.2.2");
    lab.default_route("server", "192.0.4.1");
    for host in ["harbour", "island"] {
        lab.run(host, "sysctl -q net.ipv4.ip_forward=1");
    }
    let harbour = lab.node(
        "harbour",
        "name: harbour
listen: 192.0.3.1:7400
peers: { island: 192.0.3.2:7400 }
carry: { tcp: { take: [192.0.4.0/24 port 80], source: client } }",
    );
    let island = lab.node(
        "island",
        "name: island
listen: 192.0.3.2:7400
peers: { harbour: 192.0.3.1:7400 }
carry: { tcp: { reach: [192.0.4.0/24 port 80], source: client } }",
    );
    harbour.is_up();
    let (question, answer) = (pattern(1_000_000, 1), pattern(700_000, 2));
    let server = serve(&lab, "server", "192.0.4.2:80", answer.clone());
    let client = ask(&lab, "client", "192.0.4.2:80", question.clone());
    assert!(client.join().unwrap() == answer, "the answer came as it was sent");
    let (from, came) = server.join().unwrap();
    assert!(came == question, "the question came as it was sent");
    assert_eq!(from.ip().to_string(), "192.0.2.1", "the server sees the client");
    let told = || {
        let carrier = &harbour.status().carriers[0];
        carrier.count("connections_taken") == 1 && carrier.count("packets_repair") > 0
    };
    assert!(within(Duration::from_secs(5), told), "{:?}", harbour.status().carriers[0]);
    drop(island);
}

#[test]
fn a_connection_to_where_the_far_site_may_not_go_is_refused() {
    if !possible() {
        return;
    }
    let lab = Lab::row(&["harbour", "island"]);
    lab.run("harbour", "ip route add 10.20.0.0/16 via 192.0.2.2");
    lab.run("island", "ip address add 10.20.0.1/32 dev lo");
    let config = "name: harbour
listen: 192.0.2.1:7400
peers: { island: 192.0.2.2:7400 }
carry: { tcp: [10.20.0.0/16] }";
    let harbour = lab.node("harbour", config);
    let island = lab.node(
        "island",
        "name: island
listen: 192.0.2.2:7400
peers: { harbour: 192.0.2.1:7400 }
carry: { tcp: { reach: [10.20.0.0/16 port 80] } }",
    );
    harbour.is_up();
    let client = lab.inside("harbour", || {
        let mut stream = TcpStream::connect("10.20.0.1:22").unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.read(&mut [0; 1]).map(|length| length > 0).unwrap_or(false)
    });
    assert!(!client.join().unwrap());
    island.logs("not in `reach`");
    assert_eq!(island.status().carriers[0].count("connections_reached"), 0);
}

#[test]
fn packets_and_connections_cross_three_lossy_hops_over_relays_that_recode() {
    if !possible() {
        return;
    }
    let lab = Lab::row(&["harbour", "hill", "mast", "island"]);
    for host in ["harbour", "hill", "mast", "island"] {
        lab.lose(host, 10);
    }
    lab.run("island", "ip address add 10.20.0.1/32 dev lo");
    let nodes = [
        lab.node(
            "harbour",
            "name: harbour
listen: 192.0.2.1:7400
peers: { hill: 192.0.2.2:7400 }
carry:
  to: island
  packets: { tun: hop0, address: 10.77.0.1/30, routes: [10.20.0.0/16] }
  tcp: [10.20.0.0/16]
metrics: 127.0.0.1:9400",
        ),
        lab.node(
            "hill",
            "name: hill
listen: 0.0.0.0:7400
peers: { harbour: 192.0.2.1:7400, mast: 192.0.3.2:7400 }
relay: [harbour, mast]",
        ),
        lab.node(
            "mast",
            "name: mast
listen: 0.0.0.0:7400
peers: { hill: 192.0.3.1:7400, island: 192.0.4.2:7400 }
relay: [hill, island]",
        ),
        lab.node(
            "island",
            "name: island
listen: 192.0.4.2:7400
peers: { mast: 192.0.4.1:7400 }
carry:
  to: harbour
  packets: { tun: hop0, address: 10.77.0.2/30 }
  tcp: { reach: [10.20.0.0/16] }",
        ),
    ];
    nodes.iter().for_each(|node| node.is_up());
    // One round trip is six lossy hops: without the repairs half of them would be lost.
    let ping = lab.run("harbour", "ping -q -c 40 -i 0.05 -W 2 10.77.0.2");
    let received: u32 = ping.split(" received").next().unwrap().rsplit(' ').next().unwrap().parse().unwrap();
    assert!(received >= 38, "{ping}");
    let (question, answer) = (pattern(1_000_000, 3), pattern(300_000, 4));
    let server = serve(&lab, "island", "10.20.0.1:80", answer.clone());
    let client = ask(&lab, "harbour", "10.20.0.1:80", question.clone());
    assert!(client.join().unwrap() == answer);
    assert!(server.join().unwrap().1 == question);
    let recoded = |place: usize| {
        nodes[place].status().carriers.iter().map(|carrier| carrier.count("packets_recoded")).sum::<u64>()
    };
    assert!(within(Duration::from_secs(5), || recoded(1) > 0 && recoded(2) > 0), "relays make combinations");
    let page = lab.inside("harbour", || {
        let mut stream = TcpStream::connect("127.0.0.1:9400").unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut page = String::new();
        stream.read_to_string(&mut page).unwrap();
        page
    });
    let page = page.join().unwrap();
    assert!(page.contains("hopcast_peer_up{peer=\"hill\"} 1"), "{page}");
    assert!(
        page.contains(
            "hopcast_carrier_connections_taken_total{carrier=\"island\",via=\"hill\",carries=\"tcp\""
        ),
        "{page}"
    );
}
