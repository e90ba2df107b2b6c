//! Frames of a type of their own, bound by a machine above.

use hopcast_core::{Buffer, Frame, FrameOutcome, FrameStatus, Instant, Item, Machine, Port};
use hopcast_host::{BindError, Config, Host, Interface, StaticRoutes};
use hopcast_wire::ethernet::{self, Header};
use hopcast_wire::vlan;

const NOW: Instant = Instant::ZERO;
const TYPE: u16 = 0x88b5;
const OWN: [u8; 6] = [2, 0, 0, 0, 0, 1];
const OTHER: [u8; 6] = [2, 0, 0, 0, 0, 2];

fn host() -> Host {
    let interface = |n| Interface::new([2, 0, 0, 0, 0, n], 1500);
    let config = Config { interfaces: vec![interface(9), interface(1)], ..Config::default() };
    Host::new(config, Box::new(StaticRoutes::default()))
}

fn frame(destination: [u8; 6], ether_type: u16, overheard: bool) -> Frame {
    let mut bytes = Buffer::copy_from(b"contents");
    ethernet::prepend(&mut bytes, Header { destination, source: OTHER, ether_type });
    Frame { overheard, ..Frame::new(bytes) }
}

/// The ports on which frames that arrive on interface 1 come up.
fn taken_by(host: &mut Host, frame: Frame) -> Vec<Port> {
    host.handle(NOW, Port::Below(1), Item::Frame(frame.clone()));
    let mut ports = Vec::new();
    while let Some((port, item)) = host.poll(NOW) {
        assert_eq!(item, Item::Frame(frame.clone()));
        ports.push(port);
    }
    ports
}

#[test]
fn a_frame_of_a_bound_type_goes_up_whole_and_overheard_ones_to_who_asked_for_them() {
    let mut host = host();
    host.bind_frames(3, 1, TYPE, false).unwrap();
    host.bind_frames(4, 1, TYPE, true).unwrap();
    let both = [Port::Above(3), Port::Above(4)];
    assert_eq!(taken_by(&mut host, frame(OWN, TYPE, false)), both);
    assert_eq!(taken_by(&mut host, frame(ethernet::BROADCAST, TYPE, false)), both);
    assert_eq!(taken_by(&mut host, frame(OTHER, TYPE, true)), [Port::Above(4)]);
    // Another type, another station's, and another interface's.
    assert_eq!(taken_by(&mut host, frame(OWN, TYPE + 1, false)), []);
    assert_eq!(taken_by(&mut host, frame(OTHER, TYPE, false)), []);
    host.handle(NOW, Port::Below(0), Item::Frame(frame([2, 0, 0, 0, 0, 9], TYPE, false)));
    assert_eq!(host.poll(NOW), None);
}

#[test]
fn a_frame_of_tags_five_deep_is_counted_and_dropped_where_no_vlan_is() {
    let mut host = host();
    let mut deep = frame(OWN, ethernet::IPV4, false).bytes;
    (0..5).for_each(|id| vlan::push(&mut deep, vlan::Tag { kind: vlan::CUSTOMER, id }));
    assert_eq!(taken_by(&mut host, Frame::new(deep)), []);
    let mut counted = 0;
    host.counters(&mut |name, value| counted += if name == "not_ip" { value } else { 0 });
    assert_eq!(counted, 1);
}

#[test]
fn a_frame_that_comes_down_leaves_by_its_interface_as_it_is() {
    let mut host = host();
    host.bind_frames(3, 1, TYPE, false).unwrap();
    let sent = frame(OTHER, TYPE, false);
    host.handle(NOW, Port::Above(3), Item::Frame(sent.clone()));
    assert_eq!(host.poll(NOW), Some((Port::Below(1), Item::Frame(sent.clone()))));
    // Nobody is bound there.
    host.handle(NOW, Port::Above(5), Item::Frame(sent));
    assert_eq!(host.poll(NOW), None);
}

#[test]
fn a_machine_that_asks_learns_what_became_of_the_frames_of_its_type() {
    let mut host = host();
    host.bind_frames(3, 1, TYPE, false).unwrap();
    host.bind_frames(4, 1, TYPE, false).unwrap();
    let status = |ether_type| {
        let bytes = frame(OTHER, ether_type, false).bytes;
        Item::FrameStatus(FrameStatus { bytes, outcome: FrameOutcome::Acknowledged, transmissions: 2 })
    };
    // Nobody has asked yet.
    host.handle(NOW, Port::Below(1), status(TYPE));
    assert_eq!(host.poll(NOW), None);
    host.handle(NOW, Port::Above(4), Item::ReportFrameStatus);
    assert_eq!(host.poll(NOW), Some((Port::Below(1), Item::ReportFrameStatus)));
    host.handle(NOW, Port::Below(1), status(TYPE));
    assert_eq!(host.poll(NOW), Some((Port::Above(4), status(TYPE))));
    assert_eq!(host.poll(NOW), None);
    // Those of another type, of another interface, and of a machine that has no frames.
    host.handle(NOW, Port::Below(1), status(TYPE + 1));
    host.handle(NOW, Port::Below(0), status(TYPE));
    host.handle(NOW, Port::Above(5), Item::ReportFrameStatus);
    assert_eq!(host.poll(NOW), None);
}

#[test]
fn the_types_of_ip_and_interfaces_that_are_not_there_cannot_be_bound() {
    let mut host = host();
    for ether_type in [ethernet::IPV4, ethernet::IPV6, 0x05ff] {
        assert_eq!(host.bind_frames(3, 1, ether_type, true), Err(BindError::EtherType { ether_type }));
    }
    assert_eq!(host.bind_frames(3, 2, TYPE, true), Err(BindError::NoInterface { interface: 2 }));
    let error = host.bind_frames(3, 1, 0x800, true).unwrap_err().to_string();
    assert_eq!(error, "frames of type 0x0800 are the host's own and cannot be bound");
}
