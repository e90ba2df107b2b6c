//! Movements for ns-2.

use super::*;

const MOVEMENTS: &str = "\
# nodes: 2, max time: 100
$node_(0) set X_ 100.0
$node_(0) set Y_ 200.0
$node_(0) set Z_ 0.000000000000
$node_(12) set X_ 0
$node_(12) set Y_ 0
$god_ set-dist 0 12 1
$ns_ at 10.0 \"$node_(0) setdest 300.0 200.0 5.0\"
$ns_ at 20.0 \"$god_ set-dist 0 12 2\"
$ns_ at 30.0 \"$node_(0) setdest 200.0 600.0 10.0\"
$ns_ at 90.0 \"$node_(0) setdest 0.0 600.0 0.0\"
$ns_ at 95.0 \"$node_(0) set X_ 0.0\"
";

#[test]
fn a_node_leaves_at_its_time_and_is_turned_on_the_way() {
    let traces = read(Format::Setdest, MOVEMENTS);
    assert_eq!(names(&traces), ["0", "12"]);
    near(at(&traces, "0", 10.0), plane(100.0, 200.0), 1e-6);
    near(at(&traces, "0", 20.0), plane(150.0, 200.0), 1e-6);
    // At (200, 200) it is given another destination: straight north, 40 s long.
    near(at(&traces, "0", 50.0), plane(200.0, 400.0), 1e-6);
    near(at(&traces, "0", 70.0), plane(200.0, 600.0), 1e-6);
    // It waits there, is told to stop, and jumps.
    near(at(&traces, "0", 94.9), plane(200.0, 600.0), 1e-6);
    near(at(&traces, "0", 95.0), plane(0.0, 600.0), 1e-6);
    near(at(&traces, "12", 1e9), plane(0.0, 0.0), 0.0);
}

#[test]
fn positions_at_the_start_may_stand_at_the_end() {
    let mut lines: Vec<&str> = MOVEMENTS.lines().collect();
    lines.reverse();
    let traces = read(Format::Setdest, &lines.join("\r\n"));
    assert_eq!(traces, read(Format::Setdest, MOVEMENTS));
}

#[test]
fn a_node_that_is_stopped_on_the_way_stays_there() {
    let text = "$node_(1) set X_ 0\n$node_(1) set Y_ 0\n$ns_ at 0 \"$node_(1) setdest 100 0 1\"\n\
                $ns_ at 40 \"$node_(1) setdest 500 0 0\"\n";
    near(at(&read(Format::Setdest, text), "1", 1e3), plane(40.0, 0.0), 1e-6);
    // So slow that it does not arrive before time ends.
    let slow = "$node_(1) set X_ 0\n$node_(1) set Y_ 0\n$ns at 5 \"$node_(1) setdest 1e9 0 1e-300\"";
    near(at(&read(Format::Setdest, slow), "1", 1e9), plane(0.0, 0.0), 1e-6);
}

#[test]
fn mistakes_have_their_place() {
    for (text, expected) in [
        ("", "file: expected the positions of at least one ship, found none"),
        ("\n hello", "file:2:2: expected `$node_(N)`, `$ns_ at`, `$god_` or `#`, found `hello`"),
        (
            "$node_(x) set X_ 1",
            "file:1:1: expected `$node_(N)`, `$ns_ at`, `$god_` or `#`, found `$node_(x)`",
        ),
        ("$node_(1) set X_ 1", "file:1:1: node 1 is never given both `X_` and `Y_`"),
        ("$node_(1) set X_ inf", "file:1:18: expected metres, found `inf`"),
        (
            "$node_(1) set X_ 1e30",
            "file:1:18: expected metres from -4e10 to 4e10, found 1000000000000000000000000000000",
        ),
        (
            "$ns_ at 1 \"$node_(1) setdest 1 5e10 1\"",
            "file:1:32: expected metres from -4e10 to 4e10, found 50000000000",
        ),
        ("$node_(1) set W_ 1", "file:1:15: expected `X_`, `Y_` or `Z_`, found `W_`"),
        ("$node_(1) go", "file:1:11: expected `set` or `setdest`, found `go`"),
        (
            "$ns_ at -1 \"$node_(1) setdest 1 1 1\"",
            "file:1:9: expected a time in seconds from 0 to 1e10, found `-1`",
        ),
        ("$ns_ at 1 \"$node_(1) setdest 1 1\"", "file:1:34: expected a speed, found the end of the line"),
        (
            "$ns_ at 1 \"$node_(1) setdest 1 1 -1\"",
            "file:1:34: expected a speed of at least 0 m/s, found `-1`",
        ),
        (
            "$ns_ at 1 \"$node_(1) setdest 1 1 1\"",
            "file:1:22: expected the node's `X_` and `Y_` to be set before it sails",
        ),
        ("$node_(1) set X_ 1 2", "file:1:20: expected the end of the statement, found `2`"),
        ("$ns_ in 1", "file:1:6: expected `at`, found `in`"),
    ] {
        assert_eq!(error(Format::Setdest, text), expected);
    }
}

proptest! {
    /// The track is compared with a replay of the statements up to each time.
    #[test]
    fn a_node_is_where_a_replay_has_it(
        steps in prop::collection::vec((0.0..30.0, -100.0..100.0, -100.0..100.0, prop_oneof![Just(0.0), 0.1..20.0]), 1..12),
        times in prop::collection::vec(0.0..400.0, 8),
    ) {
        let mut text = "$node_(7) set X_ 3\n$node_(7) set Y_ 4\n".to_owned();
        let mut now = 0.0;
        let mut orders = Vec::new();
        for (wait, x, y, speed) in steps {
            now += wait;
            text += &format!("$ns_ at {now} \"$node_(7) setdest {x} {y} {speed}\"\n");
            orders.push((now, x, y, speed));
        }
        let traces = read(Format::Setdest, &text);
        for time in times {
            let (mut here, mut since, mut goal) = ((3.0, 4.0), 0.0, (3.0, 4.0, 0.0));
            let sail = |(x, y): (f64, f64), (to_x, to_y, speed): (f64, f64, f64), span: f64| {
                let way = f64::hypot(to_x - x, to_y - y);
                let share = if way == 0.0 { 0.0 } else { (span * speed / way).min(1.0) };
                (x + (to_x - x) * share, y + (to_y - y) * share)
            };
            for &(when, x, y, speed) in orders.iter().filter(|order| order.0 <= time) {
                here = sail(here, goal, when - since);
                (since, goal) = (when, (x, y, speed));
            }
            let (x, y) = sail(here, goal, time - since);
            let found = at(&traces, "7", time);
            prop_assert!(found.to(&plane(x, y)).unwrap().metres < 1e-4, "{found} for ({x}, {y}) at {time}");
        }
    }
}
