//! Determinism: the same file and seed give the same document, whatever else changes.

use crate::common::document_on;

const LOSSY: &str = "
title: Three lossy hops
seed: 7
duration: 2 s
topology:
  chain: { hops: 3, link: { rate: 20 Mbit/s, delay: 2 ms, jitter: 500 us, loss: 5 % } }
flows:
  - { name: cbr, from: n0, to: n3, over: udp, app: { cbr: { rate: 5 Mbit/s, size: 1000 B } } }
  - { name: bulk, from: n0, to: n3, over: tcp-cubic, app: bulk }
  - { name: back, from: n3, to: n0, over: tcp-bbr, app: bulk }
  - { name: echo, from: n1, to: n3, over: udp, app: { messages: { size: 64 B, rate: 100 Hz } } }
sweep:
  flows.cbr.app.cbr.rate: [1 Mbit/s, 5 Mbit/s]
repeats: 2
";

#[test]
fn two_runs_of_one_seed_are_the_same_bytes_on_any_number_of_threads() {
    let text = |threads| serde_json::to_string(&document_on(threads, LOSSY)).unwrap();
    let first = text(1);
    assert_eq!(first, text(1));
    assert_eq!(first, text(4));
}

#[test]
fn another_seed_and_another_repeat_are_other_runs() {
    let document = document_on(2, LOSSY);
    let delivered = |run: usize| document.runs[run].flows[0].figures.delivered_units;
    assert_ne!(delivered(0), delivered(1), "repeats draw different losses");
    let reseeded = document_on(2, &LOSSY.replace("seed: 7", "seed: 8"));
    assert_ne!(delivered(0), reseeded.runs[0].flows[0].figures.delivered_units);
}

#[test]
fn what_is_added_elsewhere_changes_nothing_here() {
    let losses = |text: &str| {
        let document = document_on(1, text);
        let flow = document.runs[0].flows.iter().find(|flow| flow.name == "cbr").unwrap().clone();
        (flow.figures.delivered_units, flow.figures.latency_ms)
    };
    let alone = "
title: One flow
seed: 3
duration: 5 s
topology:
  nodes: [a, b]
  links:
    - { between: [a, b], rate: 10 Mbit/s, delay: 1 ms, jitter: 200 us, loss: 10 % }
flows:
  - { name: cbr, from: a, to: b, over: udp, app: { cbr: { rate: 2 Mbit/s, size: 500 B } } }
";
    let beside = "
title: The same with another link, node and flow before it
seed: 3
duration: 5 s
topology:
  nodes: [z, a, b]
  links:
    - { between: [z, a], rate: 10 Mbit/s, delay: 1 ms, loss: 10 % }
    - { between: [a, b], rate: 10 Mbit/s, delay: 1 ms, jitter: 200 us, loss: 10 % }
flows:
  - { name: other, from: z, to: a, over: udp, app: { cbr: { rate: 2 Mbit/s, size: 500 B } } }
  - { name: cbr, from: a, to: b, over: udp, app: { cbr: { rate: 2 Mbit/s, size: 500 B } } }
";
    assert_eq!(losses(alone), losses(beside));
}
