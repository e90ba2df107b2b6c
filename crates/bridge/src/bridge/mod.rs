//! A learning bridge (IEEE 802.1D, 802.1Q): a frame to a station leaves by the port behind which that station has been
//! heard, and one to a group, or to a station that nobody has heard, by all ports but its own.
//!
//! - `Below(i)` is port i. Its frames may be for anybody.
//! - `Above(0)` is the port of the bridge's own host, if it has one: it is given frames to its own address, to all
//!   stations, and to groups, and never those to a station that is not known. Its MTU is the smallest of all ports'.
//! - A mesh below is told the groups that are wanted behind the other ports ([`BridgePort::tell_memberships`]).
//!
//! | file | state |
//! |---|---|
//! | `table` | behind which port each station is, by VLAN |
//! | `filter` | the VLANs of the ports, and the tags of what they are given |
//! | `snooping` | behind which ports groups have members, and queriers |
//!
//! The rules are those of Linux' bridge with its defaults, against which tests hold this one frame by frame: without
//! VLANs, with filtering by VLANs, and with snooping in each VLAN.
//!
//! # Bounds
//!
//! A frame makes at most one copy for each other port, and each is counted, so that
//! nothing multiplies in here. Around a loop of bridges frames go on for ever, as fast as its links carry them, and
//! `addresses_moved` counts the stations that seem to move; there is no spanning tree. Memory is bounded by
//! [`Config::max_addresses`] and [`Snooping::max_groups`], whatever arrives: beyond, frames are sent to all ports.
//! Nobody is authenticated: a station that sends from another's address gets its frames until the other sends again.
//!
//! # Scope and departures
//!
//! - There is no spanning tree, and frames to its group address, 01:80:c2:00:00:00, are forwarded as Linux does without
//!   one; those to the other reserved addresses are not, except that a provider's bridge forwards those for customers'
//!   bridges.
//! - Queriers, routers and members are known for each VLAN (Linux `mcast_vlan_snooping`), and not queriers and routers
//!   for the bridge as a whole. A querier of its own asks as long as it runs; in Linux that of IPv6 only with an IPv6
//!   address.
//! - A query for one group is sent to that group (RFC 2236 section 9), and by Linux to all hosts.
//! - Linux turns snooping off for good when there are more groups than it holds; here frames to unknown groups are sent
//!   to all ports until [`Snooping::max_groups`] are enough again.
//! - Hellos of PIM over IPv6 make their port one of routers too. A report that is cut off is dropped as a whole.
//! - Only the ports of a network of wires: what a radio reports of frames ([`Item::FrameStatus`]) ends here. A frame
//!   that is too long for a link is dropped there and not here.
//! - When a link goes down, its stations stay known until they age, or are heard behind another port.

mod config;
mod counters;
mod filter;
mod ports;
mod sender;
mod snooping;
mod table;

use hopcast_core::{Buffer, Instant, Item, Machine, Outbox, Port, earliest};
use hopcast_wire::ethernet::{self, Header, Mac};
use hopcast_wire::vlan;

pub use config::{BridgePort, Config, MAX_PORTS, Querier, RouterPort, Snooping, VlanFiltering};
use counters::Counters;
use filter::{Class, Filter, Form, Refusal};
use sender::Sender;
use snooping::{QueryToSend, ToldPort, Verdict};
use table::{ForwardingTable, Key, Learned};

/// A learning bridge; see the [module's documentation](self).
pub struct Bridge {
    /// Number of ports below. The host's has this number, if there is one.
    below: usize,
    host: Option<Mac>,
    /// MTU of each port below, as far as it is known.
    mtus: Vec<Option<u32>>,
    table: ForwardingTable,
    filter: Option<Filter>,
    snooping: Option<snooping::Snooping>,
    counters: Counters,
    out: Outbox,
}

impl Bridge {
    /// A bridge that knows no station yet.
    ///
    /// # Panics
    ///
    /// If it has more than [`MAX_PORTS`] ports.
    pub fn new(config: Config) -> Self {
        let below = config.ports.len();
        let (mut ports, host) = (config.ports, config.host.as_ref().map(|(_, mac)| *mac));
        ports.extend(config.host.map(|(port, _)| port));
        assert!(ports.len() <= MAX_PORTS, "a bridge has at most {MAX_PORTS} ports");
        let filter = config.vlans.map(|vlans| Filter::new(vlans.protocol, ports.iter()));
        let snooping = config.snooping.map(|config| {
            let vlans: Vec<u16> = filter.as_ref().map_or(vec![0], |filter| filter.vlans().collect());
            let routers = ports.iter().map(|port| port.router).collect();
            let is_told = |(_, port): &(usize, &BridgePort)| port.tell_memberships;
            let vlans_of = |port: &BridgePort| match filter {
                Some(_) => port.untagged.clone(),
                None => vec![0],
            };
            let told = ports[..below].iter().enumerate().filter(is_told);
            let told = told.map(|(number, port)| ToldPort::new(number, vlans_of(port))).collect();
            snooping::Snooping::new(config, routers, vlans.into_iter(), told)
        });
        Self {
            below,
            host,
            mtus: vec![None; below],
            table: ForwardingTable::new(config.ageing, config.max_addresses),
            filter,
            snooping,
            counters: Counters::default(),
            out: Outbox::new(),
        }
    }

    /// Number of addresses that it holds, those included that have aged and are not removed yet.
    pub fn addresses(&self) -> usize {
        self.table.len()
    }

    /// Number of groups that it holds, those included that are over and not removed yet.
    pub fn groups(&self) -> usize {
        self.snooping.as_ref().map_or(0, snooping::Snooping::groups)
    }

    /// Takes a frame that has arrived on a port.
    fn receive(&mut self, now: Instant, from: usize, bytes: Buffer) {
        self.counters.frames_in += 1;
        match self.admit(now, from, &bytes) {
            Some((header, class)) => self.forward(now, from, header, class, bytes),
            None => bytes.recycle(),
        }
    }

    /// Checks a frame and learns its sender; `None` if it is dropped.
    #[inline]
    fn admit(&mut self, now: Instant, from: usize, frame: &[u8]) -> Option<(Header, Class)> {
        let Self { counters, filter, .. } = self;
        let Ok(header) = ethernet::parse(frame) else {
            counters.malformed += 1;
            return None;
        };
        if ethernet::is_group(header.source) || header.source == [0; 6] {
            counters.source_not_allowed += 1;
            return None;
        }
        let is_below = from < self.below;
        let is_provider = filter.as_ref().is_some_and(Filter::is_provider);
        let reserved = Reserved::of(header.destination, is_provider).filter(|_| is_below);
        if reserved == Some(Reserved::Pause) {
            counters.reserved_address += 1;
            return None;
        }
        let class = match filter.as_ref().map(|filter| filter.classify(from, frame)) {
            None => Class { vlan: 0, form: Form::Untagged },
            Some(Ok(class)) => class,
            Some(Err(refusal)) => {
                match refusal {
                    Refusal::NoNative => counters.untagged_not_allowed_in += 1,
                    Refusal::NotAllowed => counters.vlan_not_allowed_in += 1,
                }
                return None;
            }
        };
        if is_below {
            self.learn(now, from, class, header.source);
        }
        if reserved.is_some() {
            self.counters.reserved_address += 1;
            return None;
        }
        Some((header, class))
    }

    #[inline]
    fn learn(&mut self, now: Instant, from: usize, class: Class, source: Mac) {
        // In a VLAN that the host is not in, its address is like any other.
        if self.host == Some(source) && self.is_member(self.below, class) {
            // By a loop, or another has the same: it is passed on, and the host keeps its address.
            self.counters.own_address_heard += 1;
            return;
        }
        match self.table.learn(now, Key::new(class.vlan, source), from) {
            Learned::Known | Learned::New => {}
            Learned::Moved => self.counters.addresses_moved += 1,
            Learned::Refused => self.counters.addresses_refused += 1,
        }
    }

    /// Sends a frame that was admitted to the ports that it is for.
    #[inline]
    fn forward(&mut self, now: Instant, from: usize, header: Header, class: Class, bytes: Buffer) {
        let Header { destination, .. } = header;
        if ethernet::is_group(destination) {
            return self.forward_to_group(now, from, header, class, bytes);
        }
        let own = self.host == Some(destination) && self.is_member(self.below, class);
        let known =
            if own { Some(self.below) } else { self.table.port(now, Key::new(class.vlan, destination)) };
        match known {
            Some(port) if port == from => {
                self.counters.same_port += 1;
                bytes.recycle();
            }
            Some(port) if self.is_member(port, class) => self.sender().send(port, class, bytes),
            Some(_) => {
                self.counters.vlan_not_allowed_out += 1;
                bytes.recycle();
            }
            None => {
                self.counters.not_learned += 1;
                let below = self.below;
                if self.sender().send_to_all(from, class, bytes, |port| port < below) == 0 {
                    self.counters.no_other_port += 1;
                }
            }
        }
    }

    fn forward_to_group(
        &mut self,
        now: Instant,
        from: usize,
        Header { destination, ether_type, .. }: Header,
        class: Class,
        bytes: Buffer,
    ) {
        // The outermost tag stands before the packet if the bridge knows VLANs by it, and one that knows none looks
        // behind any.
        let is_tagged = match self.filter {
            Some(_) => class.form != Form::Untagged,
            None => vlan::tag(&bytes).is_some(),
        };
        let (ether_type, at) = match bytes.get(16..18) {
            Some(inner) if is_tagged => {
                (u16::from_be_bytes([inner[0], inner[1]]), ethernet::HEADER + vlan::TAG)
            }
            _ => (ether_type, ethernet::HEADER),
        };
        let snooping = self.snooping.as_mut().filter(|_| destination != ethernet::BROADCAST);
        let verdict = snooping.map_or(Verdict::All, |snooping| {
            let packet = bytes.get(at..).unwrap_or_default();
            snooping.receive(now, (class.vlan, from), ether_type, packet)
        });
        match verdict {
            Verdict::Malformed => {
                self.counters.malformed_group_frame += 1;
                return bytes.recycle();
            }
            Verdict::All => {
                if self.sender().send_to_all(from, class, bytes, |_| true) == 0 {
                    self.counters.no_other_port += 1;
                }
            }
            Verdict::Wanted(wanted) => {
                // Beside the snooping, of which `wanted` is a part.
                let Self { below, host, filter, counters, out, .. } = self;
                let (has_host, filter) = (host.is_some(), filter.as_ref());
                let mut sender = Sender { below: *below, has_host, filter, counters, out };
                if sender.send_to_all(from, class, bytes, |port| wanted.has(port)) == 0 {
                    self.counters.no_port_for_group += 1;
                } else {
                    self.counters.frames_to_members += 1;
                }
            }
        }
        self.send_queries();
    }

    /// Sends the queries of the bridge's own that are due, and tells ports what has changed.
    fn send_queries(&mut self) {
        while let Some((port, change)) = self.snooping.as_mut().and_then(snooping::Snooping::next_news) {
            self.out.push(Port::Below(port as u32), Item::Membership(change));
        }
        while let Some(query) = self.snooping.as_mut().and_then(snooping::Snooping::next_query) {
            let QueryToSend { vlan, port, frame } = query;
            let class = Class { vlan, form: Form::Untagged };
            // From no port, so that each is given it.
            self.sender()
                .send_to_all(usize::MAX, class, frame, |number| port.is_none_or(|port| port == number));
        }
    }

    /// Whether a port takes and is given the frames of a VLAN.
    #[inline]
    fn is_member(&self, port: usize, class: Class) -> bool {
        let filter = self.filter.as_ref();
        filter.is_none_or(|filter| filter.ports(class.vlan).is_some_and(|ports| ports.members.contains(port)))
    }

    #[inline]
    fn sender(&mut self) -> Sender<'_> {
        let Self { below, host, filter, counters, out, .. } = self;
        Sender { below: *below, has_host: host.is_some(), filter: filter.as_ref(), counters, out }
    }

    /// Notes the MTU of a port; the host is told the smallest.
    fn set_mtu(&mut self, port: u32, mtu: u32) {
        let Some(known) = self.mtus.get_mut(port as usize) else {
            self.counters.wrong_items += 1;
            return;
        };
        *known = Some(mtu);
        if self.host.is_some()
            && let Some(smallest) = self.mtus.iter().flatten().min()
        {
            self.out.up(Item::Mtu(*smallest));
        }
    }
}

/// An address that bridges do not forward (IEEE 802.1D-2004 table 7-10; IEEE 802.1Q-2022 tables 8-1 and 8-2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reserved {
    /// That of pause frames, which concern the wire alone.
    Pause,
    /// Another, whose frames are for the next bridge.
    ForBridges,
}

impl Reserved {
    /// That of the spanning tree, 0x00, is none: whoever else has one shall find its loops. A provider's bridge
    /// forwards those that are for the customers' bridges, as Linux does (`BR_GROUPFWD_8021AD`).
    #[inline]
    const fn of(destination: Mac, is_provider: bool) -> Option<Self> {
        match destination {
            [0x01, 0x80, 0xc2, 0, 0, 0x0b..=0x0d | 0x0f] if is_provider => None,
            [0x01, 0x80, 0xc2, 0, 0, 0x01] => Some(Self::Pause),
            [0x01, 0x80, 0xc2, 0, 0, 0x02..=0x0f] => Some(Self::ForBridges),
            _ => None,
        }
    }
}

impl Machine for Bridge {
    fn handle(&mut self, now: Instant, port: Port, item: Item) {
        self.wake(now);
        match (port, item) {
            (Port::Below(number), Item::Frame(frame)) if (number as usize) < self.below => {
                self.receive(now, number as usize, frame.bytes);
            }
            (Port::Above(0), Item::Frame(frame)) if self.host.is_some() => {
                self.receive(now, self.below, frame.bytes);
            }
            (Port::Below(number), Item::Mtu(mtu)) => self.set_mtu(number, mtu),
            // No port's wire acknowledges frames.
            (Port::Above(0), Item::ReportFrameStatus) => {}
            _ => self.counters.wrong_items += 1,
        }
    }

    fn wake(&mut self, now: Instant) {
        self.table.sweep(now);
        if let Some(snooping) = &mut self.snooping {
            snooping.wake(now);
            self.send_queries();
        }
    }

    #[inline]
    fn poll(&mut self, _now: Instant) -> Option<(Port, Item)> {
        self.out.pop()
    }

    fn deadline(&self) -> Option<Instant> {
        earliest(self.table.deadline(), self.snooping.as_ref().and_then(snooping::Snooping::deadline))
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        self.counters.report(report);
        if let Some(snooping) = &self.snooping {
            snooping.counters.report(report);
        }
    }
}
