//! Packets at random.

use std::net::IpAddr;

use proptest::option::of;
use proptest::prelude::*;

use super::super::*;

fn address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![any::<[u8; 4]>().prop_map(IpAddr::from), any::<[u8; 16]>().prop_map(IpAddr::from)]
}

fn nak() -> impl Strategy<Value = Nak> {
    (any::<u32>(), address(), address()).prop_map(|(sequence, source, group)| Nak { sequence, source, group })
}

fn data() -> impl Strategy<Value = Data> {
    any::<(u32, u32)>().prop_map(|(sequence, trail)| Data { sequence, trail })
}

fn poll() -> impl Strategy<Value = Poll> {
    let kind =
        prop_oneof![Just(PollKind::General), Just(PollKind::Repairers), (2_u16..).prop_map(PollKind::Other)];
    (any::<(u32, u16, u32, u32, u32)>(), kind, address()).prop_map(
        |((sequence, round, backoff, random, mask), kind, path)| Poll {
            sequence,
            round,
            kind,
            path,
            backoff,
            random,
            mask,
        },
    )
}

fn body() -> impl Strategy<Value = Body> {
    prop_oneof![
        (any::<(u32, u32, u32)>(), address()).prop_map(|((sequence, trail, lead), path)| Body::Spm(Spm {
            sequence,
            trail,
            lead,
            path
        })),
        data().prop_map(Body::Original),
        data().prop_map(Body::Repair),
        nak().prop_map(Body::Nak),
        nak().prop_map(Body::NullNak),
        nak().prop_map(Body::Confirmation),
        Just(Body::SpmRequest),
        poll().prop_map(Body::Poll),
        any::<(u32, u16)>()
            .prop_map(|(sequence, round)| Body::PollResponse(PollResponse { sequence, round })),
        any::<(u32, u32)>().prop_map(|(highest, bitmap)| Body::Ack(Ack { highest, bitmap })),
    ]
}

fn options() -> impl Strategy<Value = Options> {
    let fragment =
        any::<(u32, u32, u32, bool, u8)>().prop_map(|(first, offset, length, is_encoded, specific)| {
            Fragment { first, offset, length, is_encoded, specific }
        });
    let parity = (any::<(bool, bool)>(), 0_u32..32).prop_map(|((proactive, on_demand), power)| Parity {
        proactive,
        on_demand,
        group: 1 << power,
    });
    let data = (any::<u32>(), address()).prop_map(|(timestamp, acker)| CongestionData { timestamp, acker });
    let feedback = (any::<(u32, u16)>(), address())
        .prop_map(|((timestamp, loss), receiver)| CongestionFeedback { timestamp, loss, receiver });
    let member =
        any::<(bool, bool)>().prop_map(|(is_framed, repairs_first)| Member { is_framed, repairs_first });
    let as_of = any::<(u32, u32)>().prop_map(|(lead, spm)| AsOf { lead, spm });
    let interval =
        any::<(u32, u32)>().prop_map(|(interval, sequence)| BackOffInterval { interval, sequence });
    let range = any::<(u32, u32)>().prop_map(|(max, min)| BackOffRange { max, min });
    (
        (of(fragment), prop::collection::vec(any::<u32>(), 0..=62), of(any::<u32>()), of(address())),
        (of(parity), of(any::<u32>()), of(1_u32..), of(address()), of(interval), of(range)),
        (any::<[bool; 3]>(), of(0_u8..128), of(data), of(feedback), of(member), of(as_of)),
    )
        .prop_map(|(first, second, third)| Options {
            fragment: first.0,
            nak_list: first.1,
            join: first.2,
            redirect: first.3,
            parity: second.0,
            parity_group: second.1,
            group_size: second.2,
            path: second.3,
            backoff_interval: second.4,
            backoff_range: second.5,
            syn: third.0[0],
            fin: third.0[1],
            unreachable: third.0[2],
            rst: third.1,
            congestion_data: third.2,
            congestion_feedback: third.3,
            member: third.4,
            as_of: third.5,
        })
        // The maximum number of options is that of section 9.
        .prop_map(|options| {
            if options.count() > 16 { Options { as_of: None, rst: None, ..options } } else { options }
        })
}

pub(super) fn packet() -> impl Strategy<Value = Packet<'static>> {
    (any::<([u8; 6], u16, u16, bool, bool)>(), body(), options()).prop_map(|(header, body, options)| {
        let (gsi, source, port, is_parity, is_variable) = header;
        Packet { is_parity, is_variable, options, ..Packet::new(Tsi { gsi, port: source }, port, body) }
    })
}
