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
fn work_and_memory_do_not_grow_with_the_square_of_the_text() {
    let many = |n: usize, one: &dyn Fn(usize) -> String| (0..n).map(one).collect::<String>();
    // Each attribute is compared with all before it; a `>` in quotes does not end the tag.
    let attributes = format!("<gpx>\n <trk{}/></gpx>", many(100_000, &|n| format!(" a{n}='>'")));
    // Each child has a copy of all prefixes of its parent.
    let prefixes = many(2_000, &|n| format!(" xmlns:p{n}='u'"));
    let children = format!("<gpx\n{}>{}</gpx>", prefixes, "<a xmlns='u'/>".repeat(100_000));
    // Spread over elements, so that none has many attributes.
    let nested = many(2_000, &|n| format!("<a xmlns:p{n}='u'>"));
    let spread = format!("<gpx>{nested}{}</gpx>", "</a>".repeat(2_000));
    let long = format!("<gpx xmlns:p = '{}'/>", "u".repeat(1001));
    for (text, expected) in [
        (&attributes, "file:2:2: expected at most 100 attributes of an element, found more"),
        (&children, "file:1:1: expected at most 100 attributes of an element, found more"),
        (&spread, "file:1:1087: expected at most 64 prefixes of namespaces, found more"),
        (&long, "file:1:6: expected a namespace of at most 1000 bytes, found more"),
    ] {
        assert_eq!(error(Format::Gpx, text), expected);
    }
    // Equal signs outside of attributes do not count, nor does a prefix that is declared again.
    let equal = format!("<!-- {0} --><trk name='{0}'>{0}</trk>", "=".repeat(1_000));
    let again = TWO.replace("<trkpt", "<trkpt xmlns:p='u'").replace("<wpt", &format!("{equal}<wpt"));
    assert_eq!(read(Format::Gpx, &again).tracks.len(), 2);
}

#[test]
fn entities_do_not_multiply() {
    let bomb =
        "<!DOCTYPE gpx [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;\">]><gpx>&b;</gpx>";
    assert!(error(Format::Gpx, bomb).contains("not valid XML"));
}
