//! The nodes' processes, and what is said between them and the run; see [`worker`](crate::worker).

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time;

use hopcast_node::Clock;
use hopcast_twin::Monitor;
use hopcast_twin::scenario::model::Scenario;

use super::error::{Error, NodeFailure};
use crate::lab::Lab;
use crate::worker::NodeReport;

/// A node that says nothing for so long hangs.
const PATIENCE: time::Duration = time::Duration::from_secs(20);
/// How often to look whether the run is to be given up.
const LOOK: time::Duration = time::Duration::from_millis(50);
/// Of what a node has to say before it ends, no more than so much is shown.
const LAST_WORDS: usize = 64 << 10;

/// The processes of a run's nodes.
pub(super) struct Conductor {
    nodes: Vec<Node>,
}

struct Node {
    name: String,
    process: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    /// What it writes to its standard error.
    errors: Option<JoinHandle<String>>,
}

impl Conductor {
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
            // A Ctrl-C at the terminal is the run's, and it tells the nodes.
            command.process_group(0);
            command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let failed = |error| Error::node(&node.name, NodeFailure::Start(error));
            let mut process = lab.start(command).map_err(failed)?;
            let (say, lines) = channel();
            if let Some(output) = process.stdout.take() {
                let read = move || {
                    let mut said = BufReader::new(output).split(b'\n').map_while(Result::ok);
                    // Until it ends, or nobody listens.
                    let _ = said.try_for_each(|line| say.send(String::from_utf8_lossy(&line).into_owned()));
                };
                std::thread::Builder::new().spawn(read).map_err(failed)?;
            }
            let errors = process.stderr.take().map(|errors| {
                std::thread::Builder::new().spawn(move || {
                    let mut text = Vec::new();
                    let mut errors = errors;
                    let _ = errors.by_ref().take(LAST_WORDS as u64).read_to_end(&mut text);
                    // It must be able to go on.
                    let _ = std::io::copy(&mut errors, &mut std::io::sink());
                    String::from_utf8_lossy(&text).into_owned()
                })
            });
            let errors = errors.transpose().map_err(failed)?;
            let input = process.stdin.take();
            nodes.push(Node { name: node.name.clone(), process, input, lines, errors });
        }
        Ok(Self { nodes })
    }

    /// Waits until each has loaded its part; `None` if the run is given up meanwhile.
    /// All must have loaded the same case: the file may have changed since.
    pub(super) fn all_loaded(&mut self, identity: &str, monitor: &Monitor) -> Result<Option<()>, Error> {
        for node in &mut self.nodes {
            let Some(line) = node.line(|| monitor.is_cancelled())? else { return Ok(None) };
            if node.expect("loaded ", &line)? != identity {
                return Err(Error::node(&node.name, NodeFailure::OtherScenario));
            }
        }
        Ok(Some(()))
    }

    /// Tells each when the run begins, and waits until all have opened what they need.
    pub(super) fn set_zero(&mut self, clock: Clock) -> Result<(), Error> {
        for node in &mut self.nodes {
            let told = node.input.as_mut().map(|input| writeln!(input, "zero {}", clock.zero()));
            // One that is gone has said why.
            told.transpose().ok();
        }
        for node in &mut self.nodes {
            let line = node.line(|| false)?.unwrap_or_default();
            node.expect("ready", &line)?;
        }
        Ok(())
    }

    /// Looks whether all of them still run.
    pub(super) fn look_after(&mut self) -> Result<(), Error> {
        for node in &mut self.nodes {
            if node.process.try_wait().is_ok_and(|status| status.is_some()) {
                return Err(node.obituary());
            }
        }
        Ok(())
    }

    /// Ends the run, and says what each node found.
    pub(super) fn finish(mut self) -> Result<Vec<(String, NodeReport)>, Error> {
        // All at once: no node shall run on alone.
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
    /// The next line that it says; `None` if the run is given up meanwhile.
    fn line(&mut self, given_up: impl Fn() -> bool) -> Result<Option<String>, Error> {
        let mut waited = time::Duration::ZERO;
        while waited < PATIENCE {
            match self.lines.recv_timeout(LOOK) {
                Ok(line) => return Ok(Some(line)),
                Err(RecvTimeoutError::Disconnected) => return Err(self.obituary()),
                Err(RecvTimeoutError::Timeout) if given_up() => return Ok(None),
                Err(RecvTimeoutError::Timeout) => waited += LOOK,
            }
        }
        Err(Error::node(&self.name, NodeFailure::Silent(PATIENCE.as_secs())))
    }

    /// What follows the word in its line, if that begins with it.
    fn expect<'l>(&self, word: &'static str, line: &'l str) -> Result<&'l str, Error> {
        line.strip_prefix(word).ok_or_else(|| {
            let failure = match line.strip_prefix("failed ") {
                Some(why) => NodeFailure::Failed(why.to_owned()),
                None => NodeFailure::Unexpected { expected: word, found: line.to_owned() },
            };
            Error::node(&self.name, failure)
        })
    }

    /// Why it is gone, as far as is known.
    fn obituary(&mut self) -> Error {
        // One that has only fallen silent ends with its input, or by force.
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
        // It has nothing to keep that is worth waiting for.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
