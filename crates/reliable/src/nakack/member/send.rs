//! Sending: packets that are due, at the member's rate, and grants to the application.

use std::net::SocketAddr;

use hopcast_core::{Buffer, Datagram, Instant, Item};

use super::super::epoch::ToSend;
use super::super::unicast::ToMember;
use super::super::wire::{Control, Packet};
use super::{MAX_ROUNDS, Member};
use crate::statistics::Kind;

/// Bytes that wait to be sent up to which datagrams are granted. Chosen: some packets more than leave between two
/// wake-ups of a program.
const WINDOW: u64 = 64 << 10;

impl Member {
    pub(super) fn put_out(&mut self, packets: Vec<ToMember>) {
        for ToMember { address, packet } in packets {
            self.put(address, &packet);
        }
    }

    /// Sends a packet that waits for no rate, and counts it.
    pub(super) fn put(&mut self, to: SocketAddr, packet: &Packet<'_>) {
        let bytes = packet.emit();
        let is_feedback =
            matches!(packet, Packet::Ack { .. } | Packet::Unicast { control: Control::Credit { .. }, .. });
        let kind = if is_feedback { Kind::Feedback } else { Kind::Control };
        self.counted.traffic.add(kind, bytes.len());
        self.send(to, bytes);
    }

    pub(super) fn send(&mut self, to: SocketAddr, bytes: Buffer) {
        let len = bytes.len() as u64 + u64::from(self.config.overhead);
        self.pacer.sent(self.now, self.config.stack.rate, len);
        self.out.down(Item::Datagram(Datagram::new(self.config.local, to, bytes)));
    }

    /// Does what is due, and sends what may be sent.
    pub(super) fn run(&mut self, now: Instant) {
        self.now = now;
        self.begun = true;
        if !self.is_present && !self.has_left() && self.membership.is_seeking() {
            return;
        }
        self.membership.answered(now, &self.unicast);
        if self.membership.looks_for_stalls(now) && !self.epoch.is_frozen() {
            for member in self.epoch.stalled(now) {
                let mut actions = Vec::new();
                self.membership.stalled(now, member, &self.epoch, &mut actions);
                self.act(now, actions);
            }
        }
        for _ in 0..MAX_ROUNDS {
            let mut actions = Vec::new();
            self.membership.wake(now, &self.epoch, &mut actions);
            self.act(now, actions);
            // A view that is installed may be reason for the next.
            if self.membership.deadline().is_none_or(|at| at > now) {
                break;
            }
        }
        let mut packets = Vec::new();
        let membership = &self.membership;
        self.unicast.wake(now, |member| membership.keeps(member), &mut packets);
        self.put_out(packets);
        if self.membership.is_member() {
            self.send_all(now);
        }
        self.deliver(now);
        self.grant();
    }

    pub(super) fn send_all(&mut self, now: Instant) {
        self.epoch.hold_back(self.membership.holds_back());
        while self.pacer.departure() <= now
            && let Some(packet) = self.epoch.next(now, &mut self.outgoing, &mut self.counted)
        {
            self.send_to_members(packet);
        }
        while let Some(packet) = self.epoch.next_digest(now, &mut self.counted) {
            self.send_to_members(packet);
        }
        while let Some((to, bytes)) = self.epoch.next_request(now, &mut self.counted) {
            self.send(to, bytes);
        }
    }

    pub(super) fn send_to_members(&mut self, packet: ToSend) {
        if self.config.multicasts {
            return self.send(self.config.group, packet.bytes);
        }
        let own = self.config.member;
        let others = self.epoch.view().members.iter().filter(|&&(member, _)| member != own);
        let to = if packet.to_all {
            others.map(|&(_, address)| address).collect()
        } else {
            self.epoch.interested()
        };
        for to in to {
            self.send(to, packet.bytes.clone());
        }
    }

    /// Grants datagrams as far as little waits, and bytes of streams.
    pub(super) fn grant(&mut self) {
        if !self.has_left() {
            let unit = u64::from(self.config.stack.fragment);
            self.credit.grant(WINDOW, self.outgoing.bytes(), unit, &mut self.out);
            self.down.grant(&mut self.outgoing, &mut self.out);
        }
    }
}
