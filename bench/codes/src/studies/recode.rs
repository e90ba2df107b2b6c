//! A relay's work: M packets out of M.

use std::hint::black_box;

use hopcast_code::rlnc::{Coding, Packet, Recoder};

use super::{OURS, every};
use crate::anchors::blocked;
use crate::block::Block;
use crate::peers::{rlnc, simdx};
use crate::race::{Contender, Pace, Race};
use crate::table::{Against, Level, Line, Only, Requirement, Study, Subject};

const M: usize = 16;

pub(crate) fn recode(pace: Pace) -> Study {
    let lines = every(&[M, 64, 256]).map(|(len, k)| {
        let block = Block::new(k, len);
        let contenders = vec![ours(&block), simdx::recode(&block, M), rlnc::recode(&block, M), blocked(len)];
        Line::new(len, Subject::K(k), &Race::run(contenders, pace), Some(M as f64))
    });
    Study {
        operation: "recode, M = 16",
        unit: "GB/s of what is sent",
        note: "16 packets out of 16. Their vectors are k long: 16 in a batch, longer where a generation is.",
        lines: lines.collect(),
        requirements: vec![
            Requirement::new(Level::Must, Against::Rate, 8.0).only(Only::At(M)),
            Requirement::new(Level::Goal, Against::Rate, 10.5).only(Only::At(M)),
        ],
    }
}

fn ours(block: &Block) -> Contender<'_> {
    let encoder = block.encoder();
    let mut payload = vec![0; block.len];
    let mut recoder: Recoder = Recoder::new(block.shape(), 0, M, 1);
    for packet in 0..M {
        let vector = block.vector(packet);
        encoder.encode(vector, &mut payload).expect("buffers that fit");
        let packet = Packet { generation: 0, coding: Coding::Vector(vector), payload: &payload };
        recoder.push(&packet).expect("a packet that fits");
    }
    let (mut vectors, mut payloads) = (vec![0; M * block.k], vec![0; M * block.len]);
    Contender::new(OURS, M * block.len, move || {
        recoder.recode_many(black_box(&mut vectors), black_box(&mut payloads)).expect("buffers that fit");
    })
}
