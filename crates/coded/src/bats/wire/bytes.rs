//! Numbers in network byte order.

use core::fmt;

/// What is wrong with a datagram, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Malformed {
    /// The field that does not fit.
    pub(in super::super) field: &'static str,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed {}", self.field)
    }
}

/// The value nearest to `expected` whose lowest `bits` bits are those of `low`.
pub(in super::super) fn complete(low: u32, bits: u32, expected: u64) -> u64 {
    let span = 1_u64 << bits;
    let near = expected & !(span - 1) | u64::from(low);
    if near.saturating_add(span / 2) < expected {
        near + span
    } else if near > expected.saturating_add(span / 2) && near >= span {
        near - span
    } else {
        near
    }
}

/// Whether something that carries this number is news after what carried the last one. It may be late by a thousand, but
/// all that was sent in an outage may be lost, however much that is.
pub(in super::super) const fn is_news(number: u16, last: u16) -> bool {
    const LATE: u16 = 1024;
    last.wrapping_sub(number) >= LATE
}

/// What is left to read.
pub(in super::super) struct Reader<'a>(pub(in super::super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(in super::super) fn take(&mut self, len: usize, field: &'static str) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(Malformed { field })?;
        self.0 = rest;
        Ok(taken)
    }

    pub(in super::super) fn number(&mut self, len: usize, field: &'static str) -> Result<u64, Malformed> {
        Ok(self.take(len, field)?.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    pub(in super::super) fn u8(&mut self, field: &'static str) -> Result<u8, Malformed> {
        self.number(1, field).map(|number| number as u8)
    }

    pub(in super::super) fn u16(&mut self, field: &'static str) -> Result<u16, Malformed> {
        self.number(2, field).map(|number| number as u16)
    }

    pub(in super::super) fn u24(&mut self, field: &'static str) -> Result<u32, Malformed> {
        self.number(3, field).map(|number| number as u32)
    }

    pub(in super::super) fn u32(&mut self, field: &'static str) -> Result<u32, Malformed> {
        self.number(4, field).map(|number| number as u32)
    }

    pub(in super::super) fn u64(&mut self, field: &'static str) -> Result<u64, Malformed> {
        self.number(8, field)
    }
}

/// Where the next byte goes; the caller has made room for all of them.
pub(in super::super) struct Writer<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl<'a> Writer<'a> {
    pub(in super::super) fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(in super::super) fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }

    /// What has not been written yet.
    pub(in super::super) fn rest(self) -> &'a mut [u8] {
        &mut self.bytes[self.at..]
    }

    pub(in super::super) fn u8(&mut self, number: u8) {
        self.put(&[number]);
    }

    pub(in super::super) fn u16(&mut self, number: u16) {
        self.put(&number.to_be_bytes());
    }

    pub(in super::super) fn u24(&mut self, number: u32) {
        self.put(&number.to_be_bytes()[1..]);
    }

    pub(in super::super) fn u32(&mut self, number: u32) {
        self.put(&number.to_be_bytes());
    }

    pub(in super::super) fn u64(&mut self, number: u64) {
        self.put(&number.to_be_bytes());
    }
}
