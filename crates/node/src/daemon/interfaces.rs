//! Facts about an interface of the host, as a service between interfaces needs them.

use std::fs;
use std::str::FromStr;

use hopcast_core::Rate;
use hopcast_stack::site::SiteInterface;
use nix::net::if_::if_nametoindex;

/// An interface with its address, MTU and rate; what cannot be read is as in `unknown`. The rate is the speed that the
/// driver reports, as batman-adv asks `ethtool` for it.
pub(super) fn of_host(unknown: SiteInterface) -> SiteInterface {
    let SiteInterface { name, mac, mtu, .. } = &unknown;
    let fact = |what: &str| fs::read_to_string(format!("/sys/class/net/{name}/{what}")).ok();
    // What is mounted there may be of another network namespace.
    let index: Option<u32> = fact("ifindex").as_deref().and_then(number);
    if index.is_none() || index != if_nametoindex(name.as_str()).ok() {
        return unknown;
    }
    let mac = fact("address").as_deref().and_then(address).unwrap_or(*mac);
    let mtu = fact("mtu").as_deref().and_then(number).unwrap_or(*mtu);
    SiteInterface { mac, mtu, rate: fact("speed").as_deref().and_then(rate), ..unknown }
}

fn number<T: FromStr>(text: &str) -> Option<T> {
    text.trim().parse().ok()
}

/// An Ethernet address: `02:00:00:00:00:01`.
fn address(text: &str) -> Option<[u8; 6]> {
    let bytes: Option<Vec<u8>> =
        text.trim().split(':').map(|byte| u8::from_str_radix(byte, 16).ok()).collect();
    bytes?.try_into().ok()
}

/// A speed in Mbit/s, which is -1 or 4294967295 if the driver does not know it.
fn rate(text: &str) -> Option<Rate> {
    let megabits = number::<i64>(text).filter(|speed| (1..i64::from(u32::MAX)).contains(speed))?;
    Some(Rate::from_bits_per_sec(megabits as u64 * 1_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_read_as_the_kernel_writes_them() {
        assert_eq!(address("02:00:0a:ff:00:01\n"), Some([2, 0, 10, 255, 0, 1]));
        assert_eq!(["", "02:00", "02:00:0a:ff:00:01:02", "x:0:0:0:0:0"].map(address), [None; 4]);
        assert_eq!(rate("10000\n"), Some(Rate::from_bits_per_sec(10_000_000_000)));
        assert_eq!(["-1\n", "4294967295\n", "0\n", ""].map(rate), [None; 4]);
    }

    #[test]
    fn an_interface_that_is_not_there_stays_unknown() {
        let unknown = SiteInterface::unknown("nowhere-at-all", [2, 0, 0, 0, 0, 1]);
        assert_eq!(of_host(unknown.clone()), unknown);
    }
}
