//! Parity: what it looks like, and what it brings back.

use hopcast_core::bytes::Malformed;
use hopcast_core::{Duration, Instant};

use crate::kcp::Fec;
use crate::kcp::fec::{Decoder, Encoder};

const MTU: usize = 1350;

fn packet(number: usize) -> Vec<u8> {
    (0..24 + 97 * number).map(|at| (at * 31 + number) as u8).collect()
}

/// Two groups of datagrams of different lengths.
fn groups(apart: Duration) -> Vec<(Vec<u8>, bool)> {
    let mut encoder = Encoder::new(Fec::KCPTUN).unwrap();
    let mut sent = Vec::new();
    let mut now = Instant::ZERO;
    for number in 0..20 {
        encoder.send(now, &packet(number % 12), |datagram, parity| sent.push((datagram, parity)));
        now += apart;
    }
    sent
}

#[test]
fn data_leaves_at_once_and_parity_follows_the_group() {
    let sent = groups(Duration::from_millis(1));
    let parity: Vec<usize> = (0..26).filter(|&at| sent[at].1).collect();
    assert_eq!(parity, [10, 11, 12, 23, 24, 25]);
    assert_eq!(sent[1].0[..8], [1, 0, 0, 0, 0xF1, 0, 123, 0]);
    assert_eq!(sent[1].0[8..], packet(1));
    assert_eq!(sent[12].0[..6], [12, 0, 0, 0, 0xF2, 0]);
    assert_eq!(sent[12].0.len(), 8 + packet(9).len(), "as long as the longest");
}

#[test]
fn what_is_sent_now_and_then_gets_no_parity_and_keeps_its_numbers() {
    let sent = groups(Duration::from_millis(500));
    assert_eq!(sent.len(), 20);
    assert_eq!(sent[10].0[0], 13);
}

#[test]
fn any_three_that_are_lost_come_back() {
    let sent = groups(Duration::from_millis(1));
    for lost in [[0, 1, 2], [0, 5, 9], [3, 10, 12], [7, 8, 11], [10, 11, 12]] {
        let mut decoder = Decoder::new(Fec::KCPTUN, MTU).unwrap();
        let mut arrived = Vec::new();
        let order = (0..13).rev().filter(|at| !lost.contains(at));
        for (datagram, _) in order.flat_map(|at| [&sent[at], &sent[at]]) {
            let taken = decoder.take(datagram).unwrap();
            arrived.extend(taken.packet.map(<[u8]>::to_vec));
            arrived.extend(taken.recovered);
        }
        arrived.sort_by_key(Vec::len);
        arrived.dedup();
        assert_eq!(arrived, (0..10).map(packet).collect::<Vec<_>>(), "without {lost:?}");
    }
}

#[test]
fn four_that_are_lost_stay_lost() {
    let sent = groups(Duration::from_millis(1));
    let mut decoder = Decoder::new(Fec::KCPTUN, MTU).unwrap();
    let recovered: usize =
        sent[4..13].iter().map(|(datagram, _)| decoder.take(datagram).unwrap().recovered.len()).sum();
    assert_eq!(recovered, 0);
}

#[test]
fn what_is_not_parity_is_malformed() {
    let sent = groups(Duration::from_millis(1));
    let mut decoder = Decoder::new(Fec::KCPTUN, MTU).unwrap();
    let mut data = sent[3].0.clone();
    let malformed = |field| Err(Malformed { field });
    assert_eq!(decoder.take(&data[..5]), malformed("flag"));
    assert_eq!(decoder.take(&data[..7]), malformed("size"));
    data[4] = 0xF2;
    assert_eq!(decoder.take(&data), malformed("flag"), "parity in a place of data");
    data[4] = 0xF1;
    data[6] += 1;
    assert_eq!(decoder.take(&data), malformed("size"), "longer than it is");
    let mut parity = sent[11].0.clone();
    parity.resize(MTU + 1, 0);
    assert_eq!(decoder.take(&parity), malformed("shard"), "longer than the MTU");
    parity[..4].fill(0xFF);
    assert_eq!(decoder.take(&parity[..100]), malformed("seqid"), "a number past the last group");
}

#[test]
fn a_group_can_have_any_size_up_to_255() {
    assert!(Fec::new(0, 3).is_err() && Fec::new(200, 56).is_err());
    assert_eq!(Fec::new(10, 3), Ok(Fec::KCPTUN));
}

#[test]
fn a_group_may_be_completed_until_four_newer_ones_have_begun() {
    let mut encoder = Encoder::new(Fec::KCPTUN).unwrap();
    let mut sent = Vec::new();
    for number in 0..50 {
        encoder.send(Instant::ZERO, &packet(number % 12), |datagram, _| sent.push(datagram));
    }
    // 13 datagrams a group. Of the first group one is missing until its first parity.
    for (newer, recovered) in [(3, 1), (4, 0)] {
        let mut decoder = Decoder::new(Fec::KCPTUN, MTU).unwrap();
        sent[1..10].iter().for_each(|datagram| assert!(decoder.take(datagram).is_ok()));
        (1..=newer).for_each(|group| assert!(decoder.take(&sent[13 * group]).is_ok()));
        assert_eq!(decoder.take(&sent[10]).unwrap().recovered.len(), recovered, "{newer} newer ones");
    }
}
