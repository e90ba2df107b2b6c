//! Every format of a mesh's packets reads any bytes without a panic, and writes again what it has read.
#![no_main]

use hopcast_core::Buffer;
use hopcast_mesh::wire::batman_v::{self, Elp, Ogm2};
use hopcast_mesh::wire::data::{Broadcast, Fragment, Multicast, Unicast, Unicast4Addr, UnicastTvlv};
use hopcast_mesh::wire::icmp::Icmp;
use hopcast_mesh::wire::ogm::{self, Ogm};
use hopcast_mesh::wire::translation::{TableData, table_data};
use hopcast_mesh::wire::tvlv::{self, Gateway, Roaming, Tracker, containers};
use hopcast_mesh::wire::{Header, packet_type};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|packet: &[u8]| {
    let _ = packet_type(packet);
    let payloads = [
        again::<Ogm>(packet),
        again::<Elp>(packet),
        again::<Ogm2>(packet),
        again::<Unicast>(packet),
        again::<Unicast4Addr>(packet),
        again::<Broadcast>(packet),
        again::<Fragment>(packet),
        again::<UnicastTvlv>(packet),
        again::<Multicast>(packet),
        again::<Icmp>(packet),
    ];
    assert!(payloads.iter().flatten().count() <= 1, "a packet has one type");
    for payload in payloads.into_iter().flatten() {
        read_containers(payload);
    }
    if let Ok(messages) = ogm::messages(packet) {
        let len: usize = messages.map(|(_, value)| Ogm::LEN + value.len()).sum();
        assert!(len <= packet.len());
    }
    if let Ok(messages) = batman_v::messages(packet) {
        let len: usize = messages.map(|(_, value)| Ogm2::LEN + value.len()).sum();
        assert!(len <= packet.len());
    }
});

/// Reads a header, and writes it again. Returns what is behind it.
fn again<H: Header + PartialEq + std::fmt::Debug>(packet: &[u8]) -> Option<&[u8]> {
    let (header, payload) = H::parse(packet).ok()?;
    let mut buffer = Buffer::copy_from(payload);
    header.prepend(&mut buffer);
    assert_eq!(buffer.len(), packet.len());
    assert_eq!(H::parse(&buffer).map(|(found, _)| found), Ok(header));
    Some(payload)
}

fn read_containers(bytes: &[u8]) {
    let mut len = 0;
    for container in containers(bytes) {
        len += tvlv::HEADER + container.value.len();
        let _ = (Gateway::parse(container.value), Roaming::parse(container.value));
        let _ = tvlv::multicast::parse(container.value);
        if let Ok(tracker) = Tracker::parse(container.value) {
            assert!(6 * tracker.destinations().count() <= container.value.len());
        }
        if let Ok(data) = TableData::parse(container.value) {
            let value = table_data(data.flags, data.ttvn, data.checksums(), data.changes());
            let written = TableData::parse(&value).expect("it was written from one");
            assert!(written.checksums().eq(data.checksums()) && written.changes().eq(data.changes()));
        }
    }
    assert!(len <= bytes.len());
}
