//! Encoded addresses (RFC 7761 section 4.9.1).
//!
//! ```text
//!  unicast    0: family   1: encoding 0   2: address
//!  group      0: family   1: encoding 0   2: B | reserved | Z            3: mask length   4: address
//!  source     0: family   1: encoding 0   2: reserved | S | W | R        3: mask length   4: address
//! ```

use std::net::{IpAddr, Ipv6Addr};

use hopcast_core::bytes::{Malformed, Reader};
use hopcast_wire::ip::Version;

use crate::groups::is_link_scope;
use crate::icmp::is_one_host;
use crate::pim::refusal::Refusal;

/// Numbers of address families (IANA).
const FAMILY_V4: u8 = 1;
const FAMILY_V6: u8 = 2;

/// Flags of a source: of sparse mode, always set; of any source; and of the shared tree.
const SPARSE: u8 = 4;
const WILDCARD: u8 = 2;
const SHARED_TREE: u8 = 1;

/// Whether a source in a list is one for all sources, or of the shared tree, and not of a source tree.
pub(super) type IsShared = bool;

impl From<Malformed> for Refusal {
    fn from(_: Malformed) -> Self {
        Self::Truncated
    }
}

/// Reads an address of one host, or none: unspecified.
pub(super) fn unicast(reader: &mut Reader<'_>, version: Version) -> Result<IpAddr, Refusal> {
    family(reader, version)?;
    let address = bare(reader, version)?;
    if is_one_host(address) || address.is_unspecified() { Ok(address) } else { Err(Refusal::Listed) }
}

/// Reads a group beyond the link.
pub(super) fn group(reader: &mut Reader<'_>, version: Version) -> Result<IpAddr, Refusal> {
    family(reader, version)?;
    let [_flags, mask] = reader.array("group")?;
    let address = bare(reader, version)?;
    if mask != version.address_bits() {
        return Err(Refusal::Mask);
    }
    if address.is_multicast() && !is_link_scope(address) { Ok(address) } else { Err(Refusal::Group) }
}

/// Reads a source of a list.
pub(super) fn source(reader: &mut Reader<'_>, version: Version) -> Result<(IpAddr, IsShared), Refusal> {
    family(reader, version)?;
    let [flags, mask] = reader.array("source")?;
    let address = bare(reader, version)?;
    if mask != version.address_bits() {
        return Err(Refusal::Mask);
    }
    if is_one_host(address) {
        Ok((address, flags & (WILDCARD | SHARED_TREE) != 0))
    } else {
        Err(Refusal::Listed)
    }
}

pub(super) fn put_unicast(bytes: &mut Vec<u8>, address: IpAddr) {
    put(bytes, address, &[]);
}

pub(super) fn put_group(bytes: &mut Vec<u8>, group: IpAddr) {
    put(bytes, group, &[0, Version::of(group).address_bits()]);
}

pub(super) fn put_source(bytes: &mut Vec<u8>, source: IpAddr) {
    put(bytes, source, &[SPARSE, Version::of(source).address_bits()]);
}

fn put(bytes: &mut Vec<u8>, address: IpAddr, between: &[u8]) {
    bytes.extend([if address.is_ipv4() { FAMILY_V4 } else { FAMILY_V6 }, 0]);
    bytes.extend(between);
    match address {
        IpAddr::V4(address) => bytes.extend(address.octets()),
        IpAddr::V6(address) => bytes.extend(address.octets()),
    }
}

fn family(reader: &mut Reader<'_>, version: Version) -> Result<(), Refusal> {
    let expected = match version {
        Version::V4 => [FAMILY_V4, 0],
        Version::V6 => [FAMILY_V6, 0],
    };
    if reader.array("address family")? == expected { Ok(()) } else { Err(Refusal::Family) }
}

fn bare(reader: &mut Reader<'_>, version: Version) -> Result<IpAddr, Refusal> {
    Ok(match version {
        Version::V4 => IpAddr::from(reader.array::<4>("address")?),
        Version::V6 => IpAddr::V6(Ipv6Addr::from(reader.array::<16>("address")?)),
    })
}
