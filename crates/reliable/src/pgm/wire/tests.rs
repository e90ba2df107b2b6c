use proptest::prelude::*;

use super::*;

mod captured;
mod strategies;

use strategies::packet;

fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> = digits.bytes().filter(u8::is_ascii_hexdigit).collect();
    let value = |digit: u8| char::from(digit).to_digit(16).unwrap() as u8;
    digits.chunks(2).map(|pair| value(pair[0]) << 4 | value(pair[1])).collect()
}

/// The field at which reading stops, of a packet whose checksum is made right.
fn fault(digits: &str) -> &'static str {
    let mut bytes = hex(digits);
    seal(&mut bytes);
    Packet::parse(&bytes).unwrap_err().field
}

const SESSION: Tsi = Tsi { gsi: [1, 2, 3, 4, 5, 6], port: 0x88FF };

fn spm() -> Packet<'static> {
    let path = IpAddr::from([10, 9, 0, 1]);
    Packet::new(SESSION, 7500, Body::Spm(Spm { sequence: 3, trail: 0, lead: 49, path }))
}

#[test]
fn a_packet_cut_off_anywhere_is_refused_with_the_field() {
    let mut packet = spm();
    packet.options.join = Some(7);
    packet.options.fin = true;
    let whole = packet.emit();
    assert_eq!(Packet::parse(&whole), Ok(packet));
    for len in 0..whole.len() {
        let mut cut = whole[..len].to_vec();
        if len >= HEADER_LEN {
            seal(&mut cut);
        }
        assert!(Packet::parse(&cut).is_err(), "{len} bytes");
    }
    assert_eq!(Packet::parse(&whole[..5]).unwrap_err().field, "options flags");
    assert_eq!(Packet::parse(&whole[..15]).unwrap_err().field, "payload length");
    let mut cut = whole[..20].to_vec();
    seal(&mut cut);
    assert_eq!(Packet::parse(&cut).unwrap_err().field, "SPM trail");
}

#[test]
fn values_that_a_field_must_not_have_are_refused() {
    let header = |kind: &str| format!("1d4c88ff {kind} 0000 000000000001 0000");
    let spm =
        |options: &str| format!("{} 00000003 00000000 00000031 00010000 0a090001 {options}", header("0001"));
    assert_eq!(fault(&header("4000")), "version");
    assert_eq!(fault(&header("0300")), "type");
    assert_eq!(
        fault(&format!("{} 00000003 00000000 00000031 00030000 0a090001", header("0000"))),
        "SPM path"
    );
    assert_eq!(fault(&format!("{} 00000003 00000000 aa", header("0400"))), "payload length");
    assert_eq!(fault(&spm("0104 0008 8e040000")), "options length");
    assert_eq!(fault(&spm("0004 0002")), "options length");
    assert_eq!(fault(&spm("0004 000c 8e040000")), "options length");
    assert_eq!(fault(&spm("0004 000c 8e040000 8e040000")), "options length");
    assert_eq!(fault(&spm("0004 0008 8e030000")), "option length");
    assert_eq!(fault(&spm("0004 0008 0e040000")), "option type");
    assert_eq!(fault(&spm(&format!("0004 0048 {}", "0e040000".repeat(17)))), "number of options");
    assert_eq!(fault(&spm("0004 0008 82040000")), "NAK list");
    assert_eq!(fault(&spm("0004 000a 82060000 0000")), "NAK list");
    assert_eq!(fault(&spm("0004 000c 88080001 00000007")), "transmission group size");
    assert_eq!(fault(&spm("0004 000c 8a080000 00000000")), "current transmission group size");
}

#[test]
fn options_that_nobody_knows_are_ignored_unless_they_forbid_it() {
    let with = |flags: &str| {
        let mut bytes = hex(&format!(
            "88ff1d4c 0001 0000 000000000001 0000 00000003 00000000 00000031 00010000 0a090001 \
             0004 0010 7108{flags}00 ffffffff 8e040000"
        ));
        seal(&mut bytes);
        Packet::parse(&bytes).map(|packet| packet.options.fin)
    };
    assert_eq!(with("00"), Ok(true));
    assert_eq!(with("01"), Ok(true), "invalidated, by those who send it on");
    assert_eq!(with("02"), Err(Malformed { field: "option type" }));
}

#[test]
fn a_wrong_checksum_is_refused_and_data_without_one() {
    let whole = spm().emit();
    let mut wrong = whole.to_vec();
    wrong[30] ^= 1;
    assert_eq!(Packet::parse(&wrong).unwrap_err().field, "checksum");
    let mut none = whole.to_vec();
    none[CHECKSUM].fill(0);
    assert!(Packet::parse(&none).is_ok(), "the sender has made none");
    let data = Body::Original(Data { sequence: 1, trail: 0 });
    let mut none = Packet::new(SESSION, 7500, data).emit().to_vec();
    none[CHECKSUM].fill(0);
    assert_eq!(Packet::parse(&none).unwrap_err().field, "checksum");
}

#[test]
fn a_network_element_puts_its_own_address_in_an_spm() {
    let mut bytes = spm().emit();
    let own = IpAddr::from([10, 9, 9, 9]);
    set_path(&mut bytes, own).unwrap();
    let Body::Spm(found) = Packet::parse(&bytes).unwrap().body else { panic!("an SPM") };
    assert_eq!((found.path, found.lead), (own, 49));
    let other = IpAddr::from([0_u16; 8]);
    assert_eq!(set_path(&mut bytes, other), Err(Malformed { field: "path" }));
    let mut request = Packet::new(SESSION, 7500, Body::SpmRequest).emit();
    assert_eq!(set_path(&mut request, own), Err(Malformed { field: "type" }));
}

#[test]
fn the_ports_of_receivers_packets_are_swapped() {
    let request = Packet::new(SESSION, 7500, Body::SpmRequest).emit();
    assert_eq!(request[..4], [0x1D, 0x4C, 0x88, 0xFF]);
    assert_eq!(spm().emit()[..4], [0x88, 0xFF, 0x1D, 0x4C]);
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(packet in packet(), payload in prop::collection::vec(any::<u8>(), 0..50)) {
        let payload = if matches!(packet.body, Body::Original(_) | Body::Repair(_)) { payload } else { Vec::new() };
        let packet = Packet { payload: &payload, ..packet };
        let bytes = packet.emit();
        prop_assert_eq!(bytes.len(), packet.len());
        prop_assert_eq!(Packet::parse(&bytes), Ok(packet));
    }

    #[test]
    fn any_bytes_are_a_packet_or_an_error(mut bytes in prop::collection::vec(any::<u8>(), 16..200), kind in 0_u8..16) {
        bytes[4] = kind;
        seal(&mut bytes);
        if let Ok(packet) = Packet::parse(&bytes) {
            let again = packet.emit();
            prop_assert_eq!(Packet::parse(&again), Ok(packet));
        }
    }
}
