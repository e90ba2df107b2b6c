//! Packets of OpenPGM 5.3.128, as they were captured between two of its members, in UDP.

use super::*;

/// Reads a captured packet, which is written again as it was.
fn captured<'a>(bytes: &'a [u8]) -> Packet<'a> {
    let packet = Packet::parse(bytes).unwrap();
    assert_eq!(&packet.emit()[..], bytes);
    packet
}

const SOURCE: Tsi = Tsi { gsi: [0, 0, 0, 0, 0, 1], port: 0x88FF };

#[test]
fn an_spm_of_openpgm_is_read_and_the_one_that_ends_its_session() {
    let path = IpAddr::from([10, 9, 0, 1]);
    let bytes = hex("88ff1d4c00004f740000000000010000000000030000000000000031000100000a090001");
    let spm = captured(&bytes);
    assert_eq!((spm.session, spm.port), (SOURCE, 7500));
    assert_eq!(spm.body, Body::Spm(Spm { sequence: 3, trail: 0, lead: 49, path }));
    assert_eq!(spm.options, Options::default());

    let bytes =
        hex("88ff1d4c0001c15c0000000000010000000000090000000000000031000100000a090001000400088e040000");
    let last = captured(&bytes);
    assert_eq!(last.options, Options { fin: true, ..Options::default() });
}

#[test]
fn requests_of_openpgm_are_read_with_a_list_and_without() {
    let nak = |sequence| Nak {
        sequence,
        source: IpAddr::from([10, 9, 0, 1]),
        group: IpAddr::from([239, 192, 0, 1]),
    };
    let bytes = hex("1d4c88ff080057e4000000000001000000000001000100000a09000100010000efc00001");
    let one = captured(&bytes);
    assert_eq!((one.session, one.port, one.is_upstream()), (SOURCE, 7500, true));
    assert_eq!((one.body, one.options), (Body::Nak(nak(1)), Options::default()));

    let bytes =
        hex("1d4c88ff0803a47f000000000001000000000003000100000a09000100010000efc0000100040034823030000000\
         0004000000050000000c0000000d00000016000000190000001a0000001f000000210000002500000027");
    // OpenPGM leaves what was in memory in the bytes that are reserved.
    let mut list = Packet::parse(&bytes).unwrap();
    assert_eq!(list.body, Body::Nak(nak(3)));
    assert_eq!(std::mem::take(&mut list.options.nak_list), [4, 5, 12, 13, 22, 25, 26, 31, 33, 37, 39]);
    assert_eq!(list.options, Options::default());
}

#[test]
fn a_request_of_openpgm_for_an_spm_is_read() {
    let bytes = hex("1d4c56e30c007fcf0000000000010000");
    let request = captured(&bytes);
    assert_eq!(request.body, Body::SpmRequest);
    assert_eq!(request.session, Tsi { gsi: [0, 0, 0, 0, 0, 1], port: 0x56E3 });
}
