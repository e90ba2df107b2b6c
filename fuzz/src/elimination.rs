//! Gaussian elimination as the textbook has it, slow and plain: what the decoders are held against.

use std::collections::BTreeMap;

use hopcast_code::field::Field;
use hopcast_code::rlnc::Coefficients;

/// The linear equations that a decoder has been told: *sum of coefficient times symbol = payload*.
///
/// The rows are in reduced echelon form: each has a pivot, its first symbol, which no other row holds. What a set of
/// equations says does not depend on the order in which they came, so this is what any right decoder must know, whether
/// the payloads are true or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Equations {
    rows: BTreeMap<u64, Row>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    /// The coefficients that are not 0, by the number of the symbol.
    coefficients: BTreeMap<u64, u8>,
    payload: Vec<u8>,
}

impl Row {
    /// `self += factor * other`.
    fn add<F: Field>(&mut self, factor: u8, other: &Self) {
        for (&symbol, &coefficient) in &other.coefficients {
            let sum = self.coefficients.remove(&symbol).unwrap_or(0) ^ F::mul(factor, coefficient);
            if sum != 0 {
                self.coefficients.insert(symbol, sum);
            }
        }
        F::axpy(&mut self.payload, factor, &other.payload);
    }

    fn scale<F: Field>(&mut self, factor: u8) {
        self.coefficients.values_mut().for_each(|coefficient| *coefficient = F::mul(factor, *coefficient));
        F::scale(&mut self.payload, factor);
    }
}

impl Equations {
    /// Number of independent equations.
    pub fn rank(&self) -> usize {
        self.rows.len()
    }

    /// Takes an equation; says whether it is independent of the others.
    pub fn add<F: Field>(
        &mut self,
        coefficients: impl IntoIterator<Item = (u64, u8)>,
        payload: &[u8],
    ) -> bool {
        let mut row = self.reduced::<F>(coefficients, payload);
        let Some((&pivot, &coefficient)) = row.coefficients.first_key_value() else { return false };
        row.scale::<F>(F::inv(coefficient));
        for other in self.rows.values_mut() {
            if let Some(&factor) = other.coefficients.get(&pivot) {
                other.add::<F>(factor, &row);
            }
        }
        self.rows.insert(pivot, row);
        true
    }

    /// Whether the equation follows from the others: its coefficients, and its payload too.
    pub fn implies<F: Field>(
        &self,
        coefficients: impl IntoIterator<Item = (u64, u8)>,
        payload: &[u8],
    ) -> bool {
        let row = self.reduced::<F>(coefficients, payload);
        row.coefficients.is_empty() && row.payload.iter().all(|&byte| byte == 0)
    }

    /// The equations without a symbol: one of those that contain it eliminates it from the others.
    pub fn forget<F: Field>(&mut self, symbol: u64) {
        let Some(&holder) =
            self.rows.iter().find(|(_, row)| row.coefficients.contains_key(&symbol)).map(|(pivot, _)| pivot)
        else {
            return;
        };
        let mut used = self.rows.remove(&holder).expect("it was found");
        used.scale::<F>(F::inv(used.coefficients[&symbol]));
        for mut row in std::mem::take(&mut self.rows).into_values() {
            if let Some(&factor) = row.coefficients.get(&symbol) {
                row.add::<F>(factor, &used);
            }
            self.add::<F>(row.coefficients, &row.payload);
        }
    }

    /// The symbols that are known, with what they are.
    pub fn known(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.rows
            .iter()
            .filter(|(_, row)| row.coefficients.len() == 1)
            .map(|(&pivot, row)| (pivot, &row.payload[..]))
    }

    /// The first symbol that occurs.
    pub fn first_symbol(&self) -> Option<u64> {
        // A pivot is the first symbol of its row.
        self.rows.first_key_value().map(|(&pivot, _)| pivot)
    }

    /// The value of a symbol, if it is known.
    pub fn symbol(&self, symbol: u64) -> Option<&[u8]> {
        self.rows.get(&symbol).filter(|row| row.coefficients.len() == 1).map(|row| &row.payload[..])
    }

    fn reduced<F: Field>(&self, coefficients: impl IntoIterator<Item = (u64, u8)>, payload: &[u8]) -> Row {
        let mut row = Row { coefficients: BTreeMap::new(), payload: payload.to_vec() };
        for (symbol, coefficient) in coefficients {
            if coefficient & F::MASK != 0 {
                row.coefficients.insert(symbol, coefficient & F::MASK);
            }
        }
        for (pivot, other) in &self.rows {
            if let Some(&factor) = row.coefficients.get(pivot) {
                row.add::<F>(factor, other);
            }
        }
        row
    }
}

/// The sum that an honest source would send for these coefficients.
pub fn combination<F: Field>(coefficients: impl IntoIterator<Item = (u64, u8)>, len: usize) -> Vec<u8> {
    let mut payload = vec![0; len];
    for (symbol, coefficient) in coefficients {
        F::axpy(&mut payload, coefficient & F::MASK, &source_symbol(symbol, len));
    }
    payload
}

/// The symbol of that number of a source that is always the same.
pub fn source_symbol(number: u64, len: usize) -> Vec<u8> {
    let mut random = Coefficients::new(number ^ 0x5EED);
    (0..len).map(|_| random.bits() as u8).collect()
}
