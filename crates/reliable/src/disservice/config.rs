//! Settings of a member.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use hopcast_core::{Duration, Rate};

use super::bodies::Bodies;
use super::wire::{DATA_OVERHEAD, MemberId};
use crate::Subscription;

/// Name of a group of subscribers.
pub type Group = Arc<[u8]>;

/// Settings of a member.
#[derive(Clone, Debug)]
pub struct Config {
    /// Its identity.
    pub member: MemberId,
    /// Its address.
    pub local: SocketAddr,
    /// The address at which all members listen.
    pub group: SocketAddr,
    /// The group that units from above are published to.
    pub publishes_to: Group,
    /// The groups that it subscribes to from the start on.
    pub subscriptions: BTreeMap<Group, Subscription>,
    /// Whether it grants units to the application above.
    pub unit_credit: bool,
    /// Number of links that each of its packets is sent on. It is silent only where others of each of them have said
    /// the same; that of a packet that arrives is its interface.
    pub links: u32,
    /// Whether it hands what it holds to a store at its second upper port, and takes it from there after a restart.
    pub has_store: bool,
    /// Bodies of messages that it has in memory together with other members of this process, if there are some.
    pub bodies: Bodies,
    /// How late a program of a kernel may be woken without losing rate.
    pub slack: Duration,
    /// Bytes that lower layers add to each packet, which its rate counts.
    pub overhead: u16,
    /// The settings that members have in common.
    pub policy: Policy,
}

/// Settings that the members of a network have in common. Those of DisService itself are [`Policy::shipped`].
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Rate at which a member sends, headers of all layers included. Too high, and the excess is lost in queues and
    /// repaired.
    pub rate: Rate,
    /// Bytes of a message in one packet.
    pub fragment: u16,
    /// Fragments of a chunk, which is what is combined with each other where repairs are coded. More make repairs serve
    /// more members, and cost a byte each in every repair.
    pub chunk: u8,
    /// Bytes of messages that a member holds, its own and others'. Too few, and it drops what others may still ask
    /// for; the counters say how much.
    pub cache: u64,
    /// Whether a member holds what it overhears of groups that it does not subscribe to (opportunistic listening).
    pub listens: bool,
    /// Time after which a message is of no use to anybody; `None` if it never expires.
    pub lifetime: Option<Duration>,
    /// Number of messages before it that a publisher recommends to whoever hears first of this one.
    pub history: u32,
    /// How requests are made.
    pub requests: Requests,
    /// How requests are answered.
    pub repairs: Repairs,
    /// Whether repairs are combinations of what their sender holds of a chunk, over GF(2^8).
    pub is_coded: bool,
    /// Minimum and maximum interval of summaries: they are sent at the shorter one after news, and ever less often
    /// where there is none. Too short costs packets; too long, and members that meet find out late.
    pub summaries: (Duration, Duration),
    /// Time after which a neighbour that is not heard counts as gone. It is to be some longest intervals of summaries.
    pub dead_after: Duration,
    /// Which fragments a member sends on when it hears them.
    pub forwarding: Forwarding,
    /// Maximum time that a member waits before it forwards a fragment. Too short, and neighbours forward at one time;
    /// too long delays each hop.
    pub forward_delay: Duration,
    /// Which messages a member brings to others, or gets for others' sake.
    pub replication: Replication,
    /// Time for which a message of which nobody holds anything is asked for.
    pub patience: Duration,
}

/// How a member asks for what it lacks.
#[derive(Clone, Debug, PartialEq)]
pub struct Requests {
    /// Time between requests, give or take a fifth; `None`: eight packets' time at the rate, from 20 ms to 5 s. Too
    /// short, and requests are made for what is under way; too long delays repairs.
    pub every: Option<Duration>,
    /// Share of what is missing that a request names, drawn at random for each message. Less than all spreads requests
    /// of several members over different fragments.
    pub share: f64,
    /// Number of intervals without new fragments of a message after which its end is asked for.
    pub tail_after: u32,
    /// Maximum factor by which the interval grows while nothing comes; 1 for none.
    pub back_off: u32,
    /// Who is to answer.
    pub servers: Servers,
}

/// Who is to answer a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Servers {
    /// One member, which the request names: it sends what it has, and passes the rest of the request on to another.
    /// So each fragment is sent by one, whatever the members hear of each other.
    One,
    /// Any member that has it, with a probability: `None`, one over the number of neighbours that the request says.
    Anyone(Option<f64>),
}

/// How a member answers requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Repairs {
    /// When a publisher answers requests for its own messages.
    pub publisher: PublisherRepairs,
    /// Network traffic memory: time for which a fragment is not sent again by whoever has heard it. It serves requests
    /// to anyone; one to a named member says what was heard.
    pub memory: Duration,
    /// Maximum time that a member waits before it answers a request to anyone, so that few answer at a time.
    pub delay: Duration,
}

/// When a publisher answers requests for its own messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublisherRepairs {
    /// When it has nothing new to send, or nobody else can answer: so repairs do not hold up new messages.
    Spared,
    /// Always, before new messages, which wait as long.
    Always,
    /// When it has nothing new to send.
    WhenIdle,
    /// Never: other members have to.
    Never,
}

/// Forwarding controller: which fragments a member sends on when it first hears them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Forwarding {
    /// None: all members hear each other, or requests bring messages from hop to hop.
    None,
    /// Each, with a probability; 1 is flooding.
    Probabilistic(f64),
    /// World state: those that a neighbour wants and, by its summary, does not hold.
    WorldState,
    /// Stateful: each, unless all neighbours have been heard to send it.
    Stateful,
    /// Topology: those of which a neighbour does not hear the member that sent it, by its own summary.
    Topology,
}

impl Forwarding {
    /// Whether it goes by what each neighbour itself has said, so that no member may leave that to others who know the
    /// same.
    pub(super) const fn needs_summaries(self) -> bool {
        matches!(self, Self::WorldState | Self::Topology)
    }
}

/// Replication controller: which messages a member brings to others, or gets for others' sake.
#[derive(Clone, Debug, PartialEq)]
pub enum Replication {
    /// None: members get what they subscribe to.
    None,
    /// Each member gets every message that it hears of, so that it can carry it on.
    Pull,
    /// A member sends its neighbours the messages that they lack by their summaries.
    Push,
    /// The same, to neighbours that have been there for some time.
    Convoy(Duration),
    /// The same, to these nodes.
    Targets(Vec<u32>),
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            rate: Rate::from_mbit(10),
            fragment: 1400 - DATA_OVERHEAD as u16,
            // Chosen: blocks of the other protocols; a message of 89 kB is one.
            chunk: 64,
            // Chosen: a film of some minutes at 4 Mbit/s.
            cache: 256 << 20,
            listens: true,
            lifetime: None,
            history: 0,
            requests: Requests {
                every: None,
                share: 1.0,
                tail_after: 1,
                back_off: 64,
                servers: Servers::One,
            },
            repairs: Repairs {
                publisher: PublisherRepairs::Spared,
                memory: Duration::from_millis(100),
                delay: Duration::from_millis(100),
            },
            is_coded: false,
            // Chosen: members that meet know of each other within half a second; where nothing happens, one packet in
            // eight seconds for each neighbourhood.
            summaries: (Duration::from_millis(500), Duration::from_secs(8)),
            dead_after: Duration::from_secs(30),
            forwarding: Forwarding::None,
            forward_delay: Duration::from_millis(10),
            replication: Replication::None,
            patience: Duration::from_secs(24 * 3600),
        }
    }
}

impl Policy {
    /// The settings that DisService is shipped with: requests every 3 s, each for half of what is missing, to anyone,
    /// all of whom answer; no answer for what was heard within 9 s.
    pub fn shipped() -> Self {
        Self {
            requests: Requests {
                every: Some(Duration::from_secs(3)),
                share: 0.5,
                tail_after: 3,
                back_off: 1,
                servers: Servers::Anyone(Some(1.0)),
            },
            repairs: Repairs {
                publisher: PublisherRepairs::WhenIdle,
                memory: Duration::from_secs(9),
                // Chosen: the paper says that it is random, and not how long; the time of some packets at 1 Mbit/s.
                delay: Duration::from_millis(100),
            },
            summaries: (Duration::from_secs(2), Duration::from_secs(2)),
            dead_after: Duration::from_secs(10),
            ..Self::default()
        }
    }

    /// Time between two requests.
    pub(super) fn ask_interval(&self) -> Duration {
        let packets = self.rate.time_for(u64::from(self.fragment) + 100) * 8;
        self.requests.every.unwrap_or_else(|| packets.clamp(MIN_INTERVAL, MAX_INTERVAL))
    }

    /// The same settings, within bounds.
    #[must_use]
    pub(super) fn bounded(self) -> Self {
        let (least, most) = self.summaries;
        let least = least.max(MIN_INTERVAL);
        Self {
            fragment: self.fragment.clamp(16, 65_000),
            chunk: self.chunk.max(1),
            cache: self.cache.max(64 << 10),
            summaries: (least, most.max(least)),
            dead_after: self.dead_after.max(most.max(least)),
            requests: Requests {
                every: self.requests.every.map(|every| every.max(Duration::from_millis(1))),
                back_off: self.requests.back_off.clamp(1, 1 << 16),
                ..self.requests
            },
            ..self
        }
    }
}

/// Bounds of the time between two requests. Chosen: less than 20 ms is no time to gather what is missing, and what
/// DisService has without a configuration is 5 s.
const MIN_INTERVAL: Duration = Duration::from_millis(20);
const MAX_INTERVAL: Duration = Duration::from_secs(5);
