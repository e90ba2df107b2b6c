//! PIM on kernels: routers join and prune for the members that other kernels report, and forward by what they find.

#![allow(clippy::unwrap_used)] // helpers of tests

mod common;

use common::{hopcast, live_run_in, text, tshark};
use hopcast_node::testing::Requirement;
use serde_json::Value;

/// A sender, and four routers: r3 is behind r2, with the member b; a is behind r2 too. Behind r4 nobody is a member. A
/// datagram each 20 ms goes to the group over IPv4, and one over IPv6; b joins when 150 of them are sent.
fn scenario(members: &str, routers: &str) -> String {
    let app = "{ cbr: { rate: 200 kbit/s, size: 500 B, start: 5 s } }";
    let flow =
        |ip: u8| format!("  - {{ name: v{ip}, from: s, to: film, ip: {ip}, over: udp, app: {app} }}\n");
    format!(
        "title: t
duration: 12 s
membership: report
topology:
  nodes: [s, r1, r2, r3, r4, a, b, c]
  links:
    - {{ between: [s, r1], rate: 20 Mbit/s, delay: 1 ms }}
    - {{ between: [r1, r2], rate: 20 Mbit/s, delay: 1 ms }}
    - {{ between: [r2, r3], rate: 20 Mbit/s, delay: 1 ms }}
    - {{ between: [r1, r4], rate: 20 Mbit/s, delay: 1 ms }}
    - {{ between: [r2, a], rate: 20 Mbit/s, delay: 1 ms }}
    - {{ between: [r3, b], rate: 20 Mbit/s, delay: 1 ms }}
    - {{ between: [r4, c], rate: 20 Mbit/s, delay: 1 ms }}
groups: [{{ name: film, members: {members}, delivery: {{ ip-multicast: {{ routing: pim }} }} }}]
services:
  - {{ name: pim, run: pim, on: {routers}, hello-delay: 500 ms }}
  - {{ name: igmp, run: igmp-querier, on: {routers}, query-interval: 4 s }}
  - {{ name: mld, run: mld-querier, on: {routers}, query-interval: 4 s }}
events: [{{ at: 8 s, group: film, join: b }}, {{ at: 11 s, stop: [v4, v6] }}]
flows:
{}{}",
        flow(4),
        flow(6)
    )
}

/// Datagrams that each receiver of a flow missed of those that were sent while it was a member, and the number of
/// those.
fn missed(run: &Value, flow: usize) -> Vec<(u64, u64)> {
    let receivers = run["flows"][flow]["receivers"].as_array().unwrap().iter();
    let of = |receiver: &Value, name: &str| receiver[name].as_u64().unwrap();
    let missed = |one: &Value| {
        let sent = of(one, "sent_units");
        (sent - of(one, "delivered_units"), sent)
    };
    receivers.map(missed).collect()
}

#[test]
fn live_routers_make_the_tree_for_who_joins_and_no_other_link_carries_the_group() {
    let dir = tempfile::tempdir().unwrap();
    let needs = [Requirement::Program("nft"), Requirement::Program("tshark")];
    let file = scenario("[a]", "[r1, r2, r3, r4]");
    let Some(live) = live_run_in(dir.path(), &file, &["--capture", "r1,r3,c"], &needs) else { return };
    for flow in 0..2 {
        let [a, b] = missed(&live, flow)[..] else { panic!("two receivers") };
        assert_eq!(a.0, 0, "{}", live["flows"][flow]);
        assert!(a.1 >= 295, "{a:?}");
        // A report, and a join over two links: some milliseconds, and what a busy machine takes.
        assert!(b.0 <= 10 && b.1 >= 145, "{b:?}");
    }
    let hosts = live["hosts"].as_object().unwrap();
    // Of r1, r2 and r3 for each version, and again each minute.
    assert!(hosts["pim.pim_joins"].as_u64() >= Some(2 * 2), "{hosts:?}");
    let is_odd = |name: &&String| name.contains("refused") || name.contains("wrong_items");
    assert_eq!(hosts.keys().find(is_odd), None, "{hosts:?}");
    let file = dir.path().join("out/captures/case-000-repeat-000.pcapng");
    let count = |filter: &str| {
        let fields = ["-T", "fields", "-e", "frame.number"];
        tshark(&file, &[&["-o", "udp.check_checksum:TRUE", "-Y", filter][..], &fields].concat())
            .unwrap()
            .lines()
            .count()
    };
    // The captured interfaces are those of r1, r3 and c, in this order: r1 is on three links, r3 on two.
    for ip in ["ip", "ipv6"] {
        let on =
            |interface: &str| count(&format!("frame.interface_name == \"{interface}\" and udp and {ip}"));
        assert!(on("r1:eth0") >= 295 && on("r1:eth1") >= 295, "{ip}");
        assert!((140..=160).contains(&on("r3:eth0")) && on("r3:eth0") == on("r3:eth1"), "{ip}");
        assert_eq!((on("r1:eth2"), on("c:eth0")), (0, 0), "{ip}");
    }
    assert_eq!(count("udp.checksum.status == 0 or _ws.malformed"), 0);
    assert!(count("pim") > 0 && count("igmp") > 0 && count("icmpv6.type == 143") > 0);
}

#[test]
fn an_end_that_is_a_router_itself_is_for_virtual_time() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("t.yaml"), scenario("[a, r3]", "[r1, r2, r3, r4]")).unwrap();
    let output = hopcast(dir.path(), &["run", "t.yaml", "--live"]);
    assert!(!output.status.success());
    let line = "flow `v4`: its end `r3` runs `pim`, which in a live run does not see what its own kernel sends and joins; use another node behind it\n";
    assert!(text(&output.stderr).ends_with(line), "{}", text(&output.stderr));
}
