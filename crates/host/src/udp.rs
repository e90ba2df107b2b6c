//! UDP: datagrams of the bindings, to and from packets.

use std::net::{IpAddr, SocketAddr};

use hopcast_core::{Attributes, Buffer, Datagram, Instant, Item, Port};
use hopcast_wire::ip::{self, Header, Version};
use hopcast_wire::udp;

use crate::groups::is_group;
use crate::host::Host;

impl Host {
    /// Delivers a datagram, whose checksum must be right, to the port above that is bound to its UDP port and, if it is
    /// for a group, is a member.
    pub(crate) fn receive_udp(
        &mut self,
        now: Instant,
        mut packet: Buffer,
        header: &Header,
        ingress: Option<u32>,
    ) {
        let read = match udp::parse(header.source, header.destination, &packet[header.payload()]) {
            Ok(read) => read,
            Err(malformed) => return self.count_malformed(malformed),
        };
        let Some(above) = self.bindings.udp(read.destination) else {
            let is_own_copy = ingress.is_none() && is_group(header.destination);
            // Nobody misses the host's own copy of what it sends to a group; all others have theirs.
            if is_own_copy && self.bindings.protocol(ip::UDP, Some(read.destination)).is_none() {
                return packet.recycle();
            }
            return self.deliver_packet(now, packet, header);
        };
        if is_group(header.destination) && !self.is_for(above, header, ingress) {
            self.counters.multicast_dropped += 1;
            return;
        }
        packet.truncate(header.header_len + read.len);
        packet.advance(header.header_len + udp::HEADER);
        self.counters.delivered += 1;
        let attributes = Attributes {
            interface: ingress,
            hop_limit: Some(header.hop_limit),
            traffic_class: header.traffic_class,
            router_alert: false,
        };
        let datagram = Datagram {
            local: SocketAddr::new(header.destination, read.destination),
            remote: SocketAddr::new(header.source, read.source),
            payload: packet,
            attributes,
        };
        self.out.push(Port::Above(above), Item::Datagram(datagram));
    }

    /// Sends a datagram that came down on `Above(above)`.
    pub(crate) fn send_udp(&mut self, now: Instant, above: u32, datagram: Datagram) {
        let Datagram { local, remote, payload: mut packet, attributes } = datagram;
        let Some(local) = self.local_end(above, local, remote) else {
            self.counters.unsendable += 1;
            return;
        };
        let version = Version::of(remote.ip());
        // The length fields have 16 bits; IPv6's does not count the IP header.
        let room = match version {
            Version::V4 => 0xffff - ip::V4_HEADER - udp::HEADER,
            Version::V6 => 0xffff - udp::HEADER,
        };
        if packet.len() > room {
            self.counters.unsendable += 1;
            return;
        }
        udp::prepend(&mut packet, local, remote);
        self.prepend_ip(&mut packet, local.ip(), remote.ip(), ip::UDP);
        if attributes != Attributes::CHOICE
            && !ip::mark(&mut packet, attributes.hop_limit, attributes.traffic_class)
        {
            self.counters.unsendable += 1;
            return;
        }
        self.send(now, packet, (local.ip(), remote.ip()), attributes.interface);
    }

    /// Prepends the IP header of one of the host's own packets. Both addresses are of one version.
    pub(crate) fn prepend_ip(
        &mut self,
        packet: &mut Buffer,
        source: IpAddr,
        destination: IpAddr,
        protocol: u8,
    ) {
        self.identification = self.identification.wrapping_add(1);
        ip::prepend(packet, source, destination, protocol, self.config.hop_limit, self.identification);
    }

    /// The local address and port of a datagram to `remote`: those of `wanted`, or the host's choice where these are
    /// unspecified. `None` if the sender may not use them.
    fn local_end(&self, above: u32, wanted: SocketAddr, remote: SocketAddr) -> Option<SocketAddr> {
        let version = Version::of(remote.ip());
        let address = match wanted.ip() {
            // An answer to a datagram of a group is sent from the host's own address.
            any if any.is_unspecified() || any.is_multicast() => self.config.address(version)?,
            own if Version::of(own) == version && self.config.owns(own) => own,
            _ => return None,
        };
        let port = match wanted.port() {
            0 => self.bindings.udp_port_of(above)?,
            port if self.bindings.udp(port) == Some(above) => port,
            _ => return None,
        };
        Some(SocketAddr::new(address, port))
    }
}
