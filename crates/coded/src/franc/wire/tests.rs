//! Packets as bytes, there and back.

use super::*;
use proptest::prelude::*;

const ADDRESSES: (Mac, Mac) = ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);

fn body(frame: &Buffer) -> &[u8] {
    &frame[ethernet::HEADER..]
}

#[test]
fn a_systematic_packet_is_these_bytes() {
    let config = Config::default();
    let enc = Enc {
        block: 0x0102_0304,
        sequence: 0x0506,
        added: 8,
        coding: Coding::Symbol(7),
        behind: false,
        ack: None,
        report: None,
        symbol: b"symbol\0\0\0",
    };
    let common = Common { association: 0xaabb_ccdd, up: true };
    let frame = emit(ADDRESSES, common, &Packet::Enc(enc), &config);
    assert_eq!(&frame[..14], b"\x02\0\0\0\0\x02\x02\0\0\0\0\x01\x88\xb6");
    let mut expected = *b"\x10\x08\0\0\0\0\xaa\xbb\xcc\xdd\x01\x02\x03\x04\x05\x06\x08\x07symbol";
    let check = check_of(&expected).to_be_bytes();
    expected[2..6].copy_from_slice(&check);
    assert_eq!(body(&frame), expected);
    let (read, packet) = parse(body(&frame), &config).unwrap();
    assert_eq!(read, common);
    let Packet::Enc(enc) = packet else { panic!("an ENC") };
    assert_eq!((enc.block, enc.sequence, enc.added, enc.symbol), (0x0102_0304, 0x0506, 8, &b"symbol"[..]));
}

#[test]
fn a_combination_with_all_that_may_go_with_it_is_these_bytes() {
    let config = Config::default().with_helper();
    let bits = |word| Bits::from_words([word, 0, 0, 0]);
    let known = |rank, word| Known { rank, symbols: bits(word) };
    let ack = Ack {
        number: 0x1112_1314,
        heard: Heard { next: 0x2122, received: 0x2324 },
        helper: Heard { next: 0x2526, received: 0x2728 },
        base: 0x3132_3334,
        blocks: vec![known(3, 0b101), known(1, 0)],
    };
    let heard = Heard { next: 0x4142, received: 0x4344 };
    let report = Report { heard, told: 0x4546, block: 0x0102_0303, known: known(2, 0b11) };
    let enc = Enc {
        block: 0x0102_0304,
        sequence: 0x0506,
        added: 64,
        coding: Coding::Sum(bits(0x8000_0000_0000_0001)),
        behind: true,
        ack: Some(ack),
        report: Some(report),
        symbol: b"s\0",
    };
    let common = Common { association: 0xaabb_ccdd, up: false };
    let frame = emit(ADDRESSES, common, &Packet::Enc(enc), &config);
    let head = body(&frame);
    // Behind, relayed, acknowledges, coded.
    assert_eq!(head[..2], [0x10, 0b0010_0111]);
    let sum = b"\x01\0\0\0\0\0\0\x80";
    let ack = b"\x11\x12\x13\x14\x21\x22\x23\x24\x25\x26\x27\x28\x31\x32\x33\x34\x02\
        \x03\x05\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0";
    let report = b"\x41\x42\x43\x44\x45\x46\x03\x02\x03\0\0\0\0\0\0\0";
    let expected = [&b"\xaa\xbb\xcc\xdd\x01\x02\x03\x04\x05\x06\x40"[..], sum, ack, report, b"s"].concat();
    assert_eq!(head[6..], expected);
    let up = emit(ADDRESSES, Common { up: true, ..common }, &hello(), &config);
    assert_eq!(body(&up)[..2], [0x12, 0b0000_1000]);
    assert_eq!(&body(&up)[10..], b"\0\0\0\x01\0\0\0\x02\0\0\0\x03");
    let vector = vec![9; config.vector_len()];
    let enc = Enc {
        block: 0,
        sequence: 0,
        added: 1,
        coding: Coding::Vector(&vector),
        behind: false,
        ack: None,
        report: None,
        symbol: b"s",
    };
    let frame = emit(ADDRESSES, common, &Packet::Enc(enc), &config);
    assert_eq!(body(&frame)[..2], [0x10, 0b0001_0001], "coded, with a vector");
    assert_eq!(body(&frame).len(), 10 + 7 + 64 + 1);
}

fn hello() -> Packet<'static> {
    Packet::Hello(Hello { own: 1, peer: 2, profile: 3 })
}

#[test]
fn an_acknowledgement_tells_of_eight_blocks_at_most() {
    let config = Config::default();
    let ack = |blocks| Ack { blocks: vec![Known::default(); blocks], ..Ack::default() };
    let common = Common { association: 1, up: true };
    for (blocks, expected) in [(8, true), (9, false)] {
        let frame = emit(ADDRESSES, common, &Packet::Ack(ack(blocks)), &config);
        assert_eq!(body(&frame).len(), 10 + 17 + blocks * 9);
        let found = parse(body(&frame), &config);
        assert_eq!(found.is_ok(), expected);
        assert!(expected || found == Err(Refused::Invalid { field: "count" }));
    }
}

#[test]
fn the_longest_frame_of_each_setting_fits_ethernet() {
    for config in [
        Config::default(),
        Config::default().with_helper(),
        Config::default().over(super::super::config::Field::Binary8).with_helper(),
        Config::paper(),
        Config::paper().with_helper(),
    ] {
        config.validate().unwrap();
        assert!(config.longest_frame() <= 1500, "{config:?}");
    }
}

#[test]
fn what_is_wrong_is_told_with_its_field() {
    let config = Config::default();
    let hello = Packet::Hello(Hello { own: 1, peer: 2, profile: 3 });
    let frame = emit(ADDRESSES, Common { association: 0, up: false }, &hello, &config);
    let resealed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = body(&frame).to_vec();
        change(&mut bytes);
        if bytes.len() >= 6 {
            let check = check_of(&bytes).to_be_bytes();
            bytes[2..6].copy_from_slice(&check);
        }
        parse(&bytes, &config).map(|_| ()).unwrap_err()
    };
    assert_eq!(resealed(&|bytes| bytes.truncate(5)), Refused::Truncated { field: "check" });
    assert_eq!(resealed(&|bytes| bytes.truncate(20)), Refused::Truncated { field: "profile" });
    assert_eq!(resealed(&|bytes| bytes[0] = 0x22), Refused::Invalid { field: "version" });
    assert_eq!(resealed(&|bytes| bytes[0] = 0x1f), Refused::Invalid { field: "type" });
    let mut damaged = body(&frame).to_vec();
    damaged[12] ^= 4;
    assert_eq!(parse(&damaged, &config), Err(Refused::Damaged));
}

fn known() -> impl Strategy<Value = Known> {
    (any::<[u64; 4]>(), 0u8..=10).prop_map(|(mut words, more)| {
        words[1..].fill(0);
        let symbols = Bits::from_words(words);
        Known { rank: (symbols.count() as u8).saturating_add(more).min(64), symbols }
    })
}

fn heard() -> impl Strategy<Value = Heard> {
    any::<(u16, u16)>().prop_map(|(next, received)| Heard { next, received })
}

fn ack() -> impl Strategy<Value = Ack> {
    let blocks = proptest::collection::vec(known(), 0..=MAX_LISTED);
    (any::<u32>(), heard(), heard(), any::<u32>(), blocks)
        .prop_map(|(number, heard, helper, base, blocks)| Ack { number, heard, helper, base, blocks })
}

proptest! {
    #[test]
    fn what_is_written_reads_back(
        block: u32, sequence: u16, index in 0u8..64, sum in proptest::option::of(any::<u64>()),
        ack in proptest::option::of(ack()),
        report in proptest::option::of((heard(), known(), any::<u16>())),
        mut symbol in proptest::collection::vec(any::<u8>(), 1..200), association: u32, up: bool, behind: bool,
    ) {
        let config = Config::default().with_helper();
        symbol.push(1);
        let among = |sum| Coding::Sum(Bits::from_words([sum, 0, 0, 0]));
        let coding = sum.map_or(Coding::Symbol(index), among);
        let report = report.map(|(heard, known, told)| Report { heard, told, block, known });
        let enc = || Enc {
            block, sequence, added: 64, coding, behind, ack: ack.clone(), report, symbol: &symbol,
        };
        let common = Common { association, up };
        let frame = emit(ADDRESSES, common, &Packet::Enc(enc()), &config);
        prop_assert_eq!(parse(body(&frame), &config), Ok((common, Packet::Enc(enc()))));
        if let Some(ack) = ack {
            let frame = emit(ADDRESSES, common, &Packet::Ack(ack.clone()), &config);
            prop_assert_eq!(body(&frame).len(), COMMON + ack.len(config.block));
            prop_assert_eq!(parse(body(&frame), &config), Ok((common, Packet::Ack(ack))));
        }
    }

    #[test]
    fn no_bytes_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..100), seal: bool, kind in 0u8..4) {
        if seal && bytes.len() >= 6 {
            bytes[0] = VERSION << 4 | kind;
            let check = check_of(&bytes).to_be_bytes();
            bytes[2..6].copy_from_slice(&check);
        }
        for config in [Config::default(), Config::paper().with_helper()] {
            let _ = parse(&bytes, &config);
        }
    }
}

#[test]
fn a_whole_symbol_makes_the_longest_frame() {
    let config = Config::default();
    let symbol = vec![1; usize::from(config.symbol)];
    let enc = Enc {
        block: 0,
        sequence: 0,
        added: 1,
        coding: Coding::Sum(Bits::from_words([1, 0, 0, 0])),
        behind: false,
        ack: None,
        report: None,
        symbol: &symbol,
    };
    let frame = emit(ADDRESSES, Common { association: 1, up: true }, &Packet::Enc(enc), &config);
    assert_eq!((body(&frame).len(), config.longest_frame()), (1500, 1500));
}
