//! A port that is told which groups are wanted behind the others.

mod common;

use common::{Tested, leave, query, report, station};
use hopcast_bridge::bridge::{BridgePort, Config, Querier, RouterPort, Snooping, VlanFiltering};
use hopcast_core::Duration;
use hopcast_wire::membership::Version;

const GROUPS: [&str; 2] = ["239.1.2.3", "ff15::1:2"];
/// All groups of each version.
const ALL: [&str; 2] = ["0.0.0.0", "::"];
const QUERIERS: [&str; 2] = ["10.0.0.9", "fe80::9"];
const SECOND: Duration = Duration::from_secs(1);

/// A bridge of four ports, of which port 3 is told.
fn telling(querier: Option<Querier>) -> Config {
    let mut config =
        Config { snooping: Some(Snooping { querier, ..Snooping::default() }), ..common::plain(4) };
    config.ports[3].tell_memberships = true;
    config
}

fn all(joined: bool) -> Vec<(u32, String, bool)> {
    ALL.map(|all| (3, all.to_owned(), joined)).to_vec()
}

#[test]
fn without_a_querier_all_groups_are_wanted_whatever_is_reported() {
    let mut bridge = Tested::new(telling(None));
    assert_eq!(bridge.told(), all(true));
    for group in GROUPS {
        bridge.offer(1, &report(group, Version::V2, station(2)));
        assert_eq!(bridge.told(), [(3, group.to_owned(), true)]);
    }
    bridge.until(1000);
    assert_eq!(bridge.told(), GROUPS.map(|group| (3, group.to_owned(), false)), "nobody has asked again");
}

#[test]
fn a_querier_behind_the_port_makes_members_known_and_one_behind_another_does_not() {
    for (version, group) in GROUPS.into_iter().enumerate() {
        let mut bridge = Tested::new(telling(None));
        bridge.told();
        bridge.offer(3, &query(QUERIERS[version], None, SECOND, station(9)));
        assert_eq!(bridge.told(), [], "hosts have time to answer");
        bridge.offer(1, &report(group, Version::V2, station(2)));
        // Behind the port itself, where the mesh is.
        bridge.offer(3, &report(GROUPS[version], Version::V2, station(4)));
        assert_eq!(bridge.told(), [(3, group.to_owned(), true)]);
        bridge.until(1);
        assert_eq!(bridge.told(), [(3, ALL[version].to_owned(), false)]);
        bridge.until(255);
        assert_eq!(bridge.told(), [(3, ALL[version].to_owned(), true)], "it has gone");
        bridge.offer(2, &query(QUERIERS[version], None, SECOND, station(9)));
        bridge.until(257);
        assert_eq!(bridge.told(), []);
    }
}

#[test]
fn a_group_is_wanted_until_its_last_member_leaves_and_none_behind_the_port_itself() {
    let mut bridge = Tested::new(telling(Some(Querier::of(station(7)))));
    bridge.until(1);
    assert_eq!(bridge.told(), all(true));
    bridge.until(11);
    assert_eq!(bridge.told(), all(false));
    for group in GROUPS {
        bridge.offer(3, &report(group, Version::V2, station(4)));
        assert_eq!(bridge.told(), []);
        bridge.offer(1, &report(group, Version::V2, station(2)));
        bridge.offer(2, &report(group, Version::V2, station(3)));
        assert_eq!(bridge.told(), [(3, group.to_owned(), true)]);
    }
    for (at, port, expected) in [(20, 1, None), (30, 2, Some(false))] {
        bridge.until(at);
        for group in GROUPS {
            bridge.offer(port, &leave(group, station(port as u8 + 1)));
        }
        bridge.until(at + 3);
        let expected: Vec<_> = expected
            .into_iter()
            .flat_map(|joined| GROUPS.map(|group| (3, group.to_owned(), joined)))
            .collect();
        assert_eq!(bridge.told(), expected);
    }
}

#[test]
fn behind_a_router_all_groups_are_wanted() {
    let mut config = telling(Some(Querier::of(station(7))));
    config.ports[0].router = RouterPort::Always;
    let mut bridge = Tested::new(config);
    bridge.until(11);
    assert_eq!(bridge.told(), all(true));
}

#[test]
fn of_vlans_those_whose_frames_the_port_is_given_without_a_tag_count() {
    let mut config = telling(Some(Querier::of(station(7))));
    config.vlans = Some(VlanFiltering::default());
    config.ports = [1, 1, 2, 1].map(BridgePort::untagged).to_vec();
    config.ports[3].tell_memberships = true;
    let mut bridge = Tested::new(config);
    bridge.until(11);
    bridge.told();
    bridge.offer(2, &report(GROUPS[0], Version::V2, station(3)));
    assert_eq!(bridge.told(), []);
    bridge.offer(1, &report(GROUPS[0], Version::V2, station(2)));
    assert_eq!(bridge.told(), [(3, GROUPS[0].to_owned(), true)]);
}
