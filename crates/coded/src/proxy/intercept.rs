//! Packets out of transit, for a TCP that is not their destination.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use hopcast_core::{Buffer, Instant, Item, Outbox, Port, Reactive, Transit};
use hopcast_wire::ip;

/// IP protocol number (RFC 9293, section 3.1; IANA).
const TCP: u8 = 6;

/// Takes the packets of certain TCP endpoints out of transit.
///
/// `Below(0)` is a host's packet port with the forward hook, `Above(0)` the packet port of a TCP that answers for any
/// address. A packet of TCP from or to one of the endpoints goes up; any other is handed back, and the host forwards
/// it. What comes down is sent as the host's own.
pub struct Intercept {
    endpoints: BTreeSet<SocketAddr>,
    out: Outbox,
    taken: u64,
    passed: u64,
    wrong_items: u64,
}

impl Intercept {
    /// Takes what is from or to one of these endpoints.
    pub fn new(endpoints: impl IntoIterator<Item = SocketAddr>) -> Self {
        let endpoints = endpoints.into_iter().collect();
        Self { endpoints, out: Outbox::new(), taken: 0, passed: 0, wrong_items: 0 }
    }

    fn takes(&self, packet: &Buffer) -> bool {
        let Ok(header) = ip::parse(packet) else { return false };
        let Some((source, destination)) = ip::ports(&packet[header.payload()]) else { return false };
        header.protocol == TCP
            && !header.fragment
            && (self.endpoints.contains(&SocketAddr::new(header.source, source))
                || self.endpoints.contains(&SocketAddr::new(header.destination, destination)))
    }
}

impl Reactive for Intercept {
    fn react(&mut self, _now: Instant, port: Port, item: Item) {
        match (port, item) {
            (Port::Below(0), Item::Transit(Transit { packet, .. })) if self.takes(&packet) => {
                self.taken += 1;
                self.out.up(Item::Packet(packet));
            }
            (Port::Below(0), Item::Transit(transit)) => {
                self.passed += 1;
                self.out.down(Item::Transit(transit));
            }
            // The host's word on what the TCP above has sent.
            (Port::Below(0), Item::Packet(packet)) => {
                self.out.up(Item::Packet(packet));
            }
            (Port::Above(0), Item::Packet(packet)) => {
                self.out.down(Item::Packet(packet));
            }
            _ => self.wrong_items += 1,
        }
    }

    fn next(&mut self) -> Option<(Port, Item)> {
        self.out.pop()
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        report("packets_intercepted", self.taken);
        report("packets_passed", self.passed);
        report("wrong_items", self.wrong_items);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopcast_core::Machine;

    const NOW: Instant = Instant::ZERO;

    fn packet(protocol: u8, to: &str, port: u16) -> Buffer {
        let mut packet = Buffer::zeroed(20);
        packet[..4].copy_from_slice(&[0x10, 0, (port >> 8) as u8, port as u8]);
        ip::prepend(&mut packet, "192.0.2.1".parse().unwrap(), to.parse().unwrap(), protocol, 64, 0);
        packet
    }

    fn fate(packet: Buffer) -> (Port, Item) {
        let mut intercept = Intercept::new(["192.0.2.2:80".parse().unwrap()]);
        intercept.handle(NOW, Port::Below(0), Item::Transit(Transit::arrived(packet, 1)));
        let fate = intercept.poll(NOW).expect("an answer to the hook");
        assert_eq!(intercept.poll(NOW), None);
        fate
    }

    #[test]
    fn what_is_for_the_endpoint_goes_up_and_the_rest_goes_on() {
        let taken = packet(6, "192.0.2.2", 80);
        assert_eq!(fate(taken.clone()), (Port::Above(0), Item::Packet(taken)));
        for passed in [packet(6, "192.0.2.2", 81), packet(6, "192.0.2.3", 80), packet(17, "192.0.2.2", 80)] {
            let transit = Transit::arrived(passed.clone(), 1);
            assert_eq!(fate(passed), (Port::Below(0), Item::Transit(transit)));
        }
        let garbage = Transit::arrived(Buffer::copy_from(b"no packet"), 1);
        assert_eq!(fate(garbage.packet.clone()), (Port::Below(0), Item::Transit(garbage)));
    }
}
