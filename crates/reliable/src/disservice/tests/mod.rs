//! Members on a network in virtual time.

mod disruption;
mod hostile;
mod meeting;
mod pushing;
mod random;
mod scale;
mod serving;
mod tactical;
mod transfers;

use std::collections::BTreeMap;

use hopcast_core::{Duration, Instant, Item, Message, Rate, Seed};

use super::wire::MessageId;
use super::{Bodies, Config, Group, Peer, Policy};
use crate::testing::{HEADERS, Link, Net, address, group};
use crate::{Join, MemberId, Order, Subscription};

pub(super) type Network = Net<Peer>;

pub(super) const MBIT: Rate = Rate::from_mbit(1);

/// A member of a node.
pub(super) const fn member(node: u32) -> MemberId {
    MemberId { node, run: 1 }
}

/// A message of one series.
pub(super) const fn id(sequence: u32) -> MessageId {
    MessageId { group: 1, publisher: member(9), sequence }
}

pub(super) fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

pub(super) fn topic() -> Group {
    b"recon"[..].into()
}

/// A subscription to everything, in no order.
pub(super) fn everything() -> Subscription {
    Subscription { join: Join::Everything, ..Subscription::default() }
}

pub(super) fn in_order() -> Subscription {
    Subscription { order: Order::BySender, ..everything() }
}

pub(super) fn policy() -> Policy {
    Policy { rate: MBIT, ..Policy::default() }
}

pub(super) fn link(loss: f64) -> Link {
    Link { rate: MBIT, delay: Duration::from_millis(1), loss, ..Link::default() }
}

pub(super) fn config(member: usize, subscription: Option<Subscription>, policy: &Policy) -> Config {
    Config {
        member: MemberId { node: member as u32 + 1, run: 1 },
        local: address(member),
        group: group(),
        publishes_to: topic(),
        subscriptions: subscription.map(|subscription| (topic(), subscription)).into_iter().collect(),
        unit_credit: false,
        links: 1,
        has_store: false,
        bodies: Bodies::default(),
        slack: Duration::ZERO,
        overhead: HEADERS as u16,
        policy: policy.clone(),
    }
}

/// A publisher, subscribers, and others that only listen.
pub(super) fn network(seed: u64, subscribers: usize, others: usize, policy: &Policy, loss: f64) -> Network {
    let mut net = Network::new(seed);
    for member in 0..=subscribers + others {
        let subscription = (1..=subscribers).contains(&member).then(everything);
        join(&mut net, config(member, subscription, policy), link(loss));
    }
    net
}

pub(super) fn join(net: &mut Network, config: Config, link: Link) -> usize {
    let random = Seed::new(9, 0).stream(&["peer"], config.member.node.into());
    net.join(Peer::new(config, random), link)
}

pub(super) fn publish(net: &mut Network, member: usize, payload: &[u8]) {
    let unit = Message::new(0, hopcast_core::Buffer::copy_from(payload));
    net.give(member, Item::Message(unit));
}

/// Payloads that a member was handed, in their order.
pub(super) fn received(net: &Network, member: usize) -> Vec<Vec<u8>> {
    let payload = |item: &Item| match item {
        Item::Message(unit) => Some(unit.payload.to_vec()),
        Item::Datagram(datagram) => Some(datagram.payload.to_vec()),
        _ => None,
    };
    net.members[member].up.iter().filter_map(|(_, item)| payload(item)).collect()
}

/// Payloads as often as they came.
pub(super) fn counted(payloads: Vec<Vec<u8>>) -> BTreeMap<Vec<u8>, usize> {
    let mut found = BTreeMap::new();
    payloads.into_iter().for_each(|payload| *found.entry(payload).or_default() += 1);
    found
}

/// The content of a store after these records, by key.
pub(super) fn stored(records: &[Item]) -> BTreeMap<Vec<u8>, Item> {
    let mut found = BTreeMap::new();
    for item in records {
        let Item::Message(record) = item else { panic!("{item:?}") };
        let key = record.name.as_deref().unwrap_or_default().to_vec();
        if record.payload.is_empty() {
            found.remove(&key)
        } else {
            found.insert(key, item.clone())
        };
    }
    found
}

/// Lets a member begin again with what its store has.
pub(super) fn restart(net: &mut Network, member: usize, config: Config) {
    let records = stored(&net.members[member].stored);
    let random = Seed::new(net.now.as_nanos(), 0).stream(&["peer"], config.member.node.into());
    net.restart(member, Peer::new(config, random), records.into_values());
}
