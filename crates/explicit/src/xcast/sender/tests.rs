use std::net::{Ipv6Addr, SocketAddr};

use hopcast_core::{Buffer, Datagram, Egress, Instant, Item, Machine, Port, Transit};

use super::{Config, Sender};
use crate::testing::{at, receiver_address};
use crate::xcast::router::{Hop, NextHops};
use crate::xcast::wire::{Packet, overhead};

const NOW: Instant = Instant::ZERO;

/// All are behind one router on interface 0, but for odd ones, before which there is none.
struct Even;

impl NextHops for Even {
    fn next_hop(&mut self, destination: Ipv6Addr) -> Option<Hop> {
        let is_odd = destination.octets()[15] % 2 == 1;
        Some(if is_odd { Hop::Plain } else { Hop::Neighbour { interface: 0, address: at("fd14::99") } })
    }

    fn is_router(&self, _: Ipv6Addr) -> bool {
        false
    }

    fn attached(&self, _: Ipv6Addr) -> Option<u32> {
        None
    }
}

fn sender(config: Config, receivers: usize) -> Sender {
    // Even numbers of the last byte, each a neighbour's.
    let receivers = (0..2 * receivers).map(receiver_address).filter(|address| address.octets()[15] % 2 == 0);
    Sender::new(config, at("fd14::1"), at("ff18::1").into(), receivers, Box::new(Even))
}

/// The packets of a datagram of so many bytes to the group: the receivers that are marked in each, and its length.
fn sent(sender: &mut Sender, bytes: usize) -> Vec<(Vec<Ipv6Addr>, usize)> {
    let [local, remote] =
        [("fd14::1", 5000), ("ff18::1", 5001)].map(|(to, port)| SocketAddr::from((at(to), port)));
    let datagram = Datagram::new(local, remote, Buffer::copy_from(&vec![7; bytes]));
    sender.handle(NOW, Port::Above(0), Item::Datagram(datagram));
    let packets = std::iter::from_fn(|| sender.poll(NOW)).map(|item| match item {
        (Port::Below(1), Item::Transit(Transit { packet, ingress: None, egress })) => match egress {
            Egress::Neighbour { interface: 0, address } => {
                assert_eq!(address, at("fd14::99"));
                let read = Packet::parse(&packet).unwrap();
                let marked = read.marks.places().map(|place| read.list[place].into());
                (marked.collect(), packet.len())
            }
            Egress::Routes => (Vec::new(), packet.len()),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    });
    packets.collect()
}

#[test]
fn all_receivers_are_in_lists_that_are_no_longer_than_max() {
    let mut sender = sender(Config { max: 10, mtu: 1500 }, 25);
    let packets = sent(&mut sender, 1000);
    let lengths = packets.iter().map(|(list, len)| (list.len(), *len));
    let full = (10, 40 + 8 + 1000 + overhead(10, false));
    assert_eq!(lengths.collect::<Vec<_>>(), [full, full, (5, 40 + 8 + 1000 + overhead(5, false))]);
    let all: Vec<_> = packets.into_iter().flat_map(|(list, _)| list).collect();
    let expected = (0..50).map(receiver_address).filter(|address| address.octets()[15] % 2 == 0);
    assert_eq!(all, expected.collect::<Vec<_>>());
}

/// A tunnel around the packet fits too.
#[test]
fn a_list_is_as_long_as_fits_the_mtu_beside_the_datagram() {
    for bytes in [0, 500, 1200, 1300] {
        let mut sender = sender(Config { max: 125, mtu: 1400 }, 60);
        let packets = sent(&mut sender, bytes);
        let (longest, len) = packets.iter().map(|(list, len)| (list.len(), *len)).max().unwrap();
        match bytes {
            0 => assert_eq!((packets.len(), longest), (1, 60)),
            // Nothing but one receiver fits, and needs no list.
            1300 => assert_eq!((packets.len(), longest), (60, 0)),
            _ => assert!(len + 40 <= 1400 && len + 40 + 16 > 1400, "{bytes}: {len}"),
        }
    }
}

#[test]
fn who_leaves_is_listed_no_more_and_who_comes_is() {
    let mut sender = sender(Config::default(), 3);
    let [first, .., last] = &*sent(&mut sender, 10)[0].0.clone() else { panic!() };
    sender.leave(*first);
    let odd = (0..9).map(receiver_address).find(|address| address.octets()[15] % 2 == 1).unwrap();
    sender.join(odd);
    sender.join(*last);
    let packets = sent(&mut sender, 10);
    // The one that no router is before gets a plain packet.
    let [(none, _), (list, _)] = &*packets else { panic!("{packets:?}") };
    assert!(none.is_empty() && list.len() == 2 && list.contains(last) && !list.contains(first));
}

#[test]
fn what_is_not_for_the_group_passes() {
    let mut sender = sender(Config::default(), 3);
    let to = |remote: &str| {
        let remote = SocketAddr::from((at(remote), 7));
        Item::Datagram(Datagram::new(SocketAddr::from((at("fd14::1"), 7)), remote, Buffer::copy_from(b"x")))
    };
    sender.handle(NOW, Port::Above(0), to("fd14::9"));
    sender.handle(NOW, Port::Below(0), to("fd14::9"));
    let transit = Item::Transit(Transit::arrived(Buffer::copy_from(b"x"), 0));
    sender.handle(NOW, Port::Below(1), transit.clone());
    let passed: Vec<_> = std::iter::from_fn(|| sender.poll(NOW)).collect();
    let expected =
        [(Port::Below(0), to("fd14::9")), (Port::Above(0), to("fd14::9")), (Port::Below(1), transit)];
    assert_eq!(passed, expected);
}
