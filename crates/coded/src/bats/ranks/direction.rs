//! One direction of a session through a node: its batches, and where they begin or end.

use hopcast_core::{Buffer, Instant};

use super::super::age::Age;
use super::super::config::Config;
use super::super::counters::Counters;
use super::super::framing;
use super::super::shape::Shape;
use super::super::span::{MAX_SYMBOLS, Vector};
use super::super::wire::{self, BatchHeader, Coding, Session};
use super::sink::Sink;
use super::store::Store;

/// One direction of a session.
pub(in super::super) struct Direction {
    pub(super) session: Session,
    pub(super) store: Store,
    /// The ages of arriving data; `None` where delivery is reliable.
    pub(super) age: Option<Age>,
    pub(super) role: Role,
    /// The first symbol that can still be had, as a relay has heard.
    pub(super) gone: u64,
}

/// The role of a node in one direction of a session.
pub(super) enum Role {
    /// It makes symbols; the next one is this.
    Source(u64),
    /// It passes on the packets that arrive.
    Relay,
    /// It delivers.
    Sink(Box<Sink>),
}

/// The fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// The rank of this batch has risen.
    Innovative(u64),
    /// It says nothing new.
    Redundant,
    /// There is no place for its batch yet.
    Beyond,
}

impl Direction {
    /// The direction that begins here.
    pub(super) fn source(config: &Config, session: Session) -> Self {
        let shape = Shape::begun(config, u16::MAX);
        let store = Store::new(shape, window(config, shape), 0);
        Self { session, store, age: Age::at_source(config), role: Role::Source(0), gone: 0 }
    }

    /// A direction that comes from elsewhere, as its sender describes it; `sink`: it ends here. `None` for a shape that
    /// no code has.
    pub(super) fn arriving(config: &Config, info: &wire::Info, sink: bool) -> Option<Self> {
        let shape = Shape::told(info);
        let store = Store::new(shape, window(config, shape), info.floor);
        let role = if sink { Role::Sink(Box::new(Sink::new(&store)?)) } else { Role::Relay };
        Some(Self { session: info.session, store, age: info.age(config, sink), role, gone: 0 })
    }

    /// Takes a packet; `number` is its batch.
    pub(super) fn take(&mut self, now: Instant, data: &Arrived, payload: Buffer) -> Taken {
        let shape = self.store.shape();
        let symbols = shape.symbols();
        let number = data.number;
        if self.store.is_done(number) {
            payload.recycle();
            return Taken::Redundant;
        }
        let Some(slot) = self.store.admit(now, number) else { return Taken::Beyond };
        let made = self.age.as_mut().zip(data.index).and_then(|(age, index)| {
            let (number, len) = (number * symbols + u64::from(index), usize::from(shape.symbol));
            let (first, last) = framing::stamps(self.session.mark, number, &payload, len)?;
            Some((age.sent(now, first)?, age.sent(now, last)?))
        });
        let rank = match (&mut self.role, data.index) {
            (Role::Sink(sink), index) => {
                let rank = sink.push(number, index, &data.vector, &payload);
                payload.recycle();
                rank
            }
            (_, Some(index)) => slot.batch.push_symbol(index, payload).then(|| slot.batch.rank()),
            (_, None) => slot.batch.push_coded(data.vector, payload).then(|| slot.batch.rank()),
        };
        let top = number * symbols + u64::from(data.top);
        if let Role::Sink(sink) = &mut self.role {
            sink.hear(now, top);
        }
        let Some(rank) = rank else { return Taken::Redundant };
        self.store.grown(number, rank, top, made.map_or(now, |(_, newest)| newest));
        if self.age.is_some() && !matches!(self.role, Role::Sink(_)) {
            self.store.dated(number, data.index, made.map(|(oldest, _)| oldest));
        }
        Taken::Innovative(number)
    }

    /// Makes the next symbol of what `fill` writes, which the application handed over at `made`; its batch.
    pub(super) fn make(
        &mut self,
        now: Instant,
        made: Instant,
        fill: impl FnOnce(u64, &mut [u8]) -> usize,
    ) -> Option<u64> {
        let Role::Source(next) = &mut self.role else { return None };
        let shape = self.store.shape();
        let (number, index) = (*next / shape.symbols(), *next % shape.symbols());
        let mut symbol = Buffer::zeroed(usize::from(shape.symbol));
        let len = fill(*next, &mut symbol);
        if len == 0 {
            return None;
        }
        symbol.truncate(len);
        let slot = self.store.admit(now, number)?;
        slot.batch.push_symbol(index as u8, symbol);
        let rank = slot.batch.rank();
        *next += 1;
        self.store.grown(number, rank, *next, now);
        if self.age.is_some() {
            self.store.dated(number, Some(index as u8), Some(made));
        }
        Some(number)
    }

    /// The next symbol that would be made, if there is a place for it.
    pub(super) fn next(&self) -> Option<u64> {
        match self.role {
            Role::Source(next) => (next < self.store.limit()).then_some(next),
            Role::Relay | Role::Sink(_) => None,
        }
    }

    /// Up to which symbol everything has taken too long.
    pub(super) fn expired(&self, now: Instant) -> u64 {
        self.age.as_ref().map_or(self.store.floor(), |age| self.store.expired(now, age.bound()))
    }

    /// Up to which symbol everything must be given up to make place for a batch, where delivery has a deadline: what is
    /// too old for a place is too old to wait for.
    pub(super) fn crowded_out(&self, number: u64) -> Option<u64> {
        let first = (number + 1).saturating_sub(self.store.window());
        (self.age.is_some() && first > self.store.first()).then(|| first * self.store.shape().symbols())
    }

    /// Counts the ranks of the batches that will be over when the floor is at `floor`.
    pub(super) fn count_ranks(&self, floor: u64, counters: &mut Counters) {
        let to = (floor / self.store.shape().symbols()).min(self.store.end());
        for number in self.store.first()..to {
            let rank = usize::from(self.store.get(number).rank);
            counters.ranks[rank.min(MAX_SYMBOLS)] += 1;
        }
    }

    /// Whether everything has taken too long to work for it.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.age.as_ref().is_some_and(|age| self.store.is_over(now, age.bound()))
    }

    /// Time at which a source or relay gives a batch up, or a sink a symbol.
    pub(super) fn gives_up(&self) -> Option<Instant> {
        let after = self.age.as_ref()?.bound();
        match &self.role {
            Role::Sink(sink) => sink.gives_up(after),
            Role::Source(_) | Role::Relay => self.store.expires(after),
        }
    }

    /// A sink has delivered what it could: finds out how long it may hold back what is after a gap.
    pub(super) fn hold(&mut self, now: Instant) {
        if let (Some(age), Role::Sink(sink)) = (&mut self.age, &mut self.role) {
            let first = sink.first_held(framing::first_stamp(self.session.mark)).flatten();
            sink.held_until = first.and_then(|first| age.due(now, first));
        }
    }
}

/// A packet's description, without borrowed bytes.
pub(in super::super) struct Arrived {
    pub(super) number: u64,
    pub(super) index: Option<u8>,
    pub(super) vector: Vector,
    /// After the last symbol of the batch that it holds something of.
    top: u8,
}

impl Arrived {
    /// Interprets a DATA frame by the state of its session.
    pub(super) fn new(data: &wire::Data<'_>, store: &Store) -> Option<Self> {
        let shape = store.shape();
        let BatchHeader { block, batch, id } = data.header;
        if (block, batch) != (shape.block, shape.batch)
            || u64::from(id) >= shape.batches()
            || data.payload.len() > usize::from(shape.symbol)
        {
            return None;
        }
        let block = wire::complete(data.block, 24, store.base() / shape.batches());
        let number = block.checked_mul(shape.batches())?.checked_add(u64::from(id))?;
        let mut vector = [0; MAX_SYMBOLS];
        let (index, top) = match data.coding {
            Coding::Symbol(index) => (Some(index), index + 1),
            Coding::Vector { first, vector: coefficients } => {
                vector[usize::from(first)..][..coefficients.len()].copy_from_slice(coefficients);
                (None, vector.iter().rposition(|&coefficient| coefficient != 0)? as u8 + 1)
            }
        };
        Some(Self { number, index, vector, top })
    }
}

/// Number of batches held: grants are sent in 16 bits of symbols.
fn window(config: &Config, shape: Shape) -> usize {
    usize::from(config.window).clamp(4, usize::from(u16::MAX) / shape.batch.symbols() - 1)
}
