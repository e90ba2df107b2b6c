//! Numbers as a person writes them.

use core::fmt;

/// Writes `value / unit` exactly, without trailing zeros; `unit` is a power of ten or of two up to 2^20.
pub(crate) fn write_decimal(f: &mut fmt::Formatter<'_>, value: u64, unit: u64) -> fmt::Result {
    write!(f, "{}", value / unit)?;
    let mut rest = value % unit;
    if rest == 0 {
        return Ok(());
    }
    f.write_str(".")?;
    while rest != 0 {
        rest *= 10;
        write!(f, "{}", rest / unit)?;
        rest %= unit;
    }
    Ok(())
}
