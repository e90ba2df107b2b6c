//! Groups of the daemon: files of a directory, and messages of programs, to every member.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use socket2::{Domain, SockAddr, Socket, Type};

use crate::lab::{Lab, Node, possible, repository, within};

pub(crate) const SITES: [&str; 3] = ["ship1", "shore", "ship2"];

/// Three sites, of which the one between the others forwards for them; each loses a tenth of what it receives.
pub(crate) struct Sites {
    pub(crate) lab: Lab,
    /// The transport.
    over: &'static str,
}

impl Sites {
    pub(crate) fn new(over: &'static str) -> Self {
        let lab = Lab::row(&SITES);
        lab.default_route("ship1", "192.0.2.2");
        lab.default_route("ship2", "192.0.3.1");
        lab.run("shore", "sysctl -q net.ipv4.ip_forward=1");
        SITES.iter().for_each(|name| lab.lose(name, 10));
        for (name, kind) in SITES.iter().flat_map(|name| [(name, "out"), (name, "in")]) {
            fs::create_dir(lab.dir.path().join(format!("{name}-{kind}"))).unwrap();
        }
        Self { lab, over }
    }

    pub(crate) fn path(&self, name: &str, kind: &str) -> PathBuf {
        self.lab.dir.path().join(format!("{name}-{kind}"))
    }

    /// Starts the node of a site. All of them have the same lines of the group but for their directories.
    pub(crate) fn start(&self, name: &str) -> Node {
        let addresses = [("ship1", "192.0.2.1"), ("shore", "192.0.2.2"), ("ship2", "192.0.3.2")];
        let peers: Vec<String> = addresses
            .iter()
            .filter(|(peer, _)| *peer != name)
            .map(|(peer, address)| match (*peer, name) {
                ("shore", "ship2") => "shore: 192.0.3.1:7400".to_owned(),
                _ => format!("{peer}: {address}:7400"),
            })
            .collect();
        let path = |kind| self.path(name, kind).display().to_string();
        self.lab.node(
            name,
            &format!(
                "name: {name}
listen: 0.0.0.0:7400
peers: {{ {} }}
carry:
  group:
    name: charts
    members: [ship1, shore, ship2]
    send: {{ directory: {} }}
    receive: {{ directory: {} }}
    messages: {{ socket: {} }}
    rate: 20 Mbit/s
    over: {}
state: {}
",
                peers.join(", "),
                path("out"),
                path("in"),
                path("messages"),
                self.over,
                path("state"),
            ),
        )
    }

    /// Whether a site has another one's file.
    pub(crate) fn has(&self, name: &str, from: &str, file: &str, bytes: &[u8]) -> bool {
        fs::read(self.path(name, "in").join(from).join(file)).is_ok_and(|found| found == bytes)
    }

    /// A program at the message port of a site.
    pub(crate) fn program(&self, name: &str) -> Socket {
        let socket = Socket::new(Domain::UNIX, Type::SEQPACKET, None).unwrap();
        socket.connect(&SockAddr::unix(self.path(name, "messages")).unwrap()).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        socket
    }
}

pub(crate) fn receive(mut socket: &Socket) -> String {
    let mut bytes = [0; 256];
    let len = std::io::Read::read(&mut socket, &mut bytes).unwrap();
    String::from_utf8(bytes[..len].to_vec()).unwrap()
}

/// The next message that is not this one.
fn receive_but(socket: &Socket, other: &str) -> String {
    loop {
        let message = receive(socket);
        if message != other {
            return message;
        }
    }
}

/// Sends a message of the first program until all others have heard it once; how often. A member that was started
/// anew takes part in a view some seconds after it is up, and a view brings nothing of what was sent before.
fn until_all_hear(programs: &[Socket]) -> u64 {
    for program in &programs[1..] {
        program.set_nonblocking(true).unwrap();
    }
    let mut asked = 0;
    let mut heard = vec![false; programs.len() - 1];
    let all = || {
        programs[0].send(b"ready?").unwrap();
        asked += 1;
        std::thread::sleep(Duration::from_millis(400));
        for (mut program, heard) in programs[1..].iter().zip(&mut heard) {
            *heard |= std::io::Read::read(&mut program, &mut [0; 256]).is_ok();
        }
        heard.iter().all(|&heard| heard)
    };
    assert!(within(Duration::from_secs(30), all), "{heard:?}");
    for program in &programs[1..] {
        program.set_nonblocking(false).unwrap();
    }
    asked
}

/// Bytes that look like nothing else.
pub(crate) fn contents(len: usize) -> Vec<u8> {
    (0..len as u32).map(|place| (place.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

#[test]
fn every_member_gets_each_file_and_each_message_also_one_that_comes_late_and_one_that_is_started_anew() {
    if possible() {
        every_member_gets_each_file_and_each_message("norm");
    }
}

#[test]
fn a_group_over_views_brings_each_file_and_each_message_too() {
    if possible() {
        let quick = "{ nakack: { heartbeat: 500 ms, suspect-after: 3 s, verify: 1 s, merge-every: 2 s } }";
        every_member_gets_each_file_and_each_message(quick);
    }
}

fn every_member_gets_each_file_and_each_message(over: &'static str) {
    let sites = Sites::new(over);
    let (chart, note) = (contents(2_000_000), contents(1));
    fs::write(sites.path("ship1", "out").join("chart.bin"), &chart).unwrap();
    fs::write(sites.path("ship1", "out").join("empty"), []).unwrap();
    fs::write(sites.path("shore", "out").join("note"), &note).unwrap();
    let (ship1, shore) = (sites.start("ship1"), sites.start("shore"));
    let both = || {
        sites.has("shore", "ship1", "chart.bin", &chart)
            && sites.has("shore", "ship1", "empty", &[])
            && sites.has("ship1", "shore", "note", &note)
    };
    assert!(
        within(Duration::from_secs(30), both),
        "{:?} {:?}",
        shore.status().dropped,
        shore.status().groups[0].counters
    );
    let offered = ship1.status().groups[0].clone();
    assert_eq!((offered.files_offered, offered.files_everywhere), (2, 0), "one member is not there");

    // One that comes late, and one that is started anew.
    let mut ship2 = sites.start("ship2");
    let late = |name: &str, bytes: &[u8]| sites.has("ship2", "ship1", name, bytes);
    let all =
        || late("chart.bin", &chart) && late("empty", &[]) && sites.has("ship2", "shore", "note", &note);
    let statuses = || [&shore, &ship1, &ship2].map(|site| site.status().groups);
    assert!(within(Duration::from_secs(60), all), "{:#?}", statuses());
    let everywhere = || ship1.status().groups[0].files_everywhere == 2;
    assert!(within(Duration::from_secs(10), everywhere), "{:?}", ship1.status().groups);
    ship2.kill();
    drop(ship2);
    let ship2 = sites.start("ship2");
    ship2.is_up();
    fs::write(sites.path("ship2", "out").join("answer"), &note).unwrap();
    let answered = || ["ship1", "shore"].iter().all(|name| sites.has(name, "ship2", "answer", &note));
    assert!(within(Duration::from_secs(30), answered), "{:?}", ship2.status().groups);
    assert_eq!(ship2.status().groups[0].members.iter().map(|member| member.files_received).sum::<u64>(), 0);

    // Messages come behind the name of the site that sent them, and in order.
    let programs = SITES.map(|name| sites.program(name));
    let asked = until_all_hear(&programs);
    for number in 0..20 {
        programs[0].send(format!("position {number}").as_bytes()).unwrap();
    }
    for program in &programs[1..] {
        for number in 0..20 {
            assert_eq!(receive_but(program, "ship1 ready?"), format!("ship1 position {number}"));
        }
    }
    programs[2].send(b"understood").unwrap();
    assert_eq!(
        (receive(&programs[0]), receive(&programs[1])),
        ("ship2 understood".into(), "ship2 understood".into())
    );
    let sent = asked + 20;
    let has = |member: &str| {
        let group = ship1.status().groups.swap_remove(0);
        group
            .members
            .iter()
            .any(|found| found.name == member && found.messages_last == sent && found.messages_has > 20)
    };
    assert!(within(Duration::from_secs(5), || has("shore") && has("ship2")), "{:?}", ship1.status().groups);
    // The member that was started anew is asked again what it has.
    assert!(within(Duration::from_secs(20), everywhere), "{:?}", ship1.status().groups);
    let words = [env!("CARGO_BIN_EXE_hopcast"), "node", "status", "--socket", "ship1.sock"];
    let shown = String::from_utf8(sites.lab.command("ship1", &words).stdout).unwrap();
    let words = format!("2 files offered, 2 at all members; {sent} messages sent, 1 received");
    assert!(shown.contains(&words), "{shown}");
    shore.logs("group `charts`: `chart.bin` from `ship1` is here");
}

#[test]
fn the_example_of_the_page_is_read() {
    let page = repository("docs/node.md");
    let examples: Vec<_> = page.split("```").filter(|block| block.contains("  group:")).collect();
    assert_eq!(examples.len(), 2, "a group whose members are there, and one of those that carry messages on");
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().display().to_string();
    fs::create_dir_all(dir.path().join("charts/out")).unwrap();
    fs::create_dir_all(dir.path().join("charts/in")).unwrap();
    for example in examples {
        let text = example.trim_start_matches("yaml").replace("/srv", &place);
        let file = dir.path().join("node.yaml");
        let peers = "ship1: 192.0.2.1:7400, ship2: 192.0.3.2:7400";
        fs::write(&file, format!("name: shore\nlisten: 0.0.0.0:7400\npeers: {{ {peers} }}\n{text}")).unwrap();
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_hopcast"))
            .args(["node", "--check"])
            .arg(&file)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
