//! The TCP header (RFC 9293) with the options that are spoken here.
//!
//! ```text
//!  0: source port   2: destination port   4: sequence number   8: acknowledgement number
//! 12: data offset | reserved   13: flags   14: window   16: checksum   18: urgent pointer   20: options …
//! ```
//!
//! | kind | length | option |
//! |---|---|---|
//! | 2 | 4 | maximum segment size (RFC 9293), in SYNs |
//! | 3 | 3 | window scale (RFC 7323), in SYNs |
//! | 4 | 2 | SACK permitted (RFC 2018), in SYNs |
//! | 5 | 2 + 8n | SACK (RFC 2018), D-SACK (RFC 2883) |
//! | 8 | 10 | timestamps (RFC 7323) |

use std::net::{IpAddr, SocketAddr};

use hopcast_core::Buffer;
use hopcast_wire::{Fault, Malformed, checksum, ip};

/// The length of a header without options.
pub(super) const HEADER: usize = 20;
/// Bytes of the timestamps option in every segment, with its padding (RFC 7323 appendix A).
pub(super) const TIMESTAMPS_LEN: u32 = 12;
/// Maximum length of a header, in bytes: its data offset has four bits, of words of 32 bits (RFC 9293 section 3.1).
const MAX_HEADER: usize = 60;

// Flags, as RFC 9293 section 3.1 draws them.
pub(super) const FIN: u8 = 0x01;
pub(super) const SYN: u8 = 0x02;
pub(super) const RST: u8 = 0x04;
pub(super) const PSH: u8 = 0x08;
pub(super) const ACK: u8 = 0x10;

/// A header's fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Header {
    pub source: u16,
    pub destination: u16,
    pub seq: u32,
    /// Meaningful with [`ACK`].
    pub ack: u32,
    pub flags: u8,
    pub window: u16,
    pub options: Options,
}

impl Header {
    pub(super) const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// The options of a header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    pub mss: Option<u16>,
    pub window_scale: Option<u8>,
    pub sack_permitted: bool,
    pub timestamps: Option<Timestamps>,
    pub sack: Blocks,
}

/// The timestamps option.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Timestamps {
    pub value: u32,
    pub echo: u32,
}

/// Up to four SACK blocks: first byte, and the one behind the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Blocks {
    blocks: [(u32, u32); 4],
    len: u8,
}

impl Blocks {
    /// Adds a block; a fifth is dropped.
    pub(super) fn push(&mut self, block: (u32, u32)) {
        if let Some(place) = self.blocks.get_mut(usize::from(self.len)) {
            *place = block;
            self.len += 1;
        }
    }

    pub(super) fn as_slice(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.len)]
    }
}

/// Reads the header of a TCP `segment` (an IP packet's payload), verifies the checksum, and says where the data begin.
/// Options that are malformed end the list of options, as in Linux; the segment stands.
pub(super) fn parse(
    source: IpAddr,
    destination: IpAddr,
    segment: &[u8],
) -> Result<(Header, usize), Malformed> {
    let Some(fixed) = segment.first_chunk::<HEADER>() else {
        return Err(malformed("header", Fault::Truncated { needed: HEADER, found: segment.len() }));
    };
    let offset = usize::from(fixed[12] >> 4) * 4;
    if offset < HEADER {
        return Err(malformed("data offset", Fault::Value(offset as u32)));
    }
    let Some(options) = segment.get(HEADER..offset) else {
        return Err(malformed("options", Fault::Truncated { needed: offset, found: segment.len() }));
    };
    if checksum::transport(source, destination, ip::TCP, segment) != 0 {
        return Err(malformed("checksum", Fault::Checksum));
    }
    let header = Header {
        source: u16::from_be_bytes([fixed[0], fixed[1]]),
        destination: u16::from_be_bytes([fixed[2], fixed[3]]),
        seq: u32::from_be_bytes([fixed[4], fixed[5], fixed[6], fixed[7]]),
        ack: u32::from_be_bytes([fixed[8], fixed[9], fixed[10], fixed[11]]),
        flags: fixed[13],
        window: u16::from_be_bytes([fixed[14], fixed[15]]),
        options: Options::parse(options),
    };
    Ok((header, offset))
}

/// Puts the header, with its checksum, in front of the data in `buffer`. The ports are those of the addresses.
pub(super) fn prepend(buffer: &mut Buffer, source: SocketAddr, destination: SocketAddr, header: &Header) {
    let mut bytes = [0; MAX_HEADER];
    let len = HEADER + header.options.write(&mut bytes[HEADER..]);
    bytes[0..2].copy_from_slice(&source.port().to_be_bytes());
    bytes[2..4].copy_from_slice(&destination.port().to_be_bytes());
    bytes[4..8].copy_from_slice(&header.seq.to_be_bytes());
    bytes[8..12].copy_from_slice(&header.ack.to_be_bytes());
    bytes[12] = (len as u8 / 4) << 4;
    bytes[13] = header.flags;
    bytes[14..16].copy_from_slice(&header.window.to_be_bytes());
    buffer.prepend(len).copy_from_slice(&bytes[..len]);
    let sum = checksum::transport(source.ip(), destination.ip(), ip::TCP, buffer);
    buffer[16..18].copy_from_slice(&sum.to_be_bytes());
}

impl Options {
    fn parse(mut bytes: &[u8]) -> Self {
        let mut options = Self::default();
        // Nearly every segment has two NOPs and the timestamps.
        while let Some((&kind, rest)) = bytes.split_first() {
            match kind {
                0 => break,
                1 => {
                    bytes = rest;
                    continue;
                }
                _ => {}
            }
            let Some(&len) = rest.first() else { break };
            let Some(body) = bytes.get(2..usize::from(len)) else { break };
            match (kind, body) {
                (2, &[a, b]) => options.mss = Some(u16::from_be_bytes([a, b])),
                (3, &[scale]) => options.window_scale = Some(scale),
                (4, &[]) => options.sack_permitted = true,
                (5, blocks) => {
                    for block in blocks.as_chunks::<8>().0 {
                        let &[a, b, c, d, e, f, g, h] = block;
                        options
                            .sack
                            .push((u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])));
                    }
                }
                (8, &[a, b, c, d, e, f, g, h]) => {
                    options.timestamps = Some(Timestamps {
                        value: u32::from_be_bytes([a, b, c, d]),
                        echo: u32::from_be_bytes([e, f, g, h]),
                    });
                }
                _ => {}
            }
            bytes = &bytes[usize::from(len)..];
        }
        options
    }

    /// Writes the options, padded to whole words, and returns their length. With timestamps there is room for three
    /// blocks of SACK; a fourth is left out.
    fn write(&self, bytes: &mut [u8]) -> usize {
        let mut at = 0;
        let mut put = |part: &[u8]| {
            bytes[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        };
        if let Some(mss) = self.mss {
            let [a, b] = mss.to_be_bytes();
            put(&[2, 4, a, b]);
        }
        if self.sack_permitted {
            put(&[1, 1, 4, 2]);
        }
        if let Some(Timestamps { value, echo }) = self.timestamps {
            put(&[1, 1, 8, 10]);
            put(&value.to_be_bytes());
            put(&echo.to_be_bytes());
        }
        if let Some(scale) = self.window_scale {
            put(&[1, 3, 3, scale]);
        }
        let room = if self.timestamps.is_some() { 3 } else { 4 };
        let blocks = &self.sack.as_slice()[..usize::from(self.sack.len).min(room)];
        if !blocks.is_empty() {
            put(&[1, 1, 5, 2 + 8 * blocks.len() as u8]);
            for (start, end) in blocks {
                put(&start.to_be_bytes());
                put(&end.to_be_bytes());
            }
        }
        at
    }
}

const fn malformed(field: &'static str, fault: Fault) -> Malformed {
    Malformed { format: "TCP", field, fault }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ends() -> (SocketAddr, SocketAddr) {
        ("10.0.0.1:40000".parse().unwrap(), "10.0.0.2:80".parse().unwrap())
    }

    #[test]
    fn a_syn_of_linux_reads_as_what_it_is() {
        // The options of a SYN as Linux 6.x sends it: MSS 1460, SACK permitted, timestamps, NOP, window scale 7.
        let options = Options::parse(
            b"\x02\x04\x05\xb4\x04\x02\x08\x0a\x12\x34\x56\x78\x00\x00\x00\x00\x01\x03\x03\x07",
        );
        assert_eq!(options.mss, Some(1460));
        assert_eq!(options.window_scale, Some(7));
        assert!(options.sack_permitted);
        assert_eq!(options.timestamps, Some(Timestamps { value: 0x1234_5678, echo: 0 }));
    }

    #[test]
    fn the_header_is_the_one_etherparse_reads() {
        let (source, destination) = ends();
        let mut options =
            Options { timestamps: Some(Timestamps { value: 7, echo: 8 }), ..Options::default() };
        options.sack.push((10, 20));
        options.sack.push((30, 40));
        let header =
            Header { source: 40000, destination: 80, seq: 1, ack: 2, flags: ACK | PSH, window: 500, options };
        let mut buffer = Buffer::copy_from(b"data");
        prepend(&mut buffer, source, destination, &header);
        let (read, rest) = etherparse::TcpHeader::from_slice(&buffer).unwrap();
        assert_eq!(rest, b"data");
        assert_eq!((read.source_port, read.destination_port), (40000, 80));
        assert_eq!((read.sequence_number, read.acknowledgment_number), (1, 2));
        assert!(read.ack && read.psh && !read.syn && !read.fin && !read.rst);
        let elements: Vec<_> = read.options_iterator().map(Result::unwrap).collect();
        use etherparse::TcpOptionElement as E;
        let wanted = [
            E::Noop,
            E::Noop,
            E::Timestamp(7, 8),
            E::Noop,
            E::Noop,
            E::SelectiveAcknowledgement((10, 20), [Some((30, 40)), None, None]),
        ];
        assert_eq!(elements, wanted);
        assert_eq!(parse(source.ip(), destination.ip(), &buffer), Ok((header, buffer.len() - 4)));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let (source, destination) = ends();
            let _ = parse(source.ip(), destination.ip(), &bytes);
            let _ = Options::parse(&bytes);
        }

        #[test]
        fn any_flipped_bit_is_noticed(payload in proptest::collection::vec(any::<u8>(), 0..64), bit: u16) {
            let (source, destination) = ends();
            let mut buffer = Buffer::copy_from(&payload);
            prepend(&mut buffer, source, destination, &Header { flags: ACK, ..Header::default() });
            let bit = usize::from(bit) % (8 * buffer.len());
            buffer[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(parse(source.ip(), destination.ip(), &buffer).is_err());
        }
    }

    #[test]
    fn nothing_counts_behind_the_end_of_the_options() {
        // RFC 9293 section 3.2: kind 0 ends the list, kind 1 is one byte.
        let mss = |bytes: &[u8]| Options::parse(bytes).mss;
        assert_eq!(mss(&[2, 4, 5, 180]), Some(1460));
        assert_eq!(mss(&[1, 2, 4, 5, 180]), Some(1460));
        assert_eq!(mss(&[0, 2, 2, 4, 5, 180]), None);
        assert_eq!(mss(&[0, 2, 4, 5, 180]), None);
    }

    #[test]
    fn a_header_is_as_long_as_four_bits_of_words_can_say_at_most() {
        // RFC 9293 section 3.1, data offset; a SYN with all options and blocks fits.
        assert_eq!(MAX_HEADER, 4 * 0xF);
        let mut options =
            Options { mss: Some(1460), sack_permitted: true, window_scale: Some(7), ..Options::default() };
        (0..3).for_each(|block| options.sack.push((block, block + 1)));
        let mut bytes = [0; MAX_HEADER - HEADER];
        assert_eq!(options.write(&mut bytes), 40);
    }
}
