//! A Linux kernel as a process, for tests: User-Mode Linux, with Ethernet ports whose frames the test sends and
//! receives.
//!
//! It has what the machine's own kernel may lack (VLAN filtering, batman-adv, netem), needs neither root nor KVM, and
//! sends nothing anywhere else. `scripts/uml` fetches it. Its programs see a root of their own, with iproute2, batctl
//! and busybox; nothing of the host is visible to them but a temporary directory.
//!
//! It has one processor, and system calls are slow in it: good for what a kernel does, not for how fast.

#![allow(clippy::disallowed_methods)] // The guest keeps its own time.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair};
use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

/// Version of what `scripts/uml` makes, which has the same number.
const VERSION: u32 = 1;
/// Maximum time for the kernel to start, a script to end, or a frame to be taken. Chosen: the kernel starts in a
/// second, and machines may do much else.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time between looks whether a frame has been taken, in which it usually has.
const LOOK_AGAIN: Duration = Duration::from_micros(20);
/// MTU of the ports: a packet of 1500 bytes in a mesh's header or behind tags.
const MTU: u32 = 1600;
/// Memory of the guest, of which it touches what it needs.
const MEMORY: &str = "128M";

/// Only one guest starts at a time, since what it inherits any other process that starts meanwhile would inherit too.
static STARTING: Mutex<()> = Mutex::new(());

/// Path of the kernel, in the user's cache directory. The file is there when `scripts/uml` has been run; a test
/// requires it by the name `uml`.
pub fn kernel() -> String {
    text(&place().join("root/usr/bin/linux.uml"))
}

fn place() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache"))).unwrap_or_default();
    cache.join("hopcast").join(format!("uml-{VERSION}"))
}

/// A path as the kernel's command line has it.
fn text(path: &Path) -> String {
    path.to_str().expect("a path in UTF-8").to_owned()
}

/// A kernel that runs, and ends with this.
///
/// Its Ethernet ports are the interfaces `vec0`, `vec1` and so on, with the addresses 02:75:6d:6c:00:00, …:01. They are
/// down at first.
#[derive(Debug)]
pub struct Guest {
    process: Child,
    ports: Vec<Port>,
    /// The serial line by which scripts are started.
    line: BufReader<UnixStream>,
    scripts: u32,
    /// The directory that the guest has at `/mnt`.
    exchange: TempDir,
}

/// An Ethernet port's two ends. The guest's is kept to see what it has not taken yet.
#[derive(Debug)]
struct Port {
    own: OwnedFd,
    guests: OwnedFd,
}

impl Guest {
    /// Starts a kernel with this number of Ethernet ports; it takes about a second.
    ///
    /// # Panics
    /// If it does not start, with what it has written.
    pub fn boot(ports: usize) -> Self {
        let place = place();
        let exchange = tempfile::tempdir().expect("a temporary directory");
        let ports: Vec<Port> = (0..ports).map(|_| Port::new()).collect();
        let (line, guests_line) = UnixStream::pair().expect("a pair of sockets");
        line.set_read_timeout(Some(PATIENCE)).expect("a timeout of a socket");

        let root = place.join("root");
        let mut command = Command::new(kernel());
        command.args(["rootfstype=hostfs", "root=/dev/root", "ro", "init=/init", "quiet", "con=null"]);
        command.args(["con0=null,fd:2", "umid=guest"]).arg(format!("mem={MEMORY}"));
        command.arg(format!("rootflags={}", text(&root)));
        command.arg(format!("exchange={}", text(exchange.path())));
        command.arg(format!("uml_dir={}", text(exchange.path())));
        command.arg(format!("ssl0=fd:{}", guests_line.as_raw_fd()));
        for (number, port) in ports.iter().enumerate() {
            let [high, low] = (number as u16).to_be_bytes();
            let fd = port.guests.as_raw_fd();
            command.arg(format!(
                "vec{number}:transport=fd,fd={fd},mtu={MTU},mac=02:75:6d:6c:{high:02x}:{low:02x}"
            ));
        }
        // The loader is named relative to the root; see `scripts/uml`.
        command.current_dir(&root).env_clear().env("LD_PRELOAD", place.join("xstate.so"));
        command.env("LD_LIBRARY_PATH", root.join("usr/lib/x86_64-linux-gnu"));
        let console = File::create(exchange.path().join("console")).expect("a file for the console");
        command.stdin(Stdio::null()).stderr(console.try_clone().expect("a file")).stdout(console);
        // Its processes are in one group, so that all can be ended.
        command.process_group(0);

        let inherited = || ports.iter().map(|port| port.guests.as_fd()).chain([guests_line.as_fd()]);
        let starting = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
        inherited().for_each(|fd| fcntl_setfd(fd, FdFlags::empty()).expect("a flag of a socket"));
        let process = command.spawn();
        inherited().for_each(|fd| fcntl_setfd(fd, FdFlags::CLOEXEC).expect("a flag of a socket"));
        drop(starting);
        let process = process.unwrap_or_else(|error| panic!("{}: {error}", kernel()));
        // So that a guest that has died is seen at once.
        drop(guests_line);

        let mut guest = Self { process, ports, line: BufReader::new(line), scripts: 0, exchange };
        let said = guest.read_line();
        assert_eq!(said.as_deref(), Ok("ready"), "the guest did not start: {}", guest.console());
        guest
    }

    /// Number of the guest's process on the host.
    pub fn process(&self) -> u32 {
        self.process.id()
    }

    /// Runs a script of the guest's shell, which ends at the first command that fails, and gives its output.
    ///
    /// # Panics
    /// If it ends with another status than 0, or not within a minute, with what it has written.
    pub fn sh(&mut self, script: &str) -> String {
        self.try_sh(script).unwrap_or_else(|errors| panic!("{script}\n{errors}"))
    }

    /// Runs a script of the guest's shell, which ends at the first command that fails, and gives its output.
    ///
    /// # Errors
    /// It ended with another status than 0; what it wrote to its standard error.
    ///
    /// # Panics
    /// If it does not end within a minute, with what the kernel has written.
    pub fn try_sh(&mut self, script: &str) -> Result<String, String> {
        self.try_sh_while(script, |_| thread::sleep(LOOK_AGAIN))
    }

    /// As [`try_sh`](Self::try_sh), and calls `meanwhile` again and again until the script ends, so that what is
    /// connected to the ports goes on.
    ///
    /// # Errors
    /// It ended with another status than 0; what it wrote to its standard error.
    ///
    /// # Panics
    /// If it does not end within a minute, with what the kernel has written.
    pub fn try_sh_while(&mut self, script: &str, mut meanwhile: impl FnMut(&Self)) -> Result<String, String> {
        self.scripts += 1;
        let number = self.scripts;
        let directory = self.exchange.path().to_owned();
        let file = |kind: &str| directory.join(format!("{number}.{kind}"));
        fs::write(file("sh"), script).expect("a file for a script");
        let asked =
            self.line.get_mut().write_all(format!("{number}\n").as_bytes()).map_err(|e| e.to_string());
        let until = Instant::now() + PATIENCE;
        while asked.is_ok()
            && ready(&[self.line.get_ref()], Duration::ZERO).is_none()
            && Instant::now() < until
        {
            meanwhile(self);
        }
        let said = asked.and_then(|()| self.read_line());
        let status = said.as_ref().ok().and_then(|said| said.strip_prefix(&format!("{number} ")));
        let Some(status) = status else {
            panic!("{script}\nno end of it ({said:?}): {}", self.console());
        };
        let read = |kind| String::from_utf8_lossy(&fs::read(file(kind)).unwrap_or_default()).into_owned();
        if status == "0" { Ok(read("out")) } else { Err(format!("status {status}: {}", read("err"))) }
    }

    /// Sends a frame to a port, whose driver has taken it when this returns: frames to several ports arrive in the
    /// order in which they are sent.
    ///
    /// # Panics
    /// If the port is down, or the guest has died, with what it has written.
    pub fn send(&self, port: usize, frame: &[u8]) {
        let Port { own, guests } = &self.ports[port];
        let sent = send(own, frame, SendFlags::empty());
        assert_eq!(sent, Ok(frame.len()), "port {port}: {}", self.console());
        let until = Instant::now() + PATIENCE;
        while ready(&[guests], Duration::ZERO).is_some() {
            assert!(Instant::now() < until, "port {port} takes no frames: {}", self.console());
            thread::sleep(LOOK_AGAIN);
        }
    }

    /// The next frame that the guest sends by a port, if it does so within this time.
    pub fn receive(&self, port: usize, within: Duration) -> Option<Vec<u8>> {
        let own = &self.ports[port].own;
        ready(&[own], within)?;
        self.take(port)
    }

    /// The next frame that the guest sends by any port, and the port, if it does so within this time. Frames of one
    /// port are in their order; which port is asked first is not said.
    pub fn receive_any(&self, within: Duration) -> Option<(usize, Vec<u8>)> {
        let ends: Vec<_> = self.ports.iter().map(|port| &port.own).collect();
        let port = ready(&ends, within)?;
        Some((port, self.take(port)?))
    }

    fn take(&self, port: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; 1 << 16];
        match recv(&self.ports[port].own, &mut bytes[..], RecvFlags::empty()) {
            Ok((_, length)) => {
                bytes.truncate(length);
                Some(bytes)
            }
            Err(Errno::AGAIN) => None,
            Err(error) => panic!("port {port}: {error}: {}", self.console()),
        }
    }

    fn read_line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match self.line.read_line(&mut line) {
            Ok(0) => Err("it has ended".to_owned()),
            Ok(_) => Ok(line.trim_end().to_owned()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Err(format!("not within {PATIENCE:?}")),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The end of what the kernel has written to its console.
    fn console(&self) -> String {
        let bytes = fs::read(self.exchange.path().join("console")).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.process), Signal::KILL);
        let _ = self.process.wait();
    }
}

impl Port {
    fn new() -> Self {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let pair = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
        let (own, guests) = pair.expect("a pair of sockets");
        Self { own, guests }
    }
}

/// The place of the first of these that can be read from, within this time.
fn ready(ends: &[impl AsFd], within: Duration) -> Option<usize> {
    let mut polled: Vec<_> = ends.iter().map(|end| PollFd::new(end, PollFlags::IN)).collect();
    let timeout = Timespec::try_from(within).expect("a time that can be waited for");
    loop {
        match poll(&mut polled, Some(&timeout)) {
            Ok(0) => return None,
            Ok(_) => return polled.iter().position(|polled| !polled.revents().is_empty()),
            Err(Errno::INTR) => {}
            Err(error) => panic!("poll: {error}"),
        }
    }
}
