//! Snooping of IGMP and MLD, of each VLAN by itself (Linux `mcast_vlan_snooping`).

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::{Duration, Instant};

use hopcast_bridge::bridge::{BridgePort, Config, Querier, Snooping};
use hopcast_core::Buffer;
use hopcast_uml::Guest;
use hopcast_wire::ip;
use hopcast_wire::membership::Version;
use hopcast_wire::vlan::{CUSTOMER, PROVIDER};

use crate::frames::{HOST, around, filtering, frame, leave, query, report, station, tagged, to_group};
use crate::{BRIDGE, Both, PORTS, VLANS, draws, network, possible};

const NETWORKS: u64 = 8;
/// Times that each network has had queries, or had none yet.
const ROUNDS: u64 = 6;
/// Frames between queries, and messages that change who is given them.
const FRAMES: u64 = 70;
const MESSAGES: u64 = 5;
const GROUPS: [&str; 5] = ["239.1.1.1", "239.1.1.2", "224.0.0.251", "ff15::5", "ff02::1:ff00:7"];
/// Time given to hosts to answer, and to members after a query for their group, which counts twice.
const TENTH: hopcast_core::Duration = hopcast_core::Duration::from_millis(100);
/// Time in which those are over.
const ANSWERED: Duration = Duration::from_millis(300);

/// Any of what is said to groups but queries, and what it is.
fn traffic(draw: &mut impl FnMut(u64) -> u64) -> (Vec<u8>, String) {
    let (from, group) = (station(draw(6) as u8 + 1), GROUPS[draw(5) as usize]);
    let (frame, about) = match draw(16) {
        0..=8 => (to_group(group, from), "a packet"),
        9 => (report(group, Version::V1, from), "a report of version 1"),
        10 => (report(group, Version::V2, from), "a report of version 2"),
        11 => (report(group, Version::V3, from), "a report of version 3"),
        12 => (leave(group, from), "a leave"),
        13 => {
            // By more than the number behind it.
            let mut cut = report(group, Version::V2, from);
            cut.truncate(cut.len() - 7);
            (cut, "a report that is cut off")
        }
        14 => {
            let mut wrong = report(group, Version::V2, from);
            *wrong.last_mut().unwrap() ^= 1;
            (wrong, "a report of a wrong checksum")
        }
        _ => (frame([1, 0, 0x5e, 1, 1, 1], from), "a frame that is no packet"),
    };
    (frame, format!("{about} to {group} from {}", from[5]))
}

/// A query of a router, for all groups or one, or its Hello of PIM, and what it is.
fn of_router(draw: &mut impl FnMut(u64) -> u64) -> (Vec<u8>, String) {
    let from = station(draw(2) as u8 + 7);
    let sender = ["0.0.0.0", "10.0.0.9", "10.0.0.5", "fe80::9", "fe80::5"][draw(5) as usize];
    let group = GROUPS[draw(5) as usize];
    let group = Some(group).filter(|group| draw(2) == 0 && group.contains(':') == sender.contains(':'));
    if draw(10) == 0 {
        let mut hello = Buffer::copy_from(&[0x20, 0, 0, 0]);
        ip::prepend(&mut hello, [10, 0, 0, 7].into(), [224, 0, 0, 13].into(), 103, 1, 0);
        return (around(&hello, from), "a Hello of PIM".to_owned());
    }
    (query(sender, group, TENTH, from), format!("a query from {sender} for {group:?}"))
}

/// The frame with the tags of a VLAN, or without one, or with one of the other type or two.
fn in_vlan(
    draw: &mut impl FnMut(u64) -> u64,
    own: u16,
    (frame, about): (Vec<u8>, String),
) -> (Vec<u8>, String) {
    let (vlan, other) = (VLANS[draw(4) as usize], if own == CUSTOMER { PROVIDER } else { CUSTOMER });
    let priority = (draw(2) * draw(16)) as u16;
    match draw(16) {
        0..=3 => (frame, about),
        4 => (tagged(&frame, own, priority << 12), format!("{about}, in {own:x} 0")),
        5 => (tagged(&frame, other, vlan), format!("{about}, in {other:x} {vlan}")),
        6 => (tagged(&tagged(&frame, own, 7), own, vlan), format!("{about}, in {own:x} 7 in {vlan}")),
        _ => (tagged(&frame, own, priority << 12 | vlan), format!("{about}, in {own:x} {vlan}")),
    }
}

#[test]
fn groups_are_snooped_in_each_vlan_as_by_the_kernel() {
    if !possible() {
        return;
    }
    let mut guest = Guest::boot(PORTS);
    let (mut draw, began) = (draws("snooping in VLANs"), Instant::now());
    let (mut differences, mut copies, mut frames) = (String::new(), 0, 0);
    let mut counted: BTreeMap<&str, u64> = BTreeMap::new();
    for number in 0..NETWORKS {
        let (config, script) = network(&mut draw, Some(Snooping::default()));
        let own = config.vlans.unwrap_or_default().protocol;
        let mut both = Both::new(guest, config, &script);
        for round in 0..ROUNDS {
            for _ in 0..FRAMES {
                let said = traffic(&mut draw);
                let (frame, about) = in_vlan(&mut draw, own, said);
                let about = format!("network {number}, round {round}, {about}");
                both.offer(draw(PORTS as u64) as usize, frame, &about);
            }
            for _ in 0..MESSAGES {
                let said = of_router(&mut draw);
                let (frame, about) = in_vlan(&mut draw, own, said);
                let about = format!("network {number}, round {round}, {about}");
                both.offer(draw(PORTS as u64) as usize, frame, &about);
            }
            both.compare();
            thread::sleep(ANSWERED);
        }
        differences += &both.differences;
        copies += both.copies;
        frames += ROUNDS * (FRAMES + MESSAGES);
        for name in [
            "frames_to_members",
            "no_port_for_group",
            "malformed_group_frame",
            "queries_heard",
            "reports",
            "leaves",
        ] {
            *counted.entry(name).or_default() += both.ours.counter(name);
        }
        guest = both.end();
    }
    assert!(differences.is_empty(), "{differences}");
    assert!(copies > 2000 && counted.values().all(|&count| count > 20), "{copies} copies, {counted:?}");
    eprintln!("{frames} frames in {:?}, {copies} copies, {counted:?}", began.elapsed());
}

/// The IGMP queries of the bridge itself among these frames, each once: those for this group, or unspecified for all.
fn own_queries(group: [u8; 4], frames: impl IntoIterator<Item = (u32, Vec<u8>)>) -> BTreeSet<(u32, Vec<u8>)> {
    let is_query = |(port, frame): &(u32, Vec<u8>)| {
        let tag = if frame[12..14] == CUSTOMER.to_be_bytes() { 4 } else { 0 };
        // IPv4, with the option of four bytes that all of them have, the protocol and the type.
        let packet = &frame[12 + tag..];
        let is_igmp = packet[..3] == [8, 0, 0x46] && packet[11] == ip::IGMP && packet[26] == 0x11;
        *port != HOST && frame[6..12] == BRIDGE && is_igmp && packet[30..34] == group
    };
    frames.into_iter().filter(is_query).collect()
}

#[test]
fn a_querier_asks_in_each_vlan_as_the_kernels() {
    if !possible() {
        return;
    }
    let snooping = Snooping { querier: Some(Querier::of(BRIDGE)), ..Snooping::default() };
    let host = BridgePort { tagged: vec![5, 7], ..BridgePort::default() };
    let config = Config {
        host: Some((host, BRIDGE)),
        snooping: Some(snooping),
        ..filtering(&[(0, &[5, 7], &[]), (5, &[], &[5]), (7, &[], &[7]), (0, &[7], &[])])
    };
    let script = "for scope in all default; do
            [ ! -d /proc/sys/net/ipv6 ] || echo 1 > /proc/sys/net/ipv6/conf/$scope/disable_ipv6
        done
        ip link add br0 address 02:bb:00:00:00:01 type bridge forward_delay 0 vlan_filtering 1 \
            vlan_default_pvid 0 mcast_vlan_snooping 1
        for port in 0 1 2 3; do ip link set vec$port master br0 up; done
        bridge vlan add dev vec0 vid 5; bridge vlan add dev vec0 vid 7; bridge vlan add dev vec3 vid 7
        bridge vlan add dev vec1 vid 5 pvid untagged; bridge vlan add dev vec2 vid 7 pvid untagged
        for vlan in 5 7; do
            bridge vlan add dev br0 vid $vlan self
            bridge vlan global set vid $vlan dev br0 mcast_querier 1
        done
        ip link set br0 up";
    let mut both = Both::new(Guest::boot(4), config, script);
    let kernels = |both: &Both, group, within| {
        let next = || both.guest.receive_any(within).map(|(port, frame)| (port as u32, frame));
        own_queries(group, std::iter::from_fn(next))
    };
    const ALL: [u8; 4] = [0; 4];
    const GROUP: [u8; 4] = [239, 1, 1, 1];
    let general = own_queries(ALL, both.ours.until(0));
    assert_eq!(general.len(), 5, "one for each VLAN of a port");
    assert_eq!(kernels(&both, ALL, Duration::from_secs(2)), general);
    // Who leaves makes it ask for that group behind that port, unless nobody there has reported it.
    let (member, other) = (station(1), station(2));
    let messages = [
        (1, report("239.1.1.1", Version::V2, member)),
        (2, leave("239.1.1.1", other)),
        (1, leave("239.1.1.1", member)),
    ];
    let mut asked = BTreeSet::new();
    for (port, message) in messages {
        asked.extend(own_queries(GROUP, both.ours.offer(port, &message)));
        both.guest.send(port as usize, &message);
    }
    assert_eq!(asked.len(), 1);
    // Linux sends it to all hosts, and ours to the group, as RFC 2236 section 9 has it.
    let without_destination = |(port, mut frame): (u32, Vec<u8>)| {
        for at in [0..6, 24..26, 30..34] {
            frame[at].fill(0);
        }
        (port, frame)
    };
    let alike = |queries: BTreeSet<_>| queries.into_iter().map(without_destination).collect::<Vec<_>>();
    assert_eq!(alike(kernels(&both, GROUP, Duration::from_secs(1))), alike(asked));
}
