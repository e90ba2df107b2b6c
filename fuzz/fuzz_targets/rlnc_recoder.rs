//! Whatever a recoder sends follows from what it was given, and a receiver behind it learns nothing false from a source
//! that does not lie.
#![no_main]

use arbitrary::Arbitrary;
use hopcast_code::field::Field;
use hopcast_code::rlnc::{Coding, Decoder, Error, Outcome, Packet, Recoder};
use hopcast_fuzz::elimination::{Equations, combination, source_symbol};
use hopcast_fuzz::in_a_field;
use hopcast_fuzz::offer::{Offer, Size};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input {
    field: u8,
    size: Size,
    capacity: u8,
    seed: u64,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
enum Step {
    Push(Offer),
    Recode {
        packets: u8,
    },
    /// Buffers that may not fit.
    Strange {
        vectors: u8,
        payloads: u8,
    },
    Start(u32),
}

fuzz_target!(|input: Input| in_a_field!(input.field, run(&input)));

fn run<F: Field>(input: &Input) {
    let shape = input.size.shape();
    let (k, len) = (shape.symbols(), shape.symbol_len());
    let capacity = usize::from(input.capacity) % (k + 2);
    let mut generation = 0;
    let mut recoder = Recoder::<F>::new(shape, generation, capacity, input.seed);
    let mut decoder = Decoder::<F>::new(shape, generation);
    let mut model = Equations::default();
    let mut honest = true;
    for step in &input.steps {
        match step {
            Step::Push(offer) => {
                let made = offer.make::<F>(shape, generation);
                match recoder.push(&made.packet()) {
                    Ok(outcome) => {
                        assert!(made.fits);
                        let adds = model.add::<F>(made.coefficients(), made.payload());
                        assert_eq!(outcome == Outcome::Innovative, adds);
                        // One that adds nothing may still be mixed in.
                        honest &= made.honest;
                    }
                    Err(_) => assert!(!made.fits),
                }
                assert_eq!(recoder.rank(), model.rank());
            }
            Step::Recode { packets } => {
                let packets = usize::from(*packets) % 20 + 1;
                let (mut vectors, mut payloads) = (vec![0xA5; packets * k], vec![0xA5; packets * len]);
                let result = recoder.recode_many(&mut vectors, &mut payloads);
                if model.rank() == 0 {
                    assert_eq!(result, Err(Error::Empty));
                    continue;
                }
                assert_eq!(result, Ok(()));
                for (vector, payload) in vectors.chunks(k).zip(payloads.chunks(len)) {
                    let coefficients = || (0..).zip(vector.iter().copied());
                    if honest {
                        assert_eq!(payload, combination::<F>(coefficients(), len));
                    }
                    if capacity >= k {
                        assert!(model.implies::<F>(coefficients(), payload));
                    }
                    assert!(!model.clone().add::<F>(coefficients(), payload), "it says something new");
                    let coding = Coding::Vector(vector);
                    decoder.push(&Packet { generation, coding, payload }).expect("it fits");
                }
                assert!(decoder.rank() <= recoder.rank());
            }
            Step::Strange { vectors, payloads } => {
                let (rows, fits) = (usize::from(*payloads) / len, usize::from(*payloads).is_multiple_of(len));
                let fits = rows > 0 && fits && rows * k == usize::from(*vectors);
                let (mut vectors, mut payloads) =
                    (vec![0xA5; (*vectors).into()], vec![0xA5; (*payloads).into()]);
                match recoder.recode_many(&mut vectors, &mut payloads) {
                    Ok(()) => assert!(fits && model.rank() > 0),
                    Err(_) => {
                        assert!(!fits || model.rank() == 0);
                        assert!(
                            vectors.iter().chain(&payloads).all(|&byte| byte == 0xA5),
                            "nothing is written"
                        );
                    }
                }
            }
            Step::Start(other) => {
                generation = *other;
                recoder.start(generation);
                decoder.start(generation);
                model = Equations::default();
                honest = true;
            }
        }
        while let Some((index, symbol)) = decoder.poll() {
            assert!(!honest || symbol == source_symbol(index as u64, len), "symbol {index}");
        }
    }
}
