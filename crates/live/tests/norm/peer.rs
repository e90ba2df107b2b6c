//! A member of the real protocol's library: a program in `peers`, in a node of the network.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hopcast_live::lab::Lab;
use serde_json::Value;

use crate::program::{self, program};

/// A running member.
pub(crate) struct Peer {
    child: Child,
    events: Arc<Mutex<Vec<Value>>>,
    reader: Option<JoinHandle<()>>,
}

/// A transfer that a member received, or handed to its library.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Transfer {
    pub(crate) kind: String,
    pub(crate) size: u64,
    pub(crate) hash: String,
}

impl Transfer {
    pub(crate) fn of(kind: &str, bytes: &[u8]) -> Self {
        Self { kind: kind.to_owned(), size: bytes.len() as u64, hash: hash(bytes) }
    }
}

impl Peer {
    /// Starts a member as `node` of the network, whose identifier is one more.
    pub(crate) fn start(lab: &Lab, node: usize, settings: &[String]) -> Self {
        let mut command = lab.command(node, program());
        command.args(program::place(node)).args(settings).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = lab.start(command).unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let events = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&events);
        let reader = std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let event = serde_json::from_str(&line).expect("each line is a JSON object");
                kept.lock().unwrap().push(event);
            }
        });
        Self { child, events, reader: Some(reader) }
    }

    /// The events so far that have this name.
    pub(crate) fn events(&self, name: &str) -> Vec<Value> {
        let events = self.events.lock().unwrap();
        events.iter().filter(|event| event["event"] == name).cloned().collect()
    }

    /// Waits until there are this number of events of that name.
    pub(crate) fn wait_for(&self, name: &str, count: usize) {
        let end = Instant::now() + Duration::from_secs(60);
        while self.events(name).len() < count {
            assert!(Instant::now() < end, "no {count} `{name}`: {:#?}", self.events.lock().unwrap());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The transfers that are complete here, in the order of kinds and sizes.
    pub(crate) fn completed(&self) -> Vec<Transfer> {
        let text = |event: &Value, key: &str| event[key].as_str().unwrap_or("data").to_owned();
        let of = |event: &Value| Transfer {
            kind: text(event, "kind"),
            size: event["size"].as_u64().unwrap(),
            hash: text(event, "hash"),
        };
        let mut transfers: Vec<_> = self.events("complete").iter().map(of).collect();
        transfers.sort();
        transfers
    }

    /// Waits until it has ended, and says whether it did what it was to do.
    pub(crate) fn finish(&mut self) -> bool {
        let done = self.child.wait().unwrap().success();
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        done
    }

    /// Ends it at once, as a crash does.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.finish();
    }

    /// All that it said.
    pub(crate) fn log(&self) -> String {
        self.events.lock().unwrap().iter().map(|event| format!("{event}\n")).collect()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Builds a program of `peers` with these libraries, and returns its path.
pub(crate) fn build(name: &str, libraries: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers").join(name).with_extension("cc");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-peer"));
    // Another process of tests may build it, or run it, at the same time.
    let fresh = program.with_extension(std::process::id().to_string());
    let mut build = Command::new("c++");
    build.args(["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&fresh).arg(&source);
    let built = build.args(libraries).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    std::fs::rename(&fresh, &program).unwrap();
    program
}

/// FNV-1a of 64 bits, as the program prints it.
fn hash(bytes: &[u8]) -> String {
    let step = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    format!("{:016x}", bytes.iter().fold(0xcbf2_9ce4_8422_2325, step))
}
