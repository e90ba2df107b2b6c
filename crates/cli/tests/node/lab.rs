//! Namespaces in a row, nodes in them, and what a test does inside.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hopcast_node::status::{Status, ask};
use hopcast_node::testing::{Requirement, require};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Whether the machine has what these tests need; else it says that they are skipped.
pub(crate) fn possible() -> bool {
    let programs = ["ip", "nft", "ping"].map(Requirement::Program);
    require(&[&[Requirement::Root, Requirement::Tun][..], &programs].concat())
}

/// Namespaces that go with it, and a directory for files.
pub(crate) struct Lab {
    prefix: String,
    names: Vec<String>,
    pub(crate) dir: tempfile::TempDir,
}

impl Lab {
    /// Hosts in a row, each with a link to the next: number i has 192.0.(2+i).1, its neighbour 192.0.(2+i).2.
    pub(crate) fn row(names: &[&str]) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("hopcast-{}-{number}", std::process::id());
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let lab = Self { prefix, names, dir: tempfile::tempdir().unwrap() };
        for name in &lab.names {
            run(&["ip", "netns", "add", &lab.space(name)]);
            lab.run(name, "ip link set lo up");
        }
        for (i, pair) in lab.names.windows(2).enumerate() {
            let [left, right] = [&pair[0], &pair[1]];
            let (one, other) = (lab.space(left), lab.space(right));
            run(&["ip", "-n", &one, "link", "add", "right", "type", "veth", "peer", "left", "netns", &other]);
            for (name, device, end) in [(left, "right", 1), (right, "left", 2)] {
                lab.run(name, &format!("ip address add 192.0.{}.{end}/24 dev {device}", i + 2));
                lab.run(name, &format!("ip link set {device} up"));
            }
        }
        lab
    }

    /// The namespace of a host.
    pub(crate) fn space(&self, name: &str) -> String {
        format!("{}-{name}", self.prefix)
    }

    /// Runs a line of words on a host, which must succeed.
    pub(crate) fn run(&self, name: &str, line: &str) -> String {
        let output = self.attempt(name, line);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "{name}: {line}: {}{}", text(&output.stdout), text(&output.stderr));
        text(&output.stdout)
    }

    /// Runs a line of words on a host.
    pub(crate) fn attempt(&self, name: &str, line: &str) -> Output {
        self.command(name, &line.split_whitespace().collect::<Vec<_>>())
    }

    /// Runs words on a host that may have spaces in them.
    pub(crate) fn command(&self, name: &str, words: &[&str]) -> Output {
        let space = self.space(name);
        let words = ["netns", "exec", space.as_str()].into_iter().chain(words.iter().copied());
        Command::new("ip").args(words).current_dir(&self.dir).output().unwrap()
    }

    /// Loses this percentage of what a host receives, whatever it is.
    pub(crate) fn lose(&self, name: &str, percent: u32) {
        let rules = format!(
            "table inet lossy {{\nchain input {{\ntype filter hook input priority -300\n\
             meta l4proto udp iifname {{ left, right }} numgen random mod 100 < {percent} drop\n}}\n}}\n"
        );
        fs::write(self.dir.path().join("lossy.nft"), rules).unwrap();
        self.run(name, "nft -f lossy.nft");
    }

    /// Routes everything of a host to a neighbour.
    pub(crate) fn default_route(&self, name: &str, via: &str) {
        self.run(name, &format!("ip route add default via {via}"));
    }

    /// Does something in a host's network, in a thread of its own.
    pub(crate) fn inside<T: Send + 'static>(
        &self,
        name: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let space = File::open(format!("/run/netns/{}", self.space(name))).unwrap();
        thread::spawn(move || {
            use std::os::fd::AsFd;
            move_into_link_name_space(space.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            work()
        })
    }

    /// Starts a node on the host that has its name; what the file says of its status is added.
    pub(crate) fn node(&self, name: &str, config: &str) -> Node {
        let node = self.start(name, config);
        node.logs("encrypted");
        node
    }

    /// The same, which may not come up.
    pub(crate) fn start(&self, name: &str, config: &str) -> Node {
        let path = |kind: &str| self.dir.path().join(format!("{name}.{kind}"));
        let socket = path("sock");
        let mut text = config.to_owned();
        if !text.contains("status:") {
            text.push_str(&format!("\nstatus: {}\n", socket.display()));
        }
        fs::write(path("yaml"), text).unwrap();
        // Each start has a log of its own.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let log = path(&format!("{}.log", NEXT.fetch_add(1, Ordering::Relaxed)));
        let log_file = File::create(&log).unwrap();
        let process = Command::new("ip")
            .args(["netns", "exec", &self.space(name), env!("CARGO_BIN_EXE_hopcast"), "node"])
            .arg(path("yaml"))
            .stdin(Stdio::null())
            .stdout(log_file.try_clone().unwrap())
            .stderr(log_file)
            .spawn()
            .unwrap();
        Node { process, log, socket }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "del", &self.space(name)]).output();
        }
    }
}

/// A running node, which is killed with this.
pub(crate) struct Node {
    process: Child,
    log: PathBuf,
    pub(crate) socket: PathBuf,
}

impl Node {
    /// Its log.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// Waits until it has logged something.
    pub(crate) fn logs(&self, words: &str) {
        let found = within(Duration::from_secs(20), || self.log().contains(words));
        assert!(found, "nothing about {words:?} in:\n{}", self.log());
    }

    /// Waits until all its peers are up.
    pub(crate) fn is_up(&self) {
        let up = || self.try_status().is_some_and(|it| it.peers.iter().all(|peer| peer.state == "up"));
        assert!(within(Duration::from_secs(20), up), "{:?}\n{}", self.try_status(), self.log());
    }

    pub(crate) fn status(&self) -> Status {
        let mut status = None;
        // A busy machine may let the first who ask wait for too long.
        within(Duration::from_secs(20), || {
            status = self.try_status();
            status.is_some()
        });
        status.unwrap_or_else(|| panic!("{:?}", ask::status(&self.socket)))
    }

    fn try_status(&self) -> Option<Status> {
        ask::status(&self.socket).ok().map(|(_, status)| status)
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: &str) {
        run(&["kill", &format!("-{signal}"), &self.process.id().to_string()]);
    }

    /// Waits until it ends; its exit code, if it was no signal.
    pub(crate) fn ends(&mut self) -> Option<i32> {
        let mut status = None;
        let ended = within(Duration::from_secs(10), || {
            status = self.process.try_wait().unwrap();
            status.is_some()
        });
        assert!(ended, "it does not end:\n{}", self.log());
        status.unwrap().code()
    }

    /// Its memory, in bytes.
    pub(crate) fn resident(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        1024 * line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap()
    }

    /// Kills it as nothing can be prepared for.
    pub(crate) fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("{}:\n{}", self.log.display(), self.log());
        }
        self.kill();
    }
}

/// Whether something comes true in time.
pub(crate) fn within(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + limit;
    while !holds() {
        if Instant::now() > end {
            return false;
        }
        thread::sleep(Duration::from_millis(50));
    }
    true
}

fn run(words: &[&str]) {
    let output = Command::new(words[0]).args(&words[1..]).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A file of the repository.
pub(crate) fn repository(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)).unwrap()
}
