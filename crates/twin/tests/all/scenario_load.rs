//! The network, flows and events that a scenario resolves to.

use std::sync::Arc;

use crate::common::scenarios::*;

use hopcast_core::{Bytes, Duration, Fraction, Instant, Rate};
use hopcast_link::{Change, Duplex, Jitter, Loss, Queue, QueueLimit};
use hopcast_twin::scenario;
use hopcast_twin::scenario::model::{Action, App, Arrivals, Capture, LinkModel, SendSpan};

#[test]
fn generators_name_and_link_their_nodes() {
    let of = |topology: &str| {
        let text = format!(
            "duration: 1s\ntopology: {{ {topology} }}\nflows: [{{ from: 0, to: 1, over: tcp-cubic, app: bulk }}]"
        );
        let text = match topology.split(':').next() {
            Some("grid") => text.replace("from: 0, to: 1", "from: r0c0, to: r1c1"),
            Some(_) | None => text.replace("from: 0, to: 1", "from: n0, to: n1"),
        };
        let scenario = only(&text);
        assert!(scenario.nodes.iter().all(|node| node.position.is_some()));
        let nodes: Vec<_> = scenario.nodes.iter().map(|node| node.name.as_str()).collect();
        let links: Vec<_> = scenario.links.iter().map(|link| link.name.as_str()).collect();
        format!("{} | {}", nodes.join(" "), links.join(" "))
    };
    assert_eq!(of("chain: { hops: 2 }"), "n0 n1 n2 | n0-n1 n1-n2");
    assert_eq!(of("star: { leaves: 3 }"), "hub n0 n1 n2 | hub-n0 hub-n1 hub-n2");
    assert_eq!(
        of("tree: { depth: 2, fanout: 2 }"),
        "n0 n1 n2 n3 n4 n5 n6 | n0-n1 n0-n2 n1-n3 n1-n4 n2-n5 n2-n6"
    );
    assert_eq!(of("tree: { fanout: [1, 2] }"), "n0 n1 n2 n3 | n0-n1 n1-n2 n1-n3");
    assert_eq!(
        of("grid: { rows: 2, columns: 2 }"),
        "r0c0 r0c1 r1c0 r1c1 | r0c0-r0c1 r0c0-r1c0 r0c1-r1c1 r1c0-r1c1"
    );
    assert_eq!(of("full: { nodes: 3 }"), "n0 n1 n2 | n0-n1 n0-n2 n1-n2");
    assert_eq!(of("switch: { nodes: 3, link: { name: lan } }"), "n0 n1 n2 | lan");
    assert_eq!(of("switch: { nodes: 3 }"), "n0 n1 n2 | n0-n1-n2");
}

#[test]
fn a_tree_has_classes_of_its_inner_nodes_and_its_leaves() {
    let of = |class: &str| {
        let text = format!(
            "duration: 1s\ntopology: {{ tree: {{ fanout: [1, 2], inner: routers, leaves: hosts }} }}\ngroups: [{{ name: g, members: {class} }}]\nflows: [{{ from: n0, to: g, over: udp, app: {{ cbr: {{ rate: 8 kbit/s }} }} }}]"
        );
        only(&text).groups[0].members.iter().map(|member| member.node).collect::<Vec<_>>()
    };
    assert_eq!((of("routers"), of("hosts")), (vec![0, 1], vec![2, 3]));
}

#[test]
fn generated_and_written_parts_make_one_topology() {
    let scenario = only(
        "duration: 1s
topology:
  links: [{ between: [n2, server], rate: 1 Gbit/s }, { name: back, between: [server, n0] }]
  chain: { hops: 2 }
  star: { leaves: 2, prefix: s }
  nodes: [server, { name: gateway, position: [1, -2.5] }]
flows: [{ from: n0, to: server, over: tcp-cubic, app: bulk }]",
    );
    let names: Vec<_> = scenario.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["n0", "n1", "n2", "hub", "s0", "s1", "server", "gateway"]);
    assert_eq!(scenario.nodes[7].position, Some((1.0, -2.5)));
    let links: Vec<_> = scenario.links.iter().map(|link| link.name.as_str()).collect();
    assert_eq!(links, ["n0-n1", "n1-n2", "hub-s0", "hub-s1", "n2-server", "back"]);
    assert_eq!(scenario.flows[0].name, "flow0");
}

#[test]
fn a_link_has_every_value_in_each_direction() {
    let scenario = only(
        "duration: 1s
topology:
  nodes: [a, b]
  links:
    - between: [a, b]
      rate: 10 Mbit/s
      delay: 1ms
      loss: { gilbert-elliott: { p: 1 %, r: 10 %, h: 20 % } }
      jitter: { normal: 100us }
      reorder: true
      duplicate: 1 %
      corrupt: 1 ppm
      queue: { codel: { target: 10ms, limit: 64 KiB } }
      mtu: 9000
      duplex: half
      backward: { rate: unlimited, loss: none, queue: 5 packets, jitter: 2ms }
flows: [{ from: a, to: b, over: udp, app: bulk }]",
    );
    let LinkModel::PointToPoint(config) = &scenario.links[0].model else { panic!() };
    let percent = |percent| Fraction::from_percent(percent).unwrap();
    assert_eq!(config.duplex, Duplex::Half);
    assert_eq!(config.forward.rate, Some(Rate::from_mbit(10)));
    let loss = Loss::GilbertElliott { p: percent(1.0), r: percent(10.0), k: Fraction::ONE, h: percent(20.0) };
    assert_eq!(config.forward.loss, loss);
    assert_eq!(config.forward.jitter, Jitter::Normal(Duration::from_micros(100)));
    let codel = Queue::CoDel {
        limit: QueueLimit::Bytes(Bytes::new(65_536)),
        target: Duration::from_millis(10),
        interval: Duration::from_millis(100),
    };
    assert_eq!(config.forward.queue, codel);
    assert_eq!(config.forward.corrupt, Fraction::new(1e-6).unwrap());
    assert_eq!((config.backward.mtu, config.backward.delay), (9000, Duration::from_millis(1)));
    assert_eq!((config.backward.rate, &config.backward.loss), (None, &Loss::None));
    assert_eq!(config.backward.queue, Queue::DropTail { limit: QueueLimit::Packets(5) });
    assert_eq!(config.backward.jitter, Jitter::Uniform(Duration::from_millis(2)));
}

#[test]
fn events_come_in_the_order_of_time_and_then_of_the_file() {
    let scenario = only(
        "duration: 10s
topology: { chain: { hops: 2, link: { rate: 9 Mbit/s } } }
events:
  - { at: 5s, links: [n1-n2], from: n2, rate: 1 Mbit/s, delay: 2ms }
  - { at: 1s, start: late }
  - { at: 5s, links: all, from: n0, down: true }
  - { at: 7s, stop: [late] }
flows: [{ name: late, from: n0, to: n2, over: udp, app: { cbr: { rate: saturate, start: event, stop: 9s } } }]",
    );
    let at: Vec<_> = scenario.events.iter().map(|event| event.at.as_secs_f64()).collect();
    assert_eq!(at, [1.0, 5.0, 5.0, 5.0, 7.0]);
    assert_eq!(scenario.events[0].action, Action::Start(0));
    let rate = Change::Rate(Some(Rate::from_mbit(1)));
    assert_eq!(scenario.events[1].action, Action::Link { link: 1, from: Some(1), change: rate });
    assert_eq!(scenario.events[3].action, Action::Link { link: 0, from: Some(0), change: Change::Down });
    let stop = Some(Instant::ZERO + Duration::from_secs(9));
    let arrivals = Arrivals::default();
    let cbr = App::Cbr { rate: None, size: Bytes::new(1472), arrivals, span: SendSpan { start: None, stop } };
    assert_eq!(scenario.flows[0].app, cbr);
}

#[test]
fn stacks_and_variants_resolve_to_layers() {
    let text = with(
        "variants:
  quick-tcp: { tcp-bbr: { initial-window: 4, sack: off, min-rto: 1s, delayed-ack: 0s, receive-buffer: 64 KiB } }
  inside: [tcp-cubic, tunnel, udp]
sweep: { flows.bulk.over: [udp, quick-tcp, [quick-tcp, tunnel], inside, { tcp-cubic: { sack: no } }] }",
    );
    let plan = plan(&text);
    let names: Vec<_> = plan.cases.iter().map(|case| case.scenario.flows[0].protocol.as_str()).collect();
    assert_eq!(names, ["udp", "quick-tcp", "quick-tcp/tunnel", "inside", "tcp-cubic"]);
    assert_eq!(
        plan.cases[1].scenario.flows[0].over[0].to_string(),
        "tcp-bbr (initial-window 4, sack off, min-rto 1s, delayed-ack 0s, receive-buffer 64 KiB)"
    );
    // What is below a tunnel is the host's UDP, said or unsaid.
    let layers = &plan.cases[2].scenario.flows[0].over;
    let names: Vec<&str> = layers.iter().map(|layer| layer.row().name).collect();
    assert_eq!(names, ["tcp-bbr", "tunnel", "udp"]);
    assert_eq!(layers.len(), plan.cases[3].scenario.flows[0].over.len());
}

#[test]
fn messages_are_as_often_as_their_rate_or_their_interval() {
    for (written, every) in
        [("rate: 100 Hz", 10_000), ("rate: 2 kHz", 500), ("rate: 100 /s", 10_000), ("every: 5ms", 5_000)]
    {
        let text =
            with("").replace("app: bulk", &format!("app: {{ messages: {{ size: 200 B, {written} }} }}"));
        let App::Messages { every: found, .. } = only(&text).flows[0].app else { panic!() };
        assert_eq!(found, Duration::from_micros(every));
    }
}

#[test]
fn the_window_and_its_step_have_defaults() {
    let measure = only(CHAIN.replace(", links: all", ", start: bulk").as_str()).measure;
    assert_eq!((measure.from, measure.to.as_secs_f64()), (Instant::ZERO, 10.0));
    assert_eq!(measure.interval, Duration::from_millis(100));
    let step = |duration: &str| {
        only(&with("").replace("duration: 10s", &format!("duration: {duration}"))).measure.interval
    };
    assert_eq!(step("60s"), Duration::from_secs(1));
    assert_eq!(step("100ms"), Duration::from_millis(10));
    assert_eq!(step("30s"), Duration::from_millis(500));
    assert_eq!(step("1000h"), Duration::from_secs(50_000));
}

#[test]
fn roles_and_captures_name_nodes() {
    let scenario = only(&with("roles: { helper: n1, relay: [n1, n2] }\ncapture: [n2, n0]"));
    assert_eq!(scenario.roles["relay"], [1, 2]);
    assert_eq!(scenario.roles["helper"], [1]);
    assert_eq!(scenario.capture, Capture::Nodes(vec![2, 0]));
    assert_eq!(only(&with("capture: all")).capture, Capture::Nodes(vec![0, 1, 2]));
    assert_eq!(only(&with("capture: none")).capture, Capture::Nothing);
}

#[test]
fn two_links_written_as_two_directions_are_noted() {
    let text = |links: &str| {
        format!(
            "duration: 1s\ntopology:\n  nodes: [a, b]\n  links: [{links}]\n\
             flows: [{{ from: a, to: b, over: udp, app: {{ cbr: {{ rate: 1 Mbit/s }} }} }}]\n"
        )
    };
    let notes = |links: &str| scenario::notes(&plan(&text(links)));
    let both = notes("{ between: [a, b], rate: 1 Mbit/s }, { between: [b, a], rate: 2 Mbit/s }");
    assert_eq!(both.len(), 1, "{both:?}");
    assert!(
        both[0].starts_with("links a-b and b-a join the same two nodes, one written each way"),
        "{both:?}"
    );
    assert!(both[0].contains("`forward` and `backward`"), "{both:?}");
    // Parallel links have different names, and so are meant.
    assert!(notes("{ between: [a, b] }, { between: [a, b], name: second }").is_empty());
}

#[test]
fn the_options_of_a_choice_can_be_set_one_after_the_other() {
    let scenario = |sets: &[&str]| Arc::clone(&plan_with(&with(""), sets).unwrap().cases[0].scenario);
    let App::Bulk { bytes, span, .. } =
        scenario(&["flows.bulk.app=bulk", "flows.bulk.app.bulk.start=1s", "flows.bulk.app.bulk.bytes=16 B"])
            .flows[0]
            .app
    else {
        panic!()
    };
    assert_eq!((bytes, span.start), (Some(Bytes::new(16)), Some(Instant::ZERO + Duration::from_secs(1))));
    let sets = ["flows.bulk.over.tcp-bbr.sack=off", "flows.bulk.over.tcp-bbr.min-rto=1s"];
    let text = with("").replace("over: udp", "over: tcp-bbr");
    let plan = plan_with(&text, &sets).unwrap();
    let layer = &plan.cases[0].scenario.flows[0].over[0];
    assert_eq!(layer.to_string(), "tcp-bbr (sack off, min-rto 1s)");
}

#[test]
fn the_longest_path_and_the_fullest_medium_are_allowed() {
    let scenario = only(
        "duration: 1s
topology: { chain: { hops: 255, link: { rate: 1 Mbit/s } } }
flows: [{ from: n0, to: n255, over: udp, app: bulk }]",
    );
    assert_eq!(scenario.links.len(), 255);
    let stations: Vec<_> = (0..256).map(|n| format!("s{n}")).collect();
    let stations = stations.join(", ");
    let text = format!(
        "duration: 1s\ntopology: {{ nodes: [{stations}], links: [{{ name: air, medium: [{stations}] }}] }}\n\
         flows: [{{ from: s0, to: s255, over: tcp-cubic, app: bulk }}]"
    );
    assert_eq!(only(&text).links[0].ends.len(), 256);
}

#[test]
fn a_datagram_may_be_as_large_as_the_narrowest_link_on_its_own_way_takes() {
    let text = "duration: 1s
topology:
  nodes: [a, b, c, d]
  links:
    - { between: [a, b], mtu: 9000 }
    - { between: [b, d], forward: { mtu: 9000 }, backward: { mtu: 600 } }
    - { between: [a, c], mtu: 600 }
    - { between: [c, d], delay: 1ms }
flows: [{ from: a, to: d, over: udp, app: { cbr: { rate: 1 Mbit/s, size: 8972 B } } }]";
    assert_eq!(only(text).flows.len(), 1);
}

#[test]
fn thousands_of_flows_across_ten_thousand_nodes_load_at_once() {
    let flows: String = (0..4_000)
        .map(|number| {
            let (row, column) = (number / 100, number % 100);
            format!(
                "  - {{ from: r{row}c{column}, to: r{}c{}, over: udp, app: {{ cbr: {{ rate: 1 kbit/s }} }} }}\n",
                99 - row,
                99 - column
            )
        })
        .collect();
    let text = format!(
        "duration: 1s\ntopology: {{ grid: {{ rows: 100, columns: 100, link: {{ rate: 1 Mbit/s }} }} }}\nflows:\n{flows}"
    );
    assert_eq!(only(&text).flows.len(), 4_000);
}

#[test]
fn a_link_has_one_direction_from_each_of_its_ends() {
    let scenario = only(
        "duration: 1s
topology:
  nodes: [a, b]
  links:
    - { name: wire, between: [a, b], forward: { mtu: 1501 }, backward: { mtu: 1502 } }
    - { name: air, medium: [a, b], mtu: 1503 }
flows: [{ from: a, to: b, over: tcp-cubic, app: bulk }]",
    );
    let mtus = |link: usize| [0, 1].map(|from| scenario.links[link].direction(from).mtu);
    assert_eq!((mtus(0), mtus(1)), ([1501, 1502], [1503, 1503]));
}

#[test]
fn an_alias_is_what_it_stands_for() {
    let scenario = only(
        "duration: 1s
topology:
  nodes: [a, b, c]
  links:
    - { between: [a, b], forward: &radio { rate: 1 Mbit/s } }
    - { between: [b, c], forward: *radio }
flows: [{ from: a, to: c, over: udp, app: bulk }]",
    );
    let LinkModel::PointToPoint(config) = &scenario.links[1].model else { panic!() };
    assert_eq!(config.forward.rate, Some(Rate::from_mbit(1)));
}
