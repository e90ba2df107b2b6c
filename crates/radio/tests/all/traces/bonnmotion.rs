//! BonnMotion's own format.

use super::*;

#[test]
fn a_line_is_a_node() {
    let traces = read(Format::BonnMotion, "# two nodes\n0 0 0 10 100 0\n\n5.5 7 8\n");
    assert_eq!(names(&traces), ["0", "1"]);
    near(at(&traces, "0", 2.5), plane(25.0, 0.0), 1e-9);
    near(at(&traces, "1", 0.0), plane(7.0, 8.0), 0.0);
    assert_eq!(traces.tracks["1"].begins(), seconds(5.5));
    // A trace that ends: the ship stands still there.
    near(at(&traces, "0", 1e9), plane(100.0, 0.0), 0.0);
}

#[test]
fn mistakes_have_their_place() {
    for (text, expected) in [
        ("0 0 0 1 1", "file:1:10: expected a time, x and y of each waypoint, found the end of the line"),
        ("0 0 0 ä 1 1", "file:1:7: expected a time in seconds from 0 to 1e10, found `ä`"),
        ("5 0 0 4 1 1", "file:1:7: expected a time that is not before the one before it"),
        ("0 0 0\n0 NaN 1", "file:2:3: expected metres, found `NaN`"),
        ("0 0 0 1 5 4.1e10", "file:1:11: expected metres from -4e10 to 4e10, found 41000000000"),
        ("# nobody", "file: expected the positions of at least one ship, found none"),
    ] {
        assert_eq!(error(Format::BonnMotion, text), expected);
    }
}

#[test]
fn a_million_waypoints_are_read() {
    let mut text = String::new();
    for n in 0..1_000_000 {
        text += &format!("{n} {} 0 ", n % 1000);
    }
    let traces = read(Format::BonnMotion, &text);
    assert_eq!(traces.tracks["0"].waypoints(), 1_000_000);
    near(at(&traces, "0", 999_998.5), plane(998.5, 0.0), 1e-6);
}
