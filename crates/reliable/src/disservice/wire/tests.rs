//! Each packet is read as it was written, and what is wrong is named.

use proptest::prelude::*;

use super::request::{MAX_RUNS, MAX_SERVERS, MAX_WANTS};
use super::summary::{MAX_HEARD, MAX_HELD, MAX_SERIES};
use super::*;

const SENDER: MemberId = MemberId { node: 7, run: 2 };
const FROM: Sent = Sent { member: SENDER, transmission: 0x0304 };

fn id(publisher: MemberId) -> MessageId {
    MessageId { group: 0xAABB_CCDD, publisher, sequence: 300 }
}

fn shape() -> Shape {
    Shape { length: 2500, fragment: 1000, chunk: 2, digest: 0x1234_5678 }
}

fn data(symbol: Symbol<'_>) -> Data<'_> {
    Data {
        from: FROM,
        id: id(SENDER),
        shape: shape(),
        is_repair: false,
        is_last: true,
        is_local: false,
        lifetime: None,
        symbol,
    }
}

#[test]
fn a_fragment_of_the_publisher_is_these_bytes() {
    let bytes = [9; 500];
    let emitted = Packet::Data(data(Symbol::Fragment { index: 2, bytes: &bytes })).emit();
    let header: [u8; 26] = [
        0x61, 0x0A, 3, 4, 0, 0, 0, 7, 0, 2, // kind, flags last and own, transmission, sender
        0xAA, 0xBB, 0xCC, 0xDD, 0x41, 0x2C, // group, sequence number 300
        0x49, 0xC4, 0x03, 0xE8, 2, // length 2500, fragment 1000, chunk 2
        0x12, 0x34, 0x56, 0x78, 2, // digest, number of the fragment
    ];
    assert_eq!((&emitted[..26], &emitted[26..]), (&header[..], &bytes[..]));
}

#[test]
fn wants_for_combinations_of_short_messages_are_few_bytes() {
    let want = |sequence, chunk, count, last| {
        let unknown = vec![0..2, last..last + 1];
        Want {
            id: MessageId { sequence, ..id(SENDER) },
            missing: Missing::Combinations { chunk, count, unknown },
        }
    };
    let emitted = |wants: &[Want]| {
        let servers = vec![MemberId { node: 1, run: 1 }];
        let request =
            Request { from: FROM, is_again: false, neighbours: 1, heard: 2, servers, wants: wants.to_vec() };
        Packet::Request(request).emit()
    };
    let first = emitted(&[want(300, 0, 3, 5)]);
    // Form with the count less one, and bits of fragments 0, 1 and 5.
    let two = emitted(&[want(300, 0, 3, 5), want(307, 0, 2, 5)]);
    assert_eq!(two[first.len()..], [0x87, 7, 0x23]);
    assert_eq!(two[..first.len()], first);
    // What that form has no room for is in the longer one.
    for (longer, bytes) in [(want(307, 1, 2, 5), 7), (want(307, 0, 33, 5), 7), (want(307, 0, 2, 62), 14)] {
        let found = emitted(&[want(300, 0, 3, 5), longer.clone()]);
        assert_eq!(found.len() - first.len(), bytes, "{longer:?}");
        assert_eq!(found[first.len()], 0x82);
    }
    assert_eq!(emitted(&[want(300, 0, 3, 5), want(307, 0, 32, 61)]).len() - first.len(), 10);
}

#[test]
fn fragments_and_chunks_divide_a_message() {
    let shape = shape();
    assert_eq!((shape.fragments(), shape.fragment_len(1), shape.fragment_len(2)), (3, 1000, 500));
    assert_eq!((shape.fragments_of(0), shape.fragments_of(1), shape.fragments_of(2)), (0..2, 2..3, 3..3));
    assert_eq!((shape.chunk_of(1), shape.chunk_of(2)), (0, 1));
    let empty = Shape { length: 0, ..shape };
    assert_eq!((empty.fragments(), empty.fragment_len(0)), (1, 0), "an empty message has a packet");
}

#[test]
fn what_is_wrong_is_named() {
    let wrong = |packet: Packet<'_>| Packet::parse(&packet.emit()).unwrap_err().field;
    let fragment = |index, bytes| Packet::Data(data(Symbol::Fragment { index, bytes }));
    assert_eq!(wrong(fragment(3, &[])), "fragment's number");
    assert_eq!(wrong(fragment(2, &[0; 499])), "fragment's length");
    let combination =
        |chunk, coefficients, bytes| Packet::Data(data(Symbol::Combination { chunk, coefficients, bytes }));
    assert_eq!(wrong(combination(2, &[1], &[0; 1000])), "number of chunk");
    assert_eq!(wrong(combination(0, &[1, 1], &[0; 999])), "length of combination");
    for (shape, field) in
        [(Shape { fragment: 0, ..shape() }, "fragment"), (Shape { chunk: 0, ..shape() }, "chunk")]
    {
        let bytes = &[0; 500];
        let symbol = Symbol::Fragment { index: 0, bytes };
        assert_eq!(wrong(Packet::Data(Data { shape, ..data(symbol) })), field);
    }
    let want = |missing| Want { id: id(SENDER), missing };
    let request = |servers, wants| {
        Packet::Request(Request { from: FROM, is_again: false, neighbours: 1, heard: 2, servers, wants })
    };
    assert_eq!(wrong(request(vec![SENDER; MAX_SERVERS + 1], vec![])), "number of servers");
    assert_eq!(wrong(request(vec![], vec![want(Missing::Whole(0))])), "number of messages");
    assert_eq!(wrong(request(vec![], vec![want(Missing::Whole(1)); MAX_WANTS + 1])), "number of wants");
    let runs: Vec<_> = (0..=MAX_RUNS as u32).map(|at| 2 * at + 1..2 * at + 2).collect();
    assert_eq!(wrong(request(vec![], vec![want(Missing::Fragments(runs.clone()))])), "number of runs");
    let far: Vec<_> = std::iter::once(MAX_NUMBER - 1..MAX_NUMBER + 1).collect();
    assert_eq!(wrong(request(vec![], vec![want(Missing::Fragments(far))])), "length of run");
    let series = |held| Series { group: 1, publisher: SENDER, is_wanted: true, newest: 3, held, said: None };
    let summary =
        |heard, series| Packet::Summary(Summary { from: FROM, neighbours: 1, heard, is_all: true, series });
    assert_eq!(wrong(summary(vec![1; MAX_HEARD + 1], vec![])), "number of nodes");
    assert_eq!(wrong(summary(vec![], vec![series(vec![]); MAX_SERIES + 1])), "number of series");
    assert_eq!(wrong(summary(vec![], vec![series(runs[..=MAX_HELD].to_vec())])), "number of runs");
    for said in [4..12, 5..11, MAX_NUMBER - 1..MAX_NUMBER + 1] {
        let series = Series { said: Some(said), ..series(vec![4..5, 10..12]) };
        let is_wrong = series.said != Some(4..12);
        let read = Packet::parse(&summary(vec![], vec![series]).emit()).map(|_| ());
        assert_eq!(read, if is_wrong { Err(Malformed { field: "numbers said" }) } else { Ok(()) });
    }
    assert_eq!(Packet::parse(&[0x64, 0, 0, 0, 0, 0, 0, 0, 0, 0]).unwrap_err().field, "kind");
}

fn member() -> impl Strategy<Value = MemberId> {
    (any::<u32>(), any::<u16>()).prop_map(|(node, run)| MemberId { node, run })
}

fn message() -> impl Strategy<Value = MessageId> {
    (any::<u32>(), member(), 0..MAX_NUMBER).prop_map(|(group, publisher, sequence)| MessageId {
        group,
        publisher,
        sequence,
    })
}

fn runs(max: usize) -> impl Strategy<Value = Vec<core::ops::Range<u32>>> {
    prop::collection::vec((0..300_u32, 1..300_u32), 0..max).prop_map(|gaps| {
        let mut at = 0;
        let mut run = |(gap, len)| {
            let first = at + gap;
            at = first + len;
            first..at
        };
        gaps.into_iter().map(&mut run).collect()
    })
}

/// Fragments of a chunk from these on, as runs between which there are others.
fn of_chunk(
    first: impl Strategy<Value = u32>,
    len: u32,
) -> impl Strategy<Value = Vec<core::ops::Range<u32>>> {
    let indices = prop::collection::btree_set(0..len, 0..40);
    (first, indices).prop_map(|(first, indices)| {
        let mut runs = crate::runs::Runs::new();
        indices.into_iter().for_each(|index| runs.insert((first + index).into()));
        runs.ranges().collect()
    })
}

fn missing() -> impl Strategy<Value = Missing> {
    prop_oneof![
        (1..MAX_NUMBER).prop_map(Missing::Whole),
        runs(20).prop_map(Missing::Fragments),
        (0..MAX_NUMBER, any::<u8>(), of_chunk(0..MAX_NUMBER - 256, 256)).prop_map(combinations),
        // Around the bounds of the form that is for first chunks.
        (0..2_u32, 0..40_u8, of_chunk(Just(0), 64)).prop_map(combinations),
    ]
}

fn combinations((chunk, count, unknown): (u32, u8, Vec<core::ops::Range<u32>>)) -> Missing {
    Missing::Combinations { chunk, count, unknown }
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(
        sender in member(),
        transmission in any::<u16>(),
        id in message(),
        flags in any::<(bool, bool, bool)>(),
        lifetime in any::<Option<u32>>(),
        servers in prop::collection::vec(member(), 0..MAX_SERVERS),
        wants in prop::collection::vec((message(), any::<bool>(), missing()), 0..9),
        heard in prop::collection::vec(any::<u32>(), 0..MAX_HEARD),
        series in prop::collection::vec((any::<u32>(), member(), any::<bool>(), 0..MAX_NUMBER, runs(MAX_HELD), 0..3_u32), 0..9),
        bytes in prop::collection::vec(any::<u8>(), 1..99),
    ) {
        let (is_repair, is_last, is_local) = flags;
        let shape = Shape { length: 5 * bytes.len() as u32, fragment: bytes.len() as u16, chunk: 3, digest: 9 };
        let from = Sent { member: sender, transmission };
        let one_chunk = Shape { length: (2 * bytes.len() - bytes.len() / 2) as u32, chunk: 2, ..shape };
        let data = |id, symbol| Data { from, id, shape, is_repair, is_last, is_local, lifetime, symbol };
        let own = MessageId { publisher: sender, ..id };
        // Some of one series, in any order.
        let series_of = |id: MessageId, is_same| if is_same { MessageId { sequence: id.sequence, ..own } } else { id };
        let wants = wants.into_iter().map(|(id, is_same, missing)| Want { id: series_of(id, is_same), missing }).collect();
        let series = series.into_iter().map(|(group, publisher, is_wanted, newest, held, around): (_, _, _, _, Vec<core::ops::Range<u32>>, _)| {
            let ends = held.first().zip(held.last()).map(|(first, last)| (first.start, last.end));
            let said = ends.filter(|_| around > 0).map(|(first, end)| first.saturating_sub(around)..end + around);
            Series { group, publisher, is_wanted, newest, held, said }
        }).collect();
        let packets = [
            Packet::Data(data(id, Symbol::Fragment { index: 4, bytes: &bytes })),
            Packet::Data(data(own, Symbol::Combination { chunk: 1, coefficients: &[1, 2], bytes: &bytes })),
            Packet::Data(Data { shape: one_chunk, ..data(id, Symbol::Combination { chunk: 0, coefficients: &[1, 2], bytes: &bytes }) }),
            Packet::Request(Request { from, is_again: is_last, neighbours: 5, heard: 7, servers, wants }),
            Packet::Summary(Summary { from, neighbours: 5, heard, is_all: is_last, series }),
        ];
        for packet in packets {
            let emitted = packet.emit();
            prop_assert_eq!(Packet::parse(&emitted), Ok(packet.clone()));
            if let Packet::Data(Data { symbol: Symbol::Fragment { bytes, .. }, .. }) = packet {
                prop_assert!(emitted.len() - bytes.len() <= DATA_OVERHEAD);
            }
        }
    }

    #[test]
    fn no_bytes_are_too_bad(bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0x61..=0x63_u8) {
        let mut bytes = bytes;
        if let Some(first) = bytes.first_mut() {
            *first = kind;
        }
        let _ = Packet::parse(&bytes);
    }
}
