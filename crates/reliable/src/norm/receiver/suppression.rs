//! Requests of others, which spare this receiver its own (RFC 5401, section 3.2.2).

use std::collections::BTreeMap;

use hopcast_core::Instant;

use super::missing::MAX_LOOKED_AT;
use super::object::Object;
use super::remote::Remote;
use crate::norm::wire::{Position, Repair, RepairFlags, RepairForm, serial};

/// Symbols that are named of a block at most: a code has no more.
const MAX_NAMED: usize = 255;

/// The symbols of a block that others ask for: their number, and those that are named.
type Symbols = (u16, Vec<u16>);

impl Remote {
    /// Takes the requests of others: what they ask for need not be asked for here.
    ///
    /// Of one message as much is looked at as this receiver asks for in a round: a longer one costs no more.
    pub(super) fn heard_requests(&mut self, now: Instant, repairs: &[Repair]) {
        let mut left = MAX_LOOKED_AT;
        let mut symbols: BTreeMap<(u64, u32), Symbols> = BTreeMap::new();
        for repair in repairs {
            let width = if repair.form == RepairForm::Ranges { 2 } else { 1 };
            for pair in repair.items.chunks_exact(width) {
                if left == 0 {
                    break;
                }
                left -= 1;
                let (Some(first), Some(last)) = (self.located(&pair[0]), self.located(&pair[width - 1]))
                else {
                    continue;
                };
                if repair.flags.contains(RepairFlags::OBJECT) || repair.flags.contains(RepairFlags::INFO) {
                    let whole = repair.flags.contains(RepairFlags::OBJECT);
                    self.objects_are_asked_for(now, first.0..=last.0, whole, &mut left);
                }
                if repair.flags.contains(RepairFlags::BLOCK) && first.0 == last.0 {
                    self.blocks_are_asked_for(now, first.0, first.1..=last.1, &mut left);
                }
                if repair.flags.contains(RepairFlags::SEGMENT) && first == last {
                    let (count, named) = symbols.entry(first).or_default();
                    if repair.form == RepairForm::Erasures {
                        *count = (*count).max(pair[0].id.symbol);
                    } else {
                        let range = pair[0].id.symbol..=pair[width - 1].id.symbol;
                        named.extend(range.take(MAX_NAMED.saturating_sub(named.len())));
                        *count = named.len() as u16;
                    }
                }
            }
        }
        for (place, symbols) in symbols {
            self.symbols_are_asked_for(now, place, &symbols);
        }
    }

    /// The object and the block that others name, if the object is of interest here.
    fn located(&self, position: &Position) -> Option<(u64, u32)> {
        let position = self.numbering.read_position(position)?;
        let (last, _) = self.progress.last?;
        let number = last.checked_add_signed(i64::from(serial::distance16(position.object, last as u16)))?;
        let block = self.block_number(number, position.id.block);
        (number <= last && !self.objects.is_done(number)).then_some((number, block))
    }

    fn objects_are_asked_for(
        &mut self,
        now: Instant,
        range: std::ops::RangeInclusive<u64>,
        whole: bool,
        left: &mut usize,
    ) {
        if range.is_empty() {
            return;
        }
        let hold = self.hold();
        let wanted: Vec<u64> =
            self.objects.wanted(*range.end()).skip_while(|at| at < range.start()).take(*left).collect();
        for number in wanted {
            let spared = self.objects.change(number, |object| {
                let spared = object.asked_info.heard(now, hold);
                let blocks = if whole { object.partial() } else { Vec::new() };
                for &block in blocks.iter().take(*left) {
                    object.asked(block).heard(now, hold);
                }
                *left = left.saturating_sub(1 + blocks.len());
                spared
            });
            let spared = spared.unwrap_or_else(|| whole && self.objects.asked(number).heard(now, hold));
            self.requests.spared |= spared && whole;
        }
    }

    fn blocks_are_asked_for(
        &mut self,
        now: Instant,
        number: u64,
        range: std::ops::RangeInclusive<u32>,
        left: &mut usize,
    ) {
        let hold = self.hold();
        let spared = self.objects.change(number, |object| {
            let known = object.count().unwrap_or(object.heard.map_or(0, |heard| heard.saturating_add(1)));
            let end = range.end().saturating_add(1).min(known);
            // Not from the first block on: a forged name may be four thousand million blocks away.
            let wanted: Vec<u32> = object.lacking(*range.start()..end).take(*left).collect();
            *left -= wanted.len();
            wanted.into_iter().fold(false, |spared, block| spared | object.asked(block).heard(now, hold))
        });
        self.requests.spared |= spared == Some(true);
    }

    fn symbols_are_asked_for(&mut self, now: Instant, (number, block): (u64, u32), symbols: &Symbols) {
        let hold = self.hold();
        let spared = self.objects.change(number, |object| {
            is_enough(object, block, symbols) && object.asked(block).heard(now, hold)
        });
        self.requests.spared |= spared == Some(true);
    }
}

/// Whether symbols that others ask for are all that is missing of a block here.
fn is_enough(object: &Object, block: u32, (count, named): &Symbols) -> bool {
    let (Some(source), Some(state)) = (object.source(block), object.block(block)) else { return false };
    match object.parity() {
        // Without parity only the symbols that were named help.
        0 => state.missing(source).iter().all(|symbol| named.contains(symbol)),
        _ => *count >= state.lacking(source),
    }
}
