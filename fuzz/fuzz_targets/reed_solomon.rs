//! Any k of the k + n symbols, in any order, give the missing ones back; anything else is refused. What is falsified in
//! one place falsifies no other.
#![no_main]

use arbitrary::Arbitrary;
use hopcast_code::reed_solomon::{Code, Points};
use hopcast_fuzz::elimination::source_symbol;
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input {
    source: u8,
    parity: u8,
    powers: bool,
    len: u8,
    blocks: Vec<Block>,
}

#[derive(Arbitrary, Debug)]
struct Block {
    /// Number of source symbols that there are fewer than the code has.
    short: u8,
    /// Symbols that arrive, each modulo their number; the rest is the source in order.
    arrivals: Vec<u8>,
    /// As it comes, to be refused unless it happens to be right.
    strange: Option<Vec<u16>>,
    lie: Option<(u8, u8)>,
}

fuzz_target!(|input: Input| run(&input));

fn run(input: &Input) {
    let (k, n) = (usize::from(input.source), usize::from(input.parity));
    let points = if input.powers { Points::Powers } else { Points::Rizzo };
    let Ok(code) = Code::with_points(k, n, points) else {
        assert!(k == 0 || k + n > Code::MAX_SYMBOLS);
        return;
    };
    let len = usize::from(input.len) % 9;
    let mut decoder = code.decoder();
    // Each solves a system of up to 127 unknowns.
    for block in input.blocks.iter().take(4) {
        let size = k - usize::from(block.short) % k;
        if let Some(strange) = &block.strange {
            let received: Vec<usize> = strange.iter().map(|&index| index.into()).collect();
            if decoder.prepare_short(size, &received).is_err() {
                assert!(decoder.missing().is_empty());
                assert!(decoder.recover(0, &[], &mut []).is_err());
            } else {
                let distinct: std::collections::BTreeSet<_> = received.iter().collect();
                assert!(distinct.len() == size && received.len() == size);
                assert!(received.iter().all(|&index| index < size + n));
            }
        }

        let source: Vec<Vec<u8>> = (0..size).map(|index| source_symbol(index as u64, len)).collect();
        let source: Vec<&[u8]> = source.iter().map(|symbol| &symbol[..]).collect();
        let indices = indices(&block.arrivals, size, n);
        let mut received: Vec<Vec<u8>> = indices
            .iter()
            .map(|&index| match index.checked_sub(size) {
                None => source[index].to_vec(),
                Some(parity) => {
                    let mut symbol = vec![0; len];
                    code.parity(parity, &source, &mut symbol).expect("there is such a one");
                    symbol
                }
            })
            .collect();
        let lie = block.lie.filter(|_| len > 0).map(|(at, flip)| {
            let (which, at) = (usize::from(at) % size, usize::from(at) % len);
            received[which][at] ^= flip;
            at
        });
        let received: Vec<&[u8]> = received.iter().map(|symbol| &symbol[..]).collect();

        decoder.prepare_short(size, &indices).expect("they are as many as needed, and distinct");
        let missing: Vec<usize> = (0..size).filter(|index| !indices.contains(index)).collect();
        assert_eq!(decoder.missing(), missing);
        for index in missing {
            let mut symbol = vec![0xA5; len];
            decoder.recover(index, &received, &mut symbol).expect("it is missing");
            for (at, (found, expected)) in symbol.iter().zip(source[index]).enumerate() {
                assert!(found == expected || lie == Some(at), "symbol {index}, byte {at}");
            }
            assert!(decoder.recover(index, &received[1..], &mut symbol).is_err());
            assert!(decoder.recover(index, &received, &mut vec![0; len + 1]).is_err());
        }
        if let Some(&present) = indices.iter().find(|&&index| index < size) {
            assert!(decoder.recover(present, &received, &mut vec![0; len]).is_err());
        }
    }
}

/// `size` distinct indices out of `size + n`.
fn indices(wanted: &[u8], size: usize, n: usize) -> Vec<usize> {
    let mut indices = Vec::new();
    for index in wanted.iter().map(|&index| usize::from(index) % (size + n)).chain(0..size) {
        if indices.len() < size && !indices.contains(&index) {
            indices.push(index);
        }
    }
    indices
}
