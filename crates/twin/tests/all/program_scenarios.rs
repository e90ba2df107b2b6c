//! Real programs in scenario files: their options, and their refusal in virtual time.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;

use hopcast_core::plug::{Accept, Plug, TcpPlug};
use hopcast_core::{Bytes, Duration, Instant, Rate};
use hopcast_runner::load_text;
use hopcast_twin::World;
use hopcast_twin::scenario::model::{App, Load, Plan, Program, Signal, Socket};
use hopcast_twin::scenario::{Diagnostic, Overrides, describe, needs_live, needs_virtual_time};
use hopcast_twin::world::NodeInstance;

fn load(rest: &str) -> Result<Plan, Diagnostic> {
    let head = "duration: 10s\ntopology: { chain: { hops: 2, link: { rate: 10 Mbit/s } } }\n";
    load_text(Path::new("bad.yaml"), &format!("{head}{rest}"), &Overrides::default())
}

fn flow(over: &str, app: &str) -> Result<Plan, Diagnostic> {
    load(&format!("flows:\n  - {{ name: f, from: n0, to: n2, over: {over}, app: {app} }}\n"))
}

fn program(over: &str, app: &str) -> Program {
    let plan = flow(over, app).unwrap_or_else(|error| panic!("{error}"));
    match &plan.cases[0].scenario.flows[0].app {
        App::Program { program, .. } => program.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_program_says_what_it_is_told() {
    let Program::Iperf3(load) =
        program("udp", "{ iperf3: { rate: 5 Mbit/s, size: 1200 B, parallel: 2, reverse: on } }")
    else {
        panic!()
    };
    let rate = Some(Rate::from_bits_per_sec(5_000_000));
    let size = Some(Bytes::new(1200));
    assert_eq!(load, Load { rate, size, parallel: 2, reverse: true, arguments: Vec::new() });
    let Program::Iperf2(load) = program("tcp-bbr", "{ iperf2: { arguments: [--tcp-write-prefetch, 16] } }")
    else {
        panic!()
    };
    assert_eq!((load.rate, load.arguments), (None, vec!["--tcp-write-prefetch".to_owned(), "16".to_owned()]));
    let Program::Ping(ping) = program("ip", "{ ping: { rate: 10 Hz } }") else { panic!() };
    assert_eq!((ping.size, ping.every), (Bytes::new(56), Duration::from_millis(100)));
    let Program::Ffmpeg(picture) = program("udp", "{ ffmpeg: { picture: 320x180, fps: 10 } }") else {
        panic!()
    };
    assert_eq!((picture.width, picture.height, picture.fps, picture.size), (320, 180, 10, Bytes::new(1316)));
    assert!(matches!(program("tcp-cubic", "{ copy: { path: Cargo.toml, with: nc } }"), Program::Copy(_)));
}

#[test]
fn the_stack_says_which_sockets_a_program_uses() {
    let socket = |over: &str, app: &str| flow(over, app).unwrap().cases[0].scenario.flows[0].socket();
    let iperf3 = "{ iperf3: { rate: 1 Mbit/s, size: 1200 B } }";
    assert_eq!(socket("udp", iperf3), Some(Socket::Udp));
    assert_eq!(socket("tcp-bbr", iperf3), Some(Socket::Tcp { congestion: Some("bbr") }));
    assert_eq!(socket("[tcp-reno, tunnel, brtp]", iperf3), Some(Socket::Tcp { congestion: Some("reno") }));
    assert_eq!(socket("[tcp-cubic, bats-proxy]", iperf3), Some(Socket::Tcp { congestion: Some("cubic") }));
    assert_eq!(socket("[udp, tunnel, btp]", iperf3), Some(Socket::Udp));
    assert_eq!(socket("kcptun", iperf3), Some(Socket::Tcp { congestion: None }));
    for over in ["ip", "tunnel", "[tunnel, btp]"] {
        assert_eq!(socket(over, "ping"), Some(Socket::Icmp), "{over}");
    }
}

#[test]
fn a_live_ping_over_a_tunnel_goes_between_its_devices() {
    for over in ["tunnel", "[tunnel, btp]"] {
        let plan = flow(over, "ping").unwrap();
        let scenario = &plan.cases[0].scenario;
        let (from, to) = NodeInstance::ends_of_flow(scenario, 0).unwrap();
        assert_eq!([from, to[0]].map(|end| end.ip().to_string()), ["172.16.0.1", "172.16.0.2"], "{over}");
        let mut devices = Vec::new();
        let nodes = 0..scenario.nodes.len();
        for instance in nodes.filter_map(|node| NodeInstance::at(scenario, 0, node, &Vec::new()).unwrap()) {
            devices.extend(instance.plugs().iter().filter_map(|plug| match plug {
                Plug::Tun(device) => Some(device.addresses[0].0),
                _ => None,
            }));
        }
        assert_eq!(devices, [from.ip(), to[0].ip()], "{over}");
    }
}

#[test]
fn a_proxy_over_a_tunnel_takes_over_the_connections_to_its_device() {
    let plan = flow("[tcp-cubic, bats-proxy, udp, tunnel]", "bulk").unwrap();
    let scenario = &plan.cases[0].scenario;
    let (_, to) = NodeInstance::ends_of_flow(scenario, 0).unwrap();
    let taken: Vec<_> = NodeInstance::at(scenario, 0, scenario.flows[0].from, &Vec::new())
        .unwrap()
        .unwrap()
        .plugs()
        .iter()
        .filter_map(|plug| match plug {
            Plug::Tcp(TcpPlug { accept: Some(Accept::LocalOutput { to }), .. }) => Some(to[0].network),
            _ => None,
        })
        .collect();
    assert_eq!(taken, [to[0].ip()]);
}

#[test]
fn kcptun_takes_its_options() {
    let plan = flow("{ kcptun: { mode: fast2, parity-shards: 0, mtu: 1200 } }", "bulk").unwrap();
    let flow = &plan.cases[0].scenario.flows[0];
    let layers: Vec<String> = flow.over.iter().map(ToString::to_string).collect();
    // Data without parity is no code, and both count as none.
    assert_eq!(layers, ["kcptun (mode fast2, data-shards 0, parity-shards 0, mtu 1200)", "udp"]);
    assert!(flow.on_stream());
}

#[test]
fn commands_are_known_by_name_place_and_time() {
    let plan = load(
        "flows: [{ from: n0, to: n2, over: udp, app: bulk }]
exec:
  - { at: n1, command: \"ss -ti | grep rtt\", start: 1s, stop: 9s, stop-with: term, expect: { exit: 0 } }
  - { name: other, at: n2, command: [ss, -ti] }
",
    );
    let plan = plan.unwrap();
    let [first, other] = plan.cases[0].scenario.execs.as_slice() else { panic!() };
    assert_eq!((&*first.name, first.at, first.stop_with, first.expect), ("exec0", 1, Signal::Term, Some(0)));
    assert_eq!(first.command, ["sh", "-c", "ss -ti | grep rtt"]);
    assert_eq!(first.stop, Some(Instant::ZERO + Duration::from_secs(9)));
    assert_eq!(
        (&*other.name, other.command.len(), other.start, other.stop),
        ("other", 2, Instant::ZERO, None)
    );
    let described = describe(&plan);
    assert!(
        described.contains("Commands: 2\n  exec0: at n1 from 1s to 9s: sh -c ss -ti | grep rtt\n"),
        "{described}"
    );
}

#[test]
fn what_is_for_live_runs_is_refused_in_virtual_time_and_nowhere_else() {
    for (rest, why) in [
        (
            "flows: [{ from: n0, to: n2, over: tcp-cubic, app: iperf3 }]",
            "bad.yaml:3:51: `iperf3` is a real program: it runs with --live only; `bulk` and `cbr` are its like in virtual time",
        ),
        (
            "flows: [{ from: n0, to: n2, over: ip, app: { ping: { arguments: [-D] } } }]",
            "bad.yaml:3:65: `arguments` are for the real `ping`, which runs with --live only; without them it runs in virtual time",
        ),
        (
            "flows: [{ from: n0, to: n2, over: kcptun, app: bulk }]",
            "bad.yaml:3:35: `kcptun` is a real program: it runs with --live only; `kcp` and `kcp-fec` are its models in virtual time",
        ),
        (
            "flows: [{ from: n0, to: n2, over: udp, app: bulk }]\nexec: [{ at: n0, command: [ls] }]",
            "bad.yaml:4:8: `exec`: commands are real programs: they run with --live only",
        ),
    ] {
        let plan = load(rest).unwrap_or_else(|error| panic!("{error}"));
        assert!(!describe(&plan).is_empty());
        let scenario = &plan.cases[0].scenario;
        assert_eq!(needs_live(scenario), Some(why));
        assert_eq!(
            World::new(Arc::clone(scenario), 0, None).err().map(|error| error.to_string()).as_deref(),
            Some(why)
        );
    }
    for (over, app) in [
        ("udp", "bulk"),
        ("ip", "ping"),
        ("ip", "{ ping: { every: 1s } }"),
        ("tunnel", "{ ping: { arguments: [] } }"),
    ] {
        let plan = flow(over, app).unwrap();
        assert_eq!(needs_live(&plan.cases[0].scenario), None, "{over} {app}");
    }
}

#[test]
fn an_option_that_the_kernel_has_not_is_said_with_its_transport() {
    let needs = |over: &str| needs_virtual_time(&flow(over, "bulk").unwrap().cases[0].scenario);
    for (over, option, transport) in [
        ("{ tcp-reno: { sack: off } }", "sack", "tcp-reno"),
        ("{ split-bbr: { initial-window: 3 } }", "initial-window", "split-bbr"),
        ("[{ tcp-vegas: { min-rto: 1s } }, tunnel, btp]", "min-rto", "tcp-vegas"),
    ] {
        let line = format!(
            "flow `f`: the option `{option}` of `{transport}` is for virtual time: in a live run the kernel's own settings hold"
        );
        assert_eq!(needs(over), Some(line));
    }
    assert_eq!(needs("tcp-bbr"), None);
}

/// (the transport, the app, what is said)
const MISTAKES: &[(&str, &str, &str)] = &[
    (
        "tcp-cubic",
        "iperf",
        "bad.yaml:4:56: `app`: expected one of `cbr`, `bulk`, `file`, `messages`, `video`, `short-flows`, `iperf3`, `iperf2`, `nuttcp`, `ping`, `ffmpeg`, `copy`, `libnorm`, `openpgm`, `jgroups`, `uftp`, `udpcast`, found `iperf`: did you mean `iperf3`?",
    ),
    (
        "udp",
        "iperf3",
        "bad.yaml:4:50: `iperf3` over datagrams needs `rate`, for example `{ iperf3: { rate: 10 Mbit/s } }`",
    ),
    (
        "udp",
        "{ iperf3: { rate: 1 Mbit/s, length: 9 B } }",
        "bad.yaml:4:78: unknown key `length` in `iperf3` (allowed here: rate, size, parallel, reverse, arguments, start, stop)",
    ),
    (
        "[udp, tunnel, udp]",
        "{ iperf3: { rate: 1 Mbit/s } }",
        "bad.yaml:4:65: `size`: expected at most 1444 B, what the MTU of 1500 of the link `n0-n1` leaves over `udp/tunnel/udp` (hosts do not fragment), found 1472 B",
    ),
    (
        "ip",
        "{ ping: { size: 1500 B } }",
        "bad.yaml:4:49: `size`: expected at most 1472 B, what the MTU of 1500 of the link `n0-n1` leaves over `ip` (hosts do not fragment), found 1500 B",
    ),
    (
        "brtp",
        "iperf3",
        "bad.yaml:4:51: `app`: `iperf3` is a program and uses the host's sockets, and `brtp` is none of them: put `udp`, a TCP or `kcptun` on top, for example `over: [udp, tunnel, brtp]`",
    ),
    (
        "quic",
        "iperf3",
        "bad.yaml:4:51: `app`: `iperf3` is a program and uses the host's sockets, and `quic` is none of them: put `udp`, a TCP or `kcptun` on top, for example `over: [tcp-cubic, tunnel, udp]`",
    ),
    (
        "udp",
        "ping",
        "bad.yaml:4:50: `app`: `ping` sends packets, and `udp` offers datagrams: use `ip`, or a stack with `tunnel` on top",
    ),
    (
        "ip",
        "bulk",
        "bad.yaml:4:40: `over`: `ip` offers packets, which no application but `ping` sends: put a transport such as `tcp-cubic` on top",
    ),
    (
        "ip",
        "iperf3",
        "bad.yaml:4:40: `over`: `ip` offers packets, which no application but `ping` sends: put a transport such as `tcp-cubic` on top",
    ),
    (
        "udp",
        "{ copy: { path: Cargo.toml } }",
        "bad.yaml:4:50: `app`: `copy` writes a stream, and `udp` offers datagrams: use `tcp-cubic`, or `ffmpeg`",
    ),
    (
        "kcptun",
        "nuttcp",
        "bad.yaml:4:53: `app`: `nuttcp` opens connections to two ports, and `kcptun` carries one: use `iperf3`",
    ),
    (
        "[kcptun, btp]",
        "bulk",
        "bad.yaml:4:40: `over`: `kcptun` is a program and uses the host's sockets, and `btp` is none of them: write it alone, or over `[udp, tunnel, …]`",
    ),
    (
        "{ kcptun: { mode: fastest } }",
        "bulk",
        "bad.yaml:4:58: `mode`: expected one of `normal`, `fast`, `fast2`, `fast3`, found `fastest`: did you mean `fast`?",
    ),
    (
        "udp",
        "{ ffmpeg: { picture: 640x361 } }",
        "bad.yaml:4:71: `picture`: expected even numbers of pixels from 32x32 to 4096x4096, such as `640x360`, found `640x361`",
    ),
    (
        "udp",
        "{ ffmpeg: { size: 1400 B } }",
        "bad.yaml:4:68: `size`: expected a multiple of 188 B, found 1400 B",
    ),
    (
        "ip",
        "{ ping: { every: 10us } }",
        "bad.yaml:4:66: `ping`: expected at most 1000 requests a second, found `10us`",
    ),
    ("ip", "{ ping: { every: 1s, rate: 1 Hz } }", "bad.yaml:4:66: `ping` takes `rate` or `every`, not both"),
    ("tcp-cubic", "{ iperf3: { arguments: -N } }", "bad.yaml:4:79: `arguments`: expected a list, found `-N`"),
];

#[test]
fn mistakes_are_said_in_one_line() {
    for (over, app, expected) in MISTAKES {
        let found = flow(over, app).map_or_else(|error| error.to_string(), |_| "no error".to_owned());
        assert_eq!(found, *expected, "{over} {app}");
    }
}

#[test]
fn mistakes_of_commands_are_said_in_one_line() {
    for (exec, expected) in [
        ("{ at: n0 }", "bad.yaml:4:8: a command needs `command`, for example `command: [ss, -tin]`"),
        ("{ at: n9, command: ls }", "bad.yaml:4:14: `at`: there is no node `n9`: did you mean `n0`?"),
        (
            "{ at: n0, command: [] }",
            "bad.yaml:4:27: `command`: expected a program and its arguments, found an empty list",
        ),
        (
            "{ at: n0, command: ls, start: 2s, stop: 1s }",
            "bad.yaml:4:48: `stop`: expected a time after `start`, found `1s`",
        ),
        (
            "{ at: n0, command: ls, stop-with: trem }",
            "bad.yaml:4:42: `stop-with`: expected one of `int`, `term`, `hup`, `kill`, found `trem`: did you mean `term`?",
        ),
        (
            "{ at: n0, command: ls, expect: { exit: 300 } }",
            "bad.yaml:4:47: `exit`: expected a whole number from 0 to 255, found `300`",
        ),
    ] {
        let found = load(&format!("flows: [{{ from: n0, to: n2, over: udp, app: bulk }}]\nexec: [{exec}]\n"));
        assert_eq!(
            found.map_or_else(|error| error.to_string(), |_| "no error".to_owned()),
            expected,
            "{exec}"
        );
    }
}

#[test]
fn a_program_has_one_receiver() {
    let error = load(
        "flows: [{ from: n0, to: [n1, n2], over: [udp, tunnel, btp], app: { iperf3: { rate: 1 Mbit/s } } }]",
    );
    assert_eq!(
        error.unwrap_err().to_string(),
        "bad.yaml:3:25: `to`: `udp/tunnel/btp` has one receiver; several are served by `btp` and `brtp` with a tree of their own, and by `udp`, `raw-ip`, `norm`, `nakack`, `pgm`, `disservice`, `fec` and `block-fec` with any delivery"
    );
}
