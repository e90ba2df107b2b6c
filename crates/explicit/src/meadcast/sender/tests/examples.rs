//! The worked examples of the thesis (section 4.3.2), on the tree of figure 4.6.

use super::*;

/// The tree of figure 4.6: R1 below the sender, with two receivers, and R2 and R3 below it with three each.
const FIGURE: [(&str, &[&str]); 8] = [
    ("E1", &["R1", "R2"]),
    ("E2", &["R1", "R2"]),
    ("E3", &["R1", "R2"]),
    ("E4", &["R1"]),
    ("E5", &["R1"]),
    ("E6", &["R1", "R3"]),
    ("E7", &["R1", "R3"]),
    ("E8", &["R1", "R3"]),
];

fn example(config: Config) -> (Vec<String>, String) {
    all_names(&groups(&FIGURE, &config))
}

#[test]
fn example_1_short_lists() {
    let (packets, unicast) = example(Config { max: 5, ..Config::default() });
    assert_eq!(packets, ["R2 E1 E2 E3", "R3 E6 E7 E8", "R1 E4 E5"]);
    assert_eq!(unicast, "");
}

#[test]
fn example_2_several_routers_in_a_list() {
    let (packets, unicast) = example(Config { max: 10, ..Config::default() });
    assert_eq!(packets, ["R2 E1 E2 E3 R1 E4 E5", "R3 E6 E7 E8"]);
    assert_eq!(unicast, "");
}

#[test]
fn example_3_merged_receivers() {
    let (packets, unicast) = example(Config { max: 10, merge: 1, ..Config::default() });
    assert_eq!(packets, ["R1 E1 E2 E3 E4 E5 E6 E7 E8"]);
    assert_eq!(unicast, "");
}

#[test]
fn example_4_long_enough_lists() {
    let (packets, unicast) = example(Config { max: 12, ok: Some(7), ..Config::default() });
    assert_eq!(packets, ["R2 E1 E2 E3 R1 E4 E5", "R3 E6 E7 E8"]);
    assert_eq!(unicast, "");
    // Without that, all fit one.
    let (packets, _) = example(Config { max: 12, ok: Some(12), ..Config::default() });
    assert_eq!(packets, ["R2 E1 E2 E3 R1 E4 E5 R3 E6 E7 E8"]);
}

#[test]
fn example_5_routers_with_few_receivers() {
    let (packets, unicast) = example(Config { max: 10, min_leaves: 3, ..Config::default() });
    assert_eq!(packets, ["R2 E1 E2 E3 R3 E6 E7 E8"]);
    assert_eq!(unicast, "E4 E5");
}

#[test]
fn figure_2_5_serves_a_single_receiver_by_unicast() {
    let figure: [(&str, &[&str]); 5] = [
        ("E1", &["R1", "R2", "R3"]),
        ("E2", &["R1", "R2", "R4", "R5"]),
        ("E3", &["R1", "R2", "R4", "R5"]),
        ("E4", &["R1", "R2", "R4", "R6"]),
        ("E5", &["R1", "R2", "R4", "R6"]),
    ];
    let (packets, unicast) = all_names(&groups(&figure, &Config::default()));
    assert_eq!((packets, unicast), (vec!["R5 E2 E3 R6 E4 E5".to_owned()], "E1".to_owned()));
}

#[test]
fn tree_and_groups_can_be_printed() {
    let (receivers, paths) = paths(&FIGURE[2..6]);
    let tree = Tree::new(&receivers, &paths);
    let expected = "sender\n  fd14::1:1 (1)\n    - fd14::2:4\n    - fd14::2:5\n    fd14::1:2 (2)\n      \
                    - fd14::2:3\n    fd14::1:3 (2)\n      - fd14::2:6\n";
    assert_eq!(tree.to_string(), expected);
    assert_eq!((tree.routers(), Tree::default().to_string().as_str()), (3, "sender\n"));
    let groups = groups(&FIGURE, &Config { max: 10, min_leaves: 3, ..Config::default() });
    let expected = "list | fd14::1:2 fd14::2:1 fd14::2:2 fd14::2:3 | fd14::1:3 fd14::2:6 fd14::2:7 fd14::2:8\n\
                    unicast: fd14::2:4 fd14::2:5\n";
    assert_eq!(groups.to_string(), expected);
}
