//! The disk's side of a group, on a thread of its own, since a disk may take any time.
//!
//! [`outgoing`] watches the directory whose files are sent, and reads their pieces; [`incoming`] writes those of
//! others, and remembers which were complete. The thread that carries data gives [`Command`]s and takes [`Event`]s, a
//! bounded number of which are under way.

mod incoming;
mod outgoing;

use std::io;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;

use hopcast_core::{Buffer, Duration, Instant};

use self::incoming::Inbox;
use self::outgoing::Watched;
use super::wire::Refusal;
use crate::Clock;

/// Time between two looks at the directory. Chosen; shorter costs the disk calls, longer sends later.
const POLL: Duration = Duration::from_millis(500);
/// Looks between two counts of what others' files take. Chosen: programs that take files away make room within that.
const LOOKS_PER_COUNT: u32 = 10;

/// A group's order to the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Places {
    /// The directory whose files are sent.
    pub(crate) send: Option<PathBuf>,
    /// The directory for files of others: each member has one of its name in it.
    pub(crate) receive: Option<PathBuf>,
    /// The members' names.
    pub(crate) members: Vec<String>,
}

/// A request to the disk.
#[derive(Debug)]
pub(crate) enum Command {
    /// Read a piece of a file that was found.
    Read { id: u64, piece: u32 },
    /// Read all of a file that was found.
    ReadWhole(u64),
    /// Write all of a member's file, which was changed so many nanoseconds after 1970.
    Deliver { from: usize, id: u64, name: Arc<str>, changed: u64, bytes: Contents },
    /// Write a piece of a member's file.
    Write { from: usize, id: u64, piece: u32, bytes: Buffer },
    /// Give a member's file its name.
    Finish { from: usize, id: u64, name: Arc<str> },
    /// Remove what there is of a member's file.
    Discard { from: usize, id: u64 },
}

/// The contents of a file: the end of what came with it, which others have too, since it may be large.
#[derive(Clone, Debug)]
pub(crate) struct Contents {
    whole: Arc<Buffer>,
    from: usize,
}

impl Contents {
    /// The last bytes of something.
    pub(crate) fn end(whole: &Arc<Buffer>, len: usize) -> Self {
        Self { whole: Arc::clone(whole), from: whole.len().saturating_sub(len) }
    }

    /// Contents of their own.
    pub(crate) fn copy(bytes: &[u8]) -> Self {
        Self { whole: Arc::new(Buffer::copy_from(bytes)), from: 0 }
    }
}

impl Deref for Contents {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.whole[self.from..]
    }
}

/// An answer of the disk.
#[derive(Debug)]
pub(crate) enum Event {
    /// Files of a member that were complete in earlier runs.
    Known { from: usize, ids: Vec<u64> },
    /// All of those were said.
    Ready,
    /// A file that is to be sent: it has not changed for a while.
    Found { id: u64, name: Arc<str>, size: u64 },
    /// A file that is to be sent no more: it is gone, or has changed.
    Gone(u64),
    /// A piece that was read.
    Read { id: u64, piece: u32, bytes: Vec<u8> },
    /// All of a file, and how many nanoseconds after 1970 it was changed.
    ReadWhole { id: u64, changed: u64, bytes: Vec<u8> },
    /// A member's file came when a newer one of its name was there.
    Overtaken { from: usize, id: u64 },
    /// A piece was written.
    Written { from: usize, id: u64, piece: u32 },
    /// A file has its name.
    Stored { from: usize, id: u64, name: Arc<str> },
    /// A piece, or the name of a file, could not be written: it is removed.
    Failed { from: usize, id: u64, piece: Option<u32>, why: Refusal },
    /// Bytes that files of others take.
    Used(u64),
    /// Something that a person should know.
    Trouble(String),
}

/// The thread, as the one that carries data sees it. Dropping it ends the thread.
#[derive(Debug)]
pub(crate) struct Disk {
    pub(crate) commands: Sender<Command>,
    pub(crate) events: Receiver<Event>,
}

impl Disk {
    /// Starts the thread.
    ///
    /// # Errors
    /// The operating system gives none.
    pub(crate) fn start(places: Places) -> io::Result<Self> {
        let (commands, orders) = channel();
        let (events_out, events) = channel();
        let work = move || Worker::new(places, events_out).run(&orders);
        thread::Builder::new().name("files".to_owned()).spawn(work)?;
        Ok(Self { commands, events })
    }
}

/// The thread's state.
struct Worker {
    watched: Option<Watched>,
    inbox: Option<Inbox>,
    events: Sender<Event>,
    looks: u32,
}

impl Worker {
    fn new(places: Places, events: Sender<Event>) -> Self {
        let Places { send, receive, members } = places;
        let inbox = receive.map(|directory| Inbox::new(directory, members));
        Self { watched: send.map(Watched::new), inbox, events, looks: 0 }
    }

    /// Serves until nobody gives commands any more.
    fn run(&mut self, orders: &Receiver<Command>) {
        if let Some(inbox) = &mut self.inbox {
            for event in inbox.begin() {
                self.say(event);
            }
        }
        self.say(Event::Ready);
        let clock = Clock::starting_now();
        let mut next = Instant::ZERO;
        loop {
            let now = clock.now();
            if now >= next {
                next = now + POLL;
                self.look();
            }
            let patience = std::time::Duration::from_nanos(clock.until(next).as_nanos());
            match orders.recv_timeout(patience) {
                Ok(command) => self.carry_out(command),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn look(&mut self) {
        if let Some(watched) = &mut self.watched {
            let events = watched.look();
            events.into_iter().for_each(|event| self.say(event));
        }
        if let Some(inbox) = &self.inbox
            && self.looks.is_multiple_of(LOOKS_PER_COUNT)
        {
            self.say(Event::Used(inbox.used()));
        }
        self.looks = self.looks.wrapping_add(1);
    }

    fn carry_out(&mut self, command: Command) {
        match command {
            Command::Read { id, piece } => {
                if let Some(watched) = &mut self.watched {
                    let event = watched.read(id, piece);
                    self.say(event);
                }
            }
            Command::ReadWhole(id) => {
                if let Some(watched) = &mut self.watched {
                    let event = watched.read_whole(id);
                    self.say(event);
                }
            }
            Command::Deliver { from, id, name, changed, bytes } => {
                let Some(inbox) = &mut self.inbox else { return };
                let event = match inbox.deliver(from, id, &name, changed, &bytes) {
                    Ok(true) => Event::Stored { from, id, name },
                    Ok(false) => Event::Overtaken { from, id },
                    Err(error) => self.failed((from, id, None), &error),
                };
                self.say(event);
            }
            Command::Write { from, id, piece, bytes } => {
                let Some(inbox) = &mut self.inbox else { return };
                let event = match inbox.write(from, id, piece, &bytes) {
                    Ok(()) => Event::Written { from, id, piece },
                    Err(error) => self.failed((from, id, Some(piece)), &error),
                };
                self.say(event);
            }
            Command::Finish { from, id, name } => {
                let Some(inbox) = &mut self.inbox else { return };
                let event = match inbox.finish(from, id, &name) {
                    Ok(()) => Event::Stored { from, id, name },
                    Err(error) => self.failed((from, id, None), &error),
                };
                self.say(event);
            }
            Command::Discard { from, id } => {
                if let Some(inbox) = &mut self.inbox {
                    inbox.discard(from, id);
                }
            }
        }
    }

    fn failed(&mut self, (from, id, piece): (usize, u64, Option<u32>), error: &io::Error) -> Event {
        let why = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Refusal::NoRoom,
            _ => Refusal::Disk,
        };
        if let Some(inbox) = &mut self.inbox {
            inbox.discard(from, id);
        }
        self.say(Event::Trouble(format!("a file cannot be written: {error}")));
        Event::Failed { from, id, piece, why }
    }

    fn say(&self, event: Event) {
        // Nobody listens any more: the thread ends with its next command.
        let _ = self.events.send(event);
    }
}
