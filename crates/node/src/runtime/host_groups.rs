//! Groups that the host has joined on a TAP. The kernel reports no changes of `/proc/net/igmp` and `igmp6`, so they are
//! polled.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hopcast_core::{Duration, Instant, Membership};
use nix::net::if_::if_nametoindex;

use crate::Clock;

/// Time between two looks at the kernel's lists: batman-adv's (`BATADV_MCAST_WORK_PERIOD`). Shorter costs processor
/// time, longer delays a member's first packets.
const INTERVAL: Duration = Duration::from_millis(500);

/// The lists of the calling thread's network namespace: of IPv4 and of IPv6.
const LISTS: [&str; 2] = ["/proc/thread-self/net/igmp", "/proc/thread-self/net/igmp6"];
/// Maximum number of devices above each other: the kernel's (`MAX_NEST_DEV`).
const MAX_MASTERS: usize = 8;

/// The groups of one device.
pub(super) struct HostGroups {
    device: String,
    /// The kernel's number of the device.
    index: u32,
    clock: Clock,
    next: Instant,
    /// The groups that the machine was told of and that are still wanted.
    known: BTreeSet<IpAddr>,
    /// The changes that it is to be told of.
    changes: VecDeque<Membership>,
}

impl HostGroups {
    /// Those of a device, which exists.
    pub(super) fn of(device: &str, clock: Clock) -> io::Result<Self> {
        let index = if_nametoindex(device)?;
        let (known, changes) = (BTreeSet::new(), VecDeque::new());
        Ok(Self { device: device.to_owned(), index, clock, next: Instant::ZERO, known, changes })
    }

    /// The next change.
    pub(super) fn next(&mut self) -> Option<Membership> {
        let now = self.clock.now();
        if now >= self.next {
            self.next = now + INTERVAL;
            self.change_to(self.wanted());
        }
        self.changes.pop_front()
    }

    /// The time of the next look.
    pub(super) const fn deadline(&self) -> Instant {
        self.next
    }

    fn change_to(&mut self, wanted: BTreeSet<IpAddr>) {
        let change =
            |joined| move |&group: &IpAddr| Membership { group, source: None, interface: None, joined };
        // Joins first, so that nothing is missed in between.
        self.changes.extend(wanted.difference(&self.known).map(change(true)));
        self.changes.extend(self.known.difference(&wanted).map(change(false)));
        self.known = wanted;
    }

    /// The groups that the host wants now; the unspecified address of an IP version stands for all.
    fn wanted(&self) -> BTreeSet<IpAddr> {
        let [v4, v6] = LISTS.map(read);
        let groups = self.joined(v4, false).into_iter().chain(self.joined(v6, true));
        let is_bridged = self.is_bridged();
        let all = [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)];
        let wants_all = |group: &IpAddr| match (&is_bridged, self.routes_groups(group.is_ipv6())) {
            (Ok(true), _) | (_, Ok(true)) => true,
            (Ok(false), Ok(false)) => false,
            (Err(_), _) | (_, Err(_)) => self.known.contains(group),
        };
        groups.chain(all.into_iter().filter(wants_all)).collect()
    }

    /// The groups of an IP version in the kernel's list; the known ones if it could not be read.
    fn joined(&self, list: io::Result<String>, v6: bool) -> Vec<IpAddr> {
        match list {
            Ok(list) if v6 => joined_v6(&list, self.index).collect(),
            Ok(list) => joined_v4(&list, self.index).collect(),
            Err(_) => {
                let is_known = |group: &&IpAddr| group.is_ipv6() == v6 && !group.is_unspecified();
                self.known.iter().filter(is_known).copied().collect()
            }
        }
    }

    /// Whether a bridge of the host's, which may have members behind its other ports, has the device, or a bond that
    /// has it. A VRF that has it is none.
    fn is_bridged(&self) -> io::Result<bool> {
        let mut path = format!("/sys/class/net/{}", self.device);
        // The files may be those of another network namespace.
        if read(&format!("{path}/ifindex"))?.trim() != self.index.to_string() {
            return Ok(false);
        }
        for _ in 0..MAX_MASTERS {
            path.push_str("/master");
            if !fs::exists(&path)? {
                break;
            }
            if fs::exists(format!("{path}/bridge"))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the host routes groups of an IP version by the device, as multicast routing daemons have it do.
    fn routes_groups(&self, v6: bool) -> io::Result<bool> {
        let version = if v6 { "ipv6" } else { "ipv4" };
        let on = read(&format!("/proc/sys/net/{version}/conf/{}/mc_forwarding", self.device))?;
        Ok(!matches!(on.trim(), "" | "0"))
    }
}

/// A file of the kernel's; one that is not there, as those of an IP version that is off, is empty.
fn read(path: &str) -> io::Result<String> {
    fs::read_to_string(path).or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => Ok(String::new()),
        _ => Err(error),
    })
}

/// The groups of a device in the kernel's list of IPv4: a line for each device, which begins with its number, and below
/// it one for each group, which begins with white space and the address as a number of this machine's byte order.
fn joined_v4(list: &str, index: u32) -> impl Iterator<Item = IpAddr> {
    let mut of_device = false;
    list.lines().skip(1).filter_map(move |line| {
        let first = line.split_whitespace().next()?;
        if !line.starts_with(char::is_whitespace) {
            of_device = first.parse() == Ok(index);
            return None;
        }
        let address = u32::from_str_radix(first, 16).ok().filter(|_| of_device)?;
        Some(IpAddr::from(address.to_ne_bytes()))
    })
}

/// The same of IPv6: a line for each group, which begins with the device's number, its name and the address.
fn joined_v6(list: &str, index: u32) -> impl Iterator<Item = IpAddr> {
    list.lines().filter_map(move |line| {
        let mut words = line.split_whitespace();
        let of_device = words.next()?.parse() == Ok(index);
        let address = u128::from_str_radix(words.nth(1)?, 16).ok().filter(|_| of_device)?;
        Some(IpAddr::from(Ipv6Addr::from(address)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const V4: &str = "Idx\tDevice    : Count Querier\tGroup    Users Timer\tReporter
1\tlo        :     1      V3
\t\t\t\t010000E0     1 0:00000000\t\t0
12\tbat0      :     2      V3
\t\t\t\t030201EF     1 0:00000000\t\t0
\t\t\t\t010000E0     1 0:00000000\t\t0
13\ta name:    :     1      V3
\t\t\t\t090909EF     1 0:00000000\t\t0
";
    const V6: &str = "1    lo              ff020000000000000000000000000001     1 0000000C 0
12   bat0            ff0e0000000000000000000000000005     1 00000004 0
12   bat0            ff020000000000000000000000000001     1 0000000C 0
13   tap1            ff0e0000000000000000000000000006     1 00000004 0
";

    #[test]
    #[cfg(target_endian = "little")]
    fn the_groups_of_one_device_are_read_off_the_kernels_lists() {
        let groups = |texts: [&str; 2]| texts.map(|text| text.parse::<IpAddr>().unwrap());
        assert_eq!(joined_v4(V4, 12).collect::<Vec<_>>(), groups(["239.1.2.3", "224.0.0.1"]));
        assert_eq!(joined_v6(V6, 12).collect::<Vec<_>>(), groups(["ff0e::5", "ff02::1"]));
        assert_eq!(joined_v4(V4, 1).count() + joined_v6(V6, 1).count(), 2);
        assert_eq!(joined_v4(V4, 2).count() + joined_v6(V6, 2).count(), 0);
    }

    #[test]
    fn other_text_is_no_group() {
        for text in ["", "\n\n", "12\n", "x\n12 bat0\n", "x\n12 bat0\n\t\n\tZZ 1\n", "12 bat0 xyz 1", "12"] {
            assert_eq!((joined_v4(text, 12).count(), joined_v6(text, 12).count()), (0, 0), "{text:?}");
        }
    }

    #[test]
    fn a_list_that_cannot_be_read_changes_nothing_and_one_that_is_not_there_is_empty() {
        let mut groups = HostGroups::of("lo", Clock::starting_now()).unwrap();
        let group = |text: &str| text.parse::<IpAddr>().unwrap();
        groups.known = ["239.1.2.3", "0.0.0.0", "ff0e::5", "::"].map(group).into();
        let refused = || Err(io::Error::from_raw_os_error(nix::libc::EMFILE));
        assert_eq!(groups.joined(refused(), false), [group("239.1.2.3")]);
        assert_eq!(groups.joined(refused(), true), [group("ff0e::5")]);
        let absent = || read("/proc/thread-self/net/no-such-list");
        assert!(groups.joined(absent(), false).is_empty() && groups.joined(absent(), true).is_empty());
        assert!(read("/proc/thread-self/net").is_err(), "a directory");
    }

    #[test]
    fn each_change_is_told_once_and_joins_come_first() {
        let mut groups = HostGroups::of("lo", Clock::starting_now()).unwrap();
        let group = |text: &str| text.parse::<IpAddr>().unwrap();
        let mut told = |wanted: &[&str]| {
            groups.change_to(wanted.iter().map(|text| group(text)).collect());
            groups.changes.drain(..).map(|change| (change.group, change.joined)).collect::<Vec<_>>()
        };
        assert_eq!(told(&["239.1.2.3", "0.0.0.0"]), [(group("0.0.0.0"), true), (group("239.1.2.3"), true)]);
        assert_eq!(told(&["239.1.2.3", "0.0.0.0"]), []);
        assert_eq!(
            told(&["239.1.2.4"]),
            [(group("239.1.2.4"), true), (group("0.0.0.0"), false), (group("239.1.2.3"), false)]
        );
    }
}
