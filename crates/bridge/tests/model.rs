//! The bridge against a model of a few lines, on random frames.

mod common;

use common::{HOST, HOST_MAC, Tested, at, station, tagged};
use hopcast_bridge::bridge::{BridgePort, Config, VlanFiltering};
use hopcast_wire::ethernet::BROADCAST;
use hopcast_wire::vlan::CUSTOMER;
use proptest::prelude::*;

const PORTS: u32 = 4;
const AGEING: u64 = 300;

/// What happens: seconds pass, and a frame arrives on a port: its tag, if it has one, and the numbers of its stations,
/// of which 0 stands for all.
#[derive(Clone, Debug)]
struct Arrival {
    seconds: u64,
    port: u32,
    tag: Option<u16>,
    from: u8,
    to: u8,
}

fn arrival() -> impl Strategy<Value = Arrival> {
    let seconds = prop_oneof![8 => 0..5_u64, 1 => 250..350_u64];
    let tag = prop_oneof![
        Just(None),
        (0..4_u16, 0..8_u16).prop_map(|(vlan, priority)| Some(priority << 13 | vlan))
    ];
    (seconds, 0..=PORTS, tag, 1..5_u8, 0..5_u8).prop_map(|(seconds, port, tag, from, to)| Arrival {
        seconds,
        port: if port == PORTS { HOST } else { port },
        tag,
        from,
        to,
    })
}

/// A port's VLANs of 1 to 3: the native one, and of each whether it is a member, and without tags.
fn port() -> impl Strategy<Value = BridgePort> {
    let member = prop_oneof![Just(None), any::<bool>().prop_map(Some)];
    (proptest::option::of(1..4_u16), proptest::array::uniform3(member)).prop_map(|(native, members)| {
        let with =
            |untagged| (1..4).filter(|&vlan| members[usize::from(vlan) - 1] == Some(untagged)).collect();
        BridgePort { native, tagged: with(false), untagged: with(true), ..BridgePort::default() }
    })
}

/// The model: everything that was heard, in order, and the ports.
struct Model {
    ports: Vec<(u32, BridgePort)>,
    filters: bool,
    heard: Vec<(u64, u16, u8, u32)>,
}

impl Model {
    fn port(&self, number: u32) -> &BridgePort {
        &self.ports.iter().find(|(port, _)| *port == number).expect("the port").1
    }

    fn is_member(&self, number: u32, vlan: u16) -> bool {
        let port = self.port(number);
        !self.filters || port.tagged.contains(&vlan) || port.untagged.contains(&vlan)
    }

    fn offer(&mut self, now: u64, arrival: &Arrival) -> Vec<(u32, Vec<u8>)> {
        let Arrival { port, tag, from, to, .. } = *arrival;
        let source = if port == HOST { HOST_MAC } else { station(from) };
        let destination = match to {
            0 => BROADCAST,
            4 => HOST_MAC,
            other => station(other),
        };
        let bare = common::frame(destination, source);
        let named = tag.map_or(0, |tag| tag & 0xfff);
        let vlan = match (self.filters, named) {
            (false, _) => 0,
            (true, 0) => match self.port(port).native {
                Some(native) => native,
                None => return Vec::new(),
            },
            (true, named) if self.is_member(port, named) => named,
            _ => return Vec::new(),
        };
        if port != HOST {
            self.heard.push((now, vlan, from, port));
        }
        let last = |&&(_, in_vlan, by, _): &&(u64, u16, u8, u32)| (in_vlan, by) == (vlan, to);
        let known = match to {
            0 => None,
            4 => self.is_member(HOST, vlan).then_some(HOST),
            _ => self
                .heard
                .iter()
                .rev()
                .find(last)
                .filter(|(then, ..)| then + AGEING > now)
                .map(|heard| heard.3),
        };
        let meant = |other: u32| match known {
            Some(known) => other == known,
            None => to == 0 || other != HOST,
        };
        let form = |other: u32| match tag {
            tag if !self.filters => tag.map_or(bare.clone(), |tag| tagged(&bare, CUSTOMER, tag)),
            _ if self.port(other).untagged.contains(&vlan) => bare.clone(),
            tag => tagged(&bare, CUSTOMER, tag.unwrap_or(0) & 0xf000 | vlan),
        };
        let ports = self.ports.iter().map(|(number, _)| *number);
        let out = ports.filter(|&other| other != port && meant(other) && self.is_member(other, vlan));
        out.map(|other| (other, form(other))).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn the_bridge_does_what_the_model_does(
        filters: bool,
        ports in proptest::collection::vec(port(), PORTS as usize + 1),
        arrivals in proptest::collection::vec(arrival(), 1..60),
    ) {
        let (host, below) = ports.split_last().unwrap();
        let mut bridge = Tested::new(Config {
            ports: below.to_vec(),
            host: Some((host.clone(), HOST_MAC)),
            vlans: filters.then(VlanFiltering::default),
            snooping: None,
            ..Config::default()
        });
        let numbers = (0..PORTS).chain([HOST]);
        let mut model = Model { ports: numbers.zip(ports).collect(), filters, heard: Vec::new() };
        let mut now = 0;
        for arrival in &arrivals {
            now += arrival.seconds;
            bridge.now = at(now);
            let source = if arrival.port == HOST { HOST_MAC } else { station(arrival.from) };
            let destination = match arrival.to {
                0 => BROADCAST,
                4 => HOST_MAC,
                other => station(other),
            };
            let bare = common::frame(destination, source);
            let frame = arrival.tag.map_or(bare.clone(), |tag| tagged(&bare, CUSTOMER, tag));
            let out = bridge.offer(arrival.port, &frame);
            prop_assert_eq!(out, model.offer(now, arrival));
        }
    }

    #[test]
    fn no_bytes_make_it_panic_or_send_by_the_port_that_they_came_from(
        filters: bool,
        port in 0..3_u32,
        frames in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..80), 1..20),
        group: bool,
    ) {
        let config = if filters { common::filtering(&[(1, &[2][..], &[1][..]); 3]) } else { common::plain(3) };
        let snooping = Some(hopcast_bridge::bridge::Snooping::default());
        let mut bridge = Tested::new(Config { snooping, ..config });
        for mut frame in frames {
            if group && frame.len() > 14 {
                frame[..3].copy_from_slice(&[1, 0, 0x5e]);
                frame[6] &= 0xfe;
                frame[12..15].copy_from_slice(&[8, 0, 0x46]);
            }
            prop_assert!(bridge.offer(port, &frame).iter().all(|(out, _)| *out != port));
        }
    }
}
