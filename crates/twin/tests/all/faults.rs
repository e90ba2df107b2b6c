//! Thirty faults, of ten kinds at random places of three networks: the checks and what became of their packets name the
//! element and the reason. Networks without a fault raise no alarm.

#![allow(clippy::unwrap_used)]

use std::fmt::Write;
use std::path::Path;

use hopcast_core::{Duration, Instant, Seed, Stream};
use hopcast_runner::load_text;
use hopcast_twin::probe::{Findings, Pairs, Stage, probe};
use hopcast_twin::scenario::Overrides;

/// A ring of routers with a host behind one of them, and at router r0 a row of switches with two VLANs of hosts: a0 and
/// others in VLAN 5, in which r0 is too, b0 and others in VLAN 7.
#[derive(Clone, Copy)]
struct Campus {
    routers: usize,
    switches: usize,
    /// Number of hosts of each VLAN.
    hosts: usize,
}

const CAMPUSES: [Campus; 3] = [
    Campus { routers: 3, switches: 2, hosts: 2 },
    Campus { routers: 4, switches: 3, hosts: 4 },
    Campus { routers: 6, switches: 4, hosts: 5 },
];

/// The kinds of faults.
const KINDS: [&str; 10] = [
    "link down",
    "one-way link",
    "trunk without room for a tag",
    "tag not admitted",
    "port without a native VLAN",
    "routing loop",
    "bridge stopped",
    "duplicate address",
    "no querier",
    "MTU shrunk on the way",
];

/// What a campus has that others have not.
#[derive(Default)]
struct Fault {
    /// More keys of a link, by its name.
    link: Option<(String, &'static str)>,
    /// MTU of a trunk, by its number.
    trunk_mtu: Option<(usize, u32)>,
    /// A node that claims an address.
    claims: Option<(String, String)>,
    without_querier: bool,
    /// Events and routes.
    more: String,
    /// The stage that fails first, and what the first failed check must say.
    stage: Option<Stage>,
    says: Vec<String>,
}

impl Campus {
    /// The ports of a switch, with those of `changed` as it says.
    fn ports(&self, switch: usize, changed: Option<(&str, &str)>) -> String {
        let mut ports = Vec::new();
        if switch > 0 {
            ports.push((format!("t{}", switch - 1), "tagged: [5, 7]"));
        }
        if switch + 1 < self.switches {
            ports.push((format!("t{switch}"), "tagged: [5, 7]"));
        }
        if switch == 0 {
            ports.push(("up".to_owned(), "untagged: 5"));
        }
        for host in (0..self.hosts).filter(|host| host % self.switches == switch) {
            ports.push((format!("la{host}"), "untagged: 5"));
            ports.push((format!("lb{host}"), "untagged: 7"));
        }
        let port = |(name, is): &(String, &str)| match changed {
            Some((port, to)) if port == name => format!("{name}: {{ {to} }}"),
            _ => format!("{name}: {{ {is} }}"),
        };
        ports.iter().map(port).collect::<Vec<_>>().join(", ")
    }

    /// The scenario of the campus with a fault; each link loses this many percent.
    fn text(&self, fault: &Fault, loss: u64) -> String {
        let Self { routers, switches, hosts } = *self;
        let mut names: Vec<String> = (0..routers).map(|n| format!("r{n}")).collect();
        names.extend(["far".to_owned()].into_iter().chain((0..switches).map(|n| format!("s{n}"))));
        names.extend((0..hosts).flat_map(|n| [format!("a{n}"), format!("b{n}")]));
        let node = |name: &String| match &fault.claims {
            Some((of, address)) if of == name => format!("{{ name: {name}, claims: {address} }}"),
            _ => name.clone(),
        };
        let nodes = names.iter().map(node).collect::<Vec<_>>().join(", ");
        let mut links = String::new();
        let mut link = |name: &str, one: &str, other: &str, mtu: u32| {
            let more = match &fault.link {
                Some((of, keys)) if of == name => keys,
                _ => "",
            };
            let _ = writeln!(
                links,
                "    - {{ between: [{one}, {other}], name: {name}, rate: 100 Mbit/s, delay: 100 us, mtu: {mtu}, \
                 loss: {loss} %{more} }}"
            );
        };
        for n in 0..routers {
            link(&format!("ring{n}"), &format!("r{n}"), &format!("r{}", (n + 1) % routers), 1500);
        }
        link("edge", &format!("r{}", routers / 2), "far", 1500);
        link("up", "r0", "s0", 1500);
        for n in 0..switches - 1 {
            let mtu = fault.trunk_mtu.filter(|(trunk, _)| *trunk == n).map_or(1504, |(_, mtu)| mtu);
            link(&format!("t{n}"), &format!("s{n}"), &format!("s{}", n + 1), mtu);
        }
        for n in 0..hosts {
            let switch = format!("s{}", n % switches);
            link(&format!("la{n}"), &format!("a{n}"), &switch, 1500);
            link(&format!("lb{n}"), &format!("b{n}"), &switch, 1500);
        }
        let mut services = String::new();
        for n in 0..switches {
            let ports = self.ports(n, None);
            let interfaces: Vec<&str> =
                ports.split(", ").filter_map(|port| port.split_once(": {")).map(|port| port.0).collect();
            let _ = writeln!(
                services,
                "  - {{ name: sw{n}, run: bridge, on: s{n}, interfaces: [{}], host: {{ untagged: 1 }}, ports: {{ {ports} }} }}",
                interfaces.join(", ")
            );
        }
        if !fault.without_querier {
            services.push_str("  - { run: igmp-querier, on: r0 }\n");
        }
        let more = &fault.more;
        format!(
            "title: Campus
duration: 30 s
neighbours: resolve
membership: report
topology:
  nodes: [{nodes}]
  links:
{links}services:
{services}groups: [{{ name: film, members: [a0, a1], delivery: ip-multicast }}]
flows:
  - {{ name: a, from: a0, to: far, over: ip, app: {{ ping: {{ every: 500 ms }} }} }}
  - {{ name: b, from: b0, to: b1, over: ip, app: {{ ping: {{ every: 500 ms }} }} }}
  - {{ name: film, from: far, to: film, over: udp, app: {{ cbr: {{ rate: 100 kbit/s, size: 500 B }} }} }}
{more}"
        )
    }

    /// A fault of a kind at a random place, and what must be said of it.
    fn fault(&self, kind: &str, random: &mut Stream) -> Fault {
        let Self { routers, switches, hosts } = *self;
        let mut below = |bound: usize| random.below(bound as u64) as usize;
        match kind {
            "link down" => {
                let name =
                    ["edge".to_owned(), "up".to_owned(), format!("ring{}", below(routers))][below(3)].clone();
                Fault {
                    more: format!("events: [{{ at: 0s, links: {name}, down: true }}]\n"),
                    stage: Some(Stage::Links),
                    says: vec![name, "link down".to_owned()],
                    ..Fault::default()
                }
            }
            "one-way link" => {
                let name =
                    ["edge".to_owned(), format!("la{}", below(hosts)), format!("t{}", below(switches - 1))]
                        [below(3)]
                    .clone();
                let keys = [", forward: { loss: 100 % }", ", backward: { loss: 100 % }"][below(2)];
                let says = vec![name.clone(), "lost on the link".to_owned()];
                Fault { link: Some((name, keys)), stage: Some(Stage::Links), says, ..Fault::default() }
            }
            "trunk without room for a tag" => {
                let trunk = below(switches - 1);
                let says = vec![format!("link t{trunk}"), "larger than the MTU".to_owned()];
                Fault { trunk_mtu: Some((trunk, 1500)), stage: Some(Stage::Vlans), says, ..Fault::default() }
            }
            "tag not admitted" => {
                let switch = below(switches);
                let trunk = if switch + 1 < switches { switch } else { switch - 1 };
                let ports = self.ports(switch, Some((&format!("t{trunk}"), "tagged: 5")));
                Fault {
                    more: format!(
                        "events: [{{ at: 0s, service: sw{switch}, on: s{switch}, set: {{ ports: {{ {ports} }} }} }}]\n"
                    ),
                    stage: Some(Stage::Vlans),
                    // Where no other port is in the VLAN, what its own hosts send dies there too.
                    says: vec![format!("s{switch}'s sw{switch}"), "in its VLAN (".to_owned()],
                    ..Fault::default()
                }
            }
            "port without a native VLAN" => {
                let host = below(hosts);
                let switch = host % switches;
                let ports = self.ports(switch, Some((&format!("la{host}"), "tagged: 5")));
                Fault {
                    more: format!(
                        "events: [{{ at: 0s, service: sw{switch}, on: s{switch}, set: {{ ports: {{ {ports} }} }} }}]\n"
                    ),
                    stage: Some(Stage::Vlans),
                    says: vec![
                        format!("a{host}"),
                        format!("s{switch}'s sw{switch}"),
                        "untagged_not_allowed_in".to_owned(),
                    ],
                    ..Fault::default()
                }
            }
            "routing loop" => {
                // From r0 on the way to the far host, one back.
                let next = if below(2) == 0 || routers == 3 { 1 } else { routers - 1 };
                Fault {
                    more: format!(
                        "routes:\n  - {{ node: r0, to: far, via: r{next} }}\n  - {{ node: r{next}, to: far, via: r0 }}\n"
                    ),
                    stage: Some(Stage::EndToEnd),
                    says: vec![
                        "went round a loop".to_owned(),
                        "r0".to_owned(),
                        format!("r{next}"),
                        "hop_limit_exceeded".to_owned(),
                    ],
                    ..Fault::default()
                }
            }
            "bridge stopped" => {
                let switch = below(switches);
                Fault {
                    more: format!("events: [{{ at: 0s, service: sw{switch}, on: s{switch}, stop: true }}]\n"),
                    stage: Some(Stage::Vlans),
                    says: vec![format!("s{switch}'s sw{switch}"), "dropped_while_stopped".to_owned()],
                    ..Fault::default()
                }
            }
            "duplicate address" => {
                let (claimer, other) = (1 + below(hosts - 1), 0);
                // Numbered in the order of the nodes, of which hosts of the two VLANs take turns.
                let address = format!("10.0.0.{}", routers + 1 + switches + 2 * other + 1);
                let says = vec![format!("{address} is claimed by a{other} and a{claimer}")];
                Fault {
                    claims: Some((format!("a{claimer}"), address)),
                    stage: Some(Stage::Vlans),
                    says,
                    ..Fault::default()
                }
            }
            "no querier" => {
                let says = vec!["no querier".to_owned(), "sw".to_owned()];
                Fault { without_querier: true, stage: Some(Stage::Groups), says, ..Fault::default() }
            }
            "MTU shrunk on the way" => Fault {
                more: "events: [{ at: 0s, links: edge, mtu: 1400 }]\n".to_owned(),
                stage: Some(Stage::EndToEnd),
                says: vec![format!("r{}", routers / 2), "too_big".to_owned()],
                ..Fault::default()
            },
            other => panic!("no such kind: {other}"),
        }
    }
}

fn findings(text: &str) -> Findings {
    let plan = load_text(Path::new("campus.yaml"), text, &Overrides::default())
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    probe(&plan.cases[0].scenario, Instant::ZERO + Duration::from_secs(1), Pairs::OfFlows).unwrap()
}

#[test]
fn of_thirty_faults_at_random_places_each_is_named_with_its_element_and_reason() {
    let mut missed = Vec::new();
    for (number, campus) in CAMPUSES.iter().enumerate() {
        for kind in KINDS {
            let mut random = Seed::new(7, number as u64).stream(&["fault", kind], 0);
            let fault = campus.fault(kind, &mut random);
            let findings = findings(&campus.text(&fault, 0));
            let first = findings.first_failure();
            let said = first.map(|check| format!("{check:?}")).unwrap_or_default();
            let is_named = first.map(|check| check.stage) == fault.stage
                && fault.says.iter().all(|wanted| said.contains(wanted));
            if !is_named {
                missed.push(format!(
                    "{kind} in campus {number}: wanted {:?} of {:?}, found {said}",
                    fault.says, fault.stage
                ));
            }
        }
    }
    assert!(missed.is_empty(), "{} of 30 missed:\n{}", missed.len(), missed.join("\n"));
}

#[test]
fn thirty_sound_networks_raise_no_alarm() {
    let mut random = Seed::new(8, 0).stream(&["sound"], 0);
    for number in 0..30 {
        let mut below = |bound: u64| random.below(bound);
        let campus = Campus {
            routers: 3 + below(4) as usize,
            switches: 2 + below(3) as usize,
            hosts: 2 + below(3) as usize,
        };
        let findings = findings(&campus.text(&Fault::default(), below(20)));
        assert_eq!(findings.first_failure(), None, "network {number}");
    }
}
