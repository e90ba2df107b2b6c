use hopcast_core::{Duration, Instant};
use proptest::prelude::*;

use super::*;

mod captured;
mod messages;

/// Reads a datagram that is right.
fn parse(bytes: &[u8]) -> Message<'_> {
    Message::parse(bytes).unwrap()
}

fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> = digits.bytes().filter(u8::is_ascii_hexdigit).collect();
    let value = |digit: u8| char::from(digit).to_digit(16).unwrap() as u8;
    digits.chunks(2).map(|pair| value(pair[0]) << 4 | value(pair[1])).collect()
}

/// The field at which reading stops.
fn fault(bytes: &[u8]) -> &'static str {
    Message::parse(bytes).unwrap_err().field
}

#[test]
fn a_message_cut_off_anywhere_in_its_header_is_refused_with_the_field() {
    // DATA with an FTI: eight bytes, eight, a payload id and the extension.
    let data =
        hex("12 08 0001 00000001  0002 6b 42 00 05 0003  000004 05  40 03 0000 00004e20 03e8 08 04 aa");
    let message = parse(&data);
    assert!(matches!(message.body, Body::Data(Data { payload: [0xAA], .. })));
    for len in 0..data.len() - 1 {
        assert!(Message::parse(&data[..len]).is_err(), "{len} bytes");
    }
    assert_eq!(fault(&data[..6]), "source");
    assert_eq!(fault(&data[..20]), "header length");
    // A header that says it is shorter than its fields.
    for (words, field) in
        [(1, "header length"), (2, "instance"), (4, "FEC payload id"), (6, "extension length")]
    {
        let mut short = data.clone();
        short[1] = words;
        assert_eq!(fault(&short), field);
    }
}

#[test]
fn values_that_a_field_must_not_have_are_refused() {
    let data = hex("12 05 0001 00000001  0002 6b 42 00 05 0003  000004 05");
    let with = |at: usize, value: u8| {
        let mut bytes = data.clone();
        bytes[at] = value;
        bytes
    };
    assert_eq!(fault(&with(0, 0x22)), "version");
    assert_eq!(fault(&with(0, 0x10)), "type");
    assert_eq!(fault(&with(0, 0x16)), "type");
    assert_eq!(fault(&with(13, 6)), "FEC encoding id");
    assert_eq!(fault(&hex("13 04 0001 00000001  0002 6b 42 08 000000")), "command flavor");
    assert_eq!(fault(&hex("13 04 0001 00000001  0002 6b 42 06 001000 0000")), "acknowledging nodes");
    assert_eq!(fault(&hex("13 05 0001 00000001  0002 6b 42 03 05 0001 00000000 00")), "invalid objects");
    let probe = "13 06 0001 00000001  0002 6b 42 04 00 0001 00000000 00000000";
    assert_eq!(fault(&hex(&format!("{probe} 00000001 00"))), "congestion control nodes");
    let fti =
        |fields: &str| hex(&format!("12 08 0001 00000001 0002 6b 42 00 05 0003 00000405 40 03 {fields}"));
    assert_eq!(fault(&fti("0000 00004e20 0000 08 04")), "FTI segment size");
    assert_eq!(fault(&fti("0000 00004e20 03e8 00 04")), "FTI block length");
    // An FTI of id 129 has a word more than there is.
    let mut other = fti("0000 00004e20 03e8 08 04");
    other[13] = 129;
    assert!(Message::parse(&other).is_err());
}

#[test]
fn requests_for_repair_are_whole_and_not_empty() {
    let nack =
        |repairs: &str| hex(&format!("14 06 0001 00000002  00000001 0002 0000 00000000 00000000 {repairs}"));
    assert!(matches!(parse(&nack("")).body, Body::Nack(Nack { repairs, .. }) if repairs.is_empty()));
    assert_eq!(fault(&nack("01 01 0000")), "repair length");
    assert_eq!(fault(&nack("01 01 0008 05 00 0003")), "repair length");
    assert_eq!(fault(&nack("01 01 0004 05 00 0003")), "FEC payload id");
    assert_eq!(fault(&nack("04 01 0008 05 00 0003 00000405")), "repair form");
    assert_eq!(fault(&nack("02 01 0008 05 00 0003 00000405")), "repair range");
    assert_eq!(fault(&nack("01 01 0008 05 00 0003 00000405 01")), "repair flags");
    let two = nack("01 01 0008 05 00 0003 00000405 02 02 0010 05 00 0003 00000500 05 00 0003 00000700");
    let Body::Nack(Nack { repairs, .. }) = parse(&two).body else { panic!("a NACK") };
    assert_eq!(
        repairs.iter().map(|repair| (repair.form, repair.flags)).collect::<Vec<_>>(),
        [(RepairForm::Items, RepairFlags::SEGMENT), (RepairForm::Ranges, RepairFlags::BLOCK),]
    );
    assert_eq!(repairs[1].items.iter().map(|item| item.id.block).collect::<Vec<_>>(), [5, 7]);
}

#[test]
fn extensions_that_nobody_knows_are_skipped() {
    // One of two words, one of one word, the rate twice, and EXT_CC where it means nothing here.
    let command = |extensions: &str, words: u8| {
        hex(&format!("13 {words:02x} 0001 00000001 0002 6b 42 04 00 0001 00000000 00000000 {extensions}"))
    };
    let bytes =
        command("05 02 ffff ffffffff  90 ff ffff  80 00 1234  80 00 4321  03 03 0001 00000000 00000000", 14);
    let bytes = &bytes[..];
    let Body::Command(_, Command::CongestionControl { rate, nodes, .. }) = parse(bytes).body else {
        panic!("a probe")
    };
    assert_eq!((rate, nodes), (Some(0x1234), vec![]));
    assert_eq!(fault(&command("05 00 0000", 7)), "extension length");
    assert_eq!(fault(&command("05 02 0000", 7)), "extension length");
}

#[test]
fn a_payload_id_of_encoding_2_is_read_again_for_8_bits() {
    let id = PayloadId { block: 0x1234, symbol: 0x5678, block_len: 0 };
    assert_eq!(id.with_8_bits(), PayloadId { block: 0x12_3456, symbol: 0x78, block_len: 0 });
    assert_eq!(id.with_8_bits().with_16_bits(), id);
}

#[test]
fn a_streams_symbol_says_how_much_of_it_is_data() {
    let symbol = hex("0003 0002 00000010 616263 0000");
    let header = StreamHeader { length: 3, message_start: 2, offset: 16 };
    assert_eq!(StreamHeader::read(&symbol), Ok((header, &b"abc"[..])));
    let mut again = [0; StreamHeader::LEN];
    header.write(&mut again);
    assert_eq!(again, symbol[..StreamHeader::LEN]);
    let fault = |bytes: &str| StreamHeader::read(&hex(bytes)).unwrap_err().field;
    assert_eq!(fault("0006 0002 00000010 616263 0000"), "stream payload length");
    assert_eq!(fault("0003 0004 00000010 616263 0000"), "stream message start");
    let end = StreamHeader { length: 0, message_start: StreamHeader::END, offset: 16 };
    assert_eq!(StreamHeader::read(&hex("0000 0000 00000010")), Ok((end, &[][..])));
}

#[test]
fn numbers_are_compared_across_their_wrap() {
    assert_eq!(serial::distance16(1, u16::MAX), 2);
    assert_eq!(serial::distance16(u16::MAX, 1), -2);
    assert_eq!(serial::distance16(0x8000, 0), i16::MIN);
    for (fec, last) in
        [(Fec::ReedSolomon, 0xFFFF), (Fec::ReedSolomon8, 0xFF_FFFF), (Fec::SmallBlock, 0xFFFF_FFFF)]
    {
        assert_eq!(serial::block_distance(fec, 2, last), 3);
        assert_eq!(serial::block_distance(fec, last, 2), -3);
        assert_eq!(serial::block_after(fec, last, 3), 2);
        assert_eq!(serial::block_after(fec, 2, -3), last);
    }
}

#[test]
fn round_trips_are_those_of_rfc_5740() {
    // Of the table that libnorm has, in microseconds, to its four digits.
    for (quantised, micros) in
        [(0, 1.0), (30, 31.0), (31, 32.87), (32, 35.5), (100, 6_635.0), (157, 531_500.0), (255, 1e9)]
    {
        let found = quantise::rtt(quantised).as_secs_f64() * 1e6;
        assert!((found / micros - 1.0).abs() < 2e-3, "{quantised}: {found} and not {micros}");
    }
    for quantised in 0..=255 {
        let rtt = quantise::rtt(quantised);
        assert_eq!(quantise::from_rtt(rtt), quantised, "{rtt}");
        assert!(quantised == 255 || quantise::rtt(quantised + 1) > rtt);
    }
    assert_eq!(quantise::from_rtt(Duration::ZERO), 0);
    assert_eq!(quantise::from_rtt(Duration::MAX), 255);
}

#[test]
fn group_sizes_are_rounded_up() {
    let rounded = |size| quantise::group_size(quantise::from_group_size(size));
    let expected = [(0, 10), (10, 10), (11, 50), (100, 100), (1000, 1000), (1001, 5000), (5001, 10_000)];
    for (size, expected) in expected {
        assert_eq!(rounded(size), expected);
    }
    assert_eq!(rounded(u32::MAX), 500_000_000);
    assert_eq!(quantise::from_group_size(1000), 2);
    assert_eq!(quantise::from_group_size(50), 8);
}

#[test]
fn rates_keep_three_digits_and_never_become_none() {
    assert_eq!(quantise::from_rate(8_000.0), 0xCCD3);
    for rate in [1.0, 9.9999, 99.995, 1_000.0, 12_345.6, 1e9, 9.999e15] {
        let found = quantise::rate(quantise::from_rate(rate));
        // A mantissa of 12 bits, of which the smallest is 409.6.
        assert!((found / rate - 1.0).abs() < 0.5 / 409.0, "{found} and not {rate}");
    }
    for none in [0.0, -1.0, f64::NAN] {
        assert_eq!(quantise::rate(quantise::from_rate(none)), 0.0);
    }
    assert_eq!(quantise::from_rate(f64::INFINITY), 0xFFFF);
    assert!(quantise::rate(quantise::from_rate(0.5)) > 0.4);
}

#[test]
fn losses_are_fractions_of_32_bits_of_which_the_upper_half_is_rfc_5740s() {
    assert_eq!(quantise::from_loss(0.5) >> 16, 0x8000);
    assert_eq!((quantise::from_loss(-1.0), quantise::from_loss(2.0)), (0, u32::MAX));
    assert!((quantise::loss(quantise::from_loss(0.01)) - 0.01).abs() < 1e-9);
}

#[test]
fn times_of_a_sender_are_added_to_and_subtracted() {
    let sent = Timestamp::of(Instant::from_nanos(2_999_999_999));
    assert_eq!(sent, Timestamp { seconds: 2, micros: 999_999 });
    let answered = sent.after(Duration::from_micros(2));
    assert_eq!(answered, Timestamp { seconds: 3, micros: 1 });
    assert_eq!(answered.since(sent), Some(Duration::from_micros(2)));
    assert_eq!(sent.since(answered), None);
    let wrapped = Timestamp { seconds: u32::MAX, micros: 999_999 }.after(Duration::from_micros(1));
    assert_eq!(wrapped, Timestamp::default());
    assert_eq!(wrapped.since(Timestamp { seconds: u32::MAX, micros: 0 }), Some(Duration::from_secs(1)));
    // What others send may be anything.
    let odd = Timestamp { seconds: 0, micros: u32::MAX };
    let _ = odd.after(Duration::MAX).since(odd);
}

proptest! {
    #[test]
    fn rounded_round_trips_are_the_next_that_is_not_shorter(nanos in 1_000_u64..1_000_000_000_000) {
        let rtt = Duration::from_nanos(nanos);
        let quantised = quantise::from_rtt(rtt);
        prop_assert!(quantise::rtt(quantised) >= rtt);
        prop_assert!(quantised == 0 || quantise::rtt(quantised - 1) < rtt);
    }

    #[test]
    fn any_bytes_are_a_message_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(message) = Message::parse(&bytes) {
            let again = message.emit();
            prop_assert_eq!(&parse(&again), &message);
        }
    }
}
