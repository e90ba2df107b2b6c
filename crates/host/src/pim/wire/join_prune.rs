//! Join/Prune messages: lists of sources of groups, for one upstream neighbour (RFC 7761 section 4.9.5).
//!
//! ```text
//!  0: upstream neighbour (encoded unicast)    reserved    number of groups    holdtime in seconds
//!     for each group:   encoded group    number of joined sources    number of pruned sources
//!                       joined sources (encoded) ...    pruned sources (encoded) ...
//! ```

use std::net::IpAddr;

use hopcast_core::bytes::Reader;
use hopcast_wire::ip::{self, Version};

use super::{HEADER, address};
use crate::pim::refusal::Refusal;

/// Maximum number of groups in one message, whose count has one byte.
pub const MAX_RECORDS: usize = 255;

/// A Join/Prune.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinPrune {
    /// The neighbour that it is for: one of its addresses on the link.
    pub upstream: IpAddr,
    /// Time for which joins hold, in seconds.
    pub holdtime: u16,
    /// The groups.
    pub groups: Vec<GroupEntry>,
}

/// A group in a Join/Prune.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupEntry {
    /// The group.
    pub group: IpAddr,
    /// Sources whose packets are wanted.
    pub joined: Vec<IpAddr>,
    /// Sources whose packets are no longer wanted.
    pub pruned: Vec<IpAddr>,
    /// Number of joins and prunes of shared trees, which are skipped; a written message has none.
    pub shared: usize,
}

impl JoinPrune {
    pub(super) fn parse(reader: &mut Reader<'_>, version: Version) -> Result<Self, Refusal> {
        let upstream = address::unicast(reader, version)?;
        let [_reserved, count] = reader.array("number of groups")?;
        let holdtime = reader.u16("holdtime")?;
        let mut groups = Vec::new();
        for _ in 0..count {
            let mut entry = GroupEntry {
                group: address::group(reader, version)?,
                joined: Vec::new(),
                pruned: Vec::new(),
                shared: 0,
            };
            let [joined, pruned] = [reader.u16("joined sources")?, reader.u16("pruned sources")?];
            // A count past the end of the bytes ends with the bytes.
            for place in 0..u32::from(joined) + u32::from(pruned) {
                let (source, is_shared) = address::source(reader, version)?;
                match (is_shared, place < joined.into()) {
                    (true, _) => entry.shared += 1,
                    (false, true) => entry.joined.push(source),
                    (false, false) => entry.pruned.push(source),
                }
            }
            groups.push(entry);
        }
        Ok(Self { upstream, holdtime, groups })
    }

    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        address::put_unicast(bytes, self.upstream);
        bytes.extend([0, self.groups.len() as u8]);
        bytes.extend(self.holdtime.to_be_bytes());
        for GroupEntry { group, joined, pruned, .. } in &self.groups {
            address::put_group(bytes, *group);
            bytes.extend((joined.len() as u16).to_be_bytes());
            bytes.extend((pruned.len() as u16).to_be_bytes());
            joined.iter().chain(pruned).for_each(|&source| address::put_source(bytes, source));
        }
    }
}

/// Bytes that are left for groups in a message that fits the MTU, and those that a group and each source take.
pub(in crate::pim) fn room(version: Version, mtu: u32) -> (usize, [usize; 2]) {
    let address = version.address_len();
    let fixed = version.header_len() + HEADER + 2 + address + 4;
    let longest = ip::V4_HEADER + usize::from(u16::MAX - 100);
    ((mtu as usize).min(longest).saturating_sub(fixed), [4 + address + 4, 4 + address])
}
