//! Packets are read as they were written, and the field at fault is named.

use std::net::SocketAddr;

use proptest::prelude::*;

use super::*;

fn view() -> View {
    let member = |node: u32| (MemberId { node, run: 7 }, SocketAddr::from(([10, 0, 0, node as u8], 6003)));
    let v6 = (MemberId { node: 9, run: 1 }, SocketAddr::from(([0xFD00, 0, 0, 0, 0, 0, 0, 9], 6003)));
    View {
        id: ViewId { number: 3, leader: MemberId { node: 1, run: 7 } },
        members: vec![member(1), member(2), v6],
    }
}

fn packets() -> Vec<Packet<'static>> {
    let from = Sent { tag: view().id.tag(), rank: 2, transmission: u32::MAX };
    let between =
        Between { from: MemberId { node: 1, run: 2 }, to: MemberId { node: 3, run: 4 }, connection: 5 };
    let id = view().id;
    let controls = [
        Control::AreYouAlive,
        Control::Join,
        Control::Leave,
        Control::Suspect { member: MemberId { node: 8, run: 9 }, is_stalled: true },
        Control::Prepare(id),
        Control::Flushed { proposal: id, view: id, have: vec![1, u32::MAX] },
        Control::Refused { proposal: id, promised: 77 },
        Control::Fetch { proposal: id, targets: vec![(5, view().members[1].0), (6, view().members[0].0)] },
        Control::Ready(id),
        Control::Commit { view: view(), together: Together::of([0, 2].into_iter()) },
        Control::Credit { tag: 4, bytes: 1 << 40 },
    ];
    let mut all = vec![
        Packet::Data { from, sequence: 6, flags: Flags(Flags::FIRST | Flags::MESSAGE), payload: b"abc" },
        Packet::Repair { from, origin: 1, sequence: 6, flags: Flags(Flags::LAST), payload: b"" },
        Packet::Digest {
            from,
            asks: true,
            is_idle: false,
            stable: Some(8),
            entries: vec![(0, 1), (2, u32::MAX)],
        },
        Packet::Digest { from, asks: false, is_idle: true, stable: None, entries: Vec::new() },
        Packet::Request { from, origin: 1, first: 9, runs: vec![(0, 1), (70, 20_000), (1 << 31, 64)] },
        Packet::Discover(between.from),
        Packet::Found(view()),
        Packet::Ack { between, number: 12 },
    ];
    all.extend(controls.map(|control| Packet::Unicast { between, number: 1, control }));
    all
}

#[test]
fn each_packet_is_read_as_it_was_written_and_one_cut_short_is_not() {
    for packet in packets() {
        let bytes = packet.emit();
        assert_eq!(Packet::parse(&bytes), Ok(packet.clone()));
        for len in 0..bytes.len() {
            match Packet::parse(&bytes[..len]) {
                // Payloads, and lists of runs, may be shorter.
                Ok(shorter) => assert_eq!(&shorter.emit()[..], &bytes[..len]),
                Err(malformed) => assert!(!malformed.field.is_empty()),
            }
        }
    }
}

#[test]
fn the_field_at_fault_is_named() {
    let fault = |bytes: &[u8]| Packet::parse(bytes).unwrap_err().field;
    assert_eq!(fault(&[]), "kind");
    assert_eq!(fault(&[0x50]), "kind");
    assert_eq!(fault(&[0x51, 1, 2, 3]), "tag");
    let mut twice = view();
    twice.members.push(twice.members[0]);
    assert_eq!(fault(&Packet::Found(twice).emit()), "member named twice");
    let mut longer = Packet::Found(view()).emit();
    longer.append(&[0]);
    assert_eq!(fault(&longer), "end of packet");
}

#[test]
fn data_and_repairs_have_the_overhead_that_is_said() {
    let lengths: Vec<usize> = packets()[..2].iter().map(|packet| packet.emit().len()).collect();
    assert_eq!(lengths, [DATA_OVERHEAD + 3, REPAIR_OVERHEAD]);
}

proptest! {
    #[test]
    fn any_bytes_are_read_as_what_writes_them_again_or_refused(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..200),
        kind in 0x50_u8..0x5A,
    ) {
        if let Some(first) = bytes.first_mut() {
            *first = kind;
        }
        if let Ok(packet) = Packet::parse(&bytes) {
            let again = packet.emit();
            prop_assert_eq!(Packet::parse(&again), Ok(packet));
        }
    }
}

#[test]
fn a_full_view_fits_a_packet_with_addresses_of_either_kind() {
    for address in ["10.0.0.1:6003", "[2001:db8::1]:6003"] {
        let address: std::net::SocketAddr = address.parse().unwrap();
        let members = (0..max_members(address) as u32).map(|node| (MemberId { node, run: 1 }, address));
        let view = View {
            id: ViewId { number: 7, leader: MemberId { node: 0, run: 1 } },
            members: members.collect(),
        };
        let found = Packet::Found(view).emit();
        assert!(found.len() <= 1400, "{} bytes", found.len());
        assert!(Packet::parse(&found).is_ok());
    }
}
