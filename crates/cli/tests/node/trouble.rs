//! Peers that vanish, return and move, links that break, and strangers.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use crate::carry::{SILENCE, ask, serve};
use crate::lab::{Lab, Node, possible, within};

const HARBOUR: &str = "name: harbour
listen: 192.0.2.1:7400
peers: { island: 192.0.2.2:7400 }
hello: { every: 200 ms }
carry: { packets: { tun: hop0, address: 10.77.0.1/30, routes: [10.20.0.0/16] }, tcp: [10.20.0.0/16] }";
const ISLAND: &str = "name: island
listen: 192.0.2.2:7400
peers: { harbour: 192.0.2.1:7400 }
hello: { every: 200 ms }
carry: { packets: { tun: hop0, address: 10.77.0.2/30 }, tcp: { reach: [10.20.0.0/16] } }";

fn pair(harbour: &str, island: &str) -> (Lab, Node, Node) {
    let lab = Lab::row(&["harbour", "island"]);
    lab.run("island", "ip address add 10.20.0.1/32 dev lo");
    let (harbour, island) = (lab.node("harbour", harbour), lab.node("island", island));
    harbour.is_up();
    island.is_up();
    assert!(pings(&lab));
    (lab, harbour, island)
}

/// Whether a packet gets through the tunnel and back in time.
fn pings(lab: &Lab) -> bool {
    within(Duration::from_secs(15), || lab.attempt("harbour", "ping -q -c 1 -W 1 10.77.0.2").status.success())
}

#[test]
fn a_peer_that_is_killed_and_started_again_is_back_in_seconds() {
    if !possible() {
        return;
    }
    let (lab, mut harbour, mut island) = pair(HARBOUR, ISLAND);
    island.kill();
    harbour.logs("peer `island` is down");
    let island = lab.node("island", ISLAND);
    let started = Instant::now();
    assert!(pings(&lab));
    eprintln!("after a restart the first packet is through in {:?}", started.elapsed());
    harbour.is_up();
    let server = serve(&lab, "island", "10.20.0.1:80", b"yes".to_vec());
    assert_eq!(ask(&lab, "harbour", "10.20.0.1:80", b"still there?".to_vec()).join().unwrap(), b"yes");
    assert_eq!(server.join().unwrap().1, b"still there?");

    // One that takes connections over leaves rules behind when it is killed, which would bring them to nobody.
    harbour.kill();
    island.logs("peer `harbour` is down");
    let harbour = lab.node("harbour", HARBOUR);
    harbour.logs("took away rules that a killed node had left behind");
    harbour.is_up();
    let server = serve(&lab, "island", "10.20.0.1:80", b"yes".to_vec());
    assert_eq!(ask(&lab, "harbour", "10.20.0.1:80", b"and now?".to_vec()).join().unwrap(), b"yes");
    assert_eq!(server.join().unwrap().1, b"and now?");
}

#[test]
fn a_node_that_is_killed_starts_again_every_time() {
    if !possible() {
        return;
    }
    let metrics = format!("{HARBOUR}\nmetrics: 127.0.0.1:9400");
    let (lab, mut harbour, island) = pair(&metrics, ISLAND);
    for round in 0..5 {
        // At once: the kernel is still busy with the one before.
        harbour.signal("KILL");
        let again = lab.node("harbour", &metrics);
        drop(harbour);
        harbour = again;
        harbour.is_up();
        // One for this host's own connections, and one for those in transit.
        let rules = || lab.run("harbour", "nft list tables").matches("table inet hopcast_").count() == 2;
        assert!(within(Duration::from_secs(15), rules), "{}", lab.run("harbour", "nft list tables"));
        let server = serve(&lab, "island", "10.20.0.1:80", b"yes".to_vec());
        let question = format!("round {round}").into_bytes();
        assert_eq!(ask(&lab, "harbour", "10.20.0.1:80", question.clone()).join().unwrap(), b"yes");
        assert_eq!(server.join().unwrap().1, question);
    }
    drop(island);
}

#[test]
fn a_path_that_passes_less_than_full_datagrams_is_found_out_and_carries_them_in_fragments() {
    if !possible() {
        return;
    }
    let lab = Lab::row(&["harbour", "router", "island"]);
    lab.run("router", "sysctl -q net.ipv4.ip_forward=1");
    lab.default_route("harbour", "192.0.2.2");
    lab.default_route("island", "192.0.3.1");
    lab.run("router", "ip link set right mtu 1400");
    lab.run("island", "ip link set left mtu 1400");
    // Nobody is notified.
    lab.run("router", "nft add table ip mute");
    lab.run("router", "nft add chain ip mute out { type filter hook output priority 0 ; }");
    lab.run("router", "nft add rule ip mute out ip protocol icmp drop");
    let started = Instant::now();
    let harbour = lab.node(
        "harbour",
        "name: harbour
listen: 192.0.2.1:7400
peers: { island: 192.0.3.2:7400 }
carry: { packets: { tun: hop0, address: 10.77.0.1/30 } }",
    );
    let island = lab.node(
        "island",
        "name: island
listen: 192.0.3.2:7400
peers: { harbour: 192.0.2.1:7400 }
carry: { packets: { tun: hop0, address: 10.77.0.2/30 } }",
    );
    let line = "datagrams of 1472 bytes do not get to peer `island`, those of IP packets of 1400 do: they may be cut \
                into fragments from now on; give every node of the route `mtu: 1400`";
    harbour.logs(line);
    eprintln!("said {:?} after the start", started.elapsed());
    island.logs("give every node of the route `mtu: 1400`");
    let full = || lab.attempt("harbour", "ping -q -c 1 -W 1 -s 1400 -M do 10.77.0.2").status.success();
    assert!(within(Duration::from_secs(10), full));
    assert!(within(Duration::from_secs(5), || harbour.status().peers[0].path_mtu == Some(1400)));
}

#[test]
fn a_relay_for_packets_alone_has_no_errors_to_log() {
    if !possible() {
        return;
    }
    let lab = Lab::row(&["harbour", "hill", "island"]);
    let harbour = lab.node(
        "harbour",
        "name: harbour
listen: 192.0.2.1:7400
peers: { hill: 192.0.2.2:7400 }
carry: { to: island, packets: { tun: hop0, address: 10.77.0.1/30 } }",
    );
    let hill = lab.node(
        "hill",
        "name: hill
listen: 0.0.0.0:7400
peers: { harbour: 192.0.2.1:7400, island: 192.0.3.2:7400 }
relay: [harbour, island]",
    );
    let island = lab.node(
        "island",
        "name: island
listen: 192.0.3.2:7400
peers: { hill: 192.0.3.1:7400 }
carry: { to: harbour, packets: { tun: hop0, address: 10.77.0.2/30 } }",
    );
    let nodes = [harbour, hill, island];
    nodes.iter().for_each(|node| node.is_up());
    assert!(pings(&lab));
    thread::sleep(Duration::from_secs(3));
    for node in &nodes {
        assert!(!node.log().contains("error: "), "{}", node.log());
    }
}

#[test]
fn a_peer_that_is_stopped_says_so() {
    if !possible() {
        return;
    }
    let (_lab, harbour, mut island) = pair(HARBOUR, ISLAND);
    island.signal("TERM");
    assert_eq!(island.ends(), Some(0));
    harbour.logs("peer `island` was stopped");
}

#[test]
fn a_peer_whose_address_changes_is_followed() {
    if !possible() {
        return;
    }
    let roams = ISLAND.replace("192.0.2.1:7400", "{ address: 192.0.2.1:7400, roams: yes }");
    let (lab, harbour, island) = pair(&HARBOUR.replace("192.0.2.1:7400", "0.0.0.0:7400"), &roams);
    lab.run("harbour", "ip address add 192.0.2.77/24 dev right");
    lab.run("harbour", "ip address del 192.0.2.1/24 dev right");
    // Without its first address a host may have lost the second one too.
    lab.run("harbour", "ip address replace 192.0.2.77/24 dev right");
    island.logs("peer `harbour` has moved from 192.0.2.1:7400 to 192.0.2.77:7400");
    assert!(pings(&lab));
    drop(harbour);
}

#[test]
fn a_link_that_is_gone_for_a_minute_costs_a_connection_only_the_time() {
    if !possible() {
        return;
    }
    let (lab, harbour, island) = pair(HARBOUR, ISLAND);
    let server = serve(&lab, "island", "10.20.0.1:80", vec![7; 100_000]);
    // Some of it is under way as the link goes, and some is written while it is gone.
    let (is_gone, gone) = channel();
    let (connected, is_connected) = channel();
    let client = lab.inside("harbour", move || {
        let mut stream = TcpStream::connect("10.20.0.1:80").unwrap();
        stream.set_read_timeout(Some(SILENCE)).unwrap();
        connected.send(()).unwrap();
        stream.write_all(&[5; 3_000_000]).unwrap();
        gone.recv().unwrap();
        stream.write_all(&[6; 500_000]).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        answer
    });
    is_connected.recv().unwrap();
    thread::sleep(Duration::from_millis(30));
    lab.run("harbour", "ip link set right down");
    harbour.logs("peer `island` is down");
    is_gone.send(()).unwrap();
    thread::sleep(Duration::from_secs(60));
    assert!(!server.is_finished(), "nothing comes through a link that is gone");
    lab.run("harbour", "ip link set right up");
    let started = Instant::now();
    assert_eq!(client.join().unwrap(), vec![7; 100_000]);
    let (_, came) = server.join().unwrap();
    assert!(came == [vec![5; 3_000_000], vec![6; 500_000]].concat(), "{} bytes", came.len());
    eprintln!("after the outage the rest is through in {:?}", started.elapsed());
    assert!(pings(&lab));
    island.logs("peer `harbour` is down");
}

#[test]
fn a_peer_of_another_version_is_not_talked_to() {
    if !possible() {
        return;
    }
    let lab = Lab::row(&["harbour", "island"]);
    let harbour = lab.node("harbour", HARBOUR);
    let other = lab.inside("island", || {
        let socket = UdpSocket::bind("192.0.2.2:7400").unwrap();
        for _ in 0..20 {
            socket.send_to(b"hop\x03\x06islandwhatever this version says", "192.0.2.1:7400").unwrap();
            thread::sleep(Duration::from_millis(20));
        }
    });
    other.join().unwrap();
    let line = "peer `island` speaks version 3, this node 2: not talking to it";
    harbour.logs(line);
    assert_eq!(harbour.log().matches(line).count(), 1);
    assert!(within(Duration::from_secs(5), || harbour.status().peers[0].state == "version"));
    // When it has been corrected, all is well.
    let island = lab.node("island", ISLAND);
    harbour.is_up();
    island.is_up();
    assert!(pings(&lab));
}

#[test]
fn garbage_at_line_rate_stops_nobody() {
    if !possible() {
        return;
    }
    let (lab, harbour, island) = pair(HARBOUR, ISLAND);
    let over = Arc::new(AtomicBool::new(false));
    let flood = {
        let over = Arc::clone(&over);
        lab.inside("island", move || {
            let socket = UdpSocket::bind("192.0.2.2:0").unwrap();
            let starts: [&[u8]; 6] =
                [b"hop\x02\x06island", b"hop\x02\x07harbour", b"\x80\xB2", b"\xC0\xB2", b"", b"hop\xFF"];
            let mut sent = 0_u64;
            while !over.load(Ordering::Relaxed) {
                let mut garbage = starts[sent as usize % starts.len()].to_vec();
                garbage.resize(64 + sent as usize * 7 % 1000, sent as u8);
                // A full buffer is the flood's own affair.
                let _ = socket.send_to(&garbage, "192.0.2.1:7400");
                sent += 1;
            }
            sent
        })
    };
    let started = Instant::now();
    let mut answers = 0;
    while started.elapsed() < Duration::from_secs(3) {
        assert_eq!(harbour.status().node, "harbour");
        answers += 1;
        thread::sleep(Duration::from_millis(50));
    }
    let through = lab.attempt("harbour", "ping -q -c 5 -i 0.1 -W 2 10.77.0.2");
    over.store(true, Ordering::Relaxed);
    let sent = flood.join().unwrap();
    let status = harbour.status();
    eprintln!(
        "{sent} datagrams of garbage in {:?}, {answers} answers, {:?}, {}",
        started.elapsed(),
        status.dropped,
        String::from_utf8_lossy(&through.stdout)
    );
    assert!(status.dropped.values().sum::<u64>() > 1000, "{:?}", status.dropped);
    assert!(pings(&lab));
    assert_eq!(harbour.status().peers[0].state, "up");
    // Not a line for each.
    assert!(harbour.log().lines().count() < 12, "{}", harbour.log());
    drop(island);
}
