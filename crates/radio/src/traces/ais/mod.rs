//! AIS: reports of ships about themselves.

pub(super) mod nmea;
mod payload;
pub(super) mod table;

use std::collections::BTreeMap;

use super::Traces;
use super::utc::{Utc, since};
use crate::position::Position;
use crate::track::{Track, Waypoint};

/// A position report.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Report {
    mmsi: u32,
    position: Position,
    /// True heading in degrees; `None` if the ship does not know it.
    heading: Option<f64>,
}

/// The reports of a file, by ship.
#[derive(Default)]
struct Reports {
    ships: BTreeMap<u32, Vec<(Utc, Report)>>,
    ignored: u64,
}

impl Reports {
    fn add(&mut self, at: Utc, report: Report) {
        self.ships.entry(report.mmsi).or_default().push((at, report));
    }

    /// The tracks, from the earliest report of all on. Receivers hear ships in any order, so reports are sorted; of
    /// several of a ship at one time the last in the file counts, since a ship does not jump.
    fn tracks(self) -> Traces {
        let zero = self.ships.values().flatten().map(|&(at, _)| at).min().unwrap_or(0);
        let mut traces = Traces { ignored: self.ignored, ..Traces::default() };
        for (mmsi, mut reports) in self.ships {
            reports.sort_by_key(|&(at, _)| at);
            let mut points: Vec<Waypoint> = Vec::with_capacity(reports.len());
            for (at, Report { position, heading, .. }) in reports {
                let point = Waypoint { at: since(zero, at), position, heading };
                match points.last_mut().filter(|last| last.at == point.at) {
                    Some(last) => *last = point,
                    None => points.push(point),
                }
            }
            if let Ok(track) = Track::new(points) {
                traces.tracks.insert(mmsi.to_string(), track);
            }
        }
        traces
    }
}

/// The position that a report gives; `None` where a ship does not know it, which is written as 91 and 181 degrees.
fn known(latitude: f64, longitude: f64) -> Result<Option<Position>, String> {
    if latitude == 91.0 || longitude == 181.0 {
        return Ok(None);
    }
    // Others may write the date line as 190 degrees; AIS has no such longitude, so that the report is damaged.
    if !(-180.0..=180.0).contains(&longitude) {
        return Err(format!("expected a longitude from -180 to 180 degrees, found {longitude}"));
    }
    Position::degrees(latitude, longitude).map(Some).map_err(|error| error.to_string())
}
