//! AIS as a table.

use super::*;

#[test]
fn tables_of_two_coast_guards_are_read() {
    let us = "MMSI,BaseDateTime,LAT,LON,SOG,COG,Heading,VesselName\n\
              366940480,2022-01-01T00:00:10,29.5,-90.25,0.0,0.0,90.0,\"TUG, JOHN\"\n\
              366940480,2022-01-01T00:00:00,29.4,-90.25,0.0,0.0,511.0,\"TUG, JOHN\"\n\
              366940481,2022-01-01T00:00:04,91.0,181.0,0.0,0.0,,\n\
              366940482,2022-01-01T00:00:04,,,0.0,0.0,,\n";
    let traces = read(Format::AisCsv, us);
    assert_eq!((names(&traces), traces.ignored), (vec!["366940480"], 2));
    near(at(&traces, "366940480", 5.0), globe(29.45, -90.25), 1.0);
    assert_eq!(traces.tracks["366940480"].at(seconds(10.0)).heading, 90.0);

    let danish = "# Timestamp,Type of mobile,MMSI,Latitude,Longitude,Heading\r\n\
                  31/12/2023 23:59:50,Class A,219000001,55.5,12.5,\r\n\
                  01/01/2024 00:00:00,Class A,219000001,55.6,12.5,180\r\n\
                  01/01/2024 00:00:00,Class A,219000001,55.7,12.5,180\r\n";
    let traces = read(Format::AisCsv, &format!("\u{feff}{danish}"));
    // Of two reports at one time the last counts: a ship does not jump.
    assert_eq!(traces.tracks["219000001"].waypoints(), 2);
    near(at(&traces, "219000001", 10.0), globe(55.7, 12.5), 1e-6);
}

#[test]
fn mistakes_have_their_place() {
    let row = |row: &str| format!("time,mmsi,lat,lon\n0,1,2,3\n{row}\n");
    for (text, expected) in [
        (
            "mmsi,lat,lon".to_owned(),
            "file:1:1: expected a column `basedatetime` or `timestamp` or `time`, found none",
        ),
        (row("0,x,2,3"), "file:3:1: expected an MMSI, found `x`"),
        (row("0,1,x,3"), "file:3:1: expected degrees, found `x`"),
        (row("0,1,2,NaN"), "file:3:1: expected a longitude from -180 to 180 degrees, found NaN"),
        (row("0,1,2,195"), "file:3:1: expected a longitude from -180 to 180 degrees, found 195"),
        (row("noon,1,2,3"), "file:3:1: expected a time in UTC like "),
        (row("0,1,2"), "file:3:1: CSV error: record 2 "),
        ("time,mmsi,lat,lon\n".to_owned(), "file: expected the positions of at least one ship, found none"),
    ] {
        let error = error(Format::AisCsv, &text);
        assert!(error.starts_with(expected), "{error}\n{expected}");
    }
}
