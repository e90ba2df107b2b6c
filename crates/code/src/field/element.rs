//! The fields, and the arithmetic of their elements.

use core::fmt::Debug;

use super::{Kernel, Symbols, Tables};

/// A finite field of characteristic two with at most 256 elements.
///
/// An element is the low [`BITS`](Field::BITS) of a `u8`; higher bits are ignored where an element is expected. A
/// symbol is bytes, each of which holds `8 / BITS` elements, and multiplying it by an element multiplies each of them.
pub trait Field: Copy + Debug + Default + Send + Sync + 'static {
    /// Bits of an element: 1, 4 or 8.
    const BITS: u32;
    /// All but the highest bit of the greatest element: what an element is masked with.
    const MASK: u8 = ((1u16 << Self::BITS) - 1) as u8;

    /// The multiplications on bytes of symbols, for a [`Kernel`].
    fn tables() -> &'static Tables;

    /// The inverse of `a`; that of 0 is given as 0.
    fn inv(a: u8) -> u8;

    /// The product of `a` and `b`.
    #[inline]
    fn mul(a: u8, b: u8) -> u8 {
        Self::tables().byte(a, b & Self::MASK)
    }

    /// `a` to the power of `n`; the power of 0 is 1.
    fn pow(a: u8, mut n: u32) -> u8 {
        let (mut square, mut power) = (a & Self::MASK, 1);
        while n > 0 {
            if n & 1 == 1 {
                power = Self::mul(power, square);
            }
            square = Self::mul(square, square);
            n >>= 1;
        }
        power
    }

    /// `y += a x`, over as many bytes as the shorter of the two has.
    #[inline]
    fn axpy(y: &mut [u8], a: u8, x: &[u8]) {
        Kernel::best().axpy(Self::tables(), y, a, x);
    }

    /// `x *= a`.
    #[inline]
    fn scale(x: &mut [u8], a: u8) {
        Kernel::best().scale(Self::tables(), x, a);
    }

    /// `y += sum of coefficients[i] * rows[i]`; see [`axpy_rows`](super::axpy_rows).
    #[inline]
    fn axpy_rows(y: &mut [u8], coefficients: &[u8], rows: &[&[u8]]) {
        Kernel::best().axpy_rows(Self::tables(), y, coefficients, rows);
    }

    /// `Y += A X`; see [`product`](super::product).
    #[inline]
    fn product(y: Symbols<'_, &mut [u8]>, coefficients: &[u8], x: Symbols<'_, &[u8]>) {
        Kernel::best().product(Self::tables(), y, coefficients, x);
    }

    /// `Y = A X`; see [`product_into`](super::product_into).
    #[inline]
    fn product_into(y: Symbols<'_, &mut [u8]>, coefficients: &[u8], x: Symbols<'_, &[u8]>) {
        Kernel::best().product_into(Self::tables(), y, coefficients, x);
    }
}

/// GF(2): an element is a bit, addition and subtraction are XOR, multiplication is AND.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Gf2;

impl Field for Gf2 {
    const BITS: u32 = 1;

    #[inline]
    fn tables() -> &'static Tables {
        static TABLES: Tables = Tables::new(&images(1, 0b11));
        &TABLES
    }

    #[inline]
    fn inv(a: u8) -> u8 {
        a & 1
    }
}

/// GF(2^4), two elements a byte; by default with the polynomial x^4 + x + 1 (RFC 5510, section 8.1).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Gf16<const POLYNOMIAL: u16 = 0x13>;

impl<const POLYNOMIAL: u16> Gf16<POLYNOMIAL> {
    const IMAGES: [[u8; 8]; 256] = images(4, POLYNOMIAL);
    const TABLES: &'static Tables = &Tables::new(&Self::IMAGES);
    const INVERSES: &'static [u8; 256] = &inverses(4, &Self::IMAGES);
}

impl<const POLYNOMIAL: u16> Field for Gf16<POLYNOMIAL> {
    const BITS: u32 = 4;

    #[inline]
    fn tables() -> &'static Tables {
        Self::TABLES
    }

    #[inline]
    fn inv(a: u8) -> u8 {
        Self::INVERSES[(a & Self::MASK) as usize]
    }
}

/// GF(2^8); by default with the polynomial x^8 + x^4 + x^3 + x^2 + 1 (RFC 5510, section 8.1; RFC 9426).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Gf256<const POLYNOMIAL: u16 = 0x11D>;

impl<const POLYNOMIAL: u16> Gf256<POLYNOMIAL> {
    const IMAGES: [[u8; 8]; 256] = images(8, POLYNOMIAL);
    const TABLES: &'static Tables = &Tables::new(&Self::IMAGES);
    const INVERSES: &'static [u8; 256] = &inverses(8, &Self::IMAGES);
}

impl<const POLYNOMIAL: u16> Field for Gf256<POLYNOMIAL> {
    const BITS: u32 = 8;

    #[inline]
    fn tables() -> &'static Tables {
        Self::TABLES
    }

    #[inline]
    fn inv(a: u8) -> u8 {
        Self::INVERSES[a as usize]
    }
}

/// For each byte `a`, the image of each bit of a symbol's byte under multiplication by the element in `a`.
const fn images(bits: u32, polynomial: u16) -> [[u8; 8]; 256] {
    assert!(polynomial >> bits == 1, "the polynomial's degree is that of the field");
    let mut images = [[0; 8]; 256];
    let mut a = 0;
    while a < 256 {
        let mut product = a as u16 & ((1 << bits) - 1);
        let mut j = 0;
        while j < bits {
            // The same element in each of the byte's elements.
            let mut at = j;
            while at < 8 {
                images[a][at as usize] = (product << (at - j)) as u8;
                at += bits;
            }
            product <<= 1;
            if product >> bits == 1 {
                product ^= polynomial;
            }
            j += 1;
        }
        a += 1;
    }
    images
}

const fn inverses(bits: u32, images: &[[u8; 8]; 256]) -> [u8; 256] {
    let order = 1usize << bits;
    let mut inverses = [0; 256];
    let mut a = 1;
    while a < order {
        let mut b = 1;
        while b < order {
            let (mut product, mut j) = (0, 0);
            while j < bits as usize {
                if b >> j & 1 == 1 {
                    product ^= images[a][j] as usize & (order - 1);
                }
                j += 1;
            }
            if product == 1 {
                inverses[a] = b as u8;
                break;
            }
            b += 1;
        }
        assert!(inverses[a] != 0, "the polynomial is irreducible");
        a += 1;
    }
    inverses
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_a_field<F: Field>() {
        let elements = || 0..=F::MASK;
        for a in elements() {
            assert_eq!(F::mul(a, 1), a);
            assert_eq!(F::mul(a, F::inv(a)), u8::from(a != 0));
            for b in elements() {
                assert_eq!(F::mul(a, b), F::mul(b, a));
                for c in elements().step_by(7) {
                    assert_eq!(F::mul(F::mul(a, b), c), F::mul(a, F::mul(b, c)));
                    assert_eq!(F::mul(a, b ^ c), F::mul(a, b) ^ F::mul(a, c));
                }
            }
        }
    }

    #[test]
    fn each_field_obeys_the_laws_of_a_field() {
        is_a_field::<Gf2>();
        is_a_field::<Gf16>();
        is_a_field::<Gf256>();
        is_a_field::<Gf256<0x11B>>();
    }

    #[test]
    fn the_polynomial_tells_what_the_product_is() {
        assert_eq!(<Gf256>::mul(0x80, 2), 0x1D);
        assert_eq!(Gf256::<0x11B>::mul(0x53, 0xCA), 1, "the inverses of FIPS 197");
        assert_eq!(<Gf16>::mul(8, 2), 3);
        assert_eq!(<Gf256>::pow(2, 255), 1, "2 generates the field");
        assert_eq!(<Gf256>::pow(0, 0), 1);
    }

    #[test]
    fn a_byte_holds_two_elements_of_gf16_and_eight_of_gf2() {
        assert_eq!(<Gf16>::tables().byte(2, 0x88), 0x33);
        assert_eq!(Gf2::tables().byte(1, 0xA5), 0xA5);
        assert_eq!(Gf2::tables().byte(0, 0xA5), 0);
    }
}
