//! Groups whose members hold files and messages for each other.

use std::fs;
use std::process::Command;
use std::time::Duration;

use hopcast_node::status::HeldStatus;

use crate::group::{SITES, Sites, contents, receive};
use crate::lab::{Lab, Node, possible, within};

/// The amounts that a node holds of its group.
fn held(node: &Node) -> HeldStatus {
    node.status().groups.swap_remove(0).held.unwrap()
}

#[test]
fn files_and_messages_reach_both_others_and_one_that_is_started_anew_gets_none_twice() {
    if !possible() {
        return;
    }
    let sites = Sites::new("disservice");
    let (chart, note) = (contents(2_000_000), contents(1));
    let nodes = SITES.map(|name| sites.start(name));
    nodes.iter().for_each(Node::is_up);
    let programs = SITES.map(|name| sites.program(name));
    fs::write(sites.path("ship1", "out").join("chart.bin"), &chart).unwrap();
    fs::write(sites.path("ship2", "out").join("note"), &note).unwrap();
    programs[0].send(b"position 1").unwrap();
    assert_eq!([1, 2].map(|site: usize| receive(&programs[site])), ["ship1 position 1"; 2]);
    let all = || {
        ["shore", "ship2"].iter().all(|name| sites.has(name, "ship1", "chart.bin", &chart))
            && ["shore", "ship1"].iter().all(|name| sites.has(name, "ship2", "note", &note))
    };
    assert!(within(Duration::from_secs(30), all), "{:?}", nodes[1].status().groups);
    nodes[1].logs("group `charts`: `chart.bin` from `ship1` is here");

    // One that is started anew serves what it held, takes what is new, and is given nothing again.
    let [ship1, shore, mut ship2] = nodes;
    ship2.signal("TERM");
    assert_eq!(ship2.ends(), Some(0));
    programs[0].send(b"position 2").unwrap();
    fs::remove_file(sites.path("ship2", "in").join("ship1/chart.bin")).unwrap();
    let ship2 = sites.start("ship2");
    let program = sites.program("ship2");
    assert_eq!(held(&ship2).messages, 3, "two files and a message: {:?}", held(&ship2));
    assert_eq!(receive(&program), "ship1 position 2");
    let received = || {
        let counters = ship2.status().groups.swap_remove(0).counters;
        (counters["messages_received"], counters["files_received"])
    };
    assert!(within(Duration::from_secs(5), || received() == (1, 0)), "{:?}", received());
    assert!(!sites.path("ship2", "in").join("ship1/chart.bin").exists(), "it has been given once");
    assert_eq!(held(&ship1).files_published, 1);
    let words = [env!("CARGO_BIN_EXE_hopcast"), "node", "status", "--socket", "shore.sock"];
    let shown = String::from_utf8(sites.lab.command("shore", &words).stdout).unwrap();
    let expected = "group charts over disservice: 0 files published, 0 due, 2 received, 0 waiting; 0 messages published, \
                    2 received";
    assert!(shown.contains(expected), "{shown}");
    drop(shore);
}

/// An island and a shore that never hear each other, and a ferry between them that only holds.
struct Crossing(Lab);

impl Crossing {
    fn new() -> Self {
        let lab = Lab::row(&["island", "ferry", "shore"]);
        ["island", "ferry", "shore"].iter().for_each(|name| lab.lose(name, 10));
        for place in ["island-out", "shore-in"] {
            fs::create_dir(lab.dir.path().join(place)).unwrap();
        }
        Self(lab)
    }

    fn path(&self, name: &str) -> String {
        self.0.dir.path().join(name).display().to_string()
    }

    fn start(&self, name: &str) -> Node {
        let (peers, part) = match name {
            "island" => {
                ("ferry: 192.0.2.2:7400", format!("send: {{ directory: {} }}", self.path("island-out")))
            }
            "shore" => {
                ("ferry: 192.0.3.1:7400", format!("receive: {{ directory: {} }}", self.path("shore-in")))
            }
            _ => ("island: 192.0.2.1:7400, shore: 192.0.3.2:7400", String::new()),
        };
        let messages = match name {
            "ferry" => String::new(),
            _ => format!("messages: {{ socket: {} }}", self.path(&format!("{name}-messages"))),
        };
        let state = self.path(&format!("{name}-state"));
        self.0.node(
            name,
            &format!(
                "name: {name}
listen: 0.0.0.0:7400
peers: {{ {peers} }}
carry:
  group:
    name: charts
    members: [island, ferry, shore]
    {part}
    {messages}
    over: disservice
state: {state}
"
            ),
        )
    }

    fn program(&self, name: &str) -> socket2::Socket {
        let socket = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::SEQPACKET, None).unwrap();
        socket.connect(&socket2::SockAddr::unix(self.path(&format!("{name}-messages"))).unwrap()).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        socket
    }
}

#[test]
fn what_a_carrier_holds_reaches_who_comes_later_when_the_publisher_is_gone_and_the_carrier_was_killed() {
    if !possible() {
        return;
    }
    let crossing = Crossing::new();
    let chart = contents(3_000_000);
    // What is published before anybody is there.
    fs::write(crossing.path("island-out") + "/chart.bin", &chart).unwrap();
    let island = crossing.start("island");
    crossing.program("island").send(b"we are three").unwrap();
    assert!(within(Duration::from_secs(20), || held(&island).files_published == 1), "{:?}", held(&island));
    let mut ferry = crossing.start("ferry");
    ferry.logs("holding for the group `charts`");
    // It is on the ferry's disk once it is whole.
    let is_carried = || {
        let held = held(&ferry);
        held.messages == 2 && held.disk_bytes > Some(chart.len() as u64)
    };
    assert!(within(Duration::from_secs(60), is_carried), "{:?}", held(&ferry));
    drop(island);
    ferry.kill();
    let ferry = crossing.start("ferry");
    assert_eq!(held(&ferry).messages, 2);
    let shore = crossing.start("shore");
    assert_eq!(receive(&crossing.program("shore")), "island we are three");
    let came = || fs::read(crossing.path("shore-in") + "/island/chart.bin").is_ok_and(|found| found == chart);
    assert!(within(Duration::from_secs(60), came), "{:?}", shore.status().groups);
    let member = |name: &str| {
        let members = shore.status().groups.swap_remove(0).members;
        members.into_iter().find(|member| member.name == name).unwrap()
    };
    let counts = || (member("island").files_received, member("island").messages_received);
    assert!(within(Duration::from_secs(5), || counts() == (1, 1)), "{:?}", counts());
    assert!(member("island").afar && member("ferry").silent_s.is_some_and(|at| at < 60.0));
}

/// A file system of a megabyte, unmounted with this.
struct SmallDisk(String);

impl SmallDisk {
    fn new(path: String) -> Self {
        fs::create_dir(&path).unwrap();
        let words = ["-t", "tmpfs", "-o", "size=1m", "tmpfs", &path];
        assert!(Command::new("mount").args(words).status().unwrap().success());
        Self(path)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Whoever still has it open is no reason to keep it.
        let _ = Command::new("umount").args(["--lazy", &self.0]).status();
    }
}

#[test]
fn a_store_that_cannot_be_opened_or_is_full_is_worth_a_line_and_the_node_goes_on_without() {
    if !possible() {
        return;
    }
    let crossing = Crossing::new();
    // A file is where the directory would be.
    fs::write(crossing.path("island-state"), "").unwrap();
    let island = crossing.start("island");
    island.logs("what is held for others is not kept over a restart");
    // A disk with room for a megabyte.
    let _small = SmallDisk::new(crossing.path("ferry-state"));
    let ferry = crossing.start("ferry");
    fs::write(crossing.path("island-out") + "/chart.bin", contents(3_000_000)).unwrap();
    ferry.logs("not there after a restart");
    let shore = crossing.start("shore");
    shore.logs("`chart.bin` from `island` is here");
    assert_eq!(ferry.log().matches("not there after a restart").count(), 1);
    assert!(held(&island).disk_bytes.is_none());
}
