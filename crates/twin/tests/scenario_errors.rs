//! Every mistake gets one line: `file:line:column: message`, with what was expected and the nearest right spelling.

use std::fs;
use std::path::Path;

use hopcast_runner::{load, load_text};
use hopcast_twin::scenario::{Diagnostic, Overrides};

const GOOD: &str = "duration: 10s
measure: { from: 1s }
topology:
  chain:
    hops: 2
    link: { rate: 10 Mbit/s, delay: 1ms, loss: 1 % }
events:
  - { name: loss, at: 1s, links: all, loss: 5 % }
flows:
  - { name: bulk, from: n0, to: n2, over: tcp-cubic, app: bulk }
";

fn error_of(text: &str, overrides: &Overrides) -> String {
    match load_text(Path::new("bad.yaml"), text, overrides) {
        Ok(_) => "no error".to_owned(),
        Err(error) => error.to_string(),
    }
}

/// (what of the good file, is replaced by what, is told what)
const MISTAKES: &[(&str, &str, &str)] = &[
    (
        "delay: 1ms",
        "dleay: 1ms",
        "bad.yaml:6:30: unknown key `dleay` in `link`: did you mean `delay`? (allowed here: rate, delay, loss, jitter, reorder, duplicate, corrupt, queue, mtu, duplex, forward, backward)",
    ),
    (
        "duration",
        "durration",
        "bad.yaml:1:1: unknown key `durration` in a scenario: did you mean `duration`? (allowed here: title, seed, duration, measure, topology, events, flows, exec, variants, roles, capture, sweep, repeats, published, measured, source, quick, include, description, world, notes)",
    ),
    (
        "name: bulk,",
        "nmae: bulk,",
        "bad.yaml:10:7: unknown key `nmae` in a flow: did you mean `name`? (allowed here: name, from, to, over, app, ip, paths)",
    ),
    (
        "delay: 1ms",
        "min_rto: 1ms",
        "bad.yaml:6:30: unknown key `min_rto` in `link` (allowed here: rate, delay, loss, jitter, reorder, duplicate, corrupt, queue, mtu, duplex, forward, backward)",
    ),
    (
        "loss: 1 %",
        "loss: 5",
        "bad.yaml:6:48: `loss`: expected a share with its unit, found the bare number `5`: write `5 %` (units: %, ppm)",
    ),
    (
        "loss: 1 %",
        "loss: 0.05",
        "bad.yaml:6:48: `loss`: expected a share with its unit, found the bare number `0.05`: write `5 %` or `0.05 %` (units: %, ppm)",
    ),
    (
        "10 Mbit/s",
        "10 MB/s",
        "bad.yaml:6:19: `rate`: expected a rate such as `300 Mbit/s` (units: bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s), found the unit `MB/s`: 1 MB/s is 8 Mbit/s, write `80 Mbit/s`",
    ),
    (
        "over: tcp-cubic",
        "over: tcp",
        "bad.yaml:10:43: there is no transport `tcp`: did you mean `tcp-cubic`, `tcp-bbr`, `tcp-reno` or `tcp-vegas`? (transports: udp, tcp-cubic, tcp-bbr, tcp-reno, tcp-vegas, split-bbr, kcp, kcp-fec, kcptun, quic, quic-bbr, hop-arq, btp, brtp, bats-proxy, franc, tunnel)",
    ),
    (
        "over: tcp-cubic",
        "over: bbr",
        "bad.yaml:10:43: there is no transport `bbr`: did you mean `tcp-bbr`, `split-bbr` or `quic-bbr`? (transports: udp, tcp-cubic, tcp-bbr, tcp-reno, tcp-vegas, split-bbr, kcp, kcp-fec, kcptun, quic, quic-bbr, hop-arq, btp, brtp, bats-proxy, franc, tunnel)",
    ),
    (
        "duration: 10s",
        "duration: 10",
        "bad.yaml:1:11: `duration`: expected a duration with its unit, found the bare number `10`: write `10 ms` or `10 s` (units: ns, us, ms, s, min, h)",
    ),
    (
        "10 Mbit/s",
        "10 Mbps",
        "bad.yaml:6:19: `rate`: expected a rate such as `300 Mbit/s` (units: bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s), found the unit `Mbps`: did you mean `Mbit/s`?",
    ),
    (
        "10 Mbit/s",
        "10 parsecs",
        "bad.yaml:6:19: `rate`: expected a rate such as `300 Mbit/s` (units: bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s), found the unit `parsecs`",
    ),
    ("10 Mbit/s", "0 Mbit/s", "bad.yaml:6:19: `rate`: expected more than zero, found `0 Mbit/s`"),
    (
        "loss: 1 %",
        "loss: 101 %",
        "bad.yaml:6:48: `loss`: expected a share such as `5 %` (units: %, ppm), found `101 %`, which is more than 100 %",
    ),
    (
        "loss: 1 %",
        "loss: -1 %",
        "bad.yaml:6:48: `loss`: expected a share such as `5 %` (units: %, ppm), found `-1 %`, which is negative",
    ),
    (
        "loss: 1 %",
        "loss: nnone",
        "bad.yaml:6:48: `loss`: expected a share such as `5 %`, `none`, or a map of one of `gilbert-elliott`, `four-state`, `trace`, found `nnone`: did you mean `none`?",
    ),
    (
        "loss: 1 %",
        "loss: { gilbert-eliot: { p: 1 % } }",
        "bad.yaml:6:50: `loss`: expected one of `none`, `gilbert-elliott`, `four-state`, `trace`, found `gilbert-eliot`: did you mean `gilbert-elliott`?",
    ),
    (
        "loss: 1 %",
        "loss: { gilbert-elliott: { p: 1 % } }",
        "bad.yaml:6:67: `gilbert-elliott` needs `r`, for example `10 %`",
    ),
    (
        "loss: 1 %",
        "loss: { four-state: { p13: 60 %, p14: 50 % } }",
        "bad.yaml:6:62: `four-state`: `p13` and `p14` leave the same state and are more than 100 %",
    ),
    (
        "loss: 1 %",
        "loss: { trace: nothere.txt }",
        "bad.yaml:6:57: `trace`: cannot read `nothere.txt`: No such file or directory",
    ),
    ("loss: 1 %", "mtu: 100", "bad.yaml:6:47: `mtu`: expected a whole number from 576 to 65535, found `100`"),
    (
        "loss: 1 %",
        "mtu: 9 kb",
        "bad.yaml:6:47: `mtu`: expected a size such as `1472 B` (units: B, kB, MB, GB, KiB, MiB, GiB), found the unit `kb`: did you mean `kB`?",
    ),
    (
        "loss: 1 %",
        "queue: 1000",
        "bad.yaml:6:49: `queue`: expected a queue's limit such as `1000 packets` or `64 KiB`, found `1000`: write `1000 packets`",
    ),
    (
        "loss: 1 %",
        "queue: 1000 pakets",
        "bad.yaml:6:49: `queue`: expected a queue's limit such as `1000 packets` or `64 KiB`, found `1000 pakets`: write `1000 packets`",
    ),
    (
        "loss: 1 %",
        "queue: codle",
        "bad.yaml:6:49: `queue`: expected one of `drop-tail`, `codel`, found `codle`: did you mean `codel`?",
    ),
    (
        "loss: 1 %",
        "duplex: hlaf",
        "bad.yaml:6:50: `duplex`: expected one of `full`, `half`, found `hlaf`: did you mean `half`?",
    ),
    ("loss: 1 %", "reorder: maybe", "bad.yaml:6:51: `reorder`: expected `true` or `false`, found `maybe`"),
    (
        "loss: 1 %",
        "jitter: { nromal: 1ms }",
        "bad.yaml:6:52: `jitter`: expected one of `uniform`, `normal`, found `nromal`: did you mean `normal`?",
    ),
    (
        "hops: 2",
        "hops: 1000001",
        "bad.yaml:5:11: `hops`: expected a whole number from 1 to 1000000, found `1000001`",
    ),
    ("hops: 2", "hops: two", "bad.yaml:5:11: `hops`: expected a whole number from 1 to 1000000, found `two`"),
    ("hops: 2", "", "bad.yaml:6:5: `chain` needs `hops`, for example `hops: 6`"),
    ("duration: 10s", "duration: 2000h", "bad.yaml:1:11: `duration`: expected at most 1000 h, found `2000h`"),
    (
        "duration: 10s",
        "duration: 1e300s",
        "bad.yaml:1:11: `duration`: expected a duration such as `500 us` (units: ns, us, ms, s, min, h), found `1e300s`, which is past any bound",
    ),
    ("duration: 10s", "duration: 0s", "bad.yaml:1:11: `duration`: expected more than zero, found `0s`"),
    (
        "duration: 10s",
        "duration:",
        "bad.yaml:1:9: `duration`: expected a duration such as `500 us` (units: ns, us, ms, s, min, h), found nothing",
    ),
    ("duration: 10s", "seed: 1", "bad.yaml:1:1: a scenario needs `duration`, for example `duration: 60s`"),
    (
        "duration: 10s",
        "duration: 10s\nrepeats: 0",
        "bad.yaml:2:10: `repeats`: expected a whole number from 1 to 100000, found `0`",
    ),
    (
        "duration: 10s",
        "duration: 10s\nrepeats: 100001",
        "bad.yaml:2:10: `repeats`: expected a whole number from 1 to 100000, found `100001`",
    ),
    ("duration: 10s", "duration: 10s\nduration: 10s", "bad.yaml:2:1: the key `duration` stands here twice"),
    (
        "duration: 10s",
        "duration: [10s",
        "bad.yaml:2:8: this is not valid YAML: illegal placement of ':' indicator",
    ),
    (
        "duration: 10s",
        "duration: !!str 10s",
        "bad.yaml:1:11: tags such as `tag:yaml.org,2002:!str` mean nothing in a scenario: leave it out",
    ),
    ("from: 1s", "from: 11s", "bad.yaml:2:18: `measure`: the window from 11s to 10s is empty"),
    ("from: 1s", "from: 1s, to: 11s", "bad.yaml:2:26: `to`: expected at most the duration 10s, found `11s`"),
    ("from: 1s", "from: 1s, to: 1s", "bad.yaml:2:18: `measure`: the window from 1s to 1s is empty"),
    (
        "from: 1s",
        "interval: 1ns",
        "bad.yaml:2:22: `interval`: a run has at most 1000000 steps, this makes more",
    ),
    ("to: n2", "to: n22", "bad.yaml:10:33: `to`: there is no node `n22`: did you mean `n2`?"),
    ("to: n2", "to: n0", "bad.yaml:10:33: `to`: a flow needs another node to go to than it comes from"),
    ("to: n2,", "", "bad.yaml:10:5: a flow needs `to`, for example `to: n6`"),
    (
        "to: n2",
        "to: [n2, n1]",
        "bad.yaml:10:33: `to`: `tcp-cubic` has one receiver; several are served by `btp` and `brtp`",
    ),
    ("to: n2", "to: [n2, n2]", "bad.yaml:10:38: `to`: `n2` stands here twice"),
    ("to: n2", "to: []", "bad.yaml:10:33: `to`: expected a node, found an empty list"),
    (
        "over: tcp-cubic",
        "paths: 2, over: tcp-cubic",
        "bad.yaml:10:44: `paths`: `tcp-cubic` takes one way; several are taken by `btp`, `brtp` and `bats-proxy`",
    ),
    (
        "over: tcp-cubic",
        "over: [udp, bats-proxy]",
        "bad.yaml:10:43: `over`: `bats-proxy` ends TCP connections, and `udp` makes none: use `tunnel` over `brtp`",
    ),
    (
        "over: tcp-cubic",
        "over: [split-bbr, tunnel]",
        "bad.yaml:10:43: `over`: `split-bbr` ends at every node, so nothing can carry it inside: write it alone",
    ),
    (
        "over: tcp-cubic",
        "over: { brtp: { batch-size: 12 } }",
        "bad.yaml:10:65: `batch-size`: expected 4, 8, 16 or 32, found `12`",
    ),
    (
        "over: tcp-cubic",
        "over: [tcp-cubic, { franc: { overshoot: 5 % } }]",
        "bad.yaml:10:77: `overshoot`: only `plan: budget` has one",
    ),
    (
        "over: tcp-cubic",
        "over: tcp-cubik",
        "bad.yaml:10:43: there is no transport `tcp-cubik`: did you mean `tcp-cubic`? (transports: udp, tcp-cubic, tcp-bbr, tcp-reno, tcp-vegas, split-bbr, kcp, kcp-fec, kcptun, quic, quic-bbr, hop-arq, btp, brtp, bats-proxy, franc, tunnel)",
    ),
    (
        "over: tcp-cubic",
        "over: [tcp-cubic, udp]",
        "bad.yaml:10:43: `tcp-cubic` needs packets below it, but `udp` offers datagrams; between them fits `bats-proxy` or `tunnel`",
    ),
    (
        "over: tcp-cubic",
        "over: [udp, tcp-cubic]",
        "bad.yaml:10:43: `udp` needs packets below it, but `tcp-cubic` offers a stream",
    ),
    (
        "over: tcp-cubic",
        "over: [tunnel, udp]",
        "bad.yaml:10:43: `over`: `tunnel` offers packets, which no application but `ping` sends: put a transport such as `tcp-cubic` on top",
    ),
    ("over: tcp-cubic", "over: []", "bad.yaml:10:43: `over`: expected a transport, found an empty list"),
    (
        "over: tcp-cubic",
        "over: { tcp-cubic: { min_rto: 1s } }",
        "bad.yaml:10:58: unknown key `min_rto` in `tcp-cubic`: did you mean `min-rto`? (allowed here: initial-window, sack, min-rto, delayed-ack, receive-buffer, send-buffer)",
    ),
    ("over: tcp-cubic", "over: { udp: { x: 1 } }", "bad.yaml:10:50: `udp` has no options: write `udp`"),
    (
        "over: tcp-cubic",
        "over: { tcp-cubic: { delayed-ack: 1s } }",
        "bad.yaml:10:71: `delayed-ack`: expected at most 500 ms (RFC 9293), found `1s`",
    ),
    (
        "app: bulk",
        "app: blk",
        "bad.yaml:10:59: `app`: expected one of `cbr`, `bulk`, `file`, `messages`, `video`, `short-flows`, `iperf3`, `iperf2`, `nuttcp`, `ping`, `ffmpeg`, `copy`, found `blk`: did you mean `bulk`?",
    ),
    (
        "app: bulk",
        "app: cbr",
        "bad.yaml:10:59: `app`: `cbr` sends datagrams, and `tcp-cubic` offers a stream: use `udp`, or `bulk` or `messages`",
    ),
    (
        "over: tcp-cubic, app: bulk",
        "over: udp, app: cbr",
        "bad.yaml:10:53: `cbr` needs `rate`, for example `rate: 10 Mbit/s`",
    ),
    (
        "app: bulk",
        "app: { file: { path: nothere.bin } }",
        "bad.yaml:10:75: `path`: cannot read `nothere.bin`: No such file or directory",
    ),
    (
        "app: bulk",
        "app: { file: { path: . } }",
        "bad.yaml:10:75: `path`: cannot read `.`: it is not a regular file",
    ),
    (
        "over: tcp-cubic, app: bulk",
        "over: udp, app: { cbr: { rate: 1 Mbit/s, size: 1473 B } }",
        "bad.yaml:10:53: `size`: expected at most 1472 B, what the MTU of 1500 of the link `n0-n1` leaves over `udp` (hosts do not fragment), found 1473 B",
    ),
    (
        "over: tcp-cubic, app: bulk",
        "over: udp, ip: 6, app: { messages: { every: 1ms, size: 1453 B } }",
        "bad.yaml:10:60: `size`: expected at most 1452 B, what the MTU of 1500 of the link `n0-n1` leaves over `udp` (hosts do not fragment), found 1453 B",
    ),
    (
        "app: bulk",
        "ip: 5, app: bulk",
        "bad.yaml:10:58: `ip`: expected the version of IP, `4` or `6`, found `5`",
    ),
    (
        "over: tcp-cubic, app: bulk",
        "over: udp, app: { cbr: { rate: 1 Mbit/s, size: 65508 B } }",
        "bad.yaml:10:84: `size`: expected 16 B to 65507 B, found `65508 B`",
    ),
    (
        "app: bulk",
        "app: { messages: { size: 100 B, rate: 100 } }",
        "bad.yaml:10:92: `rate`: expected a frequency such as `100 Hz` (units: Hz, kHz, /s), found `100`: write `100 Hz`",
    ),
    (
        "app: bulk",
        "app: { messages: { size: 100 B } }",
        "bad.yaml:10:71: `messages` needs `rate` or `every`, for example `rate: 100 Hz`",
    ),
    (
        "app: bulk",
        "app: { bulk: { start: 5s, stop: 5s } }",
        "bad.yaml:10:86: `stop`: expected a time after `start`, found `5s`",
    ),
    ("links: all", "links: n1-n0", "bad.yaml:8:34: `links`: there is no link `n1-n0`: did you mean `n0-n1`?"),
    ("links: all", "links: n2-n1", "bad.yaml:8:34: `links`: there is no link `n2-n1`: did you mean `n1-n2`?"),
    ("links: all", "links: n0-n3", "bad.yaml:8:34: `links`: there is no link `n0-n3`: did you mean `n0-n1`?"),
    (
        "links: all",
        "from: n9, links: all",
        "bad.yaml:8:33: `from`: there is no node `n9`: did you mean `n0`?",
    ),
    ("links: all", "from: n2, links: n0-n1", "bad.yaml:8:33: `from`: `n2` is no end of the link `n0-n1`"),
    (
        ", links: all",
        "",
        "bad.yaml:8:5: an event that changes links needs `links`: `all`, a link's name or a list of names",
    ),
    (
        ", loss: 5 %",
        "",
        "bad.yaml:8:5: an event needs something to do: one of `rate`, `delay`, `jitter`, `loss`, `corrupt`, `duplicate`, `down`, `up`, `start`, `stop`",
    ),
    (", loss: 5 %", ", start: blk", "bad.yaml:8:46: `start`: there is no flow `blk`: did you mean `bulk`?"),
    (
        "at: 1s",
        "at: 1",
        "bad.yaml:8:23: `at`: expected a duration with its unit, found the bare number `1`: write `1 ms` or `1 s` (units: ns, us, ms, s, min, h)",
    ),
    (
        "  chain:\n",
        "  links: [{ between: [n0, n3] }]\n  chain:\n",
        "bad.yaml:4:27: `between`: there is no node `n3`: did you mean `n0`?",
    ),
    (
        "  chain:\n",
        "  links: [{ between: [n0, n1] }]\n  chain:\n",
        "bad.yaml:4:11: the link name `n0-n1` is taken already: give this one a `name`",
    ),
    (
        "  chain:\n",
        "  links: [{ between: [n0] }]\n  chain:\n",
        "bad.yaml:4:22: `between`: expected two nodes (more of them share a `medium`), found 1",
    ),
    (
        "  chain:\n",
        "  links: [{ medium: [n0, n1], duplex: half }]\n  chain:\n",
        "bad.yaml:4:31: unknown key `duplex` in a medium (allowed here: name, medium, rate, delay, loss, jitter, reorder, duplicate, corrupt, queue, mtu, mac, pairs)",
    ),
    ("  chain:\n", "  nodes: [n1]\n  chain:\n", "bad.yaml:6:5: the node name `n1` is taken already"),
    (
        "  chain:\n",
        "  nodes: [\"a b\"]\n  chain:\n",
        "bad.yaml:4:11: `nodes`: expected a name of letters, digits, `-` and `_`, at most 64 bytes, found `a b`",
    ),
    (
        "  chain:\n",
        "  full: { nodes: 100000 }\n  chain:\n",
        "bad.yaml:4:9: a topology has at most 1000000 links, this one has 4999950000",
    ),
    (
        "  chain:\n",
        "  tree: { depth: 20, fanout: 10 }\n  chain:\n",
        "bad.yaml:4:9: a topology has at most 1000000 nodes, this tree has more",
    ),
    (
        "  chain:\n",
        "  grid: { rows: 10000, columns: 10000 }\n  chain:\n",
        "bad.yaml:4:9: a topology has at most 1000000 nodes, this grid has more",
    ),
    (
        "duration: 10s",
        "duration: 10s\nroles: { helpr: n1 }",
        "bad.yaml:2:10: unknown key `helpr` in `roles`: did you mean `helper`? (allowed here: helper, proxy, relay)",
    ),
    (
        "duration: 10s",
        "duration: 10s\nroles: { helper: n9 }",
        "bad.yaml:2:18: `helper`: there is no node `n9`: did you mean `n0`?",
    ),
    ("duration: 10s", "duration: 10s\ncapture: [n0, n0]", "bad.yaml:2:15: `capture`: `n0` stands here twice"),
    (
        "duration: 10s",
        "duration: 10s\nsweep: { flows.blk.over: [udp] }",
        "bad.yaml:2:10: `flows` has no element `blk`: did you mean `bulk`? (its elements: bulk)",
    ),
    (
        "duration: 10s",
        "duration: 10s\nsweep: { flows.bulk.oevr: [udp] }",
        "bad.yaml:2:10: unknown key `oevr` in a flow: did you mean `over`? (allowed here: name, from, to, over, app, ip, paths)",
    ),
    (
        "duration: 10s",
        "duration: 10s\nsweep: { events.0.loss: [5 %, 5] }",
        "bad.yaml:2:31: `loss`: expected a share with its unit, found the bare number `5`: write `5 %` (units: %, ppm)",
    ),
    (
        "duration: 10s",
        "duration: 10s\nsweep: { events.0.loss: 5 % }",
        "bad.yaml:2:25: `events.0.loss`: expected a list of values to sweep, found `5 %`",
    ),
    (
        "duration: 10s",
        "duration: 10s\nsweep: { evnts.0.loss: [5 %] }",
        "bad.yaml:2:10: `evnts.0.loss` leads nowhere: unknown key `evnts`: did you mean `events`?",
    ),
    (
        "duration: 10s",
        "duration: 10s\nsweep: { events.0.loss: [5 %], events.loss.loss: [5 %] }",
        "bad.yaml:2:32: `events.loss.loss` is swept twice, also as `events.0.loss`",
    ),
    ("duration: 10s", "duration: 10s\nsweep: { repeats: [1] }", "bad.yaml:2:10: `repeats` cannot be swept"),
    (
        "duration: 10s",
        "duration: 10s\nsweep: { zip: { seed: [1, 2], events.0.loss: [1 %] } }",
        "bad.yaml:2:46: `events.0.loss`: expected 2 values, as many as `seed` has in the same zip, found 1",
    ),
    (
        "duration: 10s",
        "duration: 10s\nsweep: { events.loss.loss: [5 %, 10 %, 10%, 5 %] }",
        "bad.yaml:2:40: `events.loss.loss`: the value `10%` is swept twice",
    ),
    (
        "duration: 10s",
        "duration: 10s\nsweep: { flows.bulk.over: [tcp-bbr, [tcp-bbr]] }",
        "bad.yaml:2:37: `flows.bulk.over`: the value `tcp-bbr` is swept twice",
    ),
    (
        "duration: 10s",
        "duration: 10s\nsweep: { zip: { seed: [1, 1, 1], events.0.loss: [1 %, 2 %, 1 %] } }",
        "bad.yaml:2:30: `zip`: the values `1`, `1 %` are swept twice",
    ),
    (
        "duration: 10s",
        "duration: 10s\ninclude: nothere.yaml",
        "bad.yaml:2:10: cannot read `nothere.yaml`: No such file or directory",
    ),
    (
        "duration: 10s",
        "duration: 10s\nvariants: { udp: tcp-cubic }",
        "bad.yaml:2:13: a variant needs a name of its own: `udp` is a transport",
    ),
    (
        "duration: 10s",
        "duration: 10s\n<<: {}",
        "bad.yaml:2:1: unknown key `<<` in a scenario: YAML's merge key is not part of YAML 1.2; use an alias or `include` (allowed here: title, seed, duration, measure, topology, events, flows, exec, variants, roles, capture, sweep, repeats, published, measured, source, quick, include, description, world, notes)",
    ),
    ("duration: 10s", "--- 1\n--- 2", "bad.yaml:2:1: expected one document, found a second one"),
    (
        "duration: 10s",
        "duration: 10s\npublished: { file: nothere.csv, figures: { a: goodput_mbps } }",
        "bad.yaml:2:20: cannot read `nothere.csv`: No such file or directory",
    ),
    (
        "duration: 10s",
        "duration: 10s\npublished: { file: nothere.csv, match: { a: seed }, figures: { a: goodput } }",
        "bad.yaml:2:45: `match`: `seed` is not swept (swept here: nothing)",
    ),
    (
        "duration: 10s",
        "duration: 10s\npublished: { file: nothere.csv, figures: { a: goodput } }",
        "bad.yaml:2:47: `figures`: expected one of `goodput_mbps`, `sent_units`, `delivered_units`, `reliability`, `min_cut_fraction`, `payload_bound_fraction`, `completed_s`, `jitter_ms`, `latency_ms.mean`, `latency_ms.p50`, `latency_ms.p95`, `latency_ms.p99`, `latency_ms.p99_9`, `latency_ms.max`, `round_trip_ms.mean`, `round_trip_ms.p50`, `round_trip_ms.p95`, `round_trip_ms.p99`, `round_trip_ms.p99_9`, `round_trip_ms.max`, found `goodput`: did you mean `goodput_mbps`?",
    ),
];

#[test]
fn each_mistake_is_told_where_it_is_and_what_to_write() {
    let plain = Overrides::default();
    assert_eq!(error_of(GOOD, &plain), "no error");
    for (right, wrong, expected) in MISTAKES {
        assert!(GOOD.contains(right), "{right}");
        assert_eq!(error_of(&GOOD.replacen(right, wrong, 1), &plain), *expected, "for {wrong:?}");
    }
}

/// (the argument of `--set`, is told what)
const WRONG_SETS: &[(&str, &str)] = &[
    (
        "flows.blk.over=udp",
        "--set flows.blk.over=udp: `flows` has no element `blk`: did you mean `bulk`? (its elements: bulk)",
    ),
    (
        "flows.bulk.ovr=udp",
        "--set flows.bulk.ovr=udp: unknown key `ovr` in a flow: did you mean `over`? (allowed here: name, from, to, over, app, ip, paths)",
    ),
    (
        "topology.chian.hops=3",
        "--set topology.chian.hops=3: unknown key `chian` in `topology`: did you mean `chain`? (allowed here: nodes, links, chain, star, tree, grid, full, graphml, containerlab)",
    ),
    ("events.3.loss=5 %", "--set events.3.loss=5 %: `events` has no element `3` (its elements: loss)"),
    (
        "events.0.loss=5",
        "--set events.0.loss=5: `loss`: expected a share with its unit, found the bare number `5`: write `5 %` (units: %, ppm)",
    ),
    ("duration.x=1", "--set duration.x=1: `duration` is the value `10s`: there is no `x` in it"),
    ("x", "--set x: expected `path=value`, for example `flows.bulk.over=udp`"),
    ("a..b=1", "--set a..b=1: expected a path such as `flows.bulk.over`, found `a..b`"),
    (
        "flows.bulk.over=[udp",
        "--set flows.bulk.over=[udp: this is not valid YAML: while parsing a flow sequence, expected ',' or ']'",
    ),
    ("sweep.seed=1", "--set sweep.seed=1: `seed`: expected a list of values to sweep, found `1`"),
    (
        "flows.bulk.app.cbr.rate=1 Mbit/s",
        "--set flows.bulk.app.cbr.rate=1 Mbit/s: `flows.bulk.app` is the value `bulk`: there is no `cbr` in it",
    ),
    (
        "include=x.yaml",
        "--set include=x.yaml: `include` cannot be set: files are included before anything is set",
    ),
    (
        "quick.duration=1s",
        "--set quick.duration=1s: `quick` cannot be set: set what it would change, which wins over `quick`",
    ),
    ("sweep.include=[x]", "--set sweep.include=[x]: `include` cannot be swept"),
    ("sweep.seed=[1, 2, 1]", "--set sweep.seed=[1, 2, 1]: `seed`: the value `1` is swept twice"),
    ("repeats=0", "--set repeats=0: `repeats`: expected a whole number from 1 to 100000, found `0`"),
    ("=1", "--set =1: expected a path such as `flows.bulk.over`, found ``"),
];

#[test]
fn a_wrong_set_is_told_by_its_own_text() {
    for (set, expected) in WRONG_SETS {
        let overrides = Overrides { sets: vec![(*set).to_owned()], ..Overrides::default() };
        assert_eq!(error_of(GOOD, &overrides), *expected);
    }
    let overrides = Overrides { repeats: Some(0), ..Overrides::default() };
    let expected = "--repeats 0: `repeats`: expected a whole number from 1 to 100000, found `0`";
    assert_eq!(error_of(GOOD, &overrides), expected);
}

#[test]
fn a_link_is_offered_by_its_ends_whatever_it_is_called() {
    let named = GOOD.replacen(
        "  chain:",
        "  nodes: [ship-a, b]\n  links: [{ name: uplink, between: [ship-a, b], rate: 1 Gbit/s }]\n  chain:",
        1,
    );
    let error = error_of(&named.replacen("links: all", "links: b-ship-a", 1), &Overrides::default());
    assert!(error.ends_with("there is no link `b-ship-a`: did you mean `uplink`?"), "{error}");
    let linked = named.replacen("name: uplink, ", "", 1);
    let sets = vec!["topology.links.b-ship-a.loss=5 %".to_owned()];
    let error = error_of(&linked, &Overrides { sets, ..Overrides::default() });
    assert!(
        error.contains("has no element `b-ship-a`: did you mean `ship-a-b`? (its elements: ship-a-b)"),
        "{error}"
    );
}

#[test]
fn a_set_of_another_choice_than_the_file_made_is_told_by_its_own_text() {
    let text = GOOD
        .replace(
            "loss: 1 %",
            "loss: { gilbert-elliott: { p: 1 %, r: 9 % } }, queue: { codel: { target: 1ms } }",
        )
        .replace("app: bulk", "app: { cbr: { rate: 1 Mbit/s } }")
        .replace("over: tcp-cubic", "over: [{ udp: }]");
    let text = format!("{text}variants: {{ slow: {{ tcp-cubic: {{ sack: off }} }} }}\n");
    assert_eq!(error_of(&text, &Overrides::default()), "no error");
    for (set, expected) in [
        ("flows.bulk.app.bulk.start=1s", "`flows.bulk.app` is `cbr`: there is no `bulk` in it"),
        ("flows.0.app.bulk=", "`flows.0.app` is `cbr`: there is no `bulk` in it"),
        ("flows.0.over.0.tcp-bbr.sack=on", "`flows.0.over.0` is `udp`: there is no `tcp-bbr` in it"),
        ("variants.slow.tcp-bbr.sack=on", "`variants.slow` is `tcp-cubic`: there is no `tcp-bbr` in it"),
        (
            "topology.chain.link.loss.trace=x",
            "`topology.chain.link.loss` is `gilbert-elliott`: there is no `trace` in it",
        ),
        (
            "topology.chain.link.queue.drop-tail=9 packets",
            "`topology.chain.link.queue` is `codel`: there is no `drop-tail` in it",
        ),
    ] {
        let overrides = Overrides { sets: vec![set.to_owned()], ..Overrides::default() };
        assert_eq!(error_of(&text, &overrides), format!("--set {set}: {expected}"));
    }
}

#[test]
fn what_is_read_before_quick_cannot_stand_in_it() {
    let quick = Overrides { quick: true, ..Overrides::default() };
    for (key, why) in [
        ("include", "files are included before anything is set"),
        ("quick", "set what it would change, which wins over `quick`"),
    ] {
        let text = format!("{GOOD}quick: {{ {key}: x }}\n");
        assert_eq!(error_of(&text, &quick), format!("bad.yaml:11:10: `{key}` cannot be set: {why}"));
    }
}

/// A chain of two hops, of which each link has its own values; then a flow, which is told what at which column.
const UNFIT: &[(&str, &str, &str, &str)] = &[
    (
        "",
        "rate: 1 Mbit/s",
        "over: udp, app: bulk",
        "41: `app`: `bulk` over `udp` saturates its first link, so the links of `n0` need a rate, for example `rate: 300 Mbit/s`",
    ),
    (
        "backward: { rate: 1 Mbit/s }",
        "",
        "over: [udp, tunnel], app: { cbr: { rate: saturate, size: 100 B } }",
        "51: `app`: `cbr` with `rate: saturate` over `udp/tunnel` saturates its first link, so the links of `n0` need a rate, for example `rate: 300 Mbit/s`",
    ),
    ("forward: { rate: 1 Mbit/s }", "", "over: udp, app: { cbr: { rate: saturate } }", "no error"),
    ("", "", "over: [tcp-cubic, tunnel], app: bulk", "no error"),
    (
        "",
        "mtu: 1000",
        "over: udp, app: { cbr: { rate: 1 Mbit/s, size: 973 B } }",
        "41: `size`: expected at most 972 B, what the MTU of 1000 of the link `n1-n2` leaves over `udp` (hosts do not fragment), found 973 B",
    ),
    ("", "mtu: 1000", "over: udp, app: { cbr: { rate: 1 Mbit/s, size: 972 B } }", "no error"),
    (
        "backward: { mtu: 1000 }",
        "mtu: 1400",
        "over: udp, app: { messages: { size: 1000 B, rate: 1 Hz } }",
        "41: `size`: expected at most 972 B, what the MTU of 1000 of the link `n0-n1` leaves over `udp` on the way back (hosts do not fragment), found 1000 B",
    ),
    // `bulk` fills what its way takes, whatever that is.
    ("rate: 1 Mbit/s", "mtu: 1000", "over: udp, app: bulk", "no error"),
    ("", "mtu: 1000", "over: tcp-cubic, app: bulk", "no error"),
    (
        "mtu: 1279",
        "",
        "ip: 6, over: tcp-cubic, app: bulk",
        "29: `ip`: IPv6 needs an MTU of at least 1280 (RFC 8200), and the link `n0-n1` has 1279",
    ),
    (
        "",
        "mtu: 1279",
        "ip: 6, over: tcp-cubic, app: bulk",
        "29: `ip`: IPv6 needs an MTU of at least 1280 (RFC 8200), and the link `n1-n2` has 1279",
    ),
    ("mtu: 1280", "backward: { mtu: 576 }", "ip: 6, over: tcp-cubic, app: bulk", "no error"),
    ("mtu: 1279", "", "ip: 4, over: tcp-cubic, app: bulk", "no error"),
];

#[test]
fn a_flow_that_does_not_fit_its_network_is_told_before_it_runs() {
    for (first, second, flow, expected) in UNFIT {
        let text = format!(
            "duration: 1s
topology:
  nodes: [n0, n1, n2]
  links:
    - {{ between: [n0, n1], {first} }}
    - {{ between: [n1, n2], {second} }}
flows:
  - {{ from: n0, to: n2, {flow} }}
"
        );
        let found = error_of(&text, &Overrides::default());
        let found = found.strip_prefix("bad.yaml:8:").unwrap_or(&found);
        assert_eq!(found, *expected, "{first} | {second} | {flow}");
    }
}

#[test]
fn a_saturating_sender_on_a_medium_needs_its_rate_too() {
    let text = "duration: 1s
topology:
  nodes: [a, b]
  links:
    - { between: [a, b], rate: 1 Mbit/s }
    - { name: air, medium: [a, b] }
flows:
  - { from: a, to: b, over: udp, app: { file: { path: Cargo.toml } } }
";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("bad.yaml");
    let error = load_text(&path, text, &Overrides::default()).map(|_| ()).unwrap_err();
    assert_eq!((error.line, error.column), (8, 39));
    assert_eq!(
        error.message,
        "`app`: `file` over `udp` saturates its first link, so the links of `a` need a rate, for example `rate: 300 Mbit/s`"
    );
}

#[test]
fn a_saturating_sender_needs_a_rate_at_any_time() {
    let text = GOOD.replace("over: tcp-cubic", "over: udp");
    let event = |event: &str| error_of(&text.replace("links: all, loss: 5 %", event), &Overrides::default());
    let why = "the flow `bulk` saturates its first link, so the links of `n0` need a rate at any time";
    assert_eq!(event("links: all, rate: unlimited"), format!("bad.yaml:8:45: `rate`: {why}"));
    assert_eq!(event("from: n1, links: all, rate: unlimited"), "no error");
    assert_eq!(event("links: n1-n2, rate: unlimited"), "no error");
}

#[test]
fn a_path_is_at_most_as_long_as_a_hop_limit_can_be() {
    let text = GOOD.replace("hops: 2", "hops: 300").replace("to: n2", "to: n300");
    let expected = "bad.yaml:10:33: `to`: `n300` is 300 hops from `n0`, and IP's hop limit is 255";
    assert_eq!(error_of(&text, &Overrides::default()), expected);
    // The first flow of the file is told of, whichever destination is looked at first.
    let two = format!("{text}  - {{ from: n299, to: n0, over: tcp-cubic, app: bulk }}\n");
    assert_eq!(error_of(&two, &Overrides::default()), expected);
    assert_eq!(error_of(&text.replace("to: n300", "to: n255"), &Overrides::default()), "no error");
}

#[test]
fn a_scenario_has_a_bounded_number_of_flows() {
    let flows = |number: usize| {
        let flow = "  - { from: n0, to: n2, over: tcp-cubic, app: bulk }\n";
        format!("duration: 1s\ntopology: {{ chain: {{ hops: 2 }} }}\nflows:\n{}", flow.repeat(number))
    };
    assert_eq!(error_of(&flows(25_000), &Overrides::default()), "no error");
    let expected = "bad.yaml:25004:5: a scenario has at most 25000 flows, this is one more";
    assert_eq!(error_of(&flows(25_001), &Overrides::default()), expected);
}

#[test]
fn a_medium_has_a_bounded_number_of_stations() {
    let medium = |number: usize| {
        let stations: Vec<_> = (0..number).map(|n| format!("s{n}")).collect();
        let stations = stations.join(", ");
        format!(
            "duration: 1s\ntopology:\n  nodes: [{stations}]\n  links: [{{ name: air, medium: [{stations}] }}]\n\
             flows: [{{ from: s0, to: s1, over: tcp-cubic, app: bulk }}]\n"
        )
    };
    for number in [1, 257] {
        let expected = format!("bad.yaml:4:32: `medium`: expected 2 to 256 stations, found {number}");
        assert_eq!(error_of(&medium(number), &Overrides::default()), expected);
    }
}

#[test]
fn what_is_within_a_swept_value_cannot_be_set() {
    let text = format!("{GOOD}sweep: {{ flows.bulk.app: [bulk, {{ bulk: {{ bytes: 1 MB }} }}] }}\n");
    let overrides =
        Overrides { sets: vec!["flows.0.app.bulk.bytes=2 MB".to_owned()], ..Overrides::default() };
    let expected = "--set flows.0.app.bulk.bytes=2 MB: `flows.0.app` is swept, so nothing in it can be set: \
                    set `flows.0.app`, or its values with `sweep.flows.0.app`";
    assert_eq!(error_of(&text, &overrides), expected);
}

#[test]
fn an_unreachable_destination_is_told_at_the_destination() {
    let text = GOOD.replace("  chain:\n", "  nodes: [far]\n  chain:\n").replace("to: n2", "to: far");
    let expected = "bad.yaml:11:33: `to`: no links lead from `n0` to `far`";
    assert_eq!(error_of(&text, &Overrides::default()), expected);
}

#[test]
fn what_is_no_scenario_at_all_is_told_too() {
    for (text, expected) in [
        ("", "bad.yaml:1:1: expected a scenario, found nothing"),
        ("5", "bad.yaml:1:1: a scenario: expected a map of keys, found `5`"),
        ("[a]", "bad.yaml:1:1: a scenario: expected a map of keys, found a list"),
        ("a: &x [*x]", "bad.yaml:1:8: this alias stands inside what it refers to"),
        ("? [a]\n: b", "bad.yaml:1:3: expected a key, found a list"),
    ] {
        assert_eq!(error_of(text, &Overrides::default()), expected);
    }
}

#[test]
fn a_sweep_has_a_bounded_number_of_cases() {
    let values: Vec<String> = (0..400).map(|n| n.to_string()).collect();
    let values = values.join(", ");
    let text = format!("{GOOD}sweep:\n  seed: [{values}]\n  topology.chain.hops: [{values}]\n");
    let expected = "bad.yaml:12:3: a sweep has at most 100000 cases, this one has 160000";
    assert_eq!(error_of(&text, &Overrides::default()), expected);
}

#[test]
fn depth_and_size_are_bounded_with_aliases_counted() {
    let deep = format!("a: {}{}", "[".repeat(100), "]".repeat(100));
    let error = error_of(&deep, &Overrides::default());
    assert_eq!(error, "bad.yaml:1:43: lists and maps may be nested 40 deep");
    // Each line is ten of the line before.
    let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for n in 1..9 {
        let ten = vec![format!("*a{}", n - 1); 10].join(", ");
        laughs.push_str(&format!("a{n}: &a{n} [{ten}]\n"));
    }
    let error = error_of(&laughs, &Overrides::default());
    assert!(error.ends_with("a scenario has at most 2000000 values, aliases counted"), "{error}");
}

#[test]
fn a_message_is_one_line_whatever_the_file_holds() {
    let text = GOOD.replace("1ms", "\"1\\n\\u0007ms\"");
    let error = error_of(&text, &Overrides::default());
    assert!(!error.chars().any(char::is_control), "{error}");
    let long = GOOD.replace("1ms", &"x".repeat(100_000));
    assert!(error_of(&long, &Overrides::default()).len() < 3_000);
}

#[test]
fn files_that_cannot_be_read_give_the_reason_of_the_system() {
    let error = |path: &Path| load(path, &Overrides::default()).map(|_| ()).unwrap_err();
    let expected = "nowhere.yaml: cannot read this file: No such file or directory";
    assert_eq!(error(Path::new("nowhere.yaml")).to_string(), expected);
    let dir = tempfile::tempdir().unwrap();
    let expected = Diagnostic {
        file: dir.path().display().to_string(),
        line: 0,
        column: 0,
        message: "cannot read this file: it is not a regular file".to_owned(),
    };
    assert_eq!(error(dir.path()), expected);

    let write = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    let found = error(&write("latin.yaml", b"title: x\ntitel: caf\xe9\n"));
    assert_eq!((found.line, found.column), (2, 11));
    assert_eq!(found.message, "expected UTF-8 text, found the byte 0xe9");

    // In a file that the scenario names, the mistake is in that file.
    write("trace.txt", b"0101\n0121\n");
    let text = GOOD.replace("loss: 1 %", "loss: { trace: trace.txt }");
    let found = error(&write("trace.yaml", text.as_bytes()));
    assert!(found.file.ends_with("trace.txt"), "{found}");
    assert_eq!((found.line, found.column), (2, 3));

    write("table.csv", b"loss,figure\n5 %,12\n10 %,much\n");
    let table = "sweep: { events.loss.loss: [5 %] }\npublished: { file: table.csv, match: { loss: \
                 events.loss.loss }, figures: { figure: goodput_mbps } }\n";
    let found = error(&write("published.yaml", format!("{GOOD}{table}").as_bytes()));
    assert!(found.file.ends_with("table.csv"), "{found}");
    assert_eq!((found.line, found.column), (3, 6));
    assert_eq!(found.message, "`figure`: expected a number, found `much`");
    let both = format!("{GOOD}{table}measured: {{ file: table.csv, figures: {{ figure: goodput_mbps }} }}\n");
    assert_eq!(
        error(&write("both.yaml", both.as_bytes())).message,
        "a scenario has `published` figures or `measured` ones beside ours, not both"
    );
    let found =
        error(&write("column.yaml", format!("{GOOD}{table}").replace("{ figure:", "{ figures:").as_bytes()));
    assert!(
        found
            .message
            .ends_with("has no column `figures`: did you mean `figure`? (its columns: loss, figure)")
    );
}
