//! A group's state after each record, as the tables of RFC 3376 sections 6.4.1 and 6.4.2 have it.

use std::collections::BTreeSet;
use std::net::IpAddr;

use hopcast_core::{Duration, Instant};
use hopcast_wire::membership::{RecordType, Version};

use super::Config;
use super::config::Timing;
use super::group::{Group, Questions};

use RecordType::{Allow, Block, IsExclude, IsInclude, ToExclude, ToInclude};

/// When the group got its state; the reports come 100 s later.
const THEN: Instant = Instant::ZERO;
/// *Group Membership Interval*: twice 125 s and 10 s.
const WHOLE: u64 = 260;
/// Remaining time of timers that were set at [`THEN`], in seconds.
const REST: u64 = 160;

fn timing() -> Timing {
    Config::default().timing()
}

fn now() -> Instant {
    THEN + Duration::from_secs(100)
}

fn source(letter: char) -> IpAddr {
    [10, 0, 0, letter as u8].into()
}

fn sources(letters: &str) -> BTreeSet<IpAddr> {
    letters.chars().map(source).collect()
}

/// INCLUDE (A).
fn include(wanted: &str) -> Group {
    let mut group = Group::default();
    group.report(THEN, IsInclude, sources(wanted), &timing());
    group
}

/// EXCLUDE (X, Y).
fn exclude(wanted: &str, excluded: &str) -> Group {
    let mut group = Group::default();
    group.report(THEN, IsExclude, sources(excluded), &timing());
    group.report(THEN, IsInclude, sources(wanted), &timing());
    group
}

/// The group timer in seconds, and the sources with theirs.
fn state(group: &Group) -> (Option<u64>, Vec<(char, Option<u64>)>) {
    let left = |until: Option<Instant>| until.map(|until| until.since(now()).as_millis() / 1000);
    let (timer, sources) = group.timers();
    let letter = |source: IpAddr| match source {
        IpAddr::V4(source) => char::from(source.octets()[3]),
        IpAddr::V6(_) => panic!("IPv4"),
    };
    (left(timer), sources.map(|(source, until)| (letter(source), left(until))).collect())
}

fn report(group: &mut Group, kind: RecordType, named: &str) -> Questions {
    group.report(now(), kind, sources(named), &timing())
}

fn asks(group: bool, named: &str) -> Questions {
    Questions { group, sources: sources(named) }
}

#[test]
fn sources_that_are_named_are_wanted_anew() {
    for kind in [IsInclude, Allow] {
        let mut group = include("ab");
        assert_eq!(report(&mut group, kind, "bc"), asks(false, ""));
        assert_eq!(state(&group), (None, vec![('a', Some(REST)), ('b', Some(WHOLE)), ('c', Some(WHOLE))]));
        let mut group = exclude("a", "bc");
        assert_eq!(report(&mut group, kind, "bd"), asks(false, ""));
        let expected = vec![('a', Some(REST)), ('b', Some(WHOLE)), ('c', None), ('d', Some(WHOLE))];
        assert_eq!(state(&group), (Some(REST), expected));
    }
}

#[test]
fn a_member_that_wants_all_but_some_makes_the_group_exclude() {
    for (kind, questions) in [(IsExclude, asks(false, "")), (ToExclude, asks(false, "b"))] {
        let mut group = include("ab");
        assert_eq!(report(&mut group, kind, "bc"), questions);
        assert_eq!(state(&group), (Some(WHOLE), vec![('b', Some(REST)), ('c', None)]));
    }
}

#[test]
fn of_several_exceptions_the_common_ones_stay() {
    let mut group = exclude("ab", "cd");
    assert_eq!(report(&mut group, IsExclude, "bce"), asks(false, ""));
    assert_eq!(state(&group), (Some(WHOLE), vec![('b', Some(REST)), ('c', None), ('e', Some(WHOLE))]));
    let mut group = exclude("ab", "cd");
    assert_eq!(report(&mut group, ToExclude, "bce"), asks(false, "be"));
    assert_eq!(state(&group), (Some(WHOLE), vec![('b', Some(REST)), ('c', None), ('e', Some(REST))]));
}

#[test]
fn a_block_asks_for_what_others_may_still_want() {
    let mut group = include("ab");
    assert_eq!(report(&mut group, Block, "b"), asks(false, "b"));
    assert_eq!(state(&group), (None, vec![('a', Some(REST)), ('b', Some(REST))]));
    let mut group = exclude("a", "b");
    assert_eq!(report(&mut group, Block, "abc"), asks(false, "ac"));
    assert_eq!(state(&group), (Some(REST), vec![('a', Some(REST)), ('b', None), ('c', Some(REST))]));
}

#[test]
fn a_change_to_include_asks_for_the_rest() {
    let mut group = include("ab");
    assert_eq!(report(&mut group, ToInclude, "bc"), asks(false, "a"));
    assert_eq!(state(&group), (None, vec![('a', Some(REST)), ('b', Some(WHOLE)), ('c', Some(WHOLE))]));
    let mut group = exclude("ab", "cd");
    assert_eq!(report(&mut group, ToInclude, "bc"), asks(true, "a"));
    let expected = vec![('a', Some(REST)), ('b', Some(WHOLE)), ('c', Some(WHOLE)), ('d', None)];
    assert_eq!(state(&group), (Some(REST), expected));
}

#[test]
fn when_the_group_timer_ends_the_sources_that_are_wanted_by_name_remain() {
    let mut group = exclude("", "bc");
    report(&mut group, IsInclude, "a");
    group.expire(THEN + Duration::from_secs(WHOLE));
    assert_eq!(state(&group), (None, vec![('a', Some(WHOLE))]));
    assert_eq!(group.wanted(), BTreeSet::from([Some(source('a'))]));
    group.expire(now() + Duration::from_secs(WHOLE));
    assert!(group.is_over());
}

#[test]
fn when_a_source_timer_ends_the_source_is_excluded_or_forgotten() {
    let mut group = exclude("a", "");
    report(&mut group, IsExclude, "a");
    assert!(group.forwards(source('a')) && group.forwards(source('z')));
    group.expire(THEN + Duration::from_secs(WHOLE));
    assert_eq!(state(&group), (Some(WHOLE), vec![('a', None)]));
    assert!(!group.forwards(source('a')) && group.forwards(source('z')));
    let mut group = include("a");
    assert!(group.forwards(source('a')) && !group.forwards(source('z')));
    group.expire(THEN + Duration::from_secs(WHOLE));
    assert!(group.is_over() && !group.forwards(source('a')));
}

#[test]
fn what_older_members_cannot_say_is_not_held_against_them() {
    for (version, leaves) in [(Version::V2, true), (Version::V1, false)] {
        let mut group = exclude("", "");
        group.older_host(THEN, version, &timing());
        assert_eq!(report(&mut group, Block, "a"), asks(false, ""));
        assert_eq!(report(&mut group, ToExclude, "a"), asks(false, ""));
        assert_eq!(state(&group), (Some(WHOLE), vec![]));
        assert_eq!(report(&mut group, ToInclude, ""), asks(leaves, ""));
        // As soon as the older host counts as gone, all is said again.
        let later = THEN + Duration::from_secs(WHOLE);
        assert_eq!(group.report(later, Block, sources("a"), &timing()), asks(false, "a"));
    }
}
