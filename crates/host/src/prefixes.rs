//! Prefixes of addresses, and tables in which the longest one wins.

use core::fmt;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// The addresses of one version that have the same first bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Prefix {
    first: IpAddr,
    length: u8,
}

impl Prefix {
    /// The addresses that agree with `first` in `length` bits, all others of which must be zero; `None` if they are
    /// not, or an address has not as many.
    pub fn new(first: IpAddr, length: u8) -> Option<Self> {
        let fits = length <= address_bits(first) && key(first, length).2 == key(first, address_bits(first)).2;
        fits.then_some(Self { first, length })
    }

    /// One address alone.
    pub const fn of(address: IpAddr) -> Self {
        Self { first: address, length: address_bits(address) }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.length)
    }
}

/// A value for each of some prefixes; of an address, the longest prefix that it has wins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrefixTable<T>(BTreeMap<Key, T>);

/// The length of a prefix, whether it is IPv6's, and its bits.
type Key = (u8, bool, u128);

impl<T> Default for PrefixTable<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: Copy> PrefixTable<T> {
    /// Sets the value of the `length`-bit prefix of `address`, in place of an earlier one. A length past the address's
    /// is its whole length.
    pub fn insert(&mut self, address: IpAddr, length: u8, value: T) {
        self.0.insert(key(address, length.min(address_bits(address))), value);
    }

    /// Sets the value of a prefix, unless it has one.
    pub fn insert_new(&mut self, prefix: Prefix, value: T) {
        self.0.entry(key(prefix.first, prefix.length)).or_insert(value);
    }

    /// The value of the longest prefix that an address has.
    pub fn find(&self, address: IpAddr) -> Option<T> {
        let lengths = (0..=address_bits(address)).rev();
        lengths.map(|length| key(address, length)).find_map(|key| self.0.get(&key)).copied()
    }
}

/// Whether `address` lies in the `length`-bit prefix of `prefix`.
pub(crate) fn in_prefix(address: IpAddr, prefix: IpAddr, length: u8) -> bool {
    let length = length.min(address_bits(prefix));
    key(address, length) == key(prefix, length)
}

fn key(address: IpAddr, length: u8) -> Key {
    // Both versions' bits are left-aligned, so that one mask serves both.
    let (v6, bits) = match address {
        IpAddr::V4(address) => (false, u128::from(address.to_bits()) << 96),
        IpAddr::V6(address) => (true, address.to_bits()),
    };
    let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
    (length, v6, bits & mask)
}

const fn address_bits(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str, length: u8) -> Option<Prefix> {
        Prefix::new(text.parse().unwrap(), length)
    }

    #[test]
    fn a_prefix_has_no_bits_beyond_its_length() {
        assert_eq!(prefix("10.0.0.5", 30), None);
        assert_eq!((prefix("10.0.0.0", 33), prefix("fd00::", 129)), (None, None));
        assert_eq!(prefix("fd00::", 16).unwrap().to_string(), "fd00::/16");
        let everything = |version: &str| {
            let mut table = PrefixTable::default();
            table.insert_new(prefix(version, 0).unwrap(), ());
            table
        };
        assert_eq!(everything("::").find("fd00::1".parse().unwrap()), Some(()));
        assert_eq!(everything("0.0.0.0").find("fd00::1".parse().unwrap()), None);
    }

    #[test]
    fn the_first_of_two_new_values_stays_and_another_replaces_it() {
        let mut table = PrefixTable::default();
        let (prefix, address) = (prefix("10.0.0.0", 8).unwrap(), "10.1.2.3".parse().unwrap());
        table.insert_new(prefix, 1);
        table.insert_new(prefix, 2);
        assert_eq!(table.find(address), Some(1));
        table.insert(address, 8, 3);
        assert_eq!(table.find(address), Some(3));
    }
}
