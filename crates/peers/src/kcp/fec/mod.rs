//! Reed-Solomon parity over datagrams, in the manner of kcptun.
//!
//! Of a group of k datagrams each leaves at once with a header before it; then n parity datagrams follow, as long as
//! the longest. Any k of the k + n give back the rest.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------------------------------------------------------+
//! |                             seqid                             |
//! +-------------------------------+-------------------------------+
//! |  flag: 0xF1 data, 0xF2 parity |         size, if data         |
//! +-------------------------------+-------------------------------+
//! |              KCP's segments, or the rest of a parity          |
//! ```
//!
//! Little-endian (`fec.go` of kcp-go). `seqid` counts datagrams, so that `seqid / (k + n)` is the group. `size` counts
//! itself and what follows; it is part of what the parity covers, since recovered datagrams are padded.

mod decoder;
mod encoder;

pub(super) use decoder::Decoder;
pub(super) use encoder::Encoder;

use hopcast_core::bytes::Writer;

use super::config::Fec;

/// Bytes before parity (`fec.go`, `fecHeaderSize`).
const HEADER: usize = 6;
/// Bytes before data: the header and the size (`fec.go`, `fecHeaderSizePlus2`).
pub(super) const DATA_HEADER: usize = HEADER + 2;
/// Datagrams of data (`fec.go`, `typeData`).
const DATA: u16 = 0xF1;
/// Datagrams of parity (`fec.go`, `typeParity`).
const PARITY: u16 = 0xF2;

/// Numbers wrap after the last whole group.
fn wrap(fec: Fec) -> u32 {
    let group = (fec.data() + fec.parity()) as u32;
    u32::MAX / group * group
}

fn seal(seqid: u32, flag: u16, shard: &[u8]) -> Vec<u8> {
    let mut datagram = vec![0; HEADER + shard.len()];
    let mut to = Writer::new(&mut datagram);
    to.u32_le(seqid);
    to.u16_le(flag);
    to.put(shard);
    datagram
}
