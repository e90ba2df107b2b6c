//! One neighbour: its address, its state, and the figures of the path to it.

pub(crate) mod probe;
mod receive;
mod send;

use std::net::{Ipv6Addr, SocketAddr};

use hopcast_core::{Duration, Instant, Seed, Stream, earliest};

use self::probe::Probe;
use super::loss::Loss;
use super::wire::{Counts, Longest, Stamp, Tag};
use crate::config::Timing;
use crate::daemon::notice::{Notice, Notices};

/// Factor of the rate of hellos to a silent peer. Chosen; a smaller one finds it later, a larger one costs more
/// datagrams in vain.
const SILENT_HELLO_FACTOR: f64 = 10.0;
/// Minimum time between two answers. Chosen: it bounds the answers that forged hellos cause; longer delays a peer that
/// comes back.
const MIN_ANSWER_INTERVAL: Duration = Duration::from_millis(10);
/// Number of slots in which answers to hellos from other addresses are limited, by the address: a sender blocks only
/// those that share its slot. Chosen; more is memory, with fewer they block each other.
const ELSEWHERE_SLOTS: usize = 16;
/// Maximum round-trip time that is plausible. Chosen: above any path, and far below the 71 minutes after which 32 bits
/// of microseconds wrap.
const MAX_ROUND_TRIP: Duration = Duration::from_secs(60);

/// The address by which the machines above know a neighbour on a lane, whatever its real one is: of the discard prefix
/// (RFC 6666), which no host uses. `None` is this node.
pub(crate) fn identity(neighbour: Option<usize>, tag: Tag) -> SocketAddr {
    let number = neighbour.map_or(0, |place| place + 1) as u16;
    (Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, number), u16::from(tag.byte())).into()
}

/// The address by which the machines above know all members of the group on a lane together.
pub(crate) fn identity_of_group(tag: Tag) -> SocketAddr {
    (Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, u16::MAX), u16::from(tag.byte())).into()
}

/// The neighbour with this identity.
pub(crate) fn neighbour_of(identity: &SocketAddr) -> Option<usize> {
    match identity {
        SocketAddr::V6(address) => usize::from(address.ip().segments()[7]).checked_sub(1),
        SocketAddr::V4(_) => None,
    }
}

/// The contents of every hello of this node, and the state that all its peers share.
#[derive(Debug)]
pub(crate) struct Myself {
    pub(crate) name: String,
    /// Random number, drawn at the start.
    pub(crate) instance: u64,
    /// Sequence number of the last hello.
    pub(crate) sequence: u32,
    /// Maximum length of datagrams of its lanes.
    pub(crate) datagram: u16,
    /// Length of the IP and UDP headers.
    pub(crate) headers: u16,
    /// Whether links may fragment packets that are too long for them.
    pub(crate) fragments: bool,
    pub(crate) timing: Timing,
    /// Random numbers for nonces.
    pub(crate) random: Stream,
    /// Hellos to be sent, with their destinations.
    pub(crate) hellos: Vec<(SocketAddr, Vec<u8>)>,
    /// Notices to be logged.
    pub(crate) notices: Notices,
}

impl Myself {
    fn nonce(&mut self) -> u32 {
        (self.random.bits() as u32).max(1)
    }
}

/// The state of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Not heard yet; whether that was logged.
    Unknown { said: bool },
    /// Up.
    Up { since: Instant },
    /// Silent, or ended.
    Down { since: Instant },
    /// Of another version.
    Version(u8),
}

/// An address, and the nonce for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Path {
    address: SocketAddr,
    nonce: u32,
}

/// Addresses from which a peer is accepted, besides its last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Follow {
    /// The address in the configuration, or that of the host name there.
    File,
    /// Any address, while it is not up: the configuration has none.
    UnlessUp,
    /// Any address.
    Roams,
}

/// Counts of datagrams and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    pub(crate) datagrams: u64,
    pub(crate) bytes: u64,
}

impl Traffic {
    pub(crate) fn count(&mut self, bytes: usize) {
        self.datagrams += 1;
        self.bytes += bytes as u64;
    }
}

#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) name: String,
    /// The address in the configuration, or the current one of the name there.
    configured: Option<SocketAddr>,
    follow: Follow,
    path: Option<Path>,
    /// Seed of the nonces for other addresses, and the number of times that the nonces have changed. So no state is
    /// kept for the senders of hellos in its name.
    secret: Seed,
    epoch: u64,
    pub(crate) state: State,
    instance: Option<u64>,
    /// Sequence number of its last hello.
    sequence: u32,
    /// Time of its last datagram.
    heard_at: Instant,
    /// Its last stamp, and the time of its arrival.
    stamp: Option<(Stamp, Instant)>,
    counts: Counts,
    pub(crate) round_trip: Option<Duration>,
    pub(crate) loss_in: Loss,
    pub(crate) loss_out: Loss,
    pub(crate) sent: Traffic,
    pub(crate) received: Traffic,
    /// Number of restarts; below, of changes of its address.
    pub(crate) restarts: u64,
    pub(crate) moves: u64,
    /// The lanes that this node needs from it; below, those that are listed to it, and those that it has listed.
    needed: Vec<Tag>,
    pub(crate) offered: Vec<Tag>,
    pub(crate) theirs: Option<Vec<Tag>>,
    next_hello: Instant,
    pub(crate) probe: Probe,
    /// Its probes that have arrived.
    longest: Longest,
    /// Times of the last answers: to its proved and to its unproved address, and to others by slot.
    answered: [Option<Instant>; 2 + ELSEWHERE_SLOTS],
    /// Hellos in its name that were rejected.
    pub(crate) disbelieved: u64,
    /// Times of the last notices that other hosts can provoke, each limited separately.
    said_name_in_use: Option<Instant>,
    said_version: Option<Instant>,
    /// Whether a notice about its version is still to be logged.
    version_unsaid: bool,
}

impl Peer {
    pub(crate) fn new(
        name: String,
        (place, follow): (Option<SocketAddr>, Follow),
        mut offered: Vec<Tag>,
        needed: Vec<Tag>,
        myself: &mut Myself,
    ) -> Self {
        offered.sort_unstable();
        Self {
            name,
            configured: place,
            follow,
            path: place.map(|address| Path { address, nonce: myself.nonce() }),
            secret: Seed::new(myself.random.bits(), myself.random.bits()),
            epoch: 0,
            state: State::Unknown { said: false },
            instance: None,
            sequence: 0,
            heard_at: Instant::ZERO,
            stamp: None,
            counts: Counts::default(),
            round_trip: None,
            loss_in: Loss::default(),
            loss_out: Loss::default(),
            sent: Traffic::default(),
            received: Traffic::default(),
            restarts: 0,
            moves: 0,
            needed,
            offered,
            theirs: None,
            next_hello: Instant::ZERO,
            probe: Probe::default(),
            longest: Longest::default(),
            answered: [None; 2 + ELSEWHERE_SLOTS],
            disbelieved: 0,
            said_name_in_use: None,
            said_version: None,
            version_unsaid: false,
        }
    }

    /// The address to send to.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.path.map(|path| path.address)
    }

    /// Whether data is exchanged with it.
    pub(crate) const fn is_up(&self) -> bool {
        matches!(self.state, State::Up { .. })
    }

    /// Time since its last datagram; `None` if there was none.
    pub(crate) fn silence(&self, now: Instant) -> Option<Duration> {
        self.instance.map(|_| now.since(self.heard_at))
    }

    /// Permits links to fragment from now on: the results of earlier probes, and of the current round, no longer apply.
    pub(crate) fn allow_fragments(&mut self, now: Instant) {
        self.probe.restart(now);
    }

    /// Notes that a datagram of a lane has arrived from its address.
    pub(crate) const fn on_data(&mut self, now: Instant) {
        self.heard_at = now;
    }

    /// Notes that the host name in the configuration now has this address.
    pub(crate) fn resolved(&mut self, now: Instant, address: SocketAddr, myself: &mut Myself) {
        self.configured = Some(address);
        if self.path.is_none() {
            self.path = Some(Path { address, nonce: myself.nonce() });
            self.next_hello = now;
        }
    }

    pub(crate) fn deadline(&self, timing: &Timing) -> Option<Instant> {
        let silent_at = match self.state {
            State::Up { .. } => Some(self.heard_at + timing.down_after),
            State::Unknown { said: false } => Some(Instant::ZERO + timing.down_after),
            State::Unknown { said: true } | State::Down { .. } | State::Version(_) => None,
        };
        let probe = self.is_up().then_some(self.probe.next);
        earliest(earliest(silent_at, probe), Some(self.next_hello))
    }

    pub(crate) fn wake(&mut self, now: Instant, myself: &mut Myself) {
        let timing = myself.timing;
        match self.state {
            State::Up { .. } if now >= self.heard_at + timing.down_after => {
                self.state = State::Down { since: now };
                let silent = now.since(self.heard_at);
                myself.notices.push(Notice::Down { peer: self.name.clone(), silent });
            }
            State::Unknown { said: false } if now >= Instant::ZERO + timing.down_after => {
                self.state = State::Unknown { said: true };
                myself.notices.push(Notice::NoAnswer { peer: self.name.clone(), address: self.address() });
            }
            _ => {}
        }
        let impatient = self.is_up() && self.is_silent(now, &timing);
        if self.is_up() && now >= self.probe.next {
            self.say_probes(now, impatient, myself);
        }
        if now < self.next_hello {
            return;
        }
        let pause = if impatient { timing.hello.mul_f64(1.0 / SILENT_HELLO_FACTOR) } else { timing.hello };
        self.next_hello = now + pause;
        if let Some(path) = self.path {
            self.say(now, path, self.stamp, myself);
        }
        // It may be back at its last address, or at that of its name.
        let elsewhere = self.configured.filter(|&address| Some(address) != self.address());
        if let (false, Some(address)) = (self.is_up(), elsewhere) {
            self.say(now, self.elsewhere(address), None, myself);
        }
    }

    /// Another address, with a nonce that only a receiver there can know.
    fn elsewhere(&self, address: SocketAddr) -> Path {
        let nonce = self.secret.stream(&[&address.to_string()], self.epoch).bits() as u32;
        Path { address, nonce: nonce.max(1) }
    }

    /// Whether the configuration allows this address.
    fn may_be_at(&self, address: SocketAddr) -> bool {
        match self.follow {
            Follow::Roams => true,
            _ if [self.address(), self.configured].contains(&Some(address)) => true,
            Follow::UnlessUp => !self.is_up(),
            Follow::File => false,
        }
    }

    fn is_silent(&self, now: Instant, timing: &Timing) -> bool {
        now.since(self.heard_at) >= timing.hello.mul_f64(2.0)
    }
}
