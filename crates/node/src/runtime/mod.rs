//! Runs a machine on the kernel: the sockets and devices of its ports, and the times at which it acts.
//!
//! A [`Runtime`] has one machine and, for each of its ports `Below(i)`, the [`Plug`] with the socket or device that
//! carries it. It knows ports and no protocols.
//!
//! # A turn
//!
//! 1. Sleep until the machine's deadline or until a socket is ready; not at all if the deadline is past.
//! 2. Read a bounded number of items from each socket. The machine receives one item, and is polled until it has no
//!    output, before the next. It is woken in between if its deadline passes.
//! 3. Send the machine's output with as few calls as possible.
//!
//! Sleep has nanosecond resolution (`epoll_pwait2` of Linux 5.11), and the thread's timer slack is 1 ns.
//!
//! # Bounds
//!
//! A turn reads at most one batch from each socket, so that no socket starves another, and a flood costs no more than
//! the datagrams that the kernel drops. Output for which the kernel has no room waits, up to a bound for each socket;
//! beyond it the oldest is dropped and counted ([`Runtime::counters`]). Streams wait under their credit, and drop
//! nothing.
//!
//! | module | what |
//! |---|---|
//! | `socket` | what all of the following are to the runtime |
//! | `udp` | [`Plug::Udp`]: batches by segmentation offload and `recvmmsg` |
//! | `raw` | [`Plug::Raw`]: raw IP sockets |
//! | `tcp` | [`Plug::Tcp`]: streams, with credit on both sides |
//! | `divert` | the rules that redirect connections to `tcp` |
//! | `rules`, `claim` | rules that are removed in the end, and their numbers |
//! | `device` | [`Plug::Tun`], [`Plug::Tap`] |
//! | `host_groups` | the groups that the host wants on a TAP |
//! | `frames` | [`Plug::Frames`], [`Plug::Interface`]: a packet socket |
//! | `taken` | an interface that the kernel gives up to a packet socket |
//! | `local` | [`Plug::Local`]: a Unix socket of packets |
//! | `hook` | [`Plug::Hook`]: packets taken out of forwarding, and put back |
//! | `poller`, `stop` | waiting, and being stopped |
//! | `counters`, `drops` | counters of sockets, and of the kernel's drops |
//! | `command` | `ip` and `nft`, which set up devices and rules |

mod claim;
pub(crate) mod command;
mod counters;
mod device;
mod divert;
mod drops;
mod error;
mod frames;
mod hook;
mod host_groups;
mod local;
mod poller;
mod raw;
mod rules;
mod socket;
mod stop;
mod taken;
mod tcp;
mod udp;

use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::rc::Rc;

use hopcast_core::plug::Plug;
use hopcast_core::{Duration, Instant, Machine, Port, earliest};
use rustix::event::epoll::Event;

use self::counters::Counters;
use self::device::{Device, Kind};
use self::poller::{Poller, Token};
use self::socket::Socket;
use self::tcp::Budget;
use crate::Clock;

pub(crate) use self::claim::Claim;
pub use self::error::{CommandError, OpenError, PlugError, RuntimeError};
pub(crate) use self::frames::link;
pub use self::frames::{discard_waiting, packet_socket};
pub use self::stop::Stop;
pub(crate) use self::taken::give_back;

/// Number of items after which the machine is woken if its deadline has passed. Chosen; more delays timers under load,
/// fewer costs looks at the clock.
const ITEMS_PER_WAKE: usize = 32;

/// Minimum time between two wakes, if nothing arrives: the default slack of Linux' timers (prctl(2)). A sender that
/// paces itself is due every few microseconds at high rates; with the interval it sends several datagrams at once,
/// which cost the kernel little more than one. A wake after a longer rest comes on time.
const MIN_WAKE_INTERVAL: Duration = Duration::from_micros(50);

/// A machine on the sockets and devices of this host.
///
/// Dropping it closes them, and removes its rules and routes.
pub struct Runtime {
    machine: Box<dyn Machine>,
    sockets: Vec<Box<dyn Socket>>,
    /// The indices of the sockets that are hooks.
    hooks: Vec<usize>,
    budget: Rc<Budget>,
    poller: Rc<Poller>,
    clock: Clock,
    events: Vec<Event>,
    wakes: u64,
    woken: Instant,
    /// Maximum lateness of a wake, in nanoseconds.
    latest_wake: u64,
    turns: u64,
    unconnected: u64,
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
        let is_hook = |place: &usize| matches!(plugs[*place], Plug::Hook(_));
        let hooks = (0..plugs.len()).filter(is_hook).collect();
        Ok(Self {
            machine,
            sockets,
            hooks,
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

    /// Runs until `stop` is requested or `until` is reached. It can be called again, and continues.
    ///
    /// Before the clock's zero it only sends what the machine hands over at once, such as memberships in groups, and
    /// waits.
    ///
    /// # Errors
    /// A device that was deleted, or an error of waiting.
    pub fn run(&mut self, until: Option<Instant>, stop: &Stop) -> Result<(), RuntimeError> {
        // With the default slack, wakes come up to 50 µs late.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        self.answers_no_item_of_hooks(None);
        self.drain(self.clock.now());
        self.wait_for_zero(stop);
        self.poller.add_stop(stop.as_fd()).map_err(RuntimeError::Stop)?;
        let ran = self.turns(until, stop);
        self.poller.remove(stop.as_fd()).map_err(RuntimeError::Stop)?;
        ran
    }

    /// The machine that it runs.
    pub fn machine(&self) -> &dyn Machine {
        &*self.machine
    }

    /// The address on which plug number `plug` receives, with the port that the host chose if the plug names none.
    pub fn address(&self, plug: usize) -> Option<SocketAddr> {
        self.sockets.get(plug)?.address()
    }

    /// Permits links to fragment datagrams that are too long for them.
    pub fn allow_fragments(&mut self) {
        self.sockets.iter_mut().for_each(|socket| socket.allow_fragments());
    }

    /// The counters of all sockets, summed, and the runtime's own.
    pub fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        let mut sum = Counters { syscalls: self.turns, ..Counters::default() };
        self.sockets.iter().for_each(|socket| sum.add(&socket.counters()));
        sum.report(report);
        report("streams_held_bytes", self.budget.waiting());
        report("wakes", self.wakes);
        report("latest_wake_ns", self.latest_wake);
        report("unconnected", self.unconnected);
    }

    fn turns(&mut self, until: Option<Instant>, stop: &Stop) -> Result<(), RuntimeError> {
        loop {
            let now = self.clock.now();
            self.wake_if_due(now);
            self.sockets.iter_mut().for_each(|socket| socket.flush());
            if stop.is_requested() || until.is_some_and(|until| now >= until) {
                return Ok(());
            }
            let due = self.machine.deadline().map(|at| at.max(self.woken + MIN_WAKE_INTERVAL));
            let next = earliest(due, until);
            let next = self.sockets.iter().map(|socket| socket.deadline()).fold(next, earliest);
            let next = if self.sockets.iter().any(|socket| socket.has_more()) { Some(now) } else { next };
            let timeout = next.map(|at| self.clock.until(at));
            self.turns += 1;
            self.poller.wait(&mut self.events, timeout).map_err(RuntimeError::Wait)?;
            for event in &self.events {
                if let Some(Token { plug, key }) = Token::of(event)
                    && let Some(socket) = self.sockets.get_mut(plug)
                {
                    socket.ready(key, event.flags);
                }
            }
            self.take_in();
            if let Some(what) = self.sockets.iter().find_map(|socket| socket.gone()) {
                return Err(RuntimeError::Gone(what));
            }
        }
    }

    fn take_in(&mut self) {
        for place in 0..self.sockets.len() {
            self.sockets[place].begin_turn();
            let mut taken = 0;
            while let Some(item) = self.sockets[place].next() {
                // The clock is read after the item arrived, so that times in it are in the past.
                let now = self.clock.now();
                if taken == ITEMS_PER_WAKE {
                    taken = 0;
                    self.wake_if_due(now);
                }
                taken += 1;
                self.answers_no_item_of_hooks(Some(place));
                self.machine.handle(now, Port::Below(place as u32), item);
                self.drain(now);
            }
        }
    }

    fn wake_if_due(&mut self, now: Instant) {
        // Several deadlines may have passed since the last wake.
        for _ in 0..ITEMS_PER_WAKE {
            let Some(due) = self.machine.deadline().filter(|&due| due <= now) else { break };
            self.wakes += 1;
            self.woken = now;
            if due > Instant::ZERO {
                self.latest_wake = self.latest_wake.max(now.since(due).as_nanos());
            }
            self.answers_no_item_of_hooks(None);
            self.machine.wake(now);
            self.drain(now);
        }
    }

    /// Tells all hooks except one that the next items of the machine are no answers to their packets.
    fn answers_no_item_of_hooks(&mut self, but: Option<usize>) {
        for &place in self.hooks.iter().filter(|&&place| Some(place) != but) {
            self.sockets[place].answers_others();
        }
    }

    /// Hands the machine's output to the sockets, until there is no more.
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
            if left == 0 || stop.is_requested() {
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
    /// Boxes a socket or device, or adds the plug's number and name to the error.
    fn named<S: Socket + 'static>(
        place: usize,
        opened: Result<S, PlugError>,
        plug: impl FnOnce() -> String,
    ) -> Result<Box<dyn Socket>, OpenError> {
        match opened {
            Ok(socket) => Ok(Box::new(socket)),
            Err(source) => Err(OpenError::Plug { place, plug: plug(), source }),
        }
    }
    match plug {
        Plug::Udp(address) => {
            let socket = udp::Udp::open(poller, place, *address).map_err(PlugError::System);
            named(place, socket, || format!("UDP {address}"))
        }
        Plug::Raw(protocol, address) => {
            let socket = raw::Raw::open(poller, place, (*protocol, *address)).map_err(PlugError::System);
            named(place, socket, || format!("IP protocol {protocol} at {address}"))
        }
        Plug::Tcp(config) => {
            named(place, tcp::Tcp::open(poller, place, config, clock, budget), || "TCP".to_owned())
        }
        Plug::Tun(config) => named(place, Device::open((poller, place, clock), Kind::Tun, config), || {
            format!("TUN `{}`", config.name)
        }),
        Plug::Tap(address, config) => {
            named(place, Device::open((poller, place, clock), Kind::Tap(*address), config), || {
                format!("TAP `{}`", config.name)
            })
        }
        Plug::Hook(config) => named(place, hook::Hooked::open(poller, place, config), || {
            format!("a hook on `{}`", config.interfaces.join("`, `"))
        }),
        Plug::Local(path) => {
            let socket = local::Local::open(poller, place, path).map_err(PlugError::System);
            named(place, socket, || format!("the socket {}", path.display()))
        }
        Plug::Interface(name) => {
            named(place, frames::Frames::take(poller, place, name), || format!("all frames of `{name}`"))
        }
        Plug::Frames(config) => named(place, frames::Frames::open(poller, place, config), || {
            format!("frames {:#06x} of `{}`", config.ether_type, config.interface)
        }),
    }
}
