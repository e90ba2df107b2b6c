//! Datagrams in packets of one protocol of IP, which has no ports.

use std::net::{IpAddr, SocketAddr};

use hopcast_core::{Buffer, Datagram, Instant, Item, Port, Reactive};
use hopcast_wire::ip;

use crate::packet_port::PacketPort;

/// One protocol of IP as a machine: a datagram port above, a packet port below.
///
/// It sends all datagrams from one address, and receives those to it and to groups. The ports of both ends are 0.
/// Everything else is dropped and counted; so are ICMP errors, which the machine above cannot receive.
pub struct RawIp {
    local: IpAddr,
    protocol: u8,
    port: PacketPort,
}

/// The longest payload that both versions can carry: 65,535 less the header of IPv4 with a Router Alert.
const MAX_PAYLOAD: usize = 65_511;

impl RawIp {
    /// The machine of a protocol at an address, whose packets have this hop limit.
    pub const fn new(local: IpAddr, protocol: u8, hop_limit: u8) -> Self {
        Self { local, protocol, port: PacketPort::new(local, protocol, hop_limit) }
    }

    fn send(&mut self, Datagram { remote, payload, attributes, .. }: Datagram) {
        if !self.port.can_send(payload.len(), MAX_PAYLOAD, remote.ip()) {
            return;
        }
        if attributes.router_alert {
            self.port.send_alerting(payload, remote.ip());
        } else {
            self.port.send(payload, remote.ip());
        }
    }

    /// The payload of an IP packet as a datagram, if it is valid and for this machine.
    fn receive(&self, mut packet: Buffer) -> Option<Datagram> {
        let header = ip::parse(&packet).ok()?;
        let is_for_it = header.destination == self.local || header.destination.is_multicast();
        if header.protocol != self.protocol || header.fragment || !is_for_it {
            return None;
        }
        let range = header.payload();
        packet.truncate(range.end);
        packet.advance(range.start);
        let ends = (SocketAddr::new(header.destination, 0), SocketAddr::new(header.source, 0));
        Some(Datagram::new(ends.0, ends.1, packet))
    }
}

impl Reactive for RawIp {
    fn react(&mut self, _now: Instant, port: Port, item: Item) {
        match (port, item) {
            (Port::Above(_), Item::Datagram(datagram)) => self.send(datagram),
            (Port::Above(_), item @ Item::Membership(_)) => self.port.out.down(item),
            (Port::Below(_), Item::Packet(packet)) => {
                let found = self.receive(packet);
                self.port.arrived(found);
            }
            _ => self.port.wrong_item(),
        }
    }

    fn next(&mut self) -> Option<(Port, Item)> {
        self.port.out.pop()
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        self.port.counters(report);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopcast_core::{Attributes, Machine};
    use hopcast_wire::router_alert;

    const NOW: Instant = Instant::ZERO;

    fn packet(from: &str, to: &str, protocol: u8) -> Buffer {
        packet_of(from, to, protocol, Attributes::CHOICE, b"ahoy")
    }

    fn packet_of(from: &str, to: &str, protocol: u8, attributes: Attributes, bytes: &[u8]) -> Buffer {
        let at = |text: &str| SocketAddr::new(text.parse().unwrap(), 0);
        let mut sender = RawIp::new(at(from).ip(), protocol, 64);
        let (local, remote, payload) = (at(from), at(to), Buffer::copy_from(bytes));
        let datagram = Datagram { local, remote, payload, attributes };
        sender.handle(NOW, Port::Above(0), Item::Datagram(datagram));
        let Some((Port::Below(0), Item::Packet(packet))) = sender.poll(NOW) else { panic!("a packet") };
        packet
    }

    #[test]
    fn a_datagram_crosses_as_a_packet_of_its_protocol_in_both_versions_and_to_groups() {
        for (from, own, to) in [
            ("10.0.0.1", "10.0.0.2", "10.0.0.2"),
            ("10.0.0.1", "10.0.0.2", "239.0.0.1"),
            ("fd00::1", "fd00::2", "ff0e::1"),
        ] {
            let mut receiver = RawIp::new(own.parse().unwrap(), 113, 64);
            receiver.handle(NOW, Port::Below(0), Item::Packet(packet(from, to, 113)));
            let Some((Port::Above(0), Item::Datagram(found))) = receiver.poll(NOW) else { panic!("{to}") };
            assert_eq!((&found.payload[..], found.remote.ip()), (&b"ahoy"[..], from.parse().unwrap()));
            assert_eq!(found.local.ip(), to.parse::<IpAddr>().unwrap());
        }
    }

    #[test]
    fn routers_are_alerted_to_the_datagrams_that_ask_for_it_and_receivers_read_both() {
        for (from, own, header_len) in [("10.0.0.1", "10.0.0.2", 24), ("fd00::1", "fd00::2", 48)] {
            for router_alert in [true, false] {
                let attributes = Attributes { router_alert, ..Attributes::CHOICE };
                let packet = packet_of(from, own, 113, attributes, b"ahoy");
                assert_eq!(router_alert::is_present(&packet), router_alert);
                assert_eq!(packet.len() == header_len + 4, router_alert);
                let mut receiver = RawIp::new(own.parse().unwrap(), 113, 64);
                receiver.handle(NOW, Port::Below(0), Item::Packet(packet));
                let Some((Port::Above(0), Item::Datagram(found))) = receiver.poll(NOW) else {
                    panic!("{own}")
                };
                assert_eq!((&found.payload[..], found.attributes), (&b"ahoy"[..], Attributes::CHOICE));
            }
        }
        let attributes = Attributes { router_alert: true, ..Attributes::CHOICE };
        let longest = packet_of("10.0.0.1", "10.0.0.2", 113, attributes, &[7; MAX_PAYLOAD]);
        assert_eq!(longest.len(), 65_535);
    }

    #[test]
    fn what_is_for_another_address_or_protocol_is_refused() {
        let mut receiver = RawIp::new([10, 0, 0, 2].into(), 113, 64);
        for (to, protocol) in [("10.0.0.3", 113), ("10.0.0.2", 112)] {
            receiver.handle(NOW, Port::Below(0), Item::Packet(packet("10.0.0.1", to, protocol)));
            assert_eq!(receiver.poll(NOW), None);
        }
        assert_eq!(receiver.port.refused, 2);
    }
}
