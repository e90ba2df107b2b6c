//! The machine: classifies the frames and items that arrive.

use std::collections::VecDeque;
use std::net::IpAddr;

use hopcast_core::{
    Buffer, Egress, Frame, FrameStatus, Hook, Instant, Item, Machine, Membership, Outbox, Pace, Port,
    Transit, earliest,
};
use hopcast_wire::ip::Header;
use hopcast_wire::{Malformed, arp, ethernet, ip};

use crate::binding::{BindError, Bindings, FrameBinding};
use crate::config::Config;
use crate::counters::Counters;
use crate::groups::{GroupRoute, Groups, is_broadcast, is_group, is_link_scope};
use crate::icmp::{PathMtus, error_limit};
use crate::membership::MembershipReports;
use crate::memberships_below::MembershipsBelow;
use crate::neighbours::Neighbours;
use crate::reports::is_membership;
use crate::routes::{RouteCache, Routes};

/// A host or router; see the [crate's documentation](crate).
pub struct Host {
    pub(crate) config: Config,
    pub(crate) routes: RouteCache,
    pub(crate) bindings: Bindings,
    pub(crate) groups: Groups,
    /// The neighbours; `None` where the routes have their Ethernet addresses.
    pub(crate) neighbours: Option<Box<Neighbours>>,
    /// Reports of memberships; `None` where none are sent.
    pub(crate) reports: Option<Box<MembershipReports>>,
    pub(crate) memberships_below: MembershipsBelow,
    /// Packets from the host to itself, before they are received. Empty between calls.
    pub(crate) loopback: VecDeque<Buffer>,
    /// Number of hooks, from the first, that do not see the packet that the host sends to itself now: those up to the
    /// hook that sends it.
    pub(crate) loopback_from: usize,
    pub(crate) out: Outbox,
    pub(crate) identification: u16,
    pub(crate) error_limit: Pace,
    pub(crate) path_mtus: PathMtus,
    pub(crate) counters: Counters,
}

impl Host {
    /// A host on which nothing is bound.
    pub fn new(config: Config, routes: Box<dyn Routes>) -> Self {
        Self {
            config,
            routes: RouteCache::new(routes),
            bindings: Bindings::default(),
            groups: Groups::default(),
            neighbours: None,
            reports: None,
            memberships_below: MembershipsBelow::default(),
            loopback: VecDeque::new(),
            loopback_from: 0,
            out: Outbox::new(),
            identification: 0,
            error_limit: error_limit(),
            path_mtus: PathMtus::default(),
            counters: Counters::default(),
        }
    }

    /// Binds a UDP port, of both versions: datagrams to it go up on `Above(above)` as [`Item::Datagram`]. A datagram
    /// that comes down there is sent; where its local end is unspecified, the host's first address of the version and
    /// the (lowest) port that `above` has are used.
    pub fn bind_udp(&mut self, above: u32, port: u16) -> Result<(), BindError> {
        self.bindings.bind_udp(above, port)
    }

    /// Binds an IP protocol, or one port of it: whole packets to this host go up on `Above(above)` as
    /// [`Item::Packet`], their transport checksum not looked at, and so do the ICMP errors about packets that were sent
    /// from it. The port is the second 16-bit word behind the IP header, as in TCP. A bound port goes before a bound
    /// protocol.
    ///
    /// A packet that comes down, on this or any other `Above` port, is complete and is routed as the host's own. If it
    /// cannot be sent, the ICMP error that says why comes back like any other.
    ///
    /// The port of ICMP is the echo identifier: echo replies with it go up there, and so do the errors about echo
    /// requests with it. Other messages go to a binding of all of ICMP.
    ///
    /// Echo requests are answered by the host, also when ICMP is bound.
    pub fn bind_protocol(&mut self, above: u32, protocol: u8, port: Option<u16>) -> Result<(), BindError> {
        self.bindings.bind_protocol(above, protocol, port)
    }

    /// Hooks a machine into the host: packets in transit that match `filter`, and those for this host that match a
    /// filter which selects such ([`Hook::is_for_host`]), go up on `Above(above)` as [`Item::Transit`]; see
    /// [`Transit`] for the answers. Several machines see a packet in the order of their hooks, each after the one
    /// before has handed it back. A second filter for one `above` adds to the first. On a host that does not forward,
    /// only multicast is in transit.
    ///
    /// A hook may hand over up to [`MAX_ANSWERS`](hopcast_core::hook::MAX_ANSWERS) transits for each packet that it
    /// received; more are dropped.
    pub fn hook(&mut self, above: u32, filter: Hook) {
        self.bindings.hook(above, filter);
    }

    /// Binds frames of a type on an interface: whole frames to the host or to a group go up on `Above(above)` as
    /// [`Item::Frame`], and, if `promiscuous`, so do those that the interface only overheard. A frame that comes down
    /// there leaves by that interface as it is. Of several machines bound to the same frames each gets them, in the
    /// order in which they were bound. An `above` has one interface.
    ///
    /// A machine that requests it ([`Item::ReportFrameStatus`]) receives on the same port the status of the frames of
    /// these types that this host sends, as far as the link knows it.
    ///
    /// An overheard frame reaches the host only if the host's station on it is promiscuous.
    pub fn bind_frames(
        &mut self,
        above: u32,
        interface: u32,
        ether_type: u16,
        promiscuous: bool,
    ) -> Result<(), BindError> {
        if interface as usize >= self.config.interfaces.len() {
            return Err(BindError::NoInterface { interface });
        }
        self.bindings.bind_frames(interface, ether_type, FrameBinding { above, promiscuous, statuses: false })
    }

    /// Lets the machine on `Above(above)` join the multicast `group` on every interface, as an
    /// [`Item::Membership`] from it would.
    pub fn join(&mut self, above: u32, group: IpAddr) {
        self.groups.change(above, Membership { group, source: None, interface: None, joined: true });
    }

    /// The longest packet that is known to reach `destination`, in bytes: from the last ICMP message, or the MTU of the
    /// interface. `None` without a route.
    pub fn path_mtu(&mut self, destination: IpAddr) -> Option<u32> {
        let (_, first) = self.next_hop(destination)?;
        Some(self.path_mtus.get(destination).unwrap_or(first).min(first))
    }

    #[inline]
    fn receive_frame(&mut self, now: Instant, interface: u32, frame: Frame) {
        let Some(own) = self.config.interfaces.get(interface as usize) else {
            self.counters.wrong_items += 1;
            return;
        };
        if frame.overheard {
            return self.overhear(interface, &frame);
        }
        let header = match ethernet::parse(&frame.bytes) {
            Ok(header) => header,
            Err(malformed) => return self.count_malformed(malformed),
        };
        let to_group = ethernet::is_group(header.destination);
        if header.destination != own.mac && !to_group {
            self.counters.not_for_us += 1;
            return;
        }
        if !matches!(header.ether_type, ethernet::IPV4 | ethernet::IPV6) {
            return self.receive_not_ip(now, interface, &header, &frame);
        }
        let station = header.source;
        let header = match ip::parse(&frame.bytes[ethernet::HEADER..]) {
            Ok(header) => header,
            Err(malformed) => return self.count_malformed(malformed),
        };
        if self.takes_nd(&header, &frame.bytes[ethernet::HEADER..]) {
            return self.receive_nd(now, interface, station, &header, &frame.bytes[ethernet::HEADER..]);
        }
        if !to_group && self.is_plain_transit(&header, &frame.bytes[ethernet::HEADER..]) {
            return self.forward_frame(now, frame.bytes, &header);
        }
        self.receive_other(now, interface, frame.bytes, &header, (to_group, station));
    }

    /// Takes the packet out of a frame, which was sent to a group or to the host itself, where the packet is not
    /// forwarded in that frame.
    #[inline(never)]
    fn receive_other(
        &mut self,
        now: Instant,
        interface: u32,
        mut packet: Buffer,
        header: &Header,
        (to_group, station): (bool, ethernet::Mac),
    ) {
        packet.advance(ethernet::HEADER);
        let is_membership = to_group && self.receive_membership(now, interface, &packet, header);
        let arrival = Arrival { to_group, hooks_passed: 0, is_membership, station: Some(station) };
        self.receive(now, packet, header, Some(interface), arrival);
    }

    /// Takes a frame of another type than IP's.
    #[inline(never)]
    fn receive_not_ip(&mut self, now: Instant, interface: u32, header: &ethernet::Header, frame: &Frame) {
        let is_arp = header.ether_type == arp::ETHER_TYPE && self.neighbours.is_some();
        if is_arp {
            self.receive_arp(now, interface, header.destination, &frame.bytes[ethernet::HEADER..]);
        }
        if !self.hand_up_frame(interface, header.ether_type, frame) && !is_arp {
            self.counters.not_ip += 1;
        }
    }

    /// Hands a frame for another station up to the promiscuous ports, or counts it.
    #[inline(never)]
    fn overhear(&mut self, interface: u32, frame: &Frame) {
        let header = ethernet::parse(&frame.bytes);
        if !header.is_ok_and(|header| self.hand_up_frame(interface, header.ether_type, frame)) {
            self.counters.overheard += 1;
        }
    }

    /// Hands a frame up to all ports that are bound to its type; false if there is none.
    fn hand_up_frame(&mut self, interface: u32, ether_type: u16, frame: &Frame) -> bool {
        let mut taken = false;
        for binding in self.bindings.frames(interface, ether_type) {
            if binding.promiscuous || !frame.overheard {
                self.counters.frames_delivered += 1;
                self.out.push(Port::Above(binding.above), Item::Frame(frame.clone()));
                taken = true;
            }
        }
        taken
    }

    /// Sends a frame of a machine that is bound to frames.
    fn send_frame(&mut self, above: u32, frame: Frame) {
        match self.bindings.frame_interface(above) {
            Some(interface) => {
                self.counters.frames_sent += 1;
                self.out.push(Port::Below(interface), Item::Frame(frame));
            }
            None => self.counters.wrong_items += 1,
        }
    }

    /// Sets the maximum length of packets of an interface's link, in bytes.
    fn set_mtu(&mut self, interface: u32, mtu: u32) {
        match self.config.interfaces.get_mut(interface as usize) {
            Some(own) => own.mtu = mtu,
            None => self.counters.wrong_items += 1,
        }
    }

    /// Requests the status of frames of an interface for a machine that is bound to frames.
    fn ask_status(&mut self, above: u32) {
        match self.bindings.ask_status(above) {
            Some(interface) => self.out.push(Port::Below(interface), Item::ReportFrameStatus),
            None => self.counters.wrong_items += 1,
        }
    }

    /// Hands the status of a frame up to the ports that requested it for this type.
    fn hand_up_status(&mut self, interface: u32, status: &FrameStatus) {
        let Ok(header) = ethernet::parse(&status.bytes) else { return };
        for binding in self.bindings.frames(interface, header.ether_type) {
            if binding.statuses {
                self.out.push(Port::Above(binding.above), Item::FrameStatus(status.clone()));
            }
        }
    }

    /// Whether a packet that arrived is to be forwarded, and no hook selects it.
    #[inline]
    fn is_plain_transit(&self, header: &Header, packet: &[u8]) -> bool {
        self.config.forwarding
            && !self.config.owns(header.destination)
            && !is_group(header.destination)
            && self.bindings.hooked(header, packet, 0).is_none()
    }

    /// Takes a packet from an interface, from a hook, or (with no ingress) from the host itself.
    fn receive(
        &mut self,
        now: Instant,
        mut packet: Buffer,
        header: &Header,
        ingress: Option<u32>,
        arrival: Arrival,
    ) {
        packet.truncate(header.total_len);
        if self.config.owns(header.destination) {
            if arrival.to_group {
                // RFC 1122 section 3.3.6: sent to all stations, but not to all hosts.
                self.counters.not_for_us += 1;
            } else {
                match self.bindings.hooked_here(header, &packet, arrival.hooks_passed) {
                    Some(above) => self.hand_to_hook(now, above, packet, ingress),
                    None => self.deliver(now, packet, header, ingress),
                }
            }
        } else if is_group(header.destination) {
            self.receive_group(now, packet, header, ingress, arrival);
        } else if arrival.to_group {
            self.counters.not_for_us += 1;
        } else if let Some(ingress) = ingress.filter(|_| self.config.forwarding) {
            match self.bindings.hooked(header, &packet, arrival.hooks_passed) {
                Some(above) => self.hand_to_hook(now, above, packet, Some(ingress)),
                None => self.forward(now, packet, header),
            }
        } else {
            self.counters.not_forwarding += 1;
        }
    }

    /// Takes a multicast or broadcast packet, which may be for the host, for a hook, for other members, for several of
    /// these or for none.
    fn receive_group(
        &mut self,
        now: Instant,
        packet: Buffer,
        header: &Header,
        ingress: Option<u32>,
        arrival: Arrival,
    ) {
        // A hook comes first; a packet that the host has sent to itself has passed those up to its sender's.
        let returned = ingress.is_some() && arrival.hooks_passed > 0;
        let group = header.destination;
        // What stays on its link has no way.
        let on_link = is_link_scope(group) || is_membership(header, &packet);
        let route = if on_link { None } else { self.group_route(header.source, group).cloned() };
        // It must arrive on the interface towards its sender, if there is a route to that.
        let elsewhere = |route: &GroupRoute| {
            let other = |station| route.upstream.is_some_and(|upstream| upstream != station);
            ingress.is_some() && (route.ingress != ingress || arrival.station.is_some_and(other))
        };
        if !returned && route.as_ref().is_some_and(elsewhere) {
            self.counters.wrong_interface += 1;
            return match self.bindings.hooked_by(Hook::WrongInterface, 0) {
                Some(above) => self.hand_to_hook(now, above, packet, ingress),
                None => packet.recycle(),
            };
        }
        // A packet that a hook hands back was delivered when it arrived.
        let for_us = !returned && (is_broadcast(group) || self.groups.admits(group, header.source, ingress));
        let hook = ingress.zip(self.bindings.hooked(header, &packet, arrival.hooks_passed));
        if let Some((ingress, above)) = hook {
            if for_us {
                self.deliver(now, packet.clone(), header, Some(ingress));
            }
            return self.hand_to_hook(now, above, packet, Some(ingress));
        }
        let forwards = ingress.is_some() && self.config.forwarding && !is_broadcast(group);
        match (for_us, route.filter(|route| forwards && !route.egress.is_empty())) {
            (true, Some(route)) => {
                self.deliver(now, packet.clone(), header, ingress);
                self.forward_to_group(packet, header, &route.egress);
            }
            (true, None) => self.deliver(now, packet, header, ingress),
            (false, Some(route)) => self.forward_to_group(packet, header, &route.egress),
            (false, None) if returned && forwards && !on_link => self.forward(now, packet, header),
            (false, None) if arrival.is_membership => packet.recycle(),
            (false, None) => {
                self.counters.multicast_dropped += 1;
                packet.recycle();
            }
        }
    }

    pub(crate) fn hand_to_hook(&mut self, now: Instant, above: u32, packet: Buffer, ingress: Option<u32>) {
        self.counters.hooked += 1;
        self.bindings.allow_answers(above, now);
        let transit = Transit { packet, ingress, egress: Egress::Routes };
        self.out.push(Port::Above(above), Item::Transit(transit));
    }

    /// Takes a packet from the hook on `Above(above)`: one that is handed back, which only later hooks may still see,
    /// or one with an egress of its own.
    fn resume(&mut self, now: Instant, above: u32, transit: Transit) {
        let Transit { packet, ingress, egress } = transit;
        let exists = |interface: u32| (interface as usize) < self.config.interfaces.len();
        let Some(place) = self.bindings.hook_place(above).filter(|_| ingress.is_none_or(exists)) else {
            self.counters.wrong_items += 1;
            return;
        };
        let header = match ip::parse(&packet) {
            Ok(header) => header,
            Err(malformed) => return self.count_malformed(malformed),
        };
        let copies = match &egress {
            Egress::Routes | Egress::Neighbour { .. } => 1,
            Egress::Group(interfaces) => interfaces.len() as u32,
        };
        let interfaces = self.config.interfaces.len() as u32;
        if !self.bindings.take_answers(place, now, copies, interfaces) {
            self.counters.hook_excess += 1;
            return packet.recycle();
        }
        if egress != Egress::Routes {
            return self.send_out(now, packet, &header, ingress.is_some(), &egress);
        }
        if ingress.is_none() && !self.config.owns(header.destination) {
            return self.originate(now, above, packet);
        }
        let arrival =
            Arrival { to_group: false, hooks_passed: place + 1, is_membership: false, station: None };
        self.receive(now, packet, &header, ingress, arrival);
    }

    /// Hands a packet that is for this host up to the port that it is for.
    fn deliver(&mut self, now: Instant, packet: Buffer, header: &Header, ingress: Option<u32>) {
        if header.fragment {
            self.counters.fragments += 1;
            return;
        }
        match header.protocol {
            ip::ICMP | ip::ICMPV6 => self.receive_icmp(now, packet, header),
            ip::UDP => self.receive_udp(now, packet, header, ingress),
            _ => self.deliver_packet(now, packet, header),
        }
    }

    /// Hands a whole packet up to the port that is bound to its protocol.
    pub(crate) fn deliver_packet(&mut self, now: Instant, packet: Buffer, header: &Header) {
        let port = ip::ports(&packet[header.payload()]).map(|(_, destination)| destination);
        match self.bindings.protocol(header.protocol, port) {
            Some(above) => self.hand_up(above, packet),
            None => self.refuse(now, packet, header),
        }
    }

    pub(crate) fn hand_up(&mut self, above: u32, packet: Buffer) {
        self.counters.delivered += 1;
        self.out.push(Port::Above(above), Item::Packet(packet));
    }

    /// Receives the packets that the host has sent to itself. The loop ends: a packet causes at most one other here, an
    /// echo reply or an error, which cause none, and a hook does not see the packets that it has sent.
    #[inline]
    fn settle(&mut self, now: Instant) {
        if !self.loopback.is_empty() {
            self.receive_loopback(now);
        }
    }

    #[inline(never)]
    fn receive_loopback(&mut self, now: Instant) {
        while let Some(packet) = self.loopback.pop_front() {
            let arrival = Arrival {
                to_group: false,
                hooks_passed: self.loopback_from,
                is_membership: false,
                station: None,
            };
            match ip::parse(&packet) {
                Ok(header) => self.receive(now, packet, &header, None, arrival),
                Err(malformed) => self.count_malformed(malformed),
            }
        }
    }

    pub(crate) fn count_malformed(&mut self, malformed: Malformed) {
        if malformed.is_corrupt() {
            self.counters.checksum_errors += 1;
        } else {
            self.counters.malformed += 1;
        }
    }
}

/// Circumstances in which a packet was received.
#[derive(Clone, Copy)]
struct Arrival {
    /// Whether its frame was sent to several stations.
    to_group: bool,
    /// Number of hooks that it has passed.
    hooks_passed: usize,
    /// Whether it is a packet of IGMP or MLD, which the host itself has read.
    is_membership: bool,
    /// The station that sent its frame; `None` of a packet that came by none, or from a hook.
    station: Option<ethernet::Mac>,
}

impl Machine for Host {
    #[inline]
    fn handle(&mut self, now: Instant, port: Port, item: Item) {
        self.loopback_from = 0;
        match (port, item) {
            (Port::Below(interface), Item::Frame(frame)) => self.receive_frame(now, interface, frame),
            (Port::Above(above), Item::Datagram(datagram)) => self.send_udp(now, above, datagram),
            (Port::Above(above), Item::Packet(packet)) => self.originate(now, above, packet),
            (Port::Above(above), Item::Membership(membership)) if membership.group.is_multicast() => {
                self.groups.change(above, membership);
                self.membership_changed(now, membership.group);
            }
            (Port::Above(above), Item::Frame(frame)) => self.send_frame(above, frame),
            (Port::Above(above), Item::ReportFrameStatus) => self.ask_status(above),
            (Port::Below(interface), Item::Mtu(mtu)) => self.set_mtu(interface, mtu),
            (Port::Below(interface), Item::FrameStatus(status)) => self.hand_up_status(interface, &status),
            (Port::Above(above), Item::Transit(transit)) => self.resume(now, above, transit),
            _ => self.counters.wrong_items += 1,
        }
        self.settle(now);
    }

    fn wake(&mut self, now: Instant) {
        self.loopback_from = 0;
        self.wake_neighbours(now);
        self.wake_reports(now);
        self.wake_memberships_below();
        self.settle(now);
    }

    #[inline]
    fn poll(&mut self, _now: Instant) -> Option<(Port, Item)> {
        self.out.pop()
    }

    #[inline]
    fn deadline(&self) -> Option<Instant> {
        let neighbours = self.neighbours.as_ref().and_then(|neighbours| neighbours.deadline());
        let reports = self.reports.as_ref().and_then(|reports| reports.deadline());
        earliest(earliest(neighbours, reports), self.memberships_below.deadline())
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        self.counters.report(report);
        if let Some(neighbours) = &self.neighbours {
            neighbours.counters.report(report);
        }
        if let Some(reports) = &self.reports {
            reports.counters(report);
        }
    }

    fn discards(&self) -> Option<u64> {
        let counters = &self.counters;
        let sound = [
            counters.forwarded,
            counters.originated,
            counters.group_copies,
            counters.delivered,
            counters.hooked,
            counters.frames_delivered,
            counters.frames_sent,
            counters.echoes_answered,
            counters.errors_sent,
        ];
        let others = counters.sum().wrapping_sub(sound.into_iter().fold(0, u64::wrapping_add));
        let neighbours = self.neighbours.as_ref().map_or(0, |neighbours| neighbours.counters.sum());
        let reports = self.reports.as_ref().map_or(0, |reports| reports.discards());
        Some(others.wrapping_add(neighbours).wrapping_add(reports))
    }
}
