//! A bridge under test, and the frames that it is given.

#![allow(clippy::unwrap_used, dead_code)] // each test file uses its part

use std::net::IpAddr;

use hopcast_bridge::Bridge;
use hopcast_bridge::bridge::{BridgePort, Config, VlanFiltering};
use hopcast_core::{Buffer, Duration, Frame, Instant, Item, Machine, Membership, Port};
use hopcast_wire::ethernet::{self, Header, Mac};
use hopcast_wire::membership::{RecordType, Version};
use hopcast_wire::{igmp, ip, mld, router_alert};

/// The host's port, and its address.
pub(crate) const HOST: u32 = 1000;
pub(crate) const HOST_MAC: Mac = [2, 0xff, 0, 0, 0, 1];

/// The address of a station.
pub(crate) const fn station(number: u8) -> Mac {
    [2, 0, 0, 0, 0, number]
}

/// The time this many seconds after the start.
pub(crate) fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

/// Settings of a bridge without VLANs and with this many ports.
pub(crate) fn plain(ports: usize) -> Config {
    Config { ports: vec![BridgePort::default(); ports], snooping: None, ..Config::default() }
}

/// Settings of a bridge with the host's port too.
pub(crate) fn with_host(config: Config) -> Config {
    Config { host: Some((BridgePort::default(), HOST_MAC)), ..config }
}

/// Settings of a bridge that filters by VLANs: each port is given as (native, tagged, untagged).
pub(crate) fn filtering(ports: &[(u16, &[u16], &[u16])]) -> Config {
    let port = |&(native, tagged, untagged): &(u16, &[u16], &[u16])| BridgePort {
        native: (native > 0).then_some(native),
        tagged: tagged.to_vec(),
        untagged: untagged.to_vec(),
        ..BridgePort::default()
    };
    let ports = ports.iter().map(port).collect();
    Config { ports, vlans: Some(VlanFiltering::default()), snooping: None, ..Config::default() }
}

/// A frame without tags, of a type that nobody knows.
pub(crate) fn frame(to: Mac, from: Mac) -> Vec<u8> {
    of_type(to, from, 0x88b5, b"what a frame carries")
}

/// A frame of a type.
pub(crate) fn of_type(destination: Mac, source: Mac, ether_type: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = Buffer::copy_from(payload);
    ethernet::prepend(&mut frame, Header { destination, source, ether_type });
    frame.to_vec()
}

/// The frame with a tag put outermost: its type, and its priority and VLAN.
pub(crate) fn tagged(frame: &[u8], kind: u16, control: u16) -> Vec<u8> {
    let mut tagged = frame[..12].to_vec();
    tagged.extend(kind.to_be_bytes());
    tagged.extend(control.to_be_bytes());
    tagged.extend(&frame[12..]);
    tagged
}

/// A frame around an IP packet.
pub(crate) fn around(packet: &Buffer, from: Mac) -> Vec<u8> {
    let header = ip::parse(packet).unwrap();
    let kind = if header.source.is_ipv6() { ethernet::IPV6 } else { ethernet::IPV4 };
    of_type(ethernet::of_group(header.destination), from, kind, packet)
}

/// A packet to a group.
pub(crate) fn to_group(group: &str, from: Mac) -> Vec<u8> {
    let mut packet = Buffer::copy_from(b"what a group is sent");
    let group: IpAddr = group.parse().unwrap();
    ip::prepend(&mut packet, source(group, from), group, ip::UDP, 8, 0);
    around(&packet, from)
}

/// A report of a group, in IGMP of a version or MLD of the one that corresponds to it.
pub(crate) fn report(group: &str, version: Version, from: Mac) -> Vec<u8> {
    let group: IpAddr = group.parse().unwrap();
    let to = if version == Version::V3 {
        hopcast_wire::membership::report_routers(ip::Version::of(group))
    } else {
        group
    };
    message(from, to, |message, from, to| match (group, from, to) {
        (IpAddr::V4(_), ..) if version == Version::V3 => {
            igmp::prepend_report(message, &[(RecordType::ToExclude, group, &[])]);
        }
        (IpAddr::V4(group), ..) => igmp::prepend_older_report(message, version, group),
        (_, IpAddr::V6(from), IpAddr::V6(to)) if version == Version::V3 => {
            mld::prepend_report(message, from, to, &[(RecordType::ToExclude, group, &[])]);
        }
        (IpAddr::V6(group), IpAddr::V6(from), IpAddr::V6(to)) => {
            mld::prepend_older_report(message, from, to, group);
        }
        _ => unreachable!("the addresses are of one version"),
    })
}

/// A leave of a group, of version 2 of IGMP or 1 of MLD.
pub(crate) fn leave(group: &str, from: Mac) -> Vec<u8> {
    let group: IpAddr = group.parse().unwrap();
    let to = hopcast_wire::membership::all_routers(ip::Version::of(group));
    message(from, to, |message, from, to| match (group, from, to) {
        (IpAddr::V4(group), ..) => igmp::prepend_leave(message, group),
        (IpAddr::V6(group), IpAddr::V6(from), IpAddr::V6(to)) => mld::prepend_done(message, from, to, group),
        _ => unreachable!("the addresses are of one version"),
    })
}

/// A query of version 2 of IGMP or 1 of MLD, from an address: for all groups, or for one.
pub(crate) fn query(own: &str, group: Option<&str>, max_response: Duration, from: Mac) -> Vec<u8> {
    let query = hopcast_wire::membership::Query {
        version: Version::V2,
        group: group.map(|group| group.parse().unwrap()),
        max_response,
        suppress: false,
        robustness: 0,
        interval: Duration::ZERO,
    };
    around(&hopcast_wire::membership::query_packet(own.parse().unwrap(), &query, &[]), from)
}

fn source(group: IpAddr, from: Mac) -> IpAddr {
    if group.is_ipv6() { ethernet::link_local(from).into() } else { IpAddr::from([10, 0, 0, from[5]]) }
}

fn message(from: Mac, to: IpAddr, put: impl FnOnce(&mut Buffer, IpAddr, IpAddr)) -> Vec<u8> {
    let (mut packet, source) = (Buffer::default(), source(to, from));
    put(&mut packet, source, to);
    match (source, to) {
        (IpAddr::V4(source), IpAddr::V4(to)) => router_alert::prepend_v4(&mut packet, source, to),
        (IpAddr::V6(source), IpAddr::V6(to)) => router_alert::prepend_v6(&mut packet, source, to),
        _ => unreachable!("the addresses are of one version"),
    }
    around(&packet, from)
}

/// A bridge under test.
pub(crate) struct Tested {
    pub(crate) bridge: Bridge,
    pub(crate) now: Instant,
    /// Memberships that ports were told, and have not been [taken](Self::told) yet.
    memberships: Vec<(u32, String, bool)>,
}

impl Tested {
    pub(crate) fn new(config: Config) -> Self {
        Self { bridge: Bridge::new(config), now: Instant::ZERO, memberships: Vec::new() }
    }

    /// Lets time pass, and gives what the bridge sends by itself.
    pub(crate) fn until(&mut self, seconds: u64) -> Vec<(u32, Vec<u8>)> {
        let end = at(seconds);
        let mut sent = Vec::new();
        while let Some(due) = self.bridge.deadline().filter(|due| *due <= end) {
            self.now = due.max(self.now);
            self.bridge.wake(self.now);
            sent.extend(self.drain());
            assert!(self.bridge.deadline().is_none_or(|next| next > self.now), "a deadline that has passed");
        }
        self.now = end;
        sent
    }

    /// Gives the bridge a frame; what it sends on, by port.
    pub(crate) fn offer(&mut self, port: u32, frame: &[u8]) -> Vec<(u32, Vec<u8>)> {
        let port = if port == HOST { Port::Above(0) } else { Port::Below(port) };
        self.bridge.handle(self.now, port, Item::Frame(Frame::new(Buffer::copy_from(frame))));
        let sent = self.drain();
        assert!(self.bridge.deadline().is_none_or(|next| next > self.now), "a deadline that has passed");
        sent
    }

    /// Gives the bridge a frame, which it sends on unchanged; the ports.
    pub(crate) fn ports(&mut self, port: u32, frame: &[u8]) -> Vec<u32> {
        let sent = self.offer(port, frame);
        assert!(sent.iter().all(|(_, bytes)| bytes == frame), "a frame was changed");
        sent.into_iter().map(|(port, _)| port).collect()
    }

    fn drain(&mut self) -> Vec<(u32, Vec<u8>)> {
        let Self { bridge, now, memberships } = self;
        let items = std::iter::from_fn(|| bridge.poll(*now));
        let sent = |(port, item)| match (port, item) {
            (Port::Below(port), Item::Frame(frame)) => Some((port, frame.bytes.to_vec())),
            (Port::Above(0), Item::Frame(frame)) => Some((HOST, frame.bytes.to_vec())),
            (Port::Below(port), Item::Membership(Membership { group, joined, .. })) => {
                memberships.push((port, group.to_string(), joined));
                None
            }
            other => panic!("{other:?}"),
        };
        items.filter_map(sent).collect()
    }

    /// The memberships that ports have been told since the last call: each group, and whether it is wanted.
    pub(crate) fn told(&mut self) -> Vec<(u32, String, bool)> {
        self.bridge.wake(self.now);
        assert!(self.drain().is_empty(), "a frame in place of a membership");
        std::mem::take(&mut self.memberships)
    }

    /// A counter's value.
    pub(crate) fn counter(&self, name: &str) -> u64 {
        let mut found = None;
        self.bridge.counters(&mut |counter, value| {
            if counter == name {
                found = Some(value);
            }
        });
        found.unwrap_or_else(|| panic!("no counter `{name}`"))
    }
}
