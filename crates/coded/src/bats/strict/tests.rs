//! End of blocks, at the source and at the sink, with no network between them.

use hopcast_core::{Duration, Instant};

use super::super::config::Config;
use super::super::shape::Shape;
use super::super::span::MAX_SYMBOLS;
use super::super::wire::{BatchHeader, COMPLETE, EndToEndReport, HopQuality};
use super::direction::Arrived;
use super::ring::Ring;
use super::sink::{Sink, Taken};
use super::source::Source;

/// Lossy enough that one packet in five arrives.
const HOPS: usize = 5;
const LOSS: f64 = 0.25;

fn shape() -> Shape {
    Shape::begun(&Config::strict(), 256)
}

/// A source that has made this number of symbols, all in its first block, which is then closed because it is old.
fn old_block(symbols: usize) -> (Source, Ring, Instant) {
    let mut source = Source::new(shape(), 1, 256, None).unwrap();
    let (mut ring, mut now) = (Ring::new(256, 0), Instant::ZERO);
    // That there are losses is known, so that blocks may grow old.
    let mut end_to_end = EndToEndReport { number: 1, ..EndToEndReport::default() };
    _ = end_to_end.hops.push(HopQuality::new(LOSS, 1.0));
    source.on_end_to_end(now, &end_to_end, HopQuality::new(LOSS, 1.0));
    for _ in 0..symbols {
        source.make(now, &mut ring, |_, symbol| symbol.len());
    }
    now += Duration::from_millis(60);
    source.wake(now, &mut ring, false);
    (source, ring, now)
}

/// The report once all up to the last batch has arrived as far as it will, and that is `rank`.
fn all_arrived(number: u16, latest: u16, rank: u16) -> EndToEndReport {
    let mut end_to_end = EndToEndReport {
        number,
        quiet: true,
        latest: Some((0, latest)),
        mean: 16 * 256,
        ..EndToEndReport::default()
    };
    for _ in 0..HOPS {
        _ = end_to_end.hops.push(HopQuality::new(LOSS, 1.0));
    }
    _ = end_to_end.ranks.push(rank);
    end_to_end
}

/// Sends repairs until no more are owed; how many packets those are.
fn repairs(source: &mut Source, ring: &mut Ring, now: Instant) -> u16 {
    let mut sent = 0;
    while let Some(owed) = source.owes(true) {
        source.repair(now, ring, owed);
        sent += owed.1;
        assert!(sent < 8192, "no end");
    }
    sent
}

#[test]
fn a_block_that_is_closed_before_it_is_full_gets_all_it_lacks_at_once_while_data_waits() {
    let (mut source, mut ring, now) = old_block(960);
    assert_eq!(source.owes(true), None, "all of it is under way");
    source.on_end_to_end(now, &all_arrived(2, 29, 660), HopQuality::new(LOSS, 1.0));
    // A batch of 32 a round trip, and each block would take ten of them.
    let sent = repairs(&mut source, &mut ring, now);
    assert!(sent > 300, "{sent} packets for 300 symbols");
}

#[test]
fn of_a_trickle_no_more_is_sent_again_than_is_missing() {
    let (mut source, mut ring, now) = old_block(100);
    source.on_end_to_end(now, &all_arrived(2, 3, 60), HopQuality::new(LOSS, 1.0));
    let mut coming = 0;
    while let Some(owed) = source.owes(false) {
        source.repair(now, &mut ring, owed);
        coming += owed.1;
    }
    assert!((40..=64).contains(&coming), "{coming} packets for 40 symbols");
}

#[test]
fn what_is_lost_again_is_sent_with_more_each_time() {
    let (mut source, mut ring, now) = old_block(960);
    let mut sent = Vec::new();
    for round in 0..6 {
        // The repair batches come after the 32 systematic ones.
        let latest = if round == 0 { 29 } else { 31 + round };
        source.on_end_to_end(now, &all_arrived(2 + round, latest, 959), HopQuality::new(LOSS, 1.0));
        sent.push(repairs(&mut source, &mut ring, now));
    }
    assert!(sent.is_sorted() && sent[5] >= 2 * sent[0], "{sent:?}");
}

#[test]
fn a_block_that_only_waits_for_those_before_it_is_complete() {
    let shape = shape();
    let mut sink = Sink::new(shape, 1, 256, 0, 1).unwrap();
    let mut symbol = |block, position: u16| {
        let batch = shape.batch;
        let id = position / batch.symbols() as u16;
        let header = BatchHeader { block: shape.block, batch, id };
        let index = Some((usize::from(position) % batch.symbols()) as u8);
        let payload = vec![7; usize::from(shape.symbol)];
        let packet = Arrived { block, header, depth: 0, index, vector: [0; MAX_SYMBOLS] };
        assert_eq!(sink.push(Instant::ZERO, &packet, &payload), Taken::Innovative);
        sink.deliver(|_| {});
    };
    (0..shape.block - 1).for_each(|position| symbol(0, position));
    (0..shape.block).for_each(|position| symbol(1, position));
    let end_to_end = sink.end_to_end(Instant::ZERO);
    assert_eq!(end_to_end.first, 0);
    assert!(end_to_end.ranks.iter().copied().eq([shape.block - 1, COMPLETE]));

    let (mut source, mut ring) = (Source::new(shape, 1, 256, None).unwrap(), Ring::new(256, 0));
    for _ in 0..2 * shape.block {
        source.make(Instant::ZERO, &mut ring, |_, symbol| symbol.len());
    }
    source.on_end_to_end(Instant::ZERO, &EndToEndReport { quiet: true, ..end_to_end }, HopQuality::default());
    assert_eq!(source.owes(true).map(|(block, _)| block), Some(0));
    repairs(&mut source, &mut ring, Instant::ZERO);
    assert!(source.owes(false).is_none_or(|(block, _)| block == 0), "nothing is missing of the second");
}
