//! The short list of the revision: data whose list is compressed by prefix and says where it parts.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |  next header  |  hdr ext len  | routing type  | segments left |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |  version 0x81 |0 0|   hops    |        bytes of sections      |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                    sections, zeros to 8 bytes                 …
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! The version stands where the other header has the number of addresses, which is 32 at most, so that whoever does not
//! know it drops the packet. A section is a router with the receivers that it is to serve, in runs of receivers whose
//! first 8 bytes are the same:
//!
//! | part | field | bits | what |
//! |---|---|---|---|
//! | section | zero | 2 | |
//! | | branch | 6 | distance in MEADcast hops at which its path parts from the section before; 0 of the first |
//! | | shared | 4 | leading bytes in common with the router before; of the first, with the source |
//! | | zero | 4 | |
//! | | rest | 8 each | the other bytes of the router's address |
//! | run | more | 1 | whether another run of this section follows |
//! | | count | 7 | receivers in the run |
//! | | shared | 4 | leading bytes of the prefix in common with the address before: the router's or a receiver's |
//! | | len | 4 | bytes of the prefix, which all receivers of the run have in common |
//! | | prefix | 8 each | the other bytes of the prefix |
//! | | rest | 8 each | of each receiver, the bytes behind the prefix |
//!
//! So a receiver with a random interface identifier takes 8 bytes, and the router of five of them 13 to 26 together
//! with all that describes them.
//!
//! A MEADcast router at distance h from the sender splits the list in front of each section whose branch is h or less,
//! and makes a copy of each part: with the branches of a tree, in depth-first order, each link has one copy of what
//! is behind it. This is the thesis' "don't replicate" counter for each section, counted from the sender: a part is
//! not split while there are hops left to its branch. Where routers are missing that were there at discovery, lists are
//! split later, at the latest by the router of their first section; a list that is split too early costs bytes and
//! nothing else. A section whose receivers have been served is taken out. There is no delivery map, and no list of
//! ports: all receivers of a sender listen on one.
//!
//! Each list has one form: lengths in common are the longest, 15 at most, and a run ends where the first 8 bytes
//! change.

use std::net::Ipv6Addr;

use hopcast_core::{Buffer, Writer};
use hopcast_wire::ip;

use super::{MAX_HOPS, ROUTING_TYPE};
use crate::address::{has_pair, is_host};
use crate::header::{self, ROUTING};
use crate::{Bitmap, Refusal};

/// First byte behind the general part of the routing header.
pub const VERSION: u8 = 0x81;
/// Maximum number of addresses in a list: places of a [`Bitmap`].
pub const MAX_LIST: usize = 128;
/// Bytes of the header in front of its sections.
pub const FIXED: usize = 8;
/// Bytes of the longest header.
pub const MAX_HEADER: usize = 256 * 8;
/// Bytes of a prefix that receivers of a run have in common at least: the subnet prefix of IPv6 (RFC 4291, section
/// 2.5.1).
const RUN: usize = 8;
/// Bytes of a section in front of its router's address, and of a run in front of its prefix.
pub(crate) const SECTION: usize = 2;
/// Maximum number of leading bytes that addresses are said to have in common.
const MAX_SHARED: usize = 15;
/// Flag of a run behind which there is another of its section.
const MORE: u8 = 0x80;

/// A router with the receivers that it is to serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section<'a> {
    /// Distance at which its path parts from that of the section before.
    pub branch: u8,
    /// The router.
    pub router: &'a [u8; 16],
    /// The receivers; at least one.
    pub receivers: &'a [[u8; 16]],
}

/// The list of a packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct List {
    /// Routers, and behind each its receivers.
    pub addresses: Vec<[u8; 16]>,
    /// Places of the routers.
    pub routers: Bitmap,
    /// The branch of each router's section.
    pub branches: Vec<u8>,
}

impl List {
    /// The sections.
    pub fn sections(&self) -> impl Iterator<Item = Section<'_>> + Clone {
        sections(&self.addresses, self.routers, &self.branches)
    }

    fn add(&mut self, address: [u8; 16]) -> Result<(), Refusal> {
        if self.addresses.len() == MAX_LIST {
            return Err(Refusal::LongList);
        }
        self.addresses.push(address);
        Ok(())
    }

    fn clear(&mut self) {
        self.addresses.clear();
        self.branches.clear();
        self.routers = Bitmap::EMPTY;
    }
}

/// Sections of a list, by the places of its routers and their branches. A router without receivers is left out.
pub fn sections<'a>(
    addresses: &'a [[u8; 16]],
    routers: Bitmap,
    branches: &'a [u8],
) -> impl Iterator<Item = Section<'a>> + Clone {
    let ends = routers.places().skip(1).chain([addresses.len()]);
    let ranges = routers.places().zip(ends);
    ranges.zip(branches).filter_map(|((at, end), &branch)| {
        let (router, receivers) = addresses.get(at..end)?.split_first()?;
        Some(Section { branch, router, receivers }).filter(|section| !section.receivers.is_empty())
    })
}

/// A packet with a short list, without the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Traffic class, in the upper 8 bits, and flow label, in the lower 20, of the IPv6 header.
    pub traffic: u32,
    /// The hop limit of IPv6.
    pub hop_limit: u8,
    /// The sender's address.
    pub source: Ipv6Addr,
    /// The first router of the list, or its first receiver.
    pub destination: Ipv6Addr,
    /// Number of MEADcast routers that it has passed, 63 at most.
    pub hops: u8,
    /// The protocol of the payload.
    pub protocol: u8,
    /// The payload, a segment of that protocol.
    pub payload: &'a [u8],
}

/// Whether a packet has MEADcast's routing header in the form of short lists.
pub fn is_short(bytes: &[u8]) -> bool {
    let at = |place: usize| bytes.get(place).copied();
    let header = [at(6), at(ip::V6_HEADER + 2), at(ip::V6_HEADER + 4)];
    header == [Some(ROUTING), Some(ROUTING_TYPE), Some(VERSION)]
}

impl<'a> Packet<'a> {
    /// Reads a packet and its list, and nothing that is not as [`prepend`](Self::prepend) writes it, but for bytes
    /// behind its end.
    ///
    /// # Errors
    /// The first reason to drop it.
    pub fn parse(bytes: &'a [u8], list: &mut List) -> Result<Self, Refusal> {
        let read = header::parse(bytes, ROUTING_TYPE)?;
        let (fixed, rest) = read.routing.split_at_checked(FIXED).ok_or(Refusal::Form)?;
        if fixed[3] != 0 || fixed[4] != VERSION {
            return Err(Refusal::Form);
        }
        if fixed[5] > MAX_HOPS {
            return Err(Refusal::Flags);
        }
        let len = usize::from(u16::from_be_bytes([fixed[6], fixed[7]]));
        let (sections, padding) = rest.split_at_checked(len).ok_or(Refusal::Form)?;
        if padding.len() >= 8 || padding.iter().any(|byte| *byte != 0) {
            return Err(Refusal::Form);
        }
        if !is_host(&read.source.octets()) {
            return Err(Refusal::Source);
        }
        list.clear();
        decode(sections, &read.source.octets(), list)?;
        if !list.addresses.iter().all(is_host) {
            return Err(Refusal::Listed);
        }
        if has_pair(&list.addresses) {
            return Err(Refusal::Repeated);
        }
        // There is a router in front, and a receiver behind it.
        if !list.addresses[..2].contains(&read.destination.octets()) {
            return Err(Refusal::Destination);
        }
        let upper = read.upper_layer(None)?;
        Ok(Self {
            traffic: read.traffic,
            hop_limit: read.hop_limit,
            source: read.source,
            destination: read.destination,
            hops: fixed[5],
            protocol: upper.protocol,
            payload: upper.payload,
        })
    }

    /// The packet without its payload.
    pub fn head(&self) -> Packet<'static> {
        let Self { traffic, hop_limit, source, destination, hops, protocol, .. } = *self;
        Packet { traffic, hop_limit, source, destination, hops, protocol, payload: &[] }
    }

    /// Puts all headers in front of the payload in `buffer`, which need not be [`payload`](Self::payload). The branch
    /// of the first section is written as 0.
    ///
    /// # Panics
    /// If the list is longer than a header can be, or the packet than its length fields can say.
    pub fn prepend<'b>(&self, buffer: &mut Buffer, sections: impl Iterator<Item = Section<'b>> + Clone) {
        let source = self.source.octets();
        let len = sections_len(&source, sections.clone());
        let header_len = (FIXED + len).next_multiple_of(8);
        assert!(header_len <= MAX_HEADER, "a header has at most {MAX_HEADER} bytes");
        let mut header = Writer::new(buffer.prepend(header_len));
        header.put(&[
            self.protocol,
            (header_len / 8 - 1) as u8,
            ROUTING_TYPE,
            0,
            VERSION,
            self.hops & MAX_HOPS,
        ]);
        header.u16(len as u16);
        encode(&source, sections, &mut |bytes| header.put(bytes));
        header.rest().fill(0);
        header::prepend(buffer, [self.source, self.destination], ROUTING, self.traffic, self.hop_limit);
    }
}

/// Bytes that a short list adds to a packet of IPv6.
pub fn overhead<'a>(source: &[u8; 16], sections: impl Iterator<Item = Section<'a>>) -> usize {
    (FIXED + sections_len(source, sections)).next_multiple_of(8)
}

pub(crate) fn sections_len<'a>(source: &[u8; 16], sections: impl Iterator<Item = Section<'a>>) -> usize {
    let mut len = 0;
    encode(source, sections, &mut |bytes| len += bytes.len());
    len
}

/// Number of leading bytes that two addresses have in common, 15 at most.
pub(crate) fn shared(one: &[u8; 16], other: &[u8; 16]) -> usize {
    one.iter().zip(other).take(MAX_SHARED).take_while(|(one, other)| one == other).count()
}

/// The runs of receivers, each with the length of its prefix.
fn runs(receivers: &[[u8; 16]]) -> impl Iterator<Item = (&[[u8; 16]], usize)> {
    receivers.chunk_by(|one, other| one[..RUN] == other[..RUN]).map(|run| (run, prefix_len(run)))
}

fn prefix_len(run: &[[u8; 16]]) -> usize {
    run.iter().map(|other| shared(&run[0], other)).min().unwrap_or_default()
}

fn encode<'a>(source: &[u8; 16], sections: impl Iterator<Item = Section<'a>>, put: &mut impl FnMut(&[u8])) {
    let mut before = source;
    for (place, Section { branch, router, receivers }) in sections.enumerate() {
        let is_first = place == 0;
        let common = shared(before, router);
        put(&[if is_first { 0 } else { branch & MAX_HOPS }, (common as u8) << 4]);
        put(&router[common..]);
        before = router;
        let (mut last, mut left) = (router, receivers.len());
        for (run, len) in runs(receivers) {
            left -= run.len();
            let common = shared(last, &run[0]).min(len);
            let more = if left > 0 { MORE } else { 0 };
            put(&[more | run.len() as u8, (common as u8) << 4 | len as u8]);
            put(&run[0][common..len]);
            run.iter().for_each(|receiver| put(&receiver[len..]));
            last = &run[run.len() - 1];
        }
    }
}

/// Reads sections that are as `encode` writes them.
fn decode(sections: &[u8], source: &[u8; 16], list: &mut List) -> Result<(), Refusal> {
    let mut rest = Cursor(sections);
    if rest.0.is_empty() {
        return Err(Refusal::EmptyList);
    }
    let mut before = *source;
    while !rest.0.is_empty() {
        let [branch, common] = rest.pair()?;
        if branch > MAX_HOPS || common & 0x0f != 0 || branch > 0 && list.addresses.is_empty() {
            return Err(Refusal::Form);
        }
        let common = usize::from(common >> 4);
        let router = rest.address(&before[..common])?;
        if shared(&before, &router) != common {
            return Err(Refusal::Form);
        }
        let place = list.addresses.len();
        list.add(router)?;
        list.routers = list.routers.with(place);
        list.branches.push(branch);
        before = router;
        decode_runs(&mut rest, list)?;
    }
    Ok(())
}

/// Reads the runs of a section, whose router is the last address of the list.
fn decode_runs(rest: &mut Cursor<'_>, list: &mut List) -> Result<(), Refusal> {
    let mut last = list.addresses.last().copied().unwrap_or_default();
    let mut subnet = None;
    loop {
        let [count, lens] = rest.pair()?;
        let (common, len) = (usize::from(lens >> 4), usize::from(lens & 0x0f));
        if common > len || len < RUN {
            return Err(Refusal::Form);
        }
        let (mut prefix, begin) = (last, list.addresses.len());
        prefix[common..len].copy_from_slice(rest.take(len - common)?);
        for _ in 0..count & !MORE {
            list.add(rest.address(&prefix[..len])?)?;
        }
        let run = &list.addresses[begin..];
        let [Some(first), Some(end)] = [run.first(), run.last()] else { return Err(Refusal::Unassigned) };
        let continues = subnet.is_some_and(|subnet: [u8; RUN]| first.starts_with(&subnet));
        if continues || prefix_len(run) != len || shared(&last, first).min(len) != common {
            return Err(Refusal::Form);
        }
        subnet = first.first_chunk::<RUN>().copied();
        last = *end;
        if count & MORE == 0 {
            return Ok(());
        }
    }
}

struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], Refusal> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(Refusal::Form)?;
        self.0 = rest;
        Ok(taken)
    }

    fn pair(&mut self) -> Result<[u8; 2], Refusal> {
        self.take(SECTION)?.first_chunk().copied().ok_or(Refusal::Form)
    }

    /// An address with these leading bytes.
    fn address(&mut self, common: &[u8]) -> Result<[u8; 16], Refusal> {
        let mut address = [0; 16];
        let (front, back) = address.split_at_mut(common.len());
        front.copy_from_slice(common);
        back.copy_from_slice(self.take(back.len())?);
        Ok(address)
    }
}

#[cfg(test)]
mod tests;
