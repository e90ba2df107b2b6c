//! The decoder of BATS codes is complete when a textbook elimination of the same packets is, and knows nothing that
//! this does not know; what does not fit is refused and changes nothing.
//!
//! The source's symbols are the unit vectors, so that a payload is the very combination of symbols that it stands for.
#![no_main]

use arbitrary::Arbitrary;
use hopcast_code::bats::{
    BatchSize, Decoder, Encoder, Header, InnerField, MAX_BATCHES, Parameters, Sampling, Start,
};
use hopcast_code::field::{self, Gf256};
use hopcast_code::rlnc::{Coefficients, Density, Outcome};
use hopcast_fuzz::elimination::Equations;
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input {
    k: u8,
    batch: u8,
    sampling: u8,
    systematic: bool,
    session: u32,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
enum Step {
    /// Packet `index` of a batch, as it left the source.
    Plain {
        bid: Bid,
        index: u8,
        flaw: Option<Flaw>,
    },
    /// A combination of the first few of its packets.
    Few {
        bid: Bid,
        coefficients: Vec<u8>,
        flaw: Option<Flaw>,
    },
    /// Combinations of all of them.
    Many {
        bid: Bid,
        seed: u64,
        packets: u8,
    },
    Poll(u8),
    Look,
    Start(u32),
    Header([u8; 4]),
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Bid {
    Early(u8),
    Any(u16),
}

#[derive(Arbitrary, Debug)]
enum Flaw {
    Bid(u16),
    VectorLength(u8),
    PayloadLength(u8),
    /// It fits, but is a lie.
    Payload {
        at: u8,
        flip: u8,
    },
}

fuzz_target!(|input: Input| {
    let mut session = Session::new(&input, input.session);
    for step in &input.steps {
        session.act(&input, step);
    }
    session.finish();
});

struct Session {
    k: usize,
    batch: BatchSize,
    encoder: Encoder<Vec<u8>>,
    decoder: Decoder,
    model: Equations,
    polled: Vec<bool>,
    honest: bool,
}

impl Session {
    fn new(input: &Input, session: u32) -> Self {
        let k = usize::from(input.k) % if input.k < 192 { 24 } else { 64 } + 1;
        let batch = BatchSize::ALL[usize::from(input.batch) % 8];
        let sampling = match input.sampling % 3 {
            0 => Sampling::Rfc,
            1 => Sampling::Separate { session },
            _ => Sampling::Even { session },
        };
        let start = if input.systematic { Start::Systematic } else { Start::Coded };
        let parameters =
            Parameters::new(k, k, batch).expect("it is not large").sampling(sampling).start(start);
        let mut source = vec![0; k * k];
        (0..k).for_each(|symbol| source[symbol * k + symbol] = 1);
        Self {
            k,
            batch,
            encoder: Encoder::new(&parameters, source).expect("it is k symbols"),
            decoder: Decoder::new(&parameters),
            model: Equations::default(),
            polled: vec![false; k],
            honest: true,
        }
    }

    fn act(&mut self, input: &Input, step: &Step) {
        let packets = self.batch.packets();
        match step {
            Step::Plain { bid, index, flaw } => {
                let mut vector = vec![0; packets];
                vector[usize::from(*index) % packets] = 1;
                self.push(*bid, vector, flaw.as_ref());
            }
            Step::Few { bid, coefficients, flaw } => {
                let mut vector = coefficients.clone();
                vector.resize(packets, 0);
                self.push(*bid, vector, flaw.as_ref());
            }
            Step::Many { bid, seed, packets: many } => {
                let mut random = Coefficients::new(*seed);
                for _ in 0..usize::from(*many) % (packets + 1) {
                    let mut vector = vec![0; packets];
                    random.fill::<Gf256>(Density::FULL, &mut vector);
                    self.push(*bid, vector, None);
                }
            }
            Step::Poll(max) => {
                for _ in 0..*max {
                    if !self.poll() {
                        break;
                    }
                }
            }
            Step::Look => self.look(),
            Step::Start(session) => {
                let fresh = Self::new(input, *session);
                let mut decoder = std::mem::replace(self, fresh).decoder;
                // In the same memory.
                decoder.start(*session);
                self.decoder = decoder;
            }
            Step::Header(bytes) => match Header::parse(*bytes) {
                Ok(header) => assert_eq!(header.emit(), *bytes),
                Err(_) => assert_eq!(bytes[..2], [0, 0]),
            },
        }
    }

    fn push(&mut self, bid: Bid, mut vector: Vec<u8>, flaw: Option<&Flaw>) {
        let mut bid = match bid {
            Bid::Early(bid) => u16::from(bid % 64),
            Bid::Any(bid) => bid % MAX_BATCHES as u16,
        };
        let mask = if self.batch.field() == InnerField::Gf2 { 1 } else { 255 };
        let mut packets = vec![0; self.batch.packets() * self.k];
        self.encoder.batch(bid, &mut packets).expect("there is such a batch");
        let mut payload = vec![0; self.k];
        for (&coefficient, packet) in vector.iter().zip(packets.chunks(self.k)) {
            field::axpy(&mut payload, coefficient & mask, packet);
        }
        let says = payload.clone();

        let mut fits = true;
        match *flaw.unwrap_or(&Flaw::Payload { at: 0, flip: 0 }) {
            Flaw::Bid(other) => {
                bid = other;
                // Of another batch the payload would be a lie that only the model knows nothing of.
                if usize::from(other) < MAX_BATCHES {
                    return;
                }
                fits = false;
            }
            Flaw::VectorLength(length) => {
                fits = usize::from(length) == vector.len();
                vector.resize(length.into(), 1);
            }
            Flaw::PayloadLength(length) => {
                fits = usize::from(length) == payload.len();
                payload.resize(length.into(), 1);
            }
            Flaw::Payload { at, flip } => payload[usize::from(at) % self.k] ^= flip,
        }
        match self.decoder.push(bid, &vector, &payload) {
            Ok(outcome) => {
                assert!(fits);
                let adds = self.model.add::<Gf256>((0..).zip(says.iter().copied()), &says);
                assert!(!adds || outcome == Outcome::Innovative, "what is new to all is new to its batch");
                self.honest &= payload == says;
            }
            Err(_) => assert!(!fits),
        }
    }

    fn poll(&mut self) -> bool {
        let Some((index, symbol)) = self.decoder.poll() else { return false };
        assert!(!std::mem::replace(&mut self.polled[index], true), "symbol {index} came twice");
        assert!(self.model.symbol(index as u64).is_some(), "symbol {index} cannot be known");
        let expected = (0..self.k).map(|place| u8::from(place == index));
        assert!(!self.honest || symbol.iter().copied().eq(expected), "symbol {index}");
        true
    }

    fn look(&mut self) {
        assert_eq!(self.decoder.is_complete(), self.model.rank() == self.k, "complete when it can be");
        let decoded = self.decoder.decoded().to_vec();
        for index in 0..self.k {
            let is_decoded = decoded[index / 64] >> (index % 64) & 1 == 1;
            assert!(
                !is_decoded || self.model.symbol(index as u64).is_some(),
                "symbol {index} cannot be known"
            );
            assert_eq!(is_decoded, self.decoder.symbol(index).is_some());
        }
        assert_eq!(self.decoder.symbol(self.k), None);
    }

    fn finish(&mut self) {
        self.look();
        while self.poll() {}
        let decoded: Vec<bool> = (0..self.k).map(|index| self.decoder.symbol(index).is_some()).collect();
        assert_eq!(self.polled, decoded);
    }
}
