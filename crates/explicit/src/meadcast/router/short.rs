//! Data with a short list: its parts, and the plain packets for this router's receivers.

use std::mem::take;

use hopcast_core::{Buffer, Instant, Item, Transit};
use hopcast_wire::ip;

use super::data::Copies;
use super::machine::{Router, may_pass};
use crate::Refusal;
use crate::meadcast::wire::edit;
use crate::meadcast::wire::short::{List, Packet, Section};

/// The sections of a list that are to be delivered behind one another, and those that are served here.
#[derive(Default)]
struct Split<'a> {
    served: Vec<Section<'a>>,
    /// Sections that go on, and of each whether a part begins with it.
    sections: Vec<(Section<'a>, bool)>,
}

impl<'a> Split<'a> {
    /// The list at a router that is this far from the sender.
    fn new(list: &'a List, hops: u8, owns: impl Fn(&[u8; 16]) -> bool) -> Self {
        let mut split = Self::default();
        // Of two sections between which others are gone, the branch is where the first of all these parts.
        let mut branch = u8::MAX;
        for section in list.sections() {
            branch = branch.min(section.branch);
            if owns(section.router) {
                split.served.push(section);
                continue;
            }
            let begins = split.sections.is_empty() || branch <= hops;
            split.sections.push((Section { branch, ..section }, begins));
            branch = u8::MAX;
        }
        split
    }

    /// The parts, each a copy.
    fn parts(&self) -> impl Iterator<Item = &[(Section<'a>, bool)]> {
        self.sections.chunk_by(|_, (_, begins)| !begins)
    }
}

impl Router {
    pub(super) fn receive_short(&mut self, now: Instant, transit: Transit, list: &mut List) {
        let read = Packet::parse(&transit.packet, list)
            .and_then(|packet| may_pass(packet.hops, packet.hop_limit).map(|()| packet));
        match read {
            Ok(packet) => {
                let len =
                    ip::V6_HEADER + usize::from(u16::from_be_bytes([transit.packet[4], transit.packet[5]]));
                let header_len = len - packet.payload.len();
                let head = Packet { hops: packet.hops + 1, ..packet.head() };
                self.counters.data += 1;
                self.split(now, transit, (head, header_len, len), list);
            }
            Err(reason) => self.refuse(transit, reason),
        }
    }

    /// Makes a copy for each part of a list, and plain packets of the sections that are served here. The payload is
    /// copied once for each of them but the last, which has the packet itself.
    fn split(
        &mut self,
        now: Instant,
        transit: Transit,
        (head, header_len, len): (Packet<'static>, usize, usize),
        list: &List,
    ) {
        if !self.copies.is_ready(now) {
            return self.refuse(transit, Refusal::Rate);
        }
        let Transit { mut packet, ingress, .. } = transit;
        let to_router = list.addresses.first() == Some(&edit::destination(&packet));
        let split = Split::new(list, head.hops, |address| self.owns(address));
        let is_whole = split.served.is_empty() && split.parts().count() == 1;
        let mut served = split.served.clone();
        let few = self.config.min_dsts.into();
        let mut parts = Vec::new();
        for part in split.parts() {
            match part {
                [(section, _)] if section.receivers.len() < few => {
                    self.counters.premature += section.receivers.len() as u64;
                    served.push(*section);
                }
                part => parts.push(part),
            }
        }
        if is_whole && !parts.is_empty() {
            packet.truncate(len);
            return self.pass_whole(now, packet, ingress);
        }
        let plain: usize = served.iter().map(|section| section.receivers.len()).sum();
        let mut left = plain + parts.len();
        self.copies.sent(now, left as u64);
        self.counters.unicast += plain as u64;
        self.counters.copies += parts.len() as u64;
        packet.truncate(len);
        let copies = Copies::new(&packet, ingress, head.protocol, header_len);
        packet.advance(header_len);
        let mut payload =
            |left: usize| if left == 0 { take(&mut packet) } else { Buffer::copy_from(&packet) };
        for part in parts {
            let Some((first, _)) = part.first() else { continue };
            let destination = if to_router { first.router } else { &first.receivers[0] };
            left -= 1;
            let mut copy = payload(left);
            copies.readdressing.apply(&mut copy, destination, None);
            let head = Packet { destination: (*destination).into(), ..head };
            head.prepend(&mut copy, part.iter().map(|(section, _)| *section));
            self.out.down(Item::Transit(copies.transit(copy)));
        }
        for receiver in served.iter().flat_map(|section| section.receivers) {
            left -= 1;
            self.out.down(Item::Transit(copies.plain(payload(left), receiver, None)));
        }
    }
}
