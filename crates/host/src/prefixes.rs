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
    /// The prefix of `length` bits whose first address is `first`; `None` if a bit of `first` after these is set, or if
    /// an address has fewer bits.
    pub fn new(first: IpAddr, length: u8) -> Option<Self> {
        let fits = length <= address_bits(first) && key(first, length).2 == key(first, address_bits(first)).2;
        fits.then_some(Self { first, length })
    }

    /// The prefix of `length` bits that `address` is in; `None` if an address has fewer bits.
    pub fn around(address: IpAddr, length: u8) -> Option<Self> {
        (length <= address_bits(address)).then(|| prefix_of(key(address, length)))
    }

    /// One address alone.
    pub const fn of(address: IpAddr) -> Self {
        Self { first: address, length: address_bits(address) }
    }

    /// The first of its addresses.
    pub const fn first(self) -> IpAddr {
        self.first
    }

    /// Its length, in bits.
    pub const fn length(self) -> u8 {
        self.length
    }

    /// Number of bits in which its addresses differ.
    pub const fn host_bits(self) -> u8 {
        address_bits(self.first) - self.length
    }

    /// Address number `number`, counted from 0; `None` past the last.
    pub fn nth(self, number: u64) -> Option<IpAddr> {
        if u32::from(self.host_bits()) < u64::BITS && number >> self.host_bits() > 0 {
            return None;
        }
        Some(match self.first {
            IpAddr::V4(first) => (first.to_bits() | number as u32).to_be_bytes().into(),
            IpAddr::V6(first) => (first.to_bits() | u128::from(number)).to_be_bytes().into(),
        })
    }

    /// The number of an address in the prefix, counted from 0; `None` of an address outside of it, and of a number that
    /// does not fit 64 bits.
    pub fn place(self, address: IpAddr) -> Option<u64> {
        match (address, self.first) {
            _ if !self.contains(address) => None,
            (IpAddr::V4(address), IpAddr::V4(first)) => Some(u64::from(address.to_bits() - first.to_bits())),
            (IpAddr::V6(address), IpAddr::V6(first)) => (address.to_bits() - first.to_bits()).try_into().ok(),
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => None,
        }
    }

    /// Whether an address is in the prefix.
    pub fn contains(self, address: IpAddr) -> bool {
        in_prefix(address, self.first, self.length)
    }

    /// Whether some address is in both.
    pub fn overlaps(self, other: Self) -> bool {
        self.contains(other.first) || other.contains(self.first)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.length)
    }
}

/// A table of values by prefix: an address has the value of the longest prefix that it is in.
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

    /// The value of the longest prefix that an address is in.
    pub fn find(&self, address: IpAddr) -> Option<T> {
        self.find_within(address, 0, address_bits(address)).map(|(_, value)| value)
    }

    /// The longest prefix that an address is in, of those with `min` to `max` bits, and its value.
    pub fn find_within(&self, address: IpAddr, min: u8, max: u8) -> Option<(Prefix, T)> {
        if self.0.is_empty() {
            return None;
        }
        let lengths = (min..=max.min(address_bits(address))).rev();
        let found = |length| {
            let key = key(address, length);
            self.0.get(&key).map(|&value| (prefix_of(key), value))
        };
        lengths.into_iter().find_map(found)
    }

    /// All prefixes with their values, the shorter ones first.
    pub fn iter(&self) -> impl Iterator<Item = (Prefix, T)> {
        self.0.iter().map(|(&key, &value)| (prefix_of(key), value))
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

fn prefix_of((length, v6, bits): Key) -> Prefix {
    let first = match v6 {
        true => IpAddr::V6(bits.into()),
        false => IpAddr::V4(((bits >> 96) as u32).into()),
    };
    Prefix { first, length }
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
    fn addresses_are_counted_from_the_first_to_the_last() {
        let lan = prefix("10.7.0.0", 24).unwrap();
        assert_eq!(lan.nth(255), Some("10.7.0.255".parse().unwrap()));
        assert_eq!((lan.nth(256), lan.host_bits()), (None, 8));
        assert_eq!(lan.place("10.7.0.9".parse().unwrap()), Some(9));
        assert_eq!(lan.place("10.7.1.9".parse().unwrap()), None);
        assert_eq!(lan.place("::9".parse().unwrap()), None);
        let wide = prefix("fd07::", 32).unwrap();
        assert_eq!(wide.nth(u64::MAX), Some("fd07::ffff:ffff:ffff:ffff".parse().unwrap()));
        assert_eq!(wide.place("fd07:0:1::".parse().unwrap()), None, "more than 64 bits count");
        assert_eq!(prefix("10.7.0.4", 32).unwrap().nth(0), Some("10.7.0.4".parse().unwrap()));
    }

    #[test]
    fn prefixes_overlap_where_one_has_the_other() {
        let overlap = |one: (&str, u8), other: (&str, u8)| {
            let [one, other] = [one, other].map(|(first, length)| prefix(first, length).unwrap());
            assert_eq!(one.overlaps(other), other.overlaps(one));
            one.overlaps(other)
        };
        assert!(overlap(("10.7.0.0", 16), ("10.7.3.0", 24)));
        assert!(!overlap(("10.7.2.0", 24), ("10.7.3.0", 24)));
        assert!(!overlap(("0.0.0.0", 0), ("::", 0)));
    }

    #[test]
    fn a_range_of_lengths_leaves_the_others_out() {
        let mut table = PrefixTable::default();
        let (short, long) = (prefix("10.0.0.0", 8).unwrap(), prefix("10.7.0.0", 24).unwrap());
        table.insert_new(short, 1);
        table.insert_new(long, 2);
        let address = "10.7.0.1".parse().unwrap();
        assert_eq!(table.find_within(address, 9, 32), Some((long, 2)));
        assert_eq!(table.find_within(address, 0, 23), Some((short, 1)));
        assert_eq!(table.find_within(address, 25, 32), None);
        assert_eq!(table.iter().collect::<Vec<_>>(), [(short, 1), (long, 2)]);
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
