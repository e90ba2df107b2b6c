//! One row and many rows.

use std::hint::black_box;

use hopcast_code::field::{Field, Gf256, Kernel};

use super::{LENGTHS, OURS, every};
use crate::anchors::{product, xor};
use crate::block::Aligned;
use crate::limit;
use crate::race::{Contender, Pace, Race};
use crate::table::{Against, Level, Line, Only, Requirement, Study, Subject};

const XOR: &str = "XOR";
const ISAL: &str = "ISA-L";
const SINGLE: &str = "single axpy";

/// A coefficient that no kernel could treat specially.
const COEFFICIENT: u8 = 0xB7;

/// `y += a x` with every kernel that the machine has.
pub(crate) fn axpy(pace: Pace) -> Study {
    let kernels: Vec<Kernel> = Kernel::all().collect();
    let mut lines = Vec::new();
    for len in LENGTHS {
        for &kernel in kernels.iter().rev() {
            let mut contenders = vec![single(OURS, kernel, len), sum(len)];
            #[cfg(isal)]
            contenders.push(isal(len));
            contenders.push(copy(len));
            let subject = Subject::Kernel { name: kernel.name(), best: kernel == Kernel::best() };
            lines.push(Line::new(len, subject, &Race::run(contenders, pace), None));
        }
    }
    Study {
        operation: "y += a x",
        unit: "GB/s of x",
        note: "Aligned, in the first-level cache. Requirements are for the GFNI + AVX-512 path, and held against the best here.",
        requirements: vec![
            Requirement::new(Level::Must, Against::Peer(XOR), 0.92),
            Requirement::new(Level::Must, Against::Peer(ISAL), 1.5),
            Requirement::new(Level::Goal, Against::Peer(XOR), 0.97),
        ],
        lines,
    }
}

/// Many rows at once beside one.
pub(crate) fn blocked(pace: Pace) -> Study {
    let lines = every(&[64, 128, 256]).map(|(len, k)| {
        let mut contenders = vec![product(OURS, k, 64, len), single(SINGLE, Kernel::best(), len)];
        contenders.extend(limit::contender());
        Line::new(len, Subject::K(k), &Race::run(contenders, pace), None)
    });
    Study {
        operation: "blocked product of many rows",
        unit: "GB/s of terms",
        note: "64 rows of k terms. The issue limit is the same arithmetic on registers alone.",
        lines: lines.collect(),
        requirements: vec![
            Requirement::new(Level::Must, Against::Peer(SINGLE), 2.5).only(Only::From(64)),
            Requirement::new(Level::Goal, Against::Peer(limit::NAME), 0.9).only(Only::From(64)),
        ],
    }
}

fn single(name: &'static str, kernel: Kernel, len: usize) -> Contender<'static> {
    let (x, mut y) = (Aligned::zeroed(1, len), Aligned::zeroed(1, len));
    Contender::new(name, len, move || {
        kernel.axpy(
            <Gf256>::tables(),
            black_box(y.symbol_mut(0)),
            black_box(COEFFICIENT),
            black_box(x.symbol(0)),
        );
    })
}

fn sum(len: usize) -> Contender<'static> {
    let (x, mut y) = (Aligned::zeroed(1, len), Aligned::zeroed(1, len));
    Contender::new(XOR, len, move || xor(black_box(y.symbol_mut(0)), black_box(x.symbol(0))))
}

fn copy(len: usize) -> Contender<'static> {
    let (x, mut y) = (Aligned::zeroed(1, len), Aligned::zeroed(1, len));
    Contender::new("memcpy", len, move || black_box(y.symbol_mut(0)).copy_from_slice(black_box(x.symbol(0))))
}

#[cfg(isal)]
fn isal(len: usize) -> Contender<'static> {
    let tables = crate::isal::Tables::new(&[COEFFICIENT], 1);
    let (x, mut y) = (Aligned::zeroed(1, len), Aligned::zeroed(1, len));
    Contender::new(ISAL, len, move || tables.axpy(black_box(y.symbol_mut(0)), black_box(x.symbol(0))))
}
