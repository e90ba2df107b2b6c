//! The machine: sorts what the host hands over.

use std::collections::BTreeMap;
use std::net::IpAddr;

use hopcast_core::{Egress, Instant, Item, Machine, Outbox, Port, Transit};

use super::config::Config;
use super::counters::Counters;
use super::encapsulation::{self, Place};
use super::session::{Origin, Session, SessionKey};
use super::store::Store;
use crate::pgm::wire::{Body, Packet, PollKind, Spm};

/// A network element; see the [module's documentation](super).
pub struct Router {
    pub(super) config: Config,
    /// The node's own addresses, of which the first of a version is its NLA.
    pub(super) addresses: Vec<IpAddr>,
    pub(super) sessions: BTreeMap<SessionKey, Session>,
    pub(super) store: Store<SessionKey>,
    pub(super) out: Outbox,
    pub(super) counters: Counters,
    deadline: Option<Instant>,
}

/// What becomes of a packet that the host handed over.
pub(super) enum Verdict {
    /// It goes on by the routes.
    Pass,
    /// It goes on by the routes, with this path.
    PassAs(IpAddr),
    /// It goes on by these interfaces alone.
    Send(Vec<u32>),
    /// It ends here.
    End,
}

impl Router {
    /// A network element at a node with these addresses.
    pub fn new(config: Config, addresses: Vec<IpAddr>) -> Self {
        Self {
            config,
            addresses,
            sessions: BTreeMap::new(),
            store: Store::new(config.store),
            out: Outbox::new(),
            counters: Counters::default(),
            deadline: None,
        }
    }

    /// Number of sessions, and of the repairs that are waited for in all of them.
    pub fn load(&self) -> (usize, usize) {
        (self.sessions.len(), self.sessions.values().map(|session| session.repairs.len()).sum())
    }

    /// The address by which this element is known where `other` is.
    pub(super) fn address(&self, other: IpAddr) -> Option<IpAddr> {
        self.addresses.iter().copied().find(|own| own.is_ipv4() == other.is_ipv4())
    }

    fn receive(&mut self, now: Instant, mut transit: Transit) {
        let Some(((place, packet), ingress)) = encapsulation::read(&transit.packet).zip(transit.ingress)
        else {
            return self.out.down(Item::Transit(transit));
        };
        match self.judge(now, &place, (&packet, &transit), ingress) {
            Verdict::Pass => self.out.down(Item::Transit(transit)),
            Verdict::PassAs(path) => {
                encapsulation::set_path(&mut transit.packet, &place, path);
                self.out.down(Item::Transit(transit));
            }
            Verdict::Send(interfaces) => {
                let egress = Egress::Group(interfaces.into());
                self.out.down(Item::Transit(Transit { egress, ..transit }));
            }
            Verdict::End => transit.packet.recycle(),
        }
    }

    fn judge(
        &mut self,
        now: Instant,
        place: &Place,
        (packet, transit): (&Packet<'_>, &Transit),
        ingress: u32,
    ) -> Verdict {
        let source = place.header.source;
        match packet.body {
            Body::Spm(spm) => self.receive_spm(now, place, (packet, &spm), ingress),
            Body::Original(data) => self.receive_original(source, (packet, transit), data),
            Body::Repair(data) if self.is_own(place) => {
                self.receive_repairers_repair(now, place, packet, data)
            }
            Body::Confirmation(ncf) if self.is_own(place) => {
                self.receive_repairers_ncf(now, (packet, &ncf), source)
            }
            Body::PollResponse(response) if self.is_own(place) => {
                self.receive_poll_response(source, packet, response, ingress)
            }
            Body::Poll(poll) if poll.kind == PollKind::Repairers => {
                self.receive_poll(source, packet, &poll, ingress)
            }
            Body::Repair(data) => self.receive_repair(now, source, (packet, transit), data, ingress),
            Body::Confirmation(ncf) => self.receive_ncf(now, (packet, &ncf), source, ingress),
            Body::Nak(nak) if self.is_own(place) => self.receive_nak(now, (packet, &nak), place, ingress),
            Body::NullNak(_) | Body::Ack(_) if self.is_own(place) => self.forward_report(packet, ingress),
            Body::Nak(_)
            | Body::NullNak(_)
            | Body::Ack(_)
            | Body::SpmRequest
            | Body::Poll(_)
            | Body::PollResponse(_) => Verdict::Pass,
        }
    }

    fn is_own(&self, place: &Place) -> bool {
        self.addresses.contains(&place.header.destination)
    }

    /// An SPM: the path to its source begins here, for those who are behind.
    fn receive_spm(
        &mut self,
        now: Instant,
        place: &Place,
        (packet, spm): (&Packet<'_>, &Spm),
        ingress: u32,
    ) -> Verdict {
        let group = place.header.destination;
        let own = self.address(spm.path).filter(|own| own.is_ipv4() == group.is_ipv4());
        let Some(own) = own.filter(|_| group.is_multicast()) else { return Verdict::Pass };
        let key = SessionKey { source: place.header.source, tsi: packet.session };
        let from = Origin { group, ingress, encapsulation: place.encapsulation };
        if let Some(session) = self.sessions.get_mut(&key) {
            if !session.follow(now, spm, packet, from) {
                self.counters.spms_old += 1;
                return Verdict::End;
            }
        } else {
            if self.sessions.len() >= self.config.sessions {
                self.sessions.retain(|_, session| !session.is_gone(now));
            }
            if self.sessions.len() >= self.config.sessions {
                self.counters.sessions_refused += 1;
                return Verdict::Pass;
            }
            self.sessions.insert(key, Session::new(now, spm, packet, from));
        }
        self.counters.spms += 1;
        Verdict::PassAs(own)
    }

    fn update_deadline(&mut self) {
        self.deadline = self.sessions.values().filter_map(|session| session.repairs.deadline()).min();
    }
}

impl Machine for Router {
    fn handle(&mut self, now: Instant, port: Port, item: Item) {
        self.wake(now);
        match (port, item) {
            (Port::Below(0), Item::Transit(transit)) => {
                self.receive(now, transit);
                self.update_deadline();
            }
            _ => self.counters.wrong_items += 1,
        }
    }

    fn wake(&mut self, now: Instant) {
        if self.deadline.is_some_and(|at| at <= now) {
            self.repeat_requests(now);
            self.update_deadline();
        }
    }

    fn poll(&mut self, _now: Instant) -> Option<(Port, Item)> {
        self.out.pop()
    }

    fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        self.counters.report(report);
    }
}
