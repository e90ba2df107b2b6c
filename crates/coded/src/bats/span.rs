//! Span of known vectors: the rank of a batch, and whether a packet raises it.

use hopcast_code::field;

/// Maximum number of symbols of a batch (RFC 9426, section 4.2).
pub(super) const MAX_SYMBOLS: usize = 32;

/// Coefficients, one for each symbol of a batch; those beyond its size are 0.
pub(super) type Vector = [u8; MAX_SYMBOLS];

/// The span of a set of packets.
///
/// Symbols that are known as they are cost nothing: their columns count as eliminated. The rest is a reduced echelon
/// form: each row has a pivot in which it is 1 and all other rows are 0, and is 0 where symbols are known.
#[derive(Clone, Debug, Default)]
pub(super) struct Span {
    symbols: u32,
    rows: Vec<(u8, Vector)>,
}

impl Span {
    pub(super) fn clear(&mut self) {
        self.symbols = 0;
        self.rows.clear();
    }

    /// Number of linearly independent packets.
    pub(super) fn rank(&self) -> u8 {
        self.symbols.count_ones() as u8 + self.rows.len() as u8
    }

    /// A symbol is added as it is. Whether that raises the rank.
    pub(super) fn insert_symbol(&mut self, index: u8) -> bool {
        if self.symbols >> index & 1 == 1 {
            return false;
        }
        let mut displaced = None;
        for (place, (pivot, row)) in self.rows.iter_mut().enumerate() {
            row[usize::from(index)] = 0;
            if *pivot == index {
                displaced = Some(place);
            }
        }
        self.symbols |= 1 << index;
        // What the row with that pivot says of the others is kept; if that is nothing, it said all that is now said.
        displaced.is_none_or(|place| {
            let (_, row) = self.rows.swap_remove(place);
            self.place(row)
        })
    }

    /// A combination is added. Whether that raises the rank.
    pub(super) fn insert(&mut self, mut vector: Vector) -> bool {
        let mut known = self.symbols;
        while known != 0 {
            vector[known.trailing_zeros() as usize] = 0;
            known &= known - 1;
        }
        for (pivot, row) in &self.rows {
            let factor = vector[usize::from(*pivot)];
            if factor != 0 {
                field::axpy(&mut vector, factor, row);
            }
        }
        self.place(vector)
    }

    /// Makes a row of a vector that is 0 in every pivot and known symbol; false if it is 0 everywhere.
    fn place(&mut self, mut vector: Vector) -> bool {
        let Some(pivot) = vector.iter().position(|&coefficient| coefficient != 0) else { return false };
        let inverse = field::inv(vector[pivot]);
        field::scale(&mut vector, inverse);
        for (_, row) in &mut self.rows {
            let factor = row[pivot];
            if factor != 0 {
                field::axpy(row, factor, &vector);
            }
        }
        self.rows.push((pivot as u8, vector));
        true
    }
}

#[cfg(test)]
mod tests {
    use hopcast_code::rlnc::{Coding, Decoder, Outcome, Packet, Shape};
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_packet_is_innovative_when_a_decoder_says_so(
            packets in prop::collection::vec((any::<bool>(), 0..6_u8, any::<[u8; 6]>(), any::<[bool; 6]>()), 0..20),
        ) {
            let mut span = Span::default();
            let mut decoder: Decoder = Decoder::new(Shape::new(6, 1).unwrap(), 0);
            for (systematic, index, mut coefficients, some) in packets {
                coefficients.iter_mut().zip(some).for_each(|(c, some)| *c *= u8::from(some));
                let (coding, innovative) = if systematic {
                    (Coding::Symbol(usize::from(index)), span.insert_symbol(index))
                } else {
                    let mut vector = [0; MAX_SYMBOLS];
                    vector[..6].copy_from_slice(&coefficients);
                    (Coding::Vector(&coefficients), span.insert(vector))
                };
                let outcome = decoder.push(&Packet { generation: 0, coding, payload: &[0] }).unwrap();
                prop_assert_eq!(innovative, outcome == Outcome::Innovative);
                prop_assert_eq!(usize::from(span.rank()), decoder.rank());
            }
        }
    }
}
