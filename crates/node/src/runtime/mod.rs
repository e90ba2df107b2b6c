//! Runs a machine on the kernel: what its ports are plugged into, and when it acts.
//!
//! A [`Runtime`] has one machine and, for each of its ports `Below(i)`, the [`Plug`] that says which socket or device
//! carries it. It knows ports and no protocols.
//!
//! # A turn
//!
//! 1. Sleep until the machine's deadline or until something can be read or written; not at all if the deadline is past.
//! 2. Take in what has come, from each socket a bounded lot: the machine is given one item, and asked until it has
//!    nothing more, before it is given the next. It is woken in between if it falls due.
//! 3. Hand the kernel what the machine handed over, in as few calls as possible.
//!
//! Sleep is measured in nanoseconds (`epoll_pwait2`, of Linux 5.11) and the thread's timer slack is set to one.
//!
//! # Bounds
//!
//! A turn reads from each socket no more than one batch, so that no socket starves another and a flood costs no more
//! than the datagrams that the kernel drops. What the kernel has no room for waits, a bounded lot for each socket; then
//! what has waited longest is dropped, and counted ([`Runtime::counters`]). Streams wait under their credit, and drop
//! nothing.
//!
//! | module | what |
//! |---|---|
//! | `udp` | [`Plug::Udp`]: batches by segmentation offload and `recvmmsg` |
//! | `tcp` | [`Plug::Tcp`]: streams, with credit on both sides |
//! | `divert`, `claim` | the rules that bring others' connections to `tcp`, and whose they are |
//! | `device` | [`Plug::Tun`], [`Plug::Tap`] |
//! | `frames` | [`Plug::Frames`]: a packet socket |
//! | `poller`, `stop` | waiting, and being stopped |
//! | `counters`, `drops` | what the sockets did, and what the kernel dropped |
//! | `command` | `ip` and `nft`, which set up devices and rules |

mod claim;
pub(crate) mod command;
mod counters;
mod device;
mod divert;
mod drops;
mod error;
mod frames;
mod poller;
mod stop;
mod tcp;
mod udp;

use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::rc::Rc;

use hopcast_core::plug::Plug;
use hopcast_core::{Duration, Instant, Item, Machine, Port, earliest};
use rustix::event::epoll::{Event, EventFlags};

use self::counters::Counters;
use self::device::{Device, Kind};
use self::poller::{Poller, Token};
use self::tcp::Budget;
use crate::Clock;

pub(crate) use self::claim::Claim;
pub use self::error::{CommandError, OpenError, PlugError, RunError};
pub use self::frames::{forget, packet_socket};
pub use self::stop::Stop;

/// After so many items the machine is woken if it has fallen due.
const ITEMS: usize = 32;

/// How long after a wake the thread sleeps at least, if nothing arrives: Linux' own slack for timers. A sender that
/// paces itself is due every few microseconds at high rates; so it sends some datagrams at once, which cost the kernel
/// little more than one. A wake after a longer rest comes on time.
const WAKES_APART: Duration = Duration::from_micros(50);

/// A machine on this host's sockets and devices.
///
/// What was opened is closed with it: devices, rules and routes that it made are gone.
pub struct Runtime {
    machine: Box<dyn Machine>,
    sockets: Vec<Box<dyn Socket>>,
    budget: Rc<Budget>,
    poller: Rc<Poller>,
    clock: Clock,
    events: Vec<Event>,
    wakes: u64,
    woken: Instant,
    /// How late the latest wake came, in nanoseconds.
    latest_wake: u64,
    turns: u64,
    unconnected: u64,
}

/// A socket or device that carries a port.
trait Socket {
    /// The kernel says that the descriptor `key` is ready.
    fn ready(&mut self, key: u64, flags: EventFlags);

    /// A turn begins: a bounded lot may be taken in.
    fn begin_turn(&mut self) {}

    /// The next item that has come, of what may be taken in in this turn.
    fn next(&mut self) -> Option<Item>;

    /// Takes what the machine hands over. It may wait for [`flush`](Self::flush).
    fn give(&mut self, item: Item);

    /// Hands the kernel what waits.
    fn flush(&mut self) {}

    /// Whether there is something to take in without an event.
    fn has_more(&self) -> bool {
        false
    }

    /// When there is, if nothing happens before.
    fn deadline(&self) -> Option<Instant> {
        None
    }

    /// Lets links cut what is too long for them into fragments.
    fn allow_fragments(&mut self) {}

    /// What is gone, if it will never carry anything again.
    fn gone(&self) -> Option<String> {
        None
    }

    /// The address on which it receives.
    fn address(&self) -> Option<SocketAddr> {
        None
    }

    fn counters(&self) -> Counters;
}

impl Runtime {
    /// Opens the sockets and devices; plug number i is the machine's port `Below(i)`.
    ///
    /// # Errors
    /// A plug that could not be opened.
    pub fn open(machine: Box<dyn Machine>, plugs: &[Plug], clock: Clock) -> Result<Self, OpenError> {
        Self::open_within(machine, plugs, clock, u64::MAX)
    }

    /// Like [`open`](Self::open), with at most `memory` bytes that wait for the readers of all streams.
    ///
    /// # Errors
    /// A plug that could not be opened.
    pub fn open_within(
        machine: Box<dyn Machine>,
        plugs: &[Plug],
        clock: Clock,
        memory: u64,
    ) -> Result<Self, OpenError> {
        let poller = Rc::new(Poller::new().map_err(OpenError::Poller)?);
        let budget = Budget::new(memory);
        let mut sockets: Vec<Box<dyn Socket>> = Vec::new();
        for plug in plugs {
            sockets.push(open(&poller, sockets.len(), plug, clock, &budget)?);
        }
        Ok(Self {
            machine,
            sockets,
            budget,
            poller,
            clock,
            events: Vec::new(),
            wakes: 0,
            woken: Instant::ZERO,
            latest_wake: 0,
            turns: 0,
            unconnected: 0,
        })
    }

    /// Runs until `stop` is pulled or `until` is reached. It can be called again, and continues.
    ///
    /// If the clock has not come to its zero, it waits for that first.
    ///
    /// # Errors
    /// A device that is gone, or the kernel's refusal to wait.
    pub fn run(&mut self, until: Option<Instant>, stop: &Stop) -> Result<(), RunError> {
        // Without it wakes come up to 50 us late.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        self.wait_for_zero(stop);
        self.poller.add_stop(stop.as_fd()).map_err(RunError::Stop)?;
        let ran = self.turns(until, stop);
        self.poller.remove(stop.as_fd()).map_err(RunError::Stop)?;
        ran
    }

    /// The machine.
    pub fn machine(&self) -> &dyn Machine {
        &*self.machine
    }

    /// The address on which plug number `plug` receives, with the port that the host chose if the plug names none.
    pub fn address(&self, plug: usize) -> Option<SocketAddr> {
        self.sockets.get(plug)?.address()
    }

    /// Lets links cut datagrams that are too long for them into fragments.
    pub fn allow_fragments(&mut self) {
        self.sockets.iter_mut().for_each(|socket| socket.allow_fragments());
    }

    /// The sockets' own figures, summed over them, and how the machine was woken.
    pub fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        let mut sum = Counters { syscalls: self.turns, ..Counters::default() };
        self.sockets.iter().for_each(|socket| sum.add(&socket.counters()));
        sum.report(report);
        report("streams_held_bytes", self.budget.waiting());
        report("wakes", self.wakes);
        report("latest_wake_ns", self.latest_wake);
        report("unconnected", self.unconnected);
    }

    fn turns(&mut self, until: Option<Instant>, stop: &Stop) -> Result<(), RunError> {
        loop {
            let now = self.clock.now();
            self.wake_if_due(now);
            self.sockets.iter_mut().for_each(|socket| socket.flush());
            if stop.is_pulled() || until.is_some_and(|until| now >= until) {
                return Ok(());
            }
            let due = self.machine.deadline().map(|at| at.max(self.woken + WAKES_APART));
            let next = earliest(due, until);
            let next = self.sockets.iter().map(|socket| socket.deadline()).fold(next, earliest);
            let next = if self.sockets.iter().any(|socket| socket.has_more()) { Some(now) } else { next };
            let timeout = next.map(|at| self.clock.until(at));
            self.turns += 1;
            self.poller.wait(&mut self.events, timeout).map_err(RunError::Wait)?;
            for event in &self.events {
                if let Some(Token { plug, key }) = Token::of(event)
                    && let Some(socket) = self.sockets.get_mut(plug)
                {
                    socket.ready(key, event.flags);
                }
            }
            self.take_in();
            if let Some(what) = self.sockets.iter().find_map(|socket| socket.gone()) {
                return Err(RunError::Gone(what));
            }
        }
    }

    fn take_in(&mut self) {
        for place in 0..self.sockets.len() {
            self.sockets[place].begin_turn();
            let mut taken = 0;
            while let Some(item) = self.sockets[place].next() {
                // After the item has come: what it says of when it was sent lies before.
                let now = self.clock.now();
                if taken == ITEMS {
                    taken = 0;
                    self.wake_if_due(now);
                }
                taken += 1;
                self.machine.handle(now, Port::Below(place as u32), item);
                self.drain(now);
            }
        }
    }

    fn wake_if_due(&mut self, now: Instant) {
        // What was due at several times while nobody woke it, it may do one by one.
        for _ in 0..ITEMS {
            let Some(due) = self.machine.deadline().filter(|&due| due <= now) else { break };
            self.wakes += 1;
            self.woken = now;
            if due > Instant::ZERO {
                self.latest_wake = self.latest_wake.max(now.since(due).as_nanos());
            }
            self.machine.wake(now);
            self.drain(now);
        }
    }

    /// Takes what the machine hands over, until there is nothing more.
    fn drain(&mut self, now: Instant) {
        while let Some((port, item)) = self.machine.poll(now) {
            let socket = match port {
                Port::Below(place) => self.sockets.get_mut(place as usize),
                Port::Above(_) => None,
            };
            match socket {
                Some(socket) => socket.give(item),
                None => self.unconnected += 1,
            }
        }
    }

    fn wait_for_zero(&self, stop: &Stop) {
        loop {
            let left = self.clock.until(Instant::ZERO).as_nanos();
            if left == 0 || stop.is_pulled() {
                return;
            }
            stop.wait(Duration::from_nanos(left));
        }
    }
}

fn open(
    poller: &Rc<Poller>,
    place: usize,
    plug: &Plug,
    clock: Clock,
    budget: &Rc<Budget>,
) -> Result<Box<dyn Socket>, OpenError> {
    /// The socket or device, or the error with the plug's name.
    fn named<S: Socket + 'static>(
        opened: Result<S, PlugError>,
        plug: impl FnOnce() -> String,
    ) -> Result<Box<dyn Socket>, OpenError> {
        match opened {
            Ok(socket) => Ok(Box::new(socket)),
            Err(source) => Err(OpenError::Plug { plug: plug(), source }),
        }
    }
    match plug {
        Plug::Udp(address) => {
            let socket = udp::Udp::open(poller, place, *address).map_err(PlugError::System);
            named(socket, || format!("UDP {address}"))
        }
        Plug::Tcp(config) => named(tcp::Tcp::open(poller, place, config, clock, budget), || "TCP".to_owned()),
        Plug::Tun(config) => {
            named(Device::open(poller, place, Kind::Tun, config), || format!("TUN `{}`", config.name))
        }
        Plug::Tap(address, config) => named(Device::open(poller, place, Kind::Tap(*address), config), || {
            format!("TAP `{}`", config.name)
        }),
        Plug::Frames(config) => named(frames::Frames::open(poller, place, config), || {
            format!("frames {:#06x} of `{}`", config.ether_type, config.interface)
        }),
    }
}
