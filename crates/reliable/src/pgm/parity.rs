//! Parity of a transmission group (RFC 3208, section 11), with the code of OpenPGM.
//!
//! A **symbol** is the payload of a packet, filled up with zeros to the longest of its group. Where lengths differ, the
//! two bytes after it are the length, in network byte order, and parity covers these too. Packets of larger units have
//! OPT_FRAGMENT, whose fields are symbols of their own; a packet without it counts as zeros with bit U set. A group
//! that was ended early is a shortened one: the packets that it lacks count as zeros.

use hopcast_code::reed_solomon::Code;

use super::config::MAX_SYMBOLS;
use super::wire::Fragment;

/// A packet of a transmission group: what parity covers of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Symbol {
    pub(super) payload: Vec<u8>,
    pub(super) fragment: Option<Fragment>,
}

/// A parity packet: what its symbol is, and its header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ParitySymbol {
    pub(super) payload: Vec<u8>,
    /// Whether lengths differ, so that the payload ends with parity of them.
    pub(super) is_variable: bool,
    /// Parity of the fields of OPT_FRAGMENT, if a packet has one.
    pub(super) fragment: Option<Fragment>,
}

/// The code of transmission groups of one size.
#[derive(Clone, Debug)]
pub(super) struct Parity(Code);

/// Bytes that parity adds to a payload for its length.
pub(super) const LENGTH: usize = 2;
/// Bytes of OPT_FRAGMENT that parity covers: the fourth byte and three numbers.
const FRAGMENT: usize = 13;

impl Parity {
    /// The code for groups of `group` packets with as much parity as there can be; `None` if there is none.
    pub(super) fn new(group: usize) -> Option<Self> {
        let parity = usize::from(MAX_SYMBOLS).checked_sub(group)?;
        Code::new(group, parity).ok().map(Self)
    }

    /// Packets of a group.
    pub(super) fn group(&self) -> usize {
        self.0.source()
    }

    /// Number of parity packets that a group can have.
    pub(super) fn count(&self) -> usize {
        self.0.parity_symbols()
    }

    /// Parity packet `index` of a group, of which there may be fewer packets than [`group`](Self::group); `None` if
    /// there is no such parity packet, or no packet.
    pub(super) fn encode(&self, index: usize, group: &[Symbol]) -> Option<ParitySymbol> {
        let longest = group.iter().map(|symbol| symbol.payload.len()).max()?;
        let is_variable = group.iter().any(|symbol| symbol.payload.len() != longest);
        let has_fragment = group.iter().any(|symbol| symbol.fragment.is_some());
        let mut payload = vec![0; longest + if is_variable { LENGTH } else { 0 }];
        let mut fragment = [0; FRAGMENT];
        for (place, symbol) in group.iter().enumerate() {
            let len = symbol.payload.len();
            self.0.accumulate(index, place, &symbol.payload, &mut payload[..len]).ok()?;
            if is_variable {
                self.0.accumulate(index, place, &(len as u16).to_be_bytes(), &mut payload[longest..]).ok()?;
            }
            self.0.accumulate(index, place, &fields(symbol.fragment), &mut fragment).ok()?;
        }
        let fragment = has_fragment.then(|| fragment_of(fragment, true));
        Some(ParitySymbol { payload, is_variable, fragment })
    }

    /// The packets that are missing of a group of `size`, out of those that have arrived and of parity, by index; with
    /// their places. Nothing if too few are there, or they do not fit each other.
    pub(super) fn decode(
        &self,
        size: usize,
        have: &[(usize, &Symbol)],
        parity: &[(usize, &ParitySymbol)],
    ) -> Vec<(usize, Symbol)> {
        self.try_decode(size, have, parity).unwrap_or_default()
    }

    fn try_decode(
        &self,
        size: usize,
        have: &[(usize, &Symbol)],
        parity: &[(usize, &ParitySymbol)],
    ) -> Option<Vec<(usize, Symbol)>> {
        let (_, first) = parity.first()?;
        let (len, is_variable) = (first.payload.len(), first.is_variable);
        let has_fragment = first.fragment.is_some();
        let fits = |other: &ParitySymbol| {
            other.payload.len() == len
                && other.is_variable == is_variable
                && other.fragment.is_some() == has_fragment
        };
        let longest = len.checked_sub(if is_variable { LENGTH } else { 0 })?;
        let is_sound = parity.iter().all(|(_, other)| fits(other))
            && have.iter().all(|(_, symbol)| {
                let own = symbol.payload.len();
                own == longest || is_variable && own < longest
            });
        if !is_sound || have.len() + parity.len() < size {
            return None;
        }
        let mut symbols: Vec<(usize, Vec<u8>, [u8; FRAGMENT])> = Vec::with_capacity(size);
        for &(place, symbol) in have {
            let mut payload = symbol.payload.clone();
            payload.resize(longest, 0);
            if is_variable {
                payload.extend((symbol.payload.len() as u16).to_be_bytes());
            }
            symbols.push((place, payload, fields(symbol.fragment)));
        }
        for &(index, symbol) in parity.iter().take(size - have.len()) {
            symbols.push((size + index, symbol.payload.clone(), parity_fields(symbol.fragment)));
        }
        symbols.sort_unstable_by_key(|&(place, ..)| place);
        let places: Vec<usize> = symbols.iter().map(|&(place, ..)| place).collect();
        let mut decoder = self.0.decoder();
        decoder.prepare_short(size, &places).ok()?;
        let payloads: Vec<&[u8]> = symbols.iter().map(|(_, payload, _)| &payload[..]).collect();
        let fragments: Vec<&[u8]> = symbols.iter().map(|(_, _, fragment)| &fragment[..]).collect();
        let mut found = Vec::new();
        for &place in decoder.missing() {
            let (mut payload, mut fragment) = (vec![0; len], [0; FRAGMENT]);
            decoder.recover(place, &payloads, &mut payload).ok()?;
            if is_variable {
                let own = u16::from_be_bytes([payload[longest], payload[longest + 1]]);
                payload.truncate(longest.min(own.into()));
            }
            if has_fragment {
                decoder.recover(place, &fragments, &mut fragment).ok()?;
            }
            let fragment = has_fragment.then(|| fragment_of(fragment, false));
            let fragment = fragment.filter(|fragment| fragment.specific & Fragment::ABSENT == 0);
            found.push((place, Symbol { payload, fragment }));
        }
        Some(found)
    }
}

/// The bytes of OPT_FRAGMENT that parity covers.
fn fields(fragment: Option<Fragment>) -> [u8; FRAGMENT] {
    parity_fields(Some(fragment.unwrap_or(Fragment { specific: Fragment::ABSENT, ..Fragment::default() })))
}

fn parity_fields(fragment: Option<Fragment>) -> [u8; FRAGMENT] {
    let fragment = fragment.unwrap_or_default();
    let mut bytes = [0; FRAGMENT];
    bytes[0] = fragment.specific;
    bytes[1..5].copy_from_slice(&fragment.first.to_be_bytes());
    bytes[5..9].copy_from_slice(&fragment.offset.to_be_bytes());
    bytes[9..13].copy_from_slice(&fragment.length.to_be_bytes());
    bytes
}

fn fragment_of(bytes: [u8; FRAGMENT], is_encoded: bool) -> Fragment {
    let number = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    Fragment { first: number(1), offset: number(5), length: number(9), is_encoded, specific: bytes[0] }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn symbols(lens: &[usize], fragments: bool) -> Vec<Symbol> {
        let symbol = |(place, &len): (usize, &usize)| Symbol {
            payload: (0..len).map(|at| (at * 7 + place * 13 + 1) as u8).collect(),
            fragment: (fragments && place % 3 != 0).then_some(Fragment {
                first: 1000,
                offset: 100 * place as u32,
                length: 5000,
                ..Fragment::default()
            }),
        };
        lens.iter().enumerate().map(symbol).collect()
    }

    /// Loses `lost` of the group and decodes them from parity packets `from..`.
    fn repaired(code: &Parity, group: &[Symbol], lost: &[usize], from: usize) -> Vec<(usize, Symbol)> {
        let parity: Vec<_> =
            (from..from + lost.len()).map(|index| code.encode(index, group).unwrap()).collect();
        let parity: Vec<_> =
            parity.iter().enumerate().map(|(index, symbol)| (from + index, symbol)).collect();
        let have: Vec<_> = group.iter().enumerate().filter(|(place, _)| !lost.contains(place)).collect();
        code.decode(group.len(), &have, &parity)
    }

    #[test]
    fn parity_replaces_packets_of_several_lengths_and_of_units_and_of_a_short_group() {
        let code = Parity::new(8).unwrap();
        for lens in [&[50; 8][..], &[50, 1, 0, 49, 50, 3, 7, 9], &[20; 3], &[5]] {
            for fragments in [false, true] {
                let group = symbols(lens, fragments);
                let lost: Vec<usize> = (0..lens.len().min(3)).collect();
                let found = repaired(&code, &group, &lost, 9);
                let expected: Vec<_> = lost.iter().map(|&place| (place, group[place].clone())).collect();
                assert_eq!(found, expected, "{lens:?}");
            }
        }
    }

    #[test]
    fn too_few_packets_or_such_as_do_not_fit_give_nothing() {
        let code = Parity::new(4).unwrap();
        let group = symbols(&[10; 4], false);
        let parity = code.encode(0, &group).unwrap();
        let other = ParitySymbol { payload: vec![0; 9], is_variable: false, fragment: None };
        let have = [(0, &group[0]), (1, &group[1])];
        assert_eq!(code.decode(4, &have, &[(0, &parity)]), []);
        assert_eq!(code.decode(4, &have, &[(0, &parity), (1, &other)]), []);
        assert_eq!(code.decode(4, &have, &[(0, &parity), (0, &parity)]), []);
        assert_eq!(code.decode(4, &have, &[(0, &parity), (900, &parity)]), []);
        assert_eq!(code.encode(251, &group), None);
    }

    /// Parity packets of OpenPGM 5.3.128's own encoder, of groups of 8 and of 64 packets of 16 bytes. Its source cannot
    /// be made to send any: it takes each packet for a group of its own, and crashes on the first. Its decoder gives
    /// these packets back from them.
    const OPENPGM: [(usize, usize, [u8; 16]); 6] = [
        (8, 0, *b"\xf3\xc7\xc1\x2a\x33\x85\x52\x54\x56\xea\x4a\x5d\x50\xef\xcc\xd4"),
        (8, 1, *b"\x29\xd2\x33\xf5\xbd\x71\x73\x27\x90\xb0\x74\x70\xe6\x4d\x57\x9d"),
        (8, 5, *b"\xd8\x4f\xa6\xa7\xce\xfb\xc9\xe4\xab\xe7\x93\x46\x1b\xca\xfc\x6c"),
        (64, 0, *b"\xce\x77\xb2\xf5\x66\x6e\x24\xad\x3a\xad\xa5\xbc\x6b\x39\x7c\x32"),
        (64, 1, *b"\x50\x44\xbf\x23\x4b\xa6\x57\x80\x93\x28\x9c\x02\x96\x5b\xe2\x7b"),
        (64, 5, *b"\x21\x30\x2d\xc1\x14\x53\x5e\xc5\xa4\x85\xad\xc4\x81\x17\x4d\x9a"),
    ];

    #[test]
    fn parity_is_that_of_openpgm_which_decodes_here() {
        let payload =
            |place: usize| (0..16).map(|at| (37 * place + 11 * at + place * at + 1) as u8).collect();
        for size in [8, 64] {
            let code = Parity::new(size).unwrap();
            let group: Vec<_> =
                (0..size).map(|place| Symbol { payload: payload(place), fragment: None }).collect();
            let theirs: Vec<(usize, ParitySymbol)> = OPENPGM
                .iter()
                .filter(|(of, ..)| *of == size)
                .map(|&(_, index, bytes)| {
                    (index, ParitySymbol { payload: bytes.to_vec(), is_variable: false, fragment: None })
                })
                .collect();
            for (index, symbol) in &theirs {
                assert_eq!(code.encode(*index, &group).as_ref(), Some(symbol), "{size} {index}");
            }
            let lost = [1, 4, 7];
            let have: Vec<_> = group.iter().enumerate().filter(|(place, _)| !lost.contains(place)).collect();
            let parity: Vec<_> = theirs.iter().map(|(index, symbol)| (*index, symbol)).collect();
            let found = code.decode(size, &have, &parity);
            assert_eq!(found, lost.map(|place| (place, group[place].clone())));
        }
    }

    proptest! {
        #[test]
        fn whatever_is_decoded_does_not_panic(
            size in 1_usize..10,
            places in prop::collection::vec(0_usize..300, 0..6),
            lens in prop::collection::vec(0_usize..8, 6),
            is_variable in any::<bool>(),
        ) {
            let code = Parity::new(8).unwrap();
            let parity: Vec<_> = places
                .iter()
                .zip(&lens)
                .map(|(&place, &len)| (place, ParitySymbol { payload: vec![1; len], is_variable, fragment: None }))
                .collect();
            let parity: Vec<_> = parity.iter().map(|(place, symbol)| (*place, symbol)).collect();
            let group = symbols(&lens, false);
            let have: Vec<_> = group.iter().enumerate().take(size / 2).collect();
            code.decode(size, &have, &parity);
        }
    }
}
