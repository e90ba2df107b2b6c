//! Requests for what is missing, as a NACK has them.

use super::missing::Missing;
use super::remote::Remote;
use crate::norm::wire::{Position, Repair, RepairFlags, RepairForm};

impl Remote {
    /// The request for something that is missing.
    pub(super) fn request(&self, missing: &Missing) -> Repair {
        let range = |flags, first: Position, last: Position| Repair {
            form: RepairForm::Ranges,
            flags,
            items: vec![first, last],
        };
        match missing {
            Missing::Object(number) => {
                let position = self.position(*number, 0, 0);
                range(RepairFlags::OBJECT, position, position)
            }
            Missing::Info(number) => {
                let items = vec![self.position(*number, 0, 0)];
                Repair { form: RepairForm::Items, flags: RepairFlags::INFO, items }
            }
            Missing::Block(number, block) => {
                let position = self.position(*number, *block, 0);
                range(RepairFlags::BLOCK, position, position)
            }
            Missing::Symbols(number, block, symbols) => {
                let mut items = Vec::new();
                for run in symbols.chunk_by(|one, next| one + 1 == *next) {
                    items.push(self.position(*number, *block, run[0]));
                    items.push(self.position(*number, *block, run[run.len() - 1]));
                }
                Repair { form: RepairForm::Ranges, flags: RepairFlags::SEGMENT, items }
            }
        }
    }

    /// Position of a symbol.
    fn position(&self, number: u64, block: u32, symbol: u16) -> Position {
        let source = self.objects.get(number).and_then(|object| object.source(block)).unwrap_or(0);
        self.numbering.write(number, block, symbol, source)
    }
}

/// Adds a request to those before it, in one list with them where they are alike.
pub(super) fn push(repairs: &mut Vec<Repair>, repair: Repair) {
    match repairs.last_mut() {
        Some(last) if (last.form, last.flags) == (repair.form, repair.flags) => {
            // Objects and blocks that follow each other are one range.
            if !repair.flags.contains(RepairFlags::SEGMENT)
                && let (Some(end), [first, only]) = (last.items.last_mut(), &repair.items[..])
                && first == only
                && follows(repair.flags, end, first)
            {
                *end = *first;
                return;
            }
            last.items.extend(repair.items);
        }
        _ => repairs.push(repair),
    }
}

/// Whether an object or block is the one after another.
fn follows(flags: RepairFlags, end: &Position, next: &Position) -> bool {
    if flags.contains(RepairFlags::OBJECT) {
        return next.object == end.object.wrapping_add(1);
    }
    next.object == end.object && next.id.block == end.id.block.wrapping_add(1)
}
