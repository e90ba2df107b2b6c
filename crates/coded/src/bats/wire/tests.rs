use std::num::NonZeroU32;

use proptest::prelude::*;

use super::*;

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
    let rest = (any::<(u32, u8, u16, u16)>(), any::<(u32, u16, u16, bool)>());
    (prop::option::of(arrivals), rest, prop::collection::vec(any::<u8>(), 0..60)).prop_map(
        |(arrivals, ((session, epoch, instance, number), (floor, grant, base, complete)), ranks)| {
            let list = &[];
            let report =
                Report { session, epoch, instance, number, arrivals, floor, grant, base, complete, list };
            (report, ranks)
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
