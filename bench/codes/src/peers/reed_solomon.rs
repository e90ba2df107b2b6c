//! The crate `reed-solomon-simd`, which relays cannot recode either.

use std::hint::black_box;

use reed_solomon_simd::{ReedSolomonDecoder, encode};

use crate::block::{Block, is_lost};
use crate::race::Contender;

pub(crate) const NAME: &str = "reed-solomon-simd";

/// From the symbols that are not lost, and as many recovery symbols as were. The decoder is kept, as is ours.
pub(crate) fn decode_systematic(block: &Block) -> Contender<'_> {
    let lost: Vec<usize> = (0..block.k).filter(|&i| is_lost(i)).collect();
    let recovery = encode(block.k, lost.len(), block.symbols()).expect("sizes that fit");
    let mut decoder = ReedSolomonDecoder::new(block.k, lost.len(), block.len).expect("sizes that fit");
    let mut run = move |check: bool| {
        for (i, symbol) in block.symbols().enumerate().filter(|&(i, _)| !is_lost(i)) {
            decoder.add_original_shard(i, black_box(symbol)).expect("a symbol that fits");
        }
        for (i, symbol) in recovery.iter().enumerate() {
            decoder.add_recovery_shard(i, black_box(symbol)).expect("a symbol that fits");
        }
        let decoded = decoder.decode().expect("enough symbols");
        if check {
            assert_eq!(decoded.restored_original_iter().count(), lost.len());
            for (i, symbol) in decoded.restored_original_iter() {
                assert!(symbol == block.symbol(i), "{NAME} decodes the source");
            }
        }
        black_box(&decoded);
    };
    run(true);
    Contender::new(NAME, block.bytes(), move || run(false))
}
