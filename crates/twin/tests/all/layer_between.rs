//! Nodes between the ends relay for a transport over any layer that reaches them, as an encryption of each hop would.

#![allow(clippy::unwrap_used)] // in what the tests share

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use hopcast_core::{Datagram, Instant, Item, Outbox, Port, Reactive};
use hopcast_stack::network::NodeId;
use hopcast_stack::table::Options;
use hopcast_stack::transport::{End, FlowNodes, Row, Transport};
use hopcast_stack::{BuildError, LowerPort};
use hopcast_twin::bounds::Bounds;
use hopcast_twin::results::Flow;
use hopcast_twin::scenario::{MemoryFiles, Overrides, load};
use hopcast_twin::{Monitor, World};

/// Changes every byte of a payload, and marks it: a node without this layer can read nothing of it.
#[derive(Default)]
struct Disguise {
    out: Outbox,
    marked: u64,
    unmarked: u64,
    rejected: u64,
}

const MARK: [u8; 8] = *b"disguise";
const KEY: u8 = 0xa5;

impl Reactive for Disguise {
    fn react(&mut self, _: Instant, port: Port, item: Item) {
        let Item::Datagram(Datagram { mut payload, local, remote, .. }) = item else { panic!("{item:?}") };
        if matches!(port, Port::Above(_)) {
            payload.iter_mut().for_each(|byte| *byte ^= KEY);
            payload.prepend(MARK.len()).copy_from_slice(&MARK);
            self.marked += 1;
            self.out.down(Item::Datagram(Datagram::new(local, remote, payload)));
        } else if payload.starts_with(&MARK) {
            payload.advance(MARK.len());
            payload.iter_mut().for_each(|byte| *byte ^= KEY);
            self.unmarked += 1;
            self.out.up(Item::Datagram(Datagram::new(local, remote, payload)));
        } else {
            self.rejected += 1;
        }
    }

    fn next(&mut self) -> Option<(Port, Item)> {
        self.out.pop()
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        report("marked", self.marked);
        report("unmarked", self.unmarked);
        report("rejected", self.rejected);
    }
}

#[derive(Clone, Debug)]
struct Settings {
    reaches_relays: bool,
}

/// At every node that takes part. It is put into a stack that has been read, so that its row needs no more.
static OF_HOPS: Row = Row {
    name: "disguise-of-hops",
    about: "datagrams that are changed from neighbour to neighbour",
    holds_back: false,
    read: |row, options| Options(&[]).layer(row, options, Settings { reaches_relays: true }),
    ..Row::BASE
};

/// At the ends alone.
static OF_ENDS: Row = Row {
    name: "disguise-of-ends",
    about: "datagrams that are changed from end to end",
    holds_back: false,
    read: |row, options| Options(&[]).layer(row, options, Settings { reaches_relays: false }),
    ..Row::BASE
};

impl Transport for Settings {
    fn overhead(&self, _: u64) -> u64 {
        MARK.len() as u64
    }

    fn put_on_end(&self, end: &mut End<'_, '_>) -> Result<Option<LowerPort>, BuildError> {
        end.attach("disguise", Box::new(Disguise::default())).map(Some)
    }

    fn reaches_relays(&self) -> bool {
        self.reaches_relays
    }

    fn put_below_relay(
        &self,
        nodes: &mut FlowNodes<'_>,
        (node, _): (NodeId, SocketAddr),
        below: Option<LowerPort>,
    ) -> Result<Option<LowerPort>, BuildError> {
        let name = format!("disguise at {}", nodes.node_name(node));
        Ok(below.map(|below| nodes.attach(&name, node, Box::new(Disguise::default()), below)))
    }
}

/// A file over three hops that lose 5 %, by a transport whose relays recode, with a layer of `row` below it.
fn file(row: &'static Row) -> Flow {
    let text = "\
seed: 3
duration: 20 s
topology: { chain: { hops: 3, link: { rate: 20 Mbit/s, delay: 2 ms, loss: 5 % } } }
flows: [{ name: f, from: n0, to: n3, over: brtp, app: { file: { path: file.bin } } }]
";
    let contents = (0..400_000u32).map(|n| ((n * 7) >> 3) as u8).collect();
    let files: MemoryFiles =
        [("it.yaml", text.as_bytes().to_vec()), ("file.bin", contents)].into_iter().collect();
    let plan = load(&files, Path::new("it.yaml"), &Overrides::default());
    let mut case = plan.unwrap_or_else(|error| panic!("{error}")).cases.remove(0);
    let over = &mut Arc::make_mut(&mut case.scenario).flows[0].over;
    assert_eq!(over.iter().map(ToString::to_string).collect::<Vec<_>>(), ["brtp", "udp"]);
    over.insert(1, row.layer());
    let world = World::new(Arc::clone(&case.scenario), 0, None).unwrap();
    let run = world.run_to_end(&case, 0, &Bounds::default(), &Monitor::default()).unwrap().unwrap();
    run.flows.into_iter().next().unwrap()
}

#[test]
fn relays_recode_above_a_layer_that_reaches_them() {
    let flow = file(&OF_HOPS);
    assert_eq!(flow.figures.hash_ok, Some(true), "{flow:?}");
    for node in ["disguise at n1", "disguise at n2", "disguise"] {
        let count = |name: &str| flow.counters[&format!("{node}.{name}")];
        assert!(count("marked") > 300 && count("unmarked") > 300, "{node}: {:?}", flow.counters);
        assert_eq!(count("rejected"), 0, "{node}");
    }
}

#[test]
fn nobody_relays_above_a_layer_of_the_ends_alone() {
    let flow = file(&OF_ENDS);
    assert_eq!(flow.figures.hash_ok, Some(true), "{flow:?}");
    let between: Vec<_> =
        flow.counters.keys().filter(|name| name.contains("n1") || name.contains("n2")).collect();
    assert!(between.is_empty(), "{between:?}");
    assert!(flow.counters["disguise.marked"] > 300 && flow.counters["disguise.rejected"] == 0);
}
