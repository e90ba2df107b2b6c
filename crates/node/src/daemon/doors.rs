//! Where TCP connections come in and go out.

use std::collections::VecDeque;

use hopcast_core::plug::Destination;
use hopcast_core::{Instant, Item, Machine, Port, StreamId, StreamItem};

use crate::config::masked;

/// Several stream ports as one: connections that come in by any of `Below(0)` and `Below(1)` go up; what is opened from above
/// goes out by `Below(0)`, if it is for somebody that may be reached.
///
/// It keeps nothing of streams. A stream of a lower port has an odd number `2n + 1`, and above the number `2(2n + port) + 1`.
pub(crate) struct Doors {
    reach: Vec<Destination>,
    out: VecDeque<(Port, Item)>,
    taken: u64,
    reached: u64,
    refused: u64,
}

impl Doors {
    pub(crate) fn new(reach: Vec<Destination>) -> Self {
        Self { reach, out: VecDeque::new(), taken: 0, reached: 0, refused: 0 }
    }

    fn up(&mut self, side: u32, StreamId(id): StreamId, item: StreamItem) {
        self.taken += u64::from(matches!(item, StreamItem::Open { .. }));
        let id = if id.is_multiple_of(2) { id } else { 2 * ((id / 2) * 2 + u64::from(side)) + 1 };
        self.out.push_back((Port::Above(0), Item::Stream(StreamId(id), item)));
    }

    fn down(&mut self, StreamId(id): StreamId, item: StreamItem) {
        if let StreamItem::Open { remote, .. } = item {
            let remote = (remote.ip().to_canonical(), remote.port());
            let may = self.reach.iter().any(|to| {
                masked(remote.0, to.prefix) == to.network && to.port.is_none_or(|port| port == remote.1)
            });
            if !may {
                self.refused += 1;
                self.out.push_back((Port::Above(0), Item::Stream(StreamId(id), StreamItem::Reset)));
                return;
            }
            self.reached += 1;
        }
        let (side, id) = if id.is_multiple_of(2) { (0, id) } else { ((id / 2 % 2) as u32, 2 * (id / 4) + 1) };
        self.out.push_back((Port::Below(side), Item::Stream(StreamId(id), item)));
    }
}

impl Machine for Doors {
    fn handle(&mut self, _now: Instant, port: Port, item: Item) {
        match (port, item) {
            (Port::Below(side @ (0 | 1)), Item::Stream(id, item)) => self.up(side, id, item),
            (Port::Above(_), Item::Stream(id, item)) => self.down(id, item),
            _ => self.refused += 1,
        }
    }

    fn wake(&mut self, _now: Instant) {}

    fn poll(&mut self, _now: Instant) -> Option<(Port, Item)> {
        self.out.pop_front()
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        report("connections_taken", self.taken);
        report("connections_reached", self.reached);
        report("connections_refused", self.refused);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    const NOW: Instant = Instant::ZERO;

    fn doors() -> Doors {
        Doors::new(vec![Destination { network: "10.20.0.0".parse().unwrap(), prefix: 16, port: Some(443) }])
    }

    fn open(remote: &str) -> StreamItem {
        StreamItem::Open { local: "10.1.0.1:4000".parse().unwrap(), remote: remote.parse().unwrap() }
    }

    fn pass(doors: &mut Doors, port: Port, id: u64, item: StreamItem) -> (Port, u64, StreamItem) {
        doors.handle(NOW, port, Item::Stream(StreamId(id), item));
        match doors.poll(NOW) {
            Some((port, Item::Stream(StreamId(id), item))) => (port, id, item),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn streams_of_both_ports_have_numbers_of_their_own_above_and_find_back() {
        let mut doors = doors();
        let mut seen = std::collections::BTreeSet::new();
        for (side, id) in [(0, 1), (1, 1), (0, 3), (1, 3), (0, 5), (1, 77)] {
            let (port, above, _) = pass(&mut doors, Port::Below(side), id, open("10.20.0.1:443"));
            assert_eq!(port, Port::Above(0));
            assert!(above % 2 == 1 && seen.insert(above));
            let back = pass(&mut doors, Port::Above(0), above, StreamItem::Finish);
            assert_eq!(back, (Port::Below(side), id, StreamItem::Finish));
        }
        let out = pass(&mut doors, Port::Above(0), 4, open("10.20.0.1:443"));
        assert_eq!((out.0, out.1), (Port::Below(0), 4));
        assert_eq!(pass(&mut doors, Port::Below(0), 4, StreamItem::Opened).1, 4);
    }

    #[test]
    fn whoever_may_not_be_reached_is_not() {
        let mut doors = doors();
        for remote in ["10.21.0.1:443", "10.20.0.1:80", "127.0.0.1:443", "[::1]:443"] {
            assert_eq!(
                pass(&mut doors, Port::Above(0), 2, open(remote)),
                (Port::Above(0), 2, StreamItem::Reset)
            );
        }
        let mapped: SocketAddr = "[::ffff:10.20.0.1]:443".parse().unwrap();
        assert_eq!(pass(&mut doors, Port::Above(0), 2, open(&mapped.to_string())).0, Port::Below(0));
    }
}
