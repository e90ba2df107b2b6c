//! Waiting for descriptors and time.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use hopcast_core::Duration;
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};

/// Maximum number of events of one wait. Chosen: with fewer, a busy host waits more often; more is memory.
const MAX_EVENTS: usize = 256;
/// Maximum time of one wait; a longer one is repeated. Chosen: it fits every type of the system call, and costs one
/// wake an hour.
const MAX_WAIT: Duration = Duration::from_secs(3600);
/// Position of the plug's number in a token; the bits below it are the socket's own.
const PLUG_SHIFT: u32 = 48;
/// Token of the stop descriptor, which no plug has.
const STOP: u64 = u64::MAX;

/// An epoll instance.
#[derive(Debug)]
pub(super) struct Poller(OwnedFd);

/// A descriptor: the number of the plug, and the plug's number of the descriptor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) plug: usize,
    pub(super) key: u64,
}

impl Poller {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(epoll::create(CreateFlags::CLOEXEC)?))
    }

    pub(super) fn add(&self, fd: impl AsFd, token: Token, flags: EventFlags) -> io::Result<()> {
        Ok(epoll::add(&self.0, fd, token.data(), flags)?)
    }

    pub(super) fn modify(&self, fd: impl AsFd, token: Token, flags: EventFlags) -> io::Result<()> {
        Ok(epoll::modify(&self.0, fd, token.data(), flags)?)
    }

    /// Adds a descriptor whose events only end a wait.
    pub(super) fn add_stop(&self, fd: impl AsFd) -> io::Result<()> {
        Ok(epoll::add(&self.0, fd, EventData::new_u64(STOP), EventFlags::IN)?)
    }

    pub(super) fn remove(&self, fd: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.0, fd)?)
    }

    /// Waits until a descriptor is ready, for at most `timeout`.
    pub(super) fn wait(&self, events: &mut Vec<Event>, timeout: Option<Duration>) -> io::Result<()> {
        events.clear();
        events.reserve(MAX_EVENTS);
        let timeout = timeout.unwrap_or(MAX_WAIT).min(MAX_WAIT).as_nanos();
        let timeout =
            Timespec { tv_sec: (timeout / 1_000_000_000) as i64, tv_nsec: (timeout % 1_000_000_000) as i64 };
        match epoll::wait(&self.0, spare_capacity(events), Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Token {
    fn data(self) -> EventData {
        EventData::new_u64((self.plug as u64) << PLUG_SHIFT | self.key)
    }

    /// The descriptor of an event; `None` if the event only ends a wait.
    pub(super) fn of(event: &Event) -> Option<Self> {
        let data = event.data.u64();
        let token = Self { plug: (data >> PLUG_SHIFT) as usize, key: data & ((1 << PLUG_SHIFT) - 1) };
        (data != STOP).then_some(token)
    }
}
