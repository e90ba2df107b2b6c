//! The checksum of an entry of a translation table.

use hopcast_wire::ethernet::Mac;

/// The polynomial of CRC-32C (RFC 3720 section 12.1), lowest bit first.
const POLYNOMIAL: u32 = 0x82f6_3b78;

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut crc, mut bit) = (byte as u32, 0);
        while bit < 8 {
            crc = crc >> 1 ^ if crc & 1 != 0 { POLYNOMIAL } else { 0 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

/// Goes on with a CRC-32C, without the inversions that RFC 3720 has at its begin and end: the kernel has none here.
pub(crate) fn crc32c(crc: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(crc, |crc, &byte| crc >> 8 ^ TABLE[usize::from(crc as u8 ^ byte)])
}

/// Checksum of a client's entry: of its VLAN, its flags and its address.
pub(super) fn of_entry(vlan: u16, flags: u8, address: Mac) -> u32 {
    crc32c(crc32c(crc32c(0, &vlan.to_be_bytes()), &[flags]), &address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_rfc_3720_without_its_inversions() {
        assert_eq!(!crc32c(!0, b"123456789"), 0xe306_9283);
        // RFC 3720 section B.4: 32 bytes of zeros, and of ones.
        assert_eq!(!crc32c(!0, &[0; 32]), 0x8a91_36aa);
        assert_eq!(!crc32c(!0, &[0xff; 32]), 0x62a8_ab43);
        assert_eq!(of_entry(0, 0, [0; 6]), 0);
        assert_eq!(
            of_entry(0x8007, 0x10, [1, 2, 3, 4, 5, 6]),
            crc32c(0, b"\x80\x07\x10\x01\x02\x03\x04\x05\x06")
        );
    }
    #[test]
    fn the_kernels_checksums_are_those_of_the_entries_that_it_sends() {
        use crate::captured::{ECHO, TABLE, bytes};
        use crate::wire::data::UnicastTvlv;
        use crate::wire::translation::TableData;
        use crate::wire::{Header, ogm, tvlv};

        let packet = bytes(TABLE);
        let (_, containers) = UnicastTvlv::parse(&packet).unwrap();
        let table = tvlv::containers(containers).next().unwrap();
        let data = TableData::parse(table.value).unwrap();
        let of = |vlan| {
            let entries = data.changes().filter(|entry| entry.vlan == vlan);
            entries.fold(0, |crc, entry| crc ^ of_entry(vlan, entry.flags, entry.address))
        };
        let vlans: Vec<u16> = data.checksums().map(|checksum| checksum.vlan).collect();
        assert_eq!(vlans, [0x8007, 0x8000, 0]);
        assert!(data.checksums().all(|checksum| of(checksum.vlan) == checksum.crc));
        // Those of this crate's node, which the kernel took for right.
        let packet = bytes(ECHO);
        let (_, containers) = ogm::messages(&packet).unwrap().next().unwrap();
        let data = TableData::parse(tvlv::containers(containers).next().unwrap().value).unwrap();
        let host = [6, 0, 0, 0, 0, 0xa1];
        let found: Vec<u32> = data.checksums().map(|checksum| checksum.crc).collect();
        assert_eq!(found, [of_entry(0, 0, host), of_entry(0x8007, 0, host)]);
    }
}
