//! Servers and a client, from start to end.

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::{SystemTime, UNIX_EPOCH};

use hopcast_core::{Duration, Instant};
use hopcast_twin::scenario::model::Signal;

use super::command::{CommandLine, first_line};
use super::error::Error;
use super::spawn::{Running, Spawner, is_open};

/// Time by which servers start before their client. Chosen; with less, a client on a busy machine finds no server; more
/// makes runs longer.
const HEAD_START: Duration = Duration::from_secs(1);
/// Maximum time until a server listens. Chosen; less fails on a busy machine, more delays the error of one that never
/// listens.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time beyond its stop of a program that ends by itself: its last bytes have to cross the network. KCP probes
/// a closed window after 7 s (`IKCP_PROBE_INIT`), and kcptun's is closed if its server is slow to begin.
const COMPLETION_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for which servers go on after an application that is a machine: packets under way may arrive. Chosen; with
/// less, these count as lost.
const SERVER_LINGER_AFTER_APP: Duration = Duration::from_secs(4);
/// Time for which a server that does not end by itself goes on after its client: packets under way may arrive. Chosen;
/// with less, these count as lost.
const SERVER_LINGER: Duration = Duration::from_secs(1);
/// Time that a program has to end after a signal, before it receives a stronger one. Chosen; with less, one that is
/// busy is killed and prints nothing.
const SIGNAL_TIMEOUT: Duration = Duration::from_secs(2);
/// Time between two checks of programs that start or end. Chosen; shorter takes processor time from the run, longer
/// notices the end late.
const POLL_FAST: Duration = Duration::from_millis(10);
/// Time between two checks of programs that run. Chosen; shorter takes processor time from the run, longer notices an
/// unexpected end late.
const POLL_SLOW: Duration = Duration::from_millis(50);

/// One program at its node.
pub(super) struct Process {
    line: CommandLine,
    node: usize,
    /// The node's name, for messages.
    at: String,
    output: PathBuf,
    running: Option<Box<dyn Running>>,
    started: Option<Instant>,
    started_wall: f64,
    ended: Option<(Instant, ExitStatus)>,
    /// The time of the last signal, and the number of signals.
    told: Option<(Instant, u32)>,
}

impl Process {
    /// `line` at node number `node`, whose name is `at`; its output goes to `output`.
    pub(super) fn new(line: CommandLine, node: usize, at: &str, output: PathBuf) -> Self {
        Self {
            line,
            node,
            at: at.to_owned(),
            output,
            running: None,
            started: None,
            started_wall: 0.0,
            ended: None,
            told: None,
        }
    }

    fn start(&mut self, now: Instant, spawner: &mut dyn Spawner) -> Result<(), Error> {
        self.started = Some(now);
        self.started_wall = wall();
        let running = spawner.spawn(self.node, &self.line, &self.output);
        let failed = |error| Error::Node { node: self.at.clone(), source: Box::new(error) };
        self.running = Some(running.map_err(failed)?);
        Ok(())
    }

    fn poll(&mut self, now: Instant) {
        if let (None, Some(running)) = (self.ended, &mut self.running) {
            self.ended = running.poll_exit().map(|status| (now, status));
        }
    }

    fn is_running(&self) -> bool {
        self.running.is_some() && self.ended.is_none()
    }

    /// Sends the next signal: the one that its command line names, then SIGTERM, then SIGKILL.
    fn tell(&mut self, now: Instant) {
        let (Some(running), None) = (&mut self.running, self.ended) else { return };
        let times = match self.told {
            Some((at, _)) if now < at + SIGNAL_TIMEOUT => return,
            Some((_, times)) => times,
            None => 0,
        };
        running.signal(match times {
            0 => self.line.stop_with,
            1 => Signal::Term,
            _ => Signal::Kill,
        });
        self.told = Some((now, times + 1));
    }

    /// Its end, as a message.
    fn end_in_words(&self) -> String {
        let how = match self.ended {
            Some((_, status)) => match (status.code(), status.signal()) {
                (Some(code), _) => format!("ended with exit status {code}"),
                (None, signal) => format!("was ended by signal {}", signal.unwrap_or_default()),
            },
            None => "has not ended".to_owned(),
        };
        let said = ["err", "out"].into_iter().find_map(|ending| first_line(&read(&self.output, ending)));
        let said = said.map(|said| format!(": {said}")).unwrap_or_default();
        format!("`{}` at {} {how}{said}", self.line.program, self.at)
    }
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    /// Before the start.
    Waiting,
    /// This number of servers listens; the next one was started at this time.
    Opening(usize, Instant),
    /// All servers listen.
    Open,
    /// The client runs.
    Running,
    /// The client ended at this time, or was never started.
    Closing(Instant),
    Done,
}

/// Servers and a client.
pub(super) struct Job {
    start: Instant,
    stop: Instant,
    /// In the order of their starts; each needs those before it.
    servers: Vec<Process>,
    /// `None` if the application is a machine.
    client: Option<Process>,
    state: State,
    /// The first failure, as a message.
    pub(super) failure: Option<String>,
}

/// The end of a client.
pub(super) struct ClientEnd {
    /// Its start and the end of the whole job, in seconds of the run.
    pub(super) span: (f64, f64),
    pub(super) started_wall: f64,
    pub(super) exit: Option<i32>,
    pub(super) signal: Option<i32>,
    pub(super) was_signalled: bool,
    /// Its duration.
    pub(super) ran: Duration,
    /// The end as a message, with the first line of its output.
    pub(super) words: String,
}

impl Job {
    pub(super) const fn new(
        start: Instant,
        stop: Instant,
        servers: Vec<Process>,
        client: Option<Process>,
    ) -> Self {
        Self { start, stop, servers, client, state: State::Waiting, failure: None }
    }

    pub(super) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Whether the client will find its servers.
    pub(super) fn is_ready(&self) -> bool {
        let has_time = self.servers.is_empty() || self.start > Instant::ZERO + HEAD_START;
        has_time || !matches!(self.state, State::Waiting | State::Opening(..))
    }

    /// Starts and ends the programs that are due. Before the run, `open_only` starts servers only.
    pub(super) fn step(&mut self, now: Instant, open_only: bool, spawner: &mut dyn Spawner) {
        for process in self.servers.iter_mut().chain(&mut self.client) {
            process.poll(now);
        }
        while let Some(state) = self.next(now, open_only, spawner) {
            self.state = state;
        }
    }

    /// The next state, if it is time for it.
    fn next(&mut self, now: Instant, open_only: bool, spawner: &mut dyn Spawner) -> Option<State> {
        match self.state {
            State::Waiting if self.servers.is_empty() => {
                (now >= self.start && !open_only).then_some(State::Open)
            }
            State::Waiting => (now + HEAD_START >= self.start).then_some(State::Opening(0, now)),
            State::Opening(open, since) => self.open(now, open, since, spawner),
            State::Open if open_only || now < self.start => None,
            State::Open => match self.client.as_mut().map_or(Ok(()), |client| client.start(now, spawner)) {
                Ok(()) => Some(State::Running),
                Err(error) => self.fail(now, error.to_string()),
            },
            State::Running => {
                let gone = |server: &&Process| !server.line.ends_itself && server.ended.is_some();
                if let Some(server) = self.servers.iter().find(gone) {
                    let words = server.end_in_words();
                    return self.fail(now, words);
                }
                // Packets under way to a machine may arrive.
                let Some(client) = &mut self.client else {
                    return (now >= self.stop + SERVER_LINGER_AFTER_APP).then_some(State::Closing(now));
                };
                let over = if client.line.ends_itself { self.stop + COMPLETION_TIMEOUT } else { self.stop };
                if now >= over {
                    client.tell(now);
                }
                client.ended.map(|_| State::Closing(now))
            }
            State::Closing(since) => self.close(now, since),
            State::Done => None,
        }
    }

    fn fail(&mut self, now: Instant, why: String) -> Option<State> {
        self.failure.get_or_insert(why);
        Some(State::Closing(now))
    }

    fn open(
        &mut self,
        now: Instant,
        open: usize,
        since: Instant,
        spawner: &mut dyn Spawner,
    ) -> Option<State> {
        let Some(server) = self.servers.get_mut(open) else { return Some(State::Open) };
        if server.started.is_none()
            && let Err(error) = server.start(now, spawner)
        {
            return self.fail(now, error.to_string());
        }
        server.poll(now);
        if server.ended.is_some() {
            let words = server.end_in_words();
            return self.fail(now, words);
        }
        let id = server.running.as_ref().map_or(0, |running| running.id());
        if server.line.listens_on.is_none_or(|listens_on| is_open(id, listens_on)) {
            return Some(State::Opening(open + 1, now));
        }
        if now < since + LISTEN_TIMEOUT {
            return None;
        }
        let (program, at) = (&server.line.program, &server.at);
        let words = format!("`{program}` at {at} does not listen at its port after {LISTEN_TIMEOUT}");
        self.fail(now, words)
    }

    /// Ends the servers, the last one first, since the others carry its packets.
    fn close(&mut self, now: Instant, since: Instant) -> Option<State> {
        if let Some(client) = self.client.as_mut().filter(|client| client.is_running()) {
            client.tell(now);
            return None;
        }
        let Some(server) = self.servers.iter_mut().rev().find(|server| server.is_running()) else {
            return Some(State::Done);
        };
        let last_chance = match (server.line.ends_itself, &self.client) {
            (true, _) => since.max(self.stop) + COMPLETION_TIMEOUT,
            (false, Some(_)) => since + SERVER_LINGER,
            // The wait is over already.
            (false, None) => since,
        };
        if self.failure.is_some() || now >= last_chance {
            server.tell(now);
        }
        None
    }

    /// The time of the next check; `None` when all programs have ended.
    pub(super) fn deadline(&self, now: Instant) -> Option<Instant> {
        let look = match self.state {
            State::Waiting if self.servers.is_empty() => self.start,
            State::Waiting if self.start > Instant::ZERO + HEAD_START => self.start - HEAD_START,
            State::Waiting => now,
            State::Opening(..) | State::Closing(_) => now + POLL_FAST,
            State::Open => self.start,
            State::Running if now < self.stop => self.stop.min(now + POLL_SLOW),
            State::Running => now + POLL_FAST,
            State::Done => return None,
        };
        Some(look)
    }

    /// Standard output and error of the client.
    pub(super) fn written_by_client(&self) -> [String; 2] {
        written(self.client.as_ref())
    }

    /// Standard output and error of a server, counted from the last one, which is number 0.
    pub(super) fn written_by_server(&self, from_last: usize) -> [String; 2] {
        written(self.servers.iter().nth_back(from_last))
    }

    /// The end of the client; `None` if there is none.
    pub(super) fn client_end(&self, now: Instant) -> Option<ClientEnd> {
        let seconds = |at: Instant| at.since(Instant::ZERO).as_secs_f64();
        let client = self.client.as_ref()?;
        let status = client.ended.map(|(_, status)| status);
        Some(ClientEnd {
            span: (seconds(client.started.unwrap_or(self.start)), seconds(now)),
            started_wall: client.started_wall,
            exit: status.and_then(|status| status.code()),
            signal: status.and_then(|status| status.signal()),
            was_signalled: client.told.is_some(),
            ran: client.ended.map_or(now, |(at, _)| at).since(client.started.unwrap_or(self.start)),
            words: client.end_in_words(),
        })
    }
}

/// Standard output and error of a program; empty of none.
fn written(process: Option<&Process>) -> [String; 2] {
    ["out", "err"].map(|ending| process.map_or_else(String::new, |process| read(&process.output, ending)))
}

/// Maximum length of output that is read, in bytes: programs print one or two lines for each interval. Chosen: it
/// bounds memory.
const MAX_OUTPUT: u64 = 256 << 20;

/// A program's output file.
fn read(output: &std::path::Path, ending: &str) -> String {
    use std::io::Read;
    let mut bytes = Vec::new();
    if let Ok(file) = std::fs::File::open(output.with_added_extension(ending)) {
        // A part of it is better than nothing.
        let _ = file.take(MAX_OUTPUT).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The machine's time of day, in seconds, which programs print.
#[allow(clippy::disallowed_methods)] // Programs stamp what they print with this clock, and no other tells when that was.
fn wall() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}
