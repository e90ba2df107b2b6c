//! The directory at a sender, and the sender with it.

use std::hash::Hasher;
use std::net::{IpAddr, Ipv6Addr};

use hopcast_core::{Agenda, Duration, Instant, Item, Machine, Outbox, Pace, Port, Stream, earliest};
use hopcast_wire::ip;
use siphasher::sip::SipHasher24;

use super::wire::{Kind, Message, PORT};
use crate::meadcast::sender::Sender;
use crate::pace;

/// The port of packets, which is that of the sender below: it has the hook of messages too.
const PACKETS: Port = Port::Below(1);

/// The settings of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Time for which a membership holds, 1 s to 18 h. Default: 60 s. With less, members say more often that they are
    /// there; with more, data goes for longer to hosts that are gone.
    pub hold: Duration,
    /// Maximum number of members. Default: 10,000. With fewer, further hosts are refused until others leave; with more,
    /// whoever has many addresses makes the sender work for them.
    pub max_members: usize,
    /// Maximum number of requests that are answered in a second, a tenth of them at once; those without a good cookie
    /// are counted apart, so that a flood of them keeps no member out that is known. Default: 5,000. With fewer, many
    /// that join at once wait; with more, floods of requests cost more.
    pub requests_per_second: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { hold: Duration::from_secs(60), max_members: 10_000, requests_per_second: 5000 }
    }
}

/// A [`Sender`] whose receivers are those of a directory. Its ports are the sender's; `Below(1)` has the
/// [hook](super::HOOK) of messages too.
pub struct DirectorySender {
    sender: Sender,
    directory: Directory,
    out: Outbox,
}

impl DirectorySender {
    /// A sender at an address, to a group, with a directory of it at the same address.
    pub fn new(config: Config, sender: Sender, [own, group]: [Ipv6Addr; 2], cookies: Cookies) -> Self {
        let directory = Directory {
            config,
            own,
            group,
            cookies,
            ends: Agenda::new(),
            members: 0,
            challenges: pace(config.requests_per_second),
            requests: pace(config.requests_per_second),
            counters: Counters::default(),
        };
        Self { sender, directory, out: Outbox::new() }
    }

    /// The sender.
    pub const fn sender(&self) -> &Sender {
        &self.sender
    }

    fn expire(&mut self, now: Instant) {
        while let Some(member) = self.directory.expired(now) {
            self.sender.leave(member);
        }
    }

    /// Takes a message; false if it is none of this directory's.
    fn receive(&mut self, now: Instant, packet: &[u8]) -> bool {
        let Some((outcome, answer)) = self.directory.receive(now, packet) else { return false };
        match outcome {
            Outcome::Joined(member) => self.sender.join(member),
            Outcome::Left(member) => self.sender.leave(member),
            Outcome::Same => {}
        }
        if let Some(answer) = answer {
            self.out.push(PACKETS, Item::Packet(answer.emit()));
        }
        // It may ask about one that has joined.
        self.sender.wake(now);
        true
    }
}

impl Machine for DirectorySender {
    fn handle(&mut self, now: Instant, port: Port, item: Item) {
        self.expire(now);
        match (port, item) {
            (PACKETS, Item::Transit(transit)) if self.receive(now, &transit.packet) => {
                transit.packet.recycle();
            }
            (PACKETS, Item::Packet(packet)) if self.receive(now, &packet) => packet.recycle(),
            (port, item) => self.sender.handle(now, port, item),
        }
    }

    fn wake(&mut self, now: Instant) {
        self.expire(now);
        self.sender.wake(now);
    }

    fn poll(&mut self, now: Instant) -> Option<(Port, Item)> {
        self.out.pop().or_else(|| self.sender.poll(now))
    }

    fn deadline(&self) -> Option<Instant> {
        earliest(self.sender.deadline(), self.directory.ends.next())
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        self.sender.counters(report);
        let Counters { joins, refreshes, leaves, ended, challenges, .. } = self.directory.counters;
        let Counters { malformed, forged, full, rate, .. } = self.directory.counters;
        report("directory_joins", joins);
        report("directory_refreshes", refreshes);
        report("directory_leaves", leaves);
        report("directory_ended", ended);
        report("directory_challenges", challenges);
        report("directory_refused_malformed", malformed);
        report("directory_refused_forged", forged);
        report("directory_refused_full", full);
        report("directory_refused_rate", rate);
    }
}

/// The change of the members by a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Joined(Ipv6Addr),
    Left(Ipv6Addr),
    Same,
}

/// The members of a group, each until its membership ends.
struct Directory {
    config: Config,
    own: Ipv6Addr,
    group: Ipv6Addr,
    cookies: Cookies,
    /// When the membership of each member ends.
    ends: Agenda<Ipv6Addr>,
    /// Number of members.
    members: usize,
    challenges: Pace,
    requests: Pace,
    counters: Counters,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    joins: u64,
    refreshes: u64,
    leaves: u64,
    ended: u64,
    challenges: u64,
    malformed: u64,
    forged: u64,
    full: u64,
    rate: u64,
}

impl Directory {
    /// Takes a packet: the change of the members, and the answer; `None` if it is no message to this directory.
    fn receive(&mut self, now: Instant, packet: &[u8]) -> Option<(Outcome, Option<Message>)> {
        let Some(message) = Message::parse(packet) else {
            // Another packet may be another directory's only if it can be read.
            let is_ours = is_to(packet, self.own);
            self.counters.malformed += u64::from(is_ours);
            return is_ours.then_some((Outcome::Same, None));
        };
        let is_request = matches!(message.kind, Kind::Join | Kind::Leave);
        if message.destination != self.own || message.group != self.group || !is_request {
            return None;
        }
        let member = message.source;
        let [current, last] = self.good_cookies(now, member);
        let is_known = [current, last].contains(&message.cookie);
        let pace = if is_known { &mut self.requests } else { &mut self.challenges };
        if !pace.is_ready(now) {
            self.counters.rate += 1;
            return Some((Outcome::Same, None));
        }
        pace.sent(now, 1);
        let answer = |kind, cookie| Message {
            source: self.own,
            destination: message.source,
            kind,
            nonce: message.nonce,
            cookie,
            group: self.group,
        };
        if !is_known {
            self.counters.challenges += 1;
            self.counters.forged += u64::from(message.cookie != 0);
            return Some((Outcome::Same, Some(answer(Kind::Challenge, current))));
        }
        if message.kind == Kind::Leave {
            let accepted = answer(Kind::Accepted { hold: 0 }, current);
            let outcome = if self.remove(member) { Outcome::Left(member) } else { Outcome::Same };
            self.counters.leaves += u64::from(outcome != Outcome::Same);
            return Some((outcome, Some(accepted)));
        }
        let accepted = answer(Kind::Accepted { hold: self.hold() }, current);
        let is_new = self.ends.get(member).is_none();
        if is_new && self.members >= self.config.max_members {
            self.counters.full += 1;
            return Some((Outcome::Same, None));
        }
        let hold = Duration::from_secs(self.hold().into());
        self.ends.set(member, Some(now + hold));
        if !is_new {
            self.counters.refreshes += 1;
            return Some((Outcome::Same, Some(accepted)));
        }
        self.members += 1;
        self.counters.joins += 1;
        Some((Outcome::Joined(member), Some(accepted)))
    }

    fn remove(&mut self, member: Ipv6Addr) -> bool {
        let is_one = self.ends.get(member).is_some();
        self.ends.set(member, None);
        self.members -= usize::from(is_one);
        is_one
    }

    /// A member whose membership has ended; call until `None`.
    fn expired(&mut self, now: Instant) -> Option<Ipv6Addr> {
        let member = self.ends.expired(now)?;
        self.members -= 1;
        self.counters.ended += 1;
        Some(member)
    }

    /// Seconds for which a membership holds.
    fn hold(&self) -> u16 {
        (self.config.hold.as_nanos() / 1_000_000_000).clamp(1, u16::MAX.into()) as u16
    }

    /// The cookies of an address that are good now: that of this time of holding, and that of the one before.
    fn good_cookies(&self, now: Instant, of: Ipv6Addr) -> [u64; 2] {
        let period = now.as_nanos() / 1_000_000_000 / u64::from(self.hold());
        [period, period.saturating_sub(1)].map(|period| self.cookies.of(of, self.group, period))
    }
}

/// The cookies of a directory, each of which says nothing about the others.
pub struct Cookies([u8; 16]);

impl Cookies {
    /// Those of a secret that is drawn now.
    pub fn draw(random: &mut Stream) -> Self {
        let bits = u128::from(random.bits()) << 64 | u128::from(random.bits());
        Self(bits.to_be_bytes())
    }

    /// The cookie of an address in a period, not 0.
    fn of(&self, address: Ipv6Addr, group: Ipv6Addr, period: u64) -> u64 {
        let mut hasher = SipHasher24::new_with_key(&self.0);
        hasher.write(&address.octets());
        hasher.write(&group.octets());
        hasher.write(&period.to_be_bytes());
        hasher.finish().max(1)
    }
}

/// Whether a packet is one of UDP to the port of messages at an address, which it may well be malformed behind.
fn is_to(packet: &[u8], own: Ipv6Addr) -> bool {
    let Ok(header) = ip::parse(packet) else { return false };
    let segment = &packet[header.payload()];
    header.destination == IpAddr::V6(own)
        && header.protocol == ip::UDP
        && segment.get(2..4) == Some(&PORT.to_be_bytes()[..])
}
