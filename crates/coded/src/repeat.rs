//! A repetition code: each datagram is sent several times, and delivered once.
//!
//! ```text
//! 0        4
//! | number | payload      number: of the datagram, from 0, network order
//! ```
//!
//! *Scope and departures*: the copies leave at once, so that a burst of losses may take all of them; nothing puts
//! datagrams that overtake each other back in order.

use hopcast_core::{Datagram, Instant, Item, Outbox, Port, Reactive, RecentNumbers};

/// Numbers behind the newest one of which it is known whether they have been delivered, as a power of two. A copy that
/// is later is dropped. Chosen: it bounds memory; with fewer, paths of different delay lose copies.
const WINDOW_BITS: u32 = 10;

/// One end: a datagram port above and one below.
pub struct Repeat {
    copies: u8,
    next: u32,
    arrived: RecentNumbers,
    out: Outbox,
    sent: u64,
    delivered: u64,
    duplicates: u64,
    malformed: u64,
    wrong_items: u64,
}

impl Repeat {
    /// Bytes in front of each payload: its number, 32 bits.
    pub const HEADER: usize = 4;

    /// An end that sends each datagram `copies` times, and at least once.
    pub fn new(copies: u8) -> Self {
        Self {
            copies: copies.max(1),
            next: 0,
            arrived: RecentNumbers::new(WINDOW_BITS),
            out: Outbox::new(),
            sent: 0,
            delivered: 0,
            duplicates: 0,
            malformed: 0,
            wrong_items: 0,
        }
    }

    fn send(&mut self, mut datagram: Datagram) {
        datagram.payload.prepend(Self::HEADER).copy_from_slice(&self.next.to_be_bytes());
        self.next = self.next.wrapping_add(1);
        self.sent += u64::from(self.copies);
        for _ in 1..self.copies {
            self.out.down(Item::Datagram(datagram.clone()));
        }
        self.out.down(Item::Datagram(datagram));
    }

    fn receive(&mut self, mut datagram: Datagram) {
        let Some((number, _)) = datagram.payload.split_first_chunk() else {
            self.malformed += 1;
            return;
        };
        if self.arrived.is_first(u32::from_be_bytes(*number)) {
            datagram.payload.advance(Self::HEADER);
            self.delivered += 1;
            self.out.up(Item::Datagram(datagram));
        } else {
            self.duplicates += 1;
        }
    }
}

impl Reactive for Repeat {
    fn react(&mut self, _: Instant, port: Port, item: Item) {
        match (port, item) {
            (Port::Above(_), Item::Datagram(datagram)) => self.send(datagram),
            (Port::Below(_), Item::Datagram(datagram)) => self.receive(datagram),
            _ => self.wrong_items += 1,
        }
    }

    fn next(&mut self) -> Option<(Port, Item)> {
        self.out.pop()
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        report("copies_sent", self.sent);
        report("datagrams_delivered", self.delivered);
        report("duplicates_received", self.duplicates);
        report("malformed", self.malformed);
        report("wrong_items", self.wrong_items);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use hopcast_core::{Buffer, Machine};
    use proptest::prelude::*;

    use super::*;

    fn counters(repeat: &Repeat) -> BTreeMap<&'static str, u64> {
        let mut counters = BTreeMap::new();
        Machine::counters(repeat, &mut |name, value| {
            counters.insert(name, value);
        });
        counters
    }

    fn datagram(payload: &[u8]) -> Datagram {
        let at = "10.0.0.1:7".parse().unwrap();
        Datagram::new(at, at, Buffer::copy_from(payload))
    }

    #[test]
    fn each_datagram_is_sent_several_times_and_delivered_once() {
        let (mut from, mut to) = (Repeat::new(3), Repeat::new(3));
        for payload in [b"a", b"b"] {
            from.handle(Instant::ZERO, Port::Above(0), Item::Datagram(datagram(payload)));
        }
        let sent: Vec<_> = std::iter::from_fn(|| from.poll(Instant::ZERO)).collect();
        assert_eq!((sent.len(), counters(&from)["copies_sent"]), (6, 6));
        for (_, item) in sent {
            to.handle(Instant::ZERO, Port::Below(0), item);
        }
        let delivered: Vec<_> = std::iter::from_fn(|| to.poll(Instant::ZERO)).collect();
        let expected = [b"a", b"b"].map(|payload| (Port::Above(0), Item::Datagram(datagram(payload))));
        assert_eq!(delivered, expected);
    }

    #[test]
    fn a_datagram_without_a_whole_number_is_dropped_and_counted() {
        let mut repeat = Repeat::new(2);
        repeat.handle(Instant::ZERO, Port::Below(0), Item::Datagram(datagram(&[0, 0, 0])));
        assert_eq!(repeat.poll(Instant::ZERO), None);
        assert_eq!(counters(&repeat)["malformed"], 1);
    }

    proptest! {
        #[test]
        fn nothing_is_delivered_twice_whatever_arrives(arriving in prop::collection::vec(prop::collection::vec(0..3u8, 0..8), 1..200)) {
            let mut repeat = Repeat::new(2);
            for bytes in &arriving {
                repeat.handle(Instant::ZERO, Port::Below(0), Item::Datagram(datagram(bytes)));
            }
            let delivered = std::iter::from_fn(|| repeat.poll(Instant::ZERO)).count();
            let whole = arriving.iter().filter_map(|bytes| bytes.first_chunk::<4>());
            let numbers = whole.collect::<std::collections::BTreeSet<_>>().len();
            prop_assert!(delivered <= numbers, "{} of {}", delivered, numbers);
            let counted = counters(&repeat);
            let [delivered, duplicates, malformed] =
                ["datagrams_delivered", "duplicates_received", "malformed"].map(|name| counted[name]);
            prop_assert_eq!(delivered + duplicates + malformed, arriving.len() as u64);
        }
    }
}
