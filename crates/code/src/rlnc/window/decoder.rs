//! The receiver's side of a sliding window.

use core::marker::PhantomData;
use std::collections::VecDeque;

use crate::field::{Field, Gf256};
use crate::rlnc::{Error, Outcome, Shape};
use crate::store::Store;

/// Takes the packets of a stream, gives its symbols as soon as they can be known.
///
/// [`push_symbol`](Decoder::push_symbol) or [`push_repair`](Decoder::push_repair), then [`poll`](Decoder::poll) until
/// `None`: a symbol that has not been polled when the window passes is gone. The window ends with the highest number
/// seen, so a forged packet can make it jump: authenticate first.
///
/// It holds two symbols and one coefficient vector for each place of the window, allocated at the beginning.
#[derive(Debug)]
pub struct Decoder<F: Field = Gf256> {
    shape: Shape,
    /// One beyond the highest number seen.
    end: u64,
    /// For each place, a symbol's number modulo the window:
    places: Vec<Place>,
    symbols: Store,
    /// With a pivot, the equation *symbol + sum of row times the unknown symbols = payload*; no pivot occurs in a row.
    rows: Store,
    payloads: Store,
    /// The combination at work.
    vector: Store,
    payload: Store,
    factors: Vec<u8>,
    known: VecDeque<u64>,
    field: PhantomData<F>,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Place {
    Unknown,
    Known,
    Pivot,
}

impl<F: Field> Decoder<F> {
    /// A decoder whose window is the number of symbols of `shape`: no less than that of the encoder.
    pub fn new(shape: Shape) -> Self {
        let (window, len) = (shape.symbols(), shape.symbol_len());
        Self {
            shape,
            end: 0,
            places: vec![Place::Unknown; window],
            symbols: Store::new(window, len),
            rows: Store::new(window, window),
            payloads: Store::new(window, len),
            vector: Store::new(1, window),
            payload: Store::new(1, len),
            factors: vec![0; window],
            known: VecDeque::with_capacity(window + 1),
            field: PhantomData,
        }
    }

    /// The first number of the window; symbols before it are gone.
    pub fn start(&self) -> u64 {
        self.end.saturating_sub(self.shape.symbols() as u64)
    }

    /// One beyond the last number of the window.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Number of independent packets of the window that are held: its known symbols, and equations for others.
    pub fn rank(&self) -> usize {
        self.places.iter().filter(|&&place| place != Place::Unknown).count()
    }

    /// A symbol of the window that is known.
    pub fn symbol(&self, number: u64) -> Option<&[u8]> {
        let place = self.place(number);
        let inside = (self.start()..self.end).contains(&number);
        (inside && self.places[place] == Place::Known).then(|| self.symbols.slot(place))
    }

    /// The next symbol that has become known, with its number: in the order in which they became so.
    pub fn poll(&mut self) -> Option<(u64, &[u8])> {
        let number = self.known.pop_front()?;
        Some((number, self.symbols.slot(self.place(number))))
    }

    /// Takes a symbol as it is; one from before the window is redundant.
    ///
    /// # Errors
    ///
    /// [`Error::PayloadLength`], or [`Error::Outside`] for the number `u64::MAX`.
    pub fn push_symbol(&mut self, number: u64, symbol: &[u8]) -> Result<Outcome, Error> {
        self.shape.check_payload(symbol)?;
        let end = self.end_of(number, 1)?;
        if number < self.start() {
            return Ok(Outcome::Redundant);
        }
        self.advance(end);
        let place = self.place(number);
        match self.places[place] {
            Place::Known => Ok(Outcome::Redundant),
            Place::Unknown => {
                self.payload.slot_mut(0).copy_from_slice(symbol);
                self.learn(place);
                self.vector.slot_mut(0).fill(0);
                self.substitute(place);
                self.collect();
                Ok(Outcome::Innovative)
            }
            Place::Pivot => {
                let vector = self.vector.slot_mut(0);
                vector.fill(0);
                vector[place] = 1;
                self.payload.slot_mut(0).copy_from_slice(symbol);
                Ok(self.insert())
            }
        }
    }

    /// Takes the combination, with these coefficients, of the symbols from `first` on.
    ///
    /// # Errors
    ///
    /// [`Error::PayloadLength`], [`Error::VectorLength`] for more coefficients than the window, or [`Error::Outside`].
    pub fn push_repair(&mut self, first: u64, vector: &[u8], payload: &[u8]) -> Result<Outcome, Error> {
        self.shape.check_payload(payload)?;
        if vector.len() > self.shape.symbols() {
            return Err(Error::VectorLength { expected: self.shape.symbols(), found: vector.len() });
        }
        let end = self.end_of(first, vector.len())?;
        // Zeros in front say nothing of the symbols that they stand for.
        let zeros = vector.iter().take_while(|&&coefficient| coefficient & F::MASK == 0).count();
        if zeros == vector.len() {
            return Ok(Outcome::Redundant);
        }
        let (first, vector) = (first + zeros as u64, &vector[zeros..]);
        if first < self.end.max(end).saturating_sub(self.shape.symbols() as u64) {
            return Err(Error::Outside { start: self.start(), first });
        }
        self.advance(end);
        self.vector.slot_mut(0).fill(0);
        // Not `(first..)`, which would step past the last number there is.
        for (number, &coefficient) in (0..).map(|place| first.wrapping_add(place)).zip(vector) {
            let place = self.place(number);
            self.vector.slot_mut(0)[place] = coefficient & F::MASK;
        }
        self.payload.slot_mut(0).copy_from_slice(payload);
        Ok(self.insert())
    }

    fn place(&self, number: u64) -> usize {
        (number % self.shape.symbols() as u64) as usize
    }

    fn end_of(&self, first: u64, count: usize) -> Result<u64, Error> {
        first.checked_add(count as u64).ok_or(Error::Outside { start: self.start(), first })
    }

    /// Moves the window so that it ends with `end`, if it does not reach so far.
    fn advance(&mut self, end: u64) {
        if end <= self.end {
            return;
        }
        let window = self.shape.symbols() as u64;
        // Places that get another symbol: at most all of them.
        let entering = self.end.max(end.saturating_sub(window))..end;
        if entering.start > self.end {
            self.places.fill(Place::Unknown);
        } else {
            for number in entering {
                if number >= window {
                    self.vacate(self.place(number));
                }
            }
        }
        self.end = end;
        let start = self.start();
        self.known.retain(|&number| number >= start);
    }

    /// The symbol of a place leaves the window. If it is not known, it is eliminated from the rows, at the price of
    /// one.
    fn vacate(&mut self, place: usize) {
        if self.places[place] == Place::Unknown {
            let holder = (0..self.places.len())
                .find(|&row| self.places[row] == Place::Pivot && self.rows.slot(row)[place] != 0);
            if let Some(row) = holder {
                // The row, solved for the symbol that leaves, is put into the others; its pivot is unknown again.
                self.places[row] = Place::Unknown;
                self.vector.slot_mut(0).copy_from_slice(self.rows.slot(row));
                self.payload.slot_mut(0).copy_from_slice(self.payloads.slot(row));
                let vector = self.vector.slot_mut(0);
                vector[row] = 1;
                let inverse = F::inv(core::mem::take(&mut vector[place]));
                F::scale(vector, inverse);
                F::scale(self.payload.slot_mut(0), inverse);
                self.substitute(place);
            }
        }
        self.places[place] = Place::Unknown;
    }

    /// Adds the combination at work to the equations.
    fn insert(&mut self) -> Outcome {
        let places = 0..self.places.len();
        self.take_factors(Place::Known);
        F::product(self.payload.symbols_mut(0..1), &self.factors, self.symbols.symbols(places.clone()));
        self.take_factors(Place::Pivot);
        F::product(self.payload.symbols_mut(0..1), &self.factors, self.payloads.symbols(places.clone()));
        F::product(self.vector.symbols_mut(0..1), &self.factors, self.rows.symbols(places));

        let vector = self.vector.slot_mut(0);
        let Some(pivot) = vector.iter().position(|&coefficient| coefficient != 0) else {
            return Outcome::Redundant;
        };
        let inverse = F::inv(core::mem::take(&mut vector[pivot]));
        F::scale(vector, inverse);
        F::scale(self.payload.slot_mut(0), inverse);
        self.substitute(pivot);
        self.rows.slot_mut(pivot).copy_from_slice(self.vector.slot(0));
        self.payloads.slot_mut(pivot).copy_from_slice(self.payload.slot(0));
        self.places[pivot] = Place::Pivot;
        self.collect();
        Outcome::Innovative
    }

    /// Takes out of the vector at work the coefficients of the places that are `kind`.
    fn take_factors(&mut self, kind: Place) {
        let places = self.factors.iter_mut().zip(self.vector.slot_mut(0)).zip(&self.places);
        for ((factor, coefficient), &place) in places {
            *factor = if place == kind { core::mem::take(coefficient) } else { 0 };
        }
    }

    /// Replaces the unknown symbol of `place`, in every row, by the vector and payload at work.
    fn substitute(&mut self, place: usize) {
        for row in 0..self.places.len() {
            if self.places[row] != Place::Pivot {
                continue;
            }
            let factor = core::mem::take(&mut self.rows.slot_mut(row)[place]);
            if factor != 0 {
                F::axpy(self.rows.slot_mut(row), factor, self.vector.slot(0));
                F::axpy(self.payloads.slot_mut(row), factor, self.payload.slot(0));
            }
        }
    }

    /// Rows without unknown symbols are symbols.
    fn collect(&mut self) {
        for row in 0..self.places.len() {
            if self.places[row] == Place::Pivot
                && self.rows.slot(row).iter().all(|&coefficient| coefficient == 0)
            {
                self.symbols.slot_mut(row).copy_from_slice(self.payloads.slot(row));
                self.announce(row);
            }
        }
    }

    /// The payload at work is the symbol of `place`.
    fn learn(&mut self, place: usize) {
        self.symbols.slot_mut(place).copy_from_slice(self.payload.slot(0));
        self.announce(place);
    }

    fn announce(&mut self, place: usize) {
        self.places[place] = Place::Known;
        let (start, window) = (self.start(), self.shape.symbols() as u64);
        let ahead = (place as u64 + window - start % window) % window;
        self.known.push_back(start + ahead);
    }
}
