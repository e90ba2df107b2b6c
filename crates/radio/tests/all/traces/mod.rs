//! Tracks from files: what each format means, and what is said of mistakes.
#![allow(clippy::unwrap_used, reason = "a test may panic, in its helpers too")]

mod ais_csv;
mod ais_nmea;
mod bonnmotion;
mod gpx;
mod setdest;

use crate::common::*;
use hopcast_core::Instant;
use hopcast_radio::Position;
use hopcast_radio::traces::{Format, Traces};
use proptest::prelude::*;

const FORMATS: [Format; 5] =
    [Format::Setdest, Format::BonnMotion, Format::Gpx, Format::AisNmea, Format::AisCsv];

fn read(format: Format, text: &str) -> Traces {
    Traces::read(format, "file", text).unwrap_or_else(|error| panic!("{error}"))
}

fn error(format: Format, text: &str) -> String {
    Traces::read(format, "file", text).unwrap_err().to_string()
}

/// The position of a ship at a time in seconds.
fn at(traces: &Traces, ship: &str, time: f64) -> Position {
    traces.tracks[ship].at(seconds(time)).position
}

fn names(traces: &Traces) -> Vec<&str> {
    traces.tracks.keys().map(String::as_str).collect()
}

/// Pieces that files of all formats are made of, and others.
fn pieces() -> impl Strategy<Value = String> {
    let words = vec![
        "$node_(1)",
        "set",
        "X_",
        "Y_",
        "$ns_ at",
        "setdest",
        "\"",
        "1",
        "-0",
        "1e9",
        "1e-308",
        "nan",
        "91",
        "\n",
        " ",
        "<gpx>",
        "<trk>",
        "<trkseg>",
        "<trkpt lat='1' lon='2'>",
        "<time>",
        "2024-01-01T00:00:00Z",
        "</time>",
        "</trkpt>",
        "</trkseg>",
        "</trk>",
        "</gpx>",
        "!AIVDM,1,1,,A,15RTgt0PAso;90TKcjM8h6g208CQ,0*4A",
        "\\c:5*6C\\",
        ",",
        "*",
        "!",
        "time,mmsi,lat,lon\n",
        "é",
        "\0",
        "\r\n",
        "0,1,2,3\n",
        "#",
    ];
    let piece = prop_oneof![6 => prop::sample::select(words).prop_map(str::to_owned), 1 => ".{0,3}"];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_text_is_tracks_or_one_located_line(text in pieces(), time in 0u64..) {
        for format in FORMATS {
            match Traces::read(format, "file", &text) {
                Ok(traces) => for track in traces.tracks.values() {
                    let fix = track.at(Instant::from_nanos(time));
                    let (first, second) = coordinates(fix.position);
                    prop_assert!(first.is_finite() && second.is_finite() && (0.0..360.0).contains(&fix.heading));
                    prop_assert!(fix.speed >= 0.0);
                },
                Err(error) => {
                    let error = error.to_string();
                    prop_assert!(error.starts_with("file:") && !error.contains('\n'), "{error}");
                }
            }
        }
    }
}
