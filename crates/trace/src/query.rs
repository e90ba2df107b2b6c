//! The language of queries: which packets to follow.
//!
//! ```text
//! query    = term { ["and"] term }
//! term     = "arp" | "icmp" | "nd" | "igmp" | "udp" | "tcp" | "ip"
//!          | "from" WHO | "to" WHO | "between" WHO "and" WHO | "group" NAME
//!          | "port" NUMBER | "vlan" NUMBER | "at" WHERE | "flow" NAME | "packet" NUMBER | "frame" "at" TIME
//! WHO      = a node, a group, an IP address or an Ethernet address
//! WHERE    = a node, or one of its interfaces as NODE:INTERFACE
//! TIME     = a number and `s`, `ms`, `us` or `ns`
//! ```
//!
//! A packet is chosen if all terms hold for it.

use std::collections::BTreeSet;
use std::net::IpAddr;

use hopcast_config::decode::nearest;
use hopcast_core::Instant;
use hopcast_wire::{ethernet, ip, nd};

use crate::content::Layers;
use crate::log::{Event, EventKind, Flow, Log, Named, Place};
use crate::verdict::name_of_place;

/// Which packets to follow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    terms: Vec<Term>,
    /// The time at which a frame is asked for.
    pub(crate) at: Option<Instant>,
    /// The number of a packet.
    pub(crate) packet: Option<u32>,
    /// The flow whose packets are asked for.
    pub(crate) flow: Option<Flow>,
    /// Of each term `at` the places of which one has the packet.
    pub(crate) places: Vec<BTreeSet<u32>>,
}

/// Whether an event takes place at one of these.
pub(crate) fn is_at(places: &BTreeSet<u32>, event: &Event) -> bool {
    // Logs need not have what was sent.
    let sender = match event.kind {
        EventKind::Delivered { from } => from,
        _ => event.place,
    };
    places.contains(&event.place) || places.contains(&sender)
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Term {
    Protocol(Protocol),
    From(Who),
    To(Who),
    Between(Who, Who),
    Port(u16),
    Vlan(u16),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Arp,
    Icmp,
    Nd,
    Igmp,
    Udp,
    Tcp,
    Ip,
}

/// The addresses of somebody whom a query names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Who {
    addresses: BTreeSet<IpAddr>,
    macs: BTreeSet<[u8; 6]>,
}

/// A query that cannot be read: where in it, what was expected there, and the nearest right spelling.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("query, {place}: expected {expected}, not {found}{hint}", hint = hint(nearest.as_deref()))]
pub struct QueryError {
    /// The word's place, for example `word 2`.
    pub place: String,
    /// What stands there.
    pub found: String,
    /// What was expected.
    pub expected: String,
    /// The nearest right spelling, if one is near.
    pub nearest: Option<String>,
}

fn hint(nearest: Option<&str>) -> String {
    nearest.map(|nearest| format!(" (did you mean `{nearest}`?)")).unwrap_or_default()
}

/// The words that begin a term.
const TERMS: [&str; 17] = [
    "arp", "icmp", "nd", "igmp", "udp", "tcp", "ip", "from", "to", "between", "group", "port", "vlan", "at",
    "flow", "packet", "frame",
];

impl Query {
    /// Reads a query about a log, whose nodes, groups and flows it may name.
    ///
    /// # Errors
    /// The first word that does not fit.
    pub fn parse(text: &str, log: &Log) -> Result<Self, QueryError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let mut words = Words { words: &words, next: 0, log };
        let mut query = Self::default();
        if words.words.is_empty() {
            return Err(words.expected("a query such as `arp between a and b`", &[]));
        }
        while words.next < words.words.len() {
            if words.next > 0 && words.peek() == Some("and") {
                words.next += 1;
            }
            query.take_term(&mut words)?;
        }
        Ok(query)
    }

    fn take_term(&mut self, words: &mut Words<'_>) -> Result<(), QueryError> {
        let is_second = match words.peek() {
            Some("flow") => self.flow.is_some(),
            Some("packet") => self.packet.is_some(),
            Some("frame") => self.at.is_some(),
            _ => false,
        };
        if is_second {
            return Err(words.expected("one `flow`, `packet` and `frame at` at most", &[]));
        }
        let protocol = |protocol| Term::Protocol(protocol);
        let term = match words.peek() {
            Some("arp") => protocol(Protocol::Arp),
            Some("icmp") => protocol(Protocol::Icmp),
            Some("nd") => protocol(Protocol::Nd),
            Some("igmp") => protocol(Protocol::Igmp),
            Some("udp") => protocol(Protocol::Udp),
            Some("tcp") => protocol(Protocol::Tcp),
            Some("ip") => protocol(Protocol::Ip),
            Some("from") => Term::From(words.behind()?),
            Some("to") => Term::To(words.behind()?),
            Some("between") => {
                let one = words.behind()?;
                words.next += 1;
                if words.peek() != Some("and") {
                    return Err(words.expected("`and`", &["and"]));
                }
                Term::Between(one, words.behind()?)
            }
            Some("group") => {
                words.next += 1;
                Term::To(words.group()?)
            }
            Some("port") => Term::Port(words.number("a port, 0 to 65535")?),
            Some("vlan") => Term::Vlan(words.number("the number of a VLAN, 0 to 4095")?),
            Some("at") => {
                words.next += 1;
                self.places.push(words.places()?);
                words.next += 1;
                return Ok(());
            }
            Some("flow") => {
                words.next += 1;
                self.flow = Some(words.flow()?);
                words.next += 1;
                return Ok(());
            }
            Some("packet") => {
                self.packet = Some(words.number("the number of a packet, as stories have it")?);
                words.next += 1;
                return Ok(());
            }
            Some("frame") => {
                words.next += 1;
                if words.peek() != Some("at") {
                    return Err(words.expected("`at` and a time", &["at"]));
                }
                words.next += 1;
                self.at = Some(words.time()?);
                return Ok(());
            }
            Some(_) | None => {
                return Err(words.expected(
                    "a protocol, or `from`, `to`, `between`, `port`, `vlan`, `at`, `group`, `flow`, `packet` or `frame at`",
                    &TERMS,
                ));
            }
        };
        words.next += 1;
        self.terms.push(term);
        Ok(())
    }

    /// Whether all terms about a packet's layers hold, as they do if there are none.
    pub(crate) fn fits(&self, layers: &Layers) -> bool {
        self.terms.iter().all(|term| term.holds(layers))
    }
}

impl Term {
    fn holds(&self, layers: &Layers) -> bool {
        match self {
            Self::Protocol(protocol) => protocol.is_of(layers),
            Self::From(who) => who.sends(layers),
            Self::To(who) => who.receives(layers),
            Self::Between(one, other) => {
                one.sends(layers) && other.receives(layers) || other.sends(layers) && one.receives(layers)
            }
            Self::Port(port) => layers.ports.is_some_and(|(from, to)| from == *port || to == *port),
            Self::Vlan(vlan) => layers.vlans.contains(vlan),
        }
    }
}

impl Protocol {
    fn is_of(self, layers: &Layers) -> bool {
        let is_ip = |protocols: &[u8]| layers.ip.is_some_and(|ip| protocols.contains(&ip.protocol));
        let is_nd = matches!(layers.icmp, Some(hopcast_wire::icmp::Message::Other { kind, .. })
            if layers.ip.is_some_and(|ip| ip.version == ip::Version::V6) && nd::is_nd(kind));
        match self {
            Self::Arp => layers.arp.is_some(),
            Self::Icmp => is_ip(&[ip::ICMP, ip::ICMPV6]) && !is_nd,
            Self::Nd => is_nd,
            Self::Igmp => is_ip(&[ip::IGMP]),
            Self::Udp => is_ip(&[ip::UDP]),
            Self::Tcp => is_ip(&[ip::TCP]),
            Self::Ip => layers.ip.is_some(),
        }
    }
}

impl Who {
    fn sends(&self, layers: &Layers) -> bool {
        let address = layers.ip.map(|ip| ip.source).or(layers.arp.map(|arp| arp.sender.address.into()));
        self.is(address, layers.ethernet.map(|ethernet| ethernet.source))
    }

    fn receives(&self, layers: &Layers) -> bool {
        let address = layers.ip.map(|ip| ip.destination).or(layers.arp.map(|arp| arp.target.address.into()));
        self.is(address, layers.ethernet.map(|ethernet| ethernet.destination))
    }

    /// Of a packet that has IP addresses these decide, unless an Ethernet address was asked for.
    fn is(&self, address: Option<IpAddr>, mac: Option<ethernet::Mac>) -> bool {
        match address {
            Some(address) if !self.addresses.is_empty() => self.addresses.contains(&address),
            Some(_) | None => mac.is_some_and(|mac| self.macs.contains(&mac)),
        }
    }
}

/// The words of a query, and how far it is read.
struct Words<'q> {
    words: &'q [&'q str],
    next: usize,
    log: &'q Log,
}

impl Words<'_> {
    fn peek(&self) -> Option<&str> {
        self.words.get(self.next).copied()
    }

    /// Whoever stands behind this word.
    fn behind(&mut self) -> Result<Who, QueryError> {
        self.next += 1;
        let expected = match self.log.named() {
            [] => "an IP or Ethernet address, as the log has no names of nodes and groups",
            _ => "a node, a group or an address",
        };
        let Some(word) = self.peek() else { return Err(self.expected(expected, &[])) };
        if let Ok(address) = word.parse() {
            return Ok(Who { addresses: BTreeSet::from([address]), macs: BTreeSet::new() });
        }
        if let Some(mac) = read_mac(word) {
            return Ok(Who { addresses: BTreeSet::new(), macs: BTreeSet::from([mac]) });
        }
        let mut names = Vec::new();
        for named in self.log.named() {
            let (Named::Node { name, addresses } | Named::Group { name, addresses }) = named else {
                continue;
            };
            if name == word {
                let macs = self.log.places().iter().filter_map(|place| match place {
                    Place::Interface { node, mac, .. } if node == word => Some(*mac),
                    Place::Interface { .. } | Place::Machine { .. } => None,
                });
                return Ok(Who { addresses: addresses.iter().copied().collect(), macs: macs.collect() });
            }
            names.push(name.as_str());
        }
        Err(self.expected(expected, &names))
    }

    /// The interface of this name, or all places of the node of this name.
    fn places(&self) -> Result<BTreeSet<u32>, QueryError> {
        let is_meant = |place: &Place| {
            let word = self.peek();
            let is_interface = matches!(place, Place::Interface { .. });
            word == Some(place.node()) || is_interface && word == Some(&*name_of_place(place))
        };
        let places = || (0..).zip(self.log.places());
        let found: BTreeSet<u32> =
            places().filter(|(_, place)| is_meant(place)).map(|(number, _)| number).collect();
        if !found.is_empty() {
            return Ok(found);
        }
        let interfaces = places().filter(|(_, place)| matches!(place, Place::Interface { .. }));
        let mut names: Vec<String> = interfaces.map(|(_, place)| name_of_place(place)).collect();
        names.extend(self.log.places().iter().map(|place| place.node().to_owned()));
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        Err(self.expected("a node, or an interface as NODE:INTERFACE", &names))
    }

    fn group(&self) -> Result<Who, QueryError> {
        let mut names = Vec::new();
        for named in self.log.named() {
            let Named::Group { name, addresses } = named else { continue };
            if Some(name.as_str()) == self.peek() {
                return Ok(Who { addresses: addresses.iter().copied().collect(), macs: BTreeSet::new() });
            }
            names.push(name.as_str());
        }
        Err(self.expected("a group", &names))
    }

    fn flow(&self) -> Result<Flow, QueryError> {
        let flows = || {
            self.log.named().iter().filter_map(|named| match named {
                Named::Flow(flow) => Some(flow),
                Named::Node { .. } | Named::Group { .. } => None,
            })
        };
        if let Some(flow) = flows().find(|flow| Some(flow.name.as_str()) == self.peek()) {
            return Ok(flow.clone());
        }
        let names: Vec<&str> = flows().map(|flow| flow.name.as_str()).collect();
        let expected =
            if names.is_empty() { "another term, as the log has no names of flows" } else { "a flow" };
        Err(self.expected(expected, &names))
    }

    fn number<N: std::str::FromStr>(&mut self, expected: &str) -> Result<N, QueryError> {
        self.next += 1;
        self.peek().and_then(|word| word.parse().ok()).ok_or_else(|| self.expected(expected, &[]))
    }

    /// A time in one word or two: `20ms`, `1.5 s`.
    fn time(&mut self) -> Result<Instant, QueryError> {
        let expected = "a time such as `1.5 s` or `20 ms`";
        let Some(word) = self.peek() else { return Err(self.expected(expected, &[])) };
        let digits =
            word.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(word.len());
        let (number, mut unit) = word.split_at(digits);
        let time = |unit| read_time(number, unit);
        if unit.is_empty() && self.words.get(self.next + 1).is_some() {
            unit = self.words[self.next + 1];
            if let Some(at) = time(unit) {
                self.next += 2;
                return Ok(at);
            }
        }
        let at = time(unit).ok_or_else(|| self.expected(expected, &[]))?;
        self.next += 1;
        Ok(at)
    }

    fn expected(&self, expected: &str, names: &[&str]) -> QueryError {
        let found = self.peek();
        let nearest = found.and_then(|found| nearest(found, names.iter().copied())).map(ToOwned::to_owned);
        QueryError {
            place: format!("word {}", self.next + 1),
            found: found.map_or("the end".to_owned(), |found| format!("`{found}`")),
            expected: expected.to_owned(),
            nearest,
        }
    }
}

/// The time of a decimal number and a unit, exact to the nanosecond.
fn read_time(number: &str, unit: &str) -> Option<Instant> {
    let digits = match unit {
        "s" => 9,
        "ms" => 6,
        "us" => 3,
        "ns" => 0,
        _ => return None,
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    if part.len() > digits || part.contains('.') || whole.is_empty() {
        return None;
    }
    format!("{whole}{part:0<digits$}").parse().ok().map(Instant::from_nanos)
}

fn read_mac(word: &str) -> Option<[u8; 6]> {
    let mut parts = word.split(':');
    let mut mac = [0; 6];
    for byte in &mut mac {
        let part = parts.next().filter(|part| part.len() <= 2)?;
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then_some(mac)
}
