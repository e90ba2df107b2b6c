//! Xcast+: designated routers, which packets list instead of the receivers behind them.
//!
//! Receivers join a channel, a group of one source, by MLD. The router of their link, which hears so from its querier,
//! registers the channel with the router of the source's link: a request to the source's address, which that router
//! takes out of transit. What the source sends to the group becomes a packet of Xcast there, with the routers that have
//! registered (multicast to Xcast, M2X), and at each of those a packet to the group again, on the links with members
//! (X2M). So sender and receivers know IP multicast alone, and only designated routers have state.
//!
//! ```text
//! registration, in UDP to port 1022 at the source:
//! | "X+" | version 1 | 0 | hold time in s | 0 | group, 16 bytes | designated router, 16 bytes |
//!  0      2           3   4                6   8                 24                          40
//! ```
//!
//! The packet of Xcast must stay as it is (X), and its channel identifier is the group. Registrations hold for a time
//! and are repeated before it ends: after a second first, then after twice as long each time, so that a lost one costs
//! a second or two. One that holds for no time is a leave; a router that is sent packets without having members leaves
//! again, so that a lost leave costs a second too.
//!
//! No specification of the request's bytes was at hand: these are ours, with a port for experiments (RFC 4727).

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};

use hopcast_core::{Agenda, Duration, Hook, Instant, Membership, Reader, Writer};
use hopcast_wire::{ip, udp};

use crate::address::is_host;
use crate::xcast::wire::MAX_LIST;

/// Port of registrations.
pub const REGISTRATION_PORT: u16 = 1022;
/// Bytes of a registration.
pub const REGISTRATION: usize = 40;

/// The hooks that select what designated routers take beside the packets of Xcast: registrations, and what sources
/// send to groups, the node itself among them.
pub const PLUS_HOOKS: [Hook; 3] = [
    Hook::Transport { protocol: ip::UDP, port: Some(REGISTRATION_PORT) },
    Hook::Destination { prefix: IpAddr::V6(Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0)), length: 8 },
    Hook::OwnToGroup,
];

/// The settings of a designated router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlusConfig {
    /// Maximum time between registrations. Default: 60 s. With less, they cost more; with more, a router that has lost
    /// its state is without them for longer.
    pub refresh: Duration,
    /// Time for which a registration holds, less than 65,536 s. Default: 210 s, so that three in a row may be lost.
    /// With less than the other, channels have gaps; with more, packets go on to routers that are gone. Registrations
    /// of others hold no longer here either.
    pub hold: Duration,
    /// Maximum number of channels with members here, and of those of sources here. Default: 1024. Members of further
    /// ones wait until another channel has none any more, and routers until a registration ends.
    pub max_channels: usize,
    /// Maximum number of channels of one source here. Default: 64. Further ones are not served: with fewer, a source of
    /// many groups is not; with more, one router's registrations leave less room to other sources.
    pub max_channels_of_source: usize,
    /// Maximum number of routers in a packet, 1 to 125. Default: 20. With fewer, there are more packets; with more,
    /// each has a longer header.
    pub max_list: usize,
    /// Minimum MTU, in bytes, of the paths to other designated routers. Default: 1500. Beside a long datagram lists are
    /// shorter, so that packets fit it in a tunnel; with more than it is, such packets are lost.
    pub mtu: usize,
}

impl Default for PlusConfig {
    fn default() -> Self {
        let (refresh, hold) = (Duration::from_secs(60), Duration::from_secs(210));
        Self { refresh, hold, max_channels: 1024, max_channels_of_source: 64, max_list: 20, mtu: 1500 }
    }
}

/// A source and a group.
pub(super) type Channel = (Ipv6Addr, Ipv6Addr);

/// A registration, as it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Registration {
    pub(super) channel: Channel,
    /// Seconds for which it holds; 0 is a leave.
    pub(super) hold: u16,
    /// The router that has members.
    pub(super) router: Ipv6Addr,
}

/// Maximum number of routers that are registered for a channel: more than that is no small group any more.
const MAX_REGISTERED: usize = 4 * MAX_LIST;

/// Time from a channel's first registration to its second, and minimum time between leaves for packets that nobody
/// wants. Chosen: a few round trips of a long path; with less, a channel costs more packets when it begins, and with
/// more, a lost registration costs members that much.
const AGAIN: Duration = Duration::from_secs(1);

/// Minimum time between registrations of a channel, whatever the settings say.
const MIN_REFRESH: Duration = Duration::from_millis(100);

/// A channel with members.
#[derive(Debug)]
struct Members {
    /// The interfaces with members.
    interfaces: BTreeSet<u32>,
    /// Time from the next registration to the one after it.
    pause: Duration,
}

/// The state of a designated router.
#[derive(Debug)]
pub(super) struct Plus {
    pub(super) config: PlusConfig,
    /// The channels with members.
    members: BTreeMap<Channel, Members>,
    /// Interfaces with members of channels that are not served for want of room.
    waiting: BTreeMap<Channel, BTreeSet<u32>>,
    /// When to register each of these again.
    refreshes: Agenda<Channel>,
    /// The routers that have registered for the channels of sources here.
    registered: BTreeMap<Channel, BTreeSet<Ipv6Addr>>,
    /// Until when each registration holds.
    ends: Agenda<(Channel, Ipv6Addr)>,
    /// Time from which on a packet that nobody wants has this router leave again.
    may_leave: Instant,
}

impl Plus {
    pub(super) fn new(config: PlusConfig) -> Self {
        Self {
            config,
            members: BTreeMap::new(),
            waiting: BTreeMap::new(),
            refreshes: Agenda::new(),
            registered: BTreeMap::new(),
            ends: Agenda::new(),
            may_leave: Instant::ZERO,
        }
    }

    /// Notes that an interface has members, or none any more; the channel to register or to leave, with the time for
    /// which that holds.
    pub(super) fn change(&mut self, now: Instant, change: Membership) -> Option<(Channel, u16)> {
        let (IpAddr::V6(group), Some(IpAddr::V6(source)), Some(interface)) =
            (change.group, change.source, change.interface)
        else {
            return None;
        };
        let channel = (source, group);
        if !is_channel(channel) {
            return None;
        }
        if change.joined {
            if let Some(members) = self.members.get_mut(&channel) {
                members.interfaces.insert(interface);
                return None;
            }
            if self.members.len() >= self.config.max_channels {
                // The querier says it once.
                self.waiting.entry(channel).or_default().insert(interface);
                return None;
            }
            self.members
                .insert(channel, Members { interfaces: BTreeSet::from([interface]), pause: AGAIN * 2 });
            self.refreshes.set(channel, Some(now + AGAIN.min(self.refresh())));
            return Some((channel, self.hold()));
        }
        if let Some(waiting) = self.waiting.get_mut(&channel) {
            waiting.remove(&interface);
            if waiting.is_empty() {
                self.waiting.remove(&channel);
            }
            return None;
        }
        let members = self.members.get_mut(&channel)?;
        members.interfaces.remove(&interface);
        if !members.interfaces.is_empty() {
            return None;
        }
        self.members.remove(&channel);
        self.refreshes.set(channel, None);
        self.admit_waiting(now);
        Some((channel, 0))
    }

    /// Serves members that have waited, as far as there is room; their channels are [due](Self::due) at once.
    fn admit_waiting(&mut self, now: Instant) {
        while self.members.len() < self.config.max_channels
            && let Some((channel, interfaces)) = self.waiting.pop_first()
        {
            self.members.insert(channel, Members { interfaces, pause: AGAIN });
            self.refreshes.set(channel, Some(now));
        }
    }

    fn refresh(&self) -> Duration {
        self.config.refresh.max(MIN_REFRESH)
    }

    fn hold(&self) -> u16 {
        (self.config.hold.as_nanos() / 1_000_000_000).try_into().unwrap_or(u16::MAX)
    }

    /// A channel to register again now, with the time for which that holds; call until `None`.
    pub(super) fn due(&mut self, now: Instant) -> Option<(Channel, u16)> {
        let channel = self.refreshes.expired(now)?;
        let refresh = self.refresh();
        let members = self.members.get_mut(&channel)?;
        let pause = members.pause.min(refresh);
        members.pause = pause * 2;
        self.refreshes.set(channel, Some(now + pause));
        Some((channel, self.hold()))
    }

    /// Whether to leave a channel again, of which a packet has come although it has no members here.
    pub(super) fn is_to_leave(&mut self, now: Instant, channel: Channel) -> bool {
        let leaves = !self.members.contains_key(&channel) && self.may_leave <= now;
        if leaves {
            self.may_leave = now + AGAIN;
        }
        leaves
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.refreshes.next()
    }

    /// The interfaces with members of a channel.
    pub(super) fn interfaces(&self, channel: Channel) -> impl Iterator<Item = u32> {
        self.members.get(&channel).into_iter().flat_map(|members| &members.interfaces).copied()
    }

    /// Forgets the registrations that have ended.
    pub(super) fn expire(&mut self, now: Instant) {
        while let Some((channel, router)) = self.ends.expired(now) {
            self.unregister(channel, router);
        }
    }

    /// Notes a registration of a router; false if there is no room for it.
    pub(super) fn register(&mut self, now: Instant, registration: &Registration) -> bool {
        let Registration { channel, hold, router } = *registration;
        if hold == 0 {
            self.unregister(channel, router);
            return true;
        }
        if !self.has_room(channel, router) {
            return false;
        }
        self.registered.entry(channel).or_default().insert(router);
        let hold = Duration::from_secs(hold.into()).min(self.config.hold);
        self.ends.set((channel, router), Some(now + hold));
        true
    }

    fn has_room(&self, channel: Channel, router: Ipv6Addr) -> bool {
        if let Some(routers) = self.registered.get(&channel) {
            return routers.len() < MAX_REGISTERED || routers.contains(&router);
        }
        let (source, last) = (channel.0, Ipv6Addr::from([0xff; 16]));
        let of_source = self.registered.range((source, Ipv6Addr::UNSPECIFIED)..=(source, last)).count();
        self.registered.len() < self.config.max_channels && of_source < self.config.max_channels_of_source
    }

    fn unregister(&mut self, channel: Channel, router: Ipv6Addr) {
        self.ends.set((channel, router), None);
        let Some(routers) = self.registered.get_mut(&channel) else { return };
        routers.remove(&router);
        if routers.is_empty() {
            self.registered.remove(&channel);
        }
    }

    /// The routers that are registered for a channel.
    pub(super) fn routers(&self, channel: Channel) -> Vec<[u8; 16]> {
        self.registered.get(&channel).into_iter().flatten().map(Ipv6Addr::octets).collect()
    }
}

/// Whether a source and a group are such that routers bring packets from one to the other.
pub(super) fn is_channel((source, group): Channel) -> bool {
    let [first, second, ..] = group.octets();
    // The scope is wider than a link's (RFC 4291, section 2.7).
    is_host(&source.octets()) && first == 0xff && second & 0x0f > 2
}

impl Registration {
    pub(super) fn emit(&self) -> [u8; REGISTRATION] {
        let mut bytes = [0; REGISTRATION];
        let mut writer = Writer::new(&mut bytes);
        writer.put(b"X+\x01\x00");
        writer.u16(self.hold);
        writer.u16(0);
        writer.put(&self.channel.1.octets());
        writer.put(&self.router.octets());
        bytes
    }

    /// Reads the registration in a packet to its source; `None` if it is none.
    pub(super) fn read(packet: &[u8]) -> Option<Self> {
        let header =
            ip::parse(packet).ok().filter(|header| !header.fragment && header.protocol == ip::UDP)?;
        let (IpAddr::V6(from), IpAddr::V6(source)) = (header.source, header.destination) else {
            return None;
        };
        let segment = &packet[header.payload()];
        let udp = udp::parse(header.source, header.destination, segment).ok()?;
        let payload: &[u8; REGISTRATION] = segment[udp::HEADER..udp.len].try_into().ok()?;
        let mut reader = Reader::new(payload);
        let is_it = reader.take(4, "magic").ok()? == b"X+\x01\x00" && udp.destination == REGISTRATION_PORT;
        let (hold, _) = (reader.u16("hold time").ok()?, reader.u16("reserved").ok()?);
        let [group, router] = [reader.array("group").ok()?, reader.array("router").ok()?].map(Ipv6Addr::from);
        // A router registers itself.
        let is_sound = is_it && router == from && is_host(&router.octets()) && is_channel((source, group));
        is_sound.then_some(Self { channel: (source, group), hold, router })
    }
}
