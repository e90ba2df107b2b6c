//! FRANC's packets, in Ethernet frames of a type of their own.
//!
//! ```text
//!  0               1               2               3
//!  0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7
//! +-------+-------+---------------+-------------------------------+
//! |Version| Type  | . .|B|V|U|R|A|C|           Check ...          |   every packet
//! +-------+-------+---------------+-------------------------------+
//! |           ... Check           |         Association ...       |
//! +-------------------------------+-------------------------------+
//! |       ... Association         |                                   ENC from here on:
//! +-------------------------------+
//! |                             Block                             |
//! +-------------------------------+---------------+---------------+
//! |            Sequence           |     Added     | Index | Sum | Vector
//! +-------------------------------+---------------+---------------+
//! |  Acknowledgement, if A  |  Report, if R  |  Symbol ...
//! ```
//!
//! - **Check**: a hash over the packet with this field zero. What was damaged in transit is dropped.
//! - **Association**: a number of the two sessions; zero in HELLO. What belongs to another is dropped.
//! - **U**(p): the data go from the end with the lower Ethernet address to that with the higher one. So nothing that
//!   comes back is taken for the other direction's.
//! - **C**(oded): where else is the index of the one symbol stands a bitmap of the symbols that were summed up. Over
//!   GF(2^8) each has a coefficient, drawn from block and sequence (see `combination`). With **V**(ector), which
//!   helpers need that recode, packed coefficients stand there instead.
//! - **B**(ehind): packets wait at the encoder's input for longer than acknowledgements take.
//! - **Block** counts from 0 for each direction of an association, **Sequence** the ENC packets of whoever sent this
//!   one. **Added** is the number of symbols that the block has so far.
//! - **Symbol**: without the zeros at its end.
//! - **R**(elayed): sent by a helper, with a report of what it has heard.
//!
//! An acknowledgement travels in an ACK packet, right behind the association, or in an ENC packet that goes the other
//! way:
//!
//! ```text
//! | Number (32) | Highest (16) | Received (16) | HelperHighest (16) | HelperReceived (16) | Base (32) | Count (8) |
//! | Rank (8) | Bitmap ... |   Count times: of the blocks Base, Base + 1, ...
//! ```
//!
//! **Highest** is the sequence after the highest that has arrived, **Received** how many have, both modulo 2^16. All
//! blocks before **Base** are decoded. A bit of the bitmap is a symbol that is decoded, the first in the lowest bit.
//!
//! A report: `| Highest (16) | Received (16) | Told (16) | Block (8) | Rank (8) | Bitmap ... |`, of the block near the
//! packet's own whose number ends like this: what helper and decoder have together, of the packets before **Told** as
//! far as the decoder is concerned. Under the paper's plan, the first two fields are all.
//!
//! HELLO: `| Own session (32) | Peer's session, or 0 (32) | Profile (32) |`.

mod feedback;

use core::hash::Hasher;

use hopcast_core::Buffer;
use hopcast_core::bytes::{Malformed, Reader, Writer};
use hopcast_wire::ethernet::{self, Mac};
use siphasher::sip::SipHasher13;

use super::bits::Bits;
use super::config::Config;
use super::lengths::{COMMON, ENC, bitmap_len};

/// The type of FRANC's frames: IEEE 802's second local experimental one (IEEE 802-2014, section 9.2.4).
pub const ETHER_TYPE: u16 = 0x88b6;

/// Version of this format: the first.
const VERSION: u8 = 1;
/// Bytes of a HELLO behind the header: two sessions and a profile.
const HELLO: usize = 12;
/// Bytes of an acknowledgement without its blocks: its fields up to the count.
const ACK_FIXED: usize = 17;
/// Maximum number of blocks of one acknowledgement. Chosen: the default window; more makes it longer, with fewer the
/// further blocks wait for another.
pub(super) const MAX_LISTED: usize = 8;

// Flags, from the lowest bit, as the drawing above has them.
const CODED: u8 = 1;
const ACKNOWLEDGES: u8 = 2;
const RELAYED: u8 = 4;
const UP: u8 = 8;
const VECTOR: u8 = 16;
const BEHIND: u8 = 32;

/// The type of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Enc = 0,
    Ack = 1,
    Hello = 2,
}

/// Fields of every packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Common {
    pub(super) association: u32,
    pub(super) up: bool,
}

/// A packet, borrowed.
#[derive(Debug, PartialEq)]
pub(super) enum Packet<'a> {
    Enc(Enc<'a>),
    Ack(Ack),
    Hello(Hello),
}

/// An encoded symbol.
#[derive(Debug, PartialEq)]
pub(super) struct Enc<'a> {
    pub(super) block: u32,
    pub(super) sequence: u16,
    pub(super) added: u8,
    pub(super) coding: Coding<'a>,
    pub(super) behind: bool,
    pub(super) ack: Option<Ack>,
    pub(super) report: Option<Report>,
    pub(super) symbol: &'a [u8],
}

impl Packet<'_> {
    /// Its length on the wire, in bytes, without the Ethernet header.
    fn len(&self, config: &Config) -> usize {
        match self {
            Self::Enc(enc) => {
                let coding = match enc.coding {
                    Coding::Symbol(_) => 1,
                    Coding::Sum(_) => bitmap_len(config.block),
                    Coding::Vector(vector) => vector.len(),
                };
                let ack = enc.ack.as_ref().map_or(0, |ack| ack.len(config.block));
                let report = enc.report.map_or(0, |_| config.report_len());
                ENC + coding + ack + report + enc.symbol_sent().len()
            }
            Self::Ack(ack) => COMMON + ack.len(config.block),
            Self::Hello(_) => COMMON + HELLO,
        }
    }
}

impl Enc<'_> {
    /// The symbol without the zeros at its end.
    fn symbol_sent(&self) -> &[u8] {
        let end = self.symbol.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        &self.symbol[..end]
    }
}

/// Coding by which a symbol was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding<'a> {
    /// One symbol, as it is.
    Symbol(u8),
    /// The sum of these.
    Sum(Bits),
    /// A sum with these coefficients, packed.
    Vector(&'a [u8]),
}

/// Feedback of a decoder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ack {
    pub(super) number: u32,
    pub(super) heard: Heard,
    pub(super) helper: Heard,
    pub(super) base: u32,
    pub(super) blocks: Vec<Known>,
}

/// Number of somebody's packets that have arrived, modulo 2^16.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Heard {
    /// The sequence after the highest one.
    pub(super) next: u16,
    pub(super) received: u16,
}

/// State of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) rank: u8,
    pub(super) symbols: Bits,
}

/// Feedback of a helper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) heard: Heard,
    /// As far as the helper knows, the decoder has reported all packets before this one.
    pub(super) told: u16,
    pub(super) block: u32,
    /// Packets that the helper or, as far as it knows, the decoder has.
    pub(super) known: Known,
}

/// Message by which two ends find each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) own: u32,
    pub(super) peer: u32,
    pub(super) profile: u32,
}

/// Why a frame is no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// It ends before `field` does.
    Truncated { field: &'static str },
    /// `field` has no such value.
    Invalid { field: &'static str },
    /// The check does not fit: it was changed in transit.
    Damaged,
}

impl Refused {
    /// Counts it among the packets that were damaged, or among those that do not parse.
    pub(super) fn count(&self, damaged: &mut u64, malformed: &mut u64) {
        *if *self == Self::Damaged { damaged } else { malformed } += 1;
    }
}

impl From<Malformed> for Refused {
    fn from(Malformed { field }: Malformed) -> Self {
        Self::Truncated { field }
    }
}

/// Puts a packet into a frame.
pub(super) fn emit(addresses: (Mac, Mac), common: Common, packet: &Packet<'_>, config: &Config) -> Buffer {
    let (kind, mut flags) = match packet {
        Packet::Enc(enc) => {
            let coded = match enc.coding {
                Coding::Symbol(_) => 0,
                Coding::Sum(_) => CODED,
                Coding::Vector(_) => CODED | VECTOR,
            };
            let acknowledges = if enc.ack.is_some() { ACKNOWLEDGES } else { 0 };
            let relayed = if enc.report.is_some() { RELAYED } else { 0 };
            let behind = if enc.behind { BEHIND } else { 0 };
            (Type::Enc, coded | acknowledges | relayed | behind)
        }
        Packet::Ack(_) => (Type::Ack, 0),
        Packet::Hello(_) => (Type::Hello, 0),
    };
    flags |= if common.up { UP } else { 0 };
    let mut out = Buffer::zeroed(packet.len(config));
    let mut to = Writer::new(&mut out);
    // The check comes last.
    to.put(&[VERSION << 4 | kind as u8, flags, 0, 0, 0, 0]);
    to.u32(common.association);
    match packet {
        Packet::Enc(enc) => {
            to.u32(enc.block);
            to.u16(enc.sequence);
            to.u8(enc.added);
            match enc.coding {
                Coding::Symbol(index) => to.u8(index),
                Coding::Sum(among) => to.put(&among.bytes()[..bitmap_len(config.block)]),
                Coding::Vector(vector) => to.put(vector),
            }
            if let Some(ack) = &enc.ack {
                ack.emit(config.block, &mut to);
            }
            if let Some(report) = enc.report {
                report.emit(config, &mut to);
            }
            to.put(enc.symbol_sent());
        }
        Packet::Ack(ack) => ack.emit(config.block, &mut to),
        Packet::Hello(Hello { own, peer, profile }) => {
            [own, peer, profile].into_iter().for_each(|word| to.u32(*word));
        }
    }
    let check = check_of(&out);
    out[2..6].copy_from_slice(&check.to_be_bytes());
    let (source, destination) = addresses;
    ethernet::prepend(&mut out, ethernet::Header { destination, source, ether_type: ETHER_TYPE });
    out
}

/// Reads a packet, which begins behind the Ethernet header.
pub(super) fn parse<'a>(packet: &'a [u8], config: &Config) -> Result<(Common, Packet<'a>), Refused> {
    let mut bytes = Reader::new(packet);
    let (first, flags) = (bytes.u8("type")?, bytes.u8("flags")?);
    let check = bytes.u32("check")?;
    let association = bytes.u32("association")?;
    if check != check_of(packet) {
        return Err(Refused::Damaged);
    }
    if first >> 4 != VERSION {
        return Err(Refused::Invalid { field: "version" });
    }
    let common = Common { association, up: flags & UP != 0 };
    let packet = match first & 0xf {
        kind if kind == Type::Enc as u8 => Packet::Enc(parse_enc(&mut bytes, flags, config)?),
        kind if kind == Type::Ack as u8 => Packet::Ack(Ack::parse(&mut bytes, config.block)?),
        kind if kind == Type::Hello as u8 => {
            let [own, peer, profile] = [bytes.u32("own")?, bytes.u32("peer")?, bytes.u32("profile")?];
            Packet::Hello(Hello { own, peer, profile })
        }
        _ => return Err(Refused::Invalid { field: "type" }),
    };
    Ok((common, packet))
}

fn parse_enc<'a>(bytes: &mut Reader<'a>, flags: u8, config: &Config) -> Result<Enc<'a>, Refused> {
    let (block, sequence, added) = (bytes.u32("block")?, bytes.u16("sequence")?, bytes.u8("added")?);
    if added > config.block {
        return Err(Refused::Invalid { field: "added" });
    }
    let coding = if flags & VECTOR != 0 {
        Coding::Vector(bytes.take(config.vector_len(), "vector")?)
    } else if flags & CODED != 0 {
        let among = Bits::from_bytes(bytes.take(bitmap_len(config.block), "sum")?);
        if among.beyond(added) {
            return Err(Refused::Invalid { field: "sum" });
        }
        Coding::Sum(among)
    } else {
        let index = bytes.u8("index")?;
        if index >= added {
            return Err(Refused::Invalid { field: "index" });
        }
        Coding::Symbol(index)
    };
    let ack = (flags & ACKNOWLEDGES != 0).then(|| Ack::parse(bytes, config.block)).transpose()?;
    let report = (flags & RELAYED != 0).then(|| Report::parse(bytes, block, config)).transpose()?;
    let symbol = bytes.rest();
    if symbol.len() > usize::from(config.symbol) {
        return Err(Refused::Invalid { field: "symbol" });
    }
    Ok(Enc { block, sequence, added, coding, behind: flags & BEHIND != 0, ack, report, symbol })
}

/// SipHash-1-3 of the packet with its check taken for zero; against accidents, not against forgers.
fn check_of(packet: &[u8]) -> u32 {
    let mut hasher = SipHasher13::new();
    hasher.write(&packet[..packet.len().min(2)]);
    hasher.write(packet.get(6..).unwrap_or_default());
    hasher.finish() as u32
}

#[cfg(test)]
mod tests;
