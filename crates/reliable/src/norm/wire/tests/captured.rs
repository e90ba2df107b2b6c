//! Datagrams of libnorm 1.5.9, as they were on the wire.

use super::*;

/// Reads a captured datagram, and sees that the same bytes are written.
fn captured(digits: &str) -> Message<'static> {
    let bytes: &'static [u8] = hex(digits).leak();
    let message = parse(bytes);
    assert_eq!(&message.emit()[..], bytes, "{message:?}");
    message
}

fn command(digits: &str) -> Command<'static> {
    match captured(digits).body {
        Body::Command(_, command) => command,
        body => panic!("{body:?}"),
    }
}

fn nack(digits: &str) -> Nack {
    match captured(digits).body {
        Body::Nack(nack) => nack,
        body => panic!("{body:?}"),
    }
}

fn ack(digits: &str) -> Ack<'static> {
    match captured(digits).body {
        Body::Ack(ack) => ack,
        body => panic!("{body:?}"),
    }
}

const fn at(object: u16, block: u32, symbol: u16) -> Position {
    Position { fec: Fec::ReedSolomon8, object, id: PayloadId { block, symbol, block_len: 0 } }
}

const HEADER: Header = Header { instance: 1, grtt: 0x6B, backoff: 4, group_size: 0 };

const FTI: Fti = Fti { object_size: 30_000, segment: 100, ..fti::EXAMPLE };

#[test]
fn info_of_a_file_has_its_transmission_information() {
    let message = captured("110701380000000100016b401405000140030000000075300064080468656c6c6f");
    assert_eq!((message.sequence, message.source), (0x138, NodeId(1)));
    let flags = Flags::INFO.with(Flags::FILE);
    let info =
        Info { header: HEADER, flags, fec: Fec::ReedSolomon8, object: 1, fti: Some(FTI), payload: b"hello" };
    assert_eq!(message.body, Body::Info(info));
    // Its log says 11.370 ms, by a table of four digits.
    assert!(quantise::rtt(HEADER.grtt).abs_diff(Duration::from_micros(11_370)) < Duration::from_micros(10));
    assert_eq!(quantise::group_size(HEADER.group_size), 10);
}

#[test]
fn transmission_information_has_a_form_for_each_encoding() {
    let fti = |digits| match captured(digits).body {
        Body::Info(info) => info.fti.unwrap(),
        body => panic!("{body:?}"),
    };
    let wide = fti("110800010000000100016b4004020000400400000000753010010064012c001468656c6c6f");
    let expected = Fti { fec: Fec::ReedSolomon, source: 300, parity: 20, field: 16, group: 1, ..FTI };
    assert_eq!(wide, expected);
    let small = fti("110800010000000100016b40048100004004000000007530000000640008000468656c6c6f");
    assert_eq!(small, Fti { fec: Fec::SmallBlock, ..FTI });
}

#[test]
fn a_streams_symbol_has_its_place_and_the_last_one_is_empty() {
    let data = |digits| match captured(digits).body {
        Body::Data(data) => (data.flags, data.id, StreamHeader::read(data.payload).unwrap()),
        body => panic!("{body:?}"),
    };
    let (flags, id, (header, bytes)) = data(
        "120800250000000100016b4024050001000001014003000000400000002008040020000000000120\
         edf4fb020910171e252c333a41484f565d646b727980878e959ca3aab1b8bfc6",
    );
    assert_eq!(flags, Flags::STREAM.with(Flags::INFO));
    assert_eq!(id, PayloadId { block: 1, symbol: 1, block_len: 0 });
    // Segments are of 32 bytes, which their header does not count into.
    assert_eq!((header.offset, header.length, bytes.len()), (9 * 32, 32, 32));

    let (_, id, (header, bytes)) =
        data("1208042b0000000100016b40240500020000250440030000003ffd40006408040000000000007530");
    assert_eq!((id.block, id.symbol), (37, 4));
    assert_eq!((header.length, header.message_start, header.offset), (0, StreamHeader::END, 30_000));
    assert!(bytes.is_empty());
}

#[test]
fn a_flush_says_what_was_sent_last_and_who_is_to_acknowledge() {
    let last = at(2, 37, 4);
    assert_eq!(
        command("1305042c0000000100016b400105000200002504"),
        Command::Flush { last, acknowledge: vec![] }
    );
    let Command::Flush { acknowledge, .. } =
        command("130504570000000100016b4001050002000025030000000200000003")
    else {
        panic!("a flush")
    };
    assert_eq!(acknowledge, [NodeId(2), NodeId(3)]);
    // Of the other encodings.
    let of = |digits| match command(digits) {
        Command::Flush { last, .. } => (last.fec, last.id),
        command => panic!("{command:?}"),
    };
    let id = PayloadId { block: 1, symbol: 0, block_len: 0 };
    assert_eq!(of("130503950000000100016b400102000200010000"), (Fec::ReedSolomon, id));
    let id = PayloadId { block: 37, symbol: 6, block_len: 7 };
    assert_eq!(of("1306028e0000000100016b40018100010000002500070006"), (Fec::SmallBlock, id));
}

#[test]
fn a_squelch_says_what_can_still_be_repaired() {
    let squelch = command("1305005b0000000100017f400305000200000000");
    assert_eq!(squelch, Command::Squelch { first: at(2, 0, 0), invalid: vec![] });
}

#[test]
fn a_probe_has_the_senders_clock_and_its_rate_and_who_limits_it() {
    let sent = Timestamp { seconds: 0x6B04_48F4, micros: 0x0009_70D1 };
    assert_eq!(
        command("130700000000000100016b40040000006b0448f4000970d180008005"),
        Command::CongestionControl { sequence: 0, sent, rate: Some(0x8005), syn: false, nodes: vec![] }
    );
    // 4 Mbit/s.
    assert_eq!(quantise::rate(0x8005), 500_000.0);

    let probe =
        command("130700090000000100019c40040000036b0448fd000d817b80004bf2000000030d3a4bf2000000020c3a4bf2");
    let Command::CongestionControl { sequence, nodes, .. } = probe else { panic!("a probe") };
    let node = |node, flags| CcNode { node: NodeId(node), flags, rtt: 0x3A, rate: 0x4BF2 };
    let starting = CcFlags::RTT.with(CcFlags::START);
    assert_eq!(sequence, 3);
    assert_eq!(nodes, [node(3, starting.with(CcFlags::CLR)), node(2, starting)]);
}

#[test]
fn requests_by_unicast_are_advertised_with_the_feedback() {
    let none = command("130700050000000100019c40050000000303046b003a00004bf20a00");
    // libnorm leaves the sequence number as it finds it.
    let cc = CcFeedback { sequence: 0x046B, flags: CcFlags(0), rtt: 0x3A, loss: 0x0A00, rate: 0x4BF2 };
    assert_eq!(none, Command::RepairAdvertisement { limited: false, cc: Some(cc), repairs: vec![] });

    let one = command("130700970000000100015240050000000303046b04520000e9340e00010100080500000000000708");
    let Command::RepairAdvertisement { repairs, .. } = one else { panic!("an advertisement") };
    let item = Repair { form: RepairForm::Items, flags: RepairFlags::SEGMENT, items: vec![at(0, 7, 8)] };
    assert_eq!(repairs, [item]);
}

#[test]
fn an_application_says_what_it_likes() {
    assert_eq!(command("130400010000000100016b40070000006869"), Command::Application(b"hi"));
}

#[test]
fn an_acknowledgement_answers_a_probe_or_a_flush() {
    let probed = ack("150900000000000200000001000101006b0448f40009d35f03030000089400008dd50000");
    assert_eq!(
        (probed.sender, probed.instance, probed.what),
        (NodeId(1), 1, Acknowledged::CongestionControl)
    );
    let sent = Timestamp { seconds: 0x6B04_48F4, micros: 0x0009_70D1 };
    assert_eq!(probed.grtt_response.since(sent).unwrap().as_micros(), 0x628E);
    assert_eq!(probed.cc.unwrap().flags, CcFlags::START);

    let flushed =
        ack("150900000000000300000001000102006b0448f50004c35e030300000094005823c4345f0500000200002503");
    assert_eq!(flushed.what, Acknowledged::Flush(at(2, 37, 3)));
    // The loss is of 32 bits.
    let cc = flushed.cc.unwrap();
    assert_eq!((cc.loss, cc.rate), (0x0058_345F, 0x23C4));
    assert!((quantise::loss(cc.loss) - 0.001_346).abs() < 1e-6);
}

#[test]
fn a_nack_names_symbols_blocks_and_infos() {
    let message = "140900000000000200000001000100006b0448f4000ef5da03030000009400002654c62a\
        010600080500000100000400\
        020500100500000100000508050000010000050a\
        010500080500000100000608";
    let Nack { sender, instance, repairs, .. } = nack(message);
    assert_eq!((sender, instance), (NodeId(1), 1));
    let whole_block = RepairFlags::BLOCK.with(RepairFlags::INFO);
    let symbols = RepairFlags::SEGMENT.with(RepairFlags::INFO);
    assert_eq!(
        repairs,
        [
            Repair { form: RepairForm::Items, flags: whole_block, items: vec![at(1, 4, 0)] },
            Repair { form: RepairForm::Ranges, flags: symbols, items: vec![at(1, 5, 8), at(1, 5, 10)] },
            Repair { form: RepairForm::Items, flags: symbols, items: vec![at(1, 6, 8)] },
        ]
    );
    // Of the other encodings.
    let items = |digits| nack(digits).repairs.remove(0).items;
    let wide = items(
        "140900000000000300000001000100006b04490b0002921703030000009400003d344f9f020100100200000200000130020000020000013f",
    );
    assert_eq!(wide.iter().map(|item| item.id.symbol).collect::<Vec<_>>(), [304, 319]);
    let small = items(
        "140900000000000300000001000100006b0449100001a9ba03030000009400003414ba340101000c810000010000002500070008",
    );
    assert_eq!(small[0].id, PayloadId { block: 37, symbol: 8, block_len: 7 });
}
