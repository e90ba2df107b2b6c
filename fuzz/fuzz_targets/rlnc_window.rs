//! The decoder of a sliding window knows exactly what a textbook elimination knows that forgets the same symbols.
#![no_main]

use std::collections::BTreeSet;

use arbitrary::Arbitrary;
use hopcast_code::field::Field;
use hopcast_code::rlnc::window::Decoder;
use hopcast_code::rlnc::{Coefficients, Density, Outcome, Shape};
use hopcast_fuzz::elimination::{Equations, combination, source_symbol};
use hopcast_fuzz::in_a_field;
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input {
    field: u8,
    window: u8,
    len: u8,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
enum Step {
    Symbol(Place, Lie),
    Few { first: Place, coefficients: Vec<u8>, lie: Lie },
    Many { first: Place, count: u8, seed: u64, density: u16, lie: Lie },
    Length { number: u64, vector: Option<u8>, payload: u8 },
    Poll(u8),
}

/// The number of a symbol.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Place {
    /// This number before the end of the window.
    Before(u8),
    /// This number after it.
    After(u8),
    At(u64),
}

/// The error that falsifies a payload; usually none.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Lie(u8);

impl Lie {
    fn flip(self) -> u8 {
        self.0.saturating_sub(224)
    }
}

fuzz_target!(|input: Input| in_a_field!(input.field, run(&input)));

struct Both<F: Field> {
    decoder: Decoder<F>,
    /// Equations in the window.
    model: Equations,
    polled: BTreeSet<u64>,
    window: u64,
    len: usize,
    end: u64,
    honest: bool,
}

fn run<F: Field>(input: &Input) {
    let (window, len) = (input.window % 40 + 1, usize::from(input.len) % 12 + 1);
    let mut both = Both::<F> {
        decoder: Decoder::new(Shape::new(window.into(), len).expect("a window")),
        model: Equations::default(),
        polled: BTreeSet::new(),
        window: window.into(),
        len,
        end: 0,
        honest: true,
    };
    for step in &input.steps {
        match step {
            &Step::Symbol(place, lie) => {
                let number = both.number(place);
                both.symbol(number, lie);
            }
            Step::Few { first, coefficients, lie } => {
                let first = both.number(*first);
                both.repair(first, coefficients, *lie);
            }
            &Step::Many { first, count, seed, density, lie } => {
                let mut coefficients = vec![0; usize::from(count) % (usize::from(window) + 2)];
                Coefficients::new(seed).fill::<F>(Density::new(density), &mut coefficients);
                let first = both.number(first);
                both.repair(first, &coefficients, lie);
            }
            &Step::Length { number, vector, payload } if usize::from(payload) != len => {
                let payload = vec![1; payload.into()];
                let refused = match vector {
                    None => both.decoder.push_symbol(number, &payload),
                    Some(count) => both.decoder.push_repair(number, &vec![1; count.into()], &payload),
                };
                assert!(refused.is_err());
            }
            Step::Length { .. } => {}
            &Step::Poll(max) => {
                for _ in 0..max {
                    if !both.poll() {
                        break;
                    }
                }
            }
        }
        both.agree();
    }
    while both.poll() {}
    let known: Vec<u64> = both.model.known().map(|(number, _)| number).collect();
    assert!(known.iter().all(|number| both.polled.contains(number)), "all that is known has been polled");
}

impl<F: Field> Both<F> {
    fn number(&self, place: Place) -> u64 {
        match place {
            Place::Before(n) => self.end.saturating_sub(n.into()),
            Place::After(n) => self.end.saturating_add(n.into()),
            Place::At(number) => number,
        }
    }

    fn start(&self) -> u64 {
        self.end.saturating_sub(self.window)
    }

    fn symbol(&mut self, number: u64, lie: Lie) {
        let mut symbol = source_symbol(number, self.len);
        symbol[0] ^= lie.flip();
        let outcome = self.decoder.push_symbol(number, &symbol);
        if number == u64::MAX {
            assert!(outcome.is_err());
        } else if number < self.start() {
            assert_eq!(outcome, Ok(Outcome::Redundant));
        } else {
            self.advance(number + 1);
            let adds = self.model.add::<F>([(number, 1)], &symbol);
            assert_eq!(outcome, Ok(if adds { Outcome::Innovative } else { Outcome::Redundant }));
            self.honest &= lie.flip() == 0;
        }
    }

    fn repair(&mut self, first: u64, vector: &[u8], lie: Lie) {
        let coefficients = || (0..).map(|n| first.wrapping_add(n)).zip(vector.iter().copied());
        let mut payload = combination::<F>(coefficients(), self.len);
        payload[0] ^= lie.flip();
        let outcome = self.decoder.push_repair(first, vector, &payload);
        let Some(end) = first.checked_add(vector.len() as u64).filter(|_| vector.len() as u64 <= self.window)
        else {
            assert!(outcome.is_err());
            return;
        };
        let oldest = coefficients().find(|(_, coefficient)| coefficient & F::MASK != 0);
        match oldest {
            None => assert_eq!(outcome, Ok(Outcome::Redundant)),
            Some((oldest, _)) if oldest < self.end.max(end).saturating_sub(self.window) => {
                assert!(outcome.is_err())
            }
            Some(_) => {
                self.advance(end);
                let adds = self.model.add::<F>(coefficients(), &payload);
                assert_eq!(outcome, Ok(if adds { Outcome::Innovative } else { Outcome::Redundant }));
                self.honest &= lie.flip() == 0;
            }
        }
    }

    fn advance(&mut self, end: u64) {
        self.end = self.end.max(end);
        while let Some(gone) = self.model.first_symbol().filter(|&number| number < self.start()) {
            self.model.forget::<F>(gone);
        }
    }

    fn poll(&mut self) -> bool {
        let Some((number, symbol)) = self.decoder.poll() else { return false };
        assert_eq!(Some(symbol), self.model.symbol(number), "symbol {number}");
        assert!(!self.honest || symbol == source_symbol(number, self.len), "symbol {number}");
        assert!(self.polled.insert(number), "symbol {number} came twice");
        true
    }

    fn agree(&self) {
        assert_eq!((self.decoder.start(), self.decoder.end()), (self.start(), self.end));
        assert_eq!(self.decoder.rank(), self.model.rank());
        for number in self.start()..self.end {
            assert_eq!(self.decoder.symbol(number), self.model.symbol(number), "symbol {number}");
        }
    }
}
