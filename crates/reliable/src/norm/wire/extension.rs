//! Header extensions (RFC 5740, section 4.1): a type, its length in words where the type is below 128, content.
//!
//! ```text
//! EXT_FTI of encoding id 5 (RFC 5510, section 5.2.4.1)
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |    HET 64     |    HEL 3      |       object_size             |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+                               +
//! |                                                               |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |         segment_size          |  source  (B)  |    parity     |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! EXT_FTI of encoding id 2 (RFC 5510, section 4.2.4.1): HEL 4, then as above, and
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |       m       |       G       |         segment_size          |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |          source  (B)          |            parity             |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! EXT_FTI of encoding id 129: as of id 2, but for fec_instance_id in place of m and G
//!
//! EXT_CC (RFC 5740, section 4.2.3.5)
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |     HET 3     |    HEL 3      |          cc_sequence          |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |    cc_flags   |     cc_rtt    |            cc_loss            |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |            cc_rate            |          cc_reserved          |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! EXT_RATE (RFC 5740, section 4.2.3.4)
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |    HET 128    |   reserved    |           send_rate           |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! Extensions of other types are skipped.

use super::bits::bits;
use super::{Fec, Malformed, Reader, Writer};

// Types, as drawn above (RFC 5740, section 4.1).

const FTI: u8 = 64;
const CC: u8 = 3;
const RATE: u8 = 128;
/// Types from here on are one word, and have no length (RFC 5740, section 4.1).
const ONE_WORD: u8 = 128;

/// Extensions of one message, the first of each type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Extensions {
    pub(super) fti: Option<Fti>,
    pub(super) cc: Option<CcFeedback>,
    pub(super) rate: Option<u16>,
}

impl Extensions {
    /// Reads all that is left of a header. The FTI's form depends on the object's code; messages about no object have
    /// none.
    pub(super) fn read(header: &mut Reader<'_>, fec: Option<Fec>) -> Result<Self, Malformed> {
        let mut found = Self::default();
        while !header.is_empty() {
            let kind = header.u8("extension type")?;
            let second = header.u8("extension length")?;
            let words = if kind < ONE_WORD { usize::from(second) } else { 1 };
            let len = (4 * words).checked_sub(2).ok_or(Malformed { field: "extension length" })?;
            let mut content = Reader::new(header.take(len, "extension length")?);
            match (kind, fec) {
                (FTI, Some(fec)) if found.fti.is_none() => found.fti = Some(Fti::read(fec, &mut content)?),
                (CC, _) if found.cc.is_none() => found.cc = Some(CcFeedback::read(&mut content)?),
                (RATE, _) if found.rate.is_none() => found.rate = Some(content.u16("send rate")?),
                _ => {}
            }
        }
        Ok(found)
    }

    pub(super) fn len(&self) -> usize {
        self.fti.map_or(0, Fti::len)
            + if self.cc.is_some() { CcFeedback::LEN } else { 0 }
            + if self.rate.is_some() { 4 } else { 0 }
    }

    pub(super) fn write(&self, out: &mut Writer<'_>) {
        if let Some(fti) = self.fti {
            fti.write(out);
        }
        if let Some(cc) = self.cc {
            cc.write(out);
        }
        if let Some(rate) = self.rate {
            out.u8(RATE);
            out.u8(0);
            out.u16(rate);
        }
    }
}

/// FEC object transmission information, which a receiver needs to decode an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fti {
    /// The object's code. Fields that it does not have are 0 here.
    pub fec: Fec,
    /// Size of the object in bytes, 48 bits; of a stream, the size of its buffer.
    pub object_size: u64,
    /// Maximum length of a source symbol in bytes, without a stream's header; at least 1.
    pub segment: u16,
    /// Maximum number of source symbols of a block, B of RFC 5052; at least 1.
    pub source: u16,
    /// The last field. RFC 5510 has the maximum number of all symbols of a block there (max_n); libnorm sends the
    /// number of parity symbols, and reads it so, and so do we.
    pub parity: u16,
    /// Number of bits of the code's elements, m; 2 and 16 are in use with id 2, and 8 is implied by id 5.
    pub field: u8,
    /// Number of symbols in a packet, G; id 2 only.
    pub group: u8,
    /// FEC instance id, the code within encoding id 129; otherwise 0.
    pub instance: u16,
}

impl Fti {
    pub(super) const fn len_with(fec: Fec) -> usize {
        match fec {
            Fec::ReedSolomon8 => 12,
            Fec::ReedSolomon | Fec::SmallBlock => 16,
        }
    }

    pub(super) const fn len(self) -> usize {
        Self::len_with(self.fec)
    }

    /// Whether the code has elements of 8 bits. With id 2 that is so where it says nothing (RFC 5510, section 4.2.3).
    pub const fn is_8_bits(&self) -> bool {
        !matches!(self.fec, Fec::ReedSolomon) || matches!(self.field, 0 | 8)
    }

    fn read(fec: Fec, content: &mut Reader<'_>) -> Result<Self, Malformed> {
        const FIELD: &str = "FTI";
        let object_size = content.u48(FIELD)?;
        let (mut field, mut group, mut instance) = (0, 0, 0);
        match fec {
            Fec::ReedSolomon => (field, group) = (content.u8(FIELD)?, content.u8(FIELD)?),
            Fec::ReedSolomon8 => {}
            Fec::SmallBlock => instance = content.u16(FIELD)?,
        }
        let segment = content.u16(FIELD)?;
        let (source, parity) = match fec {
            Fec::ReedSolomon8 => (content.u8(FIELD)?.into(), content.u8(FIELD)?.into()),
            Fec::ReedSolomon | Fec::SmallBlock => (content.u16(FIELD)?, content.u16(FIELD)?),
        };
        Malformed::unless(segment > 0, "FTI segment size")?;
        Malformed::unless(source > 0, "FTI block length")?;
        Ok(Self { fec, object_size, segment, source, parity, field, group, instance })
    }

    fn write(self, out: &mut Writer<'_>) {
        out.u8(FTI);
        out.u8((self.len() / 4) as u8);
        out.u48(self.object_size);
        match self.fec {
            Fec::ReedSolomon => {
                out.u8(self.field);
                out.u8(self.group);
            }
            Fec::ReedSolomon8 => {}
            Fec::SmallBlock => out.u16(self.instance),
        }
        out.u16(self.segment);
        match self.fec {
            Fec::ReedSolomon8 => {
                out.u8(self.source as u8);
                out.u8(self.parity as u8);
            }
            Fec::ReedSolomon | Fec::SmallBlock => {
                out.u16(self.source);
                out.u16(self.parity);
            }
        }
    }
}

bits! {
    /// Flags of a receiver in congestion control (RFC 5740, section 4.2.3.4).
    CcFlags {
        /// The current limiting receiver.
        CLR = 0x01;
        /// A potential limiting receiver.
        PLR = 0x02;
        /// The receiver has measured its round trip.
        RTT = 0x04;
        /// The receiver is in slow start: it has seen no loss.
        START = 0x08;
        /// The receiver is leaving.
        LEAVE = 0x10;
        /// The rate is a measured one, not calculated from loss: of libnorm alone.
        LIMIT = 0x20;
    }
}

/// EXT_CC: feedback of a receiver for congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CcFeedback {
    /// Sequence number of the NORM_CMD(CC) that it answers.
    pub sequence: u16,
    /// State of the receiver.
    pub flags: CcFlags,
    /// Its round trip, as [`quantise::rtt`](super::quantise::rtt) reads it.
    pub rtt: u8,
    /// Its loss event fraction, as [`quantise::loss`](super::quantise::loss) reads it. The upper 16 bits are `cc_loss`,
    /// the lower 16 libnorm's extension in `cc_reserved`.
    pub loss: u32,
    /// The rate that it can take, as [`quantise::rate`](super::quantise::rate) reads it.
    pub rate: u16,
}

impl CcFeedback {
    pub(super) const LEN: usize = 12;

    fn read(content: &mut Reader<'_>) -> Result<Self, Malformed> {
        const FIELD: &str = "congestion control feedback";
        let sequence = content.u16(FIELD)?;
        let flags = CcFlags(content.u8(FIELD)?);
        let rtt = content.u8(FIELD)?;
        let loss = content.u16(FIELD)?;
        let rate = content.u16(FIELD)?;
        let loss = u32::from(loss) << 16 | u32::from(content.u16(FIELD)?);
        Ok(Self { sequence, flags, rtt, loss, rate })
    }

    fn write(self, out: &mut Writer<'_>) {
        out.u8(CC);
        out.u8((Self::LEN / 4) as u8);
        out.u16(self.sequence);
        out.u8(self.flags.0);
        out.u8(self.rtt);
        out.u16((self.loss >> 16) as u16);
        out.u16(self.rate);
        out.u16(self.loss as u16);
    }
}
