//! The encoder: puts symbols into blocks, sends them, and sends combinations of them until they are acknowledged.

mod block;
mod budget;
mod feedback;

use std::collections::VecDeque;

use hopcast_code::field::Field;
use hopcast_code::rlnc::{self, Coefficients};
use hopcast_core::{Duration, Instant};

use super::bits::Bits;
use super::combination::draw;
use super::config::{Config, Losses, Plan};
use super::input::Input;
use block::{Block, Outlook};
use budget::Budget;

/// State of the encoder (paper, section II-D).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// All that was added is acknowledged.
    Idle,
    /// There is something to send.
    Enc,
    /// All has been sent that may be; an acknowledgement is due.
    Wait,
}

/// Number of timeouts in a row after which they come ever more seldom. Chosen; fewer slow down where losses are high,
/// more send in vain to who is gone.
const PATIENCE: u32 = 25;
/// Maximum time between two of those timeouts. Chosen; shorter sends more in vain, longer finds a decoder that is back
/// later.
const SLOWEST: Duration = Duration::from_millis(320);
/// While there is nothing better to do, a combination is sent for what is expected to be missing when it comes to this
/// many packets, if nothing waits. Chosen; less sends in vain, more waits for a timeout.
const WORTH_SENDING_IDLE: f64 = 0.2;
/// The same if what waits has no room: one whole packet. Chosen; less sends in vain, more leaves the window full until
/// a timeout.
const WORTH_SENDING_FULL: f64 = 1.0;
/// Number of acknowledgements without progress of the oldest block after which it is not left to the helper. Chosen;
/// fewer, and both send the same; more, and a helper that cannot help holds up the window.
const STALLED: u32 = 4;

/// The encoder of one direction.
#[derive(Debug)]
pub(super) struct Encoder<F: Field> {
    config: Config,
    coefficients: Coefficients,
    blocks: VecDeque<Block<F>>,
    /// Memory of blocks that are done.
    spare: Vec<rlnc::Encoder<F>>,
    next_block: u32,
    sequence: u64,
    budget: Option<Budget>,
    /// Time at which to send more unasked.
    wait: Option<Instant>,
    pause: Duration,
    /// Number of timeouts in a row, and the packets sent in the present one.
    unanswered: u32,
    probes: f64,
    vector: Vec<u8>,
    symbol: Vec<u8>,
    last_ack: Option<u32>,
    pub(super) counters: Counters,
}

/// The encoder's figures.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub(super) symbols: u64,
    pub(super) again: u64,
    pub(super) coded: u64,
    pub(super) blocks: u64,
    pub(super) block_packets: u64,
    pub(super) timeouts: u64,
}

/// A packet to be sent; its symbol is in the encoder's hands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Made {
    pub(super) block: u32,
    pub(super) sequence: u16,
    pub(super) added: u8,
    pub(super) what: What,
}

/// A packet of a block.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    /// A symbol, as it is.
    Symbol(u8),
    /// The sum of these.
    Sum(Bits),
}

/// Surroundings of the encoder, as far as it knows them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Surroundings {
    pub(super) losses: Losses,
    /// Whether a helper is there.
    pub(super) helped: bool,
    /// Whether a symbol that is not full may be sent.
    pub(super) partial: bool,
    /// Maximum length of a new symbol, in bytes.
    pub(super) room: usize,
}

impl<F: Field> Encoder<F> {
    pub(super) fn new(config: Config, seed: u64) -> Self {
        let shape = config.shape();
        Self {
            coefficients: Coefficients::new(seed),
            blocks: VecDeque::new(),
            spare: Vec::new(),
            next_block: 0,
            sequence: 0,
            budget: match config.plan {
                Plan::Budget { overshoot } => Some(Budget::new(overshoot)),
                Plan::Deficit => None,
            },
            wait: None,
            pause: config.timeout,
            unanswered: 0,
            probes: 0.0,
            vector: vec![0; shape.symbols()],
            symbol: vec![0; shape.symbol_len()],
            last_ack: None,
            counters: Counters::default(),
            config,
        }
    }

    /// Begins a new association: all blocks are void. How many symbols were not acknowledged.
    pub(super) fn restart(&mut self) -> u64 {
        let lost = self.blocks.iter().filter(|block| !block.is_acknowledged());
        let lost = lost.map(|block| u64::from(block.added())).sum();
        while let Some(block) = self.blocks.pop_front() {
            self.recycle(block);
        }
        (self.next_block, self.sequence, self.wait, self.last_ack) = (0, 0, None, None);
        (self.pause, self.unanswered, self.probes) = (self.config.timeout, 0, 0.0);
        if let Some(budget) = &mut self.budget {
            budget.restart();
        }
        lost
    }

    /// State of the encoder.
    pub(super) fn state(&self) -> State {
        if self.blocks.iter().all(Block::is_acknowledged) {
            State::Idle
        } else if self.budget.as_ref().is_some_and(Budget::can_spend) {
            State::Enc
        } else {
            State::Wait
        }
    }

    /// Time at which to be woken, if nothing happens before.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.wait
    }

    /// The next packet, if one is to be sent now.
    pub(super) fn next(&mut self, now: Instant, input: &mut Input, around: &Surroundings) -> Option<Made> {
        let made = match &self.budget {
            Some(_) => self.next_by_budget(now, input, around),
            None => self.next_by_deficit(now, input, around),
        };
        if made.is_some() {
            self.wait = self.wait.filter(|&at| at <= now && self.probes > 0.0).or(Some(now + self.pause));
        }
        made
    }

    /// Whether another symbol can be added.
    pub(super) fn has_room(&self) -> bool {
        self.blocks.len() < usize::from(self.config.window)
            || self.blocks.back().is_some_and(|block| block.added() < self.config.block)
    }

    /// The symbol that was made.
    pub(super) fn symbol(&self) -> &[u8] {
        &self.symbol
    }

    fn next_by_budget(&mut self, now: Instant, input: &mut Input, around: &Surroundings) -> Option<Made> {
        if self.wait.is_some_and(|at| at <= now) && self.state() == State::Wait {
            self.note_timeout(now);
            if let Some(budget) = &mut self.budget {
                budget.timeout(around.losses, &self.config);
            }
        }
        let open = self.blocks.iter().position(|block| !block.is_acknowledged());
        if let Some(place) = open
            && self.budget.as_mut().is_some_and(Budget::spend)
        {
            return self.combine(place, around);
        }
        let made = self.add_symbol(now, input, around, true)?;
        if let Some(budget) = &mut self.budget {
            budget.added(made.added == self.config.block, around.losses, &self.config);
            budget.spend();
        }
        Some(made)
    }

    fn next_by_deficit(&mut self, now: Instant, input: &mut Input, around: &Surroundings) -> Option<Made> {
        if let Some(made) = self.send_again(around) {
            return Some(made);
        }
        let ready = input.fills(around.room) || (around.partial && !input.is_empty());
        if ready && let Some(made) = self.add_symbol(now, input, around, false) {
            return Some(made);
        }
        let min = match (input.is_empty(), self.has_room()) {
            (true, _) => Some(WORTH_SENDING_IDLE),
            (false, false) => Some(WORTH_SENDING_FULL),
            (false, true) => None,
        };
        if let Some(place) = min.and_then(|min| self.expected_to_miss(around, min)) {
            return self.combine(place, around);
        }
        if self.wait.is_none_or(|at| at > now) {
            return None;
        }
        // Nobody has said anything for long: what was sent last may be lost, or the answer to it. So much is sent that
        // one is expected to arrive.
        let place = self.blocks.iter().position(|block| !block.is_acknowledged())?;
        self.probes += 1.0;
        if self.probes * (1.0 - around.losses.e3) >= 1.0 {
            self.note_timeout(now);
        }
        self.combine(place, around)
    }

    /// Sends the first symbol again that is known to be lacking.
    fn send_again(&mut self, around: &Surroundings) -> Option<Made> {
        let lacking = |(place, block): (usize, &Block<F>)| {
            if block.is_acknowledged() {
                return None;
            }
            Some((place, block.lacking(&self.outlook(place, around))?))
        };
        let (place, index) = self.blocks.iter().enumerate().find_map(lacking)?;
        let block = self.blocks.get_mut(place)?;
        self.symbol.copy_from_slice(block.code.symbol(usize::from(index)).ok()?);
        block.sent_symbol(index, self.sequence);
        self.counters.again += 1;
        let (number, added) = (block.number, block.added());
        Some(self.made(number, added, What::Symbol(index)))
    }

    /// The oldest block of which `min` packets or more are expected to be missing.
    fn expected_to_miss(&self, around: &Surroundings, min: f64) -> Option<usize> {
        let missing = |(place, block): &(usize, &Block<F>)| {
            !block.is_acknowledged() && block.missing(&self.outlook(*place, around)) >= min
        };
        self.blocks.iter().enumerate().find(missing).map(|(place, _)| place)
    }

    /// A block that holds up all others and makes no progress is not left to the helper.
    fn outlook(&self, place: usize, around: &Surroundings) -> Outlook {
        let stalled = place == 0 && self.blocks.front().is_some_and(|block| block.stale >= STALLED);
        Outlook { losses: around.losses, helped: around.helped && !stalled }
    }

    /// Adds a symbol to the last block, or to a new one, and sends it as it is.
    fn add_symbol(
        &mut self,
        now: Instant,
        input: &mut Input,
        around: &Surroundings,
        single: bool,
    ) -> Option<Made> {
        if !self.has_room() {
            return None;
        }
        let full = self.blocks.back().is_none_or(|block| block.added() == self.config.block);
        let room = around.room.min(self.symbol.len());
        self.symbol.fill(0);
        if !input.fill(now, &mut self.symbol[..room], single) {
            return None;
        }
        if full {
            let shape = self.config.shape();
            let code = self.spare.pop().unwrap_or_else(|| rlnc::Encoder::new(shape));
            self.blocks.push_back(Block::new(self.next_block, code, shape));
            self.next_block = self.next_block.wrapping_add(1);
        }
        let block = self.blocks.back_mut()?;
        let index = block.code.push(&self.symbol).ok()?;
        block.sent_symbol(index as u8, self.sequence);
        self.counters.symbols += 1;
        let (number, added) = (block.number, block.added());
        Some(self.made(number, added, What::Symbol(index as u8)))
    }

    /// Sends a combination of the packets that a block's decoder may lack.
    fn combine(&mut self, place: usize, around: &Surroundings) -> Option<Made> {
        let block = self.blocks.get_mut(place)?;
        let mut among: Bits = block.unknown(around.helped && self.budget.is_none()).collect();
        if among == Bits::default() {
            among = block.undelivered();
        }
        if F::BITS == 1 {
            // Over GF(2), of what has no coefficients, each is in with a probability of a half.
            among = some_of(among, &mut self.coefficients);
        }
        draw::<F>(among, block.number, self.sequence as u16, &mut self.vector);
        block.code.encode(&self.vector, &mut self.symbol).ok()?;
        block.sent_coded(self.sequence);
        self.counters.coded += 1;
        let (number, added) = (block.number, block.added());
        Some(self.made(number, added, What::Sum(among)))
    }

    fn made(&mut self, block: u32, added: u8, what: What) -> Made {
        let sequence = self.sequence as u16;
        self.sequence += 1;
        Made { block, sequence, added, what }
    }

    fn note_timeout(&mut self, now: Instant) {
        self.counters.timeouts += 1;
        self.probes = 0.0;
        self.unanswered += 1;
        if self.budget.is_none() && self.unanswered > PATIENCE {
            self.pause = (self.pause + self.pause).min(SLOWEST);
        }
        self.wait = Some(now + self.pause);
    }

    fn recycle(&mut self, block: Block<F>) {
        let mut code = block.code;
        code.clear();
        self.spare.push(code);
    }
}

/// A random half of the set, but at least one.
fn some_of(all: Bits, random: &mut Coefficients) -> Bits {
    let some: Bits = all.iter().filter(|_| random.bits() >> 63 == 1).collect();
    if some == Bits::default() {
        let pick = random.bits() % u64::from(all.count().max(1));
        all.iter().nth(pick as usize).into_iter().collect()
    } else {
        some
    }
}

#[cfg(test)]
mod tests {
    use hopcast_code::field::Gf256;
    use hopcast_core::Buffer;

    use super::*;

    fn around(e3: f64) -> Surroundings {
        let losses = Losses { e3, ..Losses::default() };
        Surroundings { losses, helped: false, partial: true, room: 100 }
    }

    /// An encoder with blocks of four symbols, one at a time, and `packets` packets that fill one each.
    fn encoder(packets: usize) -> (Encoder<Gf256>, Input) {
        let config = Config { block: 4, symbol: 100, window: 1, ..Config::default() };
        let mut input = Input::new(config.queue, config.mtu);
        (0..packets).for_each(|_| input.push(Instant::ZERO, Buffer::copy_from(&[1; 96])));
        (Encoder::new(config, 1), input)
    }

    #[test]
    fn after_25_timeouts_in_a_row_they_become_seldom() {
        let (mut encoder, mut input) = encoder(1);
        assert!(encoder.next(Instant::ZERO, &mut input, &around(0.0)).is_some());
        let (mut now, mut pauses) = (Instant::ZERO, Vec::new());
        for _ in 0..32 {
            let next = encoder.deadline().unwrap();
            pauses.push(next.since(now).as_millis());
            now = next;
            assert!(encoder.next(now, &mut input, &around(0.0)).is_some(), "one more may help");
        }
        assert_eq!(pauses[..26], [20; 26]);
        assert_eq!(pauses[26..], [40, 80, 160, 320, 320, 320]);
    }

    #[test]
    fn where_nothing_waits_a_fifth_of_a_packet_is_worth_a_combination() {
        for (loss, worth) in [(0.15, false), (0.19, false), (0.21, true), (0.25, true)] {
            let (mut encoder, mut input) = encoder(1);
            assert!(encoder.next(Instant::ZERO, &mut input, &around(loss)).is_some());
            let made = encoder.next(Instant::ZERO, &mut input, &around(loss));
            assert_eq!(made.is_some_and(|made| matches!(made.what, What::Sum(_))), worth, "{loss}");
        }
    }

    #[test]
    fn where_a_block_is_waited_for_a_whole_packet_is_worth_a_combination() {
        // Of four symbols.
        for (loss, worth) in [(0.2, false), (0.24, false), (0.26, true), (0.3, true)] {
            let (mut encoder, mut input) = encoder(5);
            for index in 0..4 {
                let made = encoder.next(Instant::ZERO, &mut input, &around(loss));
                assert!(made.is_some_and(|made| matches!(made.what, What::Symbol(i) if i == index)));
            }
            let made = encoder.next(Instant::ZERO, &mut input, &around(loss));
            assert_eq!(made.is_some_and(|made| matches!(made.what, What::Sum(_))), worth, "{loss}");
        }
    }

    #[test]
    fn a_block_that_four_acknowledgements_have_not_moved_is_not_left_to_the_helper() {
        let (mut encoder, mut input) = encoder(1);
        encoder.next(Instant::ZERO, &mut input, &around(0.0));
        for (stale, helped) in [(0, true), (3, true), (4, false), (5, false)] {
            encoder.blocks[0].stale = stale;
            let around = Surroundings { helped: true, ..around(0.0) };
            assert_eq!(encoder.outlook(0, &around).helped, helped);
            assert!(encoder.outlook(1, &around).helped, "only the oldest holds up others");
        }
    }
}
