//! Identity of a member of a group.

use hopcast_core::bytes::{Malformed, Reader};

/// Identity of a member, unlike that of any other, and of the same node before it began again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId {
    /// Number of the node.
    pub node: u32,
    /// Number of this run of it.
    pub run: u16,
}

impl MemberId {
    /// Length of an identity in a packet, in bytes.
    pub(crate) const LEN: usize = 6;

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { node: reader.u32("node")?, run: reader.u16("run")? })
    }

    pub(crate) fn write(self, out: &mut Vec<u8>) {
        out.extend(self.node.to_be_bytes());
        out.extend(self.run.to_be_bytes());
    }
}
