//! The records of a report, and the addresses in them and in queries.

use core::fmt;
use std::net::IpAddr;

use super::RecordType;
use crate::{Malformed, ip};

/// One group of a report.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// The type.
    pub kind: RecordType,
    /// The group, as the message has it: it may be no multicast address.
    pub group: IpAddr,
    /// The sources.
    pub sources: Sources<'a>,
}

/// Source addresses as they lie in a message, in its order. An address may stand there several times.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Sources<'a> {
    bytes: &'a [u8],
    version: ip::Version,
}

impl<'a> Sources<'a> {
    /// The addresses in `bytes`, of which a part behind the last whole one is left out.
    pub(crate) const fn new(version: ip::Version, bytes: &'a [u8]) -> Self {
        Self { bytes, version }
    }

    /// No address.
    pub const fn none(version: ip::Version) -> Self {
        Self::new(version, &[])
    }

    /// Number of addresses.
    pub const fn len(&self) -> usize {
        self.bytes.len() / self.version.address_len()
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Iterator for Sources<'_> {
    type Item = IpAddr;

    fn next(&mut self) -> Option<IpAddr> {
        let (address, rest) = read_address(self.version, self.bytes)?;
        self.bytes = rest;
        Some(address)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len(), Some(self.len()))
    }
}

impl fmt::Debug for Sources<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(*self).finish()
    }
}

/// The records of a report, in its order. Records of a type that nobody knows are passed over (RFC 3376 section
/// 4.2.12), auxiliary data is skipped.
#[derive(Clone, Copy)]
pub struct Records<'a> {
    bytes: &'a [u8],
    version: ip::Version,
    left: u16,
}

/// Bytes of a record in front of its group (RFC 3376 section 4.2, RFC 3810 section 5.2).
const RECORD_HEADER: usize = 4;

impl<'a> Records<'a> {
    /// The first `count` records in `bytes`, all of which must be there.
    pub(crate) fn read(
        format: &'static str,
        version: ip::Version,
        count: u16,
        bytes: &'a [u8],
    ) -> Result<Self, Malformed> {
        let records = Self { bytes, version, left: count };
        let mut rest = records;
        while rest.left > 0 {
            if rest.split_record().is_none() {
                let found = rest.bytes.len();
                let needed = rest.first_len().max(RECORD_HEADER + version.address_len());
                return Err(Malformed::truncated(format, "group record", needed, found));
            }
        }
        Ok(records)
    }

    /// The next record, of which the type may be unknown; nothing is taken if it is not all there.
    fn split_record(&mut self) -> Option<(u8, IpAddr, Sources<'a>)> {
        self.left = self.left.checked_sub(1)?;
        let whole = self.first_len();
        let (record, rest) = self.bytes.split_at_checked(whole)?;
        let (&[kind, _, n0, n1], body) = record.split_first_chunk::<RECORD_HEADER>()?;
        let (group, body) = read_address(self.version, body)?;
        let sources = body.get(..usize::from(u16::from_be_bytes([n0, n1])) * self.version.address_len())?;
        self.bytes = rest;
        Some((kind, group, Sources::new(self.version, sources)))
    }

    /// Bytes of the first record by its own account, or of its header if that is cut off.
    fn first_len(&self) -> usize {
        let Some(&[_, auxiliary, n0, n1]) = self.bytes.first_chunk::<RECORD_HEADER>() else {
            return RECORD_HEADER;
        };
        // Auxiliary data is counted in 32-bit words.
        record_len(self.version, u16::from_be_bytes([n0, n1]).into()) + 4 * usize::from(auxiliary)
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        // Each turn takes a record off, of which there are at most 65,535.
        loop {
            let (kind, group, sources) = self.split_record()?;
            if let Some(kind) = RecordType::read(kind) {
                return Some(Record { kind, group, sources });
            }
        }
    }
}

impl fmt::Debug for Records<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(*self).finish()
    }
}

/// Bytes of a record with this many sources, without auxiliary data.
pub const fn record_len(version: ip::Version, sources: usize) -> usize {
    RECORD_HEADER + version.address_len() * (1 + sources)
}

fn read_address(version: ip::Version, bytes: &[u8]) -> Option<(IpAddr, &[u8])> {
    match version {
        ip::Version::V4 => bytes.split_first_chunk::<4>().map(|(octets, rest)| (IpAddr::from(*octets), rest)),
        ip::Version::V6 => {
            bytes.split_first_chunk::<16>().map(|(octets, rest)| (IpAddr::from(*octets), rest))
        }
    }
}

/// Appends the octets of `address`.
pub(crate) fn put_address(bytes: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(address) => bytes.extend_from_slice(&address.octets()),
        IpAddr::V6(address) => bytes.extend_from_slice(&address.octets()),
    }
}

/// Appends records; both formats have the same.
pub(crate) fn put_records(bytes: &mut Vec<u8>, records: &[(RecordType, IpAddr, &[IpAddr])]) {
    for &(kind, group, sources) in records {
        let count = u16::try_from(sources.len()).expect("a record has at most 65,535 sources");
        bytes.extend_from_slice(&[kind as u8, 0]);
        bytes.extend_from_slice(&count.to_be_bytes());
        put_address(bytes, group);
        sources.iter().for_each(|&source| put_address(bytes, source));
    }
}
