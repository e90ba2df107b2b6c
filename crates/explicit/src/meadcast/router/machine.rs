//! The machine: sorts what the host hands over.

use std::net::{IpAddr, Ipv6Addr};

use hopcast_core::{Instant, Item, Outbox, Pace, Port, Reactive, Transit};

use super::config::Config;
use super::counters::Counters;
use super::data::Data;
use crate::address::of_ipv6;
use crate::meadcast::Statement;
use crate::meadcast::wire::short::{self, List};
use crate::meadcast::wire::{Kind, MAX_HOPS, Packet, edit};
use crate::{Refusal, pace};

/// A MEADcast router; see the [module's documentation](super).
pub struct Router {
    pub(super) config: Config,
    /// The node's own addresses, of which the first is that of responses.
    addresses: Vec<Ipv6Addr>,
    pub(super) copies: Pace,
    responses: Pace,
    /// The short list that was read last.
    list: List,
    pub(super) out: Outbox,
    pub(super) counters: Counters,
}

/// The treatment of a packet that is not dropped.
enum Verdict<'a> {
    Pass,
    /// With its nonce.
    Request(Packet<'a>, u64),
    Data(Data),
}

impl Router {
    /// A router at a node with these addresses. Without one of IPv6 it is off.
    pub fn new(config: Config, addresses: &[IpAddr]) -> Self {
        Self {
            config,
            addresses: of_ipv6(addresses),
            copies: pace(config.copies_per_second),
            responses: pace(config.responses_per_second),
            list: List::default(),
            out: Outbox::new(),
            counters: Counters::default(),
        }
    }

    /// Number of packets that were dropped for a reason.
    pub const fn refused(&self, reason: Refusal) -> u64 {
        self.counters.refusals.get(reason)
    }

    /// Whether an address is this node's own.
    pub(super) fn owns(&self, address: &[u8; 16]) -> bool {
        self.addresses.iter().any(|own| own.octets() == *address)
    }

    fn is_on(&self) -> bool {
        self.config.enable && !self.addresses.is_empty()
    }

    fn receive(&mut self, now: Instant, mut transit: Transit) {
        if self.is_on() && short::is_short(&transit.packet) {
            let mut list = std::mem::take(&mut self.list);
            self.receive_short(now, transit, &mut list);
            self.list = list;
            return;
        }
        match self.judge(&transit.packet) {
            Ok(Verdict::Pass) => {
                self.counters.passed += 1;
                self.out.down(Item::Transit(transit));
            }
            Ok(Verdict::Request(request, nonce)) => {
                self.counters.requests += 1;
                self.respond(now, &request, nonce);
                edit::increment_hops(&mut transit.packet);
                self.out.down(Item::Transit(transit));
            }
            Ok(Verdict::Data(data)) => {
                self.counters.data += 1;
                self.forward(now, transit, &data);
            }
            Err(reason) => self.refuse(transit, reason),
        }
    }

    /// Drops a packet.
    pub(super) fn refuse(&mut self, transit: Transit, reason: Refusal) {
        self.counters.refusals.add(reason);
        transit.packet.recycle();
    }

    fn judge<'a>(&self, bytes: &'a [u8]) -> Result<Verdict<'a>, Refusal> {
        if !self.is_on() {
            return Ok(Verdict::Pass);
        }
        let packet = match Packet::parse(bytes) {
            Ok(packet) => packet,
            // A header in front of it, or another protocol's: not MEADcast's, so not this router's business.
            Err(Refusal::NoHeader) => return Ok(Verdict::Pass),
            Err(reason) => return Err(reason),
        };
        let verdict = match packet.kind {
            Kind::Response { .. } => return Ok(Verdict::Pass),
            // The receiver that it asks about is on this node.
            Kind::Request { .. } if self.owns(&packet.list[0]) => return Ok(Verdict::Pass),
            Kind::Request { .. } if self.owns(&packet.source.octets()) => return Err(Refusal::Source),
            Kind::Request { nonce } => Verdict::Request(packet, nonce),
            Kind::Data { delivery, routers } => Verdict::Data(Data::new(&packet, delivery, routers)),
        };
        may_pass(packet.hops, packet.hop_limit)?;
        Ok(verdict)
    }

    /// Names this router to the sender of a request, unless it has named itself too often.
    fn respond(&mut self, now: Instant, request: &Packet<'_>, nonce: u64) {
        let Some(&own) = self.addresses.first() else { return };
        if !self.responses.is_ready(now) {
            return self.counters.refusals.add(Refusal::Rate);
        }
        self.responses.sent(now, 1);
        self.counters.responses += 1;
        let hops = request.hops + 1;
        let receiver = Ipv6Addr::from(request.list[0]);
        let statement = Statement { nonce, sender: request.source, router: own, receiver, hops };
        let response = statement.response(self.config.key.as_ref(), self.config.hop_limit);
        self.out.down(Item::Packet(response));
    }
}

/// Whether a packet with these hops behind it, and this hop limit, may go on.
pub(super) const fn may_pass(hops: u8, hop_limit: u8) -> Result<(), Refusal> {
    if hops >= MAX_HOPS {
        return Err(Refusal::Hops);
    }
    if hop_limit < 2 {
        return Err(Refusal::HopLimit);
    }
    Ok(())
}

impl Reactive for Router {
    fn react(&mut self, now: Instant, port: Port, item: Item) {
        match (port, item) {
            (Port::Below(0), Item::Transit(transit)) => self.receive(now, transit),
            _ => self.counters.wrong_items += 1,
        }
    }

    fn next(&mut self) -> Option<(Port, Item)> {
        self.out.pop()
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        self.counters.report(report);
    }
}
