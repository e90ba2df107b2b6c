//! Views, and the members that agree on them.

use std::net::{IpAddr, SocketAddr};

use hopcast_core::bytes::{Malformed, Reader};

pub use crate::member_id::MemberId;

/// Identity of a view, and of the proposal that it came from: a later one is greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ViewId {
    /// Number of the view: greater than that of each view before it.
    pub number: u32,
    /// The member that proposed it.
    pub leader: MemberId,
}

impl ViewId {
    /// 32 bits that stand for the view in its packets: two views that a member hears at a time differ in it but for
    /// one chance in four thousand million.
    pub fn tag(self) -> u32 {
        let words = [self.number, self.leader.node, u32::from(self.leader.run)];
        // FNV-1a over the words, with a last mixing step.
        let mixed = words.iter().fold(0x811C_9DC5_u32, |hash, &word| {
            let hash = (hash ^ word).wrapping_mul(0x0100_0193);
            hash ^ (hash >> 15)
        });
        (mixed ^ (mixed >> 13)).wrapping_mul(0x85EB_CA6B)
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { number: reader.u32("view number")?, leader: MemberId::read(reader)? })
    }

    pub(super) fn write(self, out: &mut Vec<u8>) {
        out.extend(self.number.to_be_bytes());
        self.leader.write(out);
    }
}

/// A view: the members that have agreed on being a group, the senior one first, which coordinates it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// Its identity.
    pub id: ViewId,
    /// The members and their addresses, by seniority; a member's place is its rank.
    pub members: Vec<(MemberId, SocketAddr)>,
}

/// Maximum number of members of a view. Chosen: a view, with what each member is to fetch, fits one datagram.
pub const MAX_MEMBERS: usize = 64;
/// Maximum number of members of a view whose addresses are of IPv6. Chosen: the same; 48 take 1,200 bytes.
pub const MAX_MEMBERS_IPV6: usize = 48;

/// Maximum number of members of a view to which a member with this address lets others in.
pub const fn max_members(local: SocketAddr) -> usize {
    if local.is_ipv4() { MAX_MEMBERS } else { MAX_MEMBERS_IPV6 }
}

impl View {
    /// The rank of a member.
    pub fn rank(&self, member: MemberId) -> Option<u16> {
        self.members.iter().position(|&(id, _)| id == member).map(|rank| rank as u16)
    }

    /// Whether a member is in it.
    pub fn has(&self, member: MemberId) -> bool {
        self.rank(member).is_some()
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let id = ViewId::read(reader)?;
        let count = usize::from(reader.u8("number of members")?);
        Malformed::unless((1..=MAX_MEMBERS).contains(&count), "number of members")?;
        let mut members = Vec::with_capacity(count);
        for _ in 0..count {
            let member = MemberId::read(reader)?;
            Malformed::unless(members.iter().all(|&(other, _)| other != member), "member named twice")?;
            members.push((member, read_address(reader)?));
        }
        Ok(Self { id, members })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        self.id.write(out);
        out.push(self.members.len() as u8);
        for &(member, address) in &self.members {
            member.write(out);
            write_address(address, out);
        }
    }
}

/// Members of a view that have all come to it from one view before it, by their ranks: the transitional set of extended
/// virtual synchrony. They have delivered the same in that view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Together(u64);

impl Together {
    /// The members of these ranks.
    pub fn of(ranks: impl Iterator<Item = u16>) -> Self {
        Self(ranks.filter(|&rank| rank < 64).fold(0, |set, rank| set | (1 << rank)))
    }

    /// Whether the member of this rank is one.
    pub const fn has(self, rank: u16) -> bool {
        rank < 64 && self.0 & (1 << rank) != 0
    }

    pub(super) fn read(reader: &mut Reader<'_>, view: &View) -> Result<Self, Malformed> {
        let found = Self(reader.u64("members that come together")?);
        let beyond = found.0.checked_shr(view.members.len() as u32).unwrap_or(0);
        Malformed::unless(beyond == 0, "members that come together")?;
        Ok(found)
    }

    pub(super) fn write(self, out: &mut Vec<u8>) {
        out.extend(self.0.to_be_bytes());
    }
}

pub(super) fn read_address(reader: &mut Reader<'_>) -> Result<SocketAddr, Malformed> {
    let ip = match reader.u8("address family")? {
        4 => IpAddr::from(reader.array::<4>("IPv4 address")?),
        6 => IpAddr::from(reader.array::<16>("IPv6 address")?),
        _ => return Err(Malformed { field: "address family" }),
    };
    Ok(SocketAddr::new(ip, reader.u16("port")?))
}

pub(super) fn write_address(address: SocketAddr, out: &mut Vec<u8>) {
    match address.ip() {
        IpAddr::V4(ip) => {
            out.push(4);
            out.extend(ip.octets());
        }
        IpAddr::V6(ip) => {
            out.push(6);
            out.extend(ip.octets());
        }
    }
    out.extend(address.port().to_be_bytes());
}
