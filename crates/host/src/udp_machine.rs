//! UDP without a host: for a stack whose packets go into a tunnel.

use std::net::SocketAddr;

use hopcast_core::{Datagram, Instant, Item, Port, Reactive};
use hopcast_wire::{ip, udp};

use crate::packet_port::PacketPort;

/// One UDP port as a machine: a datagram port above, a packet port below.
///
/// It sends all datagrams from `local`, and receives those addressed to `local`. Everything else is dropped and
/// counted; so are ICMP errors, which the machine above cannot receive.
pub struct Udp {
    local: SocketAddr,
    port: PacketPort,
}

/// The longest payload that both versions can carry: 65,535 less the headers of IPv4 and UDP.
const MAX_PAYLOAD: usize = 65_507;

impl Udp {
    /// The machine of the UDP port `local`, whose packets have this hop limit.
    pub const fn new(local: SocketAddr, hop_limit: u8) -> Self {
        Self { local, port: PacketPort::new(local.ip(), ip::UDP, hop_limit) }
    }

    fn send(&mut self, Datagram { remote, mut payload, .. }: Datagram) {
        if self.port.can_send(payload.len(), MAX_PAYLOAD, remote.ip()) {
            udp::prepend(&mut payload, self.local, remote);
            self.port.send(payload, remote.ip());
        }
    }

    /// The datagram in an IP packet, if it is valid and for this port.
    fn receive(&self, mut packet: hopcast_core::Buffer) -> Option<Datagram> {
        let header = ip::parse(&packet).ok().filter(|header| header.protocol == ip::UDP)?;
        let segment = packet.get(header.payload())?;
        let ports = udp::parse(header.source, header.destination, segment).ok()?;
        if SocketAddr::new(header.destination, ports.destination) != self.local {
            return None;
        }
        packet.truncate(header.header_len + ports.len);
        packet.advance(header.header_len + udp::HEADER);
        Some(Datagram::new(self.local, SocketAddr::new(header.source, ports.source), packet))
    }
}

impl Reactive for Udp {
    fn react(&mut self, _now: Instant, port: Port, item: Item) {
        match (port, item) {
            (Port::Above(_), Item::Datagram(datagram)) => self.send(datagram),
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
    use hopcast_core::{Buffer, Machine};

    const NOW: Instant = Instant::ZERO;

    #[test]
    fn a_datagram_crosses_as_a_packet_in_both_versions() {
        for (one, other) in [("10.0.0.1:7", "10.0.0.2:9"), ("[fd00::1]:7", "[fd00::2]:9")] {
            let (one, other): (SocketAddr, SocketAddr) = (one.parse().unwrap(), other.parse().unwrap());
            let (mut from, mut to) = (Udp::new(one, 64), Udp::new(other, 64));
            let datagram = Datagram::new(one, other, Buffer::copy_from(b"ahoy"));
            from.handle(NOW, Port::Above(0), Item::Datagram(datagram));
            let Some((Port::Below(0), packet)) = from.poll(NOW) else { panic!("a packet") };
            to.handle(NOW, Port::Below(0), packet);
            let expected = Datagram::new(other, one, Buffer::copy_from(b"ahoy"));
            assert_eq!(to.poll(NOW), Some((Port::Above(0), Item::Datagram(expected))));
        }
    }

    #[test]
    fn what_is_damaged_or_for_another_port_is_refused() {
        let one: SocketAddr = "10.0.0.1:7".parse().unwrap();
        let other: SocketAddr = "10.0.0.2:9".parse().unwrap();
        let mut from = Udp::new(one, 64);
        let datagram = Datagram::new(one, other, Buffer::copy_from(b"ahoy"));
        from.handle(NOW, Port::Above(0), Item::Datagram(datagram));
        let Some((_, Item::Packet(packet))) = from.poll(NOW) else { panic!("a packet") };
        let mut damaged = packet.clone();
        let last = damaged.len() - 1;
        damaged[last] ^= 1;
        let mut to = Udp::new(other, 64);
        to.handle(NOW, Port::Below(0), Item::Packet(damaged));
        let mut elsewhere = Udp::new("10.0.0.2:10".parse().unwrap(), 64);
        elsewhere.handle(NOW, Port::Below(0), Item::Packet(packet));
        assert_eq!((to.poll(NOW), elsewhere.poll(NOW)), (None, None));
        assert_eq!((to.port.refused, elsewhere.port.refused), (1, 1));
    }
}
