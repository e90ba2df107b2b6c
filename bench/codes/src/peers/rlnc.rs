//! The crate `rlnc`. It draws its own coefficients (here from a quick generator) and allocates a decoder for each
//! generation, since there is no other way.

use std::hint::black_box;

use rand::SeedableRng;
use rand::rngs::SmallRng;
use rlnc::full::{Decoder, Encoder, Recoder};

use crate::block::{Block, is_lost};
use crate::race::Contender;

pub(crate) const NAME: &str = "rlnc";

fn encoder(block: &Block) -> Encoder {
    // It appends the last byte itself; see `Block::new`.
    let data = block.source[..block.bytes() - 1].to_vec();
    let encoder = Encoder::new(data, block.k).expect("data that fits");
    assert_eq!(encoder.get_piece_byte_len(), block.len);
    encoder
}

/// As many combinations as there are symbols.
pub(crate) fn encode(block: &Block) -> Contender<'_> {
    let (encoder, mut random) = (encoder(block), SmallRng::seed_from_u64(1));
    let mut piece = vec![0; encoder.get_full_coded_piece_byte_len()];
    Contender::new(NAME, block.bytes(), move || {
        for _ in 0..block.k {
            encoder.code_with_buf(&mut random, black_box(&mut piece)).expect("a buffer that fits");
        }
    })
}

/// From nothing but combinations.
pub(crate) fn decode_dense(block: &Block) -> Contender<'_> {
    decode(block, Vec::new())
}

/// From the symbols that are not lost, and combinations.
pub(crate) fn decode_systematic(block: &Block) -> Contender<'_> {
    let arrived = (0..block.k).filter(|&i| !is_lost(i)).map(|i| {
        let mut piece = vec![0; block.k];
        piece[i] = 1;
        piece.extend_from_slice(block.symbol(i));
        piece
    });
    decode(block, arrived.collect())
}

fn decode(block: &Block, mut pieces: Vec<Vec<u8>>) -> Contender<'_> {
    let (encoder, mut random) = (encoder(block), SmallRng::seed_from_u64(2));
    while pieces.len() < block.packets() {
        pieces.push(encoder.code(&mut random));
    }
    let run = move |check: bool| {
        let mut decoder = Decoder::new(block.len, block.k).expect("sizes that fit");
        for piece in &pieces {
            if decoder.is_already_decoded() {
                break;
            }
            // A piece that is not useful is an error too.
            _ = decoder.decode(black_box(piece));
        }
        let decoded = decoder.get_decoded_data().expect("enough pieces");
        if check {
            assert!(decoded == block.source[..block.bytes() - 1], "{NAME} decodes the source");
        }
        black_box(decoded);
    };
    run(true);
    Contender::new(NAME, block.bytes(), move || run(false))
}

/// `inputs` combinations out of as many.
pub(crate) fn recode(block: &Block, inputs: usize) -> Contender<'_> {
    let (encoder, mut random) = (encoder(block), SmallRng::seed_from_u64(3));
    let len = encoder.get_full_coded_piece_byte_len();
    let pieces: Vec<u8> = (0..inputs).flat_map(|_| encoder.code(&mut random)).collect();
    let mut recoder = Recoder::new(pieces, len, block.k).expect("pieces that fit");
    let mut piece = vec![0; len];
    Contender::new(NAME, inputs * block.len, move || {
        for _ in 0..inputs {
            recoder.recode_with_buf(&mut random, black_box(&mut piece)).expect("a buffer that fits");
        }
    })
}
