//! Edges that are started anew, and their streams.

use hopcast_core::{StreamId, StreamItem};

use super::chain::address;
use super::*;

const ID: StreamId = StreamId(0);
/// The stream's number at the other edge.
const FAR: StreamId = StreamId(1);

fn chain() -> Chain {
    let cables = vec![cable(10, Duration::from_millis(5), Loss::None, 64); 2];
    Chain::new(&Config::default(), &cables, 1)
}

fn open(chain: &mut Chain) {
    let (local, remote) = (address(100), address(102));
    chain.give_stream(0, ID, StreamItem::Open { local, remote });
    chain.give_stream(0, ID, StreamItem::Credit(1 << 20));
}

/// Writes what the credit so far allows at the far edge, at most `limit` bytes.
fn write(chain: &mut Chain, edge: usize, id: StreamId, byte: u8, limit: usize) {
    let credit = |(at, of, item): &(usize, StreamId, StreamItem)| match item {
        StreamItem::Credit(bytes) if (*at, *of) == (edge, id) => *bytes as usize,
        _ => 0,
    };
    let credit = chain.streamed.iter().map(credit).sum::<usize>();
    chain.streamed.clear();
    chain.give_stream(edge, id, StreamItem::Data(Buffer::copy_from(&vec![byte; credit.min(limit)])));
}

fn received(chain: &Chain, edge: usize) -> Vec<u8> {
    let data = chain.streamed.iter().filter_map(|(at, _, item)| match item {
        StreamItem::Data(data) if *at == edge => Some(data.to_vec()),
        _ => None,
    });
    data.flatten().collect()
}

#[test]
fn a_stream_to_an_edge_that_was_started_anew_is_reset() {
    let mut chain = chain();
    open(&mut chain);
    chain.run_for(Duration::from_millis(100));
    chain.give_stream(2, FAR, StreamItem::Credit(1 << 20));
    chain.run_for(Duration::from_millis(100));
    chain.restart(2);
    write(&mut chain, 0, ID, 1, 100_000);
    chain.run_for(Duration::from_secs(2));
    assert!(received(&chain, 2).is_empty(), "nobody knows what that is");
    assert!(chain.streamed.contains(&(0, ID, StreamItem::Reset)));
}

#[test]
fn what_was_for_an_edge_before_it_was_started_anew_is_not_taken_for_what_is_for_it_now() {
    let mut chain = chain();
    open(&mut chain);
    chain.run_for(Duration::from_millis(100));
    write(&mut chain, 2, FAR, 1, 200_000);
    // Half of it is there. The stream that is opened then has the same number.
    chain.run_for(Duration::from_millis(80));
    assert!((1..200_000).contains(&received(&chain, 0).len()));
    chain.restart(0);
    chain.streamed.clear();
    open(&mut chain);
    chain.run_for(Duration::from_secs(1));
    assert!(received(&chain, 0).is_empty(), "{} bytes", received(&chain, 0).len());
    write(&mut chain, 2, FAR, 2, 1000);
    chain.run_for(Duration::from_secs(1));
    assert_eq!(received(&chain, 0), [2; 1000]);
}
