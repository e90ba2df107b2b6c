//! The hello's format: what is written is read, and nothing else is.

use proptest::prelude::*;

use super::super::wire::{self, Counts, Heard, Hello, Longest, Stamp, Tag};

fn hello() -> impl Strategy<Value = Hello> {
    let words = any::<[u32; 9]>();
    let lanes = proptest::collection::vec((0..64u8, any::<bool>()), 0..8);
    let probes = (0..9000_u16, any::<(u8, u8, u16)>());
    ("[a-zäø0-9_-]{1,32}", any::<([bool; 2], u64, u16)>(), words, probes, lanes).prop_map(
        |(name, ([ask, bye], instance, datagram), words, (padded, (round, heard, longest)), lanes)| Hello {
            name,
            ask,
            bye,
            instance,
            round,
            padded,
            longest: Longest { round: heard, bytes: longest },
            sequence: words[0],
            stamp: Stamp { nonce: words[1], micros: words[2] },
            echo: Stamp { nonce: words[3], micros: words[4] },
            held: words[5],
            sent: words[6],
            heard: Counts { sent: words[7], received: words[8] },
            datagram,
            lanes: lanes
                .into_iter()
                .map(|(n, tcp)| if tcp { Tag::tcp(n) } else { Tag::packets(n) })
                .collect(),
        },
    )
}

proptest! {
    #[test]
    fn a_hello_comes_out_as_it_went_in(hello in hello()) {
        prop_assert_eq!(wire::parse(&hello.emit()), Ok(Heard::Hello(hello)));
    }

    #[test]
    fn a_hello_cut_short_or_prolonged_is_none(hello in hello(), at in any::<proptest::sample::Index>()) {
        let mut bytes = hello.emit();
        let cut = at.index(bytes.len());
        prop_assert!(wire::parse(&bytes[..cut]).is_err());
        bytes.push(0);
        prop_assert!(wire::parse(&bytes).is_err());
    }

    #[test]
    fn no_bytes_make_the_decoder_panic(start in 0..=5usize, bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut all = b"hop\x02\x05"[..start].to_vec();
        all.extend(bytes);
        if let Ok(Heard::Hello(hello)) = wire::parse(&all) {
            prop_assert_eq!(hello.emit(), all);
        }
    }
}
