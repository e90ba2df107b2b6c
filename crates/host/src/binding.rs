//! The bindings of a host's `Above` ports.

use core::fmt;
use std::collections::BTreeMap;

use hopcast_core::hook::MAX_ANSWERS;
use hopcast_core::{Hook, Instant};
use hopcast_wire::ethernet;
use hopcast_wire::ip::{self, Header};

use crate::prefixes::in_prefix;

/// A binding cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BindError {
    /// Another `Above` port has the UDP port already.
    PortTaken {
        /// The UDP port.
        port: u16,
        /// The `Above` port that has it.
        by: u32,
    },
    /// Another `Above` port has the protocol, or this port of it, already.
    ProtocolTaken {
        /// The IP protocol number.
        protocol: u8,
        /// The protocol's port (of ICMP, the echo identifier); `None` for all ports that no other binding has.
        port: Option<u16>,
        /// The `Above` port that has it.
        by: u32,
    },
    /// Port 0 stands for "any port" and cannot be bound.
    PortZero,
    /// The type of a frame belongs to the host itself: IP's, or a length.
    EtherType {
        /// The type.
        ether_type: u16,
    },
    /// The host has no such interface.
    NoInterface {
        /// The number of the interface.
        interface: u32,
    },
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PortTaken { port, by } => write!(f, "UDP port {port} is bound already, by Above({by})"),
            Self::ProtocolTaken { protocol: ip::ICMP | ip::ICMPV6, port: Some(identifier), by } => {
                write!(f, "the echo identifier {identifier} is bound already, by Above({by})")
            }
            Self::ProtocolTaken { protocol, port: Some(port), by } => {
                write!(f, "port {port} of IP protocol {protocol} is bound already, by Above({by})")
            }
            Self::ProtocolTaken { protocol, port: None, by } => {
                write!(f, "IP protocol {protocol} is bound already, by Above({by})")
            }
            Self::PortZero => f.write_str("port 0 stands for any port and cannot be bound"),
            Self::EtherType { ether_type } => {
                write!(f, "frames of type {ether_type:#06x} are the host's own and cannot be bound")
            }
            Self::NoInterface { interface } => write!(f, "there is no interface {interface}"),
        }
    }
}

impl core::error::Error for BindError {}

/// Whether a hook selects a packet, in transit or for the host itself.
fn selects(hook: Hook, header: &Header, packet: &[u8]) -> bool {
    match hook {
        Hook::ExtensionHeader { header: wanted, kind } => {
            let found = ip::extension(packet, wanted);
            found.is_some_and(|found| kind.is_none_or(|kind| found.get(2) == Some(&kind)))
        }
        Hook::All => true,
        // Selected by the host itself, which knows the route, or who sends them.
        Hook::WrongInterface | Hook::OwnToGroup => false,
        Hook::Protocol(protocol) => header.protocol == protocol,
        Hook::Transport { protocol, port } => {
            let found = || ip::ports(packet.get(header.payload()).unwrap_or_default());
            header.protocol == protocol
                && port.is_none_or(|port| !header.fragment && found().is_some_and(|(_, to)| to == port))
        }
        Hook::Destination { prefix, length } => in_prefix(header.destination, prefix, length),
    }
}

/// The ports above, by what is delivered to them.
#[derive(Default)]
pub(crate) struct Bindings {
    udp: BTreeMap<u16, u32>,
    protocols: BTreeMap<(u8, Option<u16>), u32>,
    hooks: Vec<Hooked>,
    /// Bindings by interface and type of the frame, in the order in which they were bound.
    frames: BTreeMap<(u32, u16), Vec<FrameBinding>>,
}

/// A port that receives the frames of one type.
#[derive(Clone, Copy)]
pub(crate) struct FrameBinding {
    pub(crate) above: u32,
    /// Whether it also receives frames that were only overheard.
    pub(crate) promiscuous: bool,
    /// Whether it also receives the status of frames that were sent.
    pub(crate) statuses: bool,
}

/// A machine in the ordered list of hooks.
struct Hooked {
    above: u32,
    filters: Vec<Hook>,
    /// The last instant at which it received or handed over a transit, and the number of transits that it may still
    /// hand over at that instant.
    answers: (Option<Instant>, u32),
}

impl Bindings {
    pub(crate) fn bind_udp(&mut self, above: u32, port: u16) -> Result<(), BindError> {
        if port == 0 {
            return Err(BindError::PortZero);
        }
        if let Some(&by) = self.udp.get(&port).or_else(|| self.protocols.get(&(ip::UDP, Some(port)))) {
            return Err(BindError::PortTaken { port, by });
        }
        self.udp.insert(port, above);
        Ok(())
    }

    pub(crate) fn bind_protocol(
        &mut self,
        above: u32,
        protocol: u8,
        port: Option<u16>,
    ) -> Result<(), BindError> {
        // An echo identifier may be 0.
        if port == Some(0) && !matches!(protocol, ip::ICMP | ip::ICMPV6) {
            return Err(BindError::PortZero);
        }
        let taken = self.protocols.get(&(protocol, port));
        let taken =
            taken.or_else(|| port.filter(|_| protocol == ip::UDP).and_then(|port| self.udp.get(&port)));
        if let Some(&by) = taken {
            return Err(BindError::ProtocolTaken { protocol, port, by });
        }
        self.protocols.insert((protocol, port), above);
        Ok(())
    }

    /// One `Above` port has one place in the list of hooks, whatever its number of filters.
    pub(crate) fn hook(&mut self, above: u32, filter: Hook) {
        match self.hooks.iter_mut().find(|hooked| hooked.above == above) {
            Some(hooked) => hooked.filters.push(filter),
            None => {
                let answers = (None, 0);
                self.hooks.push(Hooked { above, filters: vec![filter], answers });
            }
        }
    }

    pub(crate) fn bind_frames(
        &mut self,
        interface: u32,
        ether_type: u16,
        binding: FrameBinding,
    ) -> Result<(), BindError> {
        // IEEE 802.3 section 3.2.6: what is less than 0x0600 is a length.
        if matches!(ether_type, 0..0x0600 | ethernet::IPV4 | ethernet::IPV6) {
            return Err(BindError::EtherType { ether_type });
        }
        self.frames.entry((interface, ether_type)).or_default().push(binding);
        Ok(())
    }

    /// The ports that receive frames of a type on an interface.
    pub(crate) fn frames(&self, interface: u32, ether_type: u16) -> &[FrameBinding] {
        self.frames.get(&(interface, ether_type)).map_or(&[], Vec::as_slice)
    }

    /// Requests the status of frames of the types that `above` is bound to, and returns their interface; `None` if it
    /// is bound to none.
    pub(crate) fn ask_status(&mut self, above: u32) -> Option<u32> {
        let interface = self.frame_interface(above)?;
        let bound = self.frames.values_mut().flatten().filter(|binding| binding.above == above);
        bound.for_each(|binding| binding.statuses = true);
        Some(interface)
    }

    /// The interface on which frames from `above` leave.
    pub(crate) fn frame_interface(&self, above: u32) -> Option<u32> {
        let bound = |(&(interface, _), by): (&(u32, u16), &Vec<FrameBinding>)| {
            by.iter().any(|binding| binding.above == above).then_some(interface)
        };
        self.frames.iter().find_map(bound)
    }

    /// The port above that has a local UDP port.
    pub(crate) fn udp(&self, port: u16) -> Option<u32> {
        self.udp.get(&port).copied()
    }

    /// The lowest UDP port that `above` has.
    pub(crate) fn udp_port_of(&self, above: u32) -> Option<u16> {
        self.udp.iter().find(|&(_, &by)| by == above).map(|(&port, _)| port)
    }

    /// The port above that receives a protocol's packets to a local port (of ICMP, the answers to an echo identifier):
    /// the one bound to that port, or else to the rest of the protocol.
    pub(crate) fn protocol(&self, protocol: u8, port: Option<u16>) -> Option<u32> {
        let exact = port.and_then(|port| self.protocols.get(&(protocol, Some(port))));
        exact.or_else(|| self.protocols.get(&(protocol, None))).copied()
    }

    /// Whether a binding has a port of `protocol`.
    pub(crate) fn speaks(&self, protocol: u8) -> bool {
        self.protocols.range((protocol, None)..=(protocol, Some(u16::MAX))).next().is_some()
    }

    /// The first hook that selects a packet in transit, from place `from` of the list on.
    #[inline]
    pub(crate) fn hooked(&self, header: &Header, packet: &[u8], from: usize) -> Option<u32> {
        let mut hooks = self.hooks.iter().skip(from);
        let wants = |hooked: &&Hooked| hooked.filters.iter().any(|filter| selects(*filter, header, packet));
        hooks.find(wants).map(|hooked| hooked.above)
    }

    /// The first hook that selects a packet for the host itself, from place `from` of the list on.
    #[inline]
    pub(crate) fn hooked_here(&self, header: &Header, packet: &[u8], from: usize) -> Option<u32> {
        let wants = |hooked: &&Hooked| {
            hooked.filters.iter().any(|filter| filter.is_for_host() && selects(*filter, header, packet))
        };
        self.hooks.iter().skip(from).find(wants).map(|hooked| hooked.above)
    }

    /// The first hook with a filter that selects by what the host did with a packet and not by the packet, from place
    /// `from` of the list on.
    pub(crate) fn hooked_by(&self, filter: Hook, from: usize) -> Option<u32> {
        let wants = |hooked: &&Hooked| hooked.filters.contains(&filter);
        self.hooks.iter().skip(from).find(wants).map(|hooked| hooked.above)
    }

    /// Notes that the hook on `Above(above)` receives a packet: it may hand over the maximum number of answers to it.
    pub(crate) fn allow_answers(&mut self, above: u32, now: Instant) {
        if let Some(hooked) = self.hooks.iter_mut().find(|hooked| hooked.above == above) {
            let (at, left) = hooked.answers;
            let left = if at == Some(now) { left } else { 0 };
            hooked.answers = (Some(now), left.saturating_add(MAX_ANSWERS));
        }
    }

    /// Takes `count` from the number of answers that the hook at a place of the list may still give; false if fewer
    /// are left. At an instant at which it received nothing it has `more` on top of the maximum.
    pub(crate) fn take_answers(&mut self, place: usize, now: Instant, count: u32, more: u32) -> bool {
        let Some(hooked) = self.hooks.get_mut(place) else { return false };
        let (at, left) = hooked.answers;
        let left = if at == Some(now) { left } else { MAX_ANSWERS + more };
        hooked.answers = (Some(now), left.saturating_sub(count));
        left >= count
    }

    /// The place of an `Above` port in the list of hooks.
    pub(crate) fn hook_place(&self, above: u32) -> Option<usize> {
        self.hooks.iter().position(|hooked| hooked.above == above)
    }
}
