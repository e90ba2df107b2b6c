//! One direction of a session through a node.

use hopcast_core::{Duration, Instant, earliest};

use super::super::age::Age;
use super::super::config::Config;
use super::super::framing;
use super::super::shape::Shape;
use super::super::span::{MAX_SYMBOLS, Vector};
use super::super::wire::{self, BatchHeader, Coding, Data, Info, Session};
use super::order::{MAX_HEADER_DEPTH, Order};
use super::ring::Ring;
use super::sink::{QUIET_AFTER, Sink};
use super::source::Source;

/// Silence after which a batch is taken to be over. Chosen: a link that carries 6 Mbit/s brings a packet in less;
/// shorter, and batches of a slow link are recoded before they are whole, longer, and the last one of a transfer waits
/// at each hop.
const SETTLE_AFTER: Duration = Duration::from_millis(2);
/// Number of times that the sink says that nothing comes any more. Chosen: each is lost by six hops of 20 % with a
/// probability of three quarters, all eight by one in ten; then the source's own timeout has to do.
const MAX_QUIET_REPORTS: u32 = 8;
/// Maximum number of systematic batches of a block: they leave enough of the 8,192 (RFC 9426, section 4.2) for repairs.
const MAX_BLOCK_BATCHES: u16 = 256;
/// Maximum number of blocks between those of which packets are under way: a packet of one further ahead is not
/// believed. Chosen: a source has fewer under way; more would be memory that a forged packet can claim.
pub(super) const MAX_BLOCKS_AHEAD: u64 = 64;
/// Share of the budget that a relay spends: the rest lets its queue drain. Chosen: a larger share drains it more
/// slowly, a smaller one spends less on repair.
const RELAY_SPENDS: f64 = 0.995;
/// Bits of a block's number that a packet has: 24, of which three tell the depth of interleaving.
pub(super) const BLOCK_BITS: u32 = 21;

/// One direction of a session.
pub(in super::super) struct Direction {
    pub(super) session: Session,
    pub(super) shape: Shape,
    pub(super) ring: Ring,
    pub(super) role: Role,
    /// The ages of arriving data; `None` where delivery is reliable.
    pub(super) age: Option<Age>,
    /// The bytes to spend on a whole batch, as the source has it, headers of lower layers included.
    pub(super) budget: f64,
    /// The first block that is not over, as far as a relay knows.
    floor: u64,
    /// The first block that can still be had, as a relay has heard.
    pub(super) gone: u64,
    /// Time at which something came last.
    pub(super) touched: Instant,
    /// That time, and the number of times that the sink has since said that nothing comes any more.
    quiet: Option<(Instant, u32)>,
}

/// The role of a node in one direction of a session.
pub(super) enum Role {
    /// It makes symbols.
    Source(Box<Source>),
    /// It passes on the packets that arrive.
    Relay,
    /// It delivers.
    Sink(Box<Sink>),
}

impl Direction {
    /// The direction that begins here; `None` for a shape that no code has.
    pub(super) fn source(config: &Config, session: Session) -> Option<Self> {
        let (shape, age) = (Shape::begun(config, MAX_BLOCK_BATCHES), Age::at_source(config));
        let source = Source::new(shape, session.mark, config.window, age.as_ref().map(Age::bound))?;
        Some(Self::new(config, (session, shape), Role::Source(Box::new(source)), age, 0))
    }

    /// A direction that comes from elsewhere, as its sender describes it; `sink`: it ends here, at this instance.
    /// `None` for a shape that no code has.
    pub(super) fn arriving(config: &Config, info: &Info, sink: Option<u16>) -> Option<Self> {
        let shape = Shape::told(info);
        let age = info.age(config, sink.is_some());
        let role = match sink {
            Some(instance) => Role::Sink(Box::new(Sink::new(
                shape,
                info.session.mark,
                config.window,
                info.floor,
                instance,
            )?)),
            None => Role::Relay,
        };
        let floor = info.floor / u64::from(info.block);
        Some(Self::new(config, (info.session, shape), role, age, floor))
    }

    fn new(
        config: &Config,
        (session, shape): (Session, Shape),
        role: Role,
        age: Option<Age>,
        floor: u64,
    ) -> Self {
        Self {
            session,
            shape,
            ring: Ring::new(usize::from(config.window).clamp(4, 4096), floor),
            role,
            age,
            budget: 0.0,
            floor,
            gone: 0,
            touched: Instant::ZERO,
            quiet: None,
        }
    }

    /// It takes at least so long to the end that is furthest away, as far as it is known, and where all of it is. A
    /// source has measured that too, as it repairs from end to end.
    pub(super) fn look_ahead(&mut self, ahead: Option<Duration>, rest: Option<Duration>) {
        let Some(age) = &mut self.age else { return };
        match &mut self.role {
            Role::Source(source) => {
                age.look_ahead(source.trip().map(|trip| trip / 2).max(ahead), rest);
                source.keep_for(age.bound());
            }
            Role::Relay | Role::Sink(_) => age.look_ahead(ahead, rest),
        }
    }

    pub(super) const fn is_source(&self) -> bool {
        matches!(self.role, Role::Source(_))
    }

    /// The bytes that this node spends on a whole batch.
    pub(super) fn spends(&self) -> f64 {
        self.budget * if self.is_source() { 1.0 } else { RELAY_SPENDS }
    }

    /// The first symbol that is of use to anybody.
    pub(super) fn floor(&self) -> u64 {
        let block = u64::from(self.shape.block);
        match &self.role {
            Role::Source(source) => source.first() * block,
            Role::Relay => self.floor * block,
            Role::Sink(sink) => sink.floor(),
        }
    }

    /// The sink has come to a block, of which the lowest bits are given.
    pub(super) fn pass(&mut self, first: u32) {
        let first = wire::complete(first, 24, self.floor);
        // No further than packets have come.
        self.floor = self.floor.max(first.min(self.gone.max(self.ring.block() + 1)));
        self.drop_over();
    }

    /// Nothing before this block can be had any more, as a relay has heard.
    pub(super) fn give_up_before(&mut self, first: u64) {
        self.gone = self.gone.max(first);
        if self.age.is_some() {
            // With a deadline no sink is waited for.
            self.floor = self.floor.max(first);
        }
        self.drop_over();
    }

    /// Batches of blocks that are over are of no use.
    pub(super) fn drop_over(&mut self) {
        let first = match &self.role {
            Role::Source(source) => source.first(),
            Role::Relay | Role::Sink(_) => self.floor,
        };
        self.ring.drop_before(first);
    }

    /// Time at which a relay gives up the first of what it has, where delivery has a deadline.
    pub(super) fn expires(&self) -> Option<Instant> {
        let Role::Relay = self.role else { return None };
        self.ring.expires(self.age.as_ref()?.bound())
    }

    /// Gives up the blocks that are too old at a relay, where they would only delay what can still be in time. The
    /// serial numbers of their batches.
    pub(super) fn drop_expired(&mut self, now: Instant) -> core::ops::Range<u64> {
        let before = self.ring.first();
        while self.expires().is_some_and(|at| at <= now) {
            self.ring.drop_block();
        }
        before..self.ring.first()
    }

    /// The stamps of the first and the last unit that begin in a packet, where delivery has a deadline and that can be
    /// known.
    pub(super) fn stamps(&self, packet: &Arrived, payload: &[u8]) -> Option<(u32, u32)> {
        let (Some(_), Some(index)) = (&self.age, packet.index) else { return None };
        // Only the symbols of systematic batches are in the clear: those of a repair batch are combinations.
        if u64::from(packet.header.id) >= self.shape.batches() {
            return None;
        }
        let order = Order::new(self.shape.batch.symbols(), self.shape.block, packet.depth);
        let position = order.position(usize::from(packet.header.id), usize::from(index));
        let number = packet.block * u64::from(self.shape.block) + position as u64;
        framing::stamps(self.session.mark, number, payload, usize::from(self.shape.symbol))
    }

    /// A sink has delivered what it could: finds out how long it may hold back what is after a gap.
    pub(super) fn hold(&mut self, now: Instant) {
        let (Some(age), Role::Sink(sink)) = (&mut self.age, &mut self.role) else { return };
        let first = sink.first_held(framing::first_stamp(self.session.mark)).flatten();
        sink.held_until = first.and_then(|first| age.due(now, first));
    }

    /// Whether packets of a block may be under way.
    pub(super) fn is_in_reach(&self, block: u64) -> bool {
        (self.floor..self.floor + MAX_BLOCKS_AHEAD).contains(&block)
    }

    /// Time from which nothing more is to be expected of batches than has come.
    pub(super) fn settles(&self) -> Option<Instant> {
        self.ring.is_open().then_some(self.touched + SETTLE_AFTER)
    }

    /// Number of times that the sink has said that nothing comes any more, since something came.
    fn said(&self) -> u32 {
        self.quiet.filter(|(since, _)| *since == self.touched).map_or(0, |(_, times)| times)
    }

    /// Time at which it says so: its word has many hops to go and may be lost on each, so it says it again, each time
    /// after twice as long.
    fn falls_quiet(&self) -> Option<Instant> {
        let said = self.said();
        (said < MAX_QUIET_REPORTS).then(|| self.touched + QUIET_AFTER * (1 << said))
    }

    /// Whether it says so now.
    pub(super) fn is_quiet(&mut self, now: Instant) -> bool {
        let quiet = self.falls_quiet().is_some_and(|at| at <= now);
        if quiet {
            self.quiet = Some((self.touched, self.said() + 1));
        }
        quiet
    }

    /// Time at which there is something to do next.
    pub(super) fn next_event(&self) -> Option<Instant> {
        let role = match &self.role {
            Role::Source(source) => source.deadline(),
            Role::Relay => self.expires(),
            Role::Sink(sink) => {
                let after = self.age.as_ref().map(Age::bound);
                earliest(self.falls_quiet(), after.and_then(|after| sink.gives_up(after)))
            }
        };
        earliest(self.settles(), role)
    }
}

/// A packet's description, without borrowed bytes.
pub(in super::super) struct Arrived {
    pub(super) block: u64,
    pub(super) header: BatchHeader,
    pub(super) depth: u8,
    pub(super) index: Option<u8>,
    pub(super) vector: Vector,
}

impl Arrived {
    /// Interprets a DATA frame by the state of its session.
    pub(super) fn new(data: &Data<'_>, direction: &Direction) -> Option<Self> {
        let shape = direction.shape;
        let count = data.header.block;
        if data.header.batch != shape.batch
            || count == 0
            || count > shape.block
            || data.payload.len() > usize::from(shape.symbol)
        {
            return None;
        }
        let expected = match &direction.role {
            Role::Sink(sink) => sink.floor() / u64::from(shape.block),
            Role::Source(_) | Role::Relay => direction.ring.block(),
        };
        let block = wire::complete(data.block & ((1 << BLOCK_BITS) - 1), BLOCK_BITS, expected);
        let depth = (data.block >> BLOCK_BITS) as u8 & MAX_HEADER_DEPTH;
        let mut vector = [0; MAX_SYMBOLS];
        let index = match data.coding {
            Coding::Symbol(index) => Some(index),
            Coding::Vector { first, vector: coefficients } => {
                vector[usize::from(first)..][..coefficients.len()].copy_from_slice(coefficients);
                vector.iter().any(|&coefficient| coefficient != 0).then_some(())?;
                None
            }
        };
        Some(Self { block, header: data.header, depth, index, vector })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bats::BatchSize;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// A relay's direction, at block 2.
    fn relay() -> Direction {
        let info = Info { budget: Some(0), floor: 512, ..Info::example() };
        Direction::arriving(&Config::strict(), &info, None).unwrap()
    }

    #[test]
    fn a_relay_spends_a_200th_less_than_the_source() {
        let source = Direction::source(&Config::strict(), Session { mark: 1 }).unwrap();
        for (mut direction, spends) in [(source, 20_000.0), (relay(), 19_900.0)] {
            direction.budget = 20_000.0;
            assert!((direction.spends() - spends).abs() < 1e-6, "{}", direction.spends());
        }
    }

    #[test]
    fn a_batch_is_settled_when_nothing_has_come_for_2_ms() {
        let mut direction = relay();
        direction.touched = at(100);
        assert_eq!(direction.settles(), None);
        direction.ring.admit(2, BatchHeader { block: 256, batch: BatchSize::M16, id: 0 }, 0);
        assert_eq!(direction.settles(), Some(at(102)));
    }

    #[test]
    fn that_nothing_comes_any_more_is_said_eight_times_each_after_twice_as_long() {
        let mut direction = relay();
        direction.touched = at(100);
        let said: Vec<u64> = (100..5000).filter(|&now| direction.is_quiet(at(now))).collect();
        assert_eq!(said, [105, 110, 120, 140, 180, 260, 420, 740]);
        direction.touched = at(6000);
        assert_eq!(direction.falls_quiet(), Some(at(6005)));
    }

    #[test]
    fn packets_of_64_blocks_may_be_under_way() {
        let direction = relay();
        assert_eq!([1, 2, 65, 66].map(|block| direction.is_in_reach(block)), [false, true, true, false]);
    }

    #[test]
    fn a_block_has_256_systematic_batches_at_most() {
        let config = Config { block: 65_520, batch: BatchSize::M4, ..Config::strict() };
        let direction = Direction::source(&config, Session { mark: 1 }).unwrap();
        assert_eq!(direction.shape.block, 256 * 4);
    }

    #[test]
    fn the_first_three_bits_of_a_block_are_the_depth() {
        let direction = relay();
        let data = Data {
            block: 0b101 << 21 | 7,
            header: BatchHeader { id: 3, ..Data::example().header },
            coding: Coding::Symbol(4),
            payload: &[0; 1000],
            ..Data::example()
        };
        let packet = Arrived::new(&data, &direction).unwrap();
        assert_eq!((packet.block, packet.depth, packet.index), (7, 5, Some(4)));
        let far = Arrived::new(&Data { block: 0x1F_FFFF, ..data }, &direction).unwrap();
        assert_eq!((far.block, far.depth), (0x1F_FFFF, 0));
    }

    #[test]
    fn a_relay_follows_its_sink_as_far_as_packets_have_come() {
        for (first, floor) in [(1, 2), (3, 3), (4, 4), (5, 5), (6, 5), (1000, 5)] {
            let mut direction = relay();
            direction.ring.admit(4, BatchHeader { block: 256, batch: BatchSize::M16, id: 0 }, 0);
            direction.pass(first);
            assert_eq!(direction.floor(), floor * 256, "the sink is at block {first}");
        }
    }
}
