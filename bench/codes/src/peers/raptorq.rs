//! The crate `raptorq`: RFC 6330, which relays cannot recode.

use std::hint::black_box;

use raptorq::{
    EncodingPacket, ObjectTransmissionInformation, PayloadId, SourceBlockDecoder, SourceBlockEncoder,
};

use crate::block::{Block, is_lost};
use crate::race::Contender;

pub(crate) const NAME: &str = "raptorq";

/// From the symbols that are not lost, and as many repair symbols as it takes.
pub(crate) fn decode_systematic(block: &Block) -> Contender<'_> {
    decode(block, is_lost)
}

/// From nothing but repair symbols.
pub(crate) fn decode_repair(block: &Block) -> Contender<'_> {
    decode(block, |_| true)
}

fn decode(block: &Block, lost: impl Fn(usize) -> bool) -> Contender<'_> {
    let config = ObjectTransmissionInformation::new(block.bytes() as u64, block.len as u16, 1, 1, 8);
    let repair = SourceBlockEncoder::new(0, &config, &block.source).repair_packets(0, block.packets() as u32);
    let arrived = (0..block.k).filter(|&i| !lost(i)).map(|i| (i as u32, block.symbol(i)));
    let repair = repair.iter().map(|packet| (packet.payload_id().encoding_symbol_id(), packet.data()));
    let packets: Vec<(u32, Vec<u8>)> =
        arrived.chain(repair).map(|(id, payload)| (id, payload.to_vec())).collect();
    let run = move |check: bool| {
        let mut decoder = SourceBlockDecoder::new(0, &config, block.bytes() as u64);
        let decoded = packets.iter().find_map(|(id, payload)| {
            // It takes packets by value, so what arrived in a buffer must be copied.
            let packet = EncodingPacket::new(PayloadId::new(0, *id), black_box(payload).clone());
            decoder.decode([packet])
        });
        let decoded = decoded.expect("enough packets");
        if check {
            assert!(decoded == block.source, "{NAME} decodes the source");
        }
        black_box(decoded);
    };
    run(true);
    Contender::new(NAME, block.bytes(), move || run(false))
}
