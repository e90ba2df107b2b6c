//! A member of the session with its application: a sender of objects that are all alike, or a receiver that compares
//! them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hopcast_core::{Duration, Instant, Item, Machine, Membership, Port, Rate, Seed, Stream};
use hopcast_reliable::norm::wire::NodeId;
use hopcast_reliable::norm::{Config, RateControl, ReceiverConfig, SenderConfig, Session};

use crate::{LOSS, OBJECT, OBJECTS, RECEIVERS};

/// Port of the session.
pub(crate) const PORT: u16 = 6003;

/// The settings that all members of a run share.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    seed: u64,
    /// How fast the sender sends.
    rate: Rate,
    /// Address of each member, the sender's first.
    addresses: Vec<SocketAddr>,
    group: SocketAddr,
    /// The contents of each object.
    object: Arc<[u8]>,
    /// How late the kernel may wake a member.
    slack: Duration,
    /// Bytes of objects that came whole, at all receivers.
    delivered: Arc<AtomicU64>,
}

impl Run {
    pub(crate) fn new(seed: u64, rate: Rate, slack: Duration, address: impl Fn(usize) -> SocketAddr) -> Self {
        let mut object = vec![0; OBJECT];
        Seed::new(seed, 0).stream(&["object"], 0).fill(&mut object);
        Self {
            seed,
            rate,
            addresses: (0..=RECEIVERS).map(address).collect(),
            group: SocketAddr::from(([224, 1, 2, 3], PORT)),
            object: object.into(),
            slack,
            delivered: Arc::default(),
        }
    }

    pub(crate) fn address(&self, member: usize) -> SocketAddr {
        self.addresses[member]
    }

    /// Bytes of objects that came whole, at all receivers.
    pub(crate) fn delivered(&self) -> u64 {
        self.delivered.load(Ordering::Relaxed)
    }

    /// Whether all receivers have all.
    pub(crate) fn is_over(&self) -> bool {
        self.delivered() >= (RECEIVERS * OBJECTS * OBJECT) as u64
    }
}

/// A member.
pub(crate) struct Member {
    session: Session,
    run: Run,
    join: Option<Membership>,
    /// Objects that are still to be given to the session.
    to_give: usize,
    loss: f64,
    losses: Stream,
}

impl Member {
    /// The sender is member 0.
    pub(crate) fn new(run: &Run, member: usize) -> Self {
        let is_sender = member == 0;
        let sender = SenderConfig {
            rate: RateControl::Fixed(run.rate),
            group_size: Some(RECEIVERS as u64),
            slack: run.slack,
            ..SenderConfig::default()
        };
        let config = Config {
            node: NodeId(member as u32 + 1),
            instance: 1,
            local: run.address(member),
            group: run.group,
            sender: is_sender.then_some(sender),
            receiver: (!is_sender).then(ReceiverConfig::default),
            unit_credit: false,
        };
        let seed = Seed::new(run.seed, 0);
        let session = Session::new(config, seed.stream(&["member"], member as u64));
        let join = Membership { group: run.group.ip(), source: None, interface: None, joined: true };
        Self {
            session,
            run: run.clone(),
            join: Some(join),
            to_give: if is_sender { OBJECTS } else { 0 },
            loss: if is_sender { 0.0 } else { LOSS },
            losses: seed.stream(&["losses"], member as u64),
        }
    }

    /// Whether the next packet is lost on its way to this member.
    pub(crate) fn loses(&mut self) -> bool {
        self.losses.chance(self.loss)
    }

    fn give(&mut self, now: Instant) {
        while self.to_give > 0 && self.session.send(now, Arc::clone(&self.run.object), None, false).is_some()
        {
            self.to_give -= 1;
        }
    }

    fn take(&self, item: &Item) {
        if let Item::Message(message) = item
            && message.payload[..] == self.run.object[..]
        {
            self.run.delivered.fetch_add(message.payload.len() as u64, Ordering::Relaxed);
        }
    }
}

impl Machine for Member {
    fn handle(&mut self, now: Instant, port: Port, item: Item) {
        self.session.handle(now, port, item);
    }

    fn wake(&mut self, now: Instant) {
        self.give(now);
        self.session.wake(now);
    }

    fn poll(&mut self, now: Instant) -> Option<(Port, Item)> {
        if let Some(join) = self.join.take() {
            return Some((Port::Below(0), Item::Membership(join)));
        }
        loop {
            match self.session.poll(now)? {
                (Port::Above(_), item) => self.take(&item),
                below => return Some(below),
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        if self.to_give > 0 { Some(Instant::ZERO) } else { self.session.deadline() }
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        self.session.counters(report);
    }
}
