//! Anything may arrive.

use hopcast_core::Bytes;
use proptest::prelude::*;

use super::path;
use crate::chain::{CLIENT, Hop, SERVER, address, ms};
use crate::hop_arq::Config;
use crate::hop_arq::config::MAX_STREAMS;
use crate::hop_arq::wire::{Acknowledgement, Chunk, Message, Packet, What};

fn message() -> impl Strategy<Value = Vec<u8>> {
    let chunk = (any::<[u8; 11]>(), prop::collection::vec(any::<u8>(), 0..20), any::<bool>()).prop_map(
        |(mut head, bytes, tidy)| {
            if tidy {
                head[0] &= 0xC3;
                head[1..9].fill(0);
            }
            [&head[..], &bytes].concat()
        },
    );
    let packet = (any::<[bool; 2]>(), 0_u16..3, 0_u32..20, 0_u32..20, chunk).prop_map(
        |([first, urgent], session, number, index, chunk)| {
            Message::Packet(Packet {
                session,
                first: first.then_some(0),
                urgent,
                number,
                index,
                chunk: &chunk,
            })
            .emit()
        },
    );
    let runs = prop::collection::vec(prop_oneof![0_u16..10, any::<u16>()], 1..6);
    let ack = (any::<bool>(), prop_oneof![0_u32..50, any::<u32>()], 0_u32..50, 0_u32..50, runs).prop_map(
        |(pause, received, next_index, highest, runs)| {
            let ack = Acknowledgement { session: 0, pause, received, next_index, highest, runs };
            Message::Acknowledgement(ack).emit()
        },
    );
    prop_oneof![packet, ack, prop::collection::vec(any::<u8>(), 0..40)]
}

proptest! {
    #[test]
    fn any_datagram_is_taken_or_refused(
        messages in prop::collection::vec((any::<bool>(), message(), 0_u64..20, any::<bool>()), 1..60),
    ) {
        let mut path = path(3, &Config::default(), 2, &Hop::default());
        path.unchecked = true;
        path.accept = (20_000, false);
        path.open(50_000, false);
        path.run(ms(25));
        let session = path.machines[0].session(0).to_be_bytes();
        for (at_client, mut bytes, wait, aimed) in messages {
            if aimed && bytes.len() > 3 {
                bytes[1..3].copy_from_slice(&session);
            }
            path.inject(if at_client { CLIENT } else { SERVER }, &bytes);
            path.run(ms(wait));
        }
        path.run(ms(2000));
    }
}

#[test]
fn a_datagram_from_elsewhere_is_none_of_ours() {
    let mut path = path(1, &Config::default(), 2, &Hop::default());
    path.inject_from(CLIENT, address(9), b"whatever");
    assert_eq!(path.counter(CLIENT, "foreign"), 1);
}

#[test]
fn who_opens_streams_without_end_is_refused_and_what_is_kept_is_bounded() {
    let mut path = path(1, &Config::default(), 1, &Hop::default());
    path.unchecked = true;
    path.accept_reading = false;
    path.lose = Some(Box::new(|_, _| true));
    for number in 0..(8 * MAX_STREAMS as u32) {
        let chunk = Chunk { opener: true, stream: number, what: What::Grant(1) }.emit();
        let (index, session) = (number, 7);
        let packet = Packet { session, first: Some(0), urgent: false, number, index, chunk: &chunk };
        path.inject(SERVER, &Message::Packet(packet).emit());
    }
    assert_eq!(path.machines[1].streams(), 4096);
    assert_eq!(path.counter(SERVER, "streams_accepted"), 4096);
}

#[test]
fn pieces_that_overlap_or_end_before_what_is_there_break_the_stream() {
    let data = |offset, bytes: &'static [u8], end| What::Data { offset, bytes, end };
    for pieces in [
        [data(5, &[1; 10], false), data(10, &[1; 10], false)],
        [data(5, &[1; 10], false), data(0, &[1; 6], false)],
        [data(5, &[1; 10], false), data(5, &[1; 10], false)],
        [data(5, &[1; 10], false), data(3, &[], true)],
        [data(0, &[1; 10], true), data(10, &[1; 1], false)],
    ] {
        let mut path = path(1, &Config::default(), 1, &Hop::default());
        path.unchecked = true;
        for (number, what) in [What::Grant(1000)].into_iter().chain(pieces).enumerate() {
            let chunk = Chunk { opener: true, stream: 0, what }.emit();
            let (index, session, number) = (number as u32, 7, number as u32);
            let packet = Packet { session, first: Some(0), urgent: false, number, index, chunk: &chunk };
            path.inject(SERVER, &Message::Packet(packet).emit());
        }
        assert!(path.server().reset, "{pieces:?}");
    }
}

#[test]
fn who_sends_more_than_was_granted_has_its_stream_reset() {
    let config = Config { receive_buffer: Bytes::new(1000), ..Config::default() };
    let mut path = path(1, &config, 1, &Hop::default());
    path.unchecked = true;
    for (number, what) in
        [(0, What::Grant(1000)), (1, What::Data { offset: 500, bytes: &[1; 600], end: false })]
    {
        let chunk = Chunk { opener: true, stream: 0, what }.emit();
        let packet =
            Packet { session: 7, first: Some(0), urgent: false, number, index: number, chunk: &chunk };
        path.inject(SERVER, &Message::Packet(packet).emit());
    }
    assert!(path.server().reset);
    assert_eq!(path.counter(SERVER, "streams_broken"), 1);
}
