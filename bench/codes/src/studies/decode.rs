//! A generation from its packets, one by one.

use std::hint::black_box;

use hopcast_code::rlnc::{Coding, Decoder, Packet};

use super::{OURS, SIZES, every};
use crate::anchors::{blocked, copy};
use crate::block::{Block, is_lost};
use crate::peers::{raptorq, reed_solomon, rlnc, simdx};
use crate::race::{Contender, Pace, Race};
use crate::table::{Against, Level, Line, Only, Requirement, Study, Subject};

/// Nothing but combinations.
pub(crate) fn dense(pace: Pace) -> Study {
    let lines = every(&SIZES).map(|(len, k)| {
        let block = Block::new(k, len);
        let contenders = vec![
            ours(OURS, &block, |_| true, Memory::New),
            ours("decoder kept", &block, |_| true, Memory::Kept),
            simdx::decode_dense(&block),
            rlnc::decode_dense(&block),
            blocked(len),
        ];
        Line::new(len, Subject::K(k), &Race::run(contenders, pace), Some(k as f64))
    });
    Study {
        operation: "RLNC decode, dense",
        unit: "GB/s of source data",
        note: "Packets one by one, the decoder's allocation and the intake included. \"Kept\": ours, without its allocation.",
        lines: lines.collect(),
        requirements: vec![
            Requirement::new(Level::Must, Against::Peer(simdx::NAME), 2.0),
            Requirement::new(Level::Goal, Against::Peer(simdx::NAME), 2.9),
            Requirement::new(Level::Goal, Against::Ceiling, 0.6),
        ],
    }
}

/// Symbols as they are, but for one in ten, which combinations replace.
pub(crate) fn systematic(pace: Pace) -> Study {
    let lines = every(&SIZES).map(|(len, k)| {
        let block = Block::new(k, len);
        let contenders = vec![
            ours(OURS, &block, is_lost, Memory::Kept),
            simdx::decode_systematic(&block),
            rlnc::decode_systematic(&block),
            raptorq::decode_systematic(&block),
            reed_solomon::decode_systematic(&block),
            blocked(len),
        ];
        let lost = (0..k).filter(|&i| is_lost(i)).count();
        Line::new(len, Subject::K(k), &Race::run(contenders, pace), Some(lost as f64))
    });
    Study {
        operation: "RLNC decode, systematic, 10 % lost",
        unit: "GB/s of source data",
        note: "Decoders that can be used again (hopcast, reed-solomon-simd) are. The ceiling leaves out the intake.",
        lines: lines.collect(),
        requirements: vec![
            Requirement::new(Level::Must, Against::Rate, 4.0),
            Requirement::new(Level::Goal, Against::Rate, 5.8).only(Only::At(256)),
            Requirement::new(Level::Goal, Against::Rate, 18.0).only(Only::At(32)),
        ],
    }
}

/// Nothing lost, each symbol taken as it arrives.
pub(crate) fn in_order(pace: Pace) -> Study {
    let lines = every(&SIZES).map(|(len, k)| {
        let block = Block::new(k, len);
        let contenders = vec![ours(OURS, &block, |_| false, Memory::Kept), copy(&block)];
        Line::new(len, Subject::K(k), &Race::run(contenders, pace), None)
    });
    Study {
        operation: "in order, without loss",
        unit: "GB/s of source data",
        note: "Each symbol polled as soon as it is there. That it takes no field arithmetic is a test of hopcast-code.",
        lines: lines.collect(),
        requirements: vec![
            Requirement::new(Level::Must, Against::Test("no field arithmetic at all"), 0.0),
            Requirement::new(Level::Goal, Against::Peer("memcpy"), 1.0),
        ],
    }
}

/// Whether each generation has a decoder of its own.
#[derive(Copy, Clone)]
enum Memory {
    New,
    Kept,
}

/// The symbols that are not lost, then as many combinations as it takes.
fn ours<'a>(
    name: &'static str,
    block: &'a Block,
    lost: impl Fn(usize) -> bool,
    memory: Memory,
) -> Contender<'a> {
    let mut payloads = vec![0; block.packets() * block.len];
    block.encoder().encode_many(&block.vectors, &mut payloads).expect("buffers that fit");
    let arrived: Vec<usize> = (0..block.k).filter(|&i| !lost(i)).collect();
    let mut kept: Option<Decoder> = None;
    let mut run = move |check: bool| {
        let mut decoder = match (memory, kept.take()) {
            (Memory::Kept, Some(mut decoder)) => {
                decoder.start(0);
                decoder
            }
            _ => Decoder::new(block.shape(), 0),
        };
        let mut count = 0;
        let mut check = |(index, symbol): (usize, &[u8])| {
            count += 1;
            if check {
                assert!(symbol == block.symbol(index), "{OURS} decodes the source");
            }
            black_box(symbol);
        };
        for &index in &arrived {
            push(&mut decoder, Coding::Symbol(index), black_box(block.symbol(index)));
            decoder.poll().map(&mut check);
        }
        for (packet, payload) in payloads.chunks(block.len).enumerate() {
            if decoder.is_complete() {
                break;
            }
            push(&mut decoder, Coding::Vector(black_box(block.vector(packet))), black_box(payload));
        }
        while decoder.poll().map(&mut check).is_some() {}
        assert_eq!(count, block.k);
        kept = Some(decoder);
    };
    run(true);
    Contender::new(name, block.bytes(), move || run(false))
}

fn push(decoder: &mut Decoder, coding: Coding<'_>, payload: &[u8]) {
    decoder.push(&Packet { generation: 0, coding, payload }).expect("a packet that fits");
}
