//! What scenario files resolve to: examples, generators, sweeps, includes, overrides.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hopcast_core::{Bytes, Duration, Fraction, Instant, Rate};
use hopcast_link::{Change, Duplex, Jitter, Loss, Queue, QueueLimit};
use hopcast_twin::scenario::model::{Action, App, Arrivals, Capture, Layer, LinkModel, Plan, Scenario, Span};
use hopcast_twin::scenario::{self, Diagnostic, Overrides};

fn scenarios() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

fn plan_with(text: &str, sets: &[&str]) -> Result<Plan, Diagnostic> {
    let sets = sets.iter().map(|set| (*set).to_owned()).collect();
    hopcast_runner::load_text(Path::new("test.yaml"), text, &Overrides { sets, ..Overrides::default() })
}

#[track_caller]
fn plan(text: &str) -> Plan {
    plan_with(text, &[]).unwrap_or_else(|error| panic!("{error}"))
}

#[track_caller]
fn only(text: &str) -> Arc<Scenario> {
    Arc::clone(&plan(text).cases[0].scenario)
}

const CHAIN: &str = "\
duration: 10s
topology: { chain: { hops: 2, link: { rate: 10 Mbit/s, delay: 1ms } } }
events: [{ name: loss, at: 1s, links: all }]
flows: [{ name: bulk, from: n0, to: n2, over: udp, app: bulk }]
";

fn with(lines: &str) -> String {
    format!("{CHAIN}{lines}\n").replace("links: all }", "links: all, loss: 5 % }")
}

#[test]
fn every_example_loads_and_is_described() {
    let mut examples = 0;
    for dir in [scenarios(), scenarios().join("studies")] {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "yaml") {
                continue;
            }
            for quick in [false, true] {
                let plan = hopcast_runner::load(&path, &Overrides { quick, ..Overrides::default() });
                let plan = plan.unwrap_or_else(|error| panic!("{error}"));
                assert!(scenario::describe(&plan).contains(&plan.title));
            }
            examples += 1;
        }
    }
    assert!(examples >= 9, "{examples}");
}

#[test]
fn the_study_of_six_hops_has_its_published_figures() {
    let path = scenarios().join("studies/bats-six-hop.yaml");
    let plan = hopcast_runner::load(&path, &Overrides::default()).unwrap();
    assert_eq!((plan.cases.len(), plan.repeats), (50, 10));
    let parameters = &plan.cases[11].parameters;
    let expected = [("events.loss.loss", "5 %"), ("flows.bulk.over", "tcp-cubic")];
    assert_eq!(*parameters, expected.map(|(path, value)| (path.to_owned(), value.to_owned())));
    let published = plan.published.iter().find(|row| row.parameters == *parameters).unwrap();
    assert_eq!(published.flow.as_deref(), Some("bulk"));
    assert_eq!(published.figures["goodput_mbps"], 0.05);
    assert_eq!(published.figures["reliability"], 1.0);
    let source = plan.source.as_ref().unwrap();
    assert_eq!(
        (source.authors.as_slice(), source.year),
        (&["n-hop technologies Limited".to_owned()][..], 2024)
    );
    let quick = hopcast_runner::load(&path, &Overrides { quick: true, ..Overrides::default() }).unwrap();
    assert_eq!((quick.cases[0].scenario.duration, quick.repeats), (Duration::from_secs(10), 2));
}

/// The number of published figures of the study of six hops, and what is said of them, with these on the command line.
fn compared(sets: &[&str], quick: bool) -> (usize, Vec<String>) {
    let path = scenarios().join("studies/bats-six-hop.yaml");
    let sets = sets.iter().map(|set| (*set).to_owned()).collect();
    let plan = hopcast_runner::load(&path, &Overrides { sets, quick, ..Overrides::default() });
    let plan = plan.unwrap_or_else(|error| panic!("{error}"));
    (plan.published.len(), plan.remarks)
}

#[test]
fn figures_of_a_changed_experiment_are_not_held_against_published_ones() {
    for set in [
        "duration=10s",
        "measure.to=8s",
        "measure={from: 7s}",
        "topology.chain.link.rate=100 Mbit/s",
        "flows.bulk.app.bulk.rate=1 Mbit/s",
        "flows.0.app.bulk.start=2s",
        "sweep.topology.chain.hops=[6, 7]",
    ] {
        let (path, _) = set.split_once('=').unwrap();
        let remark = format!("published figures are left out: the command line set `{path}`");
        assert_eq!(compared(&[set], false), (0, vec![remark.clone()]), "{set}");
        assert_eq!(compared(&[set], true), (0, vec![remark]), "{set}");
    }
    let (_, remarks) = compared(&["duration=10s", "repeats=1", "measure.from=7s"], false);
    assert_eq!(remarks, ["published figures are left out: the command line set `duration`, `measure.from`"]);
}

#[test]
fn a_part_of_a_sweep_is_held_against_published_figures() {
    let (all, none) = compared(&[], false);
    assert!(all > 0 && none.is_empty());
    for set in [
        "sweep.events.loss.loss=[0 %, 10 %]",
        "events.loss.loss=5%",
        "sweep.events.loss.loss=[7 %, 10 %]",
        "flows.bulk.over=udp",
        "flows.0.over=brtp",
        "repeats=3",
        "seed=7",
        "measure.interval=100ms",
        "capture=all",
        "duration=60s",
        "duration=60 s",
        "topology.chain.link={rate: 300 Mbit/s, delay: 20us, queue: 64 packets}",
    ] {
        assert_eq!(compared(&[set], false), (all, Vec::new()), "{set}");
    }
}

#[test]
fn what_quick_makes_shorter_is_said_beside_published_figures() {
    let (all, _) = compared(&[], false);
    let remark = "published figures stand beside shorter runs: --quick has duration 10s, repeats 2";
    assert_eq!(compared(&[], true), (all, vec![remark.to_owned()]));
    assert_eq!(compared(&["events.loss.loss=5 %"], true), (all, vec![remark.to_owned()]));
    assert_eq!(compared(&["duration=60s"], true).0, all);
}

#[test]
fn ten_thousand_nodes_resolve_and_their_min_cut_is_found() {
    let plan = hopcast_runner::load(&scenarios().join("large-grid.yaml"), &Overrides::default()).unwrap();
    let scenario = &plan.cases[0].scenario;
    assert_eq!((scenario.nodes.len(), scenario.links.len()), (10_000, 19_800));
    assert_eq!(scenario.links[0].name, "r0c0-r0c1");
    // A corner has two links.
    assert_eq!(scenario::capacity(scenario, 0, 9_999), Some(20e6));
}

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
    assert_eq!(
        of("grid: { rows: 2, columns: 2 }"),
        "r0c0 r0c1 r1c0 r1c1 | r0c0-r0c1 r0c0-r1c0 r0c1-r1c1 r1c0-r1c1"
    );
    assert_eq!(of("full: { nodes: 3 }"), "n0 n1 n2 | n0-n1 n0-n2 n1-n2");
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
fn a_trace_is_read_beside_the_file_that_names_it() {
    let plan = hopcast_runner::load(&scenarios().join("bursty-loss.yaml"), &Overrides::default()).unwrap();
    let Action::Link { change: Change::Loss(loss), .. } = &plan.cases[6].scenario.events[0].action else {
        panic!()
    };
    assert_eq!(loss.stationary(), Fraction::from_percent(2.0).unwrap());
    assert_eq!(plan.cases[6].parameters[0].1, "{trace: bursts.txt}");
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
    let cbr = App::Cbr { rate: None, size: Bytes::new(1472), arrivals, span: Span { start: None, stop } };
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
    let Layer::Tcp(config) = &plan.cases[1].scenario.flows[0].over[0] else { panic!() };
    assert_eq!((config.initial_window, config.sack), (4, false));
    assert_eq!((config.min_rto, config.delayed_ack), (Duration::from_secs(1), Duration::ZERO));
    assert_eq!((config.receive_buffer, config.send_buffer), (Bytes::new(65_536), Bytes::new(4 << 20)));
    // What is below a tunnel is the host's UDP, said or unsaid.
    let layers = &plan.cases[2].scenario.flows[0].over;
    assert!(matches!(layers.as_slice(), [Layer::Tcp(_), Layer::Tunnel, Layer::Udp]));
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
fn the_first_key_of_a_sweep_is_the_slowest_and_a_zip_moves_together() {
    let plan = plan(&with(
        "sweep:
  events.loss.loss: [0 %, 10%]
  zip:
    - { flows.bulk.over: [udp, tcp-cubic], seed: [1, 2] }
    - { duration: [20s] }",
    ));
    let cases: Vec<String> = plan
        .cases
        .iter()
        .map(|case| case.parameters.iter().map(|(_, value)| value.as_str()).collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(cases, ["0 % udp 1 20s", "0 % tcp-cubic 2 20s", "10% udp 1 20s", "10% tcp-cubic 2 20s"]);
    assert_eq!(plan.cases[3].scenario.seed, 2);
    assert_eq!(plan.cases[3].scenario.duration, Duration::from_secs(20));
}

#[test]
fn a_value_can_be_set_wherever_a_path_leads() {
    let scenario = |sets: &[&str]| Arc::clone(&plan_with(&with(""), sets).unwrap().cases[0].scenario);
    assert_eq!(scenario(&["topology.chain.hops=6", "flows.bulk.to=n6"]).nodes.len(), 7);
    assert_eq!(scenario(&["flows.0.app.bulk.bytes=1 MB"]).flows[0].app, {
        App::Bulk {
            rate: None,
            bytes: Some(Bytes::new(1_000_000)),
            span: Span { start: Some(Instant::ZERO), stop: None },
        }
    });
    // A key that is allowed but absent, in a map that is absent too.
    assert_eq!(scenario(&["measure.from=6s"]).measure.from.as_secs_f64(), 6.0);
    assert_eq!(scenario(&["flows.bulk.over=[tcp-cubic, tunnel]"]).flows[0].protocol, "tcp-cubic/tunnel");
    // Later wins.
    assert_eq!(scenario(&["seed=5", "seed=6"]).seed, 6);
}

#[test]
fn a_link_without_a_name_goes_by_its_ends_in_paths_too() {
    let text = "\
duration: 1s
topology:
  nodes: [a, b, c]
  links:
    - { between: [a, b], rate: 10 Mbit/s }
    - { name: b-c, between: [c, b], rate: 10 Mbit/s }
    - { medium: [a, c], rate: 10 Mbit/s, name: air }
flows: [{ from: a, to: c, over: udp, app: { cbr: { rate: 1 Mbit/s } } }]
events: [{ at: 0s, links: a-b, loss: 5 % }]
sweep: { topology.links.a-b.rate: [20 Mbit/s, 30 Mbit/s] }
";
    let plan = plan_with(text, &["topology.links.b-c.rate=40 Mbit/s"]).unwrap();
    let rate = |case: usize, link: usize| plan.cases[case].scenario.links[link].direction(0).rate.unwrap();
    let rates = [rate(0, 0), rate(1, 0), rate(1, 1), rate(1, 2)];
    assert_eq!(rates.map(Rate::as_mbit), [20.0, 30.0, 40.0, 10.0]);
    // One path, however it is written.
    let twice = text.replace("sweep: {", "sweep: { topology.links.0.rate: [1 Mbit/s],");
    let error = plan_with(&twice, &[]).unwrap_err().to_string();
    assert!(error.contains("is swept twice, also as `topology.links.0.rate`"), "{error}");
    let plan = plan_with(text, &["topology.links.a-b.rate=50 Mbit/s"]).unwrap();
    assert_eq!(plan.cases.len(), 1, "the sweep is pinned");
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
    // Parallel links are told apart by name, and so are meant.
    assert!(notes("{ between: [a, b] }, { between: [a, b], name: second }").is_empty());
}

#[test]
fn the_program_has_the_studies_and_all_they_name() {
    let mut own: Vec<_> = scenario::studies().collect();
    own.sort();
    let mut names: Vec<String> = fs::read_dir(scenarios().join("studies"))
        .unwrap()
        .filter_map(|entry| Some(entry.unwrap().file_name().to_str()?.strip_suffix(".yaml")?.to_owned()))
        .collect();
    names.sort();
    assert_eq!(own.iter().map(|(name, _)| *name).collect::<Vec<_>>(), names);
    for (name, path) in own {
        let file = scenarios().join(format!("studies/{name}.yaml"));
        let load = |path: &Path| {
            hopcast_runner::load(path, &Overrides::default()).unwrap_or_else(|error| panic!("{error}"))
        };
        let plans = [load(&path), load(&file)];
        assert_eq!(scenario::describe(&plans[0]), scenario::describe(&plans[1]));
        assert_eq!(plans[0].published, plans[1].published);
        assert_eq!(hopcast_runner::read_scenario(&path).unwrap(), fs::read(&file).unwrap());
    }
    let error =
        hopcast_runner::load(Path::new("hopcast:studies/none.yaml"), &Overrides::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "hopcast:studies/none.yaml: cannot read this file: the program has no such file"
    );
}

#[test]
fn setting_a_swept_path_pins_it() {
    let text = with("sweep: { events.loss.loss: [0 %, 5 %], flows.bulk.over: [udp, tcp-cubic] }");
    let values = |sets: &[&str]| {
        let cases = plan_with(&text, sets).unwrap().cases;
        cases
            .iter()
            .map(|case| format!("{} {}", case.parameters[0].1, case.parameters[1].1))
            .collect::<Vec<_>>()
    };
    assert_eq!(values(&["events.0.loss=7 %"]), ["7 % udp", "7 % tcp-cubic"]);
    assert_eq!(values(&["sweep.flows.bulk.over=[tcp-bbr]"]), ["0 % tcp-bbr", "5 % tcp-bbr"]);
}

#[test]
fn pinning_within_a_zip_leaves_each_case_once() {
    let text =
        with("sweep: { zip: { events.loss.loss: [0 %, 5 %, 0 %], flows.bulk.over: [udp, udp, tcp-bbr] } }");
    let values = |sets: &[&str]| {
        let cases = plan_with(&text, sets).unwrap().cases;
        cases
            .iter()
            .map(|case| format!("{} {}", case.parameters[0].1, case.parameters[1].1))
            .collect::<Vec<_>>()
    };
    assert_eq!(values(&[]), ["0 % udp", "5 % udp", "0 % tcp-bbr"]);
    assert_eq!(values(&["events.loss.loss=7 %"]), ["7 % udp", "7 % tcp-bbr"]);
    assert_eq!(values(&["events.loss.loss=7 %", "flows.0.over=udp"]), ["7 % udp"]);
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
    let Layer::Tcp(config) = &plan.cases[0].scenario.flows[0].over[0] else { panic!() };
    assert_eq!((config.sack, config.min_rto), (false, Duration::from_secs(1)));
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
fn the_command_line_wins_over_quick_and_quick_over_the_file() {
    let text = with("repeats: 9\nseed: 3\nquick: { repeats: 2, duration: 5s, seed: 4 }");
    let load = |overrides: &Overrides| {
        let plan = hopcast_runner::load_text(Path::new("t.yaml"), &text, overrides).unwrap();
        (plan.repeats, plan.cases[0].scenario.seed, plan.cases[0].scenario.duration.as_secs_f64())
    };
    let quick = Overrides { quick: true, ..Overrides::default() };
    assert_eq!(load(&Overrides::default()), (9, 3, 10.0));
    assert_eq!(load(&quick), (2, 4, 5.0));
    assert_eq!(load(&Overrides { seed: Some(8), repeats: Some(1), ..quick }), (1, 8, 5.0));
}

#[test]
fn an_including_file_wins_over_what_it_includes() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
    fs::create_dir(dir.path().join("parts")).unwrap();
    write(
        "main.yaml",
        &format!("include: [parts/one.yaml, parts/two.yaml]\nseed: 7\n{}", with("measure: { to: 9s }")),
    );
    write("parts/one.yaml", "include: deep.yaml\nseed: 1\nrepeats: 3\nmeasure: { from: 1s, to: 2s }");
    write("parts/two.yaml", "measure: { from: 2s }");
    write("parts/deep.yaml", "title: Deep\nrepeats: 1");
    let plan = hopcast_runner::load(&dir.path().join("main.yaml"), &Overrides::default()).unwrap();
    let scenario = &plan.cases[0].scenario;
    assert_eq!((plan.title.as_str(), plan.repeats, scenario.seed), ("Deep", 3, 7));
    assert_eq!((scenario.measure.from.as_secs_f64(), scenario.measure.to.as_secs_f64()), (2.0, 9.0));

    // Errors keep naming the file in which the mistake stands.
    write("parts/two.yaml", "measure: { from: 2 }");
    let error = hopcast_runner::load(&dir.path().join("main.yaml"), &Overrides::default()).unwrap_err();
    assert!(error.file.ends_with("parts/two.yaml"), "{error}");
    assert_eq!((error.line, error.column), (1, 18));

    write("parts/deep.yaml", "include: ../main.yaml");
    let error = hopcast_runner::load(&dir.path().join("main.yaml"), &Overrides::default()).unwrap_err();
    assert!(
        error.file.ends_with("deep.yaml") && error.message.ends_with("is being included already: a cycle")
    );
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

#[test]
fn the_first_example_of_the_reference_page_is_right() {
    let page = fs::read_to_string(scenarios().join("../docs/scenario.md")).unwrap();
    let example = page.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    assert_eq!(plan(example).cases.len(), 9);
}
