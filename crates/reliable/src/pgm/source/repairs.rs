//! Requests and their repairs (RFC 3208, sections 5 and 11).
//!
//! A request is confirmed at once, to the whole group, and its repairs are sent before new data. A receiver of ours
//! says as of which data and SPM it lacks something: repairs that were sent after these count towards it, so that a
//! request that crosses its answer on the way is not answered twice. Of other receivers' requests this is guessed by
//! time.

use std::collections::VecDeque;

use hopcast_core::bytes::complete;
use hopcast_core::{Buffer, Duration, Instant};

use super::window::{Group, Window};
use super::{Mark, Source};
use crate::pgm::wire::{AsOf, Body, Nak, Packet};
use crate::statistics::Kind;

/// What is to be repaired, in the order of requests, and confirmed.
#[derive(Debug, Default)]
pub(super) struct Repairs {
    queue: VecDeque<Repair>,
    confirmations: VecDeque<Buffer>,
}

#[derive(Clone, Copy, Debug)]
enum Repair {
    /// A packet again.
    Packet(u64),
    /// Parity of a transmission group, until as much was sent as is promised.
    Parity(u64),
}

/// Time after a repair in which a request that does not say what its receiver had heard counts as one that was on its
/// way. Chosen: the round trip of a local network; less answers some of them twice, more delays the next repairs.
const HOLD: Duration = Duration::from_millis(20);
/// Time by which confirmations may take sending ahead, beside some packets'; requests beyond it are not confirmed.
/// Chosen: a storm of forged requests then costs this much of the rate.
const MAX_DEBT: Duration = Duration::from_millis(100);

impl Repairs {
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.confirmations.is_empty()
    }

    pub(super) fn confirmation(&mut self) -> Option<Buffer> {
        self.confirmations.pop_front()
    }

    /// Promises `count` parity packets of a group beyond those that are promised.
    pub(super) fn promise(&mut self, window: &mut Window, first: u64, count: usize) {
        if let Some(group) = window.group(first) {
            group.promised += count as u64;
            self.enqueue(first, group);
        }
    }

    fn enqueue(&mut self, first: u64, group: &mut Group) {
        if group.promised > group.sent && !std::mem::replace(&mut group.is_queued, true) {
            self.queue.push_back(Repair::Parity(first));
        }
    }
}

impl Source {
    /// Takes a request.
    pub(in crate::pgm) fn nak(&mut self, now: Instant, packet: &Packet<'_>, nak: &Nak) {
        self.counts.nacks += 1;
        if packet.is_parity && self.parity.is_none() {
            return;
        }
        if let (Some(control), Some(feedback)) = (&mut self.control, &packet.options.congestion_feedback) {
            control.feedback(now, feedback);
        }
        let as_of = packet.options.as_of.map(|as_of| self.mark(now, as_of));
        let numbers: Vec<u64> = std::iter::once(nak.sequence)
            .chain(packet.options.nak_list.iter().copied())
            .map(|number| self.number(number))
            .collect();
        let (trail, next) = (self.window.trail(), self.window.next());
        let mut known = Vec::new();
        for number in numbers {
            if number < trail || number >= next {
                // An SPM says what there is.
                self.counts.too_late += u64::from(number < trail);
                self.schedule.request(now);
                continue;
            }
            self.window.asked(now, number);
            let is_taken = if packet.is_parity {
                self.ask_parity(now, number, as_of)
            } else {
                self.ask_packet(now, number, as_of)
            };
            if is_taken {
                known.push(number);
            }
        }
        self.confirm(now, packet.is_parity, nak, &known);
        if self.repairs.queue.is_empty() {
            // Whoever asks for what was sent learns that it was.
            self.schedule.request(now);
        }
    }

    fn mark(&self, now: Instant, as_of: AsOf) -> Mark {
        let spm = complete(as_of.spm, u32::BITS, self.spm);
        Mark { lead: self.number(as_of.lead), spm, at: now }
    }

    /// Confirms a request, so that others need not make it.
    fn confirm(&mut self, now: Instant, is_parity: bool, nak: &Nak, numbers: &[u64]) {
        let debt = self.pacer.departure().since(now);
        if debt > MAX_DEBT + self.packet_time() * 2 {
            return;
        }
        // Those of groups that were ended early say so, each in a packet of its own.
        let size = |number: u64| {
            let first = self.window.group_of(number);
            let size = self.window.size(first);
            (is_parity && (size as u64) < self.window.full() as u64).then_some(size as u32)
        };
        let (short, whole): (Vec<u64>, Vec<u64>) =
            numbers.iter().partition(|&&number| size(number).is_some());
        let lists = short.iter().map(|&number| vec![number]).chain((!whole.is_empty()).then_some(whole));
        let mut confirmations = Vec::new();
        for list in lists {
            let Some((&first, rest)) = list.split_first() else { continue };
            let nak = Nak { sequence: first as u32, source: self.addresses.0, group: nak.group };
            let mut packet = Packet::new(self.session, self.port, Body::Confirmation(nak));
            packet.is_parity = is_parity;
            packet.options.nak_list = rest.iter().map(|&number| number as u32).collect();
            packet.options.group_size = size(first);
            confirmations.push(packet.emit());
        }
        self.repairs.confirmations.extend(confirmations);
    }

    /// Takes a request for a packet again. False if there is no such packet.
    fn ask_packet(&mut self, now: Instant, sequence: u64, as_of: Option<Mark>) -> bool {
        let Some(sent) = self.window.packet(sequence) else { return false };
        let is_crossing = sent.repaired.is_some_and(|mark| !is_known(mark, as_of, now));
        if !is_crossing && !std::mem::replace(&mut sent.is_queued, true) {
            self.repairs.queue.push_back(Repair::Packet(sequence));
        }
        true
    }

    /// Takes a request for parity: the group's first number plus that of packets less one.
    fn ask_parity(&mut self, now: Instant, number: u64, as_of: Option<Mark>) -> bool {
        let first = self.window.group_of(number);
        let count = number - first + 1;
        let size = self.window.size(first) as u64;
        let Some(group) = self.window.group(first) else { return false };
        let known = group.known(as_of, now);
        group.is_asked = true;
        group.promised = group.promised.max(known + count.min(size));
        self.repairs.enqueue(first, group);
        true
    }

    /// The next repair.
    pub(super) fn repair(&mut self, now: Instant) -> Option<Buffer> {
        while let Some(&repair) = self.repairs.queue.front() {
            let mark = Mark { lead: self.window.lead(), spm: self.spm, at: now };
            let bytes = match repair {
                Repair::Packet(sequence) => {
                    self.repairs.queue.pop_front();
                    self.again(sequence, mark)
                }
                Repair::Parity(first) => self.parity_packet(first, mark),
            };
            if let Some(bytes) = bytes {
                let bytes = self.send(now, Kind::Repair, bytes);
                self.schedule.repair(now, self.packet_time());
                return Some(bytes);
            }
        }
        None
    }

    fn again(&mut self, sequence: u64, mark: Mark) -> Option<Buffer> {
        let sent = self.window.packet(sequence)?;
        sent.is_queued = false;
        sent.repaired = Some(mark);
        let (payload, fragment) = (Buffer::copy_from(&sent.symbol.payload), sent.symbol.fragment);
        Some(self.data_packet(mark.at, true, sequence, fragment).emit_before(payload))
    }

    /// The next parity packet of a group. `None` once as many were sent as are promised, or if it is gone.
    fn parity_packet(&mut self, first: u64, mark: Mark) -> Option<Buffer> {
        let sendable = self.window.group(first).filter(|group| group.promised > group.sent);
        let Some(group) = sendable else {
            self.repairs.queue.pop_front();
            if let Some(group) = self.window.group(first) {
                group.is_queued = false;
            }
            return None;
        };
        let index = (group.sent % u64::from(self.config.parity.max(1))) as usize;
        group.note_sent(mark);
        let code = self.parity.as_ref()?;
        let symbol = code.encode(index, &self.window.symbols(first))?;
        self.counts.parity += 1;
        let size = code.group();
        let mut packet = self.data_packet(mark.at, true, first + (index % size) as u64, symbol.fragment);
        packet.is_parity = true;
        packet.is_variable = symbol.is_variable;
        packet.options.parity_group = (index >= size).then_some((index / size) as u32);
        Some(packet.emit_before(Buffer::copy_from(&symbol.payload)))
    }
}

impl Group {
    /// Number of parity packets that whoever asks had heard of, or lost.
    fn known(&self, as_of: Option<Mark>, now: Instant) -> u64 {
        let unknown = self.marks.iter().rev().take_while(|&&mark| !is_known(mark, as_of, now)).count();
        self.sent - unknown as u64
    }

    fn note_sent(&mut self, mark: Mark) {
        self.sent += 1;
        self.marks.push_back(mark);
        if self.marks.len() > MAX_MARKS {
            self.marks.pop_front();
        }
    }
}

/// Parity packets of a group whose times are remembered: as many as a group can have.
const MAX_MARKS: usize = 256;

/// Whether a repair came, or was lost, before a request was made.
fn is_known(repair: Mark, as_of: Option<Mark>, now: Instant) -> bool {
    match as_of {
        Some(as_of) => as_of.lead > repair.lead || as_of.spm > repair.spm,
        None => now.since(repair.at) >= HOLD,
    }
}
