//! BATS codes at the end of six hops.

use std::hint::black_box;

use hopcast_code::bats::ranks::{Channel, Ranks, Scheme};
use hopcast_code::bats::{BatchSize, Decoder, Encoder, InnerField, Parameters, Sampling, Start};
use hopcast_code::field::{Gf256, Symbols, product_into};
use hopcast_code::rlnc::{Coefficients, Density};

use super::{LENGTHS, OURS};
use crate::anchors::blocked;
use crate::block::Block;
use crate::peers::raptorq;
use crate::race::{Contender, Pace, Race};
use crate::table::{Against, Level, Line, Requirement, Study, Subject};

const K: usize = 1_000;
const M: usize = 16;
/// Number of packets that each node sends of a batch: M, and those that make up for a loss of a tenth.
const SENT: usize = 18;

pub(crate) fn decode(pace: Pace) -> Study {
    let mut lines = Vec::new();
    for len in LENGTHS {
        let block = Block::new(K, len);
        for (name, start) in [("systematic", Start::Systematic), ("coded", Start::Coded)] {
            let contenders = vec![ours(&block, start), raptorq::decode_repair(&block), blocked(len)];
            lines.push(Line::new(len, Subject::Start { k: K, name }, &Race::run(contenders, pace), None));
        }
    }
    Study {
        operation: "BATS decode",
        unit: "GB/s of source data",
        note: "K = 1,000, M = 16, ranks as after six hops that lose 10 %; the decoder is kept. raptorq: from repair symbols.",
        requirements: vec![
            Requirement::new(Level::Must, Against::Rate, 0.5),
            Requirement::new(Level::Goal, Against::Rate, 1.0),
        ],
        lines,
    }
}

/// The ranks of batches after six hops.
fn six_hops() -> Ranks {
    let hop = Channel::independent(0.1, 256).expect("a probability");
    (0..6).fold(Ranks::full(M), |ranks, _| ranks.after(&hop, Scheme::Systematic, |_| SENT))
}

fn ours(block: &Block, start: Start) -> Contender<'_> {
    let size = BatchSize::new(M, InnerField::Gf256).expect("one that there is");
    let parameters = Parameters::new(block.k, block.len, size)
        .expect("within the limits")
        .sampling(Sampling::Even { session: 1 })
        .start(start);
    let packets = packets(block, &parameters);
    let mut decoder = Decoder::new(&parameters);
    let mut run = move |check: bool| {
        decoder.start(1);
        for (bid, vector, payload) in &packets {
            decoder.push(*bid, black_box(vector), black_box(payload)).expect("a packet that fits");
        }
        let mut count = 0;
        while let Some((index, symbol)) = decoder.poll() {
            if check {
                assert!(symbol == block.symbol(index), "{OURS} decodes the source");
            }
            black_box(symbol);
            count += 1;
        }
        assert_eq!(count, block.k);
    };
    run(true);
    Contender::new(OURS, block.bytes(), move || run(false))
}

/// Packets that arrive until they suffice: of each batch, as many random combinations as its rank.
fn packets(block: &Block, parameters: &Parameters) -> Vec<(u16, Vec<u8>, Vec<u8>)> {
    let ranks = six_hops();
    let mut random = Coefficients::new(1);
    let mut encoder = Encoder::new(parameters, &block.source[..]).expect("a whole source");
    let mut decoder = Decoder::new(parameters);
    let mut batch = vec![0; M * block.len];
    let mut packets = Vec::new();
    for bid in 0.. {
        encoder.batch(bid, &mut batch).expect("a buffer that fits");
        let worth = parameters.packets(bid);
        for _ in 0..ranks.sample(random.bits() as u32).min(worth) {
            let (mut vector, mut payload) = (vec![0; M], vec![0; block.len]);
            random.fill::<Gf256>(Density::FULL, &mut vector[..worth]);
            let to = Symbols::new(&mut payload[..], &[0], block.len);
            product_into(to, &vector, Symbols::spaced(&batch[..], 0, block.len, M, block.len));
            decoder.push(bid, &vector, &payload).expect("a packet that fits");
            packets.push((bid, vector, payload));
        }
        if decoder.is_complete() {
            break;
        }
    }
    packets
}
