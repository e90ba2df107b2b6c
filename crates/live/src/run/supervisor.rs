//! The processes of the nodes, and the protocol between them and the run; see [`worker`](crate::worker).

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time;

use hopcast_node::Clock;
use hopcast_twin::Monitor;
use hopcast_twin::scenario::model::{NodeId, Scenario};

use super::error::{Error, NodeFailure};
use crate::lab::Lab;
use crate::worker::{COMPLETE, NodeReport};

/// Maximum silence of a node; one that is silent for longer counts as hanging. Chosen; shorter, and so does a node of a
/// busy machine; longer delays the error.
const SILENCE_TIMEOUT: time::Duration = time::Duration::from_secs(20);
/// Time between two checks of whether the run was cancelled. Chosen: too short for a person to notice; shorter costs
/// processor time.
const POLL_INTERVAL: time::Duration = time::Duration::from_millis(50);
/// Maximum length of a node's standard error that is kept, in bytes. Chosen: it bounds memory.
const MAX_STDERR: usize = 64 << 10;

/// The processes of a run's nodes.
pub(super) struct Supervisor {
    nodes: Vec<Node>,
}

struct Node {
    name: String,
    process: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    /// Its standard error.
    errors: Option<JoinHandle<String>>,
    /// Whether it has received all of a transfer.
    complete: bool,
}

impl Supervisor {
    /// Starts a process in each node.
    pub(super) fn start(
        lab: &Lab,
        scenario: &Scenario,
        command: impl Fn(&str) -> Vec<OsString>,
    ) -> Result<Self, Error> {
        let mut nodes = Vec::new();
        for (number, node) in scenario.nodes.iter().enumerate() {
            let mut words = command(&node.name).into_iter();
            let mut command = lab.command(number, words.next().unwrap_or_default());
            // A Ctrl-C at the terminal ends the run, which then ends the nodes.
            command.process_group(0);
            command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let failed = |error| Error::node(&node.name, NodeFailure::Start(error));
            let mut process = lab.start(command).map_err(failed)?;
            let (say, lines) = channel();
            if let Some(output) = process.stdout.take() {
                let read = move || {
                    let mut said = BufReader::new(output).split(b'\n').map_while(Result::ok);
                    // Until the process ends, or nobody listens.
                    let _ = said.try_for_each(|line| say.send(String::from_utf8_lossy(&line).into_owned()));
                };
                std::thread::Builder::new().spawn(read).map_err(failed)?;
            }
            let errors = process.stderr.take().map(|errors| {
                std::thread::Builder::new().spawn(move || {
                    let mut text = Vec::new();
                    let mut errors = errors;
                    let _ = errors.by_ref().take(MAX_STDERR as u64).read_to_end(&mut text);
                    // The rest is discarded, so that the process does not block.
                    let _ = std::io::copy(&mut errors, &mut std::io::sink());
                    String::from_utf8_lossy(&text).into_owned()
                })
            });
            let errors = errors.transpose().map_err(failed)?;
            let input = process.stdin.take();
            nodes.push(Node { name: node.name.clone(), process, input, lines, errors, complete: false });
        }
        Ok(Self { nodes })
    }

    /// Waits until each node has loaded its part; `None` if the run is cancelled meanwhile. All must have loaded the
    /// same case: the file may have changed since.
    pub(super) fn all_loaded(&mut self, identity: &str, monitor: &Monitor) -> Result<Option<()>, Error> {
        for node in &mut self.nodes {
            let Some(line) = node.line(|| monitor.is_cancelled())? else { return Ok(None) };
            if node.expect("loaded ", &line)? != identity {
                return Err(Error::node(&node.name, NodeFailure::OtherScenario));
            }
        }
        Ok(Some(()))
    }

    /// Sends the start of the run to each node, and waits until all have opened their sockets and devices.
    pub(super) fn set_zero(&mut self, clock: Clock) -> Result<(), Error> {
        for node in &mut self.nodes {
            let told = node.input.as_mut().map(|input| writeln!(input, "zero {}", clock.zero()));
            // A node that has ended has written its error.
            told.transpose().ok();
        }
        for node in &mut self.nodes {
            let line = node.line(|| false)?.unwrap_or_default();
            node.expect("ready", &line)?;
        }
        Ok(())
    }

    /// Checks that all nodes still run.
    pub(super) fn check_running(&mut self) -> Result<(), Error> {
        for node in &mut self.nodes {
            if node.process.try_wait().is_ok_and(|status| status.is_some()) {
                return Err(node.end_failed());
            }
        }
        Ok(())
    }

    /// Whether a node has said that it has received all of a transfer.
    pub(super) fn is_complete(&mut self, node: NodeId) -> bool {
        let node = &mut self.nodes[node];
        // Nothing else is said while the run lasts.
        node.complete |= node.lines.try_iter().any(|line| line == COMPLETE);
        node.complete
    }

    /// Ends the run, and returns the report of each node.
    pub(super) fn finish(mut self) -> Result<Vec<(String, NodeReport)>, Error> {
        // All at once: no node goes on without the others.
        self.nodes.iter_mut().for_each(|node| drop(node.input.take()));
        let mut reports = Vec::new();
        for node in &mut self.nodes {
            let line = node.line(|| false)?.unwrap_or_default();
            let text = node.expect("report ", &line)?;
            let report = serde_json::from_str(text)
                .map_err(|error| Error::node(&node.name, NodeFailure::Report(error)))?;
            reports.push((node.name.clone(), report));
        }
        Ok(reports)
    }
}

impl Node {
    /// The next line of its output; `None` if the run is cancelled meanwhile.
    fn line(&mut self, given_up: impl Fn() -> bool) -> Result<Option<String>, Error> {
        let mut waited = time::Duration::ZERO;
        while waited < SILENCE_TIMEOUT {
            match self.lines.recv_timeout(POLL_INTERVAL) {
                Ok(line) if line == COMPLETE => self.complete = true,
                Ok(line) => return Ok(Some(line)),
                Err(RecvTimeoutError::Disconnected) => return Err(self.end_failed()),
                Err(RecvTimeoutError::Timeout) if given_up() => return Ok(None),
                Err(RecvTimeoutError::Timeout) => waited += POLL_INTERVAL,
            }
        }
        Err(Error::node(&self.name, NodeFailure::Silent(SILENCE_TIMEOUT.as_secs())))
    }

    /// The rest of its line after `word`; an error if the line begins otherwise.
    fn expect<'l>(&self, word: &'static str, line: &'l str) -> Result<&'l str, Error> {
        line.strip_prefix(word).ok_or_else(|| {
            let failure = match line.strip_prefix("failed ") {
                Some(why) => NodeFailure::Failed(why.to_owned()),
                None => NodeFailure::Unexpected { expected: word, found: line.to_owned() },
            };
            Error::node(&self.name, failure)
        })
    }

    /// Ends a node that has failed or is silent, and returns its error with the last line that it wrote.
    fn end_failed(&mut self) -> Error {
        // A silent node ends when its input does, or is killed.
        drop(self.input.take());
        let _ = self.process.kill();
        let said: Option<String> =
            self.lines.try_iter().find_map(|line| line.strip_prefix("failed ").map(str::to_owned));
        let status = self.process.wait();
        let errors = self.errors.take().and_then(|errors| errors.join().ok());
        let first = errors.as_deref().and_then(|text| text.lines().find(|line| !line.trim().is_empty()));
        let why = said.or_else(|| first.map(str::to_owned)).unwrap_or_else(|| "it said nothing".to_owned());
        Error::node(&self.name, NodeFailure::Ended { status, words: why })
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        drop(self.input.take());
        // The node has nothing to save, so there is no need to wait.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
