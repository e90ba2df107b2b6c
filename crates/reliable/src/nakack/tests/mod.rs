//! Members on a network in virtual time.

mod hostile;
mod random;
mod random_streams;
mod streams;
mod transfers;
mod views;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use hopcast_core::{Buffer, Datagram, Duration, Instant, Item, Machine, Message, Rate};

use super::assembly::{Piece, Unit};
use super::wire::{MemberId, View};
use super::{Config, Limits, Member, Stack, Start};
use crate::testing::{self, Link, address, group};

type Net = testing::Net<Member>;

/// An event that the application of a member saw.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Event {
    /// A view; `None` when it left.
    View(Option<View>),
    /// A unit, its sender and its bytes.
    Unit(MemberId, Vec<u8>),
    /// A piece of a stream, and its sender.
    Piece(MemberId, Piece),
}

impl Event {
    pub(super) fn unit(from: MemberId, unit: &Unit) -> Self {
        match unit {
            Unit::Datagram(bytes) | Unit::Message(_, bytes) => Self::Unit(from, bytes.clone()),
            Unit::Piece(piece) => Self::Piece(from, piece.clone()),
        }
    }
}

pub(super) fn id(member: usize) -> MemberId {
    MemberId { node: member as u32 + 1, run: 1 }
}

/// The first view, of this number of members.
pub(super) fn told(members: usize) -> Start {
    Start::Told((0..members).map(|member| (id(member), address(member))).collect())
}

/// Settings for 4 Mbit/s.
fn stack() -> Stack {
    Stack { rate: Rate::from_mbit(4), ..Stack::default() }
}

pub(super) fn config(member: usize, start: Start, stack: &Stack) -> Config {
    Config {
        member: id(member),
        local: address(member),
        group: group(),
        addresses: BTreeMap::new(),
        multicasts: true,
        presence: vec![(Instant::ZERO, None)],
        start,
        expects: 1,
        hears_itself: false,
        unit_credit: false,
        slack: Duration::ZERO,
        overhead: testing::HEADERS as u16,
        limits: Limits::default(),
        stack: stack.clone(),
    }
}

fn lossy(loss: f64) -> Link {
    Link { loss, ..Link::default() }
}

/// Adds a member.
fn add(net: &mut Net, start: Start, stack: &Stack, link: Link) -> usize {
    let member = net.members.len();
    let random = net.seed.stream(&["member"], member as u64);
    let now = net.now;
    let mut session = Member::new(config(member, start, stack), random);
    session.wake(now);
    net.join(session, link)
}

/// A network of members that have their first view, each with a link of its own.
fn network(seed: u64, stack: &Stack, links: &[Link]) -> Net {
    let mut net = Net::new(seed);
    for &link in links {
        add(&mut net, told(links.len()), stack, link);
    }
    net
}

fn give_datagram(net: &mut Net, member: usize, bytes: &[u8]) {
    let datagram = Datagram::new(address(member), group(), Buffer::copy_from(bytes));
    net.give(member, Item::Datagram(datagram));
}

fn give_message(net: &mut Net, member: usize, bytes: &[u8]) {
    net.give(member, Item::Message(Message::new(0, Buffer::copy_from(bytes))));
}

/// The messages that a member was handed.
fn messages(net: &Net, member: usize) -> Vec<Vec<u8>> {
    let message = |(_, item): &(Instant, Item)| match item {
        Item::Message(message) => Some(message.payload.to_vec()),
        _ => None,
    };
    net.members[member].up.iter().filter_map(message).collect()
}

/// The datagrams that a member was handed, each with the address of its sender.
fn datagrams(net: &Net, member: usize) -> Vec<(SocketAddr, Vec<u8>)> {
    let datagram = |(_, item): &(Instant, Item)| match item {
        Item::Datagram(datagram) => Some((datagram.remote, datagram.payload.to_vec())),
        _ => None,
    };
    net.members[member].up.iter().filter_map(datagram).collect()
}

fn run_for(net: &mut Net, time: Duration) {
    let until = net.now.since(Instant::ZERO) + time;
    net.run(until, |_| false);
}
