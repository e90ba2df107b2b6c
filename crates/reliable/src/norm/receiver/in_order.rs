//! Objects of a sender that are complete and wait for those sent before them.

use std::collections::BTreeMap;

use super::{Delivered, Delivery};

/// Objects that wait, by their numbers.
#[derive(Debug, Default)]
pub(super) struct InOrder {
    waiting: BTreeMap<u64, Vec<Delivery>>,
    bytes: u64,
}

impl InOrder {
    /// Memory of the deliveries that wait, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes what was added to `delivered` from a place on, and adds what waits for nothing any more: what belongs to
    /// objects up to `first`, the first of which more is wanted.
    pub(super) fn order(&mut self, delivered: &mut Vec<Delivery>, place: usize, first: u64) {
        for delivery in delivered.drain(place..) {
            self.bytes += delivery.memory();
            self.waiting.entry(delivery.object).or_default().push(delivery);
        }
        while let Some(entry) = self.waiting.first_entry().filter(|entry| *entry.key() <= first) {
            for delivery in entry.remove() {
                self.bytes -= delivery.memory();
                delivered.push(delivery);
            }
        }
    }
}

/// Bytes that a piece takes beside its contents, at least. Without it, empty messages would cost nothing.
const PIECE: u64 = size_of::<Delivery>() as u64;

impl Delivery {
    /// Memory that it takes, in bytes.
    fn memory(&self) -> u64 {
        let contents = match &self.what {
            Delivered::Object { bytes, .. } | Delivered::Bytes(bytes) | Delivered::Message(bytes) => {
                bytes.len()
            }
            Delivered::End | Delivered::Missing => 0,
        };
        PIECE + contents as u64
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;
    use crate::norm::wire::NodeId;

    fn delivery(object: u64, what: Delivered) -> Delivery {
        let address = SocketAddr::from(([10, 0, 0, 1], 1));
        Delivery { from: NodeId(1), address, object, what }
    }

    fn message(object: u64) -> Delivery {
        delivery(object, Delivered::Message(vec![0; 10]))
    }

    fn numbers(delivered: &[Delivery]) -> Vec<u64> {
        delivered.iter().map(|delivery| delivery.object).collect()
    }

    #[test]
    fn later_objects_wait_for_the_first_and_then_come_in_their_order() {
        let mut order = InOrder::default();
        let mut delivered = vec![message(99)];
        delivered.extend([message(7), message(6)]);
        order.order(&mut delivered, 1, 5);
        assert_eq!(
            (numbers(&delivered), order.bytes()),
            (vec![99], 2 * (PIECE + 10)),
            "of what was there, nothing is touched"
        );
        // The pieces of a stream come as long as it is the first.
        delivered.push(message(5));
        order.order(&mut delivered, 1, 5);
        assert_eq!(numbers(&delivered), [99, 5]);
        delivered.push(delivery(5, Delivered::End));
        order.order(&mut delivered, 2, 8);
        assert_eq!((numbers(&delivered), order.bytes()), (vec![99, 5, 5, 6, 7], 0));
    }
}
