//! Combination of a block's symbols that a packet is.

use hopcast_code::field::Field;
use hopcast_code::rlnc::{self, Coefficients};

use super::bits::Bits;
use super::wire::{Coding, Enc};

/// Writes the coefficients with which `enc` was made, as long as `vector`.
pub(super) fn vector_of<F: Field>(enc: &Enc<'_>, vector: &mut [u8]) {
    match enc.coding {
        Coding::Symbol(index) => {
            vector.fill(0);
            if let Some(coefficient) = vector.get_mut(usize::from(index)) {
                *coefficient = 1;
            }
        }
        Coding::Sum(among) => draw::<F>(among, enc.block, enc.sequence, vector),
        Coding::Vector(packed) => rlnc::unpack::<F>(packed, vector),
    }
}

/// Writes the coefficients of a sum: none of those summed up is zero, so over GF(2) all are one.
pub(super) fn draw<F: Field>(among: Bits, block: u32, sequence: u16, vector: &mut [u8]) {
    let mut random = Coefficients::new(u64::from(block) << 16 | u64::from(sequence));
    for (symbol, coefficient) in vector.iter_mut().enumerate() {
        *coefficient = if among.has(symbol as u8) {
            (((random.bits() >> 32) * u64::from(F::MASK)) >> 32) as u8 + 1
        } else {
            0
        };
    }
}
