//! Why bytes are not the packet they were taken for.

use core::fmt;

/// Bytes that do not parse: which format's which field, and what is wrong with it.
///
/// Not [`hopcast_core::Malformed`], which names a field of a protocol's own format alone: whoever reads these formats
/// counts wrong checksums apart, and an error passes through several of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The format that was being read, for example `IPv4`.
    pub format: &'static str,
    /// The field at fault, by its name in the RFC.
    pub field: &'static str,
    /// The fault in it.
    pub fault: Fault,
}

/// The fault in a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The bytes end before the field does.
    Truncated {
        /// Number of bytes that there would have to be.
        needed: usize,
        /// Number of bytes that there are.
        found: usize,
    },
    /// The field holds a value that it must not hold.
    Value(u32),
    /// The checksum does not fit the bytes: they were changed in transit.
    Checksum,
}

impl Malformed {
    /// Whether the bytes were changed in transit, rather than badly made.
    pub fn is_corrupt(&self) -> bool {
        self.fault == Fault::Checksum
    }

    pub(crate) const fn truncated(
        format: &'static str,
        field: &'static str,
        needed: usize,
        found: usize,
    ) -> Self {
        Self { format, field, fault: Fault::Truncated { needed, found } }
    }

    pub(crate) const fn value(format: &'static str, field: &'static str, value: u32) -> Self {
        Self { format, field, fault: Fault::Value(value) }
    }

    pub(crate) const fn corrupt(format: &'static str, field: &'static str) -> Self {
        Self { format, field, fault: Fault::Checksum }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { format, field, fault } = self;
        match fault {
            Fault::Truncated { needed, found } => {
                write!(f, "{format} {field}: needs {needed} bytes, there are {found}")
            }
            Fault::Value(value) => write!(f, "{format} {field}: must not be {value}"),
            Fault::Checksum => write!(f, "{format} {field}: does not fit the bytes"),
        }
    }
}

impl core::error::Error for Malformed {}
