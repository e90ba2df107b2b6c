//! The packet port of a machine that carries datagrams in IP packets by itself, without a host.

use std::net::IpAddr;

use hopcast_core::{Buffer, Datagram, Item, Outbox};
use hopcast_wire::{ip, router_alert};

/// A packet port below and a datagram port above: what leaves by them, and how often.
#[derive(Debug)]
pub(crate) struct PacketPort {
    local: IpAddr,
    protocol: u8,
    hop_limit: u8,
    identification: u16,
    pub(crate) out: Outbox,
    sent: u64,
    received: u64,
    pub(crate) refused: u64,
    wrong_items: u64,
}

impl PacketPort {
    /// The port of a protocol of IP at an address, whose packets have this hop limit.
    pub(crate) const fn new(local: IpAddr, protocol: u8, hop_limit: u8) -> Self {
        let out = Outbox::new();
        let (sent, received, refused, wrong_items) = (0, 0, 0, 0);
        Self { local, protocol, hop_limit, identification: 0, out, sent, received, refused, wrong_items }
    }

    /// Whether a payload of this length, of `max` at most, can be sent there; if not, it is counted as refused.
    pub(crate) fn can_send(&mut self, len: usize, max: usize, to: IpAddr) -> bool {
        let can = len <= max && to.is_ipv4() == self.local.is_ipv4();
        self.refused += u64::from(!can);
        can
    }

    /// Sends a payload in a packet.
    pub(crate) fn send(&mut self, mut payload: Buffer, to: IpAddr) {
        self.identification = self.identification.wrapping_add(1);
        ip::prepend(&mut payload, self.local, to, self.protocol, self.hop_limit, self.identification);
        self.sent += 1;
        self.out.down(Item::Packet(payload));
    }

    /// Sends a payload in a packet with a Router Alert.
    pub(crate) fn send_alerting(&mut self, mut payload: Buffer, to: IpAddr) {
        router_alert::prepend(&mut payload, self.local, to, self.protocol, self.hop_limit);
        self.sent += 1;
        self.out.down(Item::Packet(payload));
    }

    /// Hands up the datagram in a packet that arrived, if it was valid and for this machine.
    pub(crate) fn arrived(&mut self, found: Option<Datagram>) {
        match found {
            Some(datagram) => {
                self.received += 1;
                self.out.up(Item::Datagram(datagram));
            }
            None => self.refused += 1,
        }
    }

    /// An item came that has no place here.
    pub(crate) const fn wrong_item(&mut self) {
        self.wrong_items += 1;
    }

    pub(crate) fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        report("datagrams_sent", self.sent);
        report("datagrams_received", self.received);
        report("datagrams_refused", self.refused);
        report("wrong_items", self.wrong_items);
    }
}
