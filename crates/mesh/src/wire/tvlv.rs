//! TVLV containers: a type, a version, a length, and a value. Nodes skip those that they do not know.
//!
//! ```text
//!  0      1         2        4
//! | type | version | length | value …
//! ```

use hopcast_core::{Malformed, Reader};
use hopcast_wire::ethernet::Mac;

/// Type: the node is a gateway to other networks; see [`Gateway`].
pub const GATEWAY: u8 = 1;
/// Type: the node takes part in the distributed ARP table. It has no value.
pub const ARP_TABLE: u8 = 2;
/// Type: the node takes part in network coding. It has no value.
pub const NETWORK_CODING: u8 = 3;
/// Type: a node's translation table; see [`TableData`](super::translation::TableData).
pub const TRANSLATION: u8 = 4;
/// Type: a client has come to another node; see [`Roaming`].
pub const ROAMING: u8 = 5;
/// Type: which multicast frames the node wants; see [`multicast`].
pub const MULTICAST: u8 = 6;
/// Type: the originators that a multicast packet is for; see [`Tracker`].
pub const MULTICAST_TRACKER: u8 = 7;

/// Length of a container in front of its value.
pub const HEADER: usize = 4;

/// A container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Container<'a> {
    /// Type of the value.
    pub kind: u8,
    /// Version of the type. A value of another version than the one that a node knows is skipped.
    pub version: u8,
    /// The value.
    pub value: &'a [u8],
}

/// Reads containers one after another, up to the end or to one that is cut off or of an odd length: the next one begins
/// at an even place (`batadv_tvlv_hdr_next`).
pub fn containers(bytes: &[u8]) -> impl Iterator<Item = Container<'_>> {
    let mut reader = Reader::new(bytes);
    std::iter::from_fn(move || {
        let [kind, version, high, low] = reader.array("container").ok()?;
        let len = u16::from_be_bytes([high, low]);
        let value = reader.take(usize::from(len), "length").ok().filter(|_| len.is_multiple_of(2))?;
        Some(Container { kind, version, value })
    })
}

/// The values of the containers of a kind and version in an area.
pub fn values(bytes: &[u8], kind: u8, version: u8) -> impl Iterator<Item = &[u8]> {
    containers(bytes)
        .filter(move |found| (found.kind, found.version) == (kind, version))
        .map(|found| found.value)
}

/// Appends a container.
///
/// # Panics
/// If the value is longer than 65,535 bytes.
pub fn put(out: &mut Vec<u8>, kind: u8, version: u8, value: &[u8]) {
    let len = u16::try_from(value.len()).expect("a value of a container fits its length");
    out.extend([kind, version]);
    out.extend(len.to_be_bytes());
    out.extend(value);
}

/// Bandwidth of a gateway, version 1: down from the other network and up to it, in units of 100 kbit/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gateway {
    /// From the other network to the mesh.
    pub down: u32,
    /// From the mesh to the other network.
    pub up: u32,
}

impl Gateway {
    /// Reads a value; what is behind it is not read.
    ///
    /// # Errors
    /// It is cut off.
    pub fn parse(value: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(value);
        Ok(Self { down: reader.u32("bandwidth down")?, up: reader.u32("bandwidth up")? })
    }

    /// The value's bytes.
    pub fn bytes(&self) -> [u8; 8] {
        (u64::from(self.down) << 32 | u64::from(self.up)).to_be_bytes()
    }
}

/// A client has come to the node that sends this, version 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Roaming {
    /// The client's address.
    pub client: Mac,
    /// The client's VLAN, as in the [translation table](super::translation).
    pub vlan: u16,
}

impl Roaming {
    /// Reads a value; what is behind it is not read.
    ///
    /// # Errors
    /// It is cut off.
    pub fn parse(value: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(value);
        Ok(Self { client: reader.array("client")?, vlan: reader.u16("VLAN")? })
    }

    /// The value's bytes.
    pub const fn bytes(&self) -> [u8; 8] {
        let ([a, b, c, d, e, f], [high, low]) = (self.client, self.vlan.to_be_bytes());
        [a, b, c, d, e, f, high, low]
    }
}

/// Flags of the container [`MULTICAST`], whose version 2 is a byte of them and three reserved bytes.
pub mod multicast {
    use hopcast_core::{Malformed, Reader};

    /// Version with the flags that are below.
    pub const VERSION: u8 = 2;
    /// Length of the value: the flags, and three reserved bytes.
    pub const LEN: usize = 4;
    /// All frames to groups that are not snooped, which are 224.0.0.0/24 and ff02::1.
    pub const WANT_ALL_UNSNOOPABLES: u8 = 1;
    /// All frames to groups of IPv4.
    pub const WANT_ALL_IPV4: u8 = 1 << 1;
    /// All frames to groups of IPv6.
    pub const WANT_ALL_IPV6: u8 = 1 << 2;
    /// No frames to routable groups of IPv4 but those that are announced: there is no multicast router.
    pub const WANT_NO_ROUTER_IPV4: u8 = 1 << 3;
    /// No frames to routable groups of IPv6 but those that are announced.
    pub const WANT_NO_ROUTER_IPV6: u8 = 1 << 4;
    /// The node forwards packets of type [`Multicast`](super::super::PacketType::Multicast).
    pub const HAS_MULTICAST_PACKETS: u8 = 1 << 5;

    /// Reads the flags of a value.
    ///
    /// # Errors
    /// It is cut off.
    pub fn parse(value: &[u8]) -> Result<u8, Malformed> {
        let [flags, ..] = Reader::new(value).array::<LEN>("multicast flags")?;
        Ok(flags)
    }

    /// The value with these flags.
    pub const fn bytes(flags: u8) -> [u8; LEN] {
        [flags, 0, 0, 0]
    }
}

/// The originators that a multicast packet is for, version 1: their number and addresses, and two bytes more if the
/// number is even, so that the frame behind is aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tracker<'a>(&'a [u8]);

impl<'a> Tracker<'a> {
    /// Reads a value; what is behind the addresses is not read.
    ///
    /// # Errors
    /// There are fewer addresses than it says.
    pub fn parse(value: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(value);
        let number = usize::from(reader.u16("number of destinations")?);
        reader.take(6 * number, "destinations").map(Self)
    }

    /// The addresses.
    pub fn destinations(&self) -> impl ExactSizeIterator<Item = Mac> + use<'a> {
        let (addresses, _) = self.0.as_chunks::<6>();
        addresses.iter().copied()
    }

    /// Appends the value with these destinations.
    ///
    /// # Panics
    /// If there are more than 65,535.
    pub fn put(out: &mut Vec<u8>, destinations: &[Mac]) {
        let number = u16::try_from(destinations.len()).expect("the number of destinations fits its field");
        out.extend(number.to_be_bytes());
        out.extend(destinations.as_flattened());
        if number.is_multiple_of(2) {
            out.extend([0, 0]);
        }
    }
}
