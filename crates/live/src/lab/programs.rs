//! Programs in a lab: one thread starts them all, and they end with it.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::process::{Child, Command};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use hopcast_core::{Duration, Instant};
use hopcast_node::Clock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::namespace::Namespace;

/// Time that a program has to end after SIGTERM. Chosen; with less, one that is busy is killed and prints nothing.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Starts programs.
///
/// The kernel kills a program that was started with `setpriv --pdeathsig` when the thread that started it ends. So one
/// thread starts all of them, and lasts until this is dropped. A program that has not yet run `setpriv` is killed by
/// its descriptor.
pub(super) struct Starter {
    requests: Option<Sender<Request>>,
    thread: Option<JoinHandle<()>>,
    /// Descriptors of those that may still run.
    started: Mutex<Vec<OwnedFd>>,
}

struct Request {
    command: Command,
    answer: Sender<io::Result<Child>>,
}

impl Starter {
    pub(super) fn new() -> io::Result<Self> {
        let (requests, inbox) = mpsc::channel();
        let thread =
            std::thread::Builder::new().name("programs".to_owned()).spawn(move || start_all(&inbox))?;
        Ok(Self { requests: Some(requests), thread: Some(thread), started: Mutex::default() })
    }

    pub(super) fn start(&self, command: Command) -> io::Result<Child> {
        let (answer, started) = mpsc::channel();
        let gone = || io::Error::other("the thread that starts programs is gone");
        let requests = self.requests.as_ref().ok_or_else(gone)?;
        requests.send(Request { command, answer }).map_err(|_| gone())?;
        let child = started.recv().map_err(|_| gone())??;
        let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        started.retain(is_running);
        // Until somebody waits for the child, its number is not given to another process.
        let process = Pid::from_raw(child.id() as i32).map(|id| pidfd_open(id, PidfdFlags::empty()));
        started.extend(process.and_then(Result::ok));
        Ok(child)
    }
}

impl Drop for Starter {
    fn drop(&mut self) {
        drop(self.requests.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let started = std::mem::take(self.started.get_mut().unwrap_or_else(PoisonError::into_inner));
        for process in &started {
            // Most have ended.
            let _ = pidfd_send_signal(process, Signal::KILL);
        }
        wait_for(started);
    }
}

fn is_running(process: &OwnedFd) -> bool {
    !poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

fn start_all(inbox: &Receiver<Request>) {
    for Request { mut command, answer } in inbox {
        let _ = answer.send(command.spawn());
    }
}

/// Ends all other processes in these namespaces: with SIGTERM, and after [`EXIT_TIMEOUT`] with SIGKILL. Returns the
/// number and the command of each.
pub(crate) fn end_all_in(namespaces: &[&Namespace]) -> BTreeSet<(u32, String)> {
    let inodes: BTreeSet<u64> = namespaces.iter().filter_map(|namespace| namespace.identity()).collect();
    let mut ended = BTreeSet::new();
    for signal in [Signal::TERM, Signal::KILL] {
        let (processes, names): (Vec<_>, Vec<_>) = processes_in(&inodes).unzip();
        for process in &processes {
            // It may have ended by itself.
            let _ = pidfd_send_signal(process, signal);
        }
        ended.extend(names);
        wait_for(processes);
    }
    ended
}

/// By descriptors: the number of a process may belong to another one by the time it is used.
fn processes_in(inodes: &BTreeSet<u64>) -> impl Iterator<Item = (OwnedFd, (u32, String))> {
    let inside = |id: u32| {
        let namespace = fs::metadata(format!("/proc/{id}/ns/net"));
        namespace.is_ok_and(|namespace| inodes.contains(&namespace.ino()))
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|&id| id != std::process::id()).filter_map(move |id| {
        let process = Pid::from_raw(id as i32)
            .filter(|_| inside(id))
            .map(|pid| pidfd_open(pid, PidfdFlags::empty()))?;
        let command = fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
        // Checked again: the descriptor cannot become another process any more.
        process.ok().filter(|_| inside(id)).map(|process| (process, (id, command.trim().to_owned())))
    })
}

fn wait_for(mut processes: Vec<OwnedFd>) {
    let clock = Clock::starting_now();
    let end = Instant::ZERO + EXIT_TIMEOUT;
    loop {
        processes.retain(is_running);
        let left = clock.until(end).as_nanos();
        if processes.is_empty() || left == 0 {
            return;
        }
        let mut fds: Vec<_> = processes.iter().map(|process| PollFd::new(process, PollFlags::IN)).collect();
        let left = Timespec { tv_sec: (left / 1_000_000_000) as i64, tv_nsec: (left % 1_000_000_000) as i64 };
        let _ = poll(&mut fds, Some(&left));
    }
}
