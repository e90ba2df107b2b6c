//! Every mistake gets one line: `file:line:column: message`, with what was expected and the nearest right spelling.

use crate::common::scenarios::*;
use hopcast_stack::TRANSPORTS;
use hopcast_twin::scenario::Overrides;

/// (a part of the good file, its replacement, the error)
const MISTAKES: &[(&str, &str, &str)] = &[
    (
        "delay: 1ms",
        "dleay: 1ms",
        "bad.yaml:6:30: unknown key `dleay` in `link`: did you mean `delay`? (allowed here: rate, delay, loss, jitter, reorder, duplicate, corrupt, queue, mtu, duplex, forward, backward)",
    ),
    (
        "duration",
        "durration",
        "bad.yaml:1:1: unknown key `durration` in a scenario: did you mean `duration`? (allowed here: title, seed, duration, measure, topology, motion, neighbours, membership, routing, routes, events, services, groups, flows, exec, variants, roles, capture, sweep, repeats, published, reference, axis, measured, expected, source, quick, include, description, world, notes)",
    ),
    (
        "name: bulk,",
        "nmae: bulk,",
        "bad.yaml:10:7: unknown key `nmae` in a flow: did you mean `name`? (allowed here: name, from, to, delivery, over, app, ip, paths)",
    ),
    (
        "duration: 10s",
        "neighbours: resolved\nduration: 10s",
        "bad.yaml:1:13: `neighbours`: expected one of `plan`, `resolve`, found `resolved`: did you mean `resolve`?",
    ),
    (
        "duration: 10s",
        "routes: [{ node: n0, to: default, via: n2 }]\nduration: 10s",
        "bad.yaml:1:40: `via`: `n2` is no neighbour of `n0`, which has `n1`",
    ),
    (
        "duration: 10s",
        "routes: [{ node: n0, to: 10.0.0.5/24, via: n1 }]\nduration: 10s",
        "bad.yaml:1:26: `to`: expected a prefix of at most 32 bits, and zeros behind it, such as `10.0.0.0/24`, found `10.0.0.5/24`",
    ),
    (
        "duration: 10s",
        "routes: [{ node: n0, to: n2, via: n1 }, { node: n0, to: n2, via: n1 }]\nduration: 10s",
        "bad.yaml:1:57: `to`: `n0` has a route to `n2` already",
    ),
    (
        "duration: 10s",
        "routing: { convergance: 2s }\nduration: 10s",
        "bad.yaml:1:12: unknown key `convergance` in `routing`: did you mean `convergence`? (allowed here: convergence)",
    ),
    (
        "delay: 1ms",
        "min_rto: 1ms",
        "bad.yaml:6:30: unknown key `min_rto` in `link` (allowed here: rate, delay, loss, jitter, reorder, duplicate, corrupt, queue, mtu, duplex, forward, backward)",
    ),
    (
        "at: 1s, ",
        "at: 1s, until: 5s, ",
        "bad.yaml:8:34: `until` needs `every`, which says how often it happens until then",
    ),
    (
        "at: 1s, ",
        "at: 1s, every: 1s, until: 1s, ",
        "bad.yaml:8:45: `until`: expected more than `at`, which is 1s",
    ),
    (
        "at: 1s, ",
        "at: 1s, every: 1ns, ",
        "bad.yaml:8:5: `every`: an event happens at most 10000000 times, this one more often",
    ),
    (
        "  chain:\n",
        "  nodes: [{ name: a, count: 2, position: [0, 0] }]\n  chain:\n",
        "bad.yaml:4:42: `position`: several nodes have several, and `count` makes several",
    ),
    (
        "  chain:\n",
        "  nodes: [{ name: n, count: 2 }]\n  chain:\n",
        "bad.yaml:6:5: the node name `n0` is taken already",
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
        "bad.yaml:10:43: there is no transport `tcp`: did you mean `tcp-cubic`, `tcp-bbr`, `tcp-reno` or `tcp-vegas`? (transports: ALL)",
    ),
    (
        "over: tcp-cubic",
        "over: bbr",
        "bad.yaml:10:43: there is no transport `bbr`: did you mean `tcp-bbr`, `split-bbr` or `quic-bbr`? (transports: ALL)",
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
    ("duration: 10s", "duration: 10s\nduration: 10s", "bad.yaml:2:1: the key `duration` is given twice"),
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
        "bad.yaml:10:33: `to`: `tcp-cubic` has one receiver; several are served by `btp` and `brtp` with a tree of their own, and by `udp`, `raw-ip`, `norm`, `nakack`, `pgm`, `disservice`, `fec` and `block-fec` with any delivery",
    ),
    ("to: n2", "to: [n2, n2]", "bad.yaml:10:38: `to`: `n2` is listed twice"),
    ("to: n2", "to: []", "bad.yaml:10:33: `to`: expected a node or a group, found an empty list"),
    (
        "over: tcp-cubic",
        "paths: 2, over: tcp-cubic",
        "bad.yaml:10:44: `paths`: `tcp-cubic` takes one route; several are taken by `btp`, `brtp` and `bats-proxy`",
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
        "bad.yaml:10:43: there is no transport `tcp-cubik`: did you mean `tcp-cubic`? (transports: ALL)",
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
        "bad.yaml:10:59: `app`: expected one of `cbr`, `bulk`, `file`, `messages`, `video`, `short-flows`, `iperf3`, `iperf2`, `nuttcp`, `ping`, `ffmpeg`, `copy`, `libnorm`, `openpgm`, `jgroups`, `uftp`, `udpcast`, found `blk`: did you mean `bulk`?",
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
        "bad.yaml:8:5: an event needs something to do: one of `rate`, `delay`, `jitter`, `loss`, `corrupt`, `duplicate`, `reorder`, `queue`, `mtu`, `down`, `up`, `start`, `stop`, `restart`, a `group` with `join` or `leave`, or a `service`",
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
        "bad.yaml:4:22: `between`: expected two nodes (more of them share a `medium`, or are joined by a `switch`), found 1",
    ),
    (
        "  chain:\n",
        "  links: [{ medium: [n0, n1], duplex: half }]\n  chain:\n",
        "bad.yaml:4:31: unknown key `duplex` in a medium (allowed here: name, prefix, medium, rate, delay, loss, jitter, reorder, duplicate, corrupt, queue, mtu, mac, pairs, hears)",
    ),
    (
        "  chain:\n",
        "  links: [{ name: w, switch: [n0, n1], mac: csma }]\n  chain:\n",
        "bad.yaml:4:40: unknown key `mac` in a switch (allowed here: name, prefix, switch, rate, delay, loss, jitter, reorder, duplicate, corrupt, queue, mtu, stations, pairs)",
    ),
    (
        "  chain:\n",
        "  links: [{ name: w, switch: [n0, n1], stations: { n2: { rate: 1 Mbit/s } } }]\n  chain:\n",
        "bad.yaml:4:52: `stations`: `n2` is no station of this switch",
    ),
    (
        "  chain:\n",
        "  links: [{ name: w, medium: [n0, n1], hears: [[n0]] }]\n  chain:\n",
        "bad.yaml:4:48: `hears`: expected two stations such as `[a, b]`, or one way `{ from: a, to: b }`, found a list",
    ),
    (
        "  chain:\n",
        "  links: [{ name: w, medium: [n0, n1], hears: [[n0, n1], { from: n1, to: n0 }] }]\n  chain:\n",
        "bad.yaml:4:58: `hears`: this pair is listed twice",
    ),
    (
        "  chain:\n",
        "  links: [{ name: w, medium: [n0, n1], hears: [[n0, n0]] }]\n  chain:\n",
        "bad.yaml:4:48: `hears`: `n0` hears itself anyway",
    ),
    (
        "  chain:\n",
        "  links: [{ name: w, medium: [n0, n1], rate: 1 Mbit/s, mac: { csma: { cts-time: 1ms } } }]\n  chain:\n",
        "bad.yaml:4:69: `rts-time` and `cts-time` need `rts`, such as `rts: 500 B`",
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
        "  switch: { nodes: 300, prefix: w }\n  chain:\n",
        "bad.yaml:4:11: a switch has at most 256 stations, this one 300",
    ),
    (
        "  chain:\n",
        "  switch: { nodes: 3, prefix: w, link: { switch: [n0, n1] } }\n  chain:\n",
        "bad.yaml:4:42: unknown key `switch` in `link` (allowed here: name, prefix, rate, delay, loss, jitter, reorder, \
         duplicate, corrupt, queue, mtu, stations, pairs)",
    ),
    (
        "  chain:\n",
        "  switch: { nodes: 3, prefix: w, link: { delai: 1ms } }\n  chain:\n",
        "bad.yaml:4:42: unknown key `delai` in `link`: did you mean `delay`? (allowed here: name, prefix, rate, delay, \
         loss, jitter, reorder, duplicate, corrupt, queue, mtu, stations, pairs)",
    ),
    (
        "  chain:\n",
        "  tree: { depth: 20, fanout: 10 }\n  chain:\n",
        "bad.yaml:4:9: a topology has at most 1000000 nodes, this tree has more",
    ),
    (
        "  chain:\n",
        "  tree: { depth: 2, fanout: [2, 3] }\n  chain:\n",
        "bad.yaml:4:18: `depth`: a list of `fanout` has a number for each level already",
    ),
    (
        "  chain:\n",
        "  grid: { rows: 10000, columns: 10000 }\n  chain:\n",
        "bad.yaml:4:9: a topology has at most 1000000 nodes, this grid has more",
    ),
    (
        "duration: 10s",
        "duration: 10s\nroles: { helpr: n1 }",
        "bad.yaml:2:10: unknown key `helpr` in `roles`: did you mean `helper`? (allowed here: helper, peer, proxy, relay)",
    ),
    (
        "duration: 10s",
        "duration: 10s\nroles: { helper: n9 }",
        "bad.yaml:2:18: `helper`: there is no node `n9`: did you mean `n0`?",
    ),
    ("duration: 10s", "duration: 10s\ncapture: [n0, n0]", "bad.yaml:2:15: `capture`: `n0` is listed twice"),
    (
        "duration: 10s",
        "duration: 10s\nsweep: { flows.blk.over: [udp] }",
        "bad.yaml:2:10: `flows` has no element `blk`: did you mean `bulk`? (its elements: bulk)",
    ),
    (
        "duration: 10s",
        "duration: 10s\nsweep: { flows.bulk.oevr: [udp] }",
        "bad.yaml:2:10: unknown key `oevr` in a flow: did you mean `over`? (allowed here: name, from, to, delivery, over, app, ip, paths)",
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
        "bad.yaml:2:1: unknown key `<<` in a scenario: YAML's merge key is not part of YAML 1.2; use an alias or `include` (allowed here: title, seed, duration, measure, topology, motion, neighbours, membership, routing, routes, events, services, groups, flows, exec, variants, roles, capture, sweep, repeats, published, reference, axis, measured, expected, source, quick, include, description, world, notes)",
    ),
    ("duration: 10s", "--- 1\n--- 2", "bad.yaml:2:1: expected one document, found a second one"),
    (
        "duration: 10s",
        "duration: 10s\nreference: { flows.f.over: udp }",
        "bad.yaml:2:14: `reference`: `flows.f.over` is not swept (swept here: nothing)",
    ),
    (
        "duration: 10s",
        "duration: 10s\nsweep: { seed: [1] }\naxis: flow",
        "bad.yaml:3:7: `axis`: `flow` is not swept (swept here: `seed`)",
    ),
    (
        "duration: 10s",
        "duration: 10s\nvariants: { unicast: udp }",
        "bad.yaml:2:13: a variant needs a name of its own: `unicast` is a delivery",
    ),
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
        "bad.yaml:2:47: `figures`: expected one of `goodput_mbps`, `sent_units`, `delivered_units`, `reliability`, `min_cut_fraction`, `payload_bound_fraction`, `completed_s`, `jitter_ms`, `network_bytes`, `sender_bytes`, `nacks_per_round`, `network_saving`, `sender_saving`, `time_saving`, `latency_ms.mean`, `latency_ms.p50`, `latency_ms.p95`, `latency_ms.p99`, `latency_ms.p99_9`, `latency_ms.max`, `round_trip_ms.mean`, `round_trip_ms.p50`, `round_trip_ms.p95`, `round_trip_ms.p99`, `round_trip_ms.p99_9`, `round_trip_ms.max`, found `goodput`: did you mean `goodput_mbps`?",
    ),
];

#[test]
fn each_mistake_is_told_where_it_is_and_what_to_write() {
    let plain = Overrides::default();
    let names: Vec<&str> = TRANSPORTS.iter().map(|row| row.name).collect();
    assert_eq!(error_of(GOOD, &plain), "no error");
    for (right, wrong, expected) in MISTAKES {
        assert!(GOOD.contains(right), "{right}");
        let expected = expected.replace("(transports: ALL)", &format!("(transports: {})", names.join(", ")));
        assert_eq!(error_of(&GOOD.replacen(right, wrong, 1), &plain), expected, "for {wrong:?}");
    }
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
fn a_message_is_one_line_whatever_the_file_holds() {
    let text = GOOD.replace("1ms", "\"1\\n\\u0007ms\"");
    let error = error_of(&text, &Overrides::default());
    assert!(!error.chars().any(char::is_control), "{error}");
    let long = GOOD.replace("1ms", &"x".repeat(100_000));
    assert!(error_of(&long, &Overrides::default()).len() < 3_000);
}
