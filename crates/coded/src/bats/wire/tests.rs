use std::num::NonZeroU32;

use proptest::prelude::*;

use super::codes::batch_size;
use super::*;
use crate::bats::BatchSize;

fn some_batch() -> impl Strategy<Value = BatchSize> {
    prop::sample::select(BatchSize::ALL.to_vec())
}

fn some_report() -> impl Strategy<Value = (Report<'static>, Vec<u8>)> {
    let arrivals = (0..1_u32 << 24, any::<u32>(), any::<u16>(), 0..1_u32 << 24, any::<u32>(), any::<u16>());
    let arrivals = arrivals.prop_map(|(highest, at, hold, packets, bytes, runs)| Arrivals {
        highest,
        at,
        hold,
        packets,
        bytes,
        runs,
    });
    let rest = (any::<(u32, u8, u16, u16)>(), any::<(u32, u16, u16, bool, Option<u32>)>());
    (prop::option::of(arrivals), rest, prop::collection::vec(any::<u8>(), 0..60)).prop_map(
        |(arrivals, ((session, epoch, instance, number), (floor, grant, base, complete, rest)), ranks)| {
            let hop = Report { session, epoch, instance, number, arrivals, ..Report::example(0) };
            (Report { floor, grant, base, complete, rest, ..hop }, ranks)
        },
    )
}

fn some_info() -> impl Strategy<Value = Info> {
    let shape = (some_batch(), 1..8_u16, 1..=u16::MAX);
    let rest = (any::<(u32, u32, u32, u32)>(), any::<(Option<u16>, bool, u32, Option<u16>, bool, u64)>());
    (shape, rest).prop_map(|((batch, batches, symbol), ((mark, nonce, epoch, round_trip), rest))| {
        let (deadline, fixed, elapsed, budget, ask, floor) = rest;
        Info {
            session: Session { mark },
            echo: NonZeroU32::new(nonce),
            batch,
            block: batches * batch.symbols() as u16,
            symbol,
            epoch,
            round_trip,
            deadline,
            fixed: fixed && deadline.is_some(),
            elapsed: deadline.map_or(0, |_| elapsed),
            budget,
            ask,
            floor,
        }
    })
}

/// A datagram of any frames, and how long a symbol of its DATA is.
fn some_datagram() -> impl Strategy<Value = (Vec<u8>, usize)> {
    let data = (some_batch(), any::<(u32, u8, u16, u16)>(), any::<[u8; 32]>(), 0..3_u8, any::<bool>());
    let parts = (prop::option::of(some_report()), prop::option::of(some_info()), prop::option::of(data));
    (parts, 1..200_usize, 1..200_usize).prop_map(|((report, info, data), symbol, payload)| {
        let mut bytes = vec![0; 2000];
        let mut out = Writer::new(&mut bytes);
        out.u8(MAGIC);
        if let Some((report, list)) = &report {
            Report { list, ..*report }.write(&mut out);
        }
        if let Some(info) = &info {
            info.write(&mut out);
        }
        let symbol = info.map_or(symbol, |info| usize::from(info.symbol));
        if let Some((batch, (session, epoch, sequence, block), vector, coding, ask)) = data {
            let payload = payload.min(symbol);
            let data = Data {
                session: info.map_or(session, |info| info.session.mark),
                epoch,
                sequence: u32::from(sequence),
                block: u32::from(block),
                header: BatchHeader { block: 256, batch, id: block & 0x1FFF },
                coding: match coding {
                    0 => Coding::Symbol(vector[0] % batch.symbols() as u8),
                    1 => Coding::Vector { first: 0, vector: &vector[..batch.symbols()] },
                    _ => Coding::Vector { first: 1, vector: &vector[1..batch.symbols()] },
                },
                ask,
                trimmed: payload < symbol,
                payload: &[],
            };
            data.write_header(payload, &mut out);
            out.put(&vec![7; payload]);
        }
        let left = out.rest().len();
        bytes.truncate(2000 - left);
        (bytes, symbol)
    })
}

/// The same datagram, from what was understood of it.
fn written(frames: &Frames<'_>) -> Vec<u8> {
    let mut bytes = vec![0; 2000];
    let mut out = Writer::new(&mut bytes);
    out.u8(MAGIC);
    if let Some(report) = &frames.report {
        report.write(&mut out);
    }
    if let Some(info) = &frames.info {
        info.write(&mut out);
    }
    if let Some(data) = &frames.data {
        data.write_header(data.payload.len(), &mut out);
        out.put(data.payload);
    }
    let left = out.rest().len();
    bytes.truncate(2000 - left);
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_understood((bytes, symbol) in some_datagram()) {
        let frames = parse(&bytes, |_| Some(symbol)).unwrap();
        prop_assert_eq!(written(&frames), bytes);
    }

    #[test]
    fn a_datagram_cut_short_is_not_taken_for_another((bytes, symbol) in some_datagram(), cut: prop::sample::Index) {
        let cut = cut.index(bytes.len());
        // It may be cut between two frames.
        if let Ok(frames) = parse(&bytes[..cut], |_| Some(symbol)) {
            prop_assert_eq!(frames.data, None);
            prop_assert_eq!(written(&frames), &bytes[..cut]);
        }
    }

    #[test]
    fn garbage_is_refused_or_understood(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        symbol in prop::option::of(0..200_usize),
    ) {
        _ = parse(&[&[MAGIC], &bytes[..]].concat(), |_| symbol);
        _ = parse(&bytes, |_| symbol);
    }

    #[test]
    fn numbers_are_completed_to_the_nearest(
        expected in 0..u64::MAX / 2,
        ahead in -1000..1000_i64,
        bits in 12..33_u32,
    ) {
        let number = expected.saturating_add_signed(ahead);
        let low = (number & ((1 << bits) - 1)) as u32;
        prop_assert_eq!(complete(low, bits, expected), number);
    }

    #[test]
    fn a_list_says_of_each_batch_what_it_was_told(
        ranks in prop::collection::vec(prop::option::of(0..33_u8), 0..300),
    ) {
        let mut list = Vec::new();
        for &rank in &ranks {
            list_rank(&mut list, rank);
        }
        let mut read = Vec::new();
        for byte in list {
            match Ranks::of(byte) {
                Ranks::Rank(rank) => read.push(Some(rank)),
                Ranks::Complete(run) => read.extend((0..run).map(|_| None)),
                Ranks::Nothing(run) => read.extend((0..run).map(|_| Some(0))),
            }
        }
        prop_assert_eq!(read, ranks);
    }
}

#[test]
fn an_error_says_which_field_is_wrong() {
    assert_eq!(parse(&[0], |_| None).unwrap_err().field, "protocol");
    assert_eq!(parse(&[MAGIC, 0x10, 0, 0], |_| None).unwrap_err().field, "data session");
}

/// The bytes of a frame.
fn bytes_of(write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut bytes = vec![0; 2000];
    let mut out = Writer::new(&mut bytes);
    write(&mut out);
    let left = out.rest().len();
    bytes.truncate(2000 - left);
    bytes
}

#[test]
fn a_protocol_is_named_by_b3() {
    assert!(parse(&[0xB3], |_| None).is_ok());
    assert!((0..=255).all(|byte| byte == 0xB3 || parse(&[byte], |_| None).is_err()));
}

#[test]
fn data_is_these_bytes() {
    let vector = [0x51, 0x52, 0x53];
    let mut data = Data {
        session: 0x0102_0304,
        epoch: 0x05,
        sequence: 0x06_0708,
        block: 0x09_0A0B,
        header: BatchHeader { block: 256, batch: BatchSize::M16, id: 0x0123 },
        coding: Coding::Symbol(7),
        ask: true,
        trimmed: true,
        payload: &[],
    };
    // K is 256; Mq 101, and BID behind it.
    let head = b"\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0A\x0B\x01\x00\xA1\x23";
    let found = bytes_of(|out| data.write_header(3, out));
    assert_eq!(found, [&[0x1C], &head[..], &[0, 3, 7]].concat());
    assert_eq!(found.len(), data.header_len());
    (data.ask, data.trimmed) = (false, false);
    let found = bytes_of(|out| data.write_header(1000, out));
    assert_eq!(found, [&[0x10], &head[..], &[7]].concat());
    assert_eq!(found.len(), data.header_len());
    data.coding = Coding::Vector { first: 2, vector: &vector };
    let found = bytes_of(|out| data.write_header(1000, out));
    assert_eq!(found, [&[0x12], &head[..], &[2, 3], &vector].concat());
    assert_eq!(found.len(), data.header_len());
    data.coding = Coding::Vector { first: 0, vector: &[9; 16] };
    let found = bytes_of(|out| data.write_header(1000, out));
    assert_eq!(found, [&[0x11], &head[..], &[9; 16]].concat());
    assert_eq!(found.len(), data.header_len());
    // A byte for the protocol, and the longest header of a whole symbol: vectors without the zeros at their ends are
    // shorter than whole ones.
    assert_eq!(symbol_len(1472, BatchSize::M16), 1472 - 1 - 16 - 16);
}

#[test]
fn batch_sizes_have_the_codes_of_rfc_9426() {
    for (batch, code) in
        [(BatchSize::M4, 0b001), (BatchSize::M8, 0b011), (BatchSize::M16, 0b101), (BatchSize::M32, 0b111)]
    {
        let header = BatchHeader { block: 0xABCD, batch, id: 0x1FFF };
        assert_eq!(header.word(), 0xABCD << 16 | code << 13 | 0x1FFF);
        assert_eq!(batch_size(code as u8), Some(batch));
    }
    assert!([0b000, 0b010, 0b100, 0b110].into_iter().all(|code| batch_size(code).is_none()));
}

#[test]
fn info_is_these_bytes() {
    let mut info = Info {
        session: Session { mark: 0x0102_0304 },
        echo: NonZeroU32::new(0x1112_1314),
        batch: BatchSize::M8,
        block: 0x0208,
        symbol: 0x0578,
        epoch: 0x2122_2324,
        round_trip: 0x3132_3334,
        deadline: None,
        fixed: false,
        elapsed: 0,
        budget: None,
        ask: false,
        floor: 0x4142_4344_4546_4748,
    };
    let head = b"\x01\x02\x03\x04\x11\x12\x13\x14\x60\x02\x08\x05\x78\x21\x22\x23\x24\x31\x32\x33\x34";
    let floor = b"\x41\x42\x43\x44\x45\x46\x47\x48";
    let found = bytes_of(|out| info.write(out));
    assert_eq!(found, [&[0x20], &head[..], &[0, 0], floor].concat());
    assert_eq!((found.len(), info.len()), (32, 32));
    info = Info { ask: true, ..info };
    assert_eq!(bytes_of(|out| info.write(out))[0], 0x24);
    info = Info { ask: false, budget: Some(0x5152), ..info };
    let found = bytes_of(|out| info.write(out));
    assert_eq!(found, [&[0x21], &head[..], &[0, 0], floor, &[0x51, 0x52]].concat());
    info = Info { deadline: Some(200), elapsed: 0x6162_6364, fixed: true, ..info };
    let found = bytes_of(|out| info.write(out));
    let rest = [0x51, 0x52, 0x61, 0x62, 0x63, 0x64];
    assert_eq!(found, [&[0x2B], &head[..], &[0, 200], floor, &rest].concat());
    assert_eq!((found.len(), info.len(), MAX_INFO_LEN), (38, 38, 38), "there is no longer one");
}

#[test]
fn a_report_is_these_bytes() {
    let arrivals = Arrivals {
        highest: 0x31_3233,
        at: 0x4142_4344,
        hold: 0x5152,
        packets: 0x61_6263,
        bytes: 0x7172_7374,
        runs: 0x8182,
    };
    let mut report = Report {
        session: 0x0102_0304,
        epoch: 0x05,
        instance: 0x1112,
        number: 0x2122,
        arrivals: Some(arrivals),
        floor: 0x9192_9394,
        grant: 0xA1A2,
        base: 0xB1B2,
        complete: true,
        rest: None,
        list: &[1, 0x80, 0xC0],
    };
    let expected =
        b"\x33\x01\x02\x03\x04\x05\x11\x12\x21\x22\x31\x32\x33\x41\x42\x43\x44\x51\x52\x61\x62\x63\
        \x71\x72\x73\x74\x81\x82\x91\x92\x93\x94\xA1\xA2\xB1\xB2\x00\x03\x01\x80\xC0";
    let found = bytes_of(|out| report.write(out));
    assert_eq!(found, expected);
    assert_eq!(report.len(), expected.len());
    report = Report { complete: false, rest: Some(0xC1C2_C3C4), ..report };
    let found = bytes_of(|out| report.write(out));
    assert_eq!((found[0], &found[34..42]), (0x36, &b"\xB1\xB2\xC1\xC2\xC3\xC4\x00\x03"[..]));
    assert_eq!(report.len(), found.len());
    report = Report { rest: None, ..report };
    assert_eq!(bytes_of(|out| report.write(out))[0], 0x32);
    report = Report { complete: true, arrivals: None, ..report };
    let found = bytes_of(|out| report.write(out));
    assert_eq!((found[0], &found[10..28]), (0x31, &[0; 18][..]));
}

#[test]
fn a_challenge_is_these_bytes() {
    let nonce = NonZeroU32::new(0x0102_0304).unwrap();
    let found = bytes_of(|out| write_challenge(nonce, out));
    assert_eq!(found, [0x50, 1, 2, 3, 4]);
    assert_eq!(CHALLENGE_LEN, found.len());
    assert_eq!(parse(&[0xB3, 0x50, 1, 2, 3, 4], |_| None).unwrap().challenge, Some(nonce));
    assert_eq!(parse(&[0xB3, 0x50, 0, 0, 0, 0], |_| None).unwrap_err().field, "challenge nonce");
}

#[test]
fn a_run_of_a_list_is_of_64_batches_at_most() {
    for (rank, kind) in [(None, 0x80), (Some(0), 0xC0)] {
        let mut list = Vec::new();
        (0..130).for_each(|_| list_rank(&mut list, rank));
        assert_eq!(list, [kind | 63, kind | 63, kind | 1]);
    }
    let mut list = Vec::new();
    [Some(3), Some(3), None, Some(0), None].into_iter().for_each(|rank| list_rank(&mut list, rank));
    assert_eq!(list, [3, 3, 0x80, 0xC0, 0x80]);
}

#[test]
fn what_is_late_by_less_than_1024_is_no_news() {
    for last in [0, 5, 1000, 40_000, 65_535_u16] {
        assert!(is_news(last.wrapping_add(1), last) && is_news(last.wrapping_add(60_000), last));
        assert!(!is_news(last, last) && !is_news(last.wrapping_sub(1023), last));
        assert!(is_news(last.wrapping_sub(1024), last), "it has wrapped");
    }
}

#[test]
fn a_payload_travels_trimmed_where_that_saves_a_byte_or_costs_none() {
    assert_eq!(
        [97, 98, 99, 100].map(|len| trim(len, 100)),
        [(true, 97), (true, 98), (false, 100), (false, 100)]
    );
}
