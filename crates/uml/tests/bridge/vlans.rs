//! Frames to stations, to all and to groups, without snooping.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Instant;

use hopcast_uml::Guest;
use hopcast_wire::ethernet::BROADCAST;
use hopcast_wire::vlan::{CUSTOMER, PROVIDER};

use crate::frames::{of_type, station, tagged};
use crate::{BRIDGE, Both, PORTS, VLANS, draws, network, possible};

const NETWORKS: u64 = 12;
const FRAMES: u32 = 400;

/// Any of what stations say to each other, with any tags, and what it is.
fn traffic(draw: &mut impl FnMut(u64) -> u64) -> (Vec<u8>, String) {
    let to = match draw(12) {
        0..=7 => station(draw(5) as u8 + 1),
        8 => BROADCAST,
        9 => BRIDGE,
        10 => [1, 0, 0x5e, 1, 1, 1],
        _ => [1, 0x80, 0xc2, 0, 0, draw(18) as u8],
    };
    let from = match draw(40) {
        0 => BRIDGE,
        1 => BROADCAST,
        2 => [0; 6],
        _ => station(draw(5) as u8 + 1),
    };
    let mut frame = of_type(to, from, 0x88b5, &vec![0; 60 + draw(60) as usize]);
    let mut about = format!("to {to:02x?} from {from:02x?}");
    for _ in 0..[0, 0, 1, 1, 1, 1, 2, 2, 3, 5][draw(10) as usize] {
        let kind = if draw(2) == 0 { CUSTOMER } else { PROVIDER };
        let vlan = [0, 1, 2, 100, 4094, 7, 4095, VLANS[draw(4) as usize]][draw(8) as usize];
        let priority = if draw(2) == 0 { 0 } else { draw(16) as u16 };
        frame = tagged(&frame, kind, priority << 12 | vlan);
        let _ = write!(about, ", in {kind:x} {vlan} of priority {priority}");
    }
    (frame, about)
}

#[test]
fn frames_are_filtered_by_vlans_as_by_the_kernel() {
    if !possible() {
        return;
    }
    let mut guest = Guest::boot(PORTS);
    let (mut draw, began) = (draws("vlans"), Instant::now());
    let (mut differences, mut copies) = (String::new(), 0);
    let mut counted: BTreeMap<&str, u64> = BTreeMap::new();
    for number in 0..NETWORKS {
        let (config, script) = network(&mut draw, None);
        let mut both = Both::new(guest, config, &script);
        for _ in 0..FRAMES {
            let (frame, about) = traffic(&mut draw);
            both.offer(draw(PORTS as u64) as usize, frame, &format!("network {number}, {about}"));
        }
        both.compare();
        differences += &both.differences;
        copies += both.copies;
        for name in ["untagged_not_allowed_in", "vlan_not_allowed_in", "not_learned"] {
            *counted.entry(name).or_default() += both.ours.counter(name);
        }
        guest = both.end();
    }
    assert!(differences.is_empty(), "{differences}");
    assert!(copies > 2000 && counted.values().all(|&count| count > 20), "{copies} copies, {counted:?}");
    let frames = NETWORKS * u64::from(FRAMES);
    eprintln!("{frames} frames in {:?}, {copies} copies, {counted:?}", began.elapsed());
}
