//! AIS as a table: a header and a row for each report, as MarineCadastre.gov and the Danish Maritime Authority publish
//! it.
//!
//! Columns are found by their names, in any case, with or without a `#`: `MMSI`; `BaseDateTime`, `Timestamp` or
//! `Time`; `LAT` or `Latitude`; `LON` or `Longitude`; and `Heading` or `TrueHeading`, which may be missing. A row
//! without a position is ignored and counted; so is one whose latitude or longitude is 91 or 181 degrees.

use csv::{ReaderBuilder, StringRecord};
use hopcast_config::Diagnostic;

use super::super::Traces;
use super::super::utc;
use super::{Report, Reports, known};

/// Names of the columns that are needed, and of the one that may be missing.
const MMSI: &[&str] = &["mmsi"];
const TIME: &[&str] = &["basedatetime", "timestamp", "time"];
const LATITUDE: &[&str] = &["lat", "latitude"];
const LONGITUDE: &[&str] = &["lon", "longitude"];
const HEADING: &[&str] = &["heading", "trueheading"];

struct Columns {
    mmsi: usize,
    time: usize,
    latitude: usize,
    longitude: usize,
    heading: Option<usize>,
}

pub(in super::super) fn read(file: &str, text: &str) -> Result<Traces, Diagnostic> {
    let mut reader = ReaderBuilder::new().from_reader(text.as_bytes());
    let header = reader.headers().map_err(|error| csv_error(file, &error))?;
    let columns = Columns::find(header).map_err(|message| Diagnostic::at(file, 1, 1, message))?;
    let mut reports = Reports::default();
    let mut record = StringRecord::new();
    while reader.read_record(&mut record).map_err(|error| csv_error(file, &error))? {
        match columns.report(&record) {
            Ok(Some((at, report))) => reports.add(at, report),
            Ok(None) => reports.ignored += 1,
            Err(message) => {
                let line = record.position().map_or(1, csv::Position::line);
                return Err(Diagnostic::at(file, usize::try_from(line).unwrap_or(usize::MAX), 1, message));
            }
        }
    }
    Ok(reports.tracks())
}

fn csv_error(file: &str, error: &csv::Error) -> Diagnostic {
    let line = error.position().map_or(1, csv::Position::line);
    Diagnostic::at(file, usize::try_from(line).unwrap_or(usize::MAX), 1, error.to_string())
}

impl Columns {
    fn find(header: &StringRecord) -> Result<Self, String> {
        let find = |names: &[&str]| {
            header.iter().position(|name| {
                let name = name.trim_start_matches(['#', ' ']).trim_end();
                names.iter().any(|known| name.eq_ignore_ascii_case(known))
            })
        };
        let need = |names: &[&str]| {
            find(names).ok_or_else(|| format!("expected a column `{}`, found none", names.join("` or `")))
        };
        Ok(Self {
            mmsi: need(MMSI)?,
            time: need(TIME)?,
            latitude: need(LATITUDE)?,
            longitude: need(LONGITUDE)?,
            heading: find(HEADING),
        })
    }

    fn report(&self, record: &StringRecord) -> Result<Option<(utc::Utc, Report)>, String> {
        let field = |column: usize| record.get(column).unwrap_or_default().trim();
        let (latitude, longitude) = (field(self.latitude), field(self.longitude));
        if latitude.is_empty() || longitude.is_empty() {
            return Ok(None);
        }
        let mmsi = field(self.mmsi);
        let mmsi = mmsi.parse().map_err(|_| format!("expected an MMSI, found `{mmsi}`"))?;
        let degrees =
            |text: &str| text.parse::<f64>().map_err(|_| format!("expected degrees, found `{text}`"));
        let Some(position) = known(degrees(latitude)?, degrees(longitude)?)? else { return Ok(None) };
        let time = field(self.time);
        let at = utc::parse(time).ok_or_else(|| format!("expected {}, found `{time}`", utc::FORMS))?;
        let heading = match self.heading.map(field).filter(|text| !text.is_empty()) {
            // 511 is "not known".
            Some(text) => Some(degrees(text)?).filter(|heading| (0.0..360.0).contains(heading)),
            None => None,
        };
        Ok(Some((at, Report { mmsi, position, heading })))
    }
}
