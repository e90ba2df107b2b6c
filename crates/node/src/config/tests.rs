//! Files that are read, and the messages about slips.

use super::*;

const SITE: &str = "name: harbour
listen: 192.0.2.1:7400
peers: { hill: 198.51.100.9:7400 }
carry:
  to: island
  packets: { tun: hop0, address: 10.77.0.1/30, routes: [10.20.0.0/16], over: { btp: { deadline: 300 ms } } }
  tcp: [10.20.0.0/16, 10.30.0.5 port 443]
";

fn read(text: &str) -> Result<Config, String> {
    Config::parse(text, "node.yaml").map_err(|error| error.to_string())
}

fn complaint(text: &str) -> String {
    read(text).expect_err("a complaint")
}

#[test]
fn a_site_says_what_it_carries_where_to_and_over_what() {
    let config = read(SITE).unwrap();
    let [carrier] = config.carriers.as_slice() else { panic!("one carrier") };
    assert_eq!((carrier.to.as_str(), carrier.via.as_slice(), carrier.channel), ("island", &[0][..], 0));
    let packets = carrier.packets.as_ref().unwrap();
    assert_eq!(packets.addresses, [("10.77.0.1".parse().unwrap(), 30)]);
    assert_eq!(packets.over.to_string(), "btp (deadline 300ms)");
    let taken: Vec<_> = carrier.tcp.iter().flat_map(|tcp| &tcp.take).map(ToString::to_string).collect();
    assert_eq!(taken, ["10.20.0.0/16", "10.30.0.5/32 port 443"]);
    assert_eq!((config.mtu, config.log, config.timing), (1500, LevelFilter::Info, Timing::default()));
    let network = |text: &str, prefix| (text.parse().unwrap(), prefix);
    assert_eq!(packets.from, [network("10.77.0.0", 30), network("10.20.0.0", 16)]);
    let tcp = carrier.tcp.as_ref().unwrap();
    assert_eq!((tcp.streams, tcp.per_source, tcp.connect_timeout), (1024, 256, Duration::from_secs(10)));
    assert_eq!((config.memory, config.peers[0].roams), (256 << 20, false));
}

#[test]
fn a_peer_that_may_move_has_a_map_and_limits_have_keys() {
    let map = "{ address: b.example.org:2, roams: yes }";
    let config = read(&SITE.replace("198.51.100.9:7400", map)).unwrap();
    let named = PeerAddress::Name { host: "b.example.org".to_owned(), port: 2 };
    assert_eq!((&config.peers[0].address, config.peers[0].roams), (&named, true));
    let tcp =
        "{ reach: [10.20.0.0/16], source: client, from: [10.1.0.0/16], streams: 50, connect-timeout: 3 s }";
    let text = SITE.replace("[10.20.0.0/16, 10.30.0.5 port 443]", tcp);
    let config = read(&format!("memory: 64 MiB\n{text}")).unwrap();
    let tcp = config.carriers[0].tcp.as_ref().unwrap();
    assert_eq!((tcp.streams, tcp.per_source, tcp.connect_timeout), (50, 13, Duration::from_secs(3)));
    assert_eq!(tcp.from.as_deref(), Some(&[("10.1.0.0".parse().unwrap(), 16)][..]));
    assert_eq!(config.memory, 64 << 20);
    let text = SITE.replace("routes: [10.20.0.0/16]", "routes: [10.20.0.0/16], from: [0.0.0.0/0]");
    let config = read(&text).unwrap();
    assert_eq!(config.carriers[0].packets.as_ref().unwrap().from, [("0.0.0.0".parse().unwrap(), 0)]);
}

#[test]
fn with_one_peer_that_is_the_far_site_and_the_way() {
    let config = read(&SITE.replace("  to: island\n", "")).unwrap();
    assert_eq!((config.carriers[0].to.as_str(), config.carriers[0].via.as_slice()), ("hill", &[0][..]));
}

#[test]
fn a_relay_is_two_peers_or_a_list_of_pairs_with_channels() {
    let head =
        "name: hill\nlisten: 0.0.0.0:7400\npeers: { a: 192.0.2.1:1, b: b.example.org:2, c: anywhere }\n";
    let config = read(&format!("{head}relay: [a, b]")).unwrap();
    assert_eq!(config.relays[0].between, [0, 1]);
    let named = PeerAddress::Name { host: "b.example.org".to_owned(), port: 2 };
    assert_eq!((&config.peers[1].address, &config.peers[2].address), (&named, &PeerAddress::Anywhere));
    let pairs = "relay: [{ between: [a, b] }, { between: [a, c], channel: 1 }]";
    let config = read(&format!("{head}{pairs}")).unwrap();
    assert_eq!((config.relays[1].between, config.relays[1].channel), ([0, 2], 1));
    assert_eq!(
        complaint(&format!("{head}relay: [{{ between: [a, b] }}, {{ between: [a, c] }}]")),
        "node.yaml:1:1: what is relayed between `a` and `b` and what is relayed between `a` and `c` would mix at `a`: \
         give one of them a `channel` of its own, at every node of its route"
    );
}

#[test]
fn a_slip_is_one_line_that_says_what_to_write() {
    let told = |from: &str, to: &str| {
        assert!(SITE.contains(from), "{from}");
        complaint(&SITE.replace(from, to))
    };
    for (from, to, line) in [
        (
            "listen:",
            "lisen:",
            "node.yaml:2:1: unknown key `lisen` in a node's configuration: did you mean `listen`? (allowed here: name, \
             listen, peers, carry, relay, services, send, mtu, hello, memory, status, state, metrics, log)",
        ),
        (
            "192.0.2.1:7400",
            "192.0.2.1",
            "node.yaml:2:9: `listen`: expected an IP address of this host and a port, for example `192.0.2.1:7400`, \
             found `192.0.2.1`",
        ),
        (
            "198.51.100.9:7400",
            "198.51.100.900:7400",
            "node.yaml:3:16: `hill`: expected `ADDRESS:PORT`, `NAME:PORT` or `anywhere`, for example `192.0.2.1:7400`, \
             found `198.51.100.900:7400`",
        ),
        (
            "198.51.100.9:7400",
            "'[2001:db8::9]:7400'",
            "node.yaml:3:16: `hill`: expected an IPv4 address, as `listen` is one, found `[2001:db8::9]:7400`",
        ),
        (
            "{ hill: 198.51.100.9:7400 }",
            "{ hill: { address: 198.51.100.9:7400, roam: yes } }",
            "node.yaml:3:46: unknown key `roam` in a peer: did you mean `roams`? (allowed here: address, roams)",
        ),
        (
            "{ hill: 198.51.100.9:7400 }",
            "{ hill: { roams: yes } }",
            "node.yaml:3:16: a peer needs `address`, for example `address: 198.51.100.9:7400`",
        ),
        (
            "{ hill: 198.51.100.9:7400 }",
            "{ hill: { address: anywhere, roams: maybe } }",
            "node.yaml:3:44: `roams`: expected `true` or `false`, found `maybe`",
        ),
        (
            "name: harbour",
            "memory: 1 MiB\nname: harbour",
            "node.yaml:1:9: `memory`: expected 16777216 B to 1099511627776 B, found `1 MiB`",
        ),
        (
            "tcp: [10.20.0.0/16, 10.30.0.5 port 443]",
            "tcp: { take: [10.20.0.0/16], per-sourc: 5 }",
            "node.yaml:7:32: unknown key `per-sourc` in `tcp`: did you mean `per-source`? (allowed here: take, reach, \
             source, from, streams, per-source, connect-timeout, congestion, over)",
        ),
        (
            "tcp: [10.20.0.0/16, 10.30.0.5 port 443]",
            "tcp: { take: [10.20.0.0/16], streams: 10, per-source: 11 }",
            "node.yaml:7:57: `per-source`: expected a whole number from 1 to 10, found `11`",
        ),
        (
            "tcp: [10.20.0.0/16, 10.30.0.5 port 443]",
            "tcp: { take: [10.20.0.0/16], from: [10.0.0.0/8] }",
            "node.yaml:7:38: `from` is for `source: client`: otherwise servers see this host's address",
        ),
        (
            "to: island",
            "via: hil",
            "node.yaml:5:8: `via`: there is no peer `hil`: did you mean `hill`? (peers: hill)",
        ),
        (
            "[10.20.0.0/16], over",
            "[10.20.0.1/16], over",
            "node.yaml:6:57: `routes`: 10.20.0.1/16 has bits beyond its prefix: did you mean `10.20.0.0/16`?",
        ),
        (
            "10.77.0.1/30",
            "10.77.0.1",
            "node.yaml:6:34: `address`: expected an address with its prefix, for example `10.77.0.1/30`, found \
             `10.77.0.1`",
        ),
        (
            "btp:",
            "btpp:",
            "node.yaml:6:80: `over`: expected one of `btp`, `brtp`, found `btpp`: did you mean `btp`?",
        ),
        (
            "300 ms",
            "300",
            "node.yaml:6:97: `deadline`: expected a duration with its unit, found the bare number `300`: write `300 ms` or \
             `300 s` (units: ns, us, ms, s, min, h)",
        ),
        (
            "port 443",
            "ports 443",
            "node.yaml:7:23: `tcp`: expected a network and perhaps a port, for example `10.20.0.0/16` or `10.20.0.5 port \
             443`, found `10.30.0.5 ports 443`",
        ),
    ] {
        assert_eq!(told(from, to), line);
    }
}

#[test]
fn what_does_not_fit_together_is_said() {
    let nothing = "name: a\nlisten: 0.0.0.0:1\npeers: { b: anywhere }\n";
    assert_eq!(
        complaint(nothing),
        "node.yaml:1:1: a node needs something to do: `carry` at a site, `relay` between two peers, \
         `services` or `send` for its host"
    );
    assert_eq!(
        complaint(&format!(
            "{nothing}carry: {{ tcp: {{ take: [10.0.0.0/8], reach: [10.1.0.0/16 port 80] }} }}"
        )),
        "node.yaml:4:45: `reach`: connections to 10.1.0.0/16 port 80 would go round in a circle, since `take` has 10.0.0.0/8"
    );
    assert_eq!(complaint(&format!("{nothing}relay: [b, b]")), "node.yaml:4:8: `relay`: `b` is listed twice");
    assert_eq!(complaint(&nothing.replace("b:", "a:")), "node.yaml:3:10: `peers`: `a` is this node itself");
    let two = nothing.replace("{ b: anywhere }", "{ b: anywhere, c: anywhere }");
    let tcp = "tcp: [10.0.0.0/8]";
    assert_eq!(
        complaint(&format!("{two}carry: {{ {tcp} }}")),
        "node.yaml:4:8: `carry` needs `to` where there are several peers, for example `to: island`"
    );
    assert!(read(&format!("{two}carry: {{ to: far, via: [b, c], {tcp} }}")).is_ok());
    assert_eq!(complaint(""), "node.yaml: expected a node's configuration, found nothing");
}

#[test]
fn over_a_transport_that_holds_messages_members_may_be_no_peers_and_do_nothing_else() {
    let head = "name: ferry\nlisten: 0.0.0.0:7400\npeers: { island: 192.0.2.1:7400 }\n";
    let of = |members: &str, more: &str| {
        format!("{head}carry: {{ group: {{ name: charts, members: [{members}]{more} }} }}")
    };
    let config = read(&of("island, ferry, shore", ", over: { disservice: { lifetime: 1 h } }")).unwrap();
    let [group] = config.groups.as_slice() else { panic!("one group") };
    assert_eq!((group.members.as_slice(), group.afar.as_slice()), (&[0][..], &["shore".to_owned()][..]));
    assert!(!group.takes_part());
    assert_eq!(group.over.to_string(), "disservice (lifetime 3600s)");
    assert!(config.state.ends_with("hopcast/node-ferry") || config.state.ends_with("node-ferry"));
    let state = format!("{}\nstate: /srv/held", of("island", ", over: disservice"));
    assert_eq!(read(&state).unwrap().state, std::path::Path::new("/srv/held"));

    assert_eq!(
        complaint(&of("island", "")),
        "node.yaml:4:17: `group` needs `send`, `receive`, `messages` or several of them"
    );
    assert_eq!(
        complaint(&of("island, shore", ", over: norm")),
        "node.yaml:4:51: `members`: `shore` is neither this node nor a peer (peers: island)"
    );
    assert_eq!(
        complaint(&of("iland, shore", ", over: disservice")),
        "node.yaml:4:43: `members`: `iland` is neither this node nor a peer: did you mean `island`? (peers: island)"
    );
    assert_eq!(
        complaint(&of("ferry, shore", ", over: disservice")),
        "node.yaml:4:42: `members`: expected at least one peer (peers: island)"
    );
    assert_eq!(
        complaint(&of("island", ", over: { disservice: { lifetme: 1 h } }")).split(" (allowed").next(),
        Some("node.yaml:4:74: unknown key `lifetme` in `disservice`: did you mean `lifetime`?")
    );
    assert_eq!(
        complaint(&format!("{}\nstate: held", of("island", ", over: disservice"))),
        "node.yaml:5:8: `state`: expected a path that begins with `/`, found `held`"
    );
}

#[test]
fn no_text_makes_the_reader_panic() {
    let words = [
        "name: a\n",
        "listen: [::]:1\n",
        "peers: {b: ",
        "anywhere}\n",
        "carry: ",
        "{tcp: [",
        "::/0",
        "]}",
        "\n- ",
        "relay: ",
    ];
    let strategy = proptest::collection::vec(proptest::sample::select(words.to_vec()), 0..16);
    proptest::proptest!(|(words in strategy, any in ".{0,8}")| {
        let _ = read(&words.concat());
        let _ = read(&(words.concat() + &any));
    });
}

const FOR_HOST: &str = "name: harbour
listen: 192.0.2.1:7400
services: { run: meadcast-router, address: fd00:1::1, interfaces: [eth0, eth1], min-dsts: 3 }
send:
  to: ff18::1
  tun: group0
  from: fd00:1::1
  members: [fd00:2::5, fd00:3::7]
  interfaces: eth0
  over: { meadcast: { max: 12 } }
";

#[test]
fn what_a_node_does_for_its_host_alone_needs_no_peers() {
    let config = read(FOR_HOST).unwrap();
    assert!(config.peers.is_empty());
    let [service] = config.services.as_slice() else { panic!("one service") };
    assert_eq!(service.service.to_string(), "meadcast-router (min-dsts 3)");
    assert_eq!(service.interfaces, ["eth0", "eth1"]);
    let [sender] = config.senders.as_slice() else { panic!("one group") };
    assert_eq!((sender.to.to_string(), sender.members.len()), ("ff18::1".to_owned(), 2));
    assert_eq!(sender.over.to_string(), "meadcast (max 12, ok 9)");
    let without = read(&FOR_HOST.replace("  over: { meadcast: { max: 12 } }\n", "")).unwrap();
    assert_eq!(without.senders[0].over.to_string(), "meadcast");
    let both = format!("{FOR_HOST}relay: [a, b]\n");
    assert!(complaint(&both).contains("needs `peers`"), "{}", complaint(&both));
}

#[test]
fn a_slip_in_what_a_node_does_for_its_host_is_one_line_at_its_place() {
    for (from, to, expected) in [
        (
            "meadcast-router",
            "meadcast-ruter",
            "3:18: `run`: expected one of `bridge`, `batman-iv`, `batman-v`, `meadcast-router`, found `meadcast-ruter`: did you mean `meadcast-router`?",
        ),
        (
            "run: meadcast-router",
            "run: vlan",
            "`run`: expected one of `bridge`, `batman-iv`, `batman-v`, `meadcast-router`, found `vlan`",
        ),
        ("min-dsts", "min-dst", "unknown key `min-dst` in `services`: did you mean `min-dsts`?"),
        ("min-dsts: 3", "min-dsts: 33", "`min-dsts`: expected"),
        ("[eth0, eth1]", "[]", "`interfaces`: expected the name of one at least"),
        (
            "address: fd00:1::1",
            "address: '::1'",
            "`address`: expected an address that other hosts can reach, found `::1`",
        ),
        ("tun: group0", "tun: a/b", "`tun`: expected a name"),
        ("fd00:3::7", "fd00:2::5", "`members`: fd00:2::5 is listed twice"),
        (
            "fd00:3::7",
            "fd00:1::1",
            "`meadcast` serves single hosts that routers can reach, and fd00:1::1 is none of them",
        ),
        (
            "fd00:3::7",
            "ff18::2",
            "`members`: expected an address that other hosts can reach, found `ff18::2`",
        ),
        ("ff18::1", "239.192.0.1", "`meadcast` is a protocol of IPv6, which 239.192.0.1 is no address of"),
        (
            "max: 12",
            "max: 13",
            "`meadcast (max 13, ok 10)` leaves 1276 bytes of `mtu`, 1500, to a packet of a program, and IPv6 needs 1280",
        ),
        ("{ meadcast: { max: 12 } }", "unicast", "`over`: expected one of `meadcast`, found `unicast`"),
    ] {
        let changed = FOR_HOST.replacen(from, to, 1);
        assert_ne!(changed, FOR_HOST, "{from}");
        assert!(complaint(&changed).contains(expected), "{}", complaint(&changed));
    }
}

const BRIDGE: &str = "name: harbour
listen: 192.0.2.1:7400
services:
  - { run: bridge, tap: br0, address: 10.7.0.1/24, interfaces: [eth1, eth2], ports: { eth2: { tagged: 5 } } }
  - { run: bridge, tap: br1, interfaces: [eth3, eth4], querier: on }
";

#[test]
fn a_node_is_a_bridge_of_interfaces_of_its_host() {
    let config = read(BRIDGE).unwrap();
    let [one, other] = config.services.as_slice() else { panic!("two services") };
    assert_eq!(one.interfaces, ["eth1", "eth2"]);
    let [own, others] = [one, other].map(|service| service.device.clone().unwrap());
    assert_eq!((&*own.tap, own.addresses), ("br0", vec![("10.7.0.1".parse().unwrap(), 24)]));
    assert_eq!((&*others.tap, others.addresses.len()), ("br1", 0));
    assert!(own.mac != others.mac && own.mac[0] & 3 == 2, "one station of its own each: {:x?}", own.mac);
    assert_eq!(read(BRIDGE).unwrap().services[0].device.as_ref().unwrap().mac, own.mac);
    for (from, to, expected) in [
        ("tap: br0, ", "", "4:5: `services` needs `tap`, for example `tap: br0`"),
        ("10.7.0.1/24", "10.7.0.1", "`address`: expected an address with its prefix"),
        ("eth3", "eth2", "5:5: `interfaces`: `eth2` is listed twice"),
        ("eth4", "eth3", "5:5: `interfaces`: `eth3` is listed twice"),
        ("br1", "br0", "two carriers, groups or services cannot both have `br0`"),
        ("{ eth2:", "{ eth3:", "4:5: `ports`: `eth3` is none of its interfaces"),
        ("querier: on", "prefix: 10.7.0.0/24", "5:5: `prefix` is for scenarios"),
        ("querier", "qerier", "unknown key `qerier` in `services`: did you mean `querier`?"),
    ] {
        let changed = BRIDGE.replacen(from, to, 1);
        assert_ne!(changed, BRIDGE, "{from}");
        assert!(complaint(&changed).contains(expected), "{}", complaint(&changed));
    }
}

const MESH: &str = "name: harbour
listen: 192.0.2.1:7400
services:
  - { run: batman-iv, tap: bat0, address: 10.9.0.1/24, interfaces: [eth1, wlan0], wireless: [wlan0] }
  - { run: batman-v, tap: bat1, interfaces: eth3, elp-interval: 1s }
";

#[test]
fn a_node_is_in_meshes_by_interfaces_that_stay_its_hosts() {
    let config = read(MESH).unwrap();
    let [one, other] = config.services.as_slice() else { panic!("two services") };
    assert_eq!(
        (&*one.interfaces, &*other.interfaces),
        (&["eth1", "wlan0"].map(str::to_owned)[..], &["eth3".to_owned()][..])
    );
    assert_eq!([one, other].map(|service| service.service.ether_type()), [Some(0x4305); 2]);
    assert_eq!(read(BRIDGE).unwrap().services[0].service.ether_type(), None);
    let many = (0..33).map(|number| format!("e{number}")).collect::<Vec<_>>().join(", ");
    for (from, to, expected) in [
        ("tap: bat0, ", "", "4:5: `services` needs `tap`, for example `tap: bat0`"),
        (
            "tap: bat0",
            "device: bat0, tap: bat0",
            "4:31: `device` is for scenarios: the name of a node's own device is in `tap`",
        ),
        ("address: 10.9.0.1/24", "prefix: 10.9.0.0/24", "4:5: `prefix` is for scenarios"),
        ("eth3", "wlan0", "5:5: `interfaces`: `wlan0` is listed twice"),
        (
            "wireless: [wlan0]",
            "wireless: [wlan1]",
            "4:5: `wireless`: `wlan1` is none of its interfaces: did you mean `wlan0`?",
        ),
        ("eth3", &format!("[{many}]"), "5:5: `batman-v` is attached to 1 to 32 interfaces, and not to 33"),
        (
            "batman-iv",
            "batman-vi",
            "`run`: expected one of `bridge`, `batman-iv`, `batman-v`, `meadcast-router`, found `batman-vi`",
        ),
        ("wireless", "elp-interval: 1s, wireless", "unknown key `elp-interval` in `services`"),
    ] {
        let changed = MESH.replacen(from, to, 1);
        assert_ne!(changed, MESH, "{from}");
        assert!(complaint(&changed).contains(expected), "{}", complaint(&changed));
    }
}
