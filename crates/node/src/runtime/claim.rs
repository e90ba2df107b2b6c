//! Numbers that distinguish the rules of nodes on one host.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use super::error::PlugError;

/// A number that is unique in this network namespace while this exists, for a table of rules and a mark.
///
/// It is held by an abstract Unix socket: such a socket belongs to a network namespace, as rules do, and is closed with
/// its process, while rules stay. The number of a process would not be unique, since containers that share a network
/// number their processes separately.
#[derive(Debug)]
pub(crate) struct Claim {
    number: u16,
    _held: UnixDatagram,
}

/// Maximum number of nodes of one network namespace that divert connections or take packets. Chosen: far more than one
/// host runs, and few enough to be tried one after the other.
pub(super) const MAX_CLAIMS: u16 = 1024;

impl Claim {
    /// The first number that is free.
    pub(super) fn first_free() -> Result<Self, PlugError> {
        for number in 0..MAX_CLAIMS {
            if let Some(claim) = Self::of(number).map_err(PlugError::Claim)? {
                return Ok(claim);
            }
        }
        Err(PlugError::NoClaimLeft)
    }

    /// The number of a table whose owner is gone; `None` if the owner lives or the table is not hopcast's.
    pub(crate) fn left_behind(table: &str) -> Option<Self> {
        let number = table.strip_prefix("hopcast_")?.parse().ok().filter(|&number| number < MAX_CLAIMS)?;
        Self::of(number).ok()?.filter(|claim| claim.table() == table)
    }

    /// Claims a number; `None` if another process has it.
    fn of(number: u16) -> io::Result<Option<Self>> {
        let address = SocketAddr::from_abstract_name(format!("hopcast-rules-{number}"))?;
        match UnixDatagram::bind_addr(&address) {
            Ok(held) => Ok(Some(Self { number, _held: held })),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The name of the nft table.
    pub(crate) fn table(&self) -> String {
        format!("hopcast_{}", self.number)
    }

    /// The bits of a mark that identify it as a claim's; below, their value.
    pub(super) const MASK: u32 = 0xffff_0000;
    pub(super) const MARKS: u32 = 1 << 31 | 0x68 << 16;

    /// The mark of the node's packets, which is also the number of their routing table.
    pub(crate) fn mark(&self) -> u32 {
        Self::MARKS | u32::from(self.number)
    }

    /// The group of netfilter's log to which its packets are sent; other programs use low numbers.
    pub(super) fn log_group(&self) -> u16 {
        0x6800 | self.number
    }

    /// The name of the device by which packets are handed back to the kernel.
    pub(super) fn device(&self) -> String {
        format!("hopcast-h{}", self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_left_behind_when_its_owner_is_gone() {
        let owner = Claim::first_free().unwrap();
        let (table, mark) = (owner.table(), owner.mark());
        assert!(Claim::left_behind(&table).is_none());
        assert_ne!(Claim::first_free().unwrap().table(), table);
        drop(owner);
        assert_eq!(Claim::left_behind(&table).unwrap().mark(), mark);
    }

    #[test]
    fn only_what_is_named_as_ours_was_left_behind_by_us() {
        for other in
            ["hopcast", "hopcast_", "hopcast_x", "hopcast_01", "hopcast_1024", "filter", "nothopcast_1"]
        {
            assert!(Claim::left_behind(other).is_none(), "{other}");
        }
    }
}
