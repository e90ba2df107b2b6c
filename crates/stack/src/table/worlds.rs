//! The worlds that a row of a table runs in.

use std::fmt;

/// The worlds that a transport, a delivery or a service runs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worlds {
    /// Virtual time and the kernel.
    Both,
    /// Virtual time only.
    Virtual,
    /// The kernel only: a real program. The names of its models in virtual time, in a person's words.
    Live {
        /// `kcp` and `kcp-fec` are its models, say.
        models: &'static str,
        /// The programs, each with the package of Debian and Ubuntu that has it.
        programs: &'static [(&'static str, &'static str)],
    },
}

impl fmt::Display for Worlds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Both => "both",
            Self::Virtual => "virtual time",
            Self::Live { .. } => "live",
        })
    }
}
