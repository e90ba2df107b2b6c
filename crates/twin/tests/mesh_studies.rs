//! The studies `mesh-unicast`, `mesh-multicast` and `mesh-sessions`: the mesh carries what its links have room for.

#![allow(clippy::unwrap_used)] // in helpers of tests too

mod common;

use common::scenarios::scenarios;
use hopcast_runner::{load, run};
use hopcast_twin::Monitor;
use hopcast_twin::results::{Document, Run};
use hopcast_twin::scenario::Overrides;

/// Rate of each link, in Mbit/s.
const LINK: f64 = 26.0;
/// Bytes around a payload on a link: UDP and IPv4, the client's Ethernet header, the mesh's, and the frame's own.
const UNICAST: f64 = 28.0 + 14.0 + 10.0 + 14.0;
const FLOODED: f64 = 28.0 + 14.0 + 14.0 + 14.0;
/// Share of a link that the messages of the mesh may take. Five nodes send one in a second, of some 60 bytes.
const MESSAGES: f64 = 0.002;

fn study(name: &str, sets: &[&str]) -> Document {
    let sets = sets.iter().map(|set| (*set).to_owned()).collect();
    let overrides = Overrides { sets, quick: true, ..Overrides::default() };
    let plan = load(&scenarios().join(format!("studies/{name}.yaml")), &overrides).unwrap();
    run(&plan, 1, None, &Monitor::default()).unwrap()
}

fn offered(run: &Run, path: &str) -> f64 {
    run.parameters[path].as_str().unwrap().split(' ').next().unwrap().parse().unwrap()
}

/// Checks that a session brings all that is offered, or what a share of a link with these headers has room for.
#[track_caller]
fn fills(goodput: f64, offered: f64, share: f64, (payload, headers): (f64, f64)) {
    let room = LINK * share * payload / (payload + headers);
    let (low, high) = (offered.min(room * (1.0 - MESSAGES)), offered.min(room));
    assert!((low * 0.999..=high * 1.001).contains(&goodput), "{goodput} of {offered}, {low} to {high}");
}

#[test]
fn unicast_over_one_to_four_hops_fills_the_links() {
    for run in study("mesh-unicast", &[]).runs {
        let figures = &run.flows[0].figures;
        let rate = offered(&run, "flows.session.app.cbr.rate");
        fills(figures.goodput_mbps.unwrap(), rate, 1.0, (1226.0, UNICAST));
        if rate <= 20.0 {
            // While the receiver's address is asked for, three datagrams wait, and those behind them are lost.
            assert!(figures.reliability.unwrap() > 0.9995, "{rate}: {:?}", figures.reliability);
        }
    }
}

#[test]
fn a_flooded_stream_fills_the_links_to_all_listeners() {
    for run in study("mesh-multicast", &[]).runs {
        let rate = offered(&run, "flows.session.app.cbr.rate");
        for receiver in &run.flows[0].receivers {
            fills(receiver.figures.goodput_mbps.unwrap(), rate, 1.0, (1208.0, FLOODED));
        }
    }
}

#[test]
fn two_flooded_sessions_share_each_link_and_two_unicast_ones_do_not() {
    for run in study("mesh-sessions", &[]).runs {
        let rate = offered(&run, "flows.one.app.cbr.rate");
        let flooded = run.parameters["groups.first.delivery"] == "ip-multicast";
        let goodput = |flow: usize| run.flows[flow].figures.goodput_mbps.unwrap();
        if !flooded || rate <= 10.0 {
            let headers = if flooded { FLOODED } else { UNICAST };
            [goodput(0), goodput(1)].into_iter().for_each(|each| fills(each, rate, 1.0, (1208.0, headers)));
            continue;
        }
        let half = LINK / 2.0 * 1208.0 / (1208.0 + FLOODED);
        for goodput in [goodput(0), goodput(1)] {
            // Each is measured at a link of its own, where chance says which of the two finds room in a
            // full queue: in 10 s its share varies by 1 %.
            assert!((half * 0.97..=half * 1.03).contains(&goodput), "{goodput} of {rate}, half is {half}");
        }
    }
}
