//! Rates of a radio by the strength of what it receives.

use hopcast_core::Rate;
use thiserror::Error;

/// Minimum signal of each rate.
#[derive(Clone, Debug, PartialEq)]
pub struct RateTable {
    /// From the strongest signal to the weakest.
    rows: Vec<RateRow>,
}

/// A rate, and the signal that it needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateRow {
    /// Minimum signal at the receiver, in dBm.
    pub signal: f64,
    /// The rate.
    pub rate: Rate,
}

/// The error of rows that make no table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RateTableError {
    /// No row.
    #[error("expected at least one rate, found none")]
    Empty,
    /// A row, by its index, whose signal is not finite, or not below that of the row before it.
    #[error("the signal of row {0} is not a number below that of the row before it")]
    Signal(usize),
    /// A row, by its index, whose rate is zero, or not below that of the row before it.
    #[error("the rate of row {0} is not above 0 and below that of the row before it")]
    Rate(usize),
}

impl RateTable {
    /// The table of `rows`, from the highest rate and strongest signal to the lowest.
    ///
    /// # Errors
    ///
    /// If there is none, or if signals or rates do not fall from row to row.
    pub fn new(rows: Vec<RateRow>) -> Result<Self, RateTableError> {
        for (index, row) in rows.iter().enumerate() {
            let before = index.checked_sub(1).map(|before| rows[before]);
            if !row.signal.is_finite() || before.is_some_and(|before| row.signal >= before.signal) {
                return Err(RateTableError::Signal(index));
            }
            if row.rate == Rate::default() || before.is_some_and(|before| row.rate >= before.rate) {
                return Err(RateTableError::Rate(index));
            }
        }
        if rows.is_empty() { Err(RateTableError::Empty) } else { Ok(Self { rows }) }
    }

    /// The rows, from the strongest signal to the weakest.
    pub fn rows(&self) -> &[RateRow] {
        &self.rows
    }

    /// The highest rate that `signal`, in dBm, is enough for.
    pub fn row(&self, signal: f64) -> Option<&RateRow> {
        self.rows.iter().find(|row| signal >= row.signal)
    }

    /// The lowest rate.
    pub fn lowest(&self) -> Rate {
        self.rows[self.rows.len() - 1].rate
    }

    /// Minimum signal of any rate, in dBm.
    pub fn sensitivity(&self) -> f64 {
        self.rows[self.rows.len() - 1].signal
    }
}
