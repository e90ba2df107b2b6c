//! As many combinations as there are symbols, all at once.

use std::hint::black_box;

use super::{OURS, SIZES, every};
use crate::anchors::blocked;
use crate::block::Block;
use crate::peers::{rlnc, simdx};
use crate::race::{Contender, Pace, Race};
use crate::table::{Against, Level, Line, Only, Requirement, Study, Subject};

const ISAL: &str = "ISA-L";

pub(crate) fn batched(pace: Pace) -> Study {
    let lines = every(&SIZES).map(|(len, k)| {
        let block = Block::new(k, len);
        let mut contenders = vec![ours(&block), simdx::encode(&block)];
        #[cfg(isal)]
        contenders.push(isal(&block));
        contenders.extend([rlnc::encode(&block), blocked(len)]);
        Line::new(len, Subject::K(k), &Race::run(contenders, pace), Some(k as f64))
    });
    Study {
        operation: "RLNC encode, batched",
        unit: "GB/s of source data",
        note: "k combinations of k symbols. ISA-L's tables of the coefficients are made beforehand, in its favour.",
        lines: lines.collect(),
        requirements: vec![
            Requirement::new(Level::Must, Against::Peer(simdx::NAME), 3.0),
            Requirement::new(Level::Must, Against::Peer(ISAL), 1.5),
            Requirement::new(Level::Goal, Against::Peer(simdx::NAME), 4.0),
            Requirement::new(Level::Goal, Against::Ceiling, 0.95).only(Only::From(64)),
        ],
    }
}

fn ours(block: &Block) -> Contender<'_> {
    let encoder = block.encoder();
    let vectors = &block.vectors[..block.k * block.k];
    let mut payloads = vec![0; block.bytes()];
    Contender::new(OURS, block.bytes(), move || {
        encoder.encode_many(black_box(vectors), black_box(&mut payloads)).expect("buffers that fit");
    })
}

/// Aligned, and held against our own result.
#[cfg(isal)]
fn isal(block: &Block) -> Contender<'_> {
    use crate::block::Aligned;

    let (k, len) = (block.k, block.len);
    let tables = crate::isal::Tables::new(&block.vectors[..k * k], k);
    let source = Aligned::copy_of(&block.source, len);
    let mut rows = Aligned::zeroed(k, len);
    let stride = rows.offset(0)..;
    let mut run = move |check: Option<&[u8]>| {
        let symbols: Vec<&[u8]> = (0..k).map(|i| source.symbol(i)).collect();
        let lines = rows.bytes_mut()[stride.clone()].chunks_mut(len.next_multiple_of(Aligned::LINE)).take(k);
        let mut coding: Vec<&mut [u8]> = lines.map(|row| &mut row[..len]).collect();
        tables.encode(black_box(&symbols), black_box(&mut coding));
        if let Some(expected) = check {
            assert!(
                coding.iter().zip(expected.chunks(len)).all(|(row, expected)| *row == expected),
                "the same bytes"
            );
        }
    };
    let mut expected = vec![0; block.bytes()];
    block.encoder().encode_many(&block.vectors[..k * k], &mut expected).expect("buffers that fit");
    run(Some(&expected));
    Contender::new(ISAL, block.bytes(), move || run(None))
}
