//! The input of an edge, from above and from below.

use hopcast_code::field::Field;
use hopcast_core::{Buffer, Frame, Instant, Item};
use hopcast_wire::{ethernet, icmp, ip};

use super::Edge;
use crate::franc::session::Met;
use crate::franc::wire::{self, Ack, Common, Enc, Hello, Packet};

impl<F: Field> Edge<F> {
    pub(super) fn receive_packet(&mut self, now: Instant, packet: Buffer) {
        if packet.len() > usize::from(self.config.mtu) {
            self.counters.too_big += 1;
            self.answer_too_big(&packet);
        } else if packet.is_empty() {
            self.counters.malformed += 1;
        } else {
            self.input.push(now, packet);
        }
    }

    /// Tells the sender above what would have fitted; about a packet that is no IP there is nothing to tell.
    fn answer_too_big(&mut self, packet: &[u8]) {
        let Ok(header) = ip::parse(packet) else { return };
        let mut answer = Buffer::copy_from(icmp::quote(header.version, packet));
        let (from, to) = (header.destination, header.source);
        icmp::prepend(&mut answer, from, to, icmp::Message::PacketTooBig { mtu: u32::from(self.config.mtu) });
        ip::prepend(&mut answer, from, to, icmp::protocol(header.version), 64, 0);
        self.out.up(Item::Packet(answer));
    }

    pub(super) fn receive_frame(&mut self, now: Instant, frame: &Frame) {
        let Ok(header) = ethernet::parse(&frame.bytes) else {
            self.counters.malformed += 1;
            return;
        };
        if header.ether_type != wire::ETHER_TYPE {
            self.counters.foreign += 1;
            return;
        }
        if header.source == self.local {
            if header.destination == self.peer {
                self.gate.echo();
            }
            return;
        }
        let from_peer = header.source == self.peer;
        let for_us = header.destination == self.local;
        // Other segments' stations may be on the medium. What is not for us is the helper's at most.
        if !for_us && (from_peer || header.destination != self.peer) {
            return;
        }
        let config = self.config.clone();
        let (common, packet) = match wire::parse(&frame.bytes[ethernet::HEADER..], &config) {
            Ok(parsed) => parsed,
            Err(refused) => {
                return refused.count(&mut self.counters.checksum_errors, &mut self.counters.malformed);
            }
        };
        match packet {
            Packet::Hello(hello) if from_peer && for_us => self.receive_hello(hello),
            Packet::Hello(_) => {}
            _ if Some(common.association) != self.session.association() => {
                self.counters.foreign += 1;
                if from_peer && for_us {
                    self.session.ask();
                }
            }
            Packet::Enc(enc) => self.receive_enc(now, &enc, common, from_peer, for_us),
            Packet::Ack(ack) if from_peer && for_us && common.up == self.is_up() => {
                self.session.used();
                self.receive_ack(now, &ack);
            }
            Packet::Ack(_) => {}
        }
    }

    fn receive_hello(&mut self, hello: Hello) {
        match self.session.hello(hello) {
            Met::Nothing => {}
            Met::Mismatch => self.counters.mismatched += 1,
            Met::Peer => self.gate.answered(),
            Met::Restarted => {
                self.counters.restarts += 1;
                self.counters.symbols_lost_in_restarts += self.encoder.restart();
                self.decoder.restart();
                self.input.restart();
                self.acks.restart();
                self.helper_heard = None;
                for estimate in [&mut self.e1, &mut self.e2, &mut self.e3] {
                    estimate.restart();
                }
            }
        }
    }

    fn receive_enc(&mut self, now: Instant, enc: &Enc<'_>, common: Common, from_peer: bool, for_us: bool) {
        if common.up == self.is_up() {
            // Our own data, on their way from the helper to the peer.
            if let Some(report) = &enc.report {
                self.helper_heard = Some(now);
                self.e1.update(report.heard);
                self.encoder.report(report);
            }
            return;
        }
        if !for_us || from_peer == enc.report.is_some() {
            self.counters.foreign += 1;
            return;
        }
        self.session.used();
        if let Some(ack) = &enc.ack {
            self.receive_ack(now, ack);
        }
        let (out, received) = (&mut self.out, &mut self.counters.packets_received);
        let arrival = self.decoder.push(enc, |packet| {
            *received += 1;
            out.up(Item::Packet(Buffer::copy_from(packet)));
        });
        self.acks.on_arrival(now, arrival, self.decoder.is_missing(), enc.behind);
    }

    fn receive_ack(&mut self, now: Instant, ack: &Ack) {
        self.counters.acks_received += 1;
        self.gate.answered();
        self.e3.update(ack.heard);
        self.e2.update(ack.helper);
        self.encoder.acknowledge(now, ack);
    }
}
