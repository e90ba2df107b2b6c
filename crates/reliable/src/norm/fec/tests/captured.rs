//! Parity of libnorm 1.5.9, as it was on the wire: blocks of at most 8 source and 4 parity symbols, segments of 32
//! bytes.

use super::*;

/// The object of 613 bytes that was sent.
fn object() -> Vec<u8> {
    (0..613_usize).map(|at| (at * 7 + at / 256 * 13) as u8).collect()
}

/// Parity of its blocks of 7, 7 and 6 source symbols, the last of which is 5 bytes long.
const OBJECT: [[&str; 4]; 3] = [
    [
        "e6217589dd1e4ab6e225e0574824cb7c63a4f0a0f4d3879fcb0c13a4610d12a5",
        "7015ba56f945ea06a9cc56d715c818995b3e9174db6bc4248bee2cad37ea28a9",
        "4ab0a39685425164778d477761179babbd4754bba8dbc8495aa0b6864c3a2c1c",
        "4340454a4f67626d686bd26cd80d8e308487821a1f7b7e3d383b8f31885de957",
    ],
    [
        "266c11d66e6d87a42f5690cb7e3b432bebb5c8289049a38d067f49121154c6e8",
        "cc503940ad5428acf741cb080c17a148e2fc95b558f9858e49ff67a4aab18ae7",
        "57c56c69e75fb88c2b25a60b975be8d9cec76ee96703e4a1b3bda409ad611f39",
        "2489085f26ef83375238e426c79632373835b42b5296fa67d9b3589abeeff5d9",
    ],
    [
        "02716a9dbd6aaf9aed2465b5ddc3c94cc415e3d660d5083d9f565f8fe2797371",
        "c02d6c1a5e9365f16e16b3e2c02f813ab5df4f6263734ade750d8ddc2f1eb01e",
        "db430eecd81fe1582a651e564efe65404dc1be2378781ca51857571fc759c291",
        "d9c104766528df067e1a942a06accad4985ffed3d8a70fd698fc69d708d0b6c1",
    ],
];

/// Parity of the same bytes in a stream, block 1: with the stream's headers, of 40 bytes each.
const STREAM: [&str; 4] = [
    "00200000000001aa5d444b717a63646d1a130c05cbc2c5dcd7d4dbc2c9f3f4fde6ef9c958e87804c",
    "0020000000000199879e91979c85828b323b242df8f1f6efe40e01181315121b0009b4bda6afa87f",
    "00200000000001706d747ba8a3babdb459504f4611181f060de4ebf2f92a2d243f36dfd6cdc4c396",
    "0020000000000134110807b3b8a1a6afe6eff0f9555c5b424998978e8531363f242d6069727b7cd2",
];

fn bytes(digits: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(byte).collect()
}

/// The code makes this parity, and any of it stands in for any source symbols.
fn is_parity_of(source: &[Vec<u8>], captured: &[&str]) {
    let codec = Codec::new(8, 4).unwrap();
    let parts: Vec<&[u8]> = source.iter().map(Vec::as_slice).collect();
    let captured: Vec<Vec<u8>> = captured.iter().map(|digits| bytes(digits)).collect();
    for (index, expected) in captured.iter().enumerate() {
        let mut parity = vec![0; expected.len()];
        codec.parity(index, &parts, &mut parity);
        assert_eq!(&parity, expected, "parity symbol {index} of {} source symbols", source.len());
    }
    let mut symbols: Vec<Option<Vec<u8>>> = source.iter().chain(&captured).cloned().map(Some).collect();
    for lost in [0, 2, 3, source.len() - 1] {
        symbols[lost] = None;
    }
    codec.decode(source.len(), &mut symbols).unwrap();
    for (symbol, expected) in symbols.iter().flatten().zip(source) {
        assert_eq!(symbol[..expected.len()], expected[..]);
    }
}

#[test]
fn the_parity_of_an_object_is_libnorms() {
    let object = object();
    let blocks = Blocks::new(613, 32, 8, Fec::ReedSolomon8).unwrap();
    assert_eq!(blocks.count(), 3);
    for (block, captured) in OBJECT.iter().enumerate() {
        let block = block as u32;
        let symbol = |symbol| {
            let from = blocks.offset(block, symbol) as usize;
            object[from..from + blocks.segment_len(block, symbol)].to_vec()
        };
        let source: Vec<Vec<u8>> = (0..blocks.source(block)).map(symbol).collect();
        is_parity_of(&source, captured);
    }
}

#[test]
fn the_parity_of_a_stream_is_libnorms() {
    let object = object();
    let symbol = |number: usize| {
        let from = number * 32;
        let mut symbol = vec![0; StreamHeader::LEN];
        StreamHeader { length: 32, message_start: 0, offset: from as u32 }.write(&mut symbol);
        symbol.extend_from_slice(&object[from..from + 32]);
        symbol
    };
    let source: Vec<Vec<u8>> = (8..16).map(symbol).collect();
    is_parity_of(&source, &STREAM);
}
