//! No reported goodput exceeds the capacity of its network.

#![allow(clippy::unwrap_used)]

use crate::common::{document, links_keep_to, near};
use hopcast_twin::results::{Flow, Run};

/// Two hops of 20 Mbit/s with a queue that the first burst overflows, for each window by its start and length in
/// seconds.
fn two_hops(over: &str, loss: &str, app: &str, windows: &[(f64, f64)]) -> Vec<Run> {
    let list = |of: &dyn Fn(&(f64, f64)) -> f64| {
        windows.iter().map(|window| format!("{:.2}s", of(window))).collect::<Vec<_>>().join(", ")
    };
    let (from, to) = (list(&|(from, _)| *from), list(&|(from, length)| from + length));
    document(&format!(
        "
title: Two hops
seed: 3
duration: 1s
measure: {{ interval: 50ms }}
topology:
  chain: {{ hops: 2, link: {{ rate: 20 Mbit/s, delay: 10ms, loss: {loss}, queue: 60 packets }} }}
flows:
  - {{ name: flow, from: n0, to: n2, over: {over}, app: {app} }}
sweep: {{ zip: {{ measure.from: [{from}], measure.to: [{to}], duration: [{to}] }} }}
"
    ))
    .runs
}

const WINDOWS: [(f64, f64); 9] = [
    (0.0, 0.2),
    (0.3, 0.2),
    (0.4, 0.2),
    (0.45, 1.0),
    (0.5, 2.0),
    (0.6, 0.2),
    (0.8, 1.0),
    (0.9, 0.2),
    (0.5, 10.0),
];

const STREAMS: [&str; 10] = [
    "tcp-cubic",
    "tcp-bbr",
    "split-bbr",
    "quic",
    "quic-bbr",
    "kcp",
    "hop-arq",
    "brtp",
    "[tcp-cubic, bats-proxy]",
    "[tcp-cubic, tunnel, btp]",
];

/// Rate at which data was released within the window, in Mbit/s, by the time series, which nothing limits.
fn released(run: &Run, (from, length): (f64, f64)) -> f64 {
    let steps = |seconds: f64| (seconds / run.series.step_s).round() as usize;
    let (_, goodput) = &run.series.flows[0];
    let sum: f64 = goodput.iter().skip(steps(from)).take(steps(length)).sum();
    sum / steps(length) as f64
}

#[test]
fn no_stream_carries_more_than_its_links_in_any_window() {
    let mut released_more = 0;
    for over in STREAMS {
        for loss in ["0 %", "3 %"] {
            for (run, window) in two_hops(over, loss, "bulk", &WINDOWS).iter().zip(WINDOWS) {
                let Flow { figures, .. } = &run.flows[0];
                let goodput = figures.goodput_mbps.unwrap();
                let share = figures.payload_bound_fraction.unwrap();
                let whole = (0.0, window.0 + window.1);
                let what = format!("{over} at {loss}, {window:?}");
                links_keep_to(run, 20e6, window, &what);
                // Nothing had crossed before the start of the run.
                let carried = released(run, whole);
                assert!(carried <= 20.0 * 1460.0 / 1514.0, "{what}: {carried} Mbit/s");
                // Of cuts with their mean loss what chance adds is less than a hundredth in so long a time.
                let cut = if loss == "0 %" { 20.0 } else { 20.0 * 0.97 * 1.01 };
                assert!(window.1 < 10.0 || carried <= cut * 1460.0 / 1514.0, "{what}: {carried} Mbit/s");
                assert!(figures.min_cut_fraction.unwrap() <= share);
                let released = released(run, window);
                released_more += u32::from(share > 0.999 && released > goodput * 1.01);
                // Over a long window what is held back at its ends matters little.
                let alike = (0.97..1.03).contains(&(goodput / released));
                assert!(window.1 < 10.0 || alike, "{over} at {loss}: {goodput} of {released}");
            }
        }
    }
    assert!(released_more > 0, "no window held a burst that puts the rule to the test");
}

#[test]
fn the_goodput_of_a_transfer_is_its_size_over_its_time_however_lucky_it_was() {
    for over in ["hop-arq", "tcp-cubic", "brtp"] {
        let mut lucky = 0;
        for (loss, size) in [(10, 12_000), (30, 5_000), (50, 3_000)] {
            let document = document(&format!(
                "
title: A small transfer
seed: 3
duration: 30s
repeats: 40
topology: {{ chain: {{ hops: 1, link: {{ rate: 20 Mbit/s, loss: {loss} % }} }} }}
flows:
  - {{ name: flow, from: n0, to: n1, over: {over}, app: {{ bulk: {{ bytes: {size} B }} }} }}
"
            ));
            for run in &document.runs {
                let figures = &run.flows[0].figures;
                let Some(completed) = figures.completed_s.filter(|&completed| completed < 30.0) else {
                    continue;
                };
                let (goodput, rate) = (figures.goodput_mbps.unwrap(), f64::from(size) * 8e-6 / completed);
                near(goodput, rate, 1e-9);
                lucky += u32::from(goodput > 20.0 * (1.0 - f64::from(loss) / 100.0));
                assert!(figures.payload_bound_fraction.unwrap() <= 1.0);
            }
        }
        assert!(over != "hop-arq" || lucky > 0, "{over}: no transfer was quicker than the mean loss lets it");
    }
}

#[test]
fn a_window_that_happens_to_lose_nothing_has_the_goodput_of_one_without_loss() {
    let text = |loss| {
        format!(
            "
title: A short window
seed: 3
duration: 530ms
repeats: 20
measure: {{ from: 500ms, interval: 10ms }}
topology: {{ chain: {{ hops: 1, link: {{ rate: 20 Mbit/s, delay: 2ms, loss: {loss}, queue: 30 packets }} }} }}
flows:
  - {{ name: flow, from: n0, to: n1, over: hop-arq, app: bulk }}
"
        )
    };
    let goodput = |run: &Run| run.flows[0].figures.goodput_mbps.unwrap();
    let without_loss = goodput(&document(&text("0 %")).runs[0]);
    let runs = document(&text("2 %")).runs;
    let lucky = runs.iter().map(goodput).fold(0.0, f64::max);
    near(lucky, without_loss, 0.005);
    assert!(runs.iter().all(|run| run.flows[0].figures.payload_bound_fraction.unwrap() <= 1.0));
}

#[test]
fn what_had_crossed_before_a_change_of_rate_does_not_count_after_it() {
    let runs = document(
        "
title: From fast to slow
duration: 9s
measure: { from: 5s, to: 7s }
topology: { chain: { hops: 2, link: { rate: 50 Mbit/s, delay: 100ms, queue: 2000 packets } } }
events:
  - { at: 5s, links: all, rate: 2 Mbit/s }
  - { at: 6s, links: all, rate: 1 Mbit/s }
flows:
  - { name: flow, from: n0, to: n2, over: quic-bbr, app: bulk }
",
    )
    .runs;
    // What was under way at the start of the window is more than what can cross in it.
    let released = 2.0 * released(&runs[0], (5.0, 2.0));
    let figures = &runs[0].flows[0].figures;
    let (goodput, share) = (figures.goodput_mbps.unwrap(), figures.payload_bound_fraction.unwrap());
    // On the average of the window the links carry 1.5 Mbit/s.
    assert!(released > 3.0 && share > 0.5 && goodput <= 1.5, "{released} Mbit, {goodput} Mbit/s, {share}");
}

#[test]
fn a_window_inside_a_stall_has_what_arrives_in_it_and_not_what_arrived_before() {
    // Some frames around 5 s are lost, and what was sent behind them waits from 5.15 s to 5.45 s for them to be sent
    // again.
    let goodput = |app: &str| {
        let text = format!(
            "
title: A window inside a stall
duration: 6s
measure: {{ from: 5270ms, to: 5430ms, interval: 10ms }}
topology: {{ chain: {{ hops: 1, link: {{ rate: 20 Mbit/s, delay: 150ms }} }} }}
events:
  - {{ at: 5000ms, links: all, loss: 100 % }}
  - {{ at: 5005ms, links: all, loss: 0 % }}
flows:
  - {{ name: flow, from: n0, to: n1, over: tcp-cubic, app: {{ bulk: {app} }} }}
"
        );
        let run = document(&text).runs.remove(0);
        assert_eq!(released(&run, (5.27, 0.16)), 0.0, "a stall");
        assert!(released(&run, (5.43, 0.1)) > 5.0, "it ends soon after the window");
        run.flows[0].figures.goodput_mbps.unwrap()
    };
    // All that waits had arrived before the window.
    let before = goodput("{ rate: 9 Mbit/s, stop: 5100ms }");
    assert!(before < 0.1, "{before} Mbit/s");
    // It goes on arriving in the window.
    near(goodput("{ rate: 9 Mbit/s }"), 9.0, 0.05);
}

#[test]
fn a_group_is_held_against_what_its_worst_placed_member_can_have() {
    let flow = |rate: &str| {
        let text = format!(
            "
title: A fast and a slow branch
duration: 6s
measure: {{ from: 1s }}
topology:
  nodes: [a, r, b, c]
  links:
    - {{ between: [a, r], rate: 20 Mbit/s }}
    - {{ between: [r, b], rate: 10 Mbit/s }}
    - {{ between: [r, c], rate: 2 Mbit/s }}
flows:
  - {{ name: flow, from: a, to: [b, c], over: btp, app: {{ cbr: {{ rate: {rate}, size: 1000 B }} }} }}
"
        );
        document(&text).runs.remove(0).flows.remove(0)
    };
    // Goodput in Mbit/s, and what it is of the min-cut: of each receiver of its own, of both together of the smaller
    // one.
    let check = |rate: &str, [b, c]: [f64; 2], [of_b, of_c, of_both]: [f64; 3]| {
        let flow = flow(rate);
        let [at_b, at_c] = [&flow.receivers[0].figures, &flow.receivers[1].figures];
        for (figures, goodput, share) in
            [(at_b, b, of_b), (at_c, c, of_c), (&flow.figures, (b + c) / 2.0, of_both)]
        {
            let (found, part) = (figures.goodput_mbps.unwrap(), figures.min_cut_fraction.unwrap());
            assert!((found - goodput).abs() <= 0.01 * goodput, "{rate}: {found} for {goodput} Mbit/s");
            assert!((part - share).abs() <= 0.01 * share, "{rate}: {part} for {share} of the min-cut");
        }
    };
    // Both have all of it.
    check("1.5 Mbit/s", [1.5, 1.5], [0.15, 0.75, 0.75]);
    // No block gets through the slow branch whole. Of what the fast one has no more counts than the slow one could
    // carry.
    check("8 Mbit/s", [8.0, 0.0], [0.8, 0.0, 0.5]);
}
