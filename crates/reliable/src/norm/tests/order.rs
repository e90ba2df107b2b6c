//! The order in which objects are handed up.

use hopcast_core::{Buffer, Duration, Instant, Item, Message};

use super::net::{Link, Net, contents};
use super::transfers::{lossy, objects, sender};
use crate::Proactive;
use crate::norm::wire::{
    Body, Data, Fec, Flags, Fti, Header, Message as Packet, NodeId, PayloadId, StreamHeader,
};
use crate::norm::{ReceiverConfig, SenderConfig};
use crate::{Join, Order, Subscription};

fn asked(order: Order) -> Subscription {
    Subscription { order, join: Join::Everything, is_reliable: true }
}

/// Sends objects of these sizes, and returns the sizes in the order in which a receiver had them.
fn order(seed: u64, sender: SenderConfig, asked: Subscription, loss: f64, sizes: &[usize]) -> Vec<usize> {
    let mut net = Net::star(seed, sender, &asked.into(), &[Link::default(), lossy(loss)]);
    for &size in sizes {
        let bytes = Buffer::copy_from(&contents(size, size as u64));
        net.give(0, Item::Message(Message::new(0, bytes)));
    }
    net.run(Duration::from_secs(30), |net| objects(net, 1).len() == sizes.len());
    let until = net.now.since(Instant::ZERO) + Duration::from_secs(10);
    net.run(until, |_| false);
    objects(&net, 1).iter().map(Vec::len).collect()
}

#[test]
fn a_senders_objects_keep_its_order_where_that_is_asked_for() {
    let sizes: Vec<usize> = (1..=20).map(|number| 40_000 - number * 1_900).collect();
    let mut overtaken = 0;
    for seed in 0..4 {
        assert_eq!(order(seed, sender(), asked(Order::BySender), 0.2, &sizes), sizes, "seed {seed}");
        let mut found = order(seed, sender(), asked(Order::AsComplete), 0.2, &sizes);
        overtaken += usize::from(found != sizes);
        found.sort_unstable_by(|one, other| other.cmp(one));
        assert_eq!(found, sizes, "seed {seed}");
    }
    assert!(overtaken > 0, "else the order shows nothing");
}

#[test]
fn what_is_given_up_holds_up_nothing_that_follows() {
    // Nobody asks for repairs, and there is hardly any parity.
    let sizes: Vec<usize> = (1..=20).map(|number| 40_000 - number * 1_900).collect();
    let unreliable = Subscription { is_reliable: false, ..asked(Order::BySender) };
    let config = SenderConfig { proactive: Proactive::Fixed(2), ..sender() };
    let found = order(5, config, unreliable, 0.1, &sizes);
    assert!(found.len() > 4 && found.len() < sizes.len(), "{found:?}");
    assert!(found.is_sorted_by(|one, other| one > other), "{found:?}");
}

#[test]
fn what_waits_for_an_object_that_never_comes_takes_bounded_memory() {
    let receiver = ReceiverConfig { max_object: 100_000, ..ReceiverConfig::from(asked(Order::BySender)) };
    let mut net = Net::star(6, sender(), &receiver, &[Link::default(), Link::default()]);
    let forge = |net: &mut Net, object: u16, flags: Flags, payload: &[u8], id: (u32, u16)| {
        let fti = Fti {
            fec: Fec::ReedSolomon8,
            object_size: 1000,
            segment: 1000,
            source: 1,
            parity: 0,
            field: 0,
            group: 0,
            instance: 0,
        };
        let data = Data {
            header: Header { instance: 3, grtt: 255, backoff: 15, group_size: 15 },
            flags,
            fec: Fec::ReedSolomon8,
            object,
            id: PayloadId { block: id.0, symbol: id.1, block_len: 0 },
            fti: Some(fti),
            payload,
        };
        let message = Packet { sequence: id.0 as u16, source: NodeId(9), body: Body::Data(data) };
        net.forge(1, 9, &message.emit());
    };
    // Objects that are whole, and a stream, after others of which nothing is heard.
    forge(&mut net, 2_000, Flags::default(), &[7; 1000], (0, 0));
    for number in 2_001..2_500 {
        forge(&mut net, number, Flags::default(), &[7; 1000], (0, 0));
    }
    for block in 0..5_000 {
        let mut symbol = vec![0; StreamHeader::LEN + 1];
        StreamHeader { length: 1, message_start: 0, offset: block }.write(&mut symbol);
        forge(&mut net, 2_500, Flags::STREAM, &symbol, (block, 0));
    }
    assert!(objects(&net, 1).is_empty());
    let (incomplete, decoded) = net.members[1].session.held();
    assert!(decoded > 50_000 && incomplete + decoded <= (16 << 20) + 102_000, "{incomplete}, {decoded}");
}
