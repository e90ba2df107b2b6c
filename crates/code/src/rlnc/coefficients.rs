//! Sources of coefficients, and their packed form on the wire.

use crate::field::Field;

/// Share of a vector's coefficients that are not zero.
///
/// Denser costs more arithmetic; sparser makes packets less often innovative. Down to about 2 ln(k) / k of a generation
/// of k symbols, the difference is small.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Density(u16);

impl Density {
    /// Every coefficient is drawn from the whole field, zero included; innovative as often as can be.
    pub const FULL: Self = Self(u16::MAX);

    /// Each coefficient is other than zero with a probability of `n` in 65,535.
    pub const fn new(n: u16) -> Self {
        Self(n)
    }

    /// The `n` of [`Density::new`], to be sent.
    pub const fn get(self) -> u16 {
        self.0
    }
}

/// A stream of random coefficients: equal seeds give equal streams, everywhere and for good.
///
/// SplitMix64 (Steele, Lea and Flood, 2014): a counter, mixed by multiplication, which is not linear over GF(2).
#[derive(Clone, Debug)]
pub struct Coefficients {
    state: u64,
}

impl Coefficients {
    /// The stream of a seed.
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.state ^ self.state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    /// Fills a vector, one coefficient in each byte.
    pub fn fill<F: Field>(&mut self, density: Density, vector: &mut [u8]) {
        if density == Density::FULL {
            for eight in vector.chunks_mut(8) {
                for (coefficient, random) in eight.iter_mut().zip(self.bits().to_le_bytes()) {
                    *coefficient = random & F::MASK;
                }
            }
        } else {
            for coefficient in vector {
                let random = self.bits();
                let some = (random as u16) < density.0;
                // 1 ..= MASK, from the high half, which the decision above has not seen.
                let other = (((random >> 32) * u64::from(F::MASK)) >> 32) as u8 + 1;
                *coefficient = if some { other } else { 0 };
            }
        }
    }
}

/// Length of `coefficients` coefficients when packed, in bytes.
pub const fn packed_len<F: Field>(coefficients: usize) -> usize {
    (coefficients * F::BITS as usize).div_ceil(8)
}

/// Packs a vector for the wire, the first coefficient in the lowest bits; over as much as both have room for.
pub fn pack<F: Field>(vector: &[u8], packed: &mut [u8]) {
    let per_byte = 8 / F::BITS as usize;
    for (coefficients, byte) in vector.chunks(per_byte).zip(packed) {
        *byte = 0;
        for (i, coefficient) in coefficients.iter().enumerate() {
            *byte |= (coefficient & F::MASK) << (i as u32 * F::BITS);
        }
    }
}

/// The opposite of [`pack`].
pub fn unpack<F: Field>(packed: &[u8], vector: &mut [u8]) {
    let per_byte = 8 / F::BITS as usize;
    for (coefficients, byte) in vector.chunks_mut(per_byte).zip(packed) {
        for (i, coefficient) in coefficients.iter_mut().enumerate() {
            *coefficient = byte >> (i as u32 * F::BITS) & F::MASK;
        }
    }
}
