//! MLD, versions 1 and 2 (RFC 2710, RFC 3810): messages of ICMPv6, with its checksum over the pseudo-header.
//!
//! ```text
//!  query    | 130 | 0 | checksum | max resp code | reserved | group | S, robustness | QQIC | sources |  sources …
//!            0     1   2          4               6          8       24              25     26        28
//!  report   | 143 | 0 | checksum | reserved | records |  records …
//!            0     1   2          4          6         8
//!  record   | type | auxiliary words | sources | group |  sources …  auxiliary data …
//!            0      1                 2         4       20
//!  older    | 131 report, 132 done | 0 | checksum | reserved | group |
//!            0                      1   2          4          8       24
//! ```
//!
//! A query of 24 bytes is one of version 1, one of 28 or more of version 2, whose maximum response code is a
//! floating-point number from 32,768 on. Bytes behind the last field belong to the checksum and mean nothing. In
//! [`Version`], MLDv1 is `V2` and MLDv2 is `V3`.

use std::net::{IpAddr, Ipv6Addr};

use hopcast_core::{Buffer, Duration};

use crate::membership::{
    self, MANTISSA_OF_16, Message, Query, RecordType, Records, Sources, Version, decode, encode,
};
use crate::{Malformed, checksum, ip};

// Types of messages: RFC 2710 section 3.1, RFC 3810 section 5.2.

const QUERY: u8 = 130;
const REPORT_V1: u8 = 131;
const DONE: u8 = 132;
const REPORT_V2: u8 = 143;

/// Bytes of a message of version 1.
const OLDER: usize = 24;
/// Bytes of a query of version 2 in front of its sources.
pub const QUERY_HEADER: usize = 28;
/// Bytes of a report of version 2 in front of its records.
pub const REPORT_HEADER: usize = 8;

/// Whether a message of ICMPv6 of this type is one of MLD.
pub const fn is_mld(kind: u8) -> bool {
    matches!(kind, QUERY | REPORT_V1 | DONE | REPORT_V2)
}

/// Reads a message (an IP packet's payload) and verifies its checksum. `None` if it is another message of ICMPv6, whose
/// checksum is not looked at, or a query of a length that no version has.
pub fn parse(
    source: Ipv6Addr,
    destination: Ipv6Addr,
    bytes: &[u8],
) -> Result<Option<Message<'_>>, Malformed> {
    let Some(&kind) = bytes.first().filter(|kind| is_mld(**kind)) else { return Ok(None) };
    if checksum::transport(source.into(), destination.into(), ip::ICMPV6, bytes) != 0 {
        return Err(Malformed::corrupt("MLD", "checksum"));
    }
    if kind == REPORT_V2 {
        let Some((&[.., m0, m1], rest)) = bytes.split_first_chunk::<REPORT_HEADER>() else {
            return Err(Malformed::truncated("MLD", "report", REPORT_HEADER, bytes.len()));
        };
        let records = Records::read("MLD", ip::Version::V6, u16::from_be_bytes([m0, m1]), rest)?;
        return Ok(Some(Message::Report(records)));
    }
    let Some((head, rest)) = bytes.split_first_chunk::<OLDER>() else {
        return Err(Malformed::truncated("MLD", "header", OLDER, bytes.len()));
    };
    let (&[.., c0, c1, _, _], group) = head.split_first_chunk::<8>().expect("24 bytes are more than 8");
    let mut octets = [0; 16];
    octets.copy_from_slice(group);
    let group = Ipv6Addr::from(octets);
    match kind {
        QUERY => query(u16::from_be_bytes([c0, c1]), group, rest),
        DONE => Ok(Some(Message::Leave(group.into()))),
        _ => Ok(Some(Message::OlderReport(Version::V2, group.into()))),
    }
}

fn query(code: u16, group: Ipv6Addr, rest: &[u8]) -> Result<Option<Message<'_>>, Malformed> {
    if !group.is_unspecified() && !group.is_multicast() {
        return Err(Malformed::value("MLD", "multicast address", group.segments()[0].into()));
    }
    let group = (!group.is_unspecified()).then_some(IpAddr::V6(group));
    let Some(&[flags, interval, n0, n1]) = rest.first_chunk::<4>() else {
        let (version, max_response) = (Version::V2, Duration::from_millis(code.into()));
        let query =
            Query { version, group, max_response, suppress: false, robustness: 0, interval: Duration::ZERO };
        let whole = rest.is_empty();
        return Ok(whole.then(|| Message::Query(query, Sources::new(ip::Version::V6, &[]))));
    };
    let needed = 16 * usize::from(u16::from_be_bytes([n0, n1]));
    let Some(sources) = rest[4..].get(..needed) else {
        return Err(Malformed::truncated("MLD", "sources", needed, rest.len() - 4));
    };
    let (suppress, robustness, interval) = membership::read_querier([flags, interval]);
    let max_response = Duration::from_millis(decode(code, MANTISSA_OF_16).into());
    let query = Query { version: Version::V3, group, max_response, suppress, robustness, interval };
    Ok(Some(Message::Query(query, Sources::new(ip::Version::V6, sources))))
}

/// Puts a query, with its checksum, in front of what is in `buffer`, usually nothing. Before version 3 there are no
/// sources, and there is no version 1, which becomes 2. Times are rounded down to what the fields can say.
///
/// # Panics
///
/// If there are more than 65,535 sources, or the message is too long for its length field.
pub fn prepend_query(
    buffer: &mut Buffer,
    source: Ipv6Addr,
    destination: Ipv6Addr,
    query: &Query,
    sources: &[Ipv6Addr],
) {
    let millis = u32::try_from(query.max_response.as_millis()).unwrap_or(u32::MAX);
    let code = match query.version {
        Version::V1 | Version::V2 => millis.min(0xffff) as u16,
        Version::V3 => encode(millis, MANTISSA_OF_16),
    };
    let mut bytes = vec![QUERY, 0, 0, 0];
    bytes.extend_from_slice(&code.to_be_bytes());
    bytes.extend_from_slice(&[0, 0]);
    membership::put_address(&mut bytes, query.group.unwrap_or(Ipv6Addr::UNSPECIFIED.into()));
    if query.version == Version::V3 {
        let count = u16::try_from(sources.len()).expect("a query has at most 65,535 sources");
        bytes.extend_from_slice(&membership::put_querier(query));
        bytes.extend_from_slice(&count.to_be_bytes());
        sources.iter().for_each(|source| bytes.extend_from_slice(&source.octets()));
    }
    seal(buffer, source, destination, &bytes);
}

/// Puts a report of version 2, with its checksum, in front of what is in `buffer`, usually nothing.
///
/// # Panics
///
/// If there are more than 65,535 records, or as many sources in one.
pub fn prepend_report(
    buffer: &mut Buffer,
    source: Ipv6Addr,
    destination: Ipv6Addr,
    records: &[(RecordType, IpAddr, &[IpAddr])],
) {
    let count = u16::try_from(records.len()).expect("a report has at most 65,535 records");
    let mut bytes = vec![REPORT_V2, 0, 0, 0, 0, 0];
    bytes.extend_from_slice(&count.to_be_bytes());
    membership::put_records(&mut bytes, records);
    seal(buffer, source, destination, &bytes);
}

/// Puts a report of version 1 in front of what is in `buffer`.
pub fn prepend_older_report(buffer: &mut Buffer, source: Ipv6Addr, destination: Ipv6Addr, group: Ipv6Addr) {
    prepend_older(buffer, source, destination, REPORT_V1, group);
}

/// Puts a done, version 1's leave, in front of what is in `buffer`.
pub fn prepend_done(buffer: &mut Buffer, source: Ipv6Addr, destination: Ipv6Addr, group: Ipv6Addr) {
    prepend_older(buffer, source, destination, DONE, group);
}

fn prepend_older(buffer: &mut Buffer, source: Ipv6Addr, destination: Ipv6Addr, kind: u8, group: Ipv6Addr) {
    let mut bytes = vec![kind, 0, 0, 0, 0, 0, 0, 0];
    bytes.extend_from_slice(&group.octets());
    seal(buffer, source, destination, &bytes);
}

fn seal(buffer: &mut Buffer, source: Ipv6Addr, destination: Ipv6Addr, message: &[u8]) {
    buffer.prepend(message.len()).copy_from_slice(message);
    let sum = checksum::transport(source.into(), destination.into(), ip::ICMPV6, buffer);
    buffer[2..4].copy_from_slice(&sum.to_be_bytes());
}
