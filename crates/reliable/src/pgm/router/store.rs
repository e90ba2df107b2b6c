//! Data packets that were kept on their way, from which a designated local repairer answers NAKs.

use std::collections::{BTreeMap, VecDeque};

use hopcast_core::{Buffer, Instant};

/// Packets of sessions `K`; those that were kept first are dropped first.
#[derive(Debug)]
pub(super) struct Store<K> {
    packets: BTreeMap<(K, u32), Kept>,
    order: VecDeque<(K, u32)>,
    bytes: usize,
    max: usize,
}

#[derive(Debug)]
struct Kept {
    packet: Buffer,
    /// The time until which a NAK is answered already, by interface.
    answered: BTreeMap<u32, Instant>,
}

/// Answer to a NAK.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The packet, to be sent as a repair.
    Repair(Buffer),
    /// It was sent on the interface a moment ago.
    Sent,
}

impl<K: Copy + Ord> Store<K> {
    /// A store of up to `max` bytes.
    pub(super) const fn new(max: usize) -> Self {
        Self { packets: BTreeMap::new(), order: VecDeque::new(), bytes: 0, max }
    }

    /// Whether nothing is ever kept.
    pub(super) const fn is_off(&self) -> bool {
        self.max == 0
    }

    /// Keeps a packet; the first one of a number stays.
    pub(super) fn keep(&mut self, session: K, sequence: u32, packet: &Buffer) {
        let key = (session, sequence);
        if self.is_off() || self.packets.contains_key(&key) {
            return;
        }
        self.bytes += Buffer::footprint(packet.len());
        self.packets.insert(key, Kept { packet: packet.clone(), answered: BTreeMap::new() });
        self.order.push_back(key);
        while self.bytes > self.max
            && let Some(oldest) = self.order.pop_front()
        {
            if let Some(kept) = self.packets.remove(&oldest) {
                self.bytes -= Buffer::footprint(kept.packet.len());
            }
        }
    }

    /// The answer to a NAK on an interface; `None` if the packet is not here. Until `until` others are answered by it.
    pub(super) fn answer(
        &mut self,
        now: Instant,
        (session, sequence): (K, u32),
        interface: u32,
        until: Instant,
    ) -> Option<Answer> {
        let kept = self.packets.get_mut(&(session, sequence))?;
        if kept.answered.get(&interface).is_some_and(|&until| now < until) {
            return Some(Answer::Sent);
        }
        kept.answered.insert(interface, until);
        Some(Answer::Repair(kept.packet.clone()))
    }
}

#[cfg(test)]
mod tests {
    use hopcast_core::Duration;

    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn the_oldest_packets_make_room() {
        let packet = Buffer::zeroed(1000);
        let mut store = Store::new(3 * Buffer::footprint(1000));
        (0..5).for_each(|n| store.keep('s', n, &packet));
        let held = |store: &mut Store<char>, n| store.answer(at(0), ('s', n), 1, at(0)).is_some();
        assert_eq!(
            (0..6).map(|n| held(&mut store, n)).collect::<Vec<_>>(),
            [false, false, true, true, true, false]
        );
        assert!(store.bytes <= store.max && store.order.len() == 3);
    }

    #[test]
    fn two_naks_of_a_link_are_answered_by_one_repair() {
        let packet = Buffer::zeroed(100);
        let mut store = Store::new(100_000);
        store.keep('s', 7, &packet);
        let mut ask = |ms, interface| store.answer(at(ms), ('s', 7), interface, at(ms + 100));
        assert_eq!(ask(0, 1), Some(Answer::Repair(packet.clone())));
        assert_eq!(ask(99, 1), Some(Answer::Sent));
        assert_eq!(ask(99, 2), Some(Answer::Repair(packet.clone())), "another link has not had it");
        assert_eq!(ask(100, 1), Some(Answer::Repair(packet)));
    }

    #[test]
    fn a_store_without_room_keeps_nothing() {
        let mut store = Store::new(0);
        store.keep('s', 1, &Buffer::zeroed(10));
        assert!(store.answer(at(0), ('s', 1), 1, at(0)).is_none() && store.order.is_empty());
    }
}
