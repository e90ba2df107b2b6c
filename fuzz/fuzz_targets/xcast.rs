//! Packets of Xcast: what is read from any bytes, with a checksum that fits, is written as the same bytes.
#![no_main]

use hopcast_explicit::xcast::wire::Packet;
use hopcast_wire::checksum::checksum;
use hopcast_wire::ip;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = bytes.to_vec();
    seal(&mut bytes);
    if let Ok(packet) = Packet::parse(&bytes) {
        let emitted = packet.emit();
        assert_eq!(emitted[..], bytes[..emitted.len()]);
        assert_eq!(emitted.len(), packet.header_len() + packet.payload.len());
    }
});

/// Makes the checksum of the routing header fit, as far as it is there.
fn seal(bytes: &mut [u8]) {
    let Some(&[_, words]) = bytes.get(ip::V6_HEADER..).and_then(<[u8]>::first_chunk) else { return };
    let end = ip::V6_HEADER + 8 + 8 * usize::from(words);
    let Some(header) = bytes.get_mut(ip::V6_HEADER..end) else { return };
    header[6..8].fill(0);
    let sum = checksum(header);
    header[6..8].copy_from_slice(&sum.to_be_bytes());
}
