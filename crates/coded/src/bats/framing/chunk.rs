//! The content of a symbol behind its [checksum](super::seal): chunks, one behind another.
//!
//! ```text
//!  0                   1
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5
//! +-----+-+-+---------------------+- - - - - -
//! |kind |F|L|       length        | length bytes
//! +-----+-+-+---------------------+- - - - - -
//! ```
//!
//! | kind | | F, L | body |
//! |---|---|---|---|
//! | 0 | end | zero, and the length too | nothing; the rest of the symbol is not looked at |
//! | 0 | meet | zero | the receiver's session mark, 32 bits; a byte, `000000JA`; its losses; the sender's losses |
//! | 0 | jump | one, zero | number of the symbol that was made before this one |
//! | 1 | unit | the unit's first, last piece | bytes of a unit |
//! | 2 | data | zero | stream, then bytes |
//! | 3 | open | zero | stream, local address, remote address, as the opener has them |
//! | 4 | opened | zero | stream |
//! | 5 | credit | zero | stream, bytes granted more than before |
//! | 6 | finish | zero | stream, bytes of it in all |
//! | 7 | reset | zero | stream |
//!
//! Numbers are variable-length integers (RFC 9000, section 16). A stream's number is even if the sender of the chunk
//! has opened it, odd if its receiver has. An address is `4` or `6`, two bytes of port, and 4 or 16 of IP address. The
//! mark in a meet is 0 where the sender knows of no session. A: it wants an answer; J: it has joined the session after
//! its beginning; [`Meeting`](super::meeting) says what losses are. A jump is the first chunk of a symbol whose number
//! is not the next after the one before.

use core::fmt;
use std::net::{IpAddr, SocketAddr};

/// Length of the header of a chunk, in bytes.
pub(in super::super) const HEADER: usize = 2;
/// Maximum length of a body, in bytes: the header has 11 bits for it.
pub(in super::super) const MAX_BODY: usize = (1 << 11) - 1;
/// Greatest number of the variable-length encoding (RFC 9000, section 16).
pub(in super::super) const MAX_NUMBER: u64 = (1 << 62) - 1;

/// A part of a symbol. Streams are named as the receiver of the chunk names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Chunk<'a> {
    Unit { first: bool, last: bool, bytes: &'a [u8] },
    Meet(Met),
    Jump { before: u64 },
    Data { stream: u64, bytes: &'a [u8] },
    Open { stream: u64, local: SocketAddr, remote: SocketAddr },
    Opened { stream: u64 },
    Credit { stream: u64, bytes: u64 },
    Finish { stream: u64, bytes: u64 },
    Reset { stream: u64 },
}

/// The last word of the other edge about sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Met {
    /// The session that it receives; 0 for none yet.
    pub(in super::super) session: u32,
    /// The receiver's losses, as far as it has heard.
    pub(in super::super) heard: u32,
    /// Its own losses.
    pub(in super::super) lost: u32,
    /// It has not received that session from the beginning.
    pub(in super::super) joined: bool,
    /// The sender wants an answer.
    pub(in super::super) asks: bool,
}

/// Why a symbol does not parse from some chunk on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum ChunkError {
    /// Flags that the kind does not have.
    Flags,
    /// A body that the symbol does not hold.
    Length,
    /// A number that ends early.
    Number,
    /// An address of no known family, or one that ends early.
    Address,
    /// Bytes after the body.
    Trailing,
}

impl fmt::Display for ChunkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Flags => "flags: the kind has none",
            Self::Length => "length: longer than the symbol",
            Self::Number => "number: ends early",
            Self::Address => "address: of no known family, or ends early",
            Self::Trailing => "body: longer than its fields",
        })
    }
}

/// The chunks of a symbol, up to the first that does not parse.
#[derive(Clone, Debug)]
pub(in super::super) struct Chunks<'a>(&'a [u8]);

/// Reads a symbol.
pub(in super::super) const fn chunks(symbol: &[u8]) -> Chunks<'_> {
    Chunks(symbol)
}

impl<'a> Iterator for Chunks<'a> {
    type Item = Result<Chunk<'a>, ChunkError>;

    fn next(&mut self) -> Option<Self::Item> {
        let header = u16::from_be_bytes(*self.0.first_chunk()?);
        if header == 0 {
            return None;
        }
        let (_, rest) = self.0.split_at(HEADER);
        let Some((body, rest)) = rest.split_at_checked(usize::from(header & MAX_BODY as u16)) else {
            self.0 = &[];
            return Some(Err(ChunkError::Length));
        };
        self.0 = rest;
        let chunk = parse(header, body);
        if chunk.is_err() {
            self.0 = &[];
        }
        Some(chunk)
    }
}

fn parse(header: u16, body: &[u8]) -> Result<Chunk<'_>, ChunkError> {
    let (kind, first, last) = (header >> 13, header & 1 << 12 != 0, header & 1 << 11 != 0);
    if kind == 1 {
        return Ok(Chunk::Unit { first, last, bytes: body });
    }
    if first && kind != 0 || last {
        return Err(ChunkError::Flags);
    }
    if kind == 0 {
        let (chunk, rest) = if first { jump(body)? } else { meet(body)? };
        return if rest.is_empty() { Ok(chunk) } else { Err(ChunkError::Trailing) };
    }
    let (stream, rest) = number(body)?;
    // Even and odd change places between the ends.
    let stream = stream ^ 1;
    let (chunk, rest) = match kind {
        2 => return Ok(Chunk::Data { stream, bytes: rest }),
        3 => {
            let (local, rest) = address(rest)?;
            let (remote, rest) = address(rest)?;
            (Chunk::Open { stream, local, remote }, rest)
        }
        4 => (Chunk::Opened { stream }, rest),
        5 => {
            let (bytes, rest) = number(rest)?;
            (Chunk::Credit { stream, bytes }, rest)
        }
        6 => {
            let (bytes, rest) = number(rest)?;
            (Chunk::Finish { stream, bytes }, rest)
        }
        _ => (Chunk::Reset { stream }, rest),
    };
    if rest.is_empty() { Ok(chunk) } else { Err(ChunkError::Trailing) }
}

fn meet(body: &[u8]) -> Result<(Chunk<'_>, &[u8]), ChunkError> {
    let (&[a, b, c, d, flags], rest) = body.split_first_chunk().ok_or(ChunkError::Number)?;
    let (heard, rest) = number(rest)?;
    let (lost, rest) = number(rest)?;
    let session = u32::from_be_bytes([a, b, c, d]);
    let (asks, joined) = (flags & 1 != 0, flags & 2 != 0);
    Ok((Chunk::Meet(Met { session, heard: heard as u32, lost: lost as u32, joined, asks }), rest))
}

fn jump(body: &[u8]) -> Result<(Chunk<'_>, &[u8]), ChunkError> {
    let (before, rest) = number(body)?;
    Ok((Chunk::Jump { before }, rest))
}

fn number(bytes: &[u8]) -> Result<(u64, &[u8]), ChunkError> {
    let first = bytes.first().ok_or(ChunkError::Number)?;
    let (number, rest) = bytes.split_at_checked(1 << (first >> 6)).ok_or(ChunkError::Number)?;
    let value = number.iter().fold(0, |value, &byte| value << 8 | u64::from(byte));
    // The two highest bits of the first byte said how long it is.
    Ok((value & (u64::MAX >> (64 - 8 * number.len() + 2)), rest))
}

fn address(bytes: &[u8]) -> Result<(SocketAddr, &[u8]), ChunkError> {
    let (&[family, high, low], rest) = bytes.split_first_chunk().ok_or(ChunkError::Address)?;
    let (ip, rest) = match family {
        4 => rest.split_first_chunk().map(|(&ip, rest): (&[u8; 4], _)| (IpAddr::from(ip), rest)),
        6 => rest.split_first_chunk().map(|(&ip, rest): (&[u8; 16], _)| (IpAddr::from(ip), rest)),
        _ => None,
    }
    .ok_or(ChunkError::Address)?;
    Ok((SocketAddr::new(ip, u16::from_be_bytes([high, low])), rest))
}

/// A symbol being filled. A stream is named as its sender names it.
#[derive(Debug)]
pub(in super::super) struct Filler<'a> {
    symbol: &'a mut [u8],
    used: usize,
}

impl<'a> Filler<'a> {
    pub(in super::super) const fn new(symbol: &'a mut [u8]) -> Self {
        Self { symbol, used: 0 }
    }

    /// Bytes filled.
    pub(in super::super) const fn used(&self) -> usize {
        self.used
    }

    /// Number of bytes of a unit that fit, if any chunk does.
    pub(in super::super) fn room(&self) -> Option<usize> {
        (self.symbol.len() - self.used).checked_sub(HEADER).map(|room| room.min(MAX_BODY))
    }

    /// Number of bytes of a stream's data that fit; `None` if not one does.
    pub(in super::super) fn room_for(&self, stream: u64) -> Option<usize> {
        self.room()?.checked_sub(number_len(stream)).filter(|&room| room > 0)
    }

    /// Writes a chunk; false if it does not fit.
    pub(in super::super) fn put(&mut self, chunk: &Chunk<'_>) -> bool {
        let (kind, first, last, stream) = match *chunk {
            Chunk::Unit { first, last, .. } => (1, first, last, None),
            Chunk::Meet(_) => (0, false, false, None),
            Chunk::Jump { .. } => (0, true, false, None),
            Chunk::Data { stream, .. } => (2, false, false, Some(stream)),
            Chunk::Open { stream, .. } => (3, false, false, Some(stream)),
            Chunk::Opened { stream } => (4, false, false, Some(stream)),
            Chunk::Credit { stream, .. } => (5, false, false, Some(stream)),
            Chunk::Finish { stream, .. } => (6, false, false, Some(stream)),
            Chunk::Reset { stream } => (7, false, false, Some(stream)),
        };
        let body = stream.map_or(0, number_len)
            + match chunk {
                Chunk::Unit { bytes, .. } | Chunk::Data { bytes, .. } => bytes.len(),
                Chunk::Open { local, remote, .. } => address_len(local) + address_len(remote),
                Chunk::Credit { bytes, .. } | Chunk::Finish { bytes, .. } => number_len(*bytes),
                Chunk::Jump { before } => number_len(*before),
                Chunk::Meet(met) => 5 + number_len(met.heard.into()) + number_len(met.lost.into()),
                Chunk::Opened { .. } | Chunk::Reset { .. } => 0,
            };
        if self.room().is_none_or(|room| body > room) {
            return false;
        }
        let header = kind << 13 | u16::from(first) << 12 | u16::from(last) << 11 | body as u16;
        self.bytes(&header.to_be_bytes());
        if let Some(stream) = stream {
            self.number(stream);
        }
        match chunk {
            Chunk::Unit { bytes, .. } | Chunk::Data { bytes, .. } => self.bytes(bytes),
            Chunk::Open { local, remote, .. } => {
                self.address(local);
                self.address(remote);
            }
            Chunk::Credit { bytes, .. } | Chunk::Finish { bytes, .. } => self.number(*bytes),
            Chunk::Jump { before } => self.number(*before),
            Chunk::Meet(met) => {
                self.bytes(&met.session.to_be_bytes());
                self.bytes(&[u8::from(met.joined) << 1 | u8::from(met.asks)]);
                self.number(met.heard.into());
                self.number(met.lost.into());
            }
            Chunk::Opened { .. } | Chunk::Reset { .. } => {}
        }
        true
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.symbol[self.used..self.used + bytes.len()].copy_from_slice(bytes);
        self.used += bytes.len();
    }

    fn number(&mut self, value: u64) {
        let len = number_len(value);
        let marked = value | u64::from(len.trailing_zeros()) << (8 * len - 2);
        self.bytes(&marked.to_be_bytes()[8 - len..]);
    }

    fn address(&mut self, address: &SocketAddr) {
        self.bytes(&[if address.is_ipv4() { 4 } else { 6 }]);
        self.bytes(&address.port().to_be_bytes());
        match address.ip() {
            IpAddr::V4(ip) => self.bytes(&ip.octets()),
            IpAddr::V6(ip) => self.bytes(&ip.octets()),
        }
    }
}

/// Length of a number, in bytes; it is at most [`MAX_NUMBER`].
const fn number_len(value: u64) -> usize {
    match value {
        0..0x40 => 1,
        0x40..0x4000 => 2,
        0x4000..0x4000_0000 => 4,
        _ => 8,
    }
}

const fn address_len(address: &SocketAddr) -> usize {
    3 + if address.is_ipv4() { 4 } else { 16 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_symbol_has_the_bytes_of_the_diagram() {
        let mut symbol = [0; 32];
        let mut filler = Filler::new(&mut symbol);
        assert!(filler.put(&Chunk::Unit { first: true, last: false, bytes: b"ab" }));
        assert!(filler.put(&Chunk::Data { stream: 0x40, bytes: b"c" }));
        assert!(filler.put(&Chunk::Credit { stream: 3, bytes: 0x12345 }));
        assert_eq!(filler.used(), 4 + 5 + 7);
        let expected =
            [0x30, 2, b'a', b'b', 0x40, 3, 0x40, 0x40, b'c', 0xa0, 5, 3, 0x80, 0x01, 0x23, 0x45, 0, 0];
        assert_eq!(symbol[..18], expected);
        let parsed: Vec<_> = chunks(&symbol).collect::<Result<_, _>>().unwrap();
        assert_eq!(parsed[1], Chunk::Data { stream: 0x41, bytes: b"c" }, "even and odd change places");
        assert_eq!(parsed.len(), 3);
    }

    #[test]
    fn what_is_wrong_is_said_and_ends_the_symbol() {
        fn first(symbol: &[u8]) -> Option<Result<Chunk<'_>, ChunkError>> {
            chunks(symbol).last()
        }
        assert_eq!(first(&[0x50, 1, 0]), Some(Err(ChunkError::Flags)));
        assert_eq!(first(&[0, 3, 1, 2, 3]), Some(Err(ChunkError::Number)));
        assert_eq!(first(&[0, 8, 1, 2, 3, 4, 0, 0, 0, 0]), Some(Err(ChunkError::Trailing)));
        assert_eq!(first(&[0x10, 0]), Some(Err(ChunkError::Number)));
        assert_eq!(first(&[0x18, 1, 0]), Some(Err(ChunkError::Flags)));
        assert_eq!(first(&[0x20, 3, 1, 2]), Some(Err(ChunkError::Length)));
        assert_eq!(first(&[0x40, 0]), Some(Err(ChunkError::Number)));
        assert_eq!(first(&[0x40, 1, 0x40]), Some(Err(ChunkError::Number)));
        assert_eq!(first(&[0x60, 4, 0, 5, 0, 0]), Some(Err(ChunkError::Address)));
        assert_eq!(first(&[0xc0, 3, 0, 0, 0]), Some(Err(ChunkError::Trailing)));
        assert_eq!(first(&[0xe0, 2, 0, 0]), Some(Err(ChunkError::Trailing)));
        assert_eq!(first(&[0]), None);
        assert_eq!(first(&[]), None);
    }

    fn any_address() -> impl Strategy<Value = SocketAddr> {
        prop_oneof![
            any::<([u8; 4], u16)>().prop_map(SocketAddr::from),
            any::<([u8; 16], u16)>().prop_map(SocketAddr::from),
        ]
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(symbol in proptest::collection::vec(any::<u8>(), 0..100)) {
            prop_assert!(chunks(&symbol).count() <= symbol.len());
        }

        #[test]
        fn what_is_put_is_read(
            stream in 0..=MAX_NUMBER,
            bytes in 0..=MAX_NUMBER,
            data in proptest::collection::vec(any::<u8>(), 0..300),
            (local, remote) in (any_address(), any_address()),
            (first, last) in any::<(bool, bool)>(),
            (session, heard, lost) in any::<(u32, u32, u32)>(),
        ) {
            let sent = |stream| [
                Chunk::Unit { first, last, bytes: &data },
                Chunk::Meet(Met { session, heard, lost, joined: last, asks: first }),
                Chunk::Jump { before: bytes },
                Chunk::Data { stream, bytes: &data },
                Chunk::Open { stream, local, remote },
                Chunk::Opened { stream },
                Chunk::Credit { stream, bytes },
                Chunk::Finish { stream, bytes },
                Chunk::Reset { stream },
            ];
            let mut symbol = [0; 1000];
            let mut filler = Filler::new(&mut symbol);
            for chunk in sent(stream) {
                prop_assert!(filler.put(&chunk));
            }
            let read: Result<Vec<_>, _> = chunks(&symbol).collect();
            prop_assert_eq!(read.unwrap(), sent(stream ^ 1));
        }
    }
}
