//! Random operations on ten members: what was promised is delivered once, in the order asked for.

use hopcast_core::{Duration, Instant, Stream};

use super::super::config::{Forwarding, Replication, Requests, Servers};
use super::*;
use crate::testing::contents;

const MEMBERS: usize = 10;

/// Operations of each seed.
const OPERATIONS: usize = 100;

struct World {
    net: Network,
    random: Stream,
    policy: Policy,
    subscriptions: Vec<Option<Subscription>>,
    is_down: Vec<bool>,
    /// The messages that each member has published, in their order.
    published: Vec<Vec<Vec<u8>>>,
}

fn policy_of(random: &mut Stream) -> Policy {
    let anyone = Servers::Anyone(Some(0.5));
    let requests = Requests {
        servers: if random.chance(0.3) { anyone } else { Servers::One },
        share: if random.chance(0.3) { 0.5 } else { 1.0 },
        ..Policy::default().requests
    };
    let forwarding = match random.below(4) {
        0 => Forwarding::Stateful,
        1 => Forwarding::Probabilistic(0.5),
        _ => Forwarding::None,
    };
    let replication = match random.below(4) {
        0 => Replication::Pull,
        1 => Replication::Push,
        _ => Replication::None,
    };
    Policy { requests, forwarding, replication, is_coded: random.chance(0.5), chunk: 8, ..policy() }
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Seed::new(seed, 0).stream(&["operations"], 0);
        let policy = policy_of(&mut random);
        let mut net = Network::new(seed);
        let mut subscriptions = Vec::new();
        for member in 0..MEMBERS {
            let subscription = random.chance(0.5).then(|| subscription(&mut random));
            subscriptions.push(subscription);
            let loss = [0.0, 0.1, 0.3][random.below(3) as usize];
            join(&mut net, config_of(member, subscription, &policy), link(loss));
        }
        let (is_down, published) = (vec![false; MEMBERS], vec![Vec::new(); MEMBERS]);
        Self { net, random, policy, subscriptions, is_down, published }
    }

    fn operation(&mut self) {
        let member = self.random.below(MEMBERS as u64) as usize;
        match self.random.below(12) {
            0..5 if !self.is_down[member] => {
                let len = [10, 1000, 5000, 20_000][self.random.below(4) as usize];
                let number: usize = self.published.iter().map(Vec::len).sum();
                let payload = contents(len, number as u64);
                publish(&mut self.net, member, &payload);
                self.published[member].push(payload);
            }
            // Cut in parts, or joined.
            5 => (0..MEMBERS).for_each(|member| self.net.members[member].part = self.random.below(2) as u8),
            6 => self.net.members.iter_mut().for_each(|member| member.part = 0),
            // Crash, and begin again later.
            7 => {
                self.is_down[member] = true;
                self.net.members[member].is_cut = true;
            }
            8 => self.restart(member),
            9 if self.subscriptions[member].is_none() && !self.is_down[member] => {
                let subscription = subscription(&mut self.random);
                self.subscriptions[member] = Some(subscription);
                let now = self.net.now;
                self.net.members[member].session.subscribe(now, &topic(), subscription);
            }
            _ => {}
        }
        let wait = Duration::from_millis(self.random.below(400));
        let until = self.net.now.since(Instant::ZERO) + wait;
        self.net.run(until, |_| false);
    }

    fn restart(&mut self, member: usize) {
        if std::mem::take(&mut self.is_down[member]) {
            self.net.members[member].is_cut = false;
            restart(&mut self.net, member, config_of(member, self.subscriptions[member], &self.policy));
        }
    }

    /// All parts meet, all members are there, and what was promised is delivered.
    fn settle(&mut self, seed: u64) {
        (0..MEMBERS).for_each(|member| self.restart(member));
        self.net.members.iter_mut().for_each(|member| member.part = 0);
        let until = self.net.now.since(Instant::ZERO) + Duration::from_secs(600);
        let expected: Vec<Option<usize>> = (0..MEMBERS).map(|member| self.expected(member)).collect();
        self.net.run(until, |net| {
            (0..MEMBERS)
                .all(|member| expected[member].is_none_or(|count| net.members[member].up.len() >= count))
        });
        for member in 0..MEMBERS {
            self.check(seed, member);
        }
    }

    /// Messages that a member is handed in the end, if it asks for all.
    fn expected(&self, member: usize) -> Option<usize> {
        self.subscriptions[member].filter(|subscription| subscription.is_reliable)?;
        let others = (0..MEMBERS).filter(|&publisher| publisher != member);
        Some(others.map(|publisher| self.published[publisher].len()).sum())
    }

    fn check(&self, seed: u64, member: usize) {
        let received = received(&self.net, member);
        let Some(subscription) = self.subscriptions[member] else {
            return assert!(received.is_empty(), "seed {seed}: member {member} subscribes to nothing");
        };
        for publisher in (0..MEMBERS).filter(|&publisher| publisher != member) {
            let all = &self.published[publisher];
            let places: Vec<usize> =
                received.iter().filter_map(|found| all.iter().position(|one| one == found)).collect();
            let mut sorted = places.clone();
            sorted.sort_unstable();
            let context = || {
                format!(
                    "seed {seed}: {publisher} to {member}, {subscription:?}, {:?}: {places:?} of {}",
                    self.policy,
                    all.len()
                )
            };
            assert!(sorted.windows(2).all(|two| two[0] < two[1]), "twice: {}", context());
            if subscription.order == Order::BySender {
                assert_eq!(places, sorted, "out of order: {}", context());
            }
            if subscription.is_reliable {
                let state = |of: usize| self.net.members[of].session.state(self.net.now);
                assert!(
                    sorted.len() == all.len(),
                    "missing: {}
{publisher}: {}
{member}: {}",
                    context(),
                    state(publisher),
                    state(member)
                );
            }
        }
        let others: usize = received.iter().filter(|found| self.published[member].contains(found)).count();
        assert_eq!(others, 0, "seed {seed}: its own messages came back to {member}");
    }
}

fn subscription(random: &mut Stream) -> Subscription {
    let order = if random.chance(0.5) { Order::BySender } else { Order::AsComplete };
    Subscription { order, join: Join::Everything, is_reliable: random.chance(0.8) }
}

fn config_of(member: usize, subscription: Option<Subscription>, policy: &Policy) -> Config {
    Config { has_store: true, ..config(member, subscription, policy) }
}

/// Operations of each of four tests, 10^5 together.
const QUARTER: usize = 25_000;

fn operate(quarter: usize) {
    let seeds = QUARTER / OPERATIONS;
    for seed in quarter * seeds..(quarter + 1) * seeds {
        let mut world = World::new(seed as u64);
        (0..OPERATIONS).for_each(|_| world.operation());
        world.settle(seed as u64);
    }
}

#[test]
fn what_was_promised_is_delivered_once_in_the_order_asked_for() {
    operate(0);
}

#[test]
fn the_same_of_other_operations() {
    operate(1);
}

#[test]
fn the_same_of_still_others() {
    operate(2);
}

#[test]
fn the_same_of_the_last_quarter() {
    operate(3);
}
