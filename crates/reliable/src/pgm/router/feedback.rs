//! Requests on their way up, and their confirmations on the way down (RFC 3208, sections 7.2 to 7.6).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use hopcast_core::{Egress, Instant, Item, Transit};

use super::encapsulation::{self, Place};
use super::machine::{Router, Verdict};
use super::repair::{Decision, Wanted};
use super::session::{Session, SessionKey};
use super::store::Answer;
use crate::pgm::wire::{Body, Nak, Options, Packet, Tsi};

/// Packets that are asked for, each with their number.
pub(super) type Requests = Vec<(Wanted, u32)>;

/// Maximum number of sequence numbers in a NAK, NCF or NNAK: one in its header, and 62 in OPT_NAK_LIST (RFC 3208,
/// section 9.3.5).
const MAX_NUMBERS: usize = 63;

impl Router {
    /// A NAK for this element: it is confirmed at once, and what nobody has asked for yet is asked for upstream.
    pub(super) fn receive_nak(
        &mut self,
        now: Instant,
        (packet, nak): (&Packet<'_>, &Nak),
        place: &Place,
        ingress: u32,
    ) -> Verdict {
        let key = self.session_of(nak.source, packet.session);
        if let Some(key) = key.filter(|&key| self.is_redirected(key, place.header.source, ingress)) {
            return self.repair_for_parent(now, key, (packet, nak));
        }
        let Some((key, session)) = key.and_then(|key| Some((key, self.sessions.get_mut(&key)?))) else {
            // It may be that of a source on this node.
            self.counters.requests_unknown += 1;
            return Verdict::Pass;
        };
        // What comes from the source's side would have repairs sent back there.
        let is_sound = nak.group == session.group && ingress != session.ingress;
        if is_sound {
            session.upwards = place.encapsulation;
        }
        let (mut confirmed, mut forwarded, mut repaired) = (Requests::new(), Requests::new(), Vec::new());
        let mut redirected: BTreeMap<IpAddr, Requests> = BTreeMap::new();
        for request in session.wanted(packet, nak) {
            self.counters.requests += 1;
            let Some((wanted, count)) = request.filter(|_| is_sound) else {
                self.counters.requests_refused += 1;
                continue;
            };
            if let Wanted::Packet(sequence) = wanted
                && let Some(answer) =
                    self.store.answer(now, (key, sequence), ingress, now + self.config.elimination)
            {
                match answer {
                    Answer::Repair(data) => repaired.push((sequence, data)),
                    Answer::Sent => self.counters.requests_eliminated += 1,
                }
                confirmed.push((wanted, count));
                continue;
            }
            match session.repairs.ask(now, wanted, (ingress, count), &self.config) {
                Decision::Forward(asked) => {
                    self.counters.requests_forwarded += 1;
                    match session.repairs.redirect(wanted, &session.redirect.repairers, session.ingress) {
                        Some(repairer) => {
                            self.counters.requests_redirected += 1;
                            redirected.entry(repairer).or_default().push((wanted, asked));
                        }
                        None => forwarded.push((wanted, asked)),
                    }
                    confirmed.push((wanted, count));
                }
                Decision::Eliminate => {
                    self.counters.requests_eliminated += 1;
                    confirmed.push((wanted, count));
                }
                Decision::Refuse => self.counters.requests_refused += 1,
            }
        }
        self.send_confirmations(key, &confirmed, ingress);
        self.send_naks(key, &forwarded, &packet.options);
        self.send_redirected(key, &redirected);
        if self.config.redirect && !forwarded.is_empty() {
            self.poll_repairers(now, key);
        }
        self.send_stored(key, repaired, ingress);
        Verdict::End
    }

    /// The session that a request is for. OpenPGM's receivers name the element that they ask as its source.
    fn session_of(&self, source: IpAddr, tsi: Tsi) -> Option<SessionKey> {
        let key = SessionKey { source, tsi };
        let is_own = !self.sessions.contains_key(&key) && self.addresses.contains(&source);
        if is_own { self.first_of(tsi).map(|(&key, _)| key) } else { Some(key) }
    }

    /// The session of a TSI that was there first, whoever has sent SPMs of the same TSI since.
    fn first_of(&self, tsi: Tsi) -> Option<(&SessionKey, &Session)> {
        let of = self.sessions.iter().filter(|(key, _)| key.tsi == tsi);
        of.min_by_key(|(_, session)| session.began)
    }

    /// An NCF ends here: each element confirms for itself.
    pub(super) fn receive_ncf(
        &mut self,
        now: Instant,
        (packet, ncf): (&Packet<'_>, &Nak),
        source: IpAddr,
        ingress: u32,
    ) -> Verdict {
        let key = SessionKey { source, tsi: packet.session };
        let Some(session) = self.sessions.get_mut(&key) else { return Verdict::Pass };
        let is_sound = ncf.source == source && ncf.group == session.group && ingress == session.ingress;
        for request in session.wanted(packet, ncf) {
            let request = request.filter(|_| is_sound);
            match request.and_then(|request| session.repairs.confirm(now, request, &self.config)) {
                Some(true) => self.counters.confirmations_heard += 1,
                Some(false) => self.counters.confirmations_anticipated += 1,
                None => self.counters.confirmations_refused += 1,
            }
        }
        Verdict::End
    }

    /// A report that is for the source, of a receiver or a repairer: it goes on hop by hop, unconfirmed.
    pub(super) fn forward_report(&mut self, packet: &Packet<'_>, ingress: u32) -> Verdict {
        let found = match &packet.body {
            Body::NullNak(nak) => {
                self.sessions.get_key_value(&SessionKey { source: nak.source, tsi: packet.session })
            }
            // An acknowledgement does not name its source.
            _ => self.first_of(packet.session),
        };
        let Some((&key, session)) = found else { return Verdict::Pass };
        if ingress != session.ingress {
            self.counters.reports += 1;
            self.send_up(key, packet);
        }
        Verdict::End
    }

    /// Sends again what nobody has confirmed.
    pub(super) fn repeat_requests(&mut self, now: Instant) {
        let is_due = |session: &Session| session.repairs.deadline().is_some_and(|at| at <= now);
        let due: Vec<SessionKey> =
            self.sessions.iter().filter(|(_, session)| is_due(session)).map(|(&key, _)| key).collect();
        for key in due {
            let Some(session) = self.sessions.get_mut(&key) else { continue };
            let due = session.repairs.due(now);
            self.counters.requests_repeated += due.again.len() as u64;
            self.counters.requests_unconfirmed += due.unconfirmed;
            self.counters.repairs_missing += due.unrepaired;
            self.forget_repairers(key, &due.silent);
            self.send_naks(key, &due.again, &Options::default());
        }
    }

    /// Sends NCFs on the interface on which NAKs came, as the source would: nobody there sees who else could send them.
    fn send_confirmations(&mut self, key: SessionKey, confirmed: &Requests, interface: u32) {
        let Some(session) = self.sessions.get(&key) else { return };
        let egress: Arc<[u32]> = Arc::new([interface]);
        for ncf in messages(key, session, confirmed, Body::Confirmation) {
            let packet = encapsulation::wrap(
                ncf.emit(),
                session.encapsulation,
                (key.source, session.group),
                (self.config.hop_limit, true),
            );
            let egress = Egress::Group(egress.clone());
            self.out.down(Item::Transit(Transit { packet, ingress: None, egress }));
            self.counters.confirmations += 1;
        }
    }

    /// Sends NAKs to the next element towards the source. Of the options of the NAK that they follow they have what is
    /// about congestion, which is the receiver's; what was heard so far is this element's.
    pub(super) fn send_naks(&mut self, key: SessionKey, requests: &Requests, options: &Options) {
        let Some(session) = self.sessions.get(&key) else { return };
        let as_of = session.as_of();
        for mut nak in messages(key, session, requests, Body::Nak) {
            nak.options.congestion_feedback = options.congestion_feedback;
            nak.options.as_of = as_of;
            self.counters.naks_sent += 1;
            self.send_up(key, &nak);
        }
    }

    /// Sends a packet to the next element towards the source.
    pub(super) fn send_up(&mut self, key: SessionKey, packet: &Packet<'_>) {
        let Some(session) = self.sessions.get(&key) else { return };
        self.send_to(key, session.upstream, packet);
    }

    /// Sends a packet to one other element, or to the source.
    pub(super) fn send_to(&mut self, key: SessionKey, to: IpAddr, packet: &Packet<'_>) {
        let Some(session) = self.sessions.get(&key) else { return };
        let Some(own) = self.address(to) else { return };
        let packet =
            encapsulation::wrap(packet.emit(), session.upwards, (own, to), (self.config.hop_limit, false));
        self.out.down(Item::Packet(packet));
    }
}

/// The packets that name these requests, each with as many as fit.
pub(super) fn messages(
    key: SessionKey,
    session: &Session,
    requests: &Requests,
    body: fn(Nak) -> Body,
) -> Vec<Packet<'static>> {
    let numbers = |is_parity: bool| -> Vec<u32> {
        let of = |&(wanted, count): &(Wanted, u32)| match wanted {
            Wanted::Packet(number) => (!is_parity).then_some(number),
            Wanted::Parity(first) => is_parity.then_some(first | count.saturating_sub(1)),
        };
        requests.iter().filter_map(of).collect()
    };
    let mut messages = Vec::new();
    for is_parity in [false, true] {
        for numbers in numbers(is_parity).chunks(MAX_NUMBERS) {
            let [sequence, list @ ..] = numbers else { continue };
            let nak = Nak { sequence: *sequence, source: key.source, group: session.group };
            let options = Options { nak_list: list.to_vec(), ..Options::default() };
            let packet = Packet::new(key.tsi, session.port, body(nak));
            messages.push(Packet { is_parity, options, ..packet });
        }
    }
    messages
}
