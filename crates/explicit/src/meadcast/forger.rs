//! A node that forges responses to discovery, for studies of what they cost.
//!
//! The thesis injected such responses by hand (section 4.6, "anomaly handling"): some receivers got no data any more,
//! and data went to who had sent them (section 5.2.1). Here a node on the way answers each request that passes it, in
//! the name of itself or of an address that nobody has, and serves nobody. What it makes use of is what it
//! [`Knows`]: one that makes no use of the request's nonce stands for one that is not on the way and has heard of the
//! receivers elsewhere.

use std::net::{IpAddr, Ipv6Addr};

use hopcast_core::{Instant, Item, Outbox, Pace, Port, Reactive, Transit};

use super::wire::{Kind, MAX_HOPS, Packet, short};
use super::{Key, Statement};
use crate::address::of_ipv6;
use crate::pace;

/// Hop limit of responses, as of a router's.
const HOP_LIMIT: u8 = 255;

/// The knowledge that a forger makes use of; each has that of those before it too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Knows {
    /// Nothing: it forges no responses.
    Nothing,
    /// The addresses of sender and receivers.
    Addresses,
    /// The nonces of requests, as whoever is on the way.
    #[default]
    Requests,
    /// The key of the domain, as a router that has been taken over.
    Key,
}

/// The settings of a forger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The knowledge that it makes use of. Default: the nonces of requests.
    pub knows: Knows,
    /// The router that responses are from. Default: `None`, which is the node itself. An address that nobody has takes
    /// the packets of its list to nobody.
    pub router: Option<Ipv6Addr>,
    /// Distance of that router in MEADcast hops, 0 to 63. Default: 63, so that receivers seem to be behind it and no
    /// other. 0 is the node's own distance.
    pub hops: u8,
    /// Key of the domain, for one that [`Knows::Key`]. Default: none.
    pub key: Option<Key>,
    /// Maximum number of responses in a second, a tenth of them at once. Default: 10,000, as a router's.
    pub responses_per_second: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            knows: Knows::default(),
            router: None,
            hops: MAX_HOPS,
            key: None,
            responses_per_second: 10_000,
        }
    }
}

/// A node that forges responses; see the [module's documentation](self). Everything that it is given goes on as it was.
pub struct Forger {
    config: Config,
    /// The router that responses are from; none of IPv6, and it forges nothing.
    router: Option<Ipv6Addr>,
    responses: Pace,
    list: short::List,
    out: Outbox,
    /// Responses sent.
    forged: u64,
    /// Packets of data that it saw whose list has the router that it names.
    captured: u64,
    /// Responses that it did not send, for their rate.
    too_many: u64,
    wrong_items: u64,
}

impl Forger {
    /// A forger at a node with these addresses.
    pub fn new(config: Config, addresses: &[IpAddr]) -> Self {
        Self {
            config,
            router: config.router.or_else(|| of_ipv6(addresses).first().copied()),
            responses: pace(config.responses_per_second),
            list: short::List::default(),
            out: Outbox::new(),
            forged: 0,
            captured: 0,
            too_many: 0,
            wrong_items: 0,
        }
    }

    fn receive(&mut self, now: Instant, transit: Transit) {
        match self.router {
            Some(router) if short::is_short(&transit.packet) => {
                let is_whole = short::Packet::parse(&transit.packet, &mut self.list).is_ok();
                self.captured += u64::from(is_whole && self.list.addresses.contains(&router.octets()));
            }
            Some(router) => {
                if let Ok(packet) = Packet::parse(&transit.packet) {
                    self.read(now, &packet, router);
                }
            }
            None => {}
        }
        self.out.down(Item::Transit(transit));
    }

    fn read(&mut self, now: Instant, packet: &Packet<'_>, router: Ipv6Addr) {
        match packet.kind {
            Kind::Data { .. } => self.captured += u64::from(packet.list.contains(&router.octets())),
            Kind::Request { nonce } if self.config.knows != Knows::Nothing => {
                self.forge(now, packet, nonce, router);
            }
            Kind::Request { .. } | Kind::Response { .. } => {}
        }
    }

    fn forge(&mut self, now: Instant, request: &Packet<'_>, nonce: u64, router: Ipv6Addr) {
        if !self.responses.is_ready(now) {
            self.too_many += 1;
            return;
        }
        self.responses.sent(now, 1);
        self.forged += 1;
        let hops = if self.config.hops == 0 { request.hops + 1 } else { self.config.hops }.min(MAX_HOPS);
        let statement = Statement {
            nonce: if self.config.knows >= Knows::Requests { nonce } else { 0 },
            sender: request.source,
            router,
            receiver: request.destination,
            hops,
        };
        let key = self.config.key.filter(|_| self.config.knows == Knows::Key);
        self.out.down(Item::Packet(statement.response(key.as_ref(), HOP_LIMIT)));
    }
}

impl Reactive for Forger {
    fn react(&mut self, now: Instant, port: Port, item: Item) {
        match (port, item) {
            (Port::Below(0), Item::Transit(transit)) => self.receive(now, transit),
            _ => self.wrong_items += 1,
        }
    }

    fn next(&mut self) -> Option<(Port, Item)> {
        self.out.pop()
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        report("forger_responses", self.forged);
        report("forger_responses_too_many", self.too_many);
        report("forger_captured", self.captured);
        report("forger_wrong_items", self.wrong_items);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meadcast::wire::NO_NEXT_HEADER;
    use crate::testing::{at, counter};

    const KEY: Key = Key::new([7; 16]);
    const NONCE: u64 = 5;

    fn request(receiver: &str) -> Transit {
        let list = [at(receiver).octets()];
        let packet = Packet {
            traffic: 0,
            hop_limit: 60,
            source: at("fd14::1"),
            destination: at(receiver),
            kind: Kind::Request { nonce: NONCE },
            hops: 2,
            hold: 0,
            reserved: 0,
            list: &list,
            ports: None,
            protocol: NO_NEXT_HEADER,
            payload: &[],
        };
        Transit::arrived(packet.emit(), 1)
    }

    /// The responses to a request, which goes on as it was.
    fn forged(forger: &mut Forger) -> Vec<(Statement, Option<[u8; 16]>)> {
        let sent = request("fd14::2");
        forger.react(Instant::ZERO, Port::Below(0), Item::Transit(sent.clone()));
        let mut responses = Vec::new();
        let mut passed = None;
        while let Some((_, item)) = forger.next() {
            match item {
                Item::Packet(packet) => {
                    let packet = Packet::parse(&packet).unwrap();
                    let Kind::Response { nonce, code } = packet.kind else { panic!("{packet:?}") };
                    let (sender, router) = (packet.destination, packet.source);
                    let receiver = packet.list[0].into();
                    responses.push((Statement { nonce, sender, router, receiver, hops: packet.hops }, code));
                }
                item => passed = Some(item),
            }
        }
        assert_eq!(passed, Some(Item::Transit(sent)));
        responses
    }

    #[test]
    fn it_says_what_it_knows_and_no_more() {
        let said = |nonce| Statement {
            nonce,
            sender: at("fd14::1"),
            router: at("fd14::dead"),
            receiver: at("fd14::2"),
            hops: 63,
        };
        for (knows, expected) in [
            (Knows::Nothing, None),
            (Knows::Addresses, Some((said(0), None))),
            (Knows::Requests, Some((said(NONCE), None))),
            (Knows::Key, Some((said(NONCE), Some(KEY.code(&said(NONCE)))))),
        ] {
            let router = Some(at("fd14::dead"));
            let config = Config { knows, router, key: Some(KEY), ..Config::default() };
            let mut forger = Forger::new(config, &[at("fd14::9").into()]);
            assert_eq!(forged(&mut forger), Vec::from_iter(expected), "{knows:?}");
        }
    }

    #[test]
    fn in_its_own_name_and_at_its_own_distance_it_is_a_router_that_does_not_serve() {
        let mut forger = Forger::new(Config { hops: 0, ..Config::default() }, &[at("fd14::9").into()]);
        let (said, _) = forged(&mut forger)[0];
        assert_eq!((said.router, said.hops), (at("fd14::9"), 3));
        let mut nobody = Forger::new(Config::default(), &[IpAddr::from([10, 0, 0, 1])]);
        assert!(forged(&mut nobody).is_empty());
    }

    #[test]
    fn its_rate_is_bounded() {
        let config = Config { responses_per_second: 20, ..Config::default() };
        let mut forger = Forger::new(config, &[at("fd14::9").into()]);
        let sent: usize = (0..5).map(|_| forged(&mut forger).len()).sum();
        assert_eq!((sent, counter(&forger, "forger_responses_too_many")), (2, 3));
    }
}
