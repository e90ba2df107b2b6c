//! The crate `rlnc-simdx`. Coefficients are supplied where it lets us: its own generator is linear over GF(2), and gets
//! stuck at rank 64.

use std::hint::black_box;

use rlnc_simdx::encoder::SimpleRng;
use rlnc_simdx::recoder::Recoder;
use rlnc_simdx::{CodedPacket, Decoder, kernel};

use crate::block::{Aligned, Block, is_lost};
use crate::race::Contender;

pub(crate) const NAME: &str = "rlnc-simdx";

/// As many combinations as there are symbols, all aligned, and without its encoder's allocations: in its favour.
pub(crate) fn encode(block: &Block) -> Contender<'_> {
    let source = Aligned::copy_of(&block.source, block.len);
    let mut payloads = Aligned::zeroed(block.k, block.len);
    Contender::new(NAME, block.bytes(), move || {
        let symbols: Vec<&[u8]> = (0..block.k).map(|i| source.symbol(i)).collect();
        for i in 0..block.k {
            let payload = payloads.symbol_mut(i);
            payload.fill(0);
            kernel::axpy_multi(black_box(block.vector(i)), &symbols, black_box(payload));
        }
    })
}

fn packets(block: &Block) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    let symbols: Vec<&[u8]> = block.symbols().collect();
    (0..block.packets()).map(move |i| {
        let mut payload = vec![0; block.len];
        kernel::axpy_multi(block.vector(i), &symbols, &mut payload);
        (block.vector(i).to_vec(), payload)
    })
}

/// From nothing but combinations.
pub(crate) fn decode_dense(block: &Block) -> Contender<'_> {
    decode(block, packets(block).collect())
}

/// From the symbols that are not lost, and combinations.
pub(crate) fn decode_systematic(block: &Block) -> Contender<'_> {
    let arrived = (0..block.k).filter(|&i| !is_lost(i)).map(|i| {
        let mut vector = vec![0; block.k];
        vector[i] = 1;
        (vector, block.symbol(i).to_vec())
    });
    decode(block, arrived.chain(packets(block)).collect())
}

fn decode(block: &Block, packets: Vec<(Vec<u8>, Vec<u8>)>) -> Contender<'_> {
    let run = move |check: bool| {
        let mut decoder = Decoder::new(block.k, block.len).expect("sizes that fit");
        for (vector, payload) in &packets {
            if decoder.is_complete() {
                break;
            }
            let packet = CodedPacket::from_slices(black_box(vector), black_box(payload));
            decoder.receive(packet).expect("a packet that fits");
        }
        let decoded = decoder.decode().expect("no error").expect("enough packets");
        if check {
            assert!(block.symbols().eq(&decoded), "{NAME} decodes the source");
        }
        black_box(decoded);
    };
    run(true);
    Contender::new(NAME, block.bytes(), move || run(false))
}

/// `inputs` combinations out of as many.
pub(crate) fn recode(block: &Block, inputs: usize) -> Contender<'_> {
    let packets: Vec<CodedPacket> = packets(block)
        .take(inputs)
        .map(|(vector, payload)| CodedPacket::from_slices(&vector, &payload))
        .collect();
    let mut random = SimpleRng::new(3);
    Contender::new(NAME, inputs * block.len, move || {
        for _ in 0..inputs {
            black_box(Recoder::recode(&packets, &mut random).expect("packets that fit"));
        }
    })
}
