//! Packets of MEADcast: what is read from any bytes is written as the same bytes.
#![no_main]

use hopcast_explicit::meadcast::wire::Packet;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(packet) = Packet::parse(bytes) {
        let emitted = packet.emit();
        assert_eq!(emitted[..], bytes[..emitted.len()]);
        assert_eq!(emitted.len(), packet.header_len() + packet.payload.len());
    }
});
