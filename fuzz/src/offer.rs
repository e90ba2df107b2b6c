//! Packets of a generation as a fuzzer offers them: true, false, or not fitting at all.

use arbitrary::Arbitrary;
use hopcast_code::field::Field;
use hopcast_code::rlnc::{Coding, Coefficients, Density, Packet, Shape};

use crate::elimination::combination;

/// A packet, in terms of the generation it is for.
#[derive(Arbitrary, Clone, Debug)]
pub struct Offer {
    content: Content,
    flaw: Option<Flaw>,
}

#[derive(Arbitrary, Clone, Debug)]
enum Content {
    Symbol(u8),
    Few { first: u8, coefficients: Vec<u8> },
    Many { seed: u64, density: u16, as_vector: bool },
}

#[derive(Arbitrary, Clone, Debug)]
enum Flaw {
    Generation(u32),
    Index(u8),
    VectorLength(u8),
    PayloadLength(u8),
    /// It fits, but is a lie.
    Payload {
        at: u8,
        flip: u8,
    },
}

/// An [`Offer`] made up.
#[derive(Clone, Debug)]
pub struct Made {
    generation: u32,
    coding: Owned,
    payload: Vec<u8>,
    /// Whether whoever gets it must accept it.
    pub fits: bool,
    /// Whether the payload is what the coefficients say.
    pub honest: bool,
    vector: Vec<u8>,
}

#[derive(Clone, Debug)]
enum Owned {
    Symbol(usize),
    Vector(Vec<u8>),
    Seed(u64, Density),
}

impl Offer {
    /// The packet, for a generation.
    pub fn make<F: Field>(&self, shape: Shape, generation: u32) -> Made {
        let (k, len) = (shape.symbols(), shape.symbol_len());
        let mut vector = vec![0; k];
        let coding = match &self.content {
            Content::Symbol(index) => {
                let index = usize::from(*index) % k;
                vector[index] = 1;
                Owned::Symbol(index)
            }
            Content::Few { first, coefficients } => {
                let first = usize::from(*first) % k;
                for (place, &coefficient) in vector[first..].iter_mut().zip(coefficients) {
                    *place = coefficient;
                }
                // With whatever a byte holds beyond an element.
                Owned::Vector(vector.clone())
            }
            &Content::Many { seed, density, as_vector } => {
                let density = Density::new(density);
                Coefficients::new(seed).fill::<F>(density, &mut vector);
                if as_vector { Owned::Vector(vector.clone()) } else { Owned::Seed(seed, density) }
            }
        };
        let payload = combination::<F>((0..).zip(vector.iter().copied()), len);
        let mut made = Made { generation, coding, payload, fits: true, honest: true, vector };
        if let Some(flaw) = &self.flaw {
            made.spoil(flaw, k);
        }
        made
    }
}

impl Made {
    fn spoil(&mut self, flaw: &Flaw, k: usize) {
        match (flaw, &mut self.coding) {
            (&Flaw::Generation(other), _) if other != self.generation => {
                self.generation = other;
                self.fits = false;
            }
            (&Flaw::Index(beyond), Owned::Symbol(index)) => {
                *index = k + usize::from(beyond);
                self.fits = false;
            }
            (&Flaw::VectorLength(length), Owned::Vector(vector)) if usize::from(length) != k => {
                vector.resize(length.into(), 1);
                self.fits = false;
            }
            (&Flaw::PayloadLength(length), _) if usize::from(length) != self.payload.len() => {
                self.payload.resize(length.into(), 1);
                self.fits = false;
            }
            (&Flaw::Payload { at, flip }, _) if flip != 0 => {
                let at = usize::from(at) % self.payload.len();
                self.payload[at] ^= flip;
                self.honest = false;
            }
            _ => {}
        }
    }

    /// As decoders take it.
    pub fn packet(&self) -> Packet<'_> {
        let coding = match &self.coding {
            &Owned::Symbol(index) => Coding::Symbol(index),
            Owned::Vector(vector) => Coding::Vector(vector),
            &Owned::Seed(seed, density) => Coding::Seed(seed, density),
        };
        Packet { generation: self.generation, coding, payload: &self.payload }
    }

    /// As the model takes it.
    pub fn coefficients(&self) -> impl Iterator<Item = (u64, u8)> + '_ {
        (0..).zip(self.vector.iter().copied())
    }

    /// The payload, whatever its length.
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }
}

/// A generation's shape, small more often than large, but large enough for every way through the decoders.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Size {
    k: u8,
    len: u8,
}

impl Size {
    /// At most 80 symbols of at most 16 bytes.
    pub fn shape(self) -> Shape {
        let max = if self.k < 192 { 24 } else { 80 };
        Shape::new(usize::from(self.k) % max + 1, usize::from(self.len) % 16 + 1)
            .expect("it is neither empty nor large")
    }
}

/// One of the fields, as a number of the input says.
#[macro_export]
macro_rules! in_a_field {
    ($number:expr, $run:ident($($argument:expr),*)) => {
        match $number % 3 {
            0 => $run::<hopcast_code::field::Gf256>($($argument),*),
            1 => $run::<hopcast_code::field::Gf16>($($argument),*),
            _ => $run::<hopcast_code::field::Gf2>($($argument),*),
        }
    };
}
