//! A tunnel passes what fits, unchanged, one for one; what comes out of it is an IP packet; it keeps nothing.
#![no_main]

use arbitrary::Arbitrary;
use hopcast_coded::Tunnel;
use hopcast_core::{Buffer, Datagram, Frame, Instant, Item, Machine, Port};
use hopcast_fuzz::internet::mend;
use hopcast_wire::{icmp, ip};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input {
    mtu: u16,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
struct Step {
    from: From,
    mend: bool,
    bytes: Vec<u8>,
    /// Zeros behind the bytes, so that long packets are cheap.
    more: u16,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum From {
    Inside,
    OtherEnd,
    Stranger,
    WrongPort,
    WrongItem,
}

fuzz_target!(|input: Input| {
    let (local, remote) =
        ("10.0.0.1:7000".parse().expect("an address"), "10.0.0.2:7000".parse().expect("an address"));
    let mut tunnel = Tunnel::new(local, remote, input.mtu.into());
    for step in &input.steps {
        let mut bytes = step.bytes.clone();
        bytes.resize(bytes.len() + usize::from(step.more) % 2_048, 0);
        if step.mend {
            mend(&mut bytes);
        }
        let buffer = Buffer::copy_from(&bytes);
        let datagram = |remote| Item::Datagram(Datagram::new(local, remote, buffer.clone()));
        let (port, item) = match step.from {
            From::Inside => (Port::Above(0), Item::Packet(buffer.clone())),
            From::OtherEnd => (Port::Below(0), datagram(remote)),
            From::Stranger => (Port::Below(0), datagram("10.0.0.3:7000".parse().expect("an address"))),
            From::WrongPort => (Port::Above(0), datagram(remote)),
            From::WrongItem => {
                (Port::Below(0), Item::Frame(Frame::new(buffer.clone())))
            }
        };
        tunnel.handle(Instant::ZERO, port, item);
        match (step.from, tunnel.poll(Instant::ZERO)) {
            (From::Inside, Some((Port::Below(0), Item::Datagram(sent)))) => {
                assert_eq!((sent.local, sent.remote), (local, remote));
                assert!(sent.payload == buffer && bytes.len() <= input.mtu.into());
            }
            (From::Inside, Some((Port::Above(0), Item::Packet(answer)))) => {
                assert!(bytes.len() > input.mtu.into());
                let asked = ip::parse(&bytes).expect("only a packet is answered");
                let header = ip::parse(&answer).expect("the answer is a packet");
                assert_eq!((header.source, header.destination), (asked.destination, asked.source));
                let message = icmp::parse(header.source, header.destination, &answer[header.payload()]);
                assert_eq!(message, Ok(icmp::Message::PacketTooBig { mtu: input.mtu.into() }));
            }
            (From::Inside, None) => assert!(bytes.len() > input.mtu.into() && ip::parse(&bytes).is_err()),
            (From::OtherEnd, Some((Port::Above(0), Item::Packet(packet)))) => {
                assert!(packet == buffer && ip::parse(&packet).is_ok());
            }
            (From::OtherEnd, None) => assert!(ip::parse(&bytes).is_err()),
            (_, None) => {}
            (from, Some(other)) => panic!("from {from:?} came {other:?}"),
        }
        assert_eq!(tunnel.poll(Instant::ZERO), None);
        assert_eq!(tunnel.deadline(), None);
    }
});
