//! Files of ships' tracks: each is read, or refused with one located line; a track that was read has a position at any
//! time, and who follows it one on its way. A payload of AIS is also tried behind a checksum that is right.
#![no_main]

use hopcast_core::{Duration, Instant};
use hopcast_radio::traces::{Format, Traces};
use hopcast_radio::{Position, Track};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, u64, &str)| {
    let (format, time, text) = input;
    let format = match format % 6 {
        0 => Format::Setdest,
        1 => Format::BonnMotion,
        2 => Format::Gpx,
        3 => Format::AisNmea,
        4 => Format::AisCsv,
        _ => return read(Format::AisNmea, time, &sentence(text)),
    };
    read(format, time, text);
});

fn read(format: Format, time: u64, text: &str) {
    match Traces::read(format, "file", text) {
        Ok(traces) => {
            assert!(!traces.tracks.is_empty());
            traces.tracks.values().for_each(|track| check(track, Instant::from_nanos(time)));
        }
        Err(mistake) => {
            let mistake = mistake.to_string();
            assert!(mistake.starts_with("file:") && !mistake.contains('\n'), "{mistake}");
        }
    }
}

/// `payload` in a sentence with a time.
fn sentence(payload: &str) -> String {
    let body = format!("AIVDM,1,1,,A,{payload},0");
    let sum = body.bytes().fold(0, |sum, byte| sum ^ byte);
    format!("!{body}*{sum:02X},1700000000")
}

fn check(track: &Track, now: Instant) {
    let way = track.odometer(now);
    assert!(way >= 0.0 && way.is_finite());
    assert!(track.odometer(now + Duration::from_secs(1)) >= way, "a ship's way only grows");
    for fix in [track.at(now), track.behind(now, way / 2.0), track.behind(now, way + 1.0)] {
        let valid = match fix.position {
            Position::Plane { x, y } => Position::metres(x, y),
            Position::Globe { latitude, longitude } => Position::degrees(latitude, longitude),
        };
        assert_eq!(valid, Ok(fix.position));
        assert!((0.0..360.0).contains(&fix.heading) && fix.speed >= 0.0, "{fix:?}");
    }
}
