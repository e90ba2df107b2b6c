//! A member: its parts put together, and its ports.

mod deliver;
mod receive;
mod send;

use std::collections::VecDeque;
use std::net::SocketAddr;

use hopcast_core::{Buffer, Instant, Item, Machine, Outbox, Pacer, Port, Rate, Stream};

use super::asking::{Asking, View};
use super::cache::{Cache, Dropped, Value};
use super::config::{Config, Group};
use super::forwarding::Forwards;
use super::neighbours::Neighbours;
use super::object::Metadata;
use super::replication::Pushes;
use super::series::{Catalogue, SeriesId};
use super::serving::Serving;
use super::store::message_key;
use super::trickle::Trickle;
use super::wire::{MemberId, MessageId};
use crate::Subscription;
use crate::statistics::{Deliveries, Requests, Traffic};
use crate::unit_credit::UnitCredit;

/// A member of a network that publishes, subscribes, holds and brings on messages, as a machine: an application above,
/// datagrams to all below.
///
/// Down come [`Item::Datagram`] and [`Item::Message`], which is a file if it has a name; each is published to the group
/// of the settings. Up go the same, of the groups that the member subscribes to, with the address that they were heard
/// from last. Above its second port is a store, if it has one: it is handed records (see the module's `store`), and
/// given them again before anything else when the member begins anew.
#[derive(Debug)]
pub struct Peer {
    config: Config,
    catalogue: Catalogue,
    cache: Cache,
    neighbours: Neighbours,
    asking: Asking,
    serving: Serving,
    forwards: Forwards,
    pushes: Pushes,
    trickle: Trickle,
    /// Messages that were published and not sent yet, with the fragment that is next.
    unsent: VecDeque<(MessageId, u32)>,
    unsent_bytes: u64,
    /// Requests and summaries that wait to be sent.
    control: VecDeque<send::Control>,
    /// Series with which the next summary begins, where not all fit one.
    page: usize,
    pacer: Pacer,
    random: Stream,
    out: Outbox,
    credit: UnitCredit,
    begun: bool,
    /// Packets that were sent.
    transmissions: u64,
    counted: Counted,
}

/// The member's own figures.
#[derive(Debug, Default)]
pub(super) struct Counted {
    pub(super) traffic: Traffic,
    pub(super) requests: Requests,
    pub(super) deliveries: Deliveries,
    pub(super) forwarded: u64,
    pub(super) passed_on: u64,
    pub(super) redundant: u64,
    pub(super) damaged: u64,
    pub(super) conflicts: u64,
    pub(super) malformed: u64,
    pub(super) refused: u64,
    pub(super) expired: u64,
    pub(super) dropped: u64,
    pub(super) dropped_bytes: u64,
}

impl Peer {
    /// A member, which draws from `random`.
    pub fn new(config: Config, mut random: Stream) -> Self {
        let config = Config { policy: config.policy.clone().bounded(), ..config };
        let policy = &config.policy;
        let mut catalogue = Catalogue::new(policy.patience);
        for (group, &subscription) in &config.subscriptions {
            catalogue.subscribe(config.member, group, subscription);
        }
        let draws = matches!(policy.requests.servers, super::Servers::Anyone(_));
        Self {
            catalogue,
            cache: Cache::new(policy.cache, config.bodies.clone()),
            neighbours: Neighbours::new(policy.dead_after),
            asking: Asking::new(policy, config.links, random.fork()),
            serving: Serving::new(policy.repairs.memory, draws),
            forwards: Forwards::new(policy.forwarding, policy.forward_delay, random.fork()),
            pushes: Pushes::new(
                policy.replication.clone(),
                policy.dead_after,
                policy.summaries.0 * 2,
                policy.ask_interval(),
            ),
            trickle: Trickle::new(Instant::ZERO, policy.summaries, config.links, random.fork()),
            unsent: VecDeque::new(),
            unsent_bytes: 0,
            control: VecDeque::new(),
            page: 0,
            pacer: Pacer::new(config.slack),
            random,
            out: Outbox::new(),
            credit: UnitCredit::new(config.unit_credit),
            begun: false,
            transmissions: 0,
            counted: Counted::default(),
            config,
        }
    }

    /// Subscribes to a group from now on.
    pub fn subscribe(&mut self, now: Instant, group: &Group, subscription: Subscription) {
        self.catalogue.subscribe(self.config.member, group, subscription);
        self.hand_up_held(now);
    }

    /// Ends a subscription.
    pub fn unsubscribe(&mut self, group: &Group) {
        self.catalogue.unsubscribe(group);
    }

    /// Publishes a message; `None` if it is too long to be held.
    pub fn publish(&mut self, now: Instant, metadata: &Metadata, payload: &[u8]) -> Option<MessageId> {
        let id = self.take(now, metadata, Buffer::copy_from(payload));
        self.run(now);
        id
    }

    /// Sends at another rate from now on.
    pub const fn set_rate(&mut self, rate: Rate) {
        self.config.policy.rate = rate;
    }

    /// Whether it has sent all that it published.
    pub fn is_sent(&self) -> bool {
        self.unsent.is_empty()
    }

    /// Bytes of messages that it has published and not sent yet.
    pub const fn unsent(&self) -> u64 {
        self.unsent_bytes
    }

    /// Number of messages that it holds something of.
    pub fn messages(&self) -> usize {
        self.cache.len()
    }

    /// Whether it holds a whole message.
    pub fn holds(&self, id: MessageId) -> bool {
        self.cache.get(id).is_some_and(super::message::Message::is_whole)
    }

    /// Whether it holds a fragment of a message.
    #[cfg(test)]
    pub(super) fn has(&self, id: MessageId, index: u32) -> bool {
        self.cache.get(id).is_some_and(|message| message.fragment(index).is_some())
    }

    /// Its state in words, for a test that fails.
    #[cfg(test)]
    pub(super) fn state(&self, now: Instant) -> String {
        let series: Vec<_> =
            self.catalogue.iter().map(|(id, series)| format!("{}: {series:?}", id.publisher.node)).collect();
        let neighbours: Vec<_> = self.neighbours(now).map(|member| member.node).collect();
        format!(
            "{series:?}\n asking {:?}\n neighbours {neighbours:?} unsent {:?} trickle {:?}",
            self.asking, self.unsent, self.trickle
        )
    }

    /// Bytes of memory that the messages take which it holds.
    pub const fn held(&self) -> usize {
        self.cache.bytes()
    }

    /// The messages that were dropped for want of room, the last ones only.
    pub fn dropped(&self) -> impl Iterator<Item = Dropped> + '_ {
        self.cache.dropped.iter().copied()
    }

    /// Members that it hears.
    pub fn neighbours(&self, now: Instant) -> impl Iterator<Item = MemberId> + '_ {
        self.neighbours.present(now).map(|(member, _)| member)
    }

    /// Drops what is too much, and says so to the store.
    fn shrink(&mut self, keep: MessageId) {
        while let Some(dropped) = self.cache.shrink(keep) {
            self.counted.dropped += 1;
            self.counted.dropped_bytes += dropped.bytes as u64;
            self.lost(dropped.id);
        }
    }

    /// A message is not held any more: it is not asked for again, and nothing waits for it.
    fn lost(&mut self, id: MessageId) {
        self.serving.end(id);
        self.asking.forget(id);
        if id.publisher == self.config.member {
            self.unsent.retain(|&(unsent, _)| unsent != id);
        }
        self.store(message_key(id), Buffer::copy_from(&[]));
        if let Some(series) = self.catalogue.get_mut(id.into()) {
            let was_wanted = series.wants(id.sequence);
            series.held.remove_run(id.sequence.into()..u64::from(id.sequence) + 1);
            series.give_up(id.sequence);
            self.counted.deliveries.given_up += u64::from(was_wanted);
        }
        self.hand_up_ready(id.into());
    }

    /// The address of all members.
    const fn all(&self) -> SocketAddr {
        self.config.group
    }

    fn value_of(&self, id: MessageId) -> Value {
        match self.catalogue.get(id.into()) {
            Some(series) if series.wants(id.sequence) => Value::Wanted,
            Some(series) if series.is_wanted() => Value::Done,
            _ => Value::Others,
        }
    }

    /// The member's requests, and the state that they follow from.
    fn asking(&mut self) -> (&mut Asking, View<'_>) {
        let view = View { cache: &self.cache, catalogue: &self.catalogue, neighbours: &mut self.neighbours };
        (&mut self.asking, view)
    }
}

/// The message of a series that is sent next, with the fragment of it; `None` if all of it has been sent.
fn next_of(series: SeriesId, unsent: &VecDeque<(MessageId, u32)>) -> Option<(MessageId, u32)> {
    unsent.iter().copied().find(|&(id, _)| SeriesId::from(id) == series)
}

impl Machine for Peer {
    fn handle(&mut self, now: Instant, port: Port, item: Item) {
        match (port, item) {
            (Port::Above(1), Item::Message(record)) => {
                // It begins when it has all records.
                return self.restore(now, &record);
            }
            (Port::Above(_), item) => self.on_above(now, item),
            (Port::Below(_), Item::Datagram(datagram)) => {
                self.on_below(now, &datagram);
                datagram.payload.recycle();
            }
            (Port::Below(_), _) => {}
        }
        self.run(now);
    }

    fn wake(&mut self, now: Instant) {
        self.run(now);
    }

    fn poll(&mut self, _now: Instant) -> Option<(Port, Item)> {
        self.out.pop()
    }

    fn deadline(&self) -> Option<Instant> {
        if !self.begun {
            return Some(Instant::ZERO);
        }
        let departure = self.pacer.departure();
        let sends = !self.unsent.is_empty() || !self.control.is_empty();
        let paced = [
            sends.then_some(departure),
            self.serving.deadline().map(|at| at.max(departure)),
            self.pushes.deadline().map(|at| at.max(departure)),
            self.forwards.deadline().map(|at| at.max(departure)),
        ];
        let timers = [self.asking.deadline(), Some(self.trickle.deadline()), self.cache.next_expiry()];
        paced.into_iter().chain(timers).flatten().min()
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        let counted = &self.counted;
        counted.traffic.counters(report);
        counted.requests.counters(report);
        counted.deliveries.counters(report);
        report("fragments_forwarded", counted.forwarded);
        report("requests_passed_on", counted.passed_on);
        report("repairs_redundant", counted.redundant);
        report("cache_dropped", counted.dropped);
        report("cache_bytes_dropped", counted.dropped_bytes);
        report("cache_expired", counted.expired);
        report("messages_damaged", counted.damaged);
        report("message_conflicts", counted.conflicts);
        report("units_refused", counted.refused);
        report("malformed", counted.malformed);
    }
}
