//! `libnorm`, `openpgm`, `jgroups`, `uftp` and `udpcast`: a file to all members of a group.

use std::fmt;

use hopcast_config::Diagnostic;
use hopcast_config::decode::{Fields, rate, size, words};
use hopcast_core::{Bytes, Rate};

/// Maximum length of the file, in bytes. Chosen: it is written once for each member, and more would fill disks.
const MAX_BYTES: u64 = 1 << 30;

/// A file that a program sends to all members of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupFile {
    /// By which program.
    pub with: GroupFileProgram,
    /// Length of the file.
    pub bytes: Bytes,
    /// Rate of its Ethernet frames; `None` for that of the link by which they leave.
    pub rate: Option<Rate>,
    /// More arguments for the sender, as on its command line.
    pub arguments: Vec<String>,
}

/// The program that sends a file to a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupFileProgram {
    /// A member of NORM on libnorm: a program of ours, which is built when it is first needed.
    Libnorm,
    /// A member of PGM on OpenPGM, of ours too.
    Openpgm,
    /// A member of a group of JGroups 2.12, of ours too.
    Jgroups,
    /// `uftp` and `uftpd`.
    Uftp,
    /// `udp-sender` and `udp-receiver`.
    Udpcast,
}

impl GroupFileProgram {
    pub(crate) const ALL: [Self; 5] =
        [Self::Libnorm, Self::Openpgm, Self::Jgroups, Self::Uftp, Self::Udpcast];

    /// Its name in `app`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Libnorm => "libnorm",
            Self::Openpgm => "openpgm",
            Self::Jgroups => "jgroups",
            Self::Uftp => "uftp",
            Self::Udpcast => "udpcast",
        }
    }

    /// The one of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|program| program.name() == name)
    }
}

impl GroupFile {
    /// Keys of its options.
    pub(super) const KEYS: &'static [&'static str] = &["bytes", "rate", "arguments", "start", "stop"];

    /// Bytes before the payload of a packet after UDP's header, for programs that are told the payload: 28 to 36 of
    /// libnorm's and uftp's, and 16 of udpcast's. Chosen: with fewer, packets of some do not fit the MTU, with more
    /// each carries less than it could.
    pub const HEADERS: u64 = 32;

    pub(super) fn decode(with: GroupFileProgram, fields: Fields<'_>) -> Result<Self, Diagnostic> {
        let bytes = size(fields.need("bytes", "bytes: 800 kB")?, "bytes", 1..=MAX_BYTES)?;
        let (rate, arguments) = (fields.read("rate", rate)?, fields.read("arguments", words)?);
        Ok(Self { with, bytes, rate, arguments: arguments.unwrap_or_default() })
    }
}

impl fmt::Display for GroupFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a file of {} bytes by {}", self.bytes.get(), self.with.name())?;
        self.rate.map_or(Ok(()), |rate| write!(f, ", {rate}"))
    }
}
