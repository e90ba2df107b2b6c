//! The tables of other nodes: their checksums, and their bounds.

use super::*;
use crate::wire::translation::{Checksum, DIFFERENCE, FULL_TABLE, REQUEST, RESPONSE, TableData, table_data};
use proptest::prelude::*;

const NOW: Instant = Instant::from_nanos(1_000_000_000_000);
const LIMITS: Limits = Limits { max_clients: 100, max_clients_of_node: 60 };

const ROOM: Room = Room { packet: 20_160, message: 1500 };

const fn node(last: u8) -> Mac {
    [2, 0, 0, 0, 0, last]
}

fn client(last: u8) -> Key {
    Key { vlan: (0x8000 * u16::from(last % 2)) | u16::from(last % 3), address: [2, 5, 0, 0, 0, last] }
}

/// Has the table take an announcement of these changes, whose checksums are wrong.
fn announce(table: &mut Translation, originator: Mac, ttvn: u8, changes: &[Change]) {
    let checksum = [Checksum { crc: 1, vlan: 9 }];
    let value = table_data(DIFFERENCE, ttvn, checksum.into_iter(), changes.iter().copied());
    table.receive_announcement(NOW, originator, TableData::parse(&value).unwrap());
}

fn change(flags: u8, key: Key) -> Change {
    Change { flags, address: key.address, vlan: key.vlan }
}

/// One step: what happens, the client, the node, and flags of a change.
fn step() -> impl Strategy<Value = (u8, u8, u8, u8)> {
    (0..5_u8, 0..12_u8, 0..4_u8, prop_oneof![Just(0), Just(0x10), Just(DELETED), Just(DELETED | ROAMED)])
}

proptest! {
    #[test]
    fn the_checksum_of_each_vlan_is_that_of_the_entries_that_count(steps in prop::collection::vec(step(), 1..80)) {
        let mut table = Translation::new(LIMITS);
        let mut ttvn = [0_u8; 4];
        for (what, which, at, flags) in steps {
            let (key, originator) = (client(which), node(at));
            match what {
                0 | 1 => {
                    ttvn[usize::from(at)] = ttvn[usize::from(at)].wrapping_add(1);
                    announce(&mut table, originator, ttvn[usize::from(at)], &[change(flags, key)]);
                }
                2 => table.hear(NOW, originator, key),
                3 => table.receive_roaming(NOW, originator, key),
                _ => _ = table.register(NOW, key, false, ROOM),
            }
            let mut pairs = 0;
            for at in 0..4 {
                let originator = node(at);
                table.global.node_mut(originator).update_checksums();
                let mut expected = BTreeMap::new();
                for Change { flags, address, vlan } in table.global.table(originator) {
                    *expected.entry(vlan).or_insert(0) ^= crc::of_entry(vlan, flags, address);
                }
                // A VLAN whose clients do not count yet has a checksum of none.
                let found: BTreeMap<u16, u32> =
                    table.global.node(originator).unwrap().checksums().map(|c| (c.vlan, c.crc)).collect();
                prop_assert!(expected.iter().all(|(vlan, crc)| found.get(vlan) == Some(crc)));
                prop_assert!(found.iter().all(|(vlan, crc)| expected.contains_key(vlan) || *crc == 0));
                pairs += table.global.iter().filter(|(_, announcer)| *announcer == originator).count();
            }
            prop_assert_eq!(pairs, table.global.iter().count());
            prop_assert_eq!(pairs, table.global.announcements());
        }
    }
}

#[test]
fn a_client_that_roams_changes_no_checksum_before_its_node_announces_that() {
    let mut table = Translation::new(LIMITS);
    let (first, second) = (Key { vlan: 0, ..client(1) }, Key { vlan: 0, ..client(2) });
    announce(&mut table, node(1), 1, &[change(0, first), change(0, second)]);
    let both = table.checksum_of(node(1), 0);
    table.register(NOW, first, false, ROOM);
    assert_eq!((table.is_roaming(first), table.checksum_of(node(1), 0)), (true, both));
    announce(&mut table, node(1), 2, &[change(DELETED | ROAMED, first)]);
    let one = crc::of_entry(0, 0, second.address);
    assert_eq!(table.checksum_of(node(1), 0), Some(one));
}

#[test]
fn a_client_that_many_nodes_announce_counts_for_each_and_has_64_at_most() {
    let mut table = Translation::new(LIMITS);
    let (shared, group) = (Key { vlan: 0, ..client(1) }, Key { vlan: 0, address: [1, 0, 0x5e, 0, 0, 1] });
    for at in 0..80 {
        announce(&mut table, node(at), 1, &[change(0, shared)]);
    }
    assert_eq!((table.global.iter().count(), table.counters.foreign_clients_refused), (64, 16));
    // Groups have no bound but that of all.
    for at in 0..80 {
        announce(&mut table, node(at), 2, &[change(0, group)]);
    }
    assert_eq!((table.global.iter().count(), table.len()), (100, 2));
    table.forget(node(0), true);
    assert_eq!(table.global.announcements(), 98);
    announce(&mut table, node(70), 3, &[change(0, group)]);
    assert_eq!(table.global.announcements(), 99);
}

#[test]
fn changes_are_kept_for_others_as_long_as_there_is_room() {
    let mut table = Translation::new(LIMITS);
    let changes: Vec<Change> = (0..40).map(|which| change(DELETED, client(which))).collect();
    for at in 0..4 {
        announce(&mut table, node(at), 1, &changes);
    }
    let kept: Vec<usize> =
        (0..4).map(|at| table.global.node(node(at)).unwrap().last_changes().len()).collect();
    assert_eq!(kept, [40, 40, 0, 0]);
    table.forget(node(0), true);
    announce(&mut table, node(2), 2, &changes);
    assert_eq!(table.global.node(node(2)).unwrap().last_changes().len(), 40);
    // A whole table leaves nothing to keep.
    let value = table_data(RESPONSE | FULL_TABLE, 2, std::iter::empty(), changes.iter().copied());
    table.receive_response(NOW, node(2), TableData::parse(&value).unwrap());
    assert!(table.global.node(node(2)).unwrap().last_changes().is_empty());
}

#[test]
fn a_node_whose_clients_find_no_room_is_asked_less_and_less_often_until_there_is_room() {
    let mut table = Translation::new(LIMITS);
    let clients = |from: u8| (from..from + 55).map(|last| change(0, Key { vlan: 0, ..client(last) }));
    for at in [1, 2] {
        announce(&mut table, node(at), 1, &clients(at * 60).collect::<Vec<_>>());
    }
    assert_eq!((table.len(), table.counters.foreign_clients_refused), (100, 1));
    // Node 2 announces the same once a second, and answers each time that it is asked.
    let checksum = [Checksum { crc: 7, vlan: 0 }];
    let message = table_data(DIFFERENCE, 1, checksum.into_iter(), std::iter::empty());
    let whole: Vec<Change> = clients(120).collect();
    let answer = table_data(RESPONSE | FULL_TABLE, 1, checksum.into_iter(), whole.iter().copied());
    let second = |table: &mut Translation, seconds: u64| {
        let now = NOW + Duration::from_secs(seconds);
        table.receive_announcement(now, node(2), TableData::parse(&message).unwrap());
        let asked = table.take_pending().len();
        if asked > 0 {
            table.receive_response(now, node(2), TableData::parse(&answer).unwrap());
        }
        asked > 0
    };
    table.take_pending();
    let asked: Vec<u64> = (1..1000).filter(|&seconds| second(&mut table, seconds)).collect();
    assert_eq!(asked, [6, 18, 42, 90, 186, 378, 570, 762, 954]);
    assert!(table.counters.requests_held_back > 900);
    // Another makes room: the next answer is taken whole, and its wrong checksum has it asked for each time, as always.
    table.forget(node(1), true);
    let asked: Vec<u64> = (1100..1160).filter(|&seconds| second(&mut table, seconds)).collect();
    assert_eq!((asked.len(), asked[0], table.len()), (14, 1146, 55));
}

#[test]
fn answers_stop_where_more_nodes_ask_than_there_may_be() {
    let mut table = Translation::new(LIMITS);
    let request = TableData::parse(&[REQUEST | FULL_TABLE, 0, 0, 0]).unwrap();
    let ask = |table: &mut Translation, now, number: usize| {
        let [.., a, b] = number.to_be_bytes();
        table.receive_request(now, [2, 7, 0, 0, a, b], None, request, 1500);
        table.take_pending().len()
    };
    let answers: usize = (0..=MAX_ANSWERED).map(|number| ask(&mut table, NOW, number)).sum();
    assert_eq!((answers, table.counters.requests_too_many), (MAX_ANSWERED, 1));
    assert_eq!(ask(&mut table, NOW, 0), 1, "one that had an answer before");
    let later = NOW + REQUEST_TIMEOUT;
    table.purge(later);
    assert_eq!(ask(&mut table, later, MAX_ANSWERED), 1);
}
