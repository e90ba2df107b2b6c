//! Whichever frames of ARP and neighbour discovery are lost, every packet is delivered or dropped, and requests end.

#![allow(clippy::unwrap_used)]

use crate::segment::*;
use hopcast_core::{Buffer, Duration, Machine};
use hopcast_host::NeighbourConfig;
use hopcast_wire::{arp, ethernet, ip, nd};
use proptest::prelude::*;

/// Milliseconds to wait, who sends, to whom (one of them is not there), and the version.
fn sends() -> impl Strategy<Value = Vec<(u64, usize, usize, bool)>> {
    let wait = prop_oneof![0u64..1_500, 5_000u64..60_000];
    proptest::collection::vec((wait, 0usize..3, 0usize..4, any::<bool>()), 1..30)
}

/// A frame that is nearly one of ARP or neighbour discovery to host 0.
fn nearly_a_neighbour() -> impl Strategy<Value = Buffer> {
    let bytes = proptest::collection::vec(any::<u8>(), 0..60);
    let changes = proptest::collection::vec((0usize..90, any::<u8>()), 0..3);
    (bytes, 0u8..4, any::<u8>(), any::<[bool; 3]>(), changes).prop_map(
        |(bytes, shape, number, [to_all, router, solicited], changes)| {
            let other = usize::from(number % 6);
            let (source, own) = (mac(other), mac(0));
            let mut frame = Buffer::default();
            let ether_type = match shape {
                0 | 1 => {
                    let IpAddrs { v4: (from, to), .. } = addresses(other);
                    let operation = [arp::Operation::Request, arp::Operation::Reply][usize::from(shape)];
                    let sender = arp::Station { mac: source, address: from };
                    let target = arp::Station { mac: own, address: to };
                    arp::prepend(&mut frame, &arp::Packet { operation, sender, target });
                    arp::ETHER_TYPE
                }
                2 => {
                    let IpAddrs { v6: (from, to), .. } = addresses(other);
                    let flags = nd::Flags { router, solicited, replaces: number < 128 };
                    let message = match to_all {
                        true => nd::Message::Solicitation { target: to, source: Some(source) },
                        false => nd::Message::Advertisement { target: from, mac: Some(source), flags },
                    };
                    nd::prepend(&mut frame, from, to, &message);
                    ip::prepend(&mut frame, from.into(), to.into(), ip::ICMPV6, 255, 0);
                    ethernet::IPV6
                }
                _ => {
                    frame = Buffer::copy_from(&bytes);
                    if router { arp::ETHER_TYPE } else { ethernet::IPV6 }
                }
            };
            let destination = if to_all { ethernet::BROADCAST } else { own };
            ethernet::prepend(&mut frame, ethernet::Header { destination, source, ether_type });
            for (at, byte) in changes {
                if let Some(place) = frame.get_mut(at) {
                    *place = byte;
                }
            }
            frame
        },
    )
}

/// The addresses of a host and of host 0.
struct IpAddrs {
    v4: (std::net::Ipv4Addr, std::net::Ipv4Addr),
    v6: (std::net::Ipv6Addr, std::net::Ipv6Addr),
}

fn addresses(host: usize) -> IpAddrs {
    use std::net::IpAddr::{V4, V6};
    let pair = |v6| (address(host, v6), address(0, v6));
    let ((V4(one), V4(other)), (V6(six), V6(own))) = (pair(false), pair(true)) else {
        unreachable!("each version has addresses of its own")
    };
    IpAddrs { v4: (one, other), v6: (six, own) }
}

proptest! {
    #[test]
    fn any_losses_end_in_delivery_or_in_an_error_and_nothing_waits_for_ever(
        sends in sends(),
        losses in proptest::collection::vec(any::<bool>(), 0..60),
    ) {
        let mut link = Segment::new(3);
        let mut losses = losses.into_iter();
        link.lose = Box::new(move |frame| is_resolution(frame) && losses.next().unwrap_or(false));
        let mut sent = 0;
        for (number, &(wait, from, to, v6)) in (0..).zip(&sends) {
            link.pass(Duration::from_millis(wait));
            if from != to {
                link.send(from, address(to, v6), number);
                sent += 1;
            }
        }
        link.pass(seconds(3600));
        let ended: u64 = (0..3)
            .map(|host| {
                let dropped = link.counter(host, "neighbour_queue_dropped");
                dropped + (link.received[host].len() + link.errors[host].len()) as u64
            })
            .sum();
        prop_assert_eq!(ended, sent);
        prop_assert_eq!(link.deadline(), None);
    }

    #[test]
    fn no_frames_make_a_host_panic_or_hold_more_than_its_table(
        frames in proptest::collection::vec((nearly_a_neighbour(), 0u64..9_000, 0usize..6), 1..60),
    ) {
        let config = NeighbourConfig { entries: 3, ..NeighbourConfig::default() };
        let mut link = Segment::with(1, config);
        for (frame, wait, to) in frames {
            link.inject(&frame);
            link.send(0, address(to, wait % 2 == 0), 1);
            link.pass(Duration::from_millis(wait));
        }
        link.pass(seconds(60));
        prop_assert_eq!(link.hosts[0].deadline(), None);
    }
}
