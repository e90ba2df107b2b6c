//! Source path state (RFC 3208, section 7.1): for each session, where its SPMs come from.

use std::net::IpAddr;

use hopcast_core::{Duration, Instant};

use super::encapsulation::Encapsulation;
use super::redirect::Redirect;
use super::repair::{Repairs, Wanted};
use super::window::{Window, distance};
use crate::pgm::wire::{AsOf, Nak, Packet, Spm, Tsi};

/// A session: a TSI alone could be claimed by whoever sends an SPM of it, so it counts with its source's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SessionKey {
    pub(super) source: IpAddr,
    pub(super) tsi: Tsi,
}

/// The time after the last SPM at which an older one is taken for that of a source that began anew. Chosen: longer than
/// a packet is on its way, and shorter than users wait.
const STALE_AFTER: Duration = Duration::from_secs(10);
/// The time without SPMs after which a session may make room for another. Chosen: ten times OpenPGM's longest interval
/// of SPMs, 30 s.
const GONE_AFTER: Duration = Duration::from_secs(300);
/// Maximum size of a transmission group. RFC 3208, section 11.8.1, has none; parity of one with more packets than our
/// codes have symbols cannot be asked for.
const MAX_GROUP: u32 = 1 << 16;

#[derive(Debug)]
pub(super) struct Session {
    /// Data-destination port.
    pub(super) port: u16,
    pub(super) group: IpAddr,
    /// Address of the next element towards the source, or of the source.
    pub(super) upstream: IpAddr,
    /// The interface towards it.
    pub(super) ingress: u32,
    /// Headers of packets to the group.
    pub(super) encapsulation: Encapsulation,
    /// Headers of packets towards the source: those of the last request, whose sender may have been told the ports that
    /// sources listen on.
    pub(super) upwards: Encapsulation,
    /// Number of the last SPM.
    spm: u32,
    heard: Instant,
    /// When its first SPM came.
    pub(super) began: Instant,
    pub(super) window: Window,
    /// Packets of a transmission group, if there is parity.
    parity: Option<u32>,
    /// Whether parity is sent unasked.
    is_proactive: bool,
    /// Whether the source sends all repairs that it was asked for before it sends anything else.
    repairs_first: bool,
    pub(super) repairs: Repairs,
    pub(super) redirect: Redirect,
}

impl Session {
    pub(super) fn new(now: Instant, spm: &Spm, packet: &Packet<'_>, from: Origin) -> Self {
        let mut session = Self {
            port: packet.port,
            group: from.group,
            upstream: spm.path,
            ingress: from.ingress,
            encapsulation: from.encapsulation,
            upwards: from.encapsulation.towards_source(),
            spm: spm.sequence,
            heard: now,
            began: now,
            window: Window::new(spm.trail, spm.lead),
            parity: None,
            is_proactive: false,
            repairs_first: false,
            repairs: Repairs::default(),
            redirect: Redirect::default(),
        };
        session.set(now, spm, packet, from);
        session
    }

    /// Follows an SPM; false of one that is no newer than the last.
    pub(super) fn follow(&mut self, now: Instant, spm: &Spm, packet: &Packet<'_>, from: Origin) -> bool {
        let is_newer = distance(spm.sequence, self.spm) > 0 || now.since(self.heard) > STALE_AFTER;
        if is_newer {
            self.set(now, spm, packet, from);
        }
        is_newer
    }

    fn set(&mut self, now: Instant, spm: &Spm, packet: &Packet<'_>, from: Origin) {
        let Origin { group, ingress, encapsulation } = from;
        if encapsulation != self.encapsulation {
            self.upwards = encapsulation.towards_source();
        }
        (self.port, self.group, self.ingress, self.encapsulation) =
            (packet.port, group, ingress, encapsulation);
        (self.upstream, self.spm, self.heard) = (spm.path, spm.sequence, now);
        self.window = Window::new(spm.trail, spm.lead);
        let parity = packet.options.parity.filter(|parity| parity.group <= MAX_GROUP);
        self.parity = parity.map(|parity| parity.group);
        self.is_proactive = parity.is_some_and(|parity| parity.proactive);
        self.repairs_first = packet.options.member.is_some_and(|member| member.repairs_first);
    }

    /// What has passed by so far, for a source that reads it. Repairs that it has sent before that have passed by too,
    /// and were forwarded only where they had been asked for; those that it sent after that find the request here.
    pub(super) fn as_of(&self) -> Option<AsOf> {
        self.repairs_first.then(|| AsOf { lead: self.window.lead(), spm: self.spm })
    }

    /// Whether parity may be such that was sent unasked: it comes before the data of the next transmission group, and
    /// nobody asks before that.
    pub(super) fn may_be_unasked(&self, wanted: Wanted) -> bool {
        let Wanted::Parity(first) = wanted else { return false };
        let last = first.wrapping_add(self.parity.unwrap_or(1) - 1);
        self.is_proactive && distance(last, self.window.lead()) >= 0
    }

    /// Whether it may make room for another.
    pub(super) fn is_gone(&self, now: Instant) -> bool {
        now.since(self.heard) > GONE_AFTER
    }

    /// What a NAK or NCF names, each with the number of packets; `None` in place of what the source does not have.
    pub(super) fn wanted(&self, packet: &Packet<'_>, nak: &Nak) -> Vec<Option<(Wanted, u32)>> {
        let numbers = [nak.sequence].into_iter().chain(packet.options.nak_list.iter().copied());
        numbers.map(|number| self.wanted_by(packet.is_parity, number)).collect()
    }

    fn wanted_by(&self, is_parity: bool, number: u32) -> Option<(Wanted, u32)> {
        if !is_parity {
            return self.window.has(number, 1).then_some((Wanted::Packet(number), 1));
        }
        let len = self.parity?;
        let first = number & !(len - 1);
        self.window.has(first, len).then_some((Wanted::Parity(first), number - first + 1))
    }

    /// What a repair with this number is an answer to.
    pub(super) fn answered_by(&self, is_parity: bool, number: u32) -> Wanted {
        match self.parity.filter(|_| is_parity) {
            Some(len) => Wanted::Parity(number & !(len - 1)),
            None => Wanted::Packet(number),
        }
    }
}

/// Where an SPM came from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    pub(super) group: IpAddr,
    pub(super) ingress: u32,
    pub(super) encapsulation: Encapsulation,
}
