//! The network: nodes on a switch, each of which hears the others with a loss of its own.

use hopcast_core::{Duration, Fraction, Rate, Seed};
use hopcast_link::{Direction, Loss, Switch, SwitchConfig};
use hopcast_live::layout::{InterfaceLayout, LinkLayout, NetworkLayout, NodeLayout, RouteLayout};
use hopcast_node::testing::{Requirement, require};
use hopcast_stack::network::Prefix;

use crate::common::{Running, whole_run};
use crate::program::{LIBRARY, program};

/// Address of the group.
pub(crate) const GROUP: &str = "224.1.2.3";
/// Rate of each node: what a busy machine emulates well.
const RATE_MBIT: u64 = 20;
/// One-way delay. Chosen: above what a busy machine adds by itself.
const DELAY: Duration = Duration::from_millis(5);

/// Address of a node.
pub(crate) const fn address(node: usize) -> [u8; 4] {
    [10, 0, 0, node as u8 + 1]
}

/// A segment of this number of nodes, where each frame is lost to each of the others with this probability; `None`,
/// said aloud, where it cannot be set up.
pub(crate) fn segment(nodes: usize, loss: f64) -> Option<Running> {
    let can = require(&[
        Requirement::Root,
        Requirement::Tun,
        Requirement::Program("ip"),
        Requirement::Program("setpriv"),
        LIBRARY,
    ]);
    can.then(|| {
        // Built before anything is sent, since that takes a while.
        program();
        let net = Running::start(layout(nodes, loss), Vec::new(), whole_run());
        for node in 0..nodes {
            // A socket that is bound to an address sends to groups by the interface that has it.
            let [a, b, c, d] = address(node);
            let own = format!("{a}.{b}.{c}.{d}/32");
            let mut command = net.lab.command(node, "ip");
            command.args(["address", "add", &own, "dev", "eth0"]);
            assert!(net.lab.start(command).unwrap().wait().unwrap().success());
        }
        net
    })
}

fn layout(nodes: usize, loss: f64) -> NetworkLayout {
    let mac = |node: usize| [2, 0, 0, 0, 0, node as u8];
    let direction = Direction {
        rate: Some(Rate::from_mbit(RATE_MBIT)),
        delay: DELAY,
        loss: Loss::Independent(Fraction::new(loss).unwrap()),
        ..Direction::default()
    };
    let config = SwitchConfig {
        directions: vec![direction; nodes],
        addresses: (0..nodes).map(mac).collect(),
        ..SwitchConfig::default()
    };
    let switch =
        Switch::new(&config, |from, to| Seed::new(7, 0).stream(&["switch"], (nodes * from + to) as u64));
    let link = LinkLayout {
        name: "switch".to_owned(),
        model: Box::new(switch),
        ends: (0..nodes).map(|node| (node, 0)).collect(),
        captured: vec![None; nodes],
    };
    let node = |number: usize| {
        let routes = (0..nodes).filter(|&other| other != number).map(|other| {
            let to = address(other).into();
            RouteLayout { to: Prefix::of(to), interface: 0, via: Some(to), via_mac: Some(mac(other)) }
        });
        NodeLayout {
            name: format!("n{number}"),
            addresses: vec![address(number).into()],
            interfaces: vec![InterfaceLayout {
                link: 0,
                attachment: number,
                mac: mac(number),
                mtu: 1500,
                ..InterfaceLayout::default()
            }],
            routes: routes.collect(),
            ..NodeLayout::default()
        }
    };
    NetworkLayout { nodes: (0..nodes).map(node).collect(), links: vec![link], ..NetworkLayout::default() }
}
