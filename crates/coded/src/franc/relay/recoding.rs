//! The paper's plan: mixes what was heard, within PlayNCool's budget (section II-D).

use hopcast_code::field::Field;
use hopcast_code::rlnc::{Outcome, Packet, Recoder, Shape};

use crate::franc::config::{Config, Losses, Plan};
use crate::franc::playncool::{Budgets, helper_credit};
use crate::franc::wire::Known;

/// Maximum number of draws for a combination that the decoder has use for. Chosen: with fewer draws a combination is
/// sent more often that is of no use; with more, time is spent where none is of use.
const DRAWS: usize = 8;

/// A block of which combinations are sent.
pub(super) struct Recoding<F: Field> {
    code: Recoder<F>,
    credit: f64,
    spent: f64,
}

impl<F: Field> Recoding<F> {
    pub(super) fn new(shape: Shape, seed: u64) -> Self {
        Self { code: Recoder::new(shape, 0, shape.symbols(), seed), credit: 0.0, spent: 0.0 }
    }

    pub(super) fn start(&mut self, number: u32) {
        self.code.start(number);
        (self.credit, self.spent) = (0.0, 0.0);
    }

    /// Takes an encoder's packet; whether it was news.
    pub(super) fn hear(&mut self, packet: &Packet<'_>) -> bool {
        matches!(self.code.push(packet), Ok(Outcome::Innovative))
    }

    /// Beyond the threshold, each innovative packet is worth some more, up to the budget.
    pub(super) fn grant(&mut self, config: &Config, losses: Losses) {
        let Plan::Budget { overshoot } = config.plan else { return };
        let budgets = Budgets::with_helper(f64::from(config.block), losses);
        if self.code.rank() as f64 >= budgets.threshold {
            let limit = overshoot * budgets.helper;
            let left = limit - self.spent - self.credit;
            self.credit += (overshoot * helper_credit(losses)).min(left).max(0.0);
        }
    }

    /// Writes the next combination, if the budget has one left.
    pub(super) fn next(&mut self, decoder: &Known, vector: &mut [u8], symbol: &mut [u8]) -> bool {
        if self.credit < 1.0 {
            return false;
        }
        self.credit -= 1.0;
        self.spent += 1.0;
        for _ in 0..DRAWS {
            if self.code.recode(vector, symbol).is_err() {
                return false;
            }
            let useful =
                |(symbol, &coefficient): (usize, &u8)| coefficient != 0 && !decoder.symbols.has(symbol as u8);
            if vector.iter().enumerate().any(useful) {
                break;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use hopcast_code::field::Gf2;
    use hopcast_code::rlnc::Coding;

    use super::*;
    use crate::franc::bits::Bits;

    #[test]
    fn one_combination_in_256_is_of_no_use_where_every_second_one_is() {
        let shape = Shape::new(8, 100).unwrap();
        let mut recoding = Recoding::<Gf2>::new(shape, 1);
        recoding.start(0);
        for index in 0..8 {
            let packet = Packet { generation: 0, coding: Coding::Symbol(index), payload: &[7; 100] };
            assert!(recoding.hear(&packet));
        }
        recoding.credit = 30_001.0;
        // The decoder has all but the last: a combination is of use that has this one in it.
        let decoder = Known { rank: 7, symbols: Bits::of(&[0x7F]) };
        let (mut vector, mut symbol) = (vec![0; 8], vec![0; 100]);
        let mut useless = 0;
        for _ in 0..30_000 {
            assert!(recoding.next(&decoder, &mut vector, &mut symbol));
            useless += u32::from(vector[7] == 0);
        }
        // 30,000 / 2^8 = 117, and five standard deviations.
        assert!((63..172).contains(&useless), "{useless}");
        assert!(recoding.next(&decoder, &mut vector, &mut symbol));
        assert!(!recoding.next(&decoder, &mut vector, &mut symbol), "the budget is spent");
    }
}
