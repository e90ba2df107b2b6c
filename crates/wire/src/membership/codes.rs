//! Codes: numbers that are floating-point numbers where they are large.

/// The number that a code stands for: below half of the codes' range itself, and above a floating-point number with
/// `mantissa` bits of mantissa behind an exponent of 3 bits (RFC 3376 section 4.1.1, RFC 3810 section 5.1.3).
pub(crate) const fn decode(code: u16, mantissa: u32) -> u32 {
    let code = code as u32;
    if code < 1 << (mantissa + 3) {
        return code;
    }
    let exponent = code >> mantissa & 7;
    (code & ((1 << mantissa) - 1) | 1 << mantissa) << (exponent + 3)
}

/// The code of the greatest number that has one and is not more than `number`.
pub(crate) const fn encode(number: u32, mantissa: u32) -> u16 {
    if number < 1 << (mantissa + 3) {
        return number as u16;
    }
    // The leading one stands in bit `mantissa + exponent + 3`.
    let exponent = number.ilog2() - mantissa - 3;
    if exponent > 7 {
        return ((1 << (mantissa + 4)) - 1) as u16;
    }
    let fraction = number >> (exponent + 3) & ((1 << mantissa) - 1);
    (1 << (mantissa + 3) | exponent << mantissa | fraction) as u16
}

/// Bits of mantissa in codes of 8 bits: IGMP's maximum response time, and both formats' query interval.
pub(crate) const MANTISSA_OF_8: u32 = 4;
/// Bits of mantissa in MLD's maximum response time, a code of 16 bits.
pub(crate) const MANTISSA_OF_16: u32 = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_stands_for_a_number_whose_code_it_is() {
        for code in 0..=0xff {
            assert_eq!(encode(decode(code, MANTISSA_OF_8), MANTISSA_OF_8), code);
        }
        for code in 0..=0xffff {
            assert_eq!(encode(decode(code, MANTISSA_OF_16), MANTISSA_OF_16), code);
        }
    }

    #[test]
    fn codes_are_those_of_the_rfcs() {
        // (mant | 0x10) << (exp + 3): 0x80 is 16 << 3, 0xff is 31 << 10.
        assert_eq!((decode(0x7f, MANTISSA_OF_8), decode(0x80, MANTISSA_OF_8)), (127, 128));
        assert_eq!((decode(0x8b, MANTISSA_OF_8), decode(0xff, MANTISSA_OF_8)), (216, 31_744));
        // (mant | 0x1000) << (exp + 3).
        assert_eq!((decode(0x7fff, MANTISSA_OF_16), decode(0x8000, MANTISSA_OF_16)), (32_767, 32_768));
        assert_eq!(decode(0xffff, MANTISSA_OF_16), 8_387_584);
    }

    #[test]
    fn a_number_without_a_code_has_that_of_the_next_smaller() {
        for number in (0..40_000).chain([u32::MAX / 2, u32::MAX]) {
            let code = encode(number, MANTISSA_OF_8);
            assert!(decode(code, MANTISSA_OF_8) <= number);
            assert!(code == 0xff || decode(code + 1, MANTISSA_OF_8) > number, "{number}");
        }
        assert_eq!(encode(u32::MAX, MANTISSA_OF_16), 0xffff);
    }
}
