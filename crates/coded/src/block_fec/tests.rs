use std::collections::BTreeMap;

use hopcast_core::Seed;
use proptest::prelude::*;

use super::*;

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn datagram(payload: &[u8]) -> Datagram {
    datagram_to(2, payload)
}

fn datagram_to(node: u8, payload: &[u8]) -> Datagram {
    let [local, remote] = [1, node].map(|node| SocketAddr::from(([10, 0, 0, node], 7)));
    Datagram::new(local, remote, Buffer::copy_from(payload))
}

fn end(data: u8, parity: u8) -> BlockFec {
    BlockFec::new(BlockFecConfig { data, parity, ..BlockFecConfig::default() }, 0).unwrap()
}

/// A payload that no other number has, of a length of its own.
fn payload(number: u64) -> Vec<u8> {
    let mut random = Seed::new(number, 0).stream(&["payload"], 0);
    (0..random.below(60)).map(|_| random.bits() as u8).chain(number.to_be_bytes()).collect()
}

fn counter(machine: &BlockFec, name: &str) -> u64 {
    let mut found = BTreeMap::new();
    machine.counters(&mut |name, value| _ = found.insert(name, value));
    found[name]
}

fn packets(machine: &mut BlockFec) -> Vec<Datagram> {
    std::iter::from_fn(|| machine.poll(Instant::ZERO))
        .map(|(_, item)| match item {
            Item::Datagram(datagram) => datagram,
            other => panic!("{other:?}"),
        })
        .collect()
}

/// The packets that an end makes of datagrams with these numbers.
fn sent(from: &mut BlockFec, numbers: impl IntoIterator<Item = u64>) -> Vec<Datagram> {
    for number in numbers {
        from.handle(at(0), Port::Above(0), Item::Datagram(datagram(&payload(number))));
    }
    packets(from)
}

/// The payloads that an end hands up when these packets come.
fn delivered(to: &mut BlockFec, arriving: impl IntoIterator<Item = Datagram>) -> Vec<Vec<u8>> {
    for datagram in arriving {
        to.handle(at(0), Port::Below(0), Item::Datagram(datagram));
    }
    packets(to).into_iter().map(|datagram| datagram.payload.to_vec()).collect()
}

#[test]
fn any_as_many_packets_as_a_block_has_datagrams_bring_all_of_them() {
    // All 84 ways to lose three of nine, and all 126 to lose four.
    for lost in 0_u32..1 << 9 {
        let (mut from, mut to) = (end(6, 3), end(6, 3));
        let packets = sent(&mut from, 0..6);
        assert_eq!(packets.len(), 9);
        let arriving = packets.into_iter().enumerate().filter(|(place, _)| lost & 1 << place == 0);
        let mut found = delivered(&mut to, arriving.map(|(_, packet)| packet));
        found.sort();
        let sources_lost = (lost & 0x3f).count_ones() as usize;
        let expected = if lost.count_ones() <= 3 { 6 } else { 6 - sources_lost };
        assert_eq!(found.len(), expected, "{lost:b}");
        let mut all: Vec<_> = (0..6).map(payload).collect();
        all.sort();
        assert!(found.iter().all(|found| all.contains(found)), "{lost:b}");
        assert_eq!(counter(&to, "datagrams_recovered"), (expected - (6 - sources_lost)) as u64);
        // What is known to be whole is let go.
        let is_whole = lost.count_ones() <= 3 && lost >> 6 != 7;
        assert_eq!(to.held == 0, is_whole || lost == 0x1ff, "{lost:b}");
    }
}

#[test]
fn a_block_ends_a_while_after_its_first_datagram_with_its_share_of_parity() {
    for (datagrams, parity) in [(1, 1), (2, 1), (3, 2), (19, 10), (20, 10)] {
        let (mut from, mut to) = (end(20, 10), end(20, 10));
        from.handle(at(100), Port::Above(0), Item::Datagram(datagram(&payload(0))));
        for number in 1..datagrams {
            from.handle(at(103), Port::Above(0), Item::Datagram(datagram(&payload(number))));
        }
        if datagrams < 20 {
            assert_eq!(from.deadline(), Some(at(108)));
            from.wake(at(107));
            assert_eq!(counter(&from, "parity_sent"), 0);
            from.wake(at(108));
        }
        assert_eq!((from.deadline(), counter(&from, "parity_sent")), (None, parity));
        let packets = packets(&mut from);
        // As many as there is parity are lost.
        let found = delivered(&mut to, packets.into_iter().skip(parity as usize));
        assert_eq!(found.len() as u64, datagrams);
    }
}

#[test]
fn a_packet_is_longer_than_the_longest_datagram_of_its_block_by_no_more_than_is_said() {
    let mut from = end(3, 2);
    for len in [10, 1400, 0] {
        from.handle(at(0), Port::Above(0), Item::Datagram(datagram(&vec![7; len])));
    }
    let longest = packets(&mut from).iter().map(|packet| packet.payload.len()).max();
    assert_eq!(longest, Some(1400 + BlockFec::OVERHEAD));
}

#[test]
fn a_block_has_one_destination() {
    let mut from = end(4, 2);
    for node in [2, 2, 3] {
        from.handle(at(0), Port::Above(0), Item::Datagram(datagram_to(node, b"x")));
    }
    from.wake(at(8));
    let to: Vec<_> = packets(&mut from).iter().map(|packet| packet.remote.to_string()).collect();
    let [two, three] = ["10.0.0.2:7", "10.0.0.3:7"];
    assert_eq!(to, [two, two, two, three, three]);
}

#[test]
fn a_sender_that_begins_anew_is_heard_after_32_packets_and_a_late_packet_is_not() {
    let mut to = end(2, 1);
    let packets = sent(&mut end(2, 1), 0..400);
    assert_eq!(delivered(&mut to, packets.clone()).len(), 400);
    assert_eq!(delivered(&mut to, packets[..31].to_vec()), [[0; 0]; 0]);
    assert_eq!(counter(&to, "late_received"), 31);
    // One of a block that is held still counts as known.
    assert_eq!(delivered(&mut to, packets[591..592].to_vec()), [[0; 0]; 0]);
    assert_eq!(counter(&to, "duplicates_received"), 1);
    // 32 in a row.
    let again = delivered(&mut to, packets[..60].to_vec());
    assert_eq!(
        again.len(),
        20,
        "all of the block of the 32nd packet, with its parity, and of those after it"
    );
}

#[test]
fn the_first_block_that_comes_may_have_any_number() {
    for first in [0, 1, 1 << 31, u32::MAX] {
        let mut from = BlockFec::new(BlockFecConfig::default(), first).unwrap();
        let packets = sent(&mut from, 0..60);
        assert_eq!(delivered(&mut end(20, 10), packets.into_iter().skip(3)).len(), 60, "{first}");
    }
}

#[test]
fn what_is_held_is_bounded_in_blocks_and_in_bytes() {
    let mut to = end(20, 10);
    let prefix = |block: u32, index| prefix(block, index, 0).to_vec();
    for block in 0..40 {
        for index in 0..20 {
            let mut bytes = prefix(block, index);
            bytes.resize(60_000, 1);
            to.handle(at(0), Port::Below(0), Item::Datagram(datagram(&bytes)));
            packets(&mut to);
            assert!(to.held <= MAX_HELD);
        }
    }
    assert!(to.held > MAX_HELD / 2);
    for block in 100..400 {
        delivered(&mut to, [datagram(&prefix(block, 0))]);
        assert!(to.blocks.len() <= WINDOW as usize);
    }
    assert_eq!((to.blocks.len(), to.held), (WINDOW as usize, LENGTH * WINDOW as usize));
}

#[test]
fn parity_that_contradicts_itself_harms_no_datagram_that_comes() {
    let mut to = end(4, 2);
    let packets = sent(&mut end(4, 2), 0..4);
    let shorter = datagram(&prefix(0, 1, 3).into_iter().chain([0; 20]).collect::<Vec<_>>());
    let found = delivered(&mut to, [packets[4].clone(), shorter]);
    assert_eq!((found.len(), counter(&to, "malformed")), (0, 1));
    assert_eq!(delivered(&mut to, packets[..3].to_vec()).len(), 4);
}

#[test]
fn a_code_has_a_datagram_and_255_packets_at_most() {
    let new =
        |data, parity| BlockFec::new(BlockFecConfig { data, parity, ..BlockFecConfig::default() }, 0).is_ok();
    assert_eq!([new(0, 1), new(1, 0), new(128, 127), new(128, 128)], [false, true, true, false]);
}

proptest! {
    #[test]
    fn what_is_delivered_was_sent_and_once_whatever_is_lost_doubled_and_overtaken(
        datagrams in 1..200_u64,
        data in 1..24_u8,
        parity in 0..12_u8,
        fates in prop::collection::vec((0..4_u8, 0..6_usize), 1..400),
    ) {
        let (mut from, mut to) = (end(data, parity), end(data, parity));
        let packets = sent(&mut from, 0..datagrams);
        let mut arriving: Vec<(usize, Datagram)> = Vec::new();
        for (place, packet) in packets.into_iter().enumerate() {
            let (times, later) = fates[place % fates.len()];
            arriving.extend((0..times.min(2)).map(|_| (place + later, packet.clone())));
        }
        arriving.sort_by_key(|&(at, _)| at);
        let mut found = delivered(&mut to, arriving.into_iter().map(|(_, packet)| packet));
        let all: std::collections::BTreeSet<_> = (0..datagrams).map(payload).collect();
        prop_assert!(found.iter().all(|found| all.contains(found)));
        let count = found.len();
        found.sort();
        found.dedup();
        prop_assert_eq!(count, found.len());
    }

    #[test]
    fn nothing_that_arrives_does_any_harm(
        arriving in prop::collection::vec((0..5_u32, 0..6_u8, 0..5_u8, prop::collection::vec(any::<u8>(), 0..12)), 1..200),
        cut in 0..8_usize,
    ) {
        let mut to = end(4, 3);
        for (block, index, count, bytes) in &arriving {
            let mut packet = prefix(block.wrapping_mul(0x4000_0000), *index, *count).to_vec();
            packet.extend_from_slice(bytes);
            packet.truncate(packet.len() - cut.min(packet.len()));
            to.handle(at(0), Port::Below(0), Item::Datagram(datagram(&packet)));
            let held = to.blocks.iter_mut().map(|block| {
                block.symbols.iter().flatten().map(Vec::len).sum::<usize>()
                    + block.parity.iter().map(|(_, parity)| parity.len()).sum::<usize>()
            });
            prop_assert_eq!(held.sum::<usize>(), to.held);
        }
    }
}
