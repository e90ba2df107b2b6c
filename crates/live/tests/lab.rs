//! Networks on the kernel: what is set up works as the twin's does, and goes away again.

#![allow(clippy::unwrap_used)]

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration as Span;

use common::{Running, Shared, captured, ms, networks_can_be_set_up, one_way, pause, whole_run};
use hopcast_core::Duration;
use hopcast_link::Direction;
use hopcast_live::lab::Lab;
use hopcast_live::layout::{
    InterfaceLayout, LinkLayout, NetworkLayout, NodeRoutes, Reroute, RouteLayout, Scheduled,
};
use hopcast_live::{leftovers, network};
use hopcast_runner::load_text;
use hopcast_twin::scenario::Overrides;
use pcap_file::pcapng::{Block, PcapNgReader};

fn chain(hops: usize) -> NetworkLayout {
    NetworkLayout::chain((0..hops).map(|_| one_way(&Direction::default())), 1500)
}

fn namespaces(id: &str) -> Vec<String> {
    let all = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let names = all.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.starts_with(&format!("hopcast-{id}-"))).collect()
}

#[test]
fn nodes_reach_one_another_over_others_by_their_own_addresses() {
    if !networks_can_be_set_up() {
        return;
    }
    let net = Running::start(chain(3), Vec::new(), whole_run());
    for (from, to) in [("10.0.0.1", "10.0.0.4"), ("fd00::1", "fd00::4")] {
        let (from, to): (IpAddr, IpAddr) = (from.parse().unwrap(), to.parse().unwrap());
        let receiver = net.lab.enter(3, || UdpSocket::bind((to, 9000)).unwrap()).unwrap();
        let unspecified: IpAddr = if to.is_ipv4() { [0; 4].into() } else { [0u16; 8].into() };
        let sender = net.lab.enter(0, || UdpSocket::bind((unspecified, 0)).unwrap()).unwrap();
        receiver.set_read_timeout(Some(Span::from_secs(10))).unwrap();
        sender.send_to(b"over three links", (to, 9000)).unwrap();
        let mut buffer = [0; 64];
        let (length, source) = receiver.recv_from(&mut buffer).unwrap();
        assert_eq!((&buffer[..length], source.ip()), (&b"over three links"[..], from));
    }
    let report = net.finish();
    let carried: Vec<_> =
        report.links.iter().map(|directions| directions[0].closed.delivered_packets).collect();
    assert_eq!(carried, [2, 2, 2]);
}

#[test]
fn the_kernel_has_one_connected_route_for_a_prefix_and_one_over_the_router() {
    if !networks_can_be_set_up() {
        return;
    }
    let text = "title: t
duration: 9s
topology:
  nodes: [a, b, r, c]
  links:
    - { switch: [a, b, r], prefix: [10.7.0.0/24, \"fd07::/64\"] }
    - { between: [r, c], prefix: 10.8.0.0/30 }
flows: [{ name: f, from: a, to: c, over: udp, app: { cbr: { rate: 1 Mbit/s } } }]
";
    let plan = load_text(Path::new("t.yaml"), text, &Overrides::default()).unwrap();
    let layout = network::layout(&plan.cases[0].scenario, 0, false);
    let net = Running::start(layout, Vec::new(), whole_run());
    let routes = |node| {
        let ip = || Command::new("ip").args(["route"]).output().unwrap();
        String::from_utf8(net.lab.enter(node, ip).unwrap().stdout).unwrap()
    };
    let prefixes = |node| {
        let lines: Vec<String> =
            routes(node).lines().filter(|line| line.contains('/')).map(str::to_owned).collect();
        lines
            .into_iter()
            .filter(|line| !line.starts_with("224."))
            .map(|line| line.trim().to_owned())
            .collect::<Vec<_>>()
    };
    let expected = [
        "10.7.0.0/24 dev eth0 scope link src 10.7.0.1",
        "10.8.0.0/30 via 10.7.0.3 dev eth0 src 10.7.0.1 onlink",
    ];
    assert_eq!(prefixes(0), expected);
    let single = |line: &str| line.starts_with("10.7.0.") && !line.starts_with("10.7.0.0/24");
    assert!(!routes(0).lines().any(single), "a host of the prefix needs no route of its own: {}", routes(0));
    assert_eq!(prefixes(3)[0], "10.7.0.0/24 via 10.8.0.1 dev eth0 src 10.8.0.2 onlink");
    let receiver = net.lab.enter(3, || UdpSocket::bind("10.8.0.2:9000").unwrap()).unwrap();
    receiver.set_read_timeout(Some(Span::from_secs(10))).unwrap();
    let sender = net.lab.enter(1, || UdpSocket::bind("0.0.0.0:0").unwrap()).unwrap();
    sender.send_to(b"over the router", "10.8.0.2:9000").unwrap();
    let mut buffer = [0; 64];
    let (length, source) = receiver.recv_from(&mut buffer).unwrap();
    assert_eq!((&buffer[..length], source.ip().to_string().as_str()), (&b"over the router"[..], "10.7.0.2"));
    net.finish();
}

#[test]
fn what_links_see_are_single_frames_with_right_checksums_and_nothing_unasked() {
    if !networks_can_be_set_up() {
        return;
    }
    const SIZE: usize = 3_000_000;
    let file = Shared::default();
    let (net, writer) = captured(&Direction::default(), file.clone());
    // Whatever hosts send by themselves they have sent by then.
    pause(ms(1500));
    let listener = net.lab.enter(1, || TcpListener::bind("10.0.0.2:80").unwrap()).unwrap();
    let server = std::thread::spawn(move || {
        let mut received = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut received).unwrap();
        received.len()
    });
    let mut client = net.lab.enter(0, || TcpStream::connect("10.0.0.2:80").unwrap()).unwrap();
    client.write_all(&vec![0x5a; SIZE]).unwrap();
    drop(client);
    assert_eq!(server.join().unwrap(), SIZE);
    net.finish();
    writer.finish().unwrap();

    let bytes = file.0.lock().unwrap().clone();
    let mut reader = PcapNgReader::new(&bytes[..]).unwrap();
    let mut frames = 0;
    while let Some(block) = reader.next_block() {
        let Block::EnhancedPacket(packet) = block.unwrap() else { continue };
        let frame = &packet.data;
        assert!(frame.len() <= 1514, "{} bytes", frame.len());
        assert_eq!(frame[12..14], [8, 0], "something that is not IPv4: {frame:02x?}");
        let ip = &frame[14..];
        let (header, length) = (usize::from(ip[0] & 15) * 4, usize::from(u16::from_be_bytes([ip[2], ip[3]])));
        assert_eq!((ip[9], length), (6, ip.len()), "something that is not TCP: {frame:02x?}");
        assert_eq!(ones_complement(&ip[..header], 0), 0xffff);
        // Addresses, protocol and length, then the segment.
        let pseudo = ones_complement(&ip[12..20], 6 + (length - header) as u32);
        assert_eq!(ones_complement(&ip[header..], pseudo.into()), 0xffff);
        frames += 1;
    }
    assert!(frames > 2 * SIZE / 1460, "{frames} frames");
}

/// RFC 1071.
fn ones_complement(bytes: &[u8], start: u32) -> u16 {
    let words = bytes.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0)));
    let mut sum = words.sum::<u32>() + start;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[test]
fn new_routes_take_effect_at_once() {
    if !networks_can_be_set_up() {
        return;
    }
    // A second link beside the first one.
    let mut layout = chain(1);
    let macs = [[2, 0, 0, 0, 1, 0], [2, 1, 0, 0, 1, 0]];
    for (attachment, mac) in macs.into_iter().enumerate() {
        layout.nodes[attachment].interfaces.push(InterfaceLayout {
            link: 1,
            attachment,
            mac,
            mtu: 1500,
            ..InterfaceLayout::default()
        });
    }
    let model = one_way(&Direction::default());
    layout.links.push(LinkLayout {
        name: "second".to_owned(),
        model,
        ends: vec![(0, 1), (1, 1)],
        captured: vec![None; 2],
    });
    let over_the_second: Vec<RouteLayout> = layout.nodes[0]
        .routes
        .iter()
        .filter(|route| route.to.first().is_ipv4())
        .map(|route| RouteLayout { interface: 1, via_mac: Some(macs[1]), ..*route })
        .collect();
    let net = Running::start(layout, Vec::new(), whole_run());
    assert_eq!(net.send(3, 100, ms(1)).len(), 3);
    let tables = NodeRoutes { routes: over_the_second, groups: Vec::new() };
    let reroute = Reroute { node: 0, tables: Some(tables), mtus: vec![(1, 1400)] };
    let soon = net.clock.now() + ms(100);
    let rerouter = net.lab.reroute_on_time(vec![Scheduled { at: soon, what: reroute }], net.clock).unwrap();
    let routes = || Command::new("ip").args(["route", "get", "10.0.0.2"]).output().unwrap();
    let changed = || String::from_utf8_lossy(&net.lab.enter(0, routes).unwrap().stdout).contains("eth1");
    let mut looks = 0;
    while !changed() && looks < 1000 {
        pause(ms(10));
        looks += 1;
    }
    let late = rerouter.finish().unwrap();
    assert!(late > Duration::ZERO && late < net.clock.now().since(soon), "{late}");
    assert_eq!(net.send(5, 100, ms(1)).len(), 5);
    let link = || Command::new("ip").args(["link", "show", "eth1"]).output().unwrap();
    let shown = net.lab.enter(0, link).unwrap().stdout;
    assert!(String::from_utf8_lossy(&shown).contains(" mtu 1400 "));
    net.lab.reroute(0, &[]).unwrap();
    let nowhere =
        net.lab.enter(0, || UdpSocket::bind("0.0.0.0:0").unwrap().send_to(b"", "10.0.0.2:9000")).unwrap();
    assert!(nowhere.is_err());
    let report = net.finish();
    let carried: Vec<_> =
        report.links.iter().map(|directions| directions[0].closed.delivered_packets).collect();
    assert_eq!(carried, [3, 5]);
}

#[test]
fn a_lab_takes_its_programs_and_namespaces_with_it() {
    if !networks_can_be_set_up() {
        return;
    }
    let id = Lab::fresh_id();
    let lab = Lab::set_up(&chain(1), &id).unwrap();
    assert_eq!(namespaces(&id).len(), 2);
    let mut command = lab.command(1, "sleep");
    command.arg("1000");
    let mut program = lab.start(command).unwrap();
    assert!(program.try_wait().unwrap().is_none());
    drop(lab);
    let status = program.wait().unwrap();
    assert!(!status.success(), "{status}");
    assert_eq!(namespaces(&id), Vec::<String>::new());
}

/// Between its start and its first step into the node, nothing of a program says whose it is.
#[test]
fn a_program_that_is_only_just_started_ends_with_its_lab_too() {
    if !networks_can_be_set_up() {
        return;
    }
    for pause in [0, 100, 200, 400, 800, 1600] {
        let lab = Lab::set_up(&chain(1), &Lab::fresh_id()).unwrap();
        let mut command = lab.command(1, "sleep");
        command.arg("1000");
        let mut program = lab.start(command).unwrap();
        std::thread::park_timeout(std::time::Duration::from_micros(pause));
        drop(lab);
        assert!(program.try_wait().unwrap().is_some(), "after {pause} us");
    }
}

#[test]
fn somebody_elses_namespace_is_an_error_and_is_left_alone() {
    if !networks_can_be_set_up() {
        return;
    }
    let id = Lab::fresh_id();
    let name = format!("hopcast-{id}-n1");
    assert!(Command::new("ip").args(["netns", "add", &name]).status().unwrap().success());
    let error = Lab::set_up(&chain(1), &id).err().unwrap();
    let left = namespaces(&id);
    assert!(Command::new("ip").args(["netns", "del", &name]).status().unwrap().success());
    assert_eq!(error.to_string(), format!("there is a network namespace `{name}` already, not this lab's"));
    assert_eq!(left, [name]);
}

/// A link that joins nothing leaves nothing behind.
#[test]
fn what_cannot_be_set_up_leaves_nothing() {
    if !networks_can_be_set_up() {
        return;
    }
    let id = Lab::fresh_id();
    let mut layout = chain(1);
    layout.nodes[1].routes[0].interface = 9;
    let error = Lab::set_up(&layout, &id).err().unwrap().to_string();
    assert!(
        error.starts_with("node `n1`: `ip ") && error.contains("eth9") && !error.contains('\n'),
        "{error}"
    );
    assert_eq!(namespaces(&id), Vec::<String>::new());
    assert!(!Path::new(&format!("/run/hopcast-labs/{id}.json")).exists());
}

#[test]
fn what_a_killed_owner_leaves_is_found_and_removed_and_a_living_owners_is_not() {
    if !networks_can_be_set_up() {
        return;
    }
    let this = std::env::current_exe().unwrap();
    let arguments = ["--exact", "an_owner_to_be_killed", "--ignored", "--nocapture"];
    let mut owner = Command::new(this).args(arguments).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(owner.stdout.take().unwrap()).lines().map_while(Result::ok);
    let said = lines.find_map(|line| Some(line.split_once("lab ")?.1.to_owned())).unwrap();
    let (id, program) = said.split_once(" program ").unwrap();
    let program = Path::new("/proc").join(program);

    let found =
        || leftovers::find().unwrap().iter().any(|left| left.namespaces().any(|name| name.contains(id)));
    let before = (found(), namespaces(id).len());
    owner.kill().unwrap();
    owner.wait().unwrap();
    assert_eq!(before, (false, 2));
    assert!(found());
    let done = leftovers::clean().unwrap();
    assert_eq!(done.iter().filter(|line| line.contains(id)).count(), 3, "{done:?}");
    assert_eq!(namespaces(id), Vec::<String>::new());
    assert!(!found());
    // It may not have been waited for yet.
    let state = std::fs::read_to_string(program.join("stat")).unwrap_or_default();
    assert!(state.is_empty() || state.contains(") Z "), "{state}");
}

#[test]
#[ignore = "a process for the test above"]
fn an_owner_to_be_killed() {
    let id = Lab::fresh_id();
    let lab = Lab::set_up(&chain(1), &id).unwrap();
    let mut command = lab.command(0, "sleep");
    command.arg("1000");
    let mut program = lab.start(command).unwrap();
    // It is on its way through two other programs.
    let command = format!("/proc/{}/comm", program.id());
    while std::fs::read_to_string(&command).unwrap() != "sleep\n" {
        pause(ms(5));
    }
    println!("lab {id} program {}", program.id());
    // Until the test kills it; and if that is gone, not for ever.
    pause(ms(60_000));
    drop(lab);
    program.wait().unwrap();
}
