use proptest::prelude::*;

use super::*;
use crate::norm::wire::fti::EXAMPLE as FTI;
use crate::norm::wire::{Fec, Fti, StreamHeader};

mod captured;

#[test]
fn twenty_segments_in_blocks_of_at_most_eight_are_seven_seven_and_six() {
    // As libnorm cuts them.
    let blocks = Blocks::of(&FTI).unwrap();
    assert_eq!(blocks.count(), 3);
    assert_eq!([0, 1, 2, 3].map(|block| blocks.source(block)), [7, 7, 6, 0]);
    assert_eq!([0, 1, 2, 3].map(|block| blocks.block_offset(block)), [0, 7_000, 14_000, 20_000]);
    assert_eq!(blocks.offset(2, 5), 19_000);
}

#[test]
fn only_the_last_segment_is_shorter() {
    let blocks = Blocks::new(2_001, 1000, 8, Fec::ReedSolomon8).unwrap();
    assert_eq!([0, 1, 2, 3].map(|symbol| blocks.segment_len(0, symbol)), [1000, 1000, 1, 0]);
}

#[test]
fn an_object_of_nothing_has_no_blocks() {
    let blocks = Blocks::new(0, 1000, 8, Fec::ReedSolomon8).unwrap();
    assert_eq!((blocks.count(), blocks.source(0), blocks.segment_len(0, 0)), (0, 0, 0));
}

#[test]
fn an_object_has_no_more_blocks_than_there_are_numbers() {
    let fits = |blocks: u64, fec| Blocks::new(blocks * 10, 10, 1, fec);
    assert_eq!(fits(1 << 24, Fec::ReedSolomon8).unwrap().count(), 1 << 24);
    let refused = Unsupported::Blocks { blocks: (1 << 24) + 1, numbers: 1 << 24 };
    assert_eq!(fits((1 << 24) + 1, Fec::ReedSolomon8), Err(refused));
    assert!(fits((1 << 16) + 1, Fec::ReedSolomon).is_err());
    assert!(fits(1 << 32, Fec::SmallBlock).is_err(), "a count is 32 bits");
}

#[test]
fn codes_that_are_not_here_are_refused_by_name() {
    let refused = |fti| Codec::of(&fti).unwrap_err().to_string();
    let wide = Fti { fec: Fec::ReedSolomon, field: 16, group: 1, ..FTI };
    assert_eq!(refused(wide), "a code over GF(2^16): only 8-bit elements are supported");
    assert_eq!(refused(Fti { field: 8, group: 3, ..wide }), "3 symbols in a packet: only one is supported");
    let small = Fti { fec: Fec::SmallBlock, instance: 7, ..FTI };
    assert_eq!(refused(small), "FEC instance 7 of encoding id 129: only 0 is supported");
    let many = "blocks of 200 source and 56 parity symbols: the code has 255 at most";
    assert_eq!(refused(Fti { source: 200, parity: 56, ..FTI }), many);

    for fits in
        [FTI, Fti { field: 8, group: 1, ..wide }, Fti { field: 0, ..wide }, Fti { instance: 0, ..small }]
    {
        assert_eq!(Codec::of(&fits), Codec::new(8, 4));
    }
    // Of ids 2 and 129 they are of 16 bits each, and are not added up in as many.
    let most = Fti { fec: Fec::SmallBlock, source: u16::MAX, parity: u16::MAX, ..FTI };
    assert!(Codec::check(&most).is_err() && Codec::check(&FTI).is_ok());
}

#[test]
fn a_block_with_one_symbol_too_few_stays_as_it_is() {
    let codec = Codec::new(4, 2).unwrap();
    let mut symbols = vec![Some(vec![1]), None, Some(vec![3]), None, None, Some(vec![5])];
    let before = symbols.clone();
    assert_eq!(codec.decode(4, &mut symbols), Err(Undecodable { source_symbols: 4, present: 3 }));
    assert_eq!(symbols, before);
}

#[test]
fn a_block_of_which_no_source_symbol_is_missing_needs_no_parity() {
    let codec = Codec::new(4, 2).unwrap();
    let mut symbols = vec![Some(vec![1]), Some(vec![2]), None];
    let before = symbols.clone();
    codec.decode(2, &mut symbols).unwrap();
    assert_eq!(symbols, before);
}

#[test]
fn symbols_that_the_code_does_not_have_are_no_help() {
    let codec = Codec::new(4, 2).unwrap();
    let refused = |source, mut symbols: Vec<Option<Vec<u8>>>| codec.decode(source, &mut symbols).is_err();
    let some = || Some(vec![1]);
    assert!(refused(5, vec![None, some(), some(), some(), some(), some()]), "more than four source symbols");
    assert!(refused(1, vec![None, None, None, some()]), "a third parity symbol");
    assert!(refused(2, vec![some()]), "a source symbol without a place");
}

proptest! {
    #[test]
    fn blocks_are_of_two_sizes_and_cover_the_object(
        size in 0_u64..5_000_000,
        segment in 1_u16..2_000,
        max_source in 1_u16..255,
    ) {
        let blocks = Blocks::new(size, segment, max_source, Fec::SmallBlock).unwrap();
        let mut at = 0;
        let few = blocks.count().min(2_000);
        for block in 0..few {
            let source = blocks.source(block);
            prop_assert!((1..=max_source).contains(&source));
            prop_assert!(source == blocks.source(0) || source + 1 == blocks.source(0));
            for symbol in 0..source {
                prop_assert_eq!(blocks.offset(block, symbol), at);
                let len = blocks.segment_len(block, symbol) as u64;
                prop_assert!(len == u64::from(segment) || at + len == size);
                at += len;
            }
        }
        prop_assert!(few < blocks.count() || at == size);
    }

    #[test]
    fn any_symbols_that_are_enough_give_a_block_back(
        max_source in 1_usize..40,
        parity in 0_usize..20,
        shorter in 0_usize..40,
        lens in prop::collection::vec(0_usize..50, 40),
        order in Just((0..60).collect::<Vec<usize>>()).prop_shuffle(),
    ) {
        let source_symbols = max_source.saturating_sub(shorter).max(1);
        let codec = Codec::new(max_source as u16, parity as u16).unwrap();
        let source: Vec<Vec<u8>> = (0..source_symbols)
            .map(|symbol| (0..lens[symbol]).map(|at| (symbol * 37 + at * 11 + 1) as u8).collect())
            .collect();
        let longest = source.iter().map(Vec::len).max().unwrap();
        let mut symbols: Vec<Option<Vec<u8>>> = source.iter().cloned().map(Some).collect();
        let parts: Vec<&[u8]> = source.iter().map(Vec::as_slice).collect();
        for index in 0..parity {
            let mut symbol = vec![0; longest];
            codec.parity(index, &parts, &mut symbol);
            symbols.push(Some(symbol));
        }
        let lost: Vec<usize> = order.into_iter().filter(|&index| index < symbols.len()).take(parity).collect();
        lost.iter().for_each(|&index| symbols[index] = None);
        codec.decode(source_symbols, &mut symbols).unwrap();
        for (found, expected) in symbols.iter().zip(&source) {
            let found = found.as_ref().unwrap();
            prop_assert_eq!(&found[..expected.len()], &expected[..]);
            prop_assert!(found[expected.len()..].iter().all(|&byte| byte == 0));
        }
    }
}
