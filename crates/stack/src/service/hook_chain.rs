//! Several machines on one hook of a kernel, of which a packet goes through each in turn.
//!
//! A simulated host has a list of hooks. A kernel takes a packet out once, for the first plug that selects it, and what
//! a plug hands back no other one sees. So machines with the same selection share a plug.

use hopcast_core::{Egress, Instant, Item, Outbox, Port, Reactive, Transit};

/// The machines of one hook: `Below(0)` is the plug, and each has a port above.
///
/// As on a simulated host, a packet that one hands back to the routes goes on to the next. All else leaves at once.
#[derive(Default)]
pub struct HookChain {
    /// The ports above, in the order of the machines.
    order: Vec<u32>,
    /// Number of those that come first, of services.
    services: usize,
    out: Outbox,
}

impl HookChain {
    /// Adds a machine, and returns its port: services are before all others.
    pub fn add(&mut self, is_service: bool) -> Port {
        let port = self.order.len() as u32;
        if is_service {
            self.order.insert(self.services, port);
            self.services += 1;
        } else {
            self.order.push(port);
        }
        Port::Above(port)
    }

    /// The port of the machine behind one.
    fn behind(&self, port: u32) -> Option<u32> {
        let place = self.order.iter().position(|&other| other == port)?;
        self.order.get(place + 1).copied()
    }
}

impl Reactive for HookChain {
    fn react(&mut self, _: Instant, port: Port, item: Item) {
        match (port, item) {
            (Port::Below(_), item) => {
                if let Some(&first) = self.order.first() {
                    self.out.push(Port::Above(first), item);
                }
            }
            (Port::Above(from), Item::Transit(transit)) => {
                let is_handed_back =
                    matches!(transit, Transit { ingress: Some(_), egress: Egress::Routes, .. });
                match self.behind(from).filter(|_| is_handed_back) {
                    Some(next) => self.out.push(Port::Above(next), Item::Transit(transit)),
                    None => self.out.down(Item::Transit(transit)),
                }
            }
            (Port::Above(_), item) => self.out.down(item),
        }
    }

    fn next(&mut self) -> Option<(Port, Item)> {
        self.out.pop()
    }
}

#[cfg(test)]
mod tests {
    use hopcast_core::{Buffer, Machine};

    use super::*;

    #[test]
    fn a_packet_goes_from_services_to_others_and_then_to_the_plug() {
        let mut chain = HookChain::default();
        let ports = [false, true, false, true].map(|is_service| chain.add(is_service));
        let mut given = |from: Port, item: Item| {
            chain.handle(Instant::ZERO, from, item);
            let (to, _) = chain.poll(Instant::ZERO).unwrap();
            assert!(chain.poll(Instant::ZERO).is_none());
            to
        };
        let transit =
            |ingress, egress| Item::Transit(Transit { packet: Buffer::copy_from(b""), ingress, egress });
        let handed_back = || transit(Some(0), Egress::Routes);
        let order = [ports[1], ports[3], ports[0], ports[2]];
        assert_eq!(given(Port::Below(0), handed_back()), order[0]);
        for (from, to) in order.into_iter().zip(order.into_iter().skip(1).chain([Port::Below(0)])) {
            assert_eq!(given(from, handed_back()), to);
        }
        // What a machine sends of its own, or by an interface, is not for others.
        let named = Egress::Group([1].into());
        for item in
            [transit(None, Egress::Routes), transit(Some(0), named), Item::Packet(Buffer::copy_from(b""))]
        {
            assert_eq!(given(order[0], item), Port::Below(0));
        }
    }
}
