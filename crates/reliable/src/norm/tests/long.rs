//! A stream that goes on for ten minutes, to receivers that come late and that are cut off.

use hopcast_core::{Buffer, Duration, Instant, Item, Rate, StreamId, StreamItem};

use super::net::{Link, Net, address, group};
use super::transfers::lossy;
use crate::norm::{Join, RateControl, ReceiverConfig, SenderConfig};

/// Bytes that the application writes each time; of a block a part, so that blocks end anywhere.
const PIECE: usize = 12_000;
/// Time between two of them: 960 kbit/s.
const EVERY: Duration = Duration::from_millis(100);
/// Their number: ten minutes.
const PIECES: u64 = 6000;

/// The stream's bytes from a place on: each eight of them are their number.
fn piece(from: u64, len: usize) -> Vec<u8> {
    let words = (from / 8..).flat_map(u64::to_be_bytes);
    words.skip((from % 8) as usize).take(len).collect()
}

/// A receiver's end of the stream.
#[derive(Default)]
struct End {
    /// Place at which the stream began for it, and of the next byte.
    began: Option<u64>,
    at: u64,
    finished: bool,
}

impl End {
    /// Takes what the receiver was handed, and lets it go.
    fn take(&mut self, net: &mut Net, receiver: usize) {
        for (_, item) in std::mem::take(&mut net.members[receiver].up) {
            let Item::Stream(id, item) = item else { panic!("{item:?}") };
            match item {
                StreamItem::Open { .. } => {
                    net.give(receiver, Item::Stream(id, StreamItem::Credit(u64::MAX / 2)));
                }
                StreamItem::Data(bytes) => {
                    if self.began.is_none() {
                        // A block begins with a whole number of eights.
                        let number = bytes.first_chunk().map(|&first| u64::from_be_bytes(first));
                        self.at = number.expect("eight bytes") * 8;
                        self.began = Some(self.at);
                    }
                    assert!(
                        bytes[..] == piece(self.at, bytes.len())[..],
                        "receiver {receiver} at {}",
                        self.at
                    );
                    self.at += bytes.len() as u64;
                }
                StreamItem::Finish => self.finished = true,
                other => panic!("receiver {receiver} at {}: {other:?}", self.at),
            }
        }
    }
}

#[test]
fn a_stream_of_ten_minutes_arrives_byte_by_byte_wherever_it_is_joined() {
    let sender = SenderConfig { rate: RateControl::Fixed(Rate::from_mbit(2)), ..SenderConfig::default() };
    let now_only = ReceiverConfig { join: Join::Now, ..ReceiverConfig::default() };
    let mut net = Net::new(1);
    net.add(Some(sender), None, Link::default(), 1);
    let [steady, cut, late] = [ReceiverConfig::default(), ReceiverConfig::default(), now_only]
        .map(|config| net.add(None, Some(config), lossy(0.05), 1));
    net.members[late].is_cut = true;
    net.give(0, Item::Stream(StreamId(0), StreamItem::Open { local: address(0), remote: group() }));
    let mut ends: [End; 3] = Default::default();
    let mut most_held = 0;
    let mut written = 0;
    // A little longer than it is written, for what is under way.
    for step in 1..=PIECES + 50 {
        let time = EVERY * step;
        match step {
            2000 => net.members[late].is_cut = false,
            3000 => net.members[cut].is_cut = true,
            3030 => net.members[cut].is_cut = false,
            _ => {}
        }
        if step <= PIECES {
            let bytes = Buffer::copy_from(&piece(written, PIECE));
            net.give(0, Item::Stream(StreamId(0), StreamItem::Data(bytes)));
            written += PIECE as u64;
        }
        if step == PIECES {
            net.give(0, Item::Stream(StreamId(0), StreamItem::Finish));
        }
        net.members[0].up.clear();
        for (receiver, end) in [steady, cut, late].into_iter().zip(&mut ends) {
            end.take(&mut net, receiver);
            let (incomplete, decoded) = net.members[receiver].session.held();
            most_held = most_held.max(incomplete + decoded);
        }
        net.run(time, |_| false);
    }
    for (receiver, end) in ends.iter().enumerate() {
        assert!(end.finished && end.at == written, "receiver {receiver} came to {} of {written}", end.at);
    }
    assert_eq!((ends[0].began, ends[1].began), (Some(0), Some(0)));
    // It came at 200 s, and the next block began soon after.
    let place = PIECE as u64 * 2000;
    let began = ends[2].began.expect("the stream was joined");
    assert!(began.abs_diff(place) < 200_000, "{began}, {place}");
    assert_eq!(net.counter(0, "repairs_given_up"), 0);
    // Three seconds of the stream, and the blocks that are under way.
    assert!(most_held < 2_000_000, "{most_held} bytes held");
    assert_eq!(net.now, Instant::ZERO + EVERY * (PIECES + 50));
}
