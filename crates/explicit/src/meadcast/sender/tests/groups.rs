use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

#[test]
fn a_router_with_few_receivers_and_none_below_gives_them_to_the_one_above() {
    let named_paths: [(&str, &[&str]); 4] =
        [("E1", &["R1", "R2"]), ("E2", &["R1", "R3"]), ("E3", &["R1", "R4"]), ("E4", &["R5"])];
    let of = |config: Config| all_names(&groups(&named_paths, &config));
    let (packets, unicast) = of(Config::default());
    assert_eq!((packets, unicast.as_str()), (vec!["R1 E1 E2 E3".to_owned()], "E4"));
    let (packets, unicast) = of(Config { min_leaves: 1, ..Config::default() });
    assert_eq!((packets, unicast.as_str()), (vec!["R2 E1 R3 E2 R4 E3".to_owned(), "R5 E4".to_owned()], ""));
    // R1 has three routers below it, of which fewer than four do not hold it; so all goes to the sender.
    let (packets, unicast) = of(Config { min_leaves: 4, min_routers: 4, ..Config::default() });
    assert_eq!((packets, unicast.as_str()), (vec![], "E1 E2 E3 E4"));
}

#[test]
fn receivers_of_one_router_are_split_where_they_must_be_and_where_they_may() {
    let (r1, r2): (&[&str], &[&str]) = (&["R1"], &["R1", "R2"]);
    let many: Vec<(&str, &[&str])> = ["E1", "E2", "E3", "E4", "E5", "E6", "E7"].map(|name| (name, r1)).into();
    let of = |named_paths: &[(&str, &[&str])], config: Config| all_names(&groups(named_paths, &config)).0;
    let config = Config { max: 4, ..Config::default() };
    assert_eq!(of(&many, config), ["R1 E1 E2 E3", "R1 E4 E5 E6", "R1 E7"]);
    let mut two: Vec<(&str, &[&str])> = ["E1", "E2", "E3"].map(|name| (name, r2)).into();
    two.extend(["E4", "E5", "E6"].map(|name| (name, r1)));
    let config = Config { max: 7, ok: Some(7), ..Config::default() };
    assert_eq!(of(&two, config), ["R2 E1 E2 E3", "R1 E4 E5 E6"]);
    assert_eq!(of(&two, Config { split: true, ..config }), ["R2 E1 E2 E3 R1 E4 E5", "R1 E6"]);
    // Those of R1 have to be split in any case where there are as many as a packet has addresses.
    two.extend(["E7", "E8", "E9"].map(|name| (name, r1)));
    assert_eq!(of(&two, config), ["R2 E1 E2 E3", "R1 E4 E5 E6 E7 E8 E9"]);
    two.push(("E10", r1));
    assert_eq!(of(&two, config), ["R2 E1 E2 E3 R1 E4 E5", "R1 E6 E7 E8 E9 E10"]);
}

#[test]
fn receivers_are_merged_no_farther_than_the_distance() {
    let named_paths: [(&str, &[&str]); 6] = [
        ("E1", &["R1", "R2", "R4"]),
        ("E2", &["R1", "R2", "R4"]),
        ("E3", &["R1", "R2", "R5"]),
        ("E4", &["R1", "R2", "R5"]),
        ("E5", &["R1", "R3"]),
        ("E6", &["R1", "R3"]),
    ];
    let of = |merge| {
        all_names(&groups(&named_paths, &Config { merge, max: 12, ok: Some(12), ..Config::default() })).0
    };
    assert_eq!(of(0), ["R4 E1 E2 R5 E3 E4 R3 E5 E6"]);
    assert_eq!(of(1), ["R2 E1 E2 E3 E4 R3 E5 E6"]);
    assert_eq!(of(2), ["R1 E1 E2 E3 E4 E5 E6"]);
    // What has only the sender in common is not merged, and not in one packet.
    let apart: [(&str, &[&str]); 4] = [("E1", &["R1"]), ("E2", &["R1"]), ("E3", &["R2"]), ("E4", &["R2"])];
    let (packets, _) = all_names(&groups(&apart, &Config { merge: 9, ..Config::default() }));
    assert_eq!(packets, ["R1 E1 E2", "R2 E3 E4"]);
}

/// By the hops to the first router and to the one that serves until then, as in the thesis' program.
#[test]
fn a_router_may_be_farther_from_the_one_that_serves_it_than_the_range() {
    let named_paths: [(&str, &[&str]); 6] = [
        ("E1", &["R1", "R2", "R4"]),
        ("E2", &["R1", "R2", "R4"]),
        ("E3", &["R1", "R3", "R5", "R6"]),
        ("E4", &["R1", "R3", "R5", "R6"]),
        ("E5", &["R1", "R7", "R8", "R9"]),
        ("E6", &["R1", "R7", "R8", "R9"]),
    ];
    let of = |merge| {
        all_names(&groups(&named_paths, &Config { merge, max: 12, ok: Some(12), ..Config::default() })).0
    };
    assert_eq!(of(1), ["R4 E1 E2 R6 E3 E4 R9 E5 E6"]);
    // R6 is one hop farther than R4, which served until then; R9 is three farther than R1.
    assert_eq!(of(2), ["R1 E1 E2 E3 E4 R9 E5 E6"]);
    assert_eq!(of(3), ["R1 E1 E2 E3 E4 E5 E6"]);
}

#[test]
fn a_router_on_two_ways_is_listed_once() {
    // R2 is behind R1 for some and behind R3 for others, as while routes change.
    let named_paths: [(&str, &[&str]); 4] = [
        ("E1", &["R9", "R1", "R2"]),
        ("E2", &["R9", "R1", "R2"]),
        ("E3", &["R9", "R3", "R2"]),
        ("E4", &["R9", "R3", "R2"]),
    ];
    for merge in 0..4 {
        let (packets, _) = all_names(&groups(&named_paths, &Config { merge, ..Config::default() }));
        assert_eq!(packets, ["R2 E1 E2 E3 E4"], "{merge}");
    }
}

#[test]
fn receivers_are_not_merged_behind_a_router_that_the_list_has_already() {
    // R7 and R8 are as near to R1 as merging allows, but R6 came between.
    let named_paths: [(&str, &[&str]); 10] = [
        ("E1", &["R1", "R2", "R4"]),
        ("E2", &["R1", "R2", "R4"]),
        ("E3", &["R1"]),
        ("E4", &["R1"]),
        ("E5", &["R1", "R3", "R6"]),
        ("E6", &["R1", "R3", "R6"]),
        ("E7", &["R1", "R7"]),
        ("E8", &["R1", "R7"]),
        ("E9", &["R1", "R8"]),
        ("E10", &["R1", "R8"]),
    ];
    let config = Config { merge: 1, max: 32, ok: Some(32), ..Config::default() };
    let (packets, _) = all_names(&groups(&named_paths, &config));
    assert_eq!(packets, ["R4 E1 E2 R1 E3 E4 R6 E5 E6 R7 E7 E8 R8 E9 E10"]);
}

#[test]
fn a_lost_response_is_made_up_for_by_the_way_of_another_receiver() {
    let (receivers, mut paths) =
        paths(&[("E1", &["R1", "R2"]), ("E2", &["R1", "R2"]), ("E3", &["R1", "R2", "R3"])]);
    paths.get_mut(&named("E2")).unwrap().remove(&1);
    paths.get_mut(&named("E3")).unwrap().remove(&2);
    let tree = Tree::new(&receivers, &paths);
    assert_eq!(tree.routers(), 3, "{tree}");
    // R3 is alone in knowing what is before it.
    assert!(tree.to_string().ends_with("    fd14::1:3 (3)\n      - fd14::2:3\n"), "{tree}");
}

/// Paths to up to 25 receivers, on a random tree of routers or, if they contradict each other, on none.
fn random_paths() -> impl Strategy<Value = Vec<(Ipv6Addr, Vec<Ipv6Addr>)>> {
    let index = any::<prop::sample::Index>;
    let tree = proptest::collection::vec(index(), 1..10);
    let receivers = proptest::collection::vec((index(), 0_usize..5, any::<bool>()), 0..25);
    (tree, receivers, any::<bool>()).prop_map(|(above, receivers, contradicts)| {
        let path = |mut place: usize| {
            let mut path = vec![place];
            while place > 0 {
                place = above[place].index(place);
                path.push(place);
            }
            path.reverse();
            path
        };
        let router = |place: usize| named(&format!("R{}", place + 1));
        let drawn = receivers.into_iter().enumerate().map(|(number, (place, turn, has_none))| {
            let mut path: Vec<_> = path(place.index(above.len())).into_iter().map(router).collect();
            if contradicts && !path.is_empty() {
                let turn = turn % path.len();
                path.rotate_left(turn);
            }
            (named(&format!("E{}", number + 1)), if has_none && turn == 0 { vec![] } else { path })
        });
        drawn.collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn each_receiver_is_in_one_packet_behind_a_router_on_its_way_or_served_by_unicast(
        named_paths in random_paths(),
        (max, ok, merge) in (2_usize..=32, any::<Option<u8>>(), 0_u8..4),
        (min_leaves, min_routers, split) in (0_usize..4, 0_usize..4, any::<bool>()),
    ) {
        let ok = ok.map(|ok| usize::from(ok) % 40);
        let config = Config { max, ok, merge, min_leaves, min_routers, split, ..Config::default() };
        let receivers: Vec<Ipv6Addr> = named_paths.iter().map(|(receiver, _)| *receiver).collect();
        let paths: BTreeMap<Ipv6Addr, Path> =
            named_paths.iter().map(|(receiver, path)| (*receiver, (1..).zip(path.iter().copied()).collect())).collect();
        let mut tree = Tree::new(&receivers, &paths);
        tree.cut(min_leaves, min_routers);
        let groups = Groups::new(&tree, &config, at("fd14::1"), &receivers);
        let mut served = BTreeSet::new();
        for receiver in &groups.unicast {
            prop_assert!(served.insert(*receiver));
        }
        for group in &groups.packets {
            prop_assert!(group.list.len() <= max, "{} of {max}", group.list.len());
            prop_assert!(group.list.len() >= 2);
            let payload = [0; 8];
            let kind = Kind::Data { delivery: group.routers, routers: group.routers };
            let first = group.receivers().next().unwrap();
            let packet = Packet {
                traffic: 0, hop_limit: 64, source: at("fd14::1"), destination: first, kind, hops: 0, hold: 0, reserved: 0,
                list: &group.list, ports: None, protocol: 17, payload: &payload,
            };
            prop_assert!(Packet::parse(&packet.emit()).is_ok(), "every list is one that routers take: {}", groups);
            let mut router = None;
            for (place, address) in group.list.iter().enumerate() {
                let address = Ipv6Addr::from(*address);
                if group.routers.has(place) {
                    router = Some(address);
                    continue;
                }
                prop_assert!(served.insert(address), "{} twice", address);
                let path = paths[&address].values().copied().collect::<Vec<_>>();
                prop_assert!(path.contains(&router.unwrap()), "{} is not on {:?}", router.unwrap(), path);
            }
        }
        prop_assert_eq!(served.len(), receivers.len());
    }
}
