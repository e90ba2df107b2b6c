//! The packets that a member sends, and when.

use hopcast_core::{Buffer, Datagram, Instant, Item};

use super::super::cache::Value;
use super::super::config::Forwarding;
use super::super::series::{self, SeriesId};
use super::super::serving::{Part, Repair};
use super::super::wire::{
    DATA_OVERHEAD, Data, HEADER, MAX_HEARD, MAX_HELD, MAX_SERIES, MemberId, MessageId, Packet, Request, Sent,
    Series, Summary, Symbol, Want,
};
use super::{Peer, next_of};
use crate::statistics::Kind;

/// Bytes that wait to be sent up to which units are granted. Chosen: some packets more than leave between two wake-ups
/// of a program.
const WINDOW: u64 = 64 << 10;

/// Bytes of a summary up to which series are said of which there is no news. Chosen: some 20 of them; more cost bytes
/// at each of all others' news.
const OTHERS: usize = 300;

/// A packet that is no data.
#[derive(Clone, Debug)]
pub(super) enum Control {
    /// A request to servers, or to anyone if there are none.
    Request {
        /// Whether the same was asked for before in vain.
        is_again: bool,
        servers: Vec<MemberId>,
        wants: Vec<Want>,
    },
    Summary,
}

impl Peer {
    /// Does what is due, and sends what may be sent.
    pub(super) fn run(&mut self, now: Instant) {
        if !self.begun {
            self.begun = true;
            self.hand_up_held(now);
        }
        self.expire(now);
        if self.trickle.deadline() <= now {
            let links = self.config.links as usize;
            let searches =
                links > 1 && self.neighbours.interfaces(now).is_some_and(|interfaces| interfaces < links);
            if self.trickle.wake(now, searches) {
                self.control.push_back(Control::Summary);
            }
        }
        while self.asking.deadline().is_some_and(|at| at <= now) {
            self.catalogue.find_incomplete();
            let incomplete: Vec<_> = self.catalogue.incomplete().map(|(id, _)| id).collect();
            incomplete.into_iter().for_each(|id| self.lose_patience(now, id));
            let (asking, mut view) = self.asking();
            if let Some((server, is_again, wants)) = asking.wake(now, &mut view) {
                let servers = server.into_iter().collect();
                self.control.push_back(Control::Request { is_again, servers, wants });
            }
        }
        while self.pacer.departure() <= now && self.send_next(now) {}
        let unit = u64::from(self.config.policy.fragment);
        self.credit.grant(WINDOW, self.unsent_bytes, unit, &mut self.out);
    }

    /// Sends the next packet: requests and summaries, then repairs and what is sent on, then what is new. Whether there
    /// was one.
    fn send_next(&mut self, now: Instant) -> bool {
        if let Some(control) = self.control.pop_front() {
            self.send_control(now, control);
            return true;
        }
        loop {
            while let Some((id, repair, is_last)) = self.serving.next(now, &mut self.random) {
                if self.send_repair(now, id, repair, is_last) {
                    return true;
                }
            }
            if !self.push(now) {
                break;
            }
        }
        if let Some((id, index)) = self.forwards.next(now, &self.neighbours) {
            self.counted.forwarded += 1;
            return self.send_fragment(now, id, index, (Kind::Repair, false, false));
        }
        self.send_new(now)
    }

    /// Takes what is pushed next, now that nothing else is to be repaired; whether there is something.
    fn push(&mut self, now: Instant) -> bool {
        let Some(id) = self.pushes.next(now, &self.catalogue, &self.cache, &self.neighbours) else {
            return false;
        };
        // What is yet to be sent is sent to all.
        let is_sent = next_of(id.into(), &self.unsent).is_none_or(|(next, _)| id.sequence < next.sequence);
        if let Some(message) = self.cache.get(id).filter(|_| is_sent) {
            self.serving.push(now, id, message);
        }
        true
    }

    fn send_new(&mut self, now: Instant) -> bool {
        while let Some(&(id, index)) = self.unsent.front() {
            let Some(fragments) = self.cache.get(id).map(|message| message.shape.fragments()) else {
                self.unsent.pop_front();
                continue;
            };
            let is_last = index + 1 >= fragments;
            if is_last {
                self.unsent.pop_front();
                self.cache.set_value(id, Value::Done);
                if self.unsent.is_empty() {
                    // Whoever has lost the end learns of it by this.
                    self.trickle.reset(now);
                }
            } else if let Some(front) = self.unsent.front_mut() {
                front.1 += 1;
            }
            let len = self.cache.get(id).map_or(0, |message| message.shape.fragment_len(index));
            self.unsent_bytes = self.unsent_bytes.saturating_sub(len as u64);
            if self.send_fragment(now, id, index, (Kind::Data, false, is_last)) {
                return true;
            }
        }
        self.unsent_bytes = 0;
        false
    }

    fn send_repair(&mut self, now: Instant, id: MessageId, repair: Repair, is_last: bool) -> bool {
        let chunk = match repair {
            Repair::Fragment(index) => {
                return self.send_fragment(now, id, index, (Kind::Repair, true, is_last));
            }
            Repair::Combination(chunk) => chunk,
        };
        let message = self.cache.get(id);
        let Some((coefficients, bytes)) =
            message.and_then(|message| message.combination(chunk, &mut self.random))
        else {
            return false;
        };
        let symbol = Symbol::Combination { chunk, coefficients: &coefficients, bytes: &bytes };
        self.send_data(now, id, symbol, (Kind::Repair, true, is_last))
    }

    fn send_fragment(&mut self, now: Instant, id: MessageId, index: u32, how: (Kind, bool, bool)) -> bool {
        let Some(bytes) = self.cache.get(id).and_then(|message| message.fragment(index)).map(<[u8]>::to_vec)
        else {
            return false;
        };
        self.send_data(now, id, Symbol::Fragment { index, bytes: &bytes }, how)
    }

    fn send_data(
        &mut self,
        now: Instant,
        id: MessageId,
        symbol: Symbol<'_>,
        (kind, is_repair, is_last): (Kind, bool, bool),
    ) -> bool {
        let Some(message) = self.cache.get(id) else { return false };
        let lifetime =
            message.expires.map(|at| u32::try_from(at.since(now).as_millis()).unwrap_or(u32::MAX).max(1));
        let (shape, from) = (message.shape, self.next_transmission());
        let part = match symbol {
            Symbol::Fragment { index, .. } => Part::Fragment(index),
            Symbol::Combination { chunk, .. } => Part::Chunk(chunk),
        };
        self.serving.sends(now, self.transmissions, id, part);
        if is_repair {
            self.pushes.sends_repair(now);
        }
        if is_last {
            self.pushes.sent(now, id);
        }
        let is_local = self.config.policy.forwarding == Forwarding::None;
        let data = Data { from, id, shape, is_repair, is_last, is_local, lifetime, symbol };
        self.send(now, kind, &Packet::Data(data));
        true
    }

    fn send_control(&mut self, now: Instant, control: Control) {
        let neighbours = u16::try_from(self.neighbours.count(now)).unwrap_or(u16::MAX);
        match control {
            Control::Request { is_again, servers, wants } => {
                let server = servers.first().and_then(|&server| self.neighbours.get(server));
                let heard = server.map_or(0, |server| server.transmission);
                let from = self.next_transmission();
                self.counted.requests.sent += 1;
                let request = Request { from, is_again, neighbours, heard, servers, wants };
                self.send(now, Kind::Feedback, &Packet::Request(request));
            }
            Control::Summary => {
                let from = self.next_transmission();
                let summary = self.summary(now, from, neighbours);
                self.send(now, Kind::Control, &Packet::Summary(summary));
            }
        }
    }

    /// A summary of what this member knows and holds: the series of which there was news of late, and some of the
    /// others, which take turns.
    fn summary(&mut self, now: Instant, from: Sent, neighbours: u16) -> Summary {
        let policy = &self.config.policy;
        let is_told = policy.forwarding == Forwarding::Topology;
        let heard = if is_told { self.neighbours.nodes(now, MAX_HEARD) } else { Vec::new() };
        let room = usize::from(policy.fragment) + DATA_OVERHEAD - SUMMARY_HEADER - 4 * heard.len();
        let recent = policy.summaries.1 * 2;
        let (news, others): (Vec<_>, Vec<_>) =
            self.catalogue.iter().partition(|(_, series)| now.since(series.last_rise()) < recent);
        let first = if self.page < others.len() { self.page } else { 0 };
        let (mut series, mut bytes, mut said_others) = (Vec::new(), 0, 0);
        // Who is not asked what it lacks is brought it by what it says.
        let place = self.pushes.is_on().then(|| self.random.uniform());
        let turns = others[first..].iter().chain(&others[..first]).map(|other| (other, OTHERS.min(room)));
        for (&(id, known), room) in news.iter().map(|one| (one, room)).chain(turns) {
            said_others += usize::from(now.since(known.last_rise()) >= recent);
            let Some(said) = self.said(id, known, place) else { continue };
            let len = said.len();
            if bytes + len > room || series.len() == MAX_SERIES {
                break;
            }
            bytes += len;
            series.push(said);
        }
        self.page = if others.is_empty() { 0 } else { (first + said_others) % others.len() };
        let is_all = series.len() == self.catalogue.len();
        Summary { from, neighbours, heard, is_all, series }
    }

    /// State of a series for a summary; `None` for one of which all messages still wait to be sent. Where members are
    /// brought what they lack, each second summary of one that has more runs than fit speaks of others, by a place
    /// among all summaries from 0 to 1.
    fn said(&self, id: SeriesId, known: &series::Series, place: Option<f64>) -> Option<Series> {
        let unsent = (id.publisher == self.config.member).then(|| next_of(id, &self.unsent)).flatten();
        let newest = match unsent {
            // Whoever was told of more would ask for it.
            Some((next, 0)) => next.sequence.checked_sub(1)?,
            Some((next, _)) => next.sequence,
            None => known.newest,
        };
        let held = known.held.ranges().map(|run| run.start..run.end.min(newest + 1));
        let mut held: Vec<_> = held.filter(|run| !run.is_empty()).collect();
        let is_wanted = self.asking.asks_for(known);
        let latest = held.len().saturating_sub(MAX_HELD);
        let first = match place {
            Some(place) if place >= 0.5 && !is_wanted => {
                let page = (2.0 * place - 1.0) * latest.div_ceil(MAX_HELD) as f64;
                (page as usize * MAX_HELD).min(latest)
            }
            _ => latest,
        };
        let end = held.len().min(first + MAX_HELD);
        let said = place.filter(|_| held.len() >= MAX_HELD).map(|_| {
            let from = if first == 0 { 0 } else { held[first - 1].end };
            from..held.get(end).map_or(newest + 1, |next| next.start)
        });
        let held = held.drain(first..end).collect();
        Some(Series { group: id.group, publisher: id.publisher, is_wanted, newest, held, said })
    }

    const fn next_transmission(&mut self) -> Sent {
        self.transmissions += 1;
        Sent { member: self.config.member, transmission: self.transmissions as u16 }
    }

    fn send(&mut self, now: Instant, kind: Kind, packet: &Packet<'_>) {
        let bytes = packet.emit();
        self.counted.traffic.add(kind, bytes.len());
        let len = bytes.len() as u64 + u64::from(self.config.overhead);
        self.pacer.sent(now, self.config.policy.rate, len);
        let to = self.all();
        self.out.down(Item::Datagram(Datagram::new(self.config.local, to, Buffer::copy_from(&bytes))));
    }
}

/// Bytes of a summary before its nodes and series.
const SUMMARY_HEADER: usize = HEADER + 2 + 1;
