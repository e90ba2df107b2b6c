//! A machine that answers echo requests, for stacks whose packets come out of a tunnel.

use std::net::IpAddr;

use hopcast_core::{Buffer, Instant, Item, Outbox, Port, Reactive};
use hopcast_wire::icmp::{self, Message};
use hopcast_wire::ip;

use crate::icmp::{answer_echo, is_one_host};

/// Answers the echo requests to one address that arrive on its packet port `Below(0)`, as a host answers those that
/// arrive on its interfaces. Anything else is dropped and counted.
pub struct EchoResponder {
    own: IpAddr,
    hop_limit: u8,
    identification: u16,
    answered: u64,
    ignored: u64,
    out: Outbox,
}

impl EchoResponder {
    /// Answers requests to `own`, with packets of this hop limit.
    pub const fn new(own: IpAddr, hop_limit: u8) -> Self {
        Self { own, hop_limit, identification: 0, answered: 0, ignored: 0, out: Outbox::new() }
    }

    /// The answer to a packet, if that is a complete echo request to this end.
    fn answer(&mut self, mut packet: Buffer) -> Option<Buffer> {
        let header = ip::parse(&packet).ok()?;
        let is_icmp = header.protocol == icmp::protocol(header.version) && !header.fragment;
        if header.destination != self.own || !is_icmp || !is_one_host(header.source) {
            return None;
        }
        let message = icmp::parse(header.source, header.destination, &packet[header.payload()]).ok()?;
        let Message::EchoRequest { identifier, sequence } = message else { return None };
        packet.truncate(header.total_len);
        answer_echo(&mut packet, &header, self.own, Message::EchoReply { identifier, sequence });
        self.identification = self.identification.wrapping_add(1);
        let (to, protocol) = (header.source, header.protocol);
        ip::prepend(&mut packet, self.own, to, protocol, self.hop_limit, self.identification);
        Some(packet)
    }
}

impl Reactive for EchoResponder {
    fn react(&mut self, _now: Instant, port: Port, item: Item) {
        let answer = match (port, item) {
            (Port::Below(0), Item::Packet(packet)) => self.answer(packet),
            _ => None,
        };
        match answer {
            Some(packet) => {
                self.answered += 1;
                self.out.down(Item::Packet(packet));
            }
            None => self.ignored += 1,
        }
    }

    fn next(&mut self) -> Option<(Port, Item)> {
        self.out.pop()
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        report("echoes_answered", self.answered);
        report("packets_ignored", self.ignored);
    }
}
