//! Starting programs and watching them.

use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use hopcast_twin::scenario::model::Signal;
use rustix::process::{Pid, kill_process_group};

use super::command::{CommandLine, ListenPort};
use super::error::Error;

/// Starts programs at nodes.
pub trait Spawner {
    /// Starts `command` at `node`, with its output in the files `output.out` and `output.err`.
    ///
    /// # Errors
    /// The reason why it cannot be started.
    fn spawn(&mut self, node: usize, command: &CommandLine, output: &Path)
    -> Result<Box<dyn Running>, Error>;
}

/// A program that was started.
pub trait Running {
    /// Its process id.
    fn id(&self) -> u32;
    /// Its exit status, if it has ended.
    fn poll_exit(&mut self) -> Option<ExitStatus>;
    /// Sends a signal to it and to its descendants.
    fn signal(&mut self, signal: Signal);
}

impl CommandLine {
    /// Completes a command that runs [`program`](Self::program) at its node: arguments, environment, output files, and
    /// a process group of its own.
    ///
    /// # Errors
    /// A file that cannot be made.
    pub fn apply_to(&self, command: &mut Command, output: &Path) -> Result<(), Error> {
        let file = |ending: &str| {
            let path = output.with_added_extension(ending);
            fs::File::create(&path).map_err(Error::file(path))
        };
        command.args(&self.arguments).envs(self.environment.iter().cloned()).process_group(0);
        command.stdin(Stdio::null()).stdout(file("out")?).stderr(file("err")?);
        Ok(())
    }
}

/// A child of this process that leads a process group.
#[derive(Debug)]
pub struct ChildProcess {
    child: Child,
    ended: Option<ExitStatus>,
}

impl ChildProcess {
    /// A child whose command [`CommandLine::apply_to`] has completed.
    pub const fn new(child: Child) -> Self {
        Self { child, ended: None }
    }
}

impl Running for ChildProcess {
    fn id(&self) -> u32 {
        self.child.id()
    }

    fn poll_exit(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            // A child that cannot be waited for is gone.
            self.ended = self.child.try_wait().unwrap_or_else(|_| Some(ExitStatus::from_raw(0)));
        }
        self.ended
    }

    fn signal(&mut self, signal: Signal) {
        // The leader's number is the group's as long as the group has a process.
        let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let signal = match signal {
            Signal::Int => rustix::process::Signal::INT,
            Signal::Term => rustix::process::Signal::TERM,
            Signal::Hup => rustix::process::Signal::HUP,
            Signal::Kill => rustix::process::Signal::KILL,
        };
        if let (Some(group), None) = (group, self.ended) {
            // The group may have ended.
            let _ = kill_process_group(group, signal);
        }
    }
}

/// Kills the process if it still runs.
impl Drop for ChildProcess {
    fn drop(&mut self) {
        if self.poll_exit().is_none() {
            self.signal(Signal::Kill);
            let _ = self.child.wait();
        }
    }
}

/// Whether a socket listens at the port in the network of process `id`.
pub(super) fn is_open(id: u32, listens_on: ListenPort) -> bool {
    let (tables, port, state) = match listens_on {
        ListenPort::Tcp(port) => (["tcp", "tcp6"], port, Some(LISTENING)),
        ListenPort::Udp(port) => (["udp", "udp6"], port, None),
    };
    tables.iter().any(|table| {
        let sockets = fs::read_to_string(format!("/proc/{id}/net/{table}")).unwrap_or_default();
        has_socket(&sockets, port, state)
    })
}

/// The state of a listening socket (`TCP_LISTEN` of the kernel).
const LISTENING: &str = "0A";

/// `   0: 0100007F:2710 00000000:0000 0A …`: number, local address and port, remote address and port, state.
fn has_socket(table: &str, port: u16, state: Option<&str>) -> bool {
    table.lines().skip(1).any(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let own = fields.next().and_then(|address| address.rsplit_once(':'));
        let same = own.and_then(|(_, port)| u16::from_str_radix(port, 16).ok()) == Some(port);
        same && state.is_none_or(|state| fields.nth(1) == Some(state))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str =
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:2710 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1
   1: 0100007F:2711 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 2
";

    #[test]
    fn a_port_is_open_when_somebody_listens_at_it() {
        assert!(has_socket(TABLE, 10_000, Some(LISTENING)));
        assert!(!has_socket(TABLE, 10_001, Some(LISTENING)), "connected");
        assert!(has_socket(TABLE, 10_001, None));
        assert!(!has_socket(TABLE, 0x9999, None), "the other's");
        assert!(!has_socket("", 10_000, None));
    }
}
