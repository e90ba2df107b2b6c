//! IGMP, versions 1 to 3 (RFC 1112 appendix I, RFC 2236, RFC 3376).
//!
//! ```text
//!  query    | 0x11 | max resp code | checksum | group | S, robustness | QQIC | sources |  sources …
//!            0      1               2          4       8               9      10        12
//!  report   | 0x22 | reserved      | checksum | reserved | records |  records …
//!            0      1               2          4          6         8
//!  record   | type | auxiliary words | sources | group |  sources …  auxiliary data …
//!            0      1                 2         4       8
//!  older    | 0x12 report 1, 0x16 report 2, 0x17 leave | reserved | checksum | group |
//!            0                                          1          2          4       8
//! ```
//!
//! A query of 8 bytes is one of version 1 if its maximum response code is 0, and of version 2 otherwise; one of 12 or
//! more is of version 3, whose codes are floating-point numbers from 128 on. Bytes behind the last field belong to the
//! checksum and mean nothing.

use std::net::{IpAddr, Ipv4Addr};

use hopcast_core::{Buffer, Duration};

use crate::membership::{
    self, MANTISSA_OF_8, Message, Query, RecordType, Records, Sources, Version, decode, encode,
};
use crate::{Malformed, checksum, ip};

// Types of messages: RFC 3376 section 4, which has the older ones too.

const QUERY: u8 = 0x11;
const REPORT_V1: u8 = 0x12;
const REPORT_V2: u8 = 0x16;
const LEAVE: u8 = 0x17;
const REPORT_V3: u8 = 0x22;

/// Bytes of a message of versions 1 and 2.
const OLDER: usize = 8;
/// Bytes of a query of version 3 in front of its sources.
pub const QUERY_HEADER: usize = 12;
/// Bytes of a report of version 3 in front of its records.
pub const REPORT_HEADER: usize = 8;

/// The unit of maximum response codes (RFC 3376 section 4.1.1).
const TENTH: Duration = Duration::from_millis(100);
/// Maximum response time of a query of version 1 (RFC 3376 section 7.2.1).
const V1_MAX_RESPONSE: Duration = Duration::from_secs(10);

/// Reads a message (an IP packet's payload) and verifies its checksum. `None` if it is of an unknown type, or a query
/// of a length that no version has.
pub fn parse(bytes: &[u8]) -> Result<Option<Message<'_>>, Malformed> {
    let Some((&[kind, code, _, _, w0, w1, w2, w3], rest)) = bytes.split_first_chunk::<OLDER>() else {
        return Err(Malformed::truncated("IGMP", "header", OLDER, bytes.len()));
    };
    if checksum::checksum(bytes) != 0 {
        return Err(Malformed::corrupt("IGMP", "checksum"));
    }
    let group = Ipv4Addr::new(w0, w1, w2, w3);
    Ok(Some(match kind {
        QUERY => return query(code, group, rest),
        REPORT_V1 => Message::OlderReport(Version::V1, group.into()),
        REPORT_V2 => Message::OlderReport(Version::V2, group.into()),
        LEAVE => Message::Leave(group.into()),
        REPORT_V3 => {
            let count = u16::from_be_bytes([w2, w3]);
            Message::Report(Records::read("IGMP", ip::Version::V4, count, rest)?)
        }
        _ => return Ok(None),
    }))
}

fn query(code: u8, group: Ipv4Addr, rest: &[u8]) -> Result<Option<Message<'_>>, Malformed> {
    if !group.is_unspecified() && !group.is_multicast() {
        return Err(Malformed::value("IGMP", "group address", group.to_bits()));
    }
    let group = (!group.is_unspecified()).then_some(IpAddr::V4(group));
    let older = |version, max_response| {
        let query =
            Query { version, group, max_response, suppress: false, robustness: 0, interval: Duration::ZERO };
        Ok(Some(Message::Query(query, Sources::new(ip::Version::V4, &[]))))
    };
    match (rest.first_chunk::<4>(), code) {
        (None, _) if !rest.is_empty() => Ok(None),
        (None, 0) => older(Version::V1, V1_MAX_RESPONSE),
        (None, code) => older(Version::V2, TENTH * u64::from(code)),
        (Some(&[flags, interval, n0, n1]), code) => {
            let needed = 4 * usize::from(u16::from_be_bytes([n0, n1]));
            let Some(sources) = rest[4..].get(..needed) else {
                return Err(Malformed::truncated("IGMP", "sources", needed, rest.len() - 4));
            };
            let (suppress, robustness, interval) = membership::read_querier([flags, interval]);
            let max_response = TENTH * u64::from(decode(code.into(), MANTISSA_OF_8));
            let version = Version::V3;
            let query = Query { version, group, max_response, suppress, robustness, interval };
            Ok(Some(Message::Query(query, Sources::new(ip::Version::V4, sources))))
        }
    }
}

/// Puts a query, with its checksum, in front of what is in `buffer`, usually nothing. Before version 3 there are no
/// sources. Times are rounded down to what the fields can say, but not to zero.
///
/// # Panics
///
/// If there are more than 65,535 sources.
pub fn prepend_query(buffer: &mut Buffer, query: &Query, sources: &[Ipv4Addr]) {
    let tenths = query.max_response.as_millis() / 100;
    let tenths = u32::try_from(tenths).unwrap_or(u32::MAX).max(u32::from(!query.max_response.is_zero()));
    let code = match query.version {
        Version::V1 => 0,
        // 0 would be version 1.
        Version::V2 => tenths.clamp(1, 0xff) as u8,
        Version::V3 => encode(tenths, MANTISSA_OF_8) as u8,
    };
    let group = query.group.unwrap_or(Ipv4Addr::UNSPECIFIED.into());
    let mut bytes = vec![QUERY, code, 0, 0];
    membership::put_address(&mut bytes, group);
    if query.version == Version::V3 {
        let count = u16::try_from(sources.len()).expect("a query has at most 65,535 sources");
        bytes.extend_from_slice(&membership::put_querier(query));
        bytes.extend_from_slice(&count.to_be_bytes());
        sources.iter().for_each(|source| bytes.extend_from_slice(&source.octets()));
    }
    seal(buffer, &bytes);
}

/// Puts a report of version 3, with its checksum, in front of what is in `buffer`, usually nothing.
///
/// # Panics
///
/// If there are more than 65,535 records, or as many sources in one.
pub fn prepend_report(buffer: &mut Buffer, records: &[(RecordType, IpAddr, &[IpAddr])]) {
    let count = u16::try_from(records.len()).expect("a report has at most 65,535 records");
    let mut bytes = vec![REPORT_V3, 0, 0, 0, 0, 0];
    bytes.extend_from_slice(&count.to_be_bytes());
    membership::put_records(&mut bytes, records);
    seal(buffer, &bytes);
}

/// Puts a report of version 1 or 2 in front of what is in `buffer`; one of version 3 has
/// [a form of its own](prepend_report), and becomes one of version 2.
pub fn prepend_older_report(buffer: &mut Buffer, version: Version, group: Ipv4Addr) {
    prepend_older(buffer, if version == Version::V1 { REPORT_V1 } else { REPORT_V2 }, group);
}

/// Puts a leave in front of what is in `buffer`.
pub fn prepend_leave(buffer: &mut Buffer, group: Ipv4Addr) {
    prepend_older(buffer, LEAVE, group);
}

fn prepend_older(buffer: &mut Buffer, kind: u8, group: Ipv4Addr) {
    let [a, b, c, d] = group.octets();
    seal(buffer, &[kind, 0, 0, 0, a, b, c, d]);
}

fn seal(buffer: &mut Buffer, message: &[u8]) {
    buffer.prepend(message.len()).copy_from_slice(message);
    let sum = checksum::checksum(buffer);
    buffer[2..4].copy_from_slice(&sum.to_be_bytes());
}
