//! The decoder of a generation knows exactly what a textbook elimination of the same packets knows, at any time, be the
//! packets true or not; what does not fit is refused and changes nothing.
#![no_main]

use arbitrary::Arbitrary;
use hopcast_code::field::Field;
use hopcast_code::rlnc::{Decoder, Outcome};
use hopcast_fuzz::elimination::{Equations, source_symbol};
use hopcast_fuzz::in_a_field;
use hopcast_fuzz::offer::{Offer, Size};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input {
    field: u8,
    size: Size,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
enum Step {
    Push(Offer),
    Poll(u8),
    Look,
    Start(u32),
}

fuzz_target!(|input: Input| in_a_field!(input.field, run(&input)));

fn run<F: Field>(input: &Input) {
    let shape = input.size.shape();
    let mut decoder = Decoder::<F>::new(shape, 0);
    let mut model = Equations::default();
    let mut polled = vec![false; shape.symbols()];
    let mut honest = true;
    for step in &input.steps {
        match step {
            Step::Push(offer) => {
                let made = offer.make::<F>(shape, decoder.generation());
                match decoder.push(&made.packet()) {
                    Ok(outcome) => {
                        assert!(made.fits);
                        let adds = model.add::<F>(made.coefficients(), made.payload());
                        assert_eq!(outcome == Outcome::Innovative, adds);
                        honest &= made.honest || !adds;
                    }
                    Err(_) => assert!(!made.fits),
                }
                assert_eq!(decoder.rank(), model.rank());
                assert_eq!(decoder.is_complete(), model.rank() == shape.symbols());
            }
            Step::Poll(max) => {
                for _ in 0..*max {
                    if !poll(&mut decoder, &model, &mut polled) {
                        break;
                    }
                }
            }
            Step::Look => look(&mut decoder, &model),
            &Step::Start(generation) => {
                decoder.start(generation);
                model = Equations::default();
                polled.fill(false);
                honest = true;
            }
        }
    }
    look(&mut decoder, &model);
    while poll(&mut decoder, &model, &mut polled) {}
    for (index, &polled) in polled.iter().enumerate() {
        let expected = model.symbol(index as u64);
        assert_eq!(polled, expected.is_some(), "symbol {index}");
        assert_eq!(decoder.symbol(index), expected, "symbol {index}");
        if let (true, Some(symbol)) = (honest, expected) {
            assert_eq!(symbol, source_symbol(index as u64, shape.symbol_len()), "symbol {index}");
        }
    }
    assert_eq!(decoder.symbol(shape.symbols()), None);
}

fn poll<F: Field>(decoder: &mut Decoder<F>, model: &Equations, polled: &mut [bool]) -> bool {
    let Some((index, symbol)) = decoder.poll() else { return false };
    assert_eq!(Some(symbol), model.symbol(index as u64), "symbol {index}");
    assert!(!std::mem::replace(&mut polled[index], true), "symbol {index} came twice");
    true
}

fn look<F: Field>(decoder: &mut Decoder<F>, model: &Equations) {
    let mut expected = vec![0; decoder.shape().symbols().div_ceil(64)];
    for (index, _) in model.known() {
        expected[index as usize / 64] |= 1_u64 << (index % 64);
    }
    assert_eq!(decoder.decoded(), expected);
}
