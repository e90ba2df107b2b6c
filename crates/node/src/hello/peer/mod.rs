//! One neighbour: where it is, whether it is there, and how the way to it is.

mod hear;
pub(crate) mod probe;
mod say;

use std::net::{Ipv6Addr, SocketAddr};

use hopcast_core::{Duration, Instant, Seed, Stream, earliest};

use self::probe::Probe;
use super::loss::Loss;
use super::wire::{Counts, Longest, Stamp, Tag};
use crate::config::Timing;
use crate::daemon::notice::{Notice, Notices};

/// Hellos come so much more often while a peer is silent.
const IMPATIENCE: f64 = 10.0;
/// Asked more often than this, one is not answered.
const ANSWERS: Duration = Duration::from_millis(10);
/// Those who say hello from elsewhere share so many turns, by their address: one of them takes none of most others.
const ELSEWHERE: usize = 16;
/// What cannot be a round trip.
const LONGEST_ROUND_TRIP: Duration = Duration::from_secs(60);

/// The address by which the machines above know a neighbour on a lane, wherever it is: of the discard prefix (RFC
/// 6666), where nothing is. `None` is this node.
pub(crate) fn identity(neighbour: Option<usize>, tag: Tag) -> SocketAddr {
    let number = neighbour.map_or(0, |place| place + 1) as u16;
    (Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, number), u16::from(tag.byte())).into()
}

/// The neighbour that an identity stands for.
pub(crate) fn neighbour_of(identity: &SocketAddr) -> Option<usize> {
    match identity {
        SocketAddr::V6(address) => usize::from(address.ip().segments()[7]).checked_sub(1),
        SocketAddr::V4(_) => None,
    }
}

/// What a node says of itself in every hello, and what all its peers have to do with.
#[derive(Debug)]
pub(crate) struct Myself {
    pub(crate) name: String,
    /// Drawn at the start.
    pub(crate) instance: u64,
    /// Of the last hello.
    pub(crate) sequence: u32,
    /// The longest datagram of its lanes.
    pub(crate) datagram: u16,
    /// The length of the headers of IP and UDP around it.
    pub(crate) headers: u16,
    /// Whether what is too long for a link may be cut into fragments there.
    pub(crate) fragments: bool,
    pub(crate) timing: Timing,
    /// For nonces.
    pub(crate) random: Stream,
    /// Hellos that are to be sent, and where to.
    pub(crate) hellos: Vec<(SocketAddr, Vec<u8>)>,
    /// What is worth a line.
    pub(crate) notices: Notices,
}

impl Myself {
    fn nonce(&mut self) -> u32 {
        (self.random.bits() as u32).max(1)
    }
}

/// Whether a peer is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It has not been heard yet. Whether that has been said.
    Unknown { said: bool },
    /// It is there.
    Up { since: Instant },
    /// It is silent, or has said that it ends.
    Down { since: Instant },
    /// It speaks another version.
    Version(u8),
}

/// An address, and the nonce that is sent there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Path {
    address: SocketAddr,
    nonce: u32,
}

/// Where a peer may be besides where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Follow {
    /// Where the file says, by address or by name.
    File,
    /// Anywhere, as long as it is not up: the file knows no address.
    UnlessUp,
    /// Anywhere.
    Roams,
}

/// Datagrams and bytes.
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
    /// Where the file says it is, or what its name stands for now.
    configured: Option<SocketAddr>,
    follow: Follow,
    path: Option<Path>,
    /// What the nonces come from that are sent to where it might be instead, and how often they have changed: so
    /// nothing is kept of those who say hello in its name, however many they are.
    secret: Seed,
    epoch: u64,
    pub(crate) state: State,
    instance: Option<u64>,
    /// Of its last hello.
    sequence: u32,
    /// When anything of it came last.
    heard_at: Instant,
    /// Its last stamp, and when it came.
    stamp: Option<(Stamp, Instant)>,
    counts: Counts,
    pub(crate) round_trip: Option<Duration>,
    pub(crate) loss_in: Loss,
    pub(crate) loss_out: Loss,
    pub(crate) sent: Traffic,
    pub(crate) received: Traffic,
    /// How often it was started anew, and has moved.
    pub(crate) restarts: u64,
    pub(crate) moves: u64,
    /// What this node carries with it, of what it is told, and what it says that it carries, if it has.
    needed: Vec<Tag>,
    pub(crate) offered: Vec<Tag>,
    pub(crate) theirs: Option<Vec<Tag>>,
    next_hello: Instant,
    pub(crate) probe: Probe,
    /// What has come of its probes.
    longest: Longest,
    /// When it was answered last, proved and not, and those elsewhere by their turn.
    answered: [Option<Instant>; 2 + ELSEWHERE],
    /// Hellos in its name that were not believed.
    pub(crate) disbelieved: u64,
    /// When what can be provoked from outside was last said, each by itself.
    said_rival: Option<Instant>,
    said_version: Option<Instant>,
    /// Whether it speaks another version, which has not been said.
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
            answered: [None; 2 + ELSEWHERE],
            disbelieved: 0,
            said_rival: None,
            said_version: None,
            version_unsaid: false,
        }
    }

    /// Where to send to.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.path.map(|path| path.address)
    }

    /// Whether what it carries is taken, and it is sent any.
    pub(crate) const fn is_up(&self) -> bool {
        matches!(self.state, State::Up { .. })
    }

    /// How long nothing has come of it; `None` if nothing ever did.
    pub(crate) fn silence(&self, now: Instant) -> Option<Duration> {
        self.instance.map(|_| now.since(self.heard_at))
    }

    /// What is too long for a link may be cut into fragments there from now on: what a round has found out until now,
    /// and what it would from here on, are of different ways.
    pub(crate) fn allow_fragments(&mut self, now: Instant) {
        self.probe.restart(now);
    }

    /// A datagram of a lane has come from where it is.
    pub(crate) const fn on_data(&mut self, now: Instant) {
        self.heard_at = now;
    }

    /// The name in the file stands for this address now.
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
        let pause = if impatient { timing.hello.mul_f64(1.0 / IMPATIENCE) } else { timing.hello };
        self.next_hello = now + pause;
        if let Some(path) = self.path {
            self.say(now, path, self.stamp, myself);
        }
        // Where it was once, or its name says, it may be again.
        let elsewhere = self.configured.filter(|&address| Some(address) != self.address());
        if let (false, Some(address)) = (self.is_up(), elsewhere) {
            self.say(now, self.elsewhere(address), None, myself);
        }
    }

    /// An address where it might be, with the nonce that only who is there can know.
    fn elsewhere(&self, address: SocketAddr) -> Path {
        let nonce = self.secret.stream(&[&address.to_string()], self.epoch).bits() as u32;
        Path { address, nonce: nonce.max(1) }
    }

    /// Whether it may be there, as far as the file goes.
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
