//! A message port: a Unix socket of packets, for programs of this host.
//!
//! A packet keeps its ends, so that programs need no framing. Each program that is connected gets every message; one
//! that reads too slowly loses those for which the kernel's buffer has no room, and holds up nobody.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use hopcast_core::{Buffer, Item, Message};
use nix::libc;
use rustix::event::epoll::EventFlags;
use socket2::{Domain, SockAddr, Socket as Kernel, Type};

use super::counters::Counters;
use super::poller::{Poller, Token};
use super::socket::Socket;

/// Maximum length of a message, in bytes. Chosen: with a member's name before it, one fits the 64 KiB that transports
/// have for a message; longer ones are dropped.
const MAX_MESSAGE: usize = 60 << 10;
/// Programs that are connected at a time; one more is turned away. Chosen: each message is sent to each.
const MAX_PROGRAMS: usize = 16;
/// Maximum number of messages read in one turn. Chosen; more delays the other sockets, fewer costs turns.
const MAX_PER_TURN: usize = 64;
/// Connections that wait to be accepted. Chosen: the thread accepts at every turn.
const BACKLOG: i32 = 16;
/// Key of the listening socket.
const LISTENER: u64 = 0;

/// The socket, which is removed when this is dropped.
pub(super) struct Local {
    path: PathBuf,
    listener: Kernel,
    poller: Rc<Poller>,
    plug: usize,
    /// The programs, by the keys of their connections, and whether something can be read.
    programs: BTreeMap<u64, (Kernel, bool)>,
    next_key: u64,
    /// The program whose turn was last: they take turns.
    last: u64,
    allowed: usize,
    memory: Vec<u8>,
    counters: Counters,
}

impl Local {
    pub(super) fn open(poller: &Rc<Poller>, plug: usize, path: &Path) -> io::Result<Self> {
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)?;
        }
        remove_stale(path)?;
        let listener = Kernel::new(Domain::UNIX, Type::SEQPACKET, None)?;
        listener.bind(&SockAddr::unix(path)?)?;
        // Others than the node's own user and group neither read nor send messages.
        fs::set_permissions(path, fs::Permissions::from_mode(0o660))?;
        listener.listen(BACKLOG)?;
        listener.set_nonblocking(true)?;
        poller.add(&listener, Token { plug, key: LISTENER }, EventFlags::IN)?;
        Ok(Self {
            path: path.to_owned(),
            listener,
            poller: Rc::clone(poller),
            plug,
            programs: BTreeMap::new(),
            next_key: LISTENER + 1,
            last: LISTENER,
            allowed: 0,
            memory: vec![0; MAX_MESSAGE + 1],
            counters: Counters::default(),
        })
    }

    fn accept(&mut self) {
        // No more than wait at a time, so that those who come and go do not keep the thread.
        for _ in 0..BACKLOG {
            let Ok((program, _)) = self.listener.accept() else { return };
            let token = Token { plug: self.plug, key: self.next_key };
            let fits = self.programs.len() < MAX_PROGRAMS && program.set_nonblocking(true).is_ok();
            if fits && self.poller.add(&program, token, EventFlags::IN).is_ok() {
                self.programs.insert(self.next_key, (program, true));
                self.next_key += 1;
                self.counters.streams_accepted += 1;
            } else {
                self.counters.streams_refused += 1;
            }
        }
    }

    /// The next message of a program; the connection ends if it has.
    fn read(&mut self, key: u64) -> Option<Item> {
        loop {
            let (program, readable) = self.programs.get_mut(&key)?;
            self.counters.syscalls += 1;
            match program.read(&mut self.memory) {
                Ok(0) => {
                    self.programs.remove(&key);
                    return None;
                }
                Ok(length) if length > MAX_MESSAGE => self.counters.receive_errors += 1,
                Ok(length) => {
                    self.counters.received += 1;
                    self.counters.received_bytes += length as u64;
                    return Some(Item::Message(Message::new(0, Buffer::copy_from(&self.memory[..length]))));
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    *readable = false;
                    if error.kind() != ErrorKind::WouldBlock {
                        self.programs.remove(&key);
                    }
                    return None;
                }
            }
            self.allowed = self.allowed.checked_sub(1)?;
        }
    }
}

/// Removes the socket of a program that was killed.
fn remove_stale(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(found) if !found.file_type().is_socket() => return Err(ErrorKind::AlreadyExists.into()),
        Ok(_) => {}
    }
    let probe = Kernel::new(Domain::UNIX, Type::SEQPACKET, None)?;
    probe.set_nonblocking(true)?;
    match probe.connect(&SockAddr::unix(path)?) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => fs::remove_file(path),
        // Somebody listens, or it is a socket of another kind.
        Ok(()) | Err(_) => Err(ErrorKind::AddrInUse.into()),
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

impl Socket for Local {
    fn ready(&mut self, key: u64, _flags: EventFlags) {
        if key == LISTENER {
            self.accept();
        } else if let Some((_, readable)) = self.programs.get_mut(&key) {
            *readable = true;
        }
    }

    fn begin_turn(&mut self) {
        self.allowed = MAX_PER_TURN;
    }

    fn next(&mut self) -> Option<Item> {
        while self.allowed > 0 {
            let after = self.programs.range(self.last + 1..).chain(self.programs.range(..=self.last));
            let key = after.into_iter().find(|(_, (_, readable))| *readable).map(|(&key, _)| key)?;
            self.last = key;
            self.allowed -= 1;
            let item = self.read(key);
            if item.is_some() {
                return item;
            }
        }
        None
    }

    fn give(&mut self, item: Item) {
        let Item::Message(message) = item else {
            self.counters.wrong_items += 1;
            return;
        };
        for (program, _) in self.programs.values() {
            self.counters.syscalls += 1;
            match program.send_with_flags(&message.payload, libc::MSG_NOSIGNAL) {
                Ok(_) => {
                    self.counters.sent += 1;
                    self.counters.sent_bytes += message.payload.len() as u64;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.counters.send_full += 1;
                    self.counters.send_dropped += 1;
                }
                // It is gone, as the next read says.
                Err(_) => self.counters.send_refused += 1,
            }
        }
    }

    fn has_more(&self) -> bool {
        self.programs.values().any(|(_, readable)| *readable)
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}
