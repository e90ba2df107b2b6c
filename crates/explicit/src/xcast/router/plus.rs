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
//! and are repeated before it ends; one that holds for no time is a leave.
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
/// send to groups.
pub const PLUS_HOOKS: [Hook; 2] = [
    Hook::Transport { protocol: ip::UDP, port: Some(REGISTRATION_PORT) },
    Hook::Destination { prefix: IpAddr::V6(Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0)), length: 8 },
];

/// The settings of a designated router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlusConfig {
    /// Time between registrations. Default: 60 s. With less, they cost more; with more, a router that has lost its
    /// state is without them for longer.
    pub refresh: Duration,
    /// Time for which a registration holds, less than 65,536 s. Default: 210 s, so that three in a row may be lost.
    /// With less than the other, channels have gaps; with more, packets go on to routers that are gone. Registrations
    /// of others hold no longer here either.
    pub hold: Duration,
    /// Maximum number of channels with members here, and of those of sources here. Default: 1024. Further ones are not
    /// served.
    pub max_channels: usize,
    /// Maximum number of channels of one source here. Default: 64. Further ones are not served: with fewer, a source of
    /// many groups is not; with more, one router's registrations leave less room to other sources.
    pub max_channels_of_source: usize,
    /// Maximum number of routers in a packet, 1 to 125. Default: 20. With fewer, there are more packets; with more,
    /// each has a longer header.
    pub max_list: usize,
}

impl Default for PlusConfig {
    fn default() -> Self {
        let (refresh, hold) = (Duration::from_secs(60), Duration::from_secs(210));
        Self { refresh, hold, max_channels: 1024, max_channels_of_source: 64, max_list: 20 }
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

/// The state of a designated router.
#[derive(Debug)]
pub(super) struct Plus {
    pub(super) config: PlusConfig,
    /// The interfaces with members of each channel.
    members: BTreeMap<Channel, BTreeSet<u32>>,
    /// When to register each of these again.
    refreshes: Agenda<Channel>,
    /// The routers that have registered for the channels of sources here.
    registered: BTreeMap<Channel, BTreeSet<Ipv6Addr>>,
    /// Until when each registration holds.
    ends: Agenda<(Channel, Ipv6Addr)>,
}

impl Plus {
    pub(super) fn new(config: PlusConfig) -> Self {
        Self {
            config,
            members: BTreeMap::new(),
            refreshes: Agenda::new(),
            registered: BTreeMap::new(),
            ends: Agenda::new(),
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
            if self.members.len() >= self.config.max_channels && !self.members.contains_key(&channel) {
                return None;
            }
            let interfaces = self.members.entry(channel).or_default();
            let is_first = interfaces.is_empty();
            interfaces.insert(interface);
            if !is_first {
                return None;
            }
            self.refreshes.set(channel, Some(now + self.config.refresh));
            return Some((channel, self.hold()));
        }
        let interfaces = self.members.get_mut(&channel)?;
        interfaces.remove(&interface);
        if !interfaces.is_empty() {
            return None;
        }
        self.members.remove(&channel);
        self.refreshes.set(channel, None);
        Some((channel, 0))
    }

    fn hold(&self) -> u16 {
        (self.config.hold.as_nanos() / 1_000_000_000).try_into().unwrap_or(u16::MAX)
    }

    /// A channel to register again now, with the time for which that holds; call until `None`.
    pub(super) fn due(&mut self, now: Instant) -> Option<(Channel, u16)> {
        let channel = self.refreshes.expired(now)?;
        self.refreshes.set(channel, Some(now + self.config.refresh.max(Duration::from_secs(1))));
        Some((channel, self.hold()))
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.refreshes.next()
    }

    /// The interfaces with members of a channel.
    pub(super) fn interfaces(&self, channel: Channel) -> impl Iterator<Item = u32> {
        self.members.get(&channel).into_iter().flatten().copied()
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
