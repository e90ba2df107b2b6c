//! Packet formats of batman-adv, compatibility version 15: the payloads of Ethernet frames of type [`ETHER_TYPE`].
//!
//! Every packet starts with its type and the version. Numbers are in network byte order, and reserved bytes are
//! written as zeros and not read.
//!
//! ```text
//!  0      1         2
//! | type | version | the fields of that type …
//! ```
//!
//! Each type has a [`Header`] of fixed length, and behind it a payload: a frame of the mesh's clients, or TVLV
//! [containers](tvlv). The source is the kernel's `include/uapi/linux/batadv_packet.h`.
//!
//! | module | packets |
//! |---|---|
//! | [`ogm`] | originator messages of B.A.T.M.A.N. IV, several in a packet |
//! | [`batman_v`] | originator messages and link probes of B.A.T.M.A.N. V |
//! | [`data`] | unicast, broadcast, multicast, fragments, and unicast packets of containers |
//! | [`icmp`] | the mesh's own echo and its errors |
//! | [`tvlv`] | containers, and those with a few fields |
//! | [`translation`] | the container of the translation table |

pub mod batman_v;
pub mod data;
mod field;
pub mod icmp;
mod messages;
pub mod ogm;
pub mod translation;
pub mod tvlv;

use hopcast_core::{Buffer, Malformed, Reader, Writer};
pub use messages::{Messages, OriginatorMessage};

/// Ethernet type of every packet (`ETH_P_BATMAN`).
pub const ETHER_TYPE: u16 = 0x4305;
/// Version that every packet bears (`BATADV_COMPAT_VERSION`).
pub const VERSION: u8 = 15;
/// Hops that a packet may go when it is made (`BATADV_TTL`).
pub const TTL: u8 = 50;
/// Transmit quality of a link without loss, and the largest there is (`BATADV_TQ_MAX_VALUE`).
pub const MAX_TQ: u8 = 255;

/// Type of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketType {
    /// Originator messages of B.A.T.M.A.N. IV.
    OgmIv = 0x00,
    /// A frame that is flooded through the mesh.
    Broadcast = 0x01,
    /// Two packets in one, by network coding.
    Coded = 0x02,
    /// A probe of a link, of B.A.T.M.A.N. V.
    Elp = 0x03,
    /// Originator messages of B.A.T.M.A.N. V.
    Ogm2 = 0x04,
    /// A frame for several listed originators.
    Multicast = 0x05,
    /// A frame for one originator.
    Unicast = 0x40,
    /// A fragment of a packet for one originator.
    Fragment = 0x41,
    /// A frame for one originator, with its sender.
    Unicast4Addr = 0x42,
    /// The mesh's own echo and errors.
    Icmp = 0x43,
    /// Containers for one originator.
    UnicastTvlv = 0x44,
}

impl PacketType {
    /// The type with this number.
    pub const fn of(number: u8) -> Option<Self> {
        Some(match number {
            0x00 => Self::OgmIv,
            0x01 => Self::Broadcast,
            0x02 => Self::Coded,
            0x03 => Self::Elp,
            0x04 => Self::Ogm2,
            0x05 => Self::Multicast,
            0x40 => Self::Unicast,
            0x41 => Self::Fragment,
            0x42 => Self::Unicast4Addr,
            0x43 => Self::Icmp,
            0x44 => Self::UnicastTvlv,
            _ => return None,
        })
    }
}

/// Reads the type of a packet and checks its version.
///
/// # Errors
/// The packet is shorter than both, has another version, or a type that is not known.
#[inline]
pub fn packet_type(packet: &[u8]) -> Result<PacketType, Malformed> {
    let mut reader = Reader::new(packet);
    let number = reader.u8("packet type")?;
    Malformed::unless(reader.u8("version")? == VERSION, "version")?;
    PacketType::of(number).ok_or(Malformed { field: "packet type" })
}

/// The header of a type of packets.
pub trait Header: Copy {
    /// The type.
    const TYPE: PacketType;
    /// Length in bytes, with the type and the version.
    const LEN: usize;

    /// Reads the fields behind the version.
    ///
    /// # Errors
    /// The field that is cut off, or has a value that it must not have.
    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed>;

    /// Writes the fields behind the version.
    fn write(&self, writer: &mut Writer<'_>);

    /// Reads the header of a packet; what is behind it is the payload.
    ///
    /// # Errors
    /// The packet has another type or version, or is cut off.
    #[inline]
    fn parse(packet: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        Malformed::unless(packet_type(packet)? == Self::TYPE, "packet type")?;
        let mut reader = Reader::new(&packet[2..]);
        Ok((Self::read(&mut reader)?, reader.rest()))
    }

    /// Puts the header in front of the payload in `buffer`.
    #[inline]
    fn prepend(&self, buffer: &mut Buffer) {
        self.emit(buffer.prepend(Self::LEN));
    }

    /// Writes the header over the first [`Header::LEN`] bytes of a packet.
    ///
    /// # Panics
    /// If there are fewer.
    #[inline]
    fn emit(&self, packet: &mut [u8]) {
        let mut writer = Writer::new(packet);
        writer.u8(Self::TYPE as u8);
        writer.u8(VERSION);
        self.write(&mut writer);
    }
}

#[cfg(test)]
mod tests;
