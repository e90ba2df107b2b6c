//! Facts about interfaces of the host, as services between them need them.

use std::collections::BTreeMap;
use std::fs;
use std::str::FromStr;

use hopcast_core::Rate;
use hopcast_stack::site::SiteInterface;
use hopcast_wire::ethernet;

use super::Error;
use crate::config::Config;
use crate::runtime::command::ip;
use crate::runtime::{PlugError, link};

/// The interfaces that services are between, by their names.
pub(super) type Interfaces = BTreeMap<String, SiteInterface>;

/// Those of the host, as they are now.
///
/// # Errors
/// There is none of a name, or its address or MTU cannot be read: without them a service could not be part of anything.
pub(super) fn of_host(config: &Config) -> Result<Interfaces, Error> {
    let between = config.services.iter().filter(|service| service.device.is_some());
    let names = between.flat_map(|service| &service.interfaces);
    let failed = |name: &String, source| Error::Interface { name: name.clone(), source };
    names
        .map(|name| {
            let interface = read(name).map_err(|source| failed(name, source))?;
            Ok((name.clone(), interface))
        })
        .collect()
}

/// An interface with its address, MTU and rate. The rate is the speed that the driver reports, as batman-adv asks
/// `ethtool` for it; it may be unknown.
fn read(name: &str) -> Result<SiteInterface, PlugError> {
    let address = link(name)?;
    let (Some(mac), true) = (address.addr(), address.halen() == 6) else {
        return Err(PlugError::NotEthernet);
    };
    let shown = ip(&format!("-o link show dev {name}"))?;
    let mtu = mtu(&shown).ok_or_else(|| PlugError::NoMtu(shown.trim().to_owned()))?;
    let fact = |what: &str| fs::read_to_string(format!("/sys/class/net/{name}/{what}")).ok();
    // The files may be those of another network namespace.
    let is_ours = fact("ifindex").as_deref().and_then(number) == Some(address.ifindex())
        && fact("address").is_some_and(|text| text.trim() == ethernet::text(mac));
    let rate = fact("speed").filter(|_| is_ours).as_deref().and_then(rate);
    Ok(SiteInterface { name: name.to_owned(), mac, mtu, rate })
}

/// The MTU in the line of `ip -o link`.
fn mtu(line: &str) -> Option<u32> {
    let mut words = line.split_whitespace().skip_while(|&word| word != "mtu");
    words.nth(1).and_then(number)
}

fn number<T: FromStr>(text: &str) -> Option<T> {
    text.trim().parse().ok()
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
    fn facts_are_read_as_the_kernel_and_ip_write_them() {
        assert_eq!(rate("10000\n"), Some(Rate::from_bits_per_sec(10_000_000_000)));
        assert_eq!(["-1\n", "4294967295\n", "0\n", ""].map(rate), [None; 4]);
        let line =
            "2: right@if3: <BROADCAST,MULTICAST> mtu 9000 qdisc noop state DOWN mode DEFAULT group default";
        assert_eq!(mtu(line), Some(9000));
        assert_eq!(["", "2: right: mtu", "2: right: mtu x"].map(mtu), [None; 3]);
    }

    #[test]
    fn an_interface_that_is_not_there_is_an_error() {
        let error = read("nowhere-at-all").unwrap_err();
        assert_eq!(error.to_string(), "there is no interface `nowhere-at-all`");
    }
}
