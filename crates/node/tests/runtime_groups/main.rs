//! IGMPv3 and MLDv2 between machines and the kernel, both ways: a kernel host behind a router of ours, and a host of
//! ours behind a bridge of the kernel's that snoops and asks.

#![allow(clippy::unwrap_used)] // in what the tests share

#[path = "../common/mod.rs"]
mod common;
mod machines;
mod scene;

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use common::{Bench, Namespace, Traffic, figure};
use hopcast_core::plug::{DevicePlug, Plug};
use hopcast_host::querier;
use hopcast_node::runtime::Runtime;
use hopcast_node::testing::{Requirement, require};
use machines::{Carried, Router, Station};
use scene::{FAMILIES, Family, HOPS, PORT, Scene, ip, ms};

const NEEDS: [Requirement<'_>; 3] = [Requirement::Root, Requirement::Tun, Requirement::Program("ip")];

fn tap(name: &str, mac: [u8; 6]) -> Plug {
    let device = DevicePlug {
        name: name.to_owned(),
        addresses: Vec::new(),
        routes: Vec::new(),
        mtu: 1500,
        reports_memberships: false,
    };
    Plug::Tap(mac, device)
}

/// A namespace whose interfaces are used at once, and where packets may come from anywhere.
fn namespace(name: &str) -> Namespace {
    let namespace = Namespace::new(name);
    namespace.run(|| {
        for key in ["ipv6/conf/default/accept_dad", "ipv4/conf/all/rp_filter", "ipv4/conf/default/rp_filter"]
        {
            std::fs::write(format!("/proc/sys/net/{key}"), "0").unwrap();
        }
    });
    namespace
}

/// The senders' ports, in the calling thread's namespace.
fn senders(bench: &Bench, family: &Family) -> Vec<(Runtime, Rc<RefCell<Traffic>>)> {
    let open = |address: &str| bench.played(&[Plug::Udp(SocketAddr::new(ip(address), 0))]);
    family.senders.into_iter().map(open).collect()
}

fn a_kernel_host_gets_a_group_from_a_router_of_ours(family: &Family) {
    if !require(&NEEDS) {
        return;
    }
    let spaces = ["senders", "router", "member"];
    let [at_senders, at_router, at_member] =
        spaces.map(|place| namespace(&format!("{place}{}", family.version)));
    at_router.run(|| {
        let (bench, carried) = (Bench::new(), Carried::default());
        let settings = querier::Config {
            query_interval: ms(3000),
            query_response_interval: ms(300),
            last_member_query_interval: ms(200),
            ..querier::Config::default()
        };
        let router = Router::new(family, settings, &carried);
        let branch = router.branch.clone();
        // Their addresses are those of the kernel's ends.
        let taps = [tap("eth0", [2, 0, 0, 8, 1, 1]), tap("eth1", [2, 0, 0, 8, 1, 2])];
        let router = bench.open(Box::new(router), &taps);
        let address = |address: &str| format!("{address}/{}", family.prefix);
        at_senders.take_device("eth0", &at_router, &family.senders.map(address));
        at_member.take_device("eth1", &at_router, &[address(family.member)]);
        at_senders.enter();
        let senders = senders(&bench, family);
        at_member.enter();
        let (socket, member) = bench.played(&[Plug::Udp(SocketAddr::new(ip(family.member), PORT))]);
        let others = vec![router, socket];
        let mut scene =
            Scene { family, bench, senders, others, member, interface: 1, hops_left: HOPS - 1, carried };
        scene.joins_and_leaves(|group| branch.leads_to(ip(group)));
        assert!(figure(&scene.others[0], "socket_received") > 0);
    });
}

#[test]
fn a_kernel_host_gets_a_group_from_a_router_of_ours_by_igmp() {
    a_kernel_host_gets_a_group_from_a_router_of_ours(&FAMILIES[0]);
}

#[test]
fn a_kernel_host_gets_a_group_from_a_router_of_ours_by_mld() {
    a_kernel_host_gets_a_group_from_a_router_of_ours(&FAMILIES[1]);
}

fn a_host_of_ours_gets_a_group_from_a_bridge_of_the_kernel(family: &Family) {
    if !require(&[NEEDS[0], NEEDS[1], NEEDS[2], Requirement::Program("bridge")]) {
        return;
    }
    let [at_senders, at_bridge] =
        ["far", "bridge"].map(|place| namespace(&format!("{place}{}", family.version)));
    // Times in hundredths of a second.
    at_bridge.sh("ip link add br0 type bridge forward_delay 0 mcast_snooping 1 mcast_igmp_version 3 \
         mcast_mld_version 2 mcast_query_interval 300 mcast_startup_query_interval 300 \
         mcast_query_response_interval 30 mcast_last_member_interval 20 mcast_last_member_count 2 \
         mcast_membership_interval 630");
    let addresses = family.senders.map(|address| format!("{address}/{}", family.prefix));
    at_senders.join("eth0", &addresses.each_ref().map(|address| &**address), &at_bridge, "port0", &[]);
    at_bridge.run(|| {
        let (bench, carried) = (Bench::new(), Carried::default());
        let (station, member) = Station::new(family, &carried);
        let station = bench.open(station, &[tap("port1", [2, 0, 0, 8, 1, 9])]);
        // The station is alone on its link.
        at_bridge.sh("ip link set port1 addrgenmode none");
        for port in ["port0", "port1"] {
            at_bridge.sh(&format!("ip link set {port} master br0"));
        }
        at_bridge.sh("ip link set br0 up");
        // It asks with these times, and by MLD once it has an address, which a querier needs.
        let has_address = || {
            let addresses = at_bridge.sh("ip -6 address show dev br0 scope link");
            addresses.contains("fe80:") && !addresses.contains("tentative")
        };
        assert!(bench.until(10, &mut [], has_address));
        at_bridge.sh("ip link set br0 type bridge mcast_querier 1");
        at_senders.enter();
        let senders = senders(&bench, family);
        let mut scene = Scene {
            family,
            bench,
            senders,
            others: vec![station],
            member,
            interface: 0,
            hops_left: HOPS,
            carried,
        };
        // A bridge sends everything everywhere until its first query could have been answered.
        let _ = (0..20).any(|_| scene.on_link().is_empty());
        scene.joins_and_leaves(|group| {
            at_bridge.sh("bridge mdb show").contains(&format!("port port1 grp {group} "))
        });
    });
}

#[test]
fn a_host_of_ours_gets_a_group_from_a_bridge_of_the_kernel_by_igmp() {
    a_host_of_ours_gets_a_group_from_a_bridge_of_the_kernel(&FAMILIES[0]);
}

#[test]
fn a_host_of_ours_gets_a_group_from_a_bridge_of_the_kernel_by_mld() {
    a_host_of_ours_gets_a_group_from_a_bridge_of_the_kernel(&FAMILIES[1]);
}
