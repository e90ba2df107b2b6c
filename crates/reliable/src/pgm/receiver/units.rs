//! Units out of packets: in the order of the source, or each whole message as soon as it is complete.

use std::collections::{BTreeMap, BTreeSet};

use hopcast_core::bytes::complete;

use super::Delivered;
use crate::pgm::framing::{self, Unit};
use crate::pgm::parity::Symbol;
use crate::pgm::wire::Fragment;
use crate::statistics::Deliveries;

/// Units of a source.
#[derive(Debug, Default)]
pub(super) struct Units {
    pub(super) is_framed: bool,
    /// The unit whose packets are passing: its first sequence number, and what there is of it.
    current: Option<(u64, Vec<u8>)>,
    /// Bytes that there are of units that are to come.
    coming: BTreeMap<u64, u64>,
    /// Units that were handed up before their turn.
    early: BTreeSet<u64>,
    /// Streams that have begun and not ended; at most [`MAX_STREAMS`].
    streams: BTreeSet<u16>,
    pub(super) deliveries: Deliveries,
    pub(super) malformed: u64,
}

/// Streams of a source at a time, as it may have itself.
const MAX_STREAMS: usize = 64;

impl Units {
    /// The first sequence number of the unit that a packet is in.
    pub(super) fn first(sequence: u64, symbol: &Symbol) -> u64 {
        symbol.fragment.map_or(sequence, |fragment| complete(fragment.first, u32::BITS, sequence))
    }

    /// Whether the fields of a packet's fragment make sense.
    pub(super) fn is_sound(sequence: u64, symbol: &Symbol, max_unit: u64) -> bool {
        let Some(fragment) = symbol.fragment else { return true };
        let end = u64::from(fragment.offset) + symbol.payload.len() as u64;
        let first = Self::first(sequence, symbol);
        !symbol.payload.is_empty()
            && end <= u64::from(fragment.length)
            && u64::from(fragment.length) <= max_unit
            && first <= sequence
            && (first == sequence) == (fragment.offset == 0)
    }

    /// A packet has come out of its turn: the message that is complete with it, if messages need not wait.
    pub(super) fn arrived(
        &mut self,
        sequence: u64,
        symbols: &BTreeMap<u64, Symbol>,
        out: &mut Vec<Delivered>,
    ) {
        let Some(symbol) = symbols.get(&sequence).filter(|_| self.is_framed) else { return };
        let first = Self::first(sequence, symbol);
        if let Some(fragment) = symbol.fragment {
            let there = self.coming.entry(first).or_default();
            *there += symbol.payload.len() as u64;
            if *there < u64::from(fragment.length) {
                return;
            }
        }
        let starts = symbols.get(&first).is_some_and(|start| framing::is_message(&start.payload));
        if !starts || self.early.contains(&first) {
            return;
        }
        let Some(bytes) = assemble(first, symbols) else { return };
        self.coming.remove(&first);
        self.early.insert(first);
        self.deliver(&bytes, out);
    }

    /// It is a packet's turn.
    pub(super) fn pass(&mut self, sequence: u64, symbol: &Symbol, out: &mut Vec<Delivered>) {
        let Some(fragment) = symbol.fragment else {
            self.give_up_current();
            if !self.early.remove(&sequence) {
                self.deliver(&symbol.payload, out);
            }
            return;
        };
        let first = Self::first(sequence, symbol);
        self.coming.remove(&first);
        let is_last = is_last(fragment, symbol);
        if self.early.contains(&first) {
            if is_last {
                self.early.remove(&first);
            }
            return;
        }
        if fragment.offset == 0 {
            self.give_up_current();
            self.current = Some((first, Vec::new()));
        }
        let Some((_, bytes)) = self
            .current
            .as_mut()
            .filter(|(unit, bytes)| *unit == first && bytes.len() == fragment.offset as usize)
        else {
            // Something of it is missing, which has been counted.
            return;
        };
        bytes.extend(&symbol.payload);
        if is_last && let Some((_, bytes)) = self.current.take() {
            if self.is_framed {
                self.deliver(&bytes, out);
            } else {
                self.deliveries.objects += 1;
                out.push(Delivered::Message { name: None, bytes });
            }
        }
    }

    /// Packets before a sequence number will never come: what they are part of is lost, and what is before them done.
    pub(super) fn lost(&mut self, before: u64, out: &mut Vec<Delivered>) {
        self.current = None;
        self.deliveries.given_up += 1;
        self.coming = self.coming.split_off(&before);
        self.early = self.early.split_off(&before);
        out.extend(std::mem::take(&mut self.streams).into_iter().map(Delivered::Missing));
    }

    fn give_up_current(&mut self) {
        if self.current.take().is_some() {
            self.deliveries.given_up += 1;
        }
    }

    fn deliver(&mut self, bytes: &[u8], out: &mut Vec<Delivered>) {
        if !self.is_framed {
            self.deliveries.messages += 1;
            out.push(Delivered::Datagram(bytes.to_vec()));
            return;
        }
        match Unit::read(bytes) {
            Ok(Unit::Datagram(bytes)) => {
                self.deliveries.messages += 1;
                out.push(Delivered::Datagram(bytes.to_vec()));
            }
            Ok(Unit::Message { name, bytes }) => {
                self.deliveries.objects += 1;
                out.push(Delivered::Message { name: name.map(<[u8]>::to_vec), bytes: bytes.to_vec() });
            }
            Ok(Unit::Stream { number, bytes, is_end }) => {
                self.deliveries.objects += u64::from(is_end);
                if is_end {
                    self.streams.remove(&number);
                } else if self.streams.len() < MAX_STREAMS {
                    self.streams.insert(number);
                }
                out.push(Delivered::Stream { number, bytes: bytes.to_vec(), is_end });
            }
            Err(_) => self.malformed += 1,
        }
    }
}

fn is_last(fragment: Fragment, symbol: &Symbol) -> bool {
    u64::from(fragment.offset) + symbol.payload.len() as u64 == u64::from(fragment.length)
}

/// A unit of which all packets are there; `None` if they are not, or do not fit each other.
fn assemble(first: u64, symbols: &BTreeMap<u64, Symbol>) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for (place, (&sequence, symbol)) in symbols.range(first..).enumerate() {
        if sequence != first + place as u64 || Units::first(sequence, symbol) != first {
            return None;
        }
        let Some(fragment) = symbol.fragment else { return Some(symbol.payload.clone()) };
        if fragment.offset as usize != bytes.len() {
            return None;
        }
        bytes.extend(&symbol.payload);
        if is_last(fragment, symbol) {
            return Some(bytes);
        }
    }
    None
}
