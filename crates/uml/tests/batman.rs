//! batman-adv of the guest's kernel, seen at its wire.

#![allow(clippy::disallowed_methods)] // The guest keeps its own time.

use std::time::{Duration, Instant};

use hopcast_node::testing::{Requirement, require};
use hopcast_uml::{Guest, kernel};

/// EtherType of batman-adv, its compatibility version, and the type of its originator messages.
const ETHER_TYPE: [u8; 2] = [0x43, 0x05];
const VERSION: u8 = 15;
const IV_OGM: u8 = 0;

#[test]
fn its_originator_messages_arrive() {
    if !require(&[Requirement::File("uml", &kernel())]) {
        return;
    }
    let mut guest = Guest::boot(1);
    guest.sh("modprobe batman-adv
        ip link add bat0 type batadv
        batctl meshif bat0 orig_interval 200
        ip link set vec0 up
        ip link set vec0 master bat0
        ip link set bat0 up");
    let until = Instant::now() + Duration::from_secs(3);
    let mut seen = 0;
    while seen < 3 {
        let left = until.saturating_duration_since(Instant::now());
        let frame = guest.receive(0, left).expect("an originator message within three seconds");
        if frame[12..14] == ETHER_TYPE && frame[14] == IV_OGM {
            // Type, version, TTL, flags, number, originator: that of the port, as is the sender.
            assert_eq!((frame[15], &frame[22..28]), (VERSION, &frame[6..12]), "{frame:02x?}");
            seen += 1;
        }
    }
    assert!(guest.sh("batctl meshif bat0 if").starts_with("vec0: active"));
}
