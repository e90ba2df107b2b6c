//! Repairers beside the tree (RFC 3208, section 9.5): off-tree DLRs, one hop below, which have what another branch
//! lost.
//!
//! An element that is asked for something polls those behind it for repairers. An element with a store answers by its
//! address, in OPT_REDIRECT. From then on NAKs go to it, unless somebody on its own interface has asked for the same.
//! It confirms and repairs in packets to the element that asked, which sends the repair to the interfaces that wait;
//! what it lacks too it asks for itself, upon which the NAK goes to the source's side. A packet is asked of one
//! repairer once, and one that does not confirm is forgotten.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use hopcast_core::{Duration, Egress, Instant, Item, Transit};

use super::encapsulation::{self, Place};
use super::feedback::{Requests, messages};
use super::machine::{Router, Verdict};
use super::repair::Wanted;
use super::repairer::as_repair;
use super::session::SessionKey;
use super::store::Answer;
use crate::pgm::wire::{Body, Data, Nak, Options, Packet, Poll, PollKind, PollResponse};

/// Repairers that a session remembers. Chosen: one for each of a few branches, of which one has not lost the same.
const MAX_REPAIRERS: usize = 8;
/// Shortest time between two polls of a session. Chosen: who begins to keep data is found in time, and a loss rarely
/// costs a poll where there is no repairer.
const POLL_EVERY: Duration = Duration::from_secs(10);

/// The repairers beside the tree that a session knows.
#[derive(Debug, Default)]
pub(super) struct Redirect {
    /// Number of the last poll, and when it was sent.
    polled: Option<(u32, Instant)>,
    pub(super) repairers: Vec<Repairer>,
    /// Whether this element has offered itself to the one above as a repairer.
    serves: bool,
}

/// A repairer, and the interface that it is behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Repairer {
    pub(super) address: IpAddr,
    pub(super) interface: u32,
}

impl Router {
    /// Polls those behind this element for repairers, unless it has done so of late.
    pub(super) fn poll_repairers(&mut self, now: Instant, key: SessionKey) {
        let Some(path) = self.address(key.source) else { return };
        let Some(session) = self.sessions.get_mut(&key) else { return };
        let redirect = &mut session.redirect;
        let is_late = redirect.polled.is_some_and(|(_, at)| now.since(at) < POLL_EVERY);
        if is_late || !redirect.repairers.is_empty() {
            return;
        }
        let sequence = redirect.polled.map_or(0, |(sequence, _)| sequence.wrapping_add(1));
        redirect.polled = Some((sequence, now));
        let kind = PollKind::Repairers;
        let poll = Poll { sequence, round: 0, kind, path, backoff: 0, random: 0, mask: 0 };
        let packet = encapsulation::wrap(
            Packet::new(key.tsi, session.port, Body::Poll(poll)).emit(),
            session.encapsulation,
            (key.source, session.group),
            (self.config.hop_limit, true),
        );
        self.counters.polls += 1;
        let transit = Transit { packet, ingress: Some(session.ingress), egress: Egress::Routes };
        self.out.down(Item::Transit(transit));
    }

    /// A poll for repairers ends at the first element; one with a store answers it.
    pub(super) fn receive_poll(
        &mut self,
        source: IpAddr,
        packet: &Packet<'_>,
        poll: &Poll,
        ingress: u32,
    ) -> Verdict {
        let key = SessionKey { source, tsi: packet.session };
        let own = self.address(poll.path);
        let Some(session) = self.sessions.get_mut(&key) else { return Verdict::Pass };
        // NAKs that are redirected are known by their sender, which is the path.
        let is_sound = ingress == session.ingress && poll.path == session.upstream;
        if let Some(own) = own.filter(|&own| is_sound && !self.store.is_off() && poll.matches(node(own))) {
            session.redirect.serves = true;
            let response = PollResponse { sequence: poll.sequence, round: poll.round };
            let mut answer = Packet::new(key.tsi, session.port, Body::PollResponse(response));
            answer.options.redirect = Some(own);
            self.send_up(key, &answer);
        }
        Verdict::End
    }

    /// An answer to a poll of this element: its sender repairs.
    pub(super) fn receive_poll_response(
        &mut self,
        source: IpAddr,
        packet: &Packet<'_>,
        response: PollResponse,
        ingress: u32,
    ) -> Verdict {
        let is_of_poll = |polled: Option<(u32, Instant)>| {
            response.round == 0 && polled.is_some_and(|(sequence, _)| sequence == response.sequence)
        };
        let mut of = self.sessions.iter_mut().filter(|(key, _)| key.tsi == packet.session);
        let Some((_, session)) = of.find(|(_, session)| is_of_poll(session.redirect.polled)) else {
            return Verdict::Pass;
        };
        let repairers = &mut session.redirect.repairers;
        let repairer = Repairer { address: source, interface: ingress };
        if packet.options.redirect == Some(source)
            && ingress != session.ingress
            && repairers.len() < MAX_REPAIRERS
            && repairers.iter().all(|known| known.address != source)
        {
            repairers.push(repairer);
        }
        Verdict::End
    }

    /// Sends NAKs to repairers.
    pub(super) fn send_redirected(&mut self, key: SessionKey, redirected: &BTreeMap<IpAddr, Requests>) {
        for (&repairer, requests) in redirected {
            let Some(session) = self.sessions.get(&key) else { return };
            for nak in messages(key, session, requests, Body::Nak) {
                self.counters.naks_sent += 1;
                self.send_to(key, repairer, &nak);
            }
        }
    }

    /// Forgets repairers that have not confirmed a NAK.
    pub(super) fn forget_repairers(&mut self, key: SessionKey, silent: &[IpAddr]) {
        let Some(session) = self.sessions.get_mut(&key) else { return };
        let repairers = &mut session.redirect.repairers;
        let before = repairers.len();
        repairers.retain(|repairer| !silent.contains(&repairer.address));
        self.counters.repairers_silent += (before - repairers.len()) as u64;
    }

    /// An NCF of a repairer, to this element alone.
    pub(super) fn receive_repairers_ncf(
        &mut self,
        now: Instant,
        (packet, ncf): (&Packet<'_>, &Nak),
        source: IpAddr,
    ) -> Verdict {
        let key = SessionKey { source: ncf.source, tsi: packet.session };
        let Some(session) = self.sessions.get_mut(&key) else { return Verdict::Pass };
        for request in session.wanted(packet, ncf) {
            let request = request.filter(|&(wanted, _)| session.repairs.is_asked_of(wanted, source));
            match request.and_then(|request| session.repairs.confirm(now, request, &self.config)) {
                Some(_) => self.counters.confirmations_heard += 1,
                None => self.counters.confirmations_refused += 1,
            }
        }
        Verdict::End
    }

    /// A repair of a repairer, to this element alone: it goes to those who wait for it, as if the source had sent it.
    pub(super) fn receive_repairers_repair(
        &mut self,
        now: Instant,
        place: &Place,
        packet: &Packet<'_>,
        data: Data,
    ) -> Verdict {
        let (source, wanted) = (place.header.source, Wanted::Packet(data.sequence));
        let mut of = self.sessions.iter_mut().filter(|(key, _)| key.tsi == packet.session);
        let found = of.find(|(_, session)| session.repairs.is_asked_of(wanted, source));
        let Some((&key, session)) = found.filter(|_| !packet.is_parity) else { return Verdict::Pass };
        let Some(interfaces) = session.repairs.repaired(now, wanted) else { return Verdict::End };
        self.counters.repairs += 1;
        self.counters.repair_copies += interfaces.len() as u64;
        let ends = (key.source, session.group);
        let repair =
            encapsulation::wrap(packet.emit(), session.encapsulation, ends, (self.config.hop_limit, true));
        self.store.keep(key, data.sequence, &repair);
        let egress = Egress::Group(Arc::from(interfaces));
        let ingress = Some(session.ingress);
        self.out.down(Item::Transit(Transit { packet: repair, ingress, egress }));
        Verdict::End
    }

    /// Whether a NAK comes from the element above, to which this one has offered itself as a repairer.
    pub(super) fn is_redirected(&self, key: SessionKey, source: IpAddr, ingress: u32) -> bool {
        self.sessions.get(&key).is_some_and(|session| {
            session.redirect.serves && ingress == session.ingress && source == session.upstream
        })
    }

    /// A NAK of the element above: all of it is confirmed to that one alone, and repaired from the store; what is not
    /// there is asked for, so that it asks elsewhere.
    pub(super) fn repair_for_parent(
        &mut self,
        now: Instant,
        key: SessionKey,
        (packet, nak): (&Packet<'_>, &Nak),
    ) -> Verdict {
        let Some(session) = self.sessions.get(&key) else { return Verdict::End };
        let is_sound = nak.group == session.group;
        let (mut repaired, mut lacking, mut confirmed) = (Vec::new(), Requests::new(), Requests::new());
        for request in session.wanted(packet, nak) {
            self.counters.requests += 1;
            let Some((wanted, count)) = request.filter(|_| is_sound) else {
                self.counters.requests_refused += 1;
                continue;
            };
            confirmed.push((wanted, count));
            // The element above eliminates: if it asks again, the repair was lost behind it.
            let answer = match wanted {
                Wanted::Packet(sequence) => self.store.answer(now, (key, sequence), session.ingress, now),
                Wanted::Parity(_) => None,
            };
            match answer {
                Some(Answer::Repair(kept)) => repaired.push((wanted, kept)),
                Some(Answer::Sent) | None => lacking.push((wanted, count)),
            }
        }
        let reported: Requests = repaired.iter().map(|&(wanted, _)| (wanted, 1)).collect();
        // The NNAK precedes the repair, with which the element above forgets the request.
        let confirmations = messages(key, session, &confirmed, Body::Confirmation);
        let reports = messages(key, session, &reported, Body::NullNak);
        self.counters.confirmations += confirmations.len() as u64;
        self.counters.reports += reports.len() as u64;
        confirmations.iter().chain(&reports).for_each(|message| self.send_up(key, message));
        self.send_naks(key, &lacking, &Options::default());
        for (_, kept) in repaired {
            if let Some((_, repair)) = as_repair(&kept) {
                self.counters.repairs_of_store += 1;
                self.send_up(key, &repair);
            }
            kept.recycle();
        }
        Verdict::End
    }
}

/// The identifier by which polls choose nodes at random (section 14.5): the end of its address, as nothing here is
/// random.
fn node(own: IpAddr) -> u32 {
    match own {
        IpAddr::V4(own) => own.to_bits(),
        IpAddr::V6(own) => own.to_bits() as u32,
    }
}
