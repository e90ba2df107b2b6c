//! A tree of routers, some of which speak Xcast, with receivers at any of them.

use std::collections::VecDeque;

use super::*;
use crate::testing::{path, receiver_address, router_address};

pub(super) struct Net {
    parents: Vec<usize>,
    routers: Vec<Option<Router>>,
    receivers: BTreeMap<Ipv6Addr, usize>,
    /// Packets that came to each receiver.
    pub(super) received: BTreeMap<Ipv6Addr, Vec<Buffer>>,
    /// Copies of a packet that crossed each link, by the node below it.
    pub(super) crossed: BTreeMap<usize, usize>,
}

impl Net {
    /// A network of routers, each with the one above it and whether it speaks Xcast, of which the first does; and the
    /// routers of receivers. Each knows the next that speak it, as neighbours or by tunnels.
    pub(super) fn new(tree: &[(usize, bool)], places: &[usize]) -> Self {
        let parents: Vec<usize> = tree.iter().map(|(parent, _)| *parent).collect();
        let speaks = |number: usize| number == 0 || tree[number].1;
        let receivers: BTreeMap<Ipv6Addr, usize> =
            places.iter().enumerate().map(|(number, &place)| (receiver_address(number), place)).collect();
        let routers =
            (0..tree.len()).filter(|&number| speaks(number)).map(router_address).collect::<Vec<_>>();
        let table = |from: usize| {
            let hop = |(&receiver, &place): (&Ipv6Addr, &usize)| {
                let path = path(&parents, place);
                let own = path.iter().position(|&router| router == from)?;
                let next = path[own + 1..].iter().position(|&router| speaks(router));
                let hop = match next {
                    None => Hop::Plain,
                    Some(0) => Hop::Neighbour {
                        interface: path[own + 1] as u32,
                        address: router_address(path[own + 1]),
                    },
                    Some(ahead) => Hop::Tunnel(router_address(path[own + 1 + ahead])),
                };
                Some((receiver, hop))
            };
            Table {
                hops: receivers.iter().filter_map(hop).collect(),
                routers: routers.clone(),
                ..Table::default()
            }
        };
        let machine = |number: usize| {
            let addresses = [router_address(number).into()];
            speaks(number).then(|| Router::new(Config::default(), &addresses, Box::new(table(number))))
        };
        let routers = (0..tree.len()).map(machine).collect();
        Self { parents, routers, receivers, received: BTreeMap::new(), crossed: BTreeMap::new() }
    }

    /// Brings a packet from the sender, which is at the first router, to its ends.
    pub(super) fn send(&mut self, packet: Buffer) {
        let mut line = VecDeque::from([(0, packet)]);
        let mut steps = 0;
        while let Some((node, packet)) = line.pop_front() {
            steps += 1;
            assert!(steps < 100_000, "packets that never end");
            let is_tunnel_end = ip::parse(&packet).unwrap().destination == IpAddr::from(router_address(node));
            let is_xcast = Packet::parse(&packet).is_ok();
            let left = match &mut self.routers[node] {
                Some(router) if is_tunnel_end || is_xcast => {
                    answers(router, NOW, Transit::arrived(packet, 0))
                }
                None if is_xcast => panic!("a packet of Xcast at a router that knows none"),
                _ => vec![Left::Plain(packet)],
            };
            for left in left {
                match left {
                    Left::Neighbour(interface, _, mut packet) => {
                        assert!(ip::decrement_hop_limit(&mut packet));
                        *self.crossed.entry(interface as usize).or_default() += 1;
                        line.push_back((interface as usize, packet));
                    }
                    Left::Plain(mut packet) => {
                        assert!(ip::decrement_hop_limit(&mut packet));
                        self.forward(node, packet, &mut line);
                    }
                    Left::Own(packet) => self.forward(node, packet, &mut line),
                }
            }
        }
    }

    fn forward(&mut self, node: usize, packet: Buffer, line: &mut VecDeque<(usize, Buffer)>) {
        let IpAddr::V6(to) = ip::parse(&packet).unwrap().destination else { panic!("IPv6") };
        let own = (0..self.parents.len()).find(|&number| router_address(number) == to);
        let Some(&end) = own.as_ref().or(self.receivers.get(&to)) else { panic!("{to}") };
        if end == node {
            self.received.entry(to).or_default().push(packet);
            return;
        }
        let path = path(&self.parents, end);
        let place = path.iter().position(|&router| router == node).expect("all goes down");
        *self.crossed.entry(path[place + 1]).or_default() += 1;
        line.push_back((path[place + 1], packet));
    }
}
