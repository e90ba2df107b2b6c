//! Settings of a member.

use std::collections::BTreeMap;
use std::net::{Ipv6Addr, SocketAddr};

use hopcast_core::{Duration, Instant, Rate};

use super::wire::{DATA_OVERHEAD, MemberId, View};

/// Settings of a member.
#[derive(Clone, Debug)]
pub struct Config {
    /// Its identity.
    pub member: MemberId,
    /// Its address.
    pub local: SocketAddr,
    /// The group's address, or that of the only other member.
    pub group: SocketAddr,
    /// The others' addresses as this member knows them, by the numbers of their nodes. If there are none, it believes
    /// those in the views that it receives.
    pub addresses: BTreeMap<u32, SocketAddr>,
    /// Whether what goes to all members goes to the group's address once, and not to each of them (JGroups' ip_mcast).
    pub multicasts: bool,
    /// When it is a member, from and until, in the order of time: what is sent to it otherwise does not reach it.
    pub presence: Vec<(Instant, Option<Instant>)>,
    /// How it comes into its first view, if it is a member from the start on; later it looks for others.
    pub start: Start,
    /// Members of a view, itself included, for which one that looks for others waits before it sends its first message;
    /// ten times the search at most.
    pub expects: usize,
    /// Whether it is handed its own messages too, as JGroups does.
    pub hears_itself: bool,
    /// Whether it grants datagrams to the application above.
    pub unit_credit: bool,
    /// How late a program of a kernel may be woken without losing rate.
    pub slack: Duration,
    /// Bytes that lower layers add to each datagram, which its rate counts.
    pub overhead: u16,
    /// Maximum sizes of its queues.
    pub limits: Limits,
    /// Settings that all members of the group have.
    pub stack: Stack,
}

impl Config {
    /// A view from another member, with addresses as this one knows them.
    pub(super) fn localised(&self, mut view: View) -> View {
        if self.addresses.is_empty() {
            return view;
        }
        for (member, address) in &mut view.members {
            let known =
                if *member == self.member { Some(&self.local) } else { self.addresses.get(&member.node) };
            // Nothing reaches one that is not known here.
            *address = known.copied().unwrap_or((Ipv6Addr::UNSPECIFIED, 0).into());
        }
        view
    }
}

/// Memory of a member beside its windows, which [`Stack::buffer`] and [`Stack::credits`] bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of datagrams and messages that wait to be sent; more are refused. One is always taken. Too few refuse what
    /// an application gives at once.
    pub waiting: u64,
    /// Maximum length of a message from another member; a longer one is given up.
    pub message: u64,
}

impl Default for Limits {
    fn default() -> Self {
        // Chosen: a few of the longest messages of an application that is not granted them; and as NORM's objects.
        Self { waiting: 64 << 20, message: 1 << 30 }
    }
}

/// How a member comes into its first view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// All begin with this view, themselves among it; the first coordinates it.
    Told(Vec<(MemberId, SocketAddr)>),
    /// It looks for a coordinator by PING, and asks it to be let in; if there is none, it is one.
    Discovered,
}

/// Settings of the protocols of the stack, the same for all members.
#[derive(Clone, Debug, PartialEq)]
pub struct Stack {
    /// Rate limiter: how fast a member sends, headers of all layers included. Too high, and the excess is lost in
    /// queues and repaired.
    pub rate: Rate,
    /// FRAG2: bytes of a message in one packet; longer units are cut. Too large, and packets do not fit the path.
    pub fragment: u16,
    /// The order of messages.
    pub order: Ordering,
    /// Who repairs.
    pub repairs: Repairs,
    /// MFC: bytes that a member may send ahead of what the slowest receiver has delivered. Too few slow it down on long
    /// paths, too many are memory at each member, for each sender.
    pub credits: u64,
    /// STABLE: bytes that a member receives before it says again what it has. Too few cost packets, too many are
    /// memory.
    pub stable_bytes: u64,
    /// STABLE: time after which a member says what it has, if that has changed.
    pub stable_every: Duration,
    /// STABLE: bytes that a member holds of what it sent; it sends nothing new while that much is not stable.
    pub buffer: u64,
    /// FD_ALL: time after which a member that has sent nothing else says that it is alive.
    pub heartbeat: Duration,
    /// FD_ALL: time after which a silent member is suspected. Too short, and members are expelled on bad links, too
    /// long, and one that is dead holds up the others' memory and their next view.
    pub suspect_after: Duration,
    /// VERIFY_SUSPECT: time that a suspected member has to answer.
    pub verify: Duration,
    /// Time after which a member that is heard, but has acknowledged nothing of what it lacks, is expelled.
    pub stalled_after: Duration,
    /// MERGE2: mean time between a coordinator's announcements of its view.
    pub merge_every: Duration,
    /// PING: time that a member looks for others before it is a view of its own.
    pub discovery: Duration,
}

impl Default for Stack {
    fn default() -> Self {
        Self {
            rate: Rate::from_mbit(1),
            // 60K in JGroups 2.12's udp.xml, which leaves it to IP to fragment. Chosen: with all headers it fits 1,500.
            fragment: 1400,
            order: Ordering::Fifo,
            repairs: Repairs::Origin,
            // max_credits of MFC in udp.xml.
            credits: 2_000_000,
            // max_bytes of STABLE is 4 MB there, 2 MB in its class. Chosen: a fifth of the credit, so that what is held
            // for the group is little more than what is on its way.
            stable_bytes: 400_000,
            // desired_avg_gossip of class STABLE; udp.xml has 50 s, for which a slow sender's memory would be held.
            stable_every: Duration::from_secs(20),
            buffer: 8 << 20,
            // Class FD_ALL of 2.12: heartbeats each 3 s, suspected after 10 s; udp.xml changes neither. Chosen: at a
            // loss of 30 % three in a row are lost once in 37 times, ten once in 170,000.
            heartbeat: Duration::from_secs(3),
            suspect_after: Duration::from_secs(30),
            // timeout of VERIFY_SUSPECT in udp.xml.
            verify: Duration::from_millis(1500),
            stalled_after: Duration::from_secs(60),
            // Between 10 and 30 s in udp.xml (min_interval and max_interval of MERGE2).
            merge_every: Duration::from_secs(20),
            // timeout of PING in udp.xml.
            discovery: Duration::from_secs(2),
        }
    }
}

impl Stack {
    /// The same within the limits of the wire.
    #[must_use]
    pub(super) fn bounded(mut self) -> Self {
        self.fragment = self.fragment.clamp(MIN_FRAGMENT, u16::MAX - 100);
        let two = 2 * (u64::from(self.fragment) + DATA_OVERHEAD as u64 + 64);
        // What is not given back is less than three fifths of it.
        self.credits = self.credits.max(2 * two);
        self.buffer = self.buffer.max(2 * two);
        self.stable_bytes = self.stable_bytes.clamp(1, self.credits.min(self.buffer) / 2);
        self.heartbeat = self.heartbeat.max(MIN_TIME);
        self.suspect_after = self.suspect_after.max(self.heartbeat * 2);
        self.verify = self.verify.max(MIN_TIME);
        self.stalled_after = self.stalled_after.max(self.heartbeat * 2);
        self.merge_every = self.merge_every.max(MIN_TIME);
        self.stable_every = self.stable_every.max(MIN_TIME);
        self.discovery = self.discovery.max(MIN_TIME);
        self
    }
}

/// Bytes of a fragment: the length of a name, a part of it, and more.
const MIN_FRAGMENT: u16 = 16;
/// Chosen: timers below it are no use on any link.
const MIN_TIME: Duration = Duration::from_millis(10);

/// The order in which members are handed messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ordering {
    /// That of each sender.
    #[default]
    Fifo,
    /// One order at all members of a view (SEQUENCER), which keeps that of each sender.
    Total,
}

/// Who repairs what was lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Repairs {
    /// The member that sent it, as long as it is there.
    #[default]
    Origin,
    /// Any member that has it, drawn at random for each request (JGroups' xmit_from_random_member).
    Anyone,
}
