//! A firewall: drops packets that its host would forward.
//!
//! `Below(0)` carries [`Item::Transit`]: up, all packets in transit; down, those that pass. It neither sees what its
//! host sends nor what is for its host, and it drops nothing that is for a group of the link.

use std::net::IpAddr;

use hopcast_core::{Hook, Instant, Item, Outbox, Port, Reactive, Transit};
use hopcast_wire::ip::{self, Header};

use crate::groups::is_link_scope;

/// The packets that a firewall takes out of its host.
pub const HOOKS: [Hook; 1] = [Hook::All];

/// Number of IPv6's routing header (RFC 8200 section 4.4).
const ROUTING: u8 = 43;

/// Settings of a firewall.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Packets to drop. Default: none.
    pub drop: Vec<Rule>,
    /// Time from which on they are dropped. Default: the beginning.
    pub from: Instant,
    /// Time from which on all pass again. Default: never.
    pub until: Option<Instant>,
}

/// Packets that are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Their kind.
    pub kind: Match,
    /// The port that they are for, of UDP and TCP; `None` for any. A fragment shows none.
    pub port: Option<u16>,
}

/// A kind of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// IPv6 packets with a routing header.
    RoutingHeader,
    /// UDP.
    Udp,
    /// TCP.
    Tcp,
    /// ICMP and ICMPv6.
    Icmp,
    /// All packets.
    All,
}

impl Match {
    /// Every kind, with the name of its counter.
    const ALL: [(Self, &'static str); 5] = [
        (Self::RoutingHeader, "firewall_dropped_routing_header"),
        (Self::Udp, "firewall_dropped_udp"),
        (Self::Tcp, "firewall_dropped_tcp"),
        (Self::Icmp, "firewall_dropped_icmp"),
        (Self::All, "firewall_dropped_all"),
    ];
}

impl Rule {
    fn selects(self, header: &Header, packet: &[u8]) -> bool {
        let protocol = match self.kind {
            Match::RoutingHeader => return ip::extension(packet, ROUTING).is_some(),
            Match::All => return true,
            Match::Icmp => return matches!(header.protocol, ip::ICMP | ip::ICMPV6),
            Match::Udp => ip::UDP,
            Match::Tcp => ip::TCP,
        };
        let to = || ip::ports(packet.get(header.payload()).unwrap_or_default()).map(|(_, to)| to);
        header.protocol == protocol && self.port.is_none_or(|port| !header.fragment && to() == Some(port))
    }
}

/// A firewall; see the [module's documentation](self).
#[derive(Debug)]
pub struct Firewall {
    config: Config,
    passed: u64,
    dropped: [u64; Match::ALL.len()],
    wrong_items: u64,
    out: Outbox,
}

impl Firewall {
    /// A firewall with these settings.
    pub fn new(config: Config) -> Self {
        Self { config, passed: 0, dropped: [0; Match::ALL.len()], wrong_items: 0, out: Outbox::new() }
    }

    /// The first rule that selects a packet.
    fn rule(&self, now: Instant, packet: &[u8]) -> Option<Rule> {
        let Config { drop, from, until } = &self.config;
        if now < *from || until.is_some_and(|until| until <= now) {
            return None;
        }
        let stays_on_link = |to: IpAddr| to.is_multicast() && is_link_scope(to);
        let header = ip::parse(packet).ok().filter(|header| !stays_on_link(header.destination))?;
        drop.iter().copied().find(|rule| rule.selects(&header, packet))
    }
}

impl Reactive for Firewall {
    fn react(&mut self, now: Instant, port: Port, item: Item) {
        match (port, item) {
            (Port::Below(_), Item::Transit(transit)) => self.judge(now, transit),
            _ => self.wrong_items += 1,
        }
    }

    fn next(&mut self) -> Option<(Port, Item)> {
        self.out.pop()
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        report("firewall_passed", self.passed);
        Match::ALL.iter().zip(self.dropped).for_each(|(&(_, name), count)| report(name, count));
        report("firewall_wrong_items", self.wrong_items);
    }
}

impl Firewall {
    fn judge(&mut self, now: Instant, transit: Transit) {
        match self.rule(now, &transit.packet) {
            Some(rule) => {
                self.dropped[rule.kind as usize] += 1;
                transit.packet.recycle();
            }
            None => {
                self.passed += 1;
                self.out.down(Item::Transit(transit));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use hopcast_core::{Buffer, Duration, Machine};

    use super::*;

    fn packet(to: &str, protocol: u8, content: &[u8]) -> Buffer {
        let to: IpAddr = to.parse().unwrap();
        let from = if to.is_ipv4() { "10.0.0.1" } else { "fd00::1" };
        let mut packet = Buffer::default();
        packet.prepend(content.len()).copy_from_slice(content);
        ip::prepend(&mut packet, from.parse().unwrap(), to, protocol, 64, 0);
        packet
    }

    /// To port 80.
    const PORTS: [u8; 8] = [0x12, 0x34, 0, 80, 0, 8, 0, 0];
    /// A routing header of type 253 with no address, in front of UDP.
    const ROUTED: [u8; 16] = [17, 0, 253, 0, 0, 0, 0, 0, 0x12, 0x34, 0, 80, 0, 8, 0, 0];

    fn passes(firewall: &mut Firewall, now: u64, packet: Buffer) -> bool {
        let now = Instant::ZERO + Duration::from_secs(now);
        firewall.handle(now, Port::Below(0), Item::Transit(Transit::arrived(packet.clone(), 1)));
        let back = firewall.poll(now);
        assert_eq!(firewall.poll(now), None);
        let unchanged = (Port::Below(0), Item::Transit(Transit::arrived(packet, 1)));
        assert!(back.is_none() || back == Some(unchanged));
        back.is_some()
    }

    #[test]
    fn what_a_rule_selects_is_dropped_and_all_else_passes_unchanged() {
        let all = || {
            [
                packet("fd00::9", ROUTING, &ROUTED),
                packet("fd00::9", ip::UDP, &PORTS),
                packet("10.0.0.9", ip::UDP, &PORTS),
                packet("10.0.0.9", ip::TCP, &PORTS),
                packet("10.0.0.9", ip::ICMP, &[8, 0, 0, 0]),
                packet("ff02::5", ip::UDP, &PORTS),
                packet("239.1.1.1", ip::UDP, &PORTS),
            ]
        };
        for (kind, port, expected) in [
            (Match::RoutingHeader, None, [false, true, true, true, true, true, true]),
            (Match::Udp, None, [false, false, false, true, true, true, false]),
            (Match::Udp, Some(80), [false, false, false, true, true, true, false]),
            (Match::Udp, Some(0x1234), [true; 7]),
            (Match::Tcp, Some(80), [true, true, true, false, true, true, true]),
            (Match::Icmp, None, [true, true, true, true, false, true, true]),
            (Match::All, None, [false, false, false, false, false, true, false]),
        ] {
            let drop = vec![Rule { kind, port }];
            let mut firewall = Firewall::new(Config { drop, ..Config::default() });
            let found = all().map(|packet| passes(&mut firewall, 0, packet));
            assert_eq!(found, expected, "{kind:?} {port:?}");
            let (mut dropped, mut passed) = (0, 0);
            Machine::counters(&firewall, &mut |name, value| {
                dropped += if name.starts_with("firewall_dropped_") { value } else { 0 };
                passed += if name == "firewall_passed" { value } else { 0 };
            });
            assert_eq!(passed, expected.iter().filter(|&&one| one).count() as u64);
            assert_eq!(dropped + passed, 7);
        }
    }

    #[test]
    fn it_drops_from_its_time_until_its_end() {
        let (from, until) = (Instant::ZERO + Duration::from_secs(2), Instant::ZERO + Duration::from_secs(4));
        let drop = vec![Rule { kind: Match::All, port: None }];
        let mut firewall = Firewall::new(Config { drop, from, until: Some(until) });
        let found: Vec<bool> =
            (0..6).map(|now| passes(&mut firewall, now, packet("10.0.0.9", ip::UDP, &PORTS))).collect();
        assert_eq!(found, [true, true, false, false, true, true]);
    }

    #[test]
    fn each_kind_has_a_place_of_its_own() {
        for (place, (kind, name)) in Match::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, place, "{name}");
        }
    }
}
