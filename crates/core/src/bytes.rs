//! Numbers in bytes: the reader and writer of the protocols' own formats.

use core::error::Error;
use core::fmt;

/// Bytes that do not parse, and the field at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The field that is cut off, or has a value that it must not have.
    pub field: &'static str,
}

impl Malformed {
    /// # Errors
    /// `field` is malformed if it is not `sound`.
    #[inline]
    pub const fn unless(sound: bool, field: &'static str) -> Result<(), Self> {
        if sound { Ok(()) } else { Err(Self { field }) }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed {}", self.field)
    }
}

impl Error for Malformed {}

/// The bytes that are still to be read. Numbers are in network byte order unless their method says `le`.
///
/// Each method takes a field off the front.
///
/// # Errors
/// Every method returns [`Malformed`] with the name of the field if the bytes end before the field does. Nothing is
/// taken then.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Reads `bytes` from the front.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The bytes that are left, which stay.
    pub const fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// Takes all the bytes that are left.
    pub fn take_rest(&mut self) -> &'a [u8] {
        core::mem::take(&mut self.0)
    }

    /// Whether no byte is left.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A field of `len` bytes.
    #[inline]
    pub fn take(&mut self, len: usize, field: &'static str) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(Malformed { field })?;
        self.0 = rest;
        Ok(taken)
    }

    /// A field of `N` bytes.
    #[inline]
    pub fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Malformed { field })?;
        self.0 = rest;
        Ok(*taken)
    }

    /// Reads 8 bits.
    #[inline]
    pub fn u8(&mut self, field: &'static str) -> Result<u8, Malformed> {
        self.array(field).map(u8::from_be_bytes)
    }

    /// Reads 16 bits.
    #[inline]
    pub fn u16(&mut self, field: &'static str) -> Result<u16, Malformed> {
        self.array(field).map(u16::from_be_bytes)
    }

    /// Reads 24 bits.
    #[inline]
    pub fn u24(&mut self, field: &'static str) -> Result<u32, Malformed> {
        self.array(field).map(|[a, b, c]| u32::from_be_bytes([0, a, b, c]))
    }

    /// Reads 32 bits.
    #[inline]
    pub fn u32(&mut self, field: &'static str) -> Result<u32, Malformed> {
        self.array(field).map(u32::from_be_bytes)
    }

    /// Reads 48 bits.
    #[inline]
    pub fn u48(&mut self, field: &'static str) -> Result<u64, Malformed> {
        self.array(field).map(|[a, b, c, d, e, f]| u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
    }

    /// Reads 64 bits.
    #[inline]
    pub fn u64(&mut self, field: &'static str) -> Result<u64, Malformed> {
        self.array(field).map(u64::from_be_bytes)
    }

    /// Reads 16 bits, the lowest byte first.
    #[inline]
    pub fn u16_le(&mut self, field: &'static str) -> Result<u16, Malformed> {
        self.array(field).map(u16::from_le_bytes)
    }

    /// Reads 32 bits, the lowest byte first.
    #[inline]
    pub fn u32_le(&mut self, field: &'static str) -> Result<u32, Malformed> {
        self.array(field).map(u32::from_le_bytes)
    }

    /// A number of 1, 2, 4 or 8 bytes, as the two highest bits say (RFC 9000, section 16).
    #[inline]
    pub fn varint(&mut self, field: &'static str) -> Result<u64, Malformed> {
        let first = *self.0.first().ok_or(Malformed { field })?;
        let bytes = self.take(1 << (first >> 6), field)?;
        Ok(bytes[1..].iter().fold(u64::from(first & 0x3F), |number, &byte| number << 8 | u64::from(byte)))
    }
}

/// The place of the next byte in lent memory. Numbers are written in network byte order unless their method says `le`.
///
/// # Panics
/// Every method that writes panics if the memory is too short: the caller knows how long the fields are.
#[derive(Debug)]
pub struct Writer<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl<'a> Writer<'a> {
    /// Writes into `bytes` from the front.
    pub const fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The bytes that are not written yet.
    pub fn rest(self) -> &'a mut [u8] {
        &mut self.bytes[self.at..]
    }

    /// Writes `bytes` as they are.
    pub fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }

    /// Writes 8 bits.
    pub fn u8(&mut self, number: u8) {
        self.put(&[number]);
    }

    /// Writes 16 bits.
    pub fn u16(&mut self, number: u16) {
        self.put(&number.to_be_bytes());
    }

    /// Writes the lowest 24 bits.
    pub fn u24(&mut self, number: u32) {
        self.put(&number.to_be_bytes()[1..]);
    }

    /// Writes 32 bits.
    pub fn u32(&mut self, number: u32) {
        self.put(&number.to_be_bytes());
    }

    /// Writes the lowest 48 bits.
    pub fn u48(&mut self, number: u64) {
        self.put(&number.to_be_bytes()[2..]);
    }

    /// Writes 64 bits.
    pub fn u64(&mut self, number: u64) {
        self.put(&number.to_be_bytes());
    }

    /// Writes 16 bits, the lowest byte first.
    pub fn u16_le(&mut self, number: u16) {
        self.put(&number.to_le_bytes());
    }

    /// Writes 32 bits, the lowest byte first.
    pub fn u32_le(&mut self, number: u32) {
        self.put(&number.to_le_bytes());
    }
}

/// Appends a number of 1, 2, 4 or 8 bytes, as [`Reader::varint`] reads it; its two highest bits are not written.
pub fn put_varint(number: u64, out: &mut Vec<u8>) {
    match number {
        0..=0x3F => out.push(number as u8),
        0x40..=0x3FFF => out.extend((number as u16 | 0x4000).to_be_bytes()),
        0x4000..=0x3FFF_FFFF => out.extend((number as u32 | 0x8000_0000).to_be_bytes()),
        _ => out.extend((number | 0xC000_0000_0000_0000).to_be_bytes()),
    }
}

/// The counter of which `low` is the lowest `bits` bits, 32 at most: the one nearest to `expected` (as RFC 9000,
/// appendix A.3, has it), or `low` itself where that would be below zero.
#[inline]
pub fn complete(low: u32, bits: u32, expected: u64) -> u64 {
    let rest = u64::BITS - bits;
    let ahead = (u64::from(low).wrapping_sub(expected) << rest).cast_signed() >> rest;
    expected.checked_add_signed(ahead).unwrap_or(low.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_in_network_byte_order_unless_they_say_otherwise() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8];
        let read = || Reader::new(&bytes);
        assert_eq!(read().u8(""), Ok(1));
        assert_eq!(read().u16(""), Ok(0x0102));
        assert_eq!(read().u24(""), Ok(0x01_0203));
        assert_eq!(read().u32(""), Ok(0x0102_0304));
        assert_eq!(read().u48(""), Ok(0x0102_0304_0506));
        assert_eq!(read().u64(""), Ok(0x0102_0304_0506_0708));
        assert_eq!(read().u16_le(""), Ok(0x0201));
        assert_eq!(read().u32_le(""), Ok(0x0403_0201));
    }

    #[test]
    fn the_field_that_is_cut_off_is_named_and_the_bytes_stay() {
        let mut reader = Reader::new(&[1, 2, 3]);
        assert_eq!(reader.u16("kind"), Ok(0x0102));
        assert_eq!(reader.u16("length"), Err(Malformed { field: "length" }));
        assert_eq!(reader.take(2, "name"), Err(Malformed { field: "name" }));
        assert_eq!(Malformed::unless(reader.rest() == [3], "rest"), Ok(()));
        assert_eq!(Malformed::unless(reader.rest() == [4], "rest"), Err(Malformed { field: "rest" }));
        assert_eq!(reader.varint("offset"), Ok(3));
        assert!(reader.is_empty());
        assert_eq!(reader.varint("end").unwrap_err().to_string(), "malformed end");
    }

    #[test]
    fn numbers_of_varying_length_are_those_of_rfc_9000() {
        // Appendix A.1.
        for (bytes, number) in [
            (&[0xC2, 0x19, 0x7C, 0x5E, 0xFF, 0x14, 0xE8, 0x8C][..], 151_288_809_941_952_652),
            (&[0x9D, 0x7F, 0x3E, 0x7D], 494_878_333),
            (&[0x7B, 0xBD], 15_293),
            (&[0x25], 37),
            (&[0x40, 0x25], 37),
        ] {
            assert_eq!(Reader::new(bytes).varint(""), Ok(number));
            assert!(Reader::new(&bytes[..bytes.len() - 1]).varint("").is_err());
        }
        for number in [0, 63, 64, 16_383, 16_384, (1 << 30) - 1, 1 << 30, (1 << 62) - 1] {
            let mut bytes = Vec::new();
            put_varint(number, &mut bytes);
            let mut reader = Reader::new(&bytes);
            assert_eq!((reader.varint(""), reader.is_empty()), (Ok(number), true));
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut bytes = [0; 26];
        let mut writer = Writer::new(&mut bytes);
        writer.u8(1);
        writer.u16(2);
        writer.u24(0xFF00_0003);
        writer.u32(4);
        writer.u48(0xFFFF << 48 | 5);
        writer.u64(6);
        writer.put(b"x");
        assert_eq!(writer.rest(), [0]);
        let mut reader = Reader::new(&bytes);
        assert_eq!((reader.u8(""), reader.u16(""), reader.u24("")), (Ok(1), Ok(2), Ok(3)));
        assert_eq!((reader.u32(""), reader.u48(""), reader.u64("")), (Ok(4), Ok(5), Ok(6)));
        assert_eq!((reader.rest(), reader.take_rest(), reader.rest()), (&b"x\0"[..], &b"x\0"[..], &b""[..]));
    }

    #[test]
    fn counters_are_completed_across_the_end_of_their_lowest_bits() {
        // RFC 9000, appendix A.3.
        assert_eq!(complete(0x9B32, 16, 0xA82F_30EA + 1), 0xA82F_9B32);
        assert_eq!(complete(3, 32, 5), 3);
        assert_eq!(complete(u32::MAX, 32, 1 << 32), (1 << 32) - 1);
        assert_eq!(complete(5, 32, 3), 5);
        assert_eq!(complete(4, 32, (1 << 32) - 2), (1 << 32) + 4);
        assert_eq!(complete(u32::MAX, 32, 1), u64::from(u32::MAX), "never below zero");
    }

    proptest! {
        #[test]
        fn a_counter_within_half_a_span_is_found_again(
            expected in 1_u64 << 33..1 << 60,
            bits in 1_u32..=32,
            by in any::<i32>(),
        ) {
            let half = 1_i64 << (bits - 1);
            let counter = expected.saturating_add_signed(i64::from(by) % half);
            prop_assert_eq!(complete((counter & ((1 << bits) - 1)) as u32, bits, expected), counter);
        }
    }
}
