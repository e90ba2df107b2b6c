//! Addresses, bytes, counters and trees of routers, as several tests have them.

use std::net::Ipv6Addr;

use hopcast_core::Machine;
use proptest::prelude::*;

pub(crate) fn at(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

pub(crate) fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> = digits.bytes().filter(u8::is_ascii_hexdigit).collect();
    let value = |digit: u8| char::from(digit).to_digit(16).unwrap() as u8;
    digits.chunks(2).map(|pair| value(pair[0]) << 4 | value(pair[1])).collect()
}

pub(crate) fn counter(machine: &dyn Machine, name: &str) -> u64 {
    let mut found = None;
    machine.counters(&mut |counter, value| {
        if counter == name {
            found = Some(value);
        }
    });
    found.unwrap_or_else(|| panic!("{name}"))
}

/// Address of a router of a tree.
pub(crate) fn router_address(number: usize) -> Ipv6Addr {
    at(&format!("fd14::1:{:x}", number + 1))
}

/// Address of a receiver behind one of them.
pub(crate) fn receiver_address(number: usize) -> Ipv6Addr {
    at(&format!("fd14::2:{:x}", number + 1))
}

/// The routers of a tree on the way to one of them, from the first, with itself.
pub(crate) fn path(parents: &[usize], to: usize) -> Vec<usize> {
    let mut path = vec![to];
    while let Some(&last) = path.last().filter(|last| **last > 0) {
        path.push(parents[last]);
    }
    path.reverse();
    path
}

/// A random tree: of each router the one above it, drawn among those before it, and whether it speaks the protocol.
pub(crate) fn trees() -> impl Strategy<Value = Vec<(usize, bool)>> {
    proptest::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 1..12).prop_map(|drawn| {
        let above =
            |number: usize, index: prop::sample::Index| if number == 0 { 0 } else { index.index(number) };
        drawn
            .into_iter()
            .enumerate()
            .map(|(number, (index, speaks))| (above(number, index), speaks))
            .collect()
    })
}
