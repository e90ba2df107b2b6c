//! A filter of the far site's packets by their source.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hopcast_core::{Instant, Item, Outbox, Port, Reactive};

use crate::config::contains;

/// The prefix of IPv6 link-local addresses, which a host has on each device and no router forwards (RFC 4291, section
/// 2.5.6).
const OF_ONE_LINK: (IpAddr, u8) = (IpAddr::V6(Ipv6Addr::new(0xFE80, 0, 0, 0, 0, 0, 0, 0)), 10);

/// Passes packets between the host above and the tunnel below. A packet from below is dropped unless its source is in a
/// network of the far site: a sender there must not use the address of a host here.
pub(crate) struct Gate {
    from: Vec<(IpAddr, u8)>,
    out: Outbox,
    spoofed: u64,
}

impl Gate {
    pub(crate) const fn new(from: Vec<(IpAddr, u8)>) -> Self {
        Self { from, out: Outbox::new(), spoofed: 0 }
    }

    fn may_come(&self, packet: &[u8]) -> bool {
        source_of(packet).is_some_and(|source| {
            let mut networks = self.from.iter().chain([&OF_ONE_LINK]);
            networks.any(|&network| contains(network, source))
        })
    }
}

/// The source of an IP packet.
fn source_of(packet: &[u8]) -> Option<IpAddr> {
    match packet.first()? >> 4 {
        4 => Some(Ipv4Addr::from(*packet.get(12..)?.first_chunk::<4>()?).into()),
        6 => Some(Ipv6Addr::from(*packet.get(8..)?.first_chunk::<16>()?).into()),
        _ => None,
    }
}

impl Reactive for Gate {
    fn react(&mut self, _now: Instant, port: Port, item: Item) {
        match (port, item) {
            (Port::Above(_), item) => self.out.down(item),
            (Port::Below(_), Item::Packet(packet)) if !self.may_come(&packet) => self.spoofed += 1,
            (Port::Below(_), item) => self.out.up(item),
        }
    }

    fn next(&mut self) -> Option<(Port, Item)> {
        self.out.pop()
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        report("packets_spoofed", self.spoofed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopcast_core::{Buffer, Machine};

    #[test]
    fn a_packet_in_the_name_of_somebody_here_is_not_let_in() {
        let mut gate =
            Gate::new(vec![("10.77.0.0".parse().unwrap(), 30), ("10.20.0.0".parse().unwrap(), 16)]);
        let packet = |source: &str| {
            let mut packet = [0; 48];
            match source.parse().unwrap() {
                IpAddr::V4(source) => {
                    packet[0] = 0x45;
                    packet[12..16].copy_from_slice(&source.octets());
                }
                IpAddr::V6(source) => {
                    packet[0] = 0x60;
                    packet[8..24].copy_from_slice(&source.octets());
                }
            }
            Item::Packet(Buffer::copy_from(&packet))
        };
        let mut passes = |port, source: &str| {
            gate.handle(Instant::ZERO, port, packet(source));
            gate.poll(Instant::ZERO).is_some()
        };
        for (source, may) in [
            ("10.77.0.2", true),
            ("10.20.9.9", true),
            ("fe80::1", true),
            ("10.21.0.1", false),
            ("192.0.2.1", false),
            ("127.0.0.1", false),
            ("2001:db8::1", false),
        ] {
            assert_eq!(passes(Port::Below(0), source), may, "{source}");
            assert!(passes(Port::Above(0), source), "what the host sends is its own affair");
        }
        assert_eq!(gate.spoofed, 4);
    }
}
