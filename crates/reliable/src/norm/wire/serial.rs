//! Numbers that wrap: sequence numbers, object ids and block numbers. Each is compared by its distance to another, of
//! which half of the numbers are ahead (RFC 5740, section 4.1, after RFC 1982).

use super::Fec;

/// `a - b`, of sequence numbers or object ids. That exactly halfway counts as behind.
pub const fn distance16(a: u16, b: u16) -> i16 {
    a.wrapping_sub(b) as i16
}

/// `a - b`, of block numbers in a stream with this code.
pub const fn block_distance(fec: Fec, a: u32, b: u32) -> i32 {
    let unused = u32::BITS - fec.block_bits();
    (a.wrapping_sub(b) << unused) as i32 >> unused
}

/// The block number `by` blocks after `block`; before it if that is negative.
pub const fn block_after(fec: Fec, block: u32, by: i32) -> u32 {
    block.wrapping_add_signed(by) & (u32::MAX >> (u32::BITS - fec.block_bits()))
}
