use super::*;
use crate::field::{Gf256, Symbols, product_into};
use crate::rlnc::{Coefficients, Density, Outcome};

const M: usize = 16;

fn size() -> BatchSize {
    BatchSize::new(M, InnerField::Gf256).unwrap()
}

fn systematic(symbols: usize, len: usize) -> Parameters {
    Parameters::new(symbols, len, size())
        .unwrap()
        .sampling(Sampling::Even { session: 3 })
        .start(Start::Systematic)
}

fn unit(i: usize) -> [u8; M] {
    core::array::from_fn(|j| u8::from(i == j))
}

#[test]
fn a_header_has_k_then_m_and_q_then_the_bid() {
    let header = Header { symbols: 0x0102, batch: size(), bid: 0x1FFE };
    assert_eq!(header.emit(), [0x01, 0x02, 0b101_11111, 0xFE]);
    for batch in BatchSize::ALL {
        for bid in [0, 1, 8_191] {
            let header = Header { symbols: 0xFFFF, batch, bid };
            assert_eq!(Header::parse(header.emit()), Ok(header));
        }
    }
    assert_eq!(Header::parse([0, 0, 0xFF, 0xFF]), Err(Error::Symbols(0)));
    assert_eq!(systematic(9, 9).header(8_192), Err(Error::Batch(8_192)));
}

#[test]
fn coefficient_vectors_have_the_length_of_the_formula() {
    let overheads = BatchSize::ALL.map(|size| (size.packets(), size.coefficient_overhead()));
    assert_eq!(overheads, [(16, 2), (4, 4), (32, 4), (8, 8), (64, 8), (16, 16), (128, 16), (32, 32)]);
    assert!(BatchSize::new(128, InnerField::Gf256).is_err());
    assert!(BatchSize::new(8, InnerField::Gf2).is_err());
}

#[test]
fn an_object_is_always_padded() {
    let symbols = |len| Parameters::of_object(len, 116, size()).map(|parameters| parameters.symbols());
    assert_eq!([symbols(0), symbols(99), symbols(100), symbols(101)], [Ok(1), Ok(1), Ok(2), Ok(2)]);
    assert_eq!(Parameters::of_object(1, 16, size()), Err(Error::SymbolLen(0)));
    assert_eq!(Parameters::of_object(100 * 65_535, 116, size()), Err(Error::Symbols(65_536)));
}

#[test]
fn symbols_that_arrive_as_they_are_can_be_polled_at_once() {
    let mut decoder = Decoder::new(&systematic(40, 2));
    for index in [0, 39, 17] {
        let (bid, vector, payload) = ((index / M) as u16, unit(index % M), [index as u8; 2]);
        assert_eq!(decoder.push(bid, &vector, &payload), Ok(Outcome::Innovative));
        assert_eq!(decoder.push(bid, &vector, &payload), Ok(Outcome::Redundant));
        assert_eq!(decoder.poll(), Some((index, &payload[..])));
        assert_eq!(decoder.poll(), None);
    }
    assert_eq!([decoder.rank(0), decoder.rank(1), decoder.rank(2)], [1, 1, 1]);
    assert_eq!(decoder.decoded(), [1 | 1 << 39 | 1 << 17]);
}

#[test]
fn a_batch_is_solved_as_soon_as_it_can_be_alone() {
    let mut decoder = Decoder::new(&systematic(64, 1));
    // The relay had symbols 16 to 20: four pass as they are, and a combination makes up for the last.
    for i in 0..4 {
        decoder.push(1, &unit(i), &[10 + i as u8]).unwrap();
        assert!(decoder.poll().is_some());
    }
    let mut vector = [0; M];
    vector[..5].fill(1);
    let payload = [[10, 11, 12, 13, 99].into_iter().fold(0, |sum, symbol| sum ^ symbol)];
    assert_eq!(decoder.push(1, &vector, &payload), Ok(Outcome::Innovative));
    assert_eq!(decoder.poll(), Some((20, &[99][..])));
    assert_eq!(decoder.push(1, &vector, &payload), Ok(Outcome::Redundant), "nothing in it is unknown");
}

#[test]
fn an_encoder_sends_while_its_source_grows() {
    let mut encoder = Encoder::new(&systematic(32, 1), Vec::new()).unwrap();
    let mut batch = [0; M];
    assert_eq!(encoder.batch(0, &mut batch), Err(Error::Missing { symbols: 0, index: 15 }));
    (0..16).for_each(|symbol| assert_eq!(encoder.push(&[symbol]), Ok(symbol.into())));
    encoder.batch(0, &mut batch).unwrap();
    assert_eq!(batch, core::array::from_fn(|i| i as u8));
    assert_eq!(encoder.batch(2, &mut batch), Err(Error::Missing { symbols: 16, index: 31 }));
    assert_eq!(encoder.packet(0, 16, &mut [0]), Err(Error::Packet { packets: 16, index: 16 }));
    assert_eq!(encoder.batch(0, &mut [0; 3]), Err(Error::PayloadLength { expected: 16, found: 3 }));
}

/// Packets needed beyond K, when each batch's rank is 11 to 15.
fn overhead(parameters: &Parameters, decoder: &mut Decoder, session: u32) -> usize {
    let mut random = Coefficients::new(session.into());
    let source: Vec<u8> = (0..parameters.symbols()).map(|_| random.bits() as u8).collect();
    let mut parameters = parameters.clone();
    parameters.restart(session);
    let mut encoder = Encoder::new(&parameters, &source[..]).unwrap();
    decoder.start(session);
    let at: [usize; M] = core::array::from_fn(|i| i);
    let mut received = 0;
    for bid in 0.. {
        let mut batch = [0; M];
        encoder.batch(bid, &mut batch).unwrap();
        for _ in 0..11 + random.bits() % 5 {
            let (mut vector, mut payload) = ([0; M], [0]);
            random.fill::<Gf256>(Density::FULL, &mut vector);
            product_into(Symbols::new(&mut payload[..], &[0], 1), &vector, Symbols::new(&batch[..], &at, 1));
            decoder.push(bid, &vector, &payload).unwrap();
            received += 1;
            if decoder.is_complete() {
                while let Some((index, symbol)) = decoder.poll() {
                    assert_eq!(symbol, &source[index..=index]);
                }
                return received - source.len();
            }
        }
    }
    unreachable!("there are batches enough")
}

#[test]
fn hardly_a_packet_beyond_k_is_needed() {
    for (start, k) in
        [(Start::Systematic, 128), (Start::Coded, 128), (Start::Systematic, 256), (Start::Coded, 256)]
    {
        let parameters =
            Parameters::new(k, 1, size()).unwrap().sampling(Sampling::Even { session: 0 }).start(start);
        let mut decoder = Decoder::new(&parameters);
        let beyond: usize = (0..60).map(|session| overhead(&parameters, &mut decoder, session)).sum();
        assert!(beyond <= 5, "{beyond} packets in 60 sessions, {start:?}, {k}");
    }
}
