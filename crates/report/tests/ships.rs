//! Maps of ships: a picture for each moment, in one frame, whatever the document says.

#![allow(clippy::unwrap_used)] // in what the tests share

#[path = "fixture/fleet.rs"]
mod fleet;

use hopcast_report::{Plot, Topology, html, plots, write_run_directory};
use hopcast_twin::results::{Document, FlowRoute, Run, ShipLink, ShipMap, ShipMoment, ShipTrack, Summary};
use serde_json::{Value, json};

const EVIL: &str = "</text><script>alert(1)</script>\"'&{{manifest}}";

fn pictures(map: ShipMap) -> Vec<Plot> {
    plots(&fleet::document(map), &Topology::default())
}

fn page(document: &Document) -> String {
    html::render(document, &Topology::default(), &Value::Null)
}

/// The first value of an attribute.
fn attribute<'s>(svg: &'s str, name: &str) -> &'s str {
    svg.split_once(&format!(" {name}=\"")).unwrap().1.split_once('"').unwrap().0
}

/// The contents of the text elements.
fn texts(svg: &str) -> Vec<&str> {
    let texts = svg.split("<text ").skip(1).filter_map(|text| text.split_once('>'));
    texts.filter_map(|(_, text)| Some(text.split_once("</text>")?.0.trim())).collect()
}

/// The lines with this class, each as its points.
fn lines(svg: &str, class: &str) -> Vec<Vec<(f64, f64)>> {
    let all = svg.split("<polyline ").skip(1).filter_map(|line| line.split_once('>'));
    let own = all.filter(|(line, _)| line.contains(&format!("class=\"{class}\"")));
    let points = own.map(|(line, _)| line.split_once("points=\"").unwrap().1.split('"').next().unwrap());
    let point = |point: &str| {
        let (x, y) = point.split_once(',').unwrap();
        (x.parse().unwrap(), y.parse().unwrap())
    };
    points.map(|points| points.split_whitespace().map(point).collect()).collect()
}

#[test]
fn each_moment_has_a_picture_in_the_same_frame() {
    let pictures = pictures(fleet::map(10, 5, false));
    let stems: Vec<&str> = pictures.iter().map(|plot| plot.file_stem.as_str()).collect();
    let expected =
        ["001-map-radio-0000s", "002-map-radio-0015s", "003-map-radio-0030s", "004-map-radio-0045s"];
    assert_eq!(stems[..4], expected);
    assert_eq!(stems[4..], ["005-map-radio-0060s", "006-hops-radio"]);
    let frames: Vec<String> = pictures[..5].iter().map(Plot::standalone).collect();
    for (frame, time) in frames.iter().zip(["0 s", "15 s", "30 s", "45 s", "60 s"]) {
        assert_eq!(attribute(frame, "viewBox"), attribute(&frames[0], "viewBox"));
        assert_eq!(lines(frame, "l-grid")[0], lines(&frames[0], "l-grid")[0]);
        assert_eq!(texts(frame)[0], format!("radio at {time}"));
        assert!(frame.contains(&format!("<title>The ships of radio at {time}: ")));
        // The ship that stands still is at one place of all frames.
        let still = |frame: &str| texts(frame).iter().filter(|text| text.starts_with("ship1 · 12")).count();
        assert_eq!(still(frame), 1);
    }
    assert!(pictures[0].caption.contains(" bulk: ship0, "), "{}", pictures[0].caption);
}

#[test]
fn a_moment_between_two_seconds_has_a_short_name() {
    let mut map = fleet::map(3, 3, false);
    map.moments[1].at_s = 10.0 / 6.0;
    let pictures = pictures(map);
    assert_eq!(pictures[1].file_stem, "002-map-radio-0001-7s");
    assert_eq!(texts(&pictures[1].standalone())[0], "radio at 1.667 s");
}

#[test]
fn a_metre_is_as_long_to_the_north_as_to_the_east() {
    let points = |x, y| vec![[0.0, 0.0, 0.0, 0.0], [1.0, x, y, 0.0], [9.0, x, y, 0.0]];
    let ship = |points| ShipTrack { node: "a".into(), antennas: 6, points };
    let ships = vec![ship(points(5000.0, 0.0)), ship(points(0.0, 5000.0))];
    let moment = ShipMoment { at_s: 5.0, ..ShipMoment::default() };
    let map = ShipMap { ships, moments: vec![moment], ..ShipMap::default() };
    let picture = pictures(map)[0].standalone();
    let tracks: Vec<_> = lines(&picture, "l-muted").into_iter().filter(|line| line.len() >= 2).collect();
    let length = |line: &[(f64, f64)]| {
        let (from, to) = (line[0], line[line.len() - 1]);
        (to.0 - from.0).hypot(to.1 - from.1)
    };
    // The frame of the map comes first, with five corners.
    let lengths: Vec<f64> = tracks.iter().filter(|line| line.len() != 5).map(|line| length(line)).collect();
    assert!(lengths[0] > 1000.0 && (lengths[0] - lengths[1]).abs() < 10.0, "{lengths:?}");
}

#[test]
fn a_fleet_across_the_date_line_is_not_drawn_across_the_world() {
    let pictures = pictures(fleet::map(30, 3, true));
    let picture = pictures[1].standalone();
    let ticks = texts(&picture);
    assert!(ticks.contains(&"180°"), "{ticks:?}");
    assert!(ticks.iter().any(|tick| tick.ends_with("° E")) && ticks.iter().any(|tick| tick.ends_with("° W")));
    let width: f64 = attribute(&picture, "width").parse().unwrap();
    for class in ["l-muted", "l-u0", "l-u4"] {
        for line in lines(&picture, class).iter().filter(|line| line.len() != 5) {
            let east = line.iter().map(|point| point.0);
            let (low, high) = east.fold((f64::MAX, f64::MIN), |(low, high), x| (low.min(x), high.max(x)));
            assert!(high - low < width * 10.0 / 2.0, "{class}: {line:?}");
        }
    }
}

#[test]
fn the_page_has_all_moments_behind_one_choice_and_the_hops_once() {
    let page = page(&fleet::document(fleet::map(10, 5, false)));
    assert!(page.contains("<section id=\"ships\">"));
    assert_eq!(page.matches("<figure data-time=\"").count(), 5);
    assert_eq!(page.matches("<select data-key=\"time\"").count(), 1);
    assert!(page.contains("<figcaption>Hops of the flows"));
    assert!(!html::render(&Document::default(), &Topology::default(), &Value::Null).contains("id=\"ships\""));
}

#[test]
fn the_first_repeat_of_each_case_that_has_a_map_is_drawn() {
    let parameters = |loss: u32| json!({ "links.loss": loss }).as_object().cloned().unwrap();
    let run = |loss, repeat, maps| Run { parameters: parameters(loss), repeat, maps, ..Run::default() };
    let map = |link: &str| ShipMap { link: link.into(), ..fleet::map(3, 2, false) };
    let runs = vec![
        run(1, 0, vec![]),
        run(1, 1, vec![map("one")]),
        run(2, 0, vec![map("two")]),
        run(2, 1, vec![map("three")]),
    ];
    let row = |loss| Summary { parameters: parameters(loss), flow: "f".into(), ..Summary::default() };
    let document = Document { runs, summary: vec![row(1), row(2)], ..Document::default() };
    let plots = plots(&document, &Topology::default());
    let stems: Vec<&str> = plots.iter().map(|plot| &plot.file_stem[4..]).collect();
    let maps: Vec<&&str> = stems.iter().filter(|stem| stem.starts_with("map-")).collect();
    assert_eq!(
        maps,
        [&"map-one-loss-1-0000s", &"map-one-loss-1-0060s", &"map-two-loss-2-0000s", &"map-two-loss-2-0060s"]
    );
}

#[test]
fn names_are_only_ever_text() {
    let mut map = fleet::map(6, 2, false);
    map.link = EVIL.into();
    map.ships[0].node = EVIL.into();
    for way in map.moments.iter_mut().flat_map(|moment| &mut moment.routes) {
        way.flow = EVIL.into();
    }
    let document = fleet::document(map);
    let page = page(&document);
    assert!(!page.contains("<script>alert"));
    assert!(page.contains("&lt;script&gt;alert(1)"));
    for plot in plots(&document, &Topology::default()) {
        assert!(!plot.standalone().contains("<script"), "{}", plot.file_stem);
        assert!(plot.file_stem.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'), "{}", plot.file_stem);
    }
}

#[test]
fn no_document_can_do_harm() {
    let odd =
        [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, -1e300, 1e9, -0.0, 90.0, 180.0, 540.0, 1e-300];
    let base = || fleet::map(4, 2, false);
    let mut maps = vec![ShipMap::default()];
    let mut change = |change: &dyn Fn(&mut ShipMap)| {
        for degrees in [false, true] {
            let mut map = ShipMap { degrees, ..base() };
            change(&mut map);
            maps.push(map);
        }
    };
    change(&|map| map.ships.clear());
    change(&|map| map.moments.clear());
    change(&|map| map.rates_mbps.clear());
    change(&|map| map.ships.truncate(1));
    change(&|map| map.ships.iter_mut().for_each(|ship| ship.points.clear()));
    change(&|map| map.ships.iter_mut().for_each(|ship| ship.points.reverse()));
    change(&|map| map.moments.iter_mut().for_each(|moment| moment.links.clear()));
    change(&|map| map.moments[0].links.push(ShipLink { ships: [0, usize::MAX], ..ShipLink::default() }));
    change(&|map| map.moments[0].links.push(ShipLink { ships: [1, 1], ..ShipLink::default() }));
    for ships in
        [vec![], vec![usize::MAX], vec![0, 99, 1], vec![1; 5], (0..9999).map(|turn| turn % 4).collect()]
    {
        for arrives in [false, true] {
            let way = FlowRoute { flow: String::new(), ships: ships.clone(), arrives };
            change(&|map| map.moments[1].routes.push(way.clone()));
        }
    }
    for odd in odd {
        change(&|map| map.moments[0].at_s = odd);
        change(&|map| map.rates_mbps = vec![odd, 5.0, odd]);
        change(&|map| map.moments[0].links.push(ShipLink { ships: [0, 1], signal_dbm: odd, rate_mbps: odd }));
        for place in 0..4 {
            change(&|map| map.ships[0].points[30][place] = odd);
            change(&|map| map.ships[0].points.iter_mut().for_each(|point| point[place] = odd));
            change(&|map| map.ships.iter_mut().for_each(|ship| ship.points = vec![[odd; 4]; 3]));
        }
    }
    for map in maps {
        let document = fleet::document(map.clone());
        for plot in plots(&document, &Topology::default()) {
            let svg = plot.standalone();
            assert!(!svg.contains("NaN") && !svg.contains("inf "), "{map:?}: {svg}");
            // Nothing is drawn far away from the picture, where a viewer would not find it.
            let frame: f64 = attribute(&svg, "width").parse::<f64>().unwrap() * 10.0;
            for class in ["l-muted", "l-grid", "l-u0", "l-u4", "l-text"] {
                let far = |point: &(f64, f64)| point.0.abs() > 2.0 * frame || point.1.abs() > 20.0 * frame;
                assert!(!lines(&svg, class).iter().flatten().any(far), "{}: {class}", plot.file_stem);
            }
        }
        page(&document);
    }
}

#[test]
fn a_large_fleet_over_many_moments_is_bounded() {
    let map = fleet::map(200, 61, false);
    let mut document = fleet::document(map);
    let last = document.runs[0].maps[0].moments.last().cloned().unwrap();
    let moment = |at: u32| ShipMoment { at_s: 60.0 + f64::from(at), ..last.clone() };
    document.runs[0].maps[0].moments.extend((1..=60).map(moment));
    let page = page(&document);
    assert!(page.len() < 6 << 20, "{}", page.len());
    // The first, the last, and a remark on the others.
    for time in ["0 s", "120 s"] {
        assert!(page.contains(&format!("<figure data-time=\"{time}\">")), "{time}");
    }
    assert!(
        page.contains("Of 122 pictures of this kind, 61 are drawn: a selection of the moments"),
        "remark"
    );
    let plots = plots(&document, &Topology::default());
    assert_eq!(plots.len(), 61);
    assert!(plots.iter().all(|plot| plot.standalone().len() < 1 << 20));
    // Of so many ships those have names at which ways begin and end.
    let names =
        |plot: &Plot| texts(&plot.standalone()).iter().filter(|text| text.starts_with("ship")).count();
    assert!((1..10).contains(&names(&plots[0])), "{}", names(&plots[0]));
}

#[test]
fn too_many_of_everything_are_left_out() {
    let mut map = fleet::map(40, 2, false);
    map.ships = (0..4000).map(|number| map.ships[number % 40].clone()).collect();
    let link = |number: usize| ShipLink { ships: [number % 900, number / 900], ..ShipLink::default() };
    map.moments[0].links = (0..20_000).map(link).collect();
    let way = |number: usize| FlowRoute {
        flow: format!("flow {number}"),
        ships: vec![number % 40, number % 39, number % 38],
        arrives: true,
    };
    map.moments[0].routes = (0..2000).map(way).collect();
    let moment =
        |number: u32| ShipMoment { at_s: number.into(), routes: vec![way(9999)], ..ShipMoment::default() };
    map.moments.extend((100..20_000).map(moment));
    map.rates_mbps = (1..5000).map(f64::from).collect();
    let document = fleet::document(map);
    let plots = plots(&document, &Topology::default());
    assert_eq!(plots.len(), 61);
    for plot in &plots {
        let size = plot.standalone().len();
        assert!(size < 2 << 20, "{}: {size}", plot.file_stem);
    }
    assert!(
        plots[0].caption.contains("The 3000 links of the highest rates are drawn"),
        "{}",
        plots[0].caption
    );
    assert!(plots[0].caption.contains("Not drawn: 3,000 further ships."));
    assert!(
        plots[60].caption.contains("The first 24 flows and receivers are drawn."),
        "{}",
        plots[60].caption
    );
    assert!(page(&document).len() < 8 << 20);
}

#[test]
fn the_run_directory_has_the_pictures_of_the_page() {
    let dir = tempfile::tempdir().unwrap();
    let document = fleet::document(fleet::map(10, 2, true));
    write_run_directory(dir.path(), &document, &Topology::default(), json!({})).unwrap();
    for name in ["001-map-radio-0000s", "002-map-radio-0060s", "003-hops-radio"] {
        let svg = std::fs::read_to_string(dir.path().join(format!("plots/{name}.svg"))).unwrap();
        assert!(svg.starts_with("<?xml") && svg.ends_with("</svg>\n"), "{name}");
    }
    let read = hopcast_report::read_run_directory(dir.path()).unwrap();
    assert_eq!(read.document.runs[0].maps, document.runs[0].maps);
}
