//! A tunnel: IP packets inside the datagrams of whatever is below.

use std::net::SocketAddr;

use hopcast_core::{Buffer, Datagram, Instant, Item, Outbox, Port, Reactive};
use hopcast_wire::{icmp, ip};

/// One end of a tunnel between two hosts: a packet port above, a datagram port below, and nothing in between.
///
/// Each packet travels in one datagram, as it is. A packet that does not fit is answered with the ICMP message of
/// its version that says what would (RFC 1191, RFC 8201), so that a TCP inside finds the tunnel's MTU as it would
/// any other. Datagrams from anyone but the other end, and such as hold no IP packet, are dropped and counted.
///
/// *Scope and departures*: no header, no keys, no fragmentation; both ends are configured with each other's addresses.
pub struct Tunnel {
    local: SocketAddr,
    remote: SocketAddr,
    mtu: u32,
    out: Outbox,
    sent: u64,
    received: u64,
    too_big: u64,
    foreign: u64,
    malformed: u64,
    wrong_items: u64,
}

impl Tunnel {
    /// The end at `local` of a tunnel to `remote`, for packets of at most `mtu` bytes.
    pub fn new(local: SocketAddr, remote: SocketAddr, mtu: u32) -> Self {
        Self {
            local,
            remote,
            mtu,
            out: Outbox::new(),
            sent: 0,
            received: 0,
            too_big: 0,
            foreign: 0,
            malformed: 0,
            wrong_items: 0,
        }
    }

    fn encapsulate(&mut self, packet: Buffer) {
        if packet.len() > self.mtu as usize {
            self.too_big += 1;
            self.answer_too_big(&packet);
            return;
        }
        self.sent += 1;
        let datagram = Datagram::new(self.local, self.remote, packet);
        self.out.down(Item::Datagram(datagram));
    }

    fn decapsulate(&mut self, Datagram { remote, payload, .. }: Datagram) {
        if remote != self.remote {
            self.foreign += 1;
        } else if ip::parse(&payload).is_err() {
            self.malformed += 1;
        } else {
            self.received += 1;
            self.out.up(Item::Packet(payload));
        }
    }

    /// Tells the sender inside what would have fitted; about a packet that is no IP there is nothing to tell.
    fn answer_too_big(&mut self, packet: &[u8]) {
        let Ok(header) = ip::parse(packet) else { return };
        let mut answer = Buffer::copy_from(icmp::quote(header.version, packet));
        // As if from the destination: the tunnel has no address inside.
        let (from, to) = (header.destination, header.source);
        icmp::prepend(&mut answer, from, to, icmp::Message::PacketTooBig { mtu: self.mtu });
        ip::prepend(&mut answer, from, to, icmp::protocol(header.version), 64, 0);
        self.out.up(Item::Packet(answer));
    }
}

impl Reactive for Tunnel {
    fn react(&mut self, _now: Instant, port: Port, item: Item) {
        match (port, item) {
            (Port::Above(_), Item::Packet(packet)) => self.encapsulate(packet),
            (Port::Below(_), Item::Datagram(datagram)) => self.decapsulate(datagram),
            _ => self.wrong_items += 1,
        }
    }

    fn next(&mut self) -> Option<(Port, Item)> {
        self.out.pop()
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        report("packets_sent", self.sent);
        report("packets_received", self.received);
        report("too_big", self.too_big);
        report("foreign", self.foreign);
        report("malformed", self.malformed);
        report("wrong_items", self.wrong_items);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopcast_core::Machine;

    const NOW: Instant = Instant::ZERO;

    fn tunnel() -> Tunnel {
        Tunnel::new("10.0.0.1:7000".parse().unwrap(), "10.0.0.2:7001".parse().unwrap(), 1400)
    }

    fn packet(payload: usize) -> Buffer {
        let mut packet = Buffer::zeroed(payload);
        let (from, to) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        ip::prepend(&mut packet, from, to, 99, 64, 0);
        packet
    }

    #[test]
    fn a_packet_travels_in_a_datagram_and_comes_out_as_it_was() {
        let mut tunnel = tunnel();
        tunnel.handle(NOW, Port::Above(0), Item::Packet(packet(100)));
        let Some((Port::Below(0), Item::Datagram(sent))) = tunnel.poll(NOW) else { panic!("a datagram") };
        assert_eq!(sent.payload, packet(100));
        let arrived = Datagram::new(sent.local, sent.remote, sent.payload);
        tunnel.handle(NOW, Port::Below(0), Item::Datagram(arrived));
        assert_eq!(tunnel.poll(NOW), Some((Port::Above(0), Item::Packet(packet(100)))));
    }

    #[test]
    fn a_packet_too_big_is_answered_with_what_would_fit() {
        let mut tunnel = tunnel();
        tunnel.handle(NOW, Port::Above(0), Item::Packet(packet(1381)));
        let Some((Port::Above(0), Item::Packet(answer))) = tunnel.poll(NOW) else { panic!("an answer") };
        let header = ip::parse(&answer).unwrap();
        let message = icmp::parse(header.source, header.destination, &answer[header.payload()]).unwrap();
        assert_eq!(message, icmp::Message::PacketTooBig { mtu: 1400 });
        assert_eq!(tunnel.poll(NOW), None);
    }

    #[test]
    fn a_stranger_and_what_is_no_packet_are_refused_and_told_apart() {
        let mut tunnel = tunnel();
        let (local, remote) = (tunnel.local, tunnel.remote);
        let stranger = Datagram::new(local, "10.0.0.9:7001".parse().unwrap(), packet(10));
        tunnel.handle(NOW, Port::Below(0), Item::Datagram(stranger));
        let garbage = Datagram::new(local, remote, Buffer::copy_from(b"no packet"));
        tunnel.handle(NOW, Port::Below(0), Item::Datagram(garbage));
        assert_eq!(tunnel.poll(NOW), None);
        assert_eq!((tunnel.foreign, tunnel.malformed, tunnel.wrong_items), (1, 1, 0));
    }
}
