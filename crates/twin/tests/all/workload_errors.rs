//! An error of a workload is one line, with what to write.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use hopcast_runner::load_text;
use hopcast_twin::scenario::{Overrides, describe};

/// Error of an app over a transport.
fn error_of(dir: &Path, over: &str, app: &str) -> String {
    let text = format!(
        "duration: 10s
topology: {{ chain: {{ hops: 2, link: {{ rate: 10 Mbit/s }} }} }}
flows:
  - {{ from: n0, to: n2, over: {over}, app: {app} }}
"
    );
    let error = load_text(&dir.join("bad.yaml"), &text, &Overrides::default()).err();
    let error = error.map_or_else(|| "no error".to_owned(), |error| error.to_string());
    error.replace(&format!("{}/", dir.display()), "")
}

/// (the transport, the app, what is said)
const MISTAKES: &[(&str, &str, &str)] = &[
    (
        "udp",
        "vidoe",
        "bad.yaml:4:41: `app`: expected one of `cbr`, `bulk`, `file`, `messages`, `video`, `short-flows`, `iperf3`, `iperf2`, `nuttcp`, `ping`, `ffmpeg`, `copy`, `libnorm`, `openpgm`, `jgroups`, `uftp`, `udpcast`, found `vidoe`: did you mean `video`?",
    ),
    ("udp", "video", "bad.yaml:4:41: `video` needs `rate`, for example `rate: 4 Mbit/s`"),
    (
        "udp",
        "{ video: { rate: 4 Mbit/s, frames: 25 } }",
        "bad.yaml:4:68: unknown key `frames` in `video`: did you mean `b-frames`? (allowed here: rate, fps, gop, b-frames, variation, trace, deadline, start, stop)",
    ),
    (
        "udp",
        "{ video: { rate: 4 Mbit/s, fps: 25 Hz } }",
        "bad.yaml:4:73: `fps`: expected a number, found `25 Hz`",
    ),
    (
        "udp",
        "{ video: { rate: 4 Mbit/s, fps: 2000 } }",
        "bad.yaml:4:73: `fps`: expected 0.1 to 1000 frames a second, found `2000`",
    ),
    (
        "udp",
        "{ video: { rate: 4 Mbit/s, gop: 0 } }",
        "bad.yaml:4:73: `gop`: expected a whole number from 1 to 1000, found `0`",
    ),
    (
        "udp",
        "{ video: { rate: 4 Mbit/s, b-frames: 17 } }",
        "bad.yaml:4:78: `b-frames`: expected a whole number from 0 to 16, found `17`",
    ),
    (
        "udp",
        "{ video: { rate: 4 Mbit/s, deadline: 0ms } }",
        "bad.yaml:4:78: `deadline`: expected more than zero, found `0ms`",
    ),
    (
        "udp",
        "{ video: { rate: 100 bit/s } }",
        "bad.yaml:4:58: `rate`: expected one that makes frames of 1 B to 16 MiB, found `100 bit/s`: 0.3 B to 2 B",
    ),
    (
        "udp",
        "{ video: { rate: 4 Mbit/s, trace: good.csv } }",
        "bad.yaml:4:58: `rate`: the trace says types and sizes: leave this out",
    ),
    (
        "udp",
        "{ video: { fps: 25, trace: timed.csv } }",
        "bad.yaml:4:57: `fps`: the trace says the times: leave this out",
    ),
    (
        "udp",
        "{ video: { trace: kind.csv } }",
        "kind.csv:2:1: expected the type of a frame, `I`, `P` or `B`, found `X`",
    ),
    ("udp", "{ video: { trace: order.csv } }", "order.csv:1:1: expected an I-frame first, found `P`"),
    (
        "udp",
        "{ video: { trace: size.csv } }",
        "size.csv:3:1: expected the bytes of a frame, 1 to 16777216, found `0`",
    ),
    (
        "udp",
        "{ video: { trace: columns.csv } }",
        "columns.csv:1:1: expected `type,bytes` or `time_ms,type,bytes`, found `I`",
    ),
    ("udp", "{ video: { trace: short.csv } }", "short.csv:2:1: expected 2 columns as before, found 1"),
    (
        "udp",
        "{ video: { trace: back.csv } }",
        "back.csv:3:1: expected a time from 40 ms on, at most an hour later, found `39`",
    ),
    ("udp", "{ video: { trace: time.csv } }", "time.csv:2:1: expected milliseconds, found `soon`"),
    ("udp", "{ video: { trace: empty.csv } }", "empty.csv: expected at least a frame"),
    (
        "udp",
        "{ video: { trace: one.csv } }",
        "one.csv: expected at least two frames that are some time apart",
    ),
    (
        "udp",
        "{ cbr: { rate: 1 Mbit/s, arrivals: poison } }",
        "bad.yaml:4:76: `arrivals`: expected one of `constant`, `poisson`, found `poison`: did you mean `poisson`?",
    ),
    (
        "udp",
        "{ cbr: { rate: 1 Mbit/s, arrivals: { poisson: 1 } } }",
        "bad.yaml:4:87: `arrivals`: expected one of `constant`, `poisson` alone",
    ),
    (
        "udp",
        "{ cbr: { rate: saturate, arrivals: poisson } }",
        "bad.yaml:4:56: `rate`: `saturate` leaves no gaps, and `arrivals` needs a rate, for example `rate: 10 Mbit/s`",
    ),
    (
        "udp",
        "{ cbr: { rate: 1 Mbit/s, on-off: { on: 1s } } }",
        "bad.yaml:4:74: `on-off` needs `off`, for example `off: 1s`",
    ),
    (
        "udp",
        "{ cbr: { rate: 1 Mbit/s, on-off: { on: 1s, off: 1s, duration: constant } } }",
        "bad.yaml:4:93: unknown key `duration` in `on-off`: did you mean `durations`? (allowed here: on, off, durations)",
    ),
    (
        "udp",
        "{ cbr: { rate: 1 Mbit/s, on-off: { on: 1ms, off: 1s } } }",
        "bad.yaml:4:74: `on`: expected at least the 11.776ms of a datagram, found 1ms",
    ),
    (
        "udp",
        "{ short-flows: { size: 100 kB, arrivals: 10 /s } }",
        "bad.yaml:4:41: `app`: `short-flows` opens a stream for each, and `udp` offers datagrams: use `tcp-cubic`, or `cbr` or `bulk`",
    ),
    (
        "split-bbr",
        "{ short-flows: { size: 100 kB, arrivals: 10 /s } }",
        "bad.yaml:4:47: `app`: `short-flows` opens many streams at a time, and `split-bbr` has one connection over each hop: use `tcp-bbr`",
    ),
    (
        "tcp-cubic",
        "{ short-flows: { size: 100 kB } }",
        "bad.yaml:4:62: `short-flows` needs `arrivals`, for example `arrivals: 10 /s`",
    ),
    (
        "tcp-cubic",
        "{ short-flows: { size: 10 B, arrivals: 10 /s } }",
        "bad.yaml:4:70: `size`: expected 24 B to 1073741824 B, found `10 B`",
    ),
    (
        "tcp-cubic",
        "{ short-flows: { size: 100 kB, arrivals: 10 } }",
        "bad.yaml:4:88: `arrivals`: expected a frequency such as `100 Hz` (units: Hz, kHz, /s), found `10`: write `10 Hz`",
    ),
    (
        "tcp-cubic",
        "{ short-flows: { size: 100 kB, arrivals: { regular: 10 /s } } }",
        "bad.yaml:4:90: `arrivals`: expected one of `poisson`, `constant`, found `regular`",
    ),
    (
        "tcp-cubic",
        "{ short-flows: { size: { pareto: { mean: 1 kB, shape: 1 } }, arrivals: 10 /s } }",
        "bad.yaml:4:101: `shape`: expected more than 1 and at most 10 (at 1 there is no mean), found `1`",
    ),
    (
        "tcp-cubic",
        "{ short-flows: { size: { normal: 1 kB }, arrivals: 10 /s } }",
        "bad.yaml:4:72: `size`: expected one of `exponential`, `pareto`, found `normal`",
    ),
];

#[test]
fn every_mistake_is_said_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    for (name, contents) in [
        ("good.csv", "I,100\n"),
        ("timed.csv", "0,I,100\n40,P,50\n"),
        ("kind.csv", "I,100\nX,50\n"),
        ("order.csv", "P,100\n"),
        ("size.csv", "# sizes\nI,100\nP,0\n"),
        ("columns.csv", "I\n"),
        ("short.csv", "I,100\nP\n"),
        ("back.csv", "0,I,100\n40,P,50\n39,P,50\n"),
        ("time.csv", "0,I,100\nsoon,P,50\n"),
        ("empty.csv", "type,bytes\n"),
        ("one.csv", "0,I,100\n"),
    ] {
        std::fs::write(dir.path().join(name), contents).unwrap();
    }
    let wrong: Vec<_> = MISTAKES
        .iter()
        .map(|(over, app, expected)| (error_of(dir.path(), over, app), expected))
        .filter(|(found, expected)| found != *expected)
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_group_has_no_short_flows_and_a_node_not_too_many() {
    let of = |flows: &str| {
        let text = format!(
            "duration: 10s\ntopology: {{ chain: {{ hops: 2, link: {{ rate: 10 Mbit/s }} }} }}\nflows:\n{flows}"
        );
        load_text(Path::new("bad.yaml"), &text, &Overrides::default()).unwrap_err().to_string()
    };
    assert_eq!(
        of(
            "  - { from: n0, to: [n1, n2], over: brtp, app: { short-flows: { size: 1 kB, arrivals: 1 /s } } }\n"
        ),
        "bad.yaml:4:21: `to`: `short-flows` are streams to one receiver; several may have `cbr`, `bulk`, `file`, `messages` or `video`"
    );
    let one =
        "  - { from: n0, to: n2, over: tcp-cubic, app: { short-flows: { size: 1 kB, arrivals: 1 /s } } }\n";
    assert_eq!(
        of(&one.repeat(9)),
        "bad.yaml:12:47: `app`: a node sends at most 8 flows of `short-flows`, this is one more from `n0`"
    );
}

#[test]
fn what_is_right_is_described() {
    let said = |over: &str, app: &str| {
        let text = format!(
            "duration: 10s\ntopology: {{ chain: {{ hops: 1, link: {{ rate: 10 Mbit/s }} }} }}\nflows: [{{ from: n0, to: n1, over: {over}, app: {app} }}]"
        );
        let plan = load_text(Path::new("good.yaml"), &text, &Overrides::default()).unwrap();
        let all = describe(&plan);
        let line = all.lines().find(|line| line.starts_with("  flow0:")).unwrap();
        line.split_once(&format!("over {over}: ")).unwrap().1.to_owned()
    };
    assert_eq!(
        said("udp", "{ video: { rate: 4 Mbit/s, variation: 20 %, stop: 5s } }"),
        "video, 4 Mbit/s, a frame every 40ms, GOP of 12 with 2 B-frames in a row, sizes ± 20 %, deadline 200ms, from 0s to 5s"
    );
    assert_eq!(
        said(
            "udp",
            "{ cbr: { rate: 4 Mbit/s, arrivals: poisson, on-off: { on: 1s, off: 2s, durations: constant } } }"
        ),
        "datagrams of 1472 B, 4 Mbit/s, Poisson, 1s on and 2s off, from 0s"
    );
    assert_eq!(
        said("kcp", "{ short-flows: { size: { pareto: 100 kB }, arrivals: 10 /s, start: 1s } }"),
        "a flow of 100 kB on average, Pareto of shape 1.2, every 100ms on average, Poisson, from 1s"
    );
    assert_eq!(
        said("kcp", "{ short-flows: { size: 100 kB, arrivals: { constant: 10 Hz } } }"),
        "a flow of 100 kB every 100ms, from 0s"
    );
}
