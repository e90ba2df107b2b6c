//! A stream port on the kernel's TCP.
//!
//! **Down.** The machine is granted little of each stream at first, and up to 2 MiB as that is read; less where the
//! memory for all streams is short ([`window`]). Its bytes wait here until the kernel takes them, and are then granted
//! anew. The kernel takes at most [`options::MAX_UNSENT`] bytes beyond those in flight, so that nothing is decided long
//! before it can be sent. [`Transmitted`](StreamItem::Transmitted) is reported when the kernel has taken bytes, and is
//! early by that at most.
//!
//! **Up.** Reads stay within the machine's grant. The rest stays in the kernel, whose window closes.
//!
//! Events are edge-triggered, and streams that can go on are queued, so that a turn costs what happens in it, however
//! many streams there are. A connection that is not established in time is reset.

mod connection;
mod listener;
mod options;
mod window;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

use hopcast_core::plug::{Accept, TcpPlug};
use hopcast_core::{Duration, Instant, Item, StreamId, StreamItem};
use rustix::event::epoll::EventFlags;
use socket2::Socket as Kernel;

use self::connection::{Connection, Progress};
use self::listener::Listener;
use self::options::Options;
use super::counters::Counters;
use super::divert;
use super::error::PlugError;
use super::poller::{Poller, Token};
use super::rules::Rules;
use super::socket::Socket;
use crate::Clock;

pub(super) use self::window::Budget;

/// Maximum number of streams at once; one beyond them is reset. Chosen: it bounds memory.
const MAX_STREAMS: usize = 65_536;
/// Maximum number of reads in one turn. Chosen; more delays the other sockets, fewer
/// costs turns.
const READS_PER_TURN: usize = 32;
/// Maximum number of connections that are accepted in one turn. Chosen; more delays the other sockets, fewer costs
/// turns.
const ACCEPTS_PER_TURN: usize = 64;
/// Maximum number of bytes of one read. Chosen; less costs system calls, more is memory.
const MAX_READ: usize = 64 << 10;
/// The first token of a stream; those below are of listeners.
const FIRST_STREAM_TOKEN: u64 = 16;

/// The kernel's TCP.
pub(super) struct Tcp {
    poller: Rc<Poller>,
    plug: usize,
    options: Options,
    clock: Clock,
    budget: Rc<Budget>,
    connect_timeout: Option<Duration>,
    /// Timeouts of connections that are not established, in order.
    give_up: VecDeque<(Instant, u64)>,
    listeners: Vec<Listener>,
    /// By their tokens, which are never reused.
    connections: HashMap<u64, Connection>,
    tokens: HashMap<StreamId, u64>,
    next_token: u64,
    next_id: u64,
    /// Streams that may be readable; below, writable.
    to_read: VecDeque<u64>,
    to_write: VecDeque<u64>,
    up: VecDeque<(StreamId, StreamItem)>,
    reads_left: usize,
    scratch: Vec<u8>,
    counters: Counters,
    /// The rules that divert connections to this port.
    _divert: Option<Rules>,
}

impl Drop for Tcp {
    fn drop(&mut self) {
        // A stream that was cut short must not seem to have ended.
        self.connections.values().for_each(Connection::reset);
    }
}

impl Tcp {
    pub(super) fn open(
        poller: &Rc<Poller>,
        plug: usize,
        config: &TcpPlug,
        clock: Clock,
        budget: &Rc<Budget>,
    ) -> Result<Self, PlugError> {
        let redirects = matches!(config.accept, Some(Accept::LocalOutput { .. }));
        let options = Options::new(config, redirects)?;
        let (listeners, diversions) = listener::listen(&options, config)?;
        let divert = divert::install(&diversions)?;
        for (key, listener) in listeners.iter().enumerate() {
            let token = Token { plug, key: key as u64 };
            poller.add(&listener.socket, token, EventFlags::IN | EventFlags::ET)?;
        }
        Ok(Self {
            poller: Rc::clone(poller),
            plug,
            options,
            clock,
            budget: Rc::clone(budget),
            connect_timeout: config.connect_timeout,
            give_up: VecDeque::new(),
            listeners,
            connections: HashMap::new(),
            tokens: HashMap::new(),
            next_token: FIRST_STREAM_TOKEN,
            next_id: 1,
            to_read: VecDeque::new(),
            to_write: VecDeque::new(),
            up: VecDeque::new(),
            reads_left: 0,
            scratch: vec![0; MAX_READ],
            counters: Counters::default(),
            _divert: divert,
        })
    }

    /// Accepts waiting connections. Without free descriptors they wait on, and each turn tries again.
    fn accept(&mut self) {
        let mut allowed = ACCEPTS_PER_TURN;
        for place in 0..self.listeners.len() {
            while self.listeners[place].ready && allowed > 0 {
                allowed -= 1;
                self.counters.syscalls += 1;
                match self.listeners[place].socket.accept() {
                    Ok((socket, remote)) => self.take_over(place, socket, remote.as_socket()),
                    Err(error) if is_of_one_connection(&error) => self.counters.streams_refused += 1,
                    Err(error) => {
                        self.listeners[place].ready = false;
                        self.listeners[place].starved = error.kind() != io::ErrorKind::WouldBlock;
                    }
                }
            }
        }
    }

    fn take_over(&mut self, place: usize, socket: Kernel, remote: Option<SocketAddr>) {
        let local = self.listeners[place].local_of(&socket);
        let (Some(local), Some(remote)) = (local, remote) else {
            self.counters.streams_refused += 1;
            return;
        };
        let usable = self.has_room() && socket.set_nonblocking(true).is_ok();
        let id = StreamId(self.next_id);
        let connection = Connection::accepted(id, socket, &self.budget, remote.ip());
        let grant = connection.window.first_grant();
        if !usable {
            connection.reset();
        }
        if !usable || !self.insert(connection) {
            self.counters.streams_refused += 1;
            return;
        }
        self.next_id += 2;
        self.counters.streams_accepted += 1;
        self.up.push_back((id, StreamItem::Open { local, remote }));
        self.up.push_back((id, grant));
    }

    fn open_stream(&mut self, id: StreamId, local: SocketAddr, remote: SocketAddr) {
        if self.tokens.contains_key(&id) {
            self.counters.wrong_items += 1;
            return;
        }
        let room = self.has_room();
        let socket = if room { self.options.connect(local, remote).ok() } else { None };
        let token = self.next_token;
        let connection = socket.map(|socket| Connection::opened(id, socket, &self.budget, local.ip()));
        if connection.is_some_and(|connection| self.insert(connection)) {
            self.counters.streams_opened += 1;
            if let Some(patience) = self.connect_timeout {
                self.forget_answered();
                self.give_up.push_back((self.clock.now() + patience, token));
            }
        } else {
            self.counters.streams_refused += 1;
            self.up.push_back((id, StreamItem::Reset));
        }
    }

    /// Whether one more stream may exist; counts those for which memory is short.
    fn has_room(&mut self) -> bool {
        let exhausted = self.budget.is_exhausted();
        self.counters.streams_without_memory += u64::from(exhausted);
        !exhausted && self.connections.len() < MAX_STREAMS
    }

    fn is_connecting(&self, token: u64) -> bool {
        self.connections.get(&token).is_some_and(Connection::is_connecting)
    }

    /// Removes the timeouts of established connections from the front: only the first one is ever read.
    fn forget_answered(&mut self) {
        while self.give_up.front().is_some_and(|&(_, token)| !self.is_connecting(token)) {
            self.give_up.pop_front();
        }
    }

    /// Resets the connections whose timeout has passed.
    fn give_up_late(&mut self) {
        self.forget_answered();
        while let Some(&(at, token)) = self.give_up.front()
            && at <= self.clock.now()
        {
            self.give_up.pop_front();
            if self.is_connecting(token) {
                self.counters.streams_timed_out += 1;
                self.fail(token, true);
            }
        }
    }

    fn insert(&mut self, connection: Connection) -> bool {
        let token = Token { plug: self.plug, key: self.next_token };
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        self.counters.syscalls += 1;
        if self.poller.add(connection.as_fd(), token, flags).is_err() {
            connection.reset();
            return false;
        }
        self.tokens.insert(connection.id, token.key);
        self.connections.insert(token.key, connection);
        self.next_token += 1;
        true
    }

    /// Takes an item of the machine for a stream.
    fn give_stream(&mut self, id: StreamId, item: StreamItem) {
        // An item for a stream that is over has crossed its end.
        let Some(&token) = self.tokens.get(&id) else { return };
        let Some(connection) = self.connections.get_mut(&token) else { return };
        match item {
            StreamItem::Data(bytes) => {
                if !connection.write(bytes) {
                    return self.fail(token, true);
                }
            }
            StreamItem::Credit(credit) => connection.grant(credit),
            StreamItem::Finish => connection.finish(),
            StreamItem::Reset => return self.fail(token, false),
            StreamItem::Open { .. } | StreamItem::Opened | StreamItem::Transmitted(_) => {
                self.counters.wrong_items += 1;
                return;
            }
        }
        self.enqueue(token);
    }

    /// Queues a stream for reading and writing, as needed.
    fn enqueue(&mut self, token: u64) {
        let Some(connection) = self.connections.get_mut(&token) else { return };
        if connection.joins_readers() {
            self.to_read.push_back(token);
        }
        if connection.joins_writers() {
            self.to_write.push_back(token);
        }
    }

    /// Resets a stream, and reports it to the machine unless the machine did so itself.
    fn fail(&mut self, token: u64, tell: bool) {
        let Some(connection) = self.connections.get(&token) else { return };
        connection.reset();
        if tell {
            self.counters.streams_failed += 1;
            self.up.push_back((connection.id, StreamItem::Reset));
        }
        self.forget(token);
    }

    fn forget(&mut self, token: u64) {
        if let Some(connection) = self.connections.remove(&token) {
            self.tokens.remove(&connection.id);
        }
    }

    /// Handles the state of a stream after it was read or written.
    fn after(&mut self, token: u64, progress: Progress) {
        match progress {
            Progress::Open => self.enqueue(token),
            Progress::Closed => {
                self.connections.get(&token).into_iter().for_each(Connection::release);
                self.forget(token);
            }
            Progress::Failed => self.fail(token, true),
        }
    }

    fn read(&mut self) {
        while self.up.is_empty()
            && self.reads_left > 0
            && let Some(token) = self.to_read.pop_front()
        {
            let Some(connection) = self.connections.get_mut(&token) else { continue };
            self.reads_left -= 1;
            let progress = connection.read(&mut self.scratch, &mut self.up, &mut self.counters);
            self.after(token, progress);
        }
    }
}

impl Socket for Tcp {
    fn ready(&mut self, key: u64, flags: EventFlags) {
        if let Some(listener) = self.listeners.get_mut(key as usize) {
            listener.ready = true;
            return;
        }
        let Some(connection) = self.connections.get_mut(&key) else { return };
        let progress = connection.ready(flags, &mut self.up);
        self.after(key, progress);
    }

    fn begin_turn(&mut self) {
        self.reads_left = READS_PER_TURN;
        if !self.give_up.is_empty() {
            self.give_up_late();
        }
        // Descriptors of other ports become free too.
        for listener in &mut self.listeners {
            listener.ready |= std::mem::take(&mut listener.starved);
        }
        if self.listeners.iter().any(|listener| listener.ready) {
            self.accept();
        }
    }

    fn next(&mut self) -> Option<Item> {
        if self.up.is_empty() {
            self.read();
        }
        self.up.pop_front().map(|(id, item)| Item::Stream(id, item))
    }

    fn give(&mut self, item: Item) {
        match item {
            Item::Stream(id, StreamItem::Open { local, remote }) => self.open_stream(id, local, remote),
            Item::Stream(id, item) => self.give_stream(id, item),
            _ => self.counters.wrong_items += 1,
        }
    }

    fn flush(&mut self) {
        while let Some(token) = self.to_write.pop_front() {
            let Some(connection) = self.connections.get_mut(&token) else { continue };
            let progress = connection.flush(&mut self.up, &mut self.counters);
            self.after(token, progress);
        }
    }

    fn has_more(&self) -> bool {
        !self.up.is_empty() || !self.to_read.is_empty() || self.listeners.iter().any(|it| it.ready)
    }

    fn deadline(&self) -> Option<Instant> {
        self.give_up.front().map(|&(at, _)| at)
    }

    fn address(&self) -> Option<SocketAddr> {
        self.listeners.first().map(|listener| listener.address)
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}

/// Whether the error is of a connection that failed before it was accepted, and not of the listener (accept(2), *Error
/// handling*).
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        error.kind(),
        Kind::ConnectionAborted
            | Kind::ConnectionReset
            | Kind::Interrupted
            | Kind::PermissionDenied
            | Kind::HostUnreachable
            | Kind::NetworkUnreachable
            | Kind::NetworkDown
            | Kind::TimedOut
    )
}
