//! Network-layer addresses (NLA), each after the number of its family (RFC 3208, section 8).
//!
//! ```text
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |        address family         |           reserved            |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                            address                            …
//! ```

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Malformed, Reader, Writer};

/// Families of RFC 1700.
const IPV4: u16 = 1;
const IPV6: u16 = 2;

/// Length with the family, in bytes.
pub(super) const fn len(address: IpAddr) -> usize {
    4 + bare_len(address)
}

/// Length of the address alone.
pub(super) const fn bare_len(address: IpAddr) -> usize {
    match address {
        IpAddr::V4(_) => 4,
        IpAddr::V6(_) => 16,
    }
}

/// The number of an address's family.
pub(super) const fn family(address: IpAddr) -> u16 {
    match address {
        IpAddr::V4(_) => IPV4,
        IpAddr::V6(_) => IPV6,
    }
}

pub(super) fn read(reader: &mut Reader<'_>, field: &'static str) -> Result<IpAddr, Malformed> {
    let family = reader.u16(field)?;
    reader.u16(field)?;
    bare(reader, family, field)
}

/// An address of which the family has been read.
pub(super) fn bare(reader: &mut Reader<'_>, family: u16, field: &'static str) -> Result<IpAddr, Malformed> {
    match family {
        IPV4 => Ok(Ipv4Addr::from_bits(reader.u32(field)?).into()),
        IPV6 => Ok(Ipv6Addr::from(reader.array::<16>(field)?).into()),
        _ => Err(Malformed { field }),
    }
}

pub(super) fn write(address: IpAddr, out: &mut Writer<'_>) {
    out.u16(family(address));
    out.u16(0);
    write_bare(address, out);
}

pub(super) fn write_bare(address: IpAddr, out: &mut Writer<'_>) {
    match address {
        IpAddr::V4(address) => out.put(&address.octets()),
        IpAddr::V6(address) => out.put(&address.octets()),
    }
}
