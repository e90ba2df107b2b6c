//! The lower side: parity, addresses, and the datagram port.

use std::net::SocketAddr;

use hopcast_core::{Buffer, Datagram, Instant, Item, Outbox};

use super::counters::Counters;
use super::fec::Encoder;

#[derive(Debug)]
pub(super) struct Lower {
    pub local: SocketAddr,
    pub remote: SocketAddr,
    pub encoder: Option<Encoder>,
}

impl Lower {
    pub(super) fn send(&mut self, now: Instant, packet: &[u8], out: &mut Outbox, counters: &mut Counters) {
        let Self { local, remote, .. } = *self;
        let mut send = |bytes: &[u8], parity: bool| {
            counters.datagrams_sent += 1;
            counters.parity_sent += u64::from(parity);
            let datagram = Datagram::new(local, remote, Buffer::copy_from(bytes));
            out.down(Item::Datagram(datagram));
        };
        match &mut self.encoder {
            Some(encoder) => encoder.send(now, packet, |bytes, parity| send(&bytes, parity)),
            None => send(packet, false),
        }
    }
}
