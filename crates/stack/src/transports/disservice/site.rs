//! DisService among the members of a group of sites.

use hopcast_core::{Duration, Message, Rate};
use hopcast_reliable::disservice::wire::MAX_NUMBER;
use hopcast_reliable::disservice::{Bodies, Config, Group, Peer, Policy, Replication, aged};
use hopcast_reliable::{MemberId, Order, Subscription};

use super::DisService;
use crate::transport::{GroupMember, Holder, Holding, StoreAndForward, StoringMember};

/// Bytes of the name of a group of sites, which every message bears, and of the metadata with it.
const NAME: usize = 4;
const METADATA: u64 = 2 + NAME as u64 + 4;

impl StoreAndForward for DisService {
    fn member(&self, storing: StoringMember) -> Box<dyn Holder> {
        let StoringMember { member, group, subscribes, in_order, number_of } = storing;
        let GroupMember { memory, mut random, .. } = member;
        let mut replication = self.policy.replication.clone();
        match &mut replication {
            Replication::Targets(sites) => sites.extend(self.targets.iter().map(|name| number_of(name))),
            // Who wants nothing for itself asks for all the same, or it has nothing to bring to others.
            none @ Replication::None if !subscribes => *none = Replication::Pull,
            Replication::None | Replication::Pull | Replication::Push | Replication::Convoy(_) => {}
        }
        let policy = Policy {
            rate: member.rate.unwrap_or(self.policy.rate),
            fragment: self.fragment(member.datagram),
            cache: self.room(memory).0,
            replication,
            ..self.policy.clone()
        };
        let order = if in_order { self.subscription.order } else { Order::AsComplete };
        let name: Group = group.to_be_bytes()[..NAME].into();
        let subscription = Subscription { order, ..self.subscription };
        let config = Config {
            // Another number at each start, so that none of its messages has the name of an earlier one.
            member: MemberId { node: member.number, run: random.bits() as u16 },
            local: member.local,
            group: member.group,
            publishes_to: name.clone(),
            subscriptions: subscribes.then_some((name, subscription)).into_iter().collect(),
            unit_credit: false,
            links: 1,
            has_store: true,
            bodies: Bodies::default(),
            slack: member.slack,
            overhead: member.overhead,
            policy,
        };
        Box::new(Peer::new(config, random))
    }

    fn room(&self, memory: u64) -> (u64, u64) {
        let cache = self.policy.cache.min(memory);
        (cache, (cache / 2).min(u64::from(MAX_NUMBER) - 1).saturating_sub(METADATA))
    }
}

impl Holder for Peer {
    fn holding(&self) -> Holding {
        Holding { unsent: self.unsent(), messages: self.messages() as u64, bytes: self.held() as u64 }
    }

    fn set_rate(&mut self, rate: Rate) {
        Self::set_rate(self, rate);
    }

    fn aged(&self, record: Message, by: Duration) -> Option<Message> {
        aged(record, by)
    }
}
