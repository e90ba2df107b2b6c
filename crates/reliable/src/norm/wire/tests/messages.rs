//! Any message is read as it was written.

use super::*;

fn some_fec() -> impl Strategy<Value = Fec> {
    prop::sample::select(vec![Fec::ReedSolomon, Fec::ReedSolomon8, Fec::SmallBlock])
}

fn some_position_of(fec: Fec) -> impl Strategy<Value = Position> {
    let numbers = (any::<u16>(), any::<u32>(), any::<u16>(), any::<u16>());
    numbers.prop_map(move |(object, block, symbol, len)| {
        let block = serial::block_after(fec, block, 0);
        let id = match fec {
            Fec::ReedSolomon => PayloadId { block, symbol, block_len: 0 },
            Fec::ReedSolomon8 => PayloadId { block, symbol: symbol & 0xFF, block_len: 0 },
            Fec::SmallBlock => PayloadId { block, symbol, block_len: len },
        };
        Position { fec, object, id }
    })
}

fn some_position() -> impl Strategy<Value = Position> {
    some_fec().prop_flat_map(some_position_of)
}

fn some_fti_of(fec: Fec) -> impl Strategy<Value = Fti> {
    let code = (1..=255_u16, 0..=255_u16, any::<u8>(), any::<u8>(), any::<u16>());
    (0..1_u64 << 48, 1..=u16::MAX, code).prop_map(
        move |(object_size, segment, (source, parity, field, group, instance))| {
            let fti = Fti { fec, object_size, segment, source, parity, field: 0, group: 0, instance: 0 };
            match fec {
                Fec::ReedSolomon => Fti { source: source << 7, parity: parity << 8, field, group, ..fti },
                Fec::ReedSolomon8 => fti,
                Fec::SmallBlock => Fti { source: source << 7, parity: parity << 8, instance, ..fti },
            }
        },
    )
}

fn some_header() -> impl Strategy<Value = Header> {
    (any::<u16>(), any::<u8>(), 0..16_u8, 0..16_u8).prop_map(|(instance, grtt, backoff, group_size)| Header {
        instance,
        grtt,
        backoff,
        group_size,
    })
}

fn some_bytes() -> impl Strategy<Value = &'static [u8]> {
    (0..64_usize).prop_map(|len| &b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+-"[..len])
}

fn some_timestamp() -> impl Strategy<Value = Timestamp> {
    any::<(u32, u32)>().prop_map(|(seconds, micros)| Timestamp { seconds, micros })
}

fn some_nodes() -> impl Strategy<Value = Vec<NodeId>> {
    prop::collection::vec(any::<u32>().prop_map(NodeId), 0..9)
}

fn some_feedback() -> impl Strategy<Value = Option<CcFeedback>> {
    let fields = any::<(u16, u8, u8, u32, u16)>();
    prop::option::of(fields.prop_map(|(sequence, flags, rtt, loss, rate)| CcFeedback {
        sequence,
        flags: CcFlags(flags),
        rtt,
        loss,
        rate,
    }))
}

fn some_repairs() -> impl Strategy<Value = Vec<Repair>> {
    let form = prop::sample::select(vec![RepairForm::Items, RepairForm::Ranges, RepairForm::Erasures]);
    let repair = (form, any::<u8>(), prop::collection::vec([some_position(), some_position()], 1..5));
    let repair = repair.prop_map(|(form, flags, pairs)| {
        let mut items = pairs.concat();
        if form != RepairForm::Ranges && items.len() > 2 {
            items.pop();
        }
        Repair { form, flags: RepairFlags(flags), items }
    });
    prop::collection::vec(repair, 0..4)
}

fn some_info() -> impl Strategy<Value = Body<'static>> {
    some_fec().prop_flat_map(|fec| {
        let parts =
            (some_header(), any::<u8>(), any::<u16>(), prop::option::of(some_fti_of(fec)), some_bytes());
        parts.prop_map(move |(header, flags, object, fti, payload)| {
            Body::Info(Info { header, flags: Flags(flags), fec, object, fti, payload })
        })
    })
}

fn some_data() -> impl Strategy<Value = Body<'static>> {
    some_position().prop_flat_map(|Position { fec, object, id }| {
        let parts = (some_header(), any::<u8>(), prop::option::of(some_fti_of(fec)), some_bytes());
        parts.prop_map(move |(header, flags, fti, payload)| {
            Body::Data(Data { header, flags: Flags(flags), fec, object, id, fti, payload })
        })
    })
}

fn some_command() -> impl Strategy<Value = Command<'static>> {
    let node = any::<(u32, u8, u8, u16)>();
    let node = node.prop_map(|(node, flags, rtt, rate)| CcNode {
        node: NodeId(node),
        flags: CcFlags(flags),
        rtt,
        rate,
    });
    let probe = (any::<(u16, Option<u16>, bool)>(), some_timestamp(), prop::collection::vec(node, 0..9));
    prop_oneof![
        (some_position(), some_nodes()).prop_map(|(last, acknowledge)| Command::Flush { last, acknowledge }),
        Just(Command::EndOfTransmission),
        (some_position(), any::<Vec<u16>>()).prop_map(|(first, invalid)| Command::Squelch { first, invalid }),
        probe.prop_map(|((sequence, rate, syn), sent, nodes)| {
            Command::CongestionControl { sequence, sent, rate, syn, nodes }
        }),
        (any::<bool>(), some_feedback(), some_repairs())
            .prop_map(|(limited, cc, repairs)| Command::RepairAdvertisement { limited, cc, repairs }),
        (any::<(u8, u8)>(), some_nodes()).prop_map(|((kind, id), acknowledge)| {
            Command::AcknowledgementRequest { kind, id, acknowledge }
        }),
        some_bytes().prop_map(Command::Application),
    ]
}

fn some_acknowledged() -> impl Strategy<Value = Acknowledged<'static>> {
    prop_oneof![
        Just(Acknowledged::CongestionControl),
        some_position().prop_map(Acknowledged::Flush),
        (3..=255_u8, some_bytes()).prop_map(|(kind, payload)| Acknowledged::Other { kind, payload }),
    ]
}

fn some_body() -> impl Strategy<Value = Body<'static>> {
    let nack = (any::<(u32, u16)>(), some_timestamp(), some_feedback(), some_repairs());
    let ack = (any::<(u32, u16, u8)>(), some_timestamp(), some_feedback(), some_acknowledged());
    prop_oneof![
        some_info(),
        some_data(),
        (some_header(), some_command()).prop_map(|(header, command)| Body::Command(header, command)),
        nack.prop_map(|((sender, instance), grtt_response, cc, repairs)| {
            Body::Nack(Nack { sender: NodeId(sender), instance, grtt_response, cc, repairs })
        }),
        ack.prop_map(|((sender, instance, id), grtt_response, cc, what)| {
            Body::Ack(Ack { sender: NodeId(sender), instance, id, grtt_response, cc, what })
        }),
    ]
}

proptest! {
    #[test]
    fn any_message_is_read_as_it_was_written(
        (sequence, source) in any::<(u16, u32)>(),
        body in some_body(),
    ) {
        let message = Message { sequence, source: NodeId(source), body };
        let datagram = message.emit();
        prop_assert_eq!(datagram.len(), message.len());
        prop_assert_eq!(&parse(&datagram), &message);
        // A sender that has the payload in its place writes the same.
        let head = message.len() - message.payload().len();
        let before = message.emit_before(Buffer::copy_from(message.payload()));
        prop_assert_eq!(&before[..], &datagram[..]);
        prop_assert_eq!(&before[head..], message.payload());
    }

    #[test]
    fn a_message_cut_short_is_not_the_same_message(
        body in some_body(),
        cut in any::<prop::sample::Index>(),
    ) {
        let message = Message { sequence: 1, source: NodeId(1), body };
        let datagram = message.emit();
        let short = &datagram[..cut.index(datagram.len())];
        prop_assert!(!Message::parse(short).is_ok_and(|found| found == message));
    }
}
