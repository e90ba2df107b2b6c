//! GPX.

use super::*;

const TWO: &str = r#"<?xml version="1.0"?>
<gpx version="1.1" creator="test" xmlns="http://www.topografix.com/GPX/1/1">
  <wpt lat="1" lon="1"/>
  <trk><name> Anna </name><trkseg>
    <trkpt lat="50" lon="179.9"><ele>2</ele><time>2024-01-01T00:00:10Z</time></trkpt>
    <trkpt lat="50" lon="-179.9"><time>2024-01-01T00:01:50+00:00</time></trkpt>
  </trkseg></trk>
  <trk><trkseg>
    <trkpt lat="-90" lon="0"><time>2024-01-01T01:00:00.5+01:00</time></trkpt>
  </trkseg></trk>
  <trk><name>empty</name></trk>
</gpx>"#;

#[test]
fn a_track_is_a_ship_from_the_first_point_of_the_file_on() {
    let traces = read(Format::Gpx, TWO);
    assert_eq!((names(&traces), traces.ignored), (vec!["Anna", "track 2"], 1));
    assert_eq!(traces.tracks["track 2"].begins(), Instant::ZERO);
    assert_eq!(traces.tracks["Anna"].begins(), seconds(9.5));
    let middle = at(&traces, "Anna", 59.5);
    near(middle, globe(50.0, 180.0), 20.0);
    near(at(&traces, "track 2", 0.0), globe(-90.0, 0.0), 0.0);
}

#[test]
fn mistakes_have_their_place() {
    let point = |point: &str| format!("<gpx>\n<trk><trkseg>\n  {point}</trkseg></trk></gpx>");
    for (text, expected) in [
        ("<gpx>".to_owned(), "file:1:1: this is not valid XML: "),
        ("<kml/>".to_owned(), "file:1:1: expected a GPX file, which begins with `<gpx>`, found `<kml>`"),
        (point("<trkpt lat='1'/>"), "file:3:3: expected `<trkpt>` to have `lon`"),
        (point("<trkpt lat='x' lon='1'/>"), "file:3:3: expected degrees in `lat`, found `x`"),
        (
            point("<trkpt lat='91' lon='1'/>"),
            "file:3:3: expected a latitude from -90 to 90 degrees, found 91",
        ),
        (
            point("<trkpt lat='1' lon='1'/>"),
            "file:3:3: expected `<trkpt>` to have a `<time>`: without it there is no motion",
        ),
        (point("<trkpt lat='1' lon='1'><time>noon</time></trkpt>"), "file:3:3: expected a time in UTC like "),
        (
            TWO.replace("00:01:50", "00:00:09"),
            "file:6:5: expected a time that is not before the one before it",
        ),
        (
            TWO.replace("<trk><trkseg>", "<trk><name>Anna</name><trkseg>"),
            "file:8:3: expected tracks of different names, found a second `Anna`",
        ),
    ] {
        let error = error(Format::Gpx, &text);
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn entities_do_not_multiply() {
    let bomb =
        "<!DOCTYPE gpx [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;\">]><gpx>&b;</gpx>";
    assert!(error(Format::Gpx, bomb).contains("not valid XML"));
}
