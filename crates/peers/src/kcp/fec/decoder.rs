//! Recovers what was lost from parity.

use std::collections::VecDeque;

use hopcast_code::reed_solomon::Code;
use hopcast_core::bytes::{Malformed, Reader};

use super::{DATA, DATA_HEADER, Fec, HEADER, PARITY, wrap};

/// Groups at a time: the newest and `fec.go`'s `maxShardSets` before it.
const GROUPS: usize = 4;

/// The receiving side.
#[derive(Debug)]
pub(in crate::kcp) struct Decoder {
    fec: Fec,
    code: Code,
    /// Maximum length of a shard that is kept.
    longest: usize,
    /// In the order in which they were first heard of; the oldest makes room.
    groups: VecDeque<Group>,
}

#[derive(Debug)]
struct Group {
    number: u32,
    /// Sizes and payloads, then parity; let go once there are enough.
    shards: Vec<Option<Vec<u8>>>,
    arrived: usize,
}

/// The contents of a datagram and the datagrams that it recovers.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::kcp) struct Taken<'a> {
    /// KCP's segments, if it was no parity.
    pub packet: Option<&'a [u8]>,
    /// Datagrams that had been missing.
    pub recovered: Vec<Vec<u8>>,
}

impl Decoder {
    /// For datagrams of at most `mtu` bytes.
    pub(in crate::kcp) fn new(fec: Fec, mtu: usize) -> Option<Self> {
        let code = Code::new(fec.data(), fec.parity()).ok()?;
        Some(Self { fec, code, longest: mtu.saturating_sub(HEADER), groups: VecDeque::new() })
    }

    /// Takes a datagram.
    pub(in crate::kcp) fn take<'a>(&mut self, datagram: &'a [u8]) -> Result<Taken<'a>, Malformed> {
        let mut reader = Reader::new(datagram);
        let (seqid, flag, shard) = (reader.u32_le("seqid")?, reader.u16_le("flag")?, reader.rest());
        let size = (self.fec.data() + self.fec.parity()) as u32;
        let (number, index) = (seqid / size, (seqid % size) as usize);
        let is_data = index < self.fec.data();
        Malformed::unless(seqid < wrap(self.fec), "seqid")?;
        Malformed::unless(flag == if is_data { DATA } else { PARITY }, "flag")?;
        Malformed::unless(shard.len() <= self.longest, "shard")?;
        let packet = if is_data {
            let whole = payload(shard).is_some_and(|payload| payload.len() + DATA_HEADER == datagram.len());
            Malformed::unless(whole, "size")?;
            Some(&datagram[DATA_HEADER..])
        } else {
            None
        };
        let code = &self.code;
        let group = match self.groups.iter().position(|group| group.number == number) {
            Some(place) => &mut self.groups[place],
            None => {
                if self.groups.len() >= GROUPS {
                    self.groups.pop_front();
                }
                self.groups.push_back(Group { number, shards: vec![None; size as usize], arrived: 0 });
                let newest = self.groups.len() - 1;
                &mut self.groups[newest]
            }
        };
        let recovered = group.take(code, index, shard);
        Ok(Taken { packet, recovered })
    }
}

impl Group {
    /// Keeps a shard, and recovers the missing ones if they are just enough.
    fn take(&mut self, code: &Code, index: usize, shard: &[u8]) -> Vec<Vec<u8>> {
        let Some(place) = self.shards.get_mut(index) else { return Vec::new() };
        if place.is_some() {
            return Vec::new();
        }
        *place = Some(shard.to_vec());
        self.arrived += 1;
        if self.arrived < code.source() {
            return Vec::new();
        }
        // A shard that comes later finds no place.
        let mut shards = core::mem::take(&mut self.shards);
        let longest = shards.iter().flatten().map(Vec::len).max().unwrap_or(0);
        shards.iter_mut().flatten().for_each(|shard| shard.resize(longest, 0));
        let (indices, arrived): (Vec<usize>, Vec<&[u8]>) = shards
            .iter()
            .enumerate()
            .filter_map(|(index, shard)| shard.as_deref().map(|shard| (index, shard)))
            .unzip();
        let mut decoder = code.decoder();
        if decoder.prepare(&indices).is_err() {
            return Vec::new();
        }
        let missing = decoder.missing().to_vec();
        missing
            .into_iter()
            .filter_map(|index| {
                let mut shard = vec![0; longest];
                decoder.recover(index, &arrived, &mut shard).ok()?;
                payload(&shard).map(<[u8]>::to_vec)
            })
            .collect()
    }
}

/// The payload behind the size, as long as the size says. `None` if the size cannot be.
fn payload(shard: &[u8]) -> Option<&[u8]> {
    let (&size, rest) = shard.split_first_chunk::<2>()?;
    let size = usize::from(u16::from_le_bytes(size)).checked_sub(2)?;
    rest.get(..size)
}
