//! NORM_INFO and NORM_DATA: what a sender says of objects, and their symbols (RFC 5740, sections 4.2.1 and 4.2.2).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |          instance_id          |     grtt      |backoff| gsize |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |     flags     |    fec_id     |     object_transport_id       |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! | NORM_DATA: fec_payload_id, 32 or 64 bits                      |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! | header extensions: EXT_FTI                                    …
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! | payload                                                       …
//! ```
//!
//! A source symbol of a stream begins with a header of its own, which is coded with the rest:
//!
//! ```text
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |          payload_len          |       payload_msg_start       |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                        payload_offset                         |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```

use super::bits::bits;
use super::extension::Extensions;
use super::{Fec, Fti, Lengths, Malformed, PayloadId, Reader, Writer};

bits! {
    /// Flags of an object (RFC 5740, section 4.2.1).
    Flags {
        /// A repair: the symbol was asked for.
        REPAIR = 0x01;
        /// A repair of symbols that were named, not only counted.
        EXPLICIT = 0x02;
        /// The object has a NORM_INFO.
        INFO = 0x04;
        /// No repairs will be sent.
        UNRELIABLE = 0x08;
        /// The object is a file.
        FILE = 0x10;
        /// The object is a stream.
        STREAM = 0x20;
        /// The sender has heard from no receiver yet: of libnorm alone.
        SYN = 0x40;
    }
}

/// The beginning of every message of a sender, after the header that all messages have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Drawn by the sender when it starts: another instance has forgotten everything.
    pub instance: u16,
    /// Group round-trip time, as [`quantise::rtt`](super::quantise::rtt) reads it.
    pub grtt: u8,
    /// Back-off factor of NACKs, in GRTT; 4 bits.
    pub backoff: u8,
    /// Number of receivers, as [`quantise::group_size`](super::quantise::group_size) reads it; 4 bits.
    pub group_size: u8,
}

impl Header {
    pub(super) const LEN: usize = 4;

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let instance = reader.u16("instance")?;
        let grtt = reader.u8("GRTT")?;
        let both = reader.u8("group size")?;
        Ok(Self { instance, grtt, backoff: both >> 4, group_size: both & 0xF })
    }

    pub(super) fn write(self, out: &mut Writer<'_>) {
        out.u16(self.instance);
        out.u8(self.grtt);
        out.u8(self.backoff.min(0xF) << 4 | self.group_size & 0xF);
    }
}

/// NORM_INFO: a few bytes about an object, outside of its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info<'a> {
    /// The sender.
    pub header: Header,
    /// Flags of the object and of this message.
    pub flags: Flags,
    /// The object's code.
    pub fec: Fec,
    /// Object transport id.
    pub object: u16,
    /// FEC object transmission information, where the message bears it.
    pub fti: Option<Fti>,
    /// The bytes; one segment at most.
    pub payload: &'a [u8],
}

impl<'a> Info<'a> {
    pub(super) fn read(header: &mut Reader<'a>, rest: &mut Reader<'a>) -> Result<Self, Malformed> {
        let sender = Header::read(header)?;
        let flags = Flags(header.u8("flags")?);
        let fec = Fec::of(header.u8("FEC encoding id")?)?;
        let object = header.u16("object")?;
        let fti = Extensions::read(header, Some(fec))?.fti;
        Ok(Self { header: sender, flags, fec, object, fti, payload: rest.take_rest() })
    }

    pub(super) fn lengths(&self) -> Lengths {
        Lengths { header: Header::LEN + 4 + self.fti.map_or(0, Fti::len), list: 0 }
    }

    pub(super) fn write(&self, out: &mut Writer<'_>) {
        self.header.write(out);
        out.u8(self.flags.0);
        out.u8(self.fec.id());
        out.u16(self.object);
        Extensions { fti: self.fti, ..Extensions::default() }.write(out);
    }
}

/// NORM_DATA: a symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Data<'a> {
    /// The sender.
    pub header: Header,
    /// Flags of the object and of this message.
    pub flags: Flags,
    /// The object's code.
    pub fec: Fec,
    /// Object transport id.
    pub object: u16,
    /// The symbol.
    pub id: PayloadId,
    /// FEC object transmission information, where the message bears it.
    pub fti: Option<Fti>,
    /// The symbol's bytes. The last source symbol of an object, and those of a stream, may be shorter than others:
    /// they count as if zeros followed.
    pub payload: &'a [u8],
}

impl<'a> Data<'a> {
    /// Length of a NORM_DATA without a payload, with `fec` and an FTI or not, in bytes.
    pub const fn overhead(fec: Fec, with_fti: bool) -> usize {
        let fti = if with_fti { Fti::len_with(fec) } else { 0 };
        super::COMMON_LEN + Header::LEN + 4 + fec.payload_id_len() + fti
    }

    pub(super) fn read(header: &mut Reader<'a>, rest: &mut Reader<'a>) -> Result<Self, Malformed> {
        let sender = Header::read(header)?;
        let flags = Flags(header.u8("flags")?);
        let fec = Fec::of(header.u8("FEC encoding id")?)?;
        let object = header.u16("object")?;
        let id = PayloadId::read(fec, header)?;
        let fti = Extensions::read(header, Some(fec))?.fti;
        Ok(Self { header: sender, flags, fec, object, id, fti, payload: rest.take_rest() })
    }

    pub(super) fn lengths(&self) -> Lengths {
        Lengths { header: Self::overhead(self.fec, self.fti.is_some()) - super::COMMON_LEN, list: 0 }
    }

    pub(super) fn write(&self, out: &mut Writer<'_>) {
        self.header.write(out);
        out.u8(self.flags.0);
        out.u8(self.fec.id());
        out.u16(self.object);
        self.id.write(self.fec, out);
        Extensions { fti: self.fti, ..Extensions::default() }.write(out);
    }
}

/// Header of a source symbol of a stream, within the symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamHeader {
    /// Number of bytes of the stream in the symbol. 0 is a command, of which [`END`](Self::END) is the only one.
    pub length: u16,
    /// One more than the place, among those bytes, at which the first message begins; 0 if none does. In a command,
    /// its number.
    pub message_start: u16,
    /// Place of the bytes in the stream, modulo 2^32.
    pub offset: u32,
}

impl StreamHeader {
    /// Its length in bytes.
    pub const LEN: usize = 8;

    /// The command that ends a stream, in `message_start` where `length` is 0 (RFC 5740, section 4.2.1).
    pub const END: u16 = 0;

    /// Reads it off a source symbol, and returns the bytes of the stream after it.
    ///
    /// # Errors
    /// [`Malformed`] if the symbol is shorter than it says, or a message begins after its bytes.
    pub fn read(symbol: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let mut reader = Reader::new(symbol);
        let length = reader.u16("stream payload length")?;
        let message_start = reader.u16("stream message start")?;
        let offset = reader.u32("stream offset")?;
        let bytes = reader.take(length.into(), "stream payload length")?;
        Malformed::unless(length == 0 || message_start <= length, "stream message start")?;
        Ok((Self { length, message_start, offset }, bytes))
    }

    /// Writes it to the front of a symbol.
    ///
    /// # Panics
    /// If `symbol` is shorter than [`LEN`](Self::LEN).
    pub fn write(&self, symbol: &mut [u8]) {
        let mut out = Writer::new(symbol);
        out.u16(self.length);
        out.u16(self.message_start);
        out.u32(self.offset);
    }
}
