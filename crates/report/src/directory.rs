//! The directory of a run: written once, and read back to draw its report again.

use std::path::{Path, PathBuf};
use std::{fs, io};

use hopcast_twin::results::Document;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{ReadError, TopologyError};
use crate::{Topology, csv_files, html, plot};

/// The contents of a run directory.
#[derive(Clone, Debug, PartialEq)]
pub struct RunDirectory {
    /// `summary.json`, with the series and latency curves of `timeseries.csv` and `latency.csv`.
    pub document: Document,
    /// `topology.json`.
    pub topology: Topology,
    /// `manifest.json`: the circumstances of the run.
    pub manifest: Value,
}

/// Writes a run's files: `manifest.json`, `summary.json`, `topology.json`, `flows.csv`, `receivers.csv`,
/// `counters.csv`, `links.csv`, `timeseries.csv`, `latency.csv`, `report.html` and `plots/*.svg`; with the feature
/// `parquet`, each of the CSV files but `latency.csv` as Parquet too.
///
/// Makes the directory if necessary, and overwrites files of these names.
///
/// # Errors
///
/// If a file cannot be written, or a link of the topology ends at no node; the message names the file.
pub fn write_run_directory(
    dir: &Path,
    document: &Document,
    topology: &Topology,
    manifest: Value,
) -> io::Result<()> {
    let invalid =
        |error: TopologyError| io::Error::new(io::ErrorKind::InvalidInput, format!("topology.json: {error}"));
    topology.check().map_err(invalid)?;
    let mut pictures = plot::pictures(document, topology);
    if let Some(plot) = plot::packets::plot(dir, topology) {
        pictures.add(plot);
    }
    make(&dir.join("plots"))?;
    // The manifest marks a complete run directory: it is removed first and written last, so that a half-written
    // directory is recognised.
    remove(&dir.join("manifest.json"))?;
    write(dir, "summary.json", &json(document)?)?;
    write(dir, "topology.json", &json(topology)?)?;
    write_rows(dir, "flows", &csv_files::flows(document)?)?;
    write_rows(dir, "receivers", &csv_files::receivers(document)?)?;
    write_rows(dir, "counters", &csv_files::counters(document)?)?;
    write_rows(dir, "links", &csv_files::links(document)?)?;
    write_rows(dir, "timeseries", &csv_files::timeseries(document)?)?;
    write(dir, "latency.csv", &csv_files::latency(document)?)?;
    remove_plots(&dir.join("plots"))?;
    for plot in &pictures.plots {
        write(dir, &format!("plots/{}.svg", plot.file_stem), plot.standalone().as_bytes())?;
    }
    write(dir, "report.html", html::page(document, &pictures, &manifest, Some(dir)).as_bytes())?;
    write(dir, "manifest.json", &json(&manifest)?)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(named(path, &error)),
        Err(_) | Ok(()) => Ok(()),
    }
}

/// Reads a run's files back.
///
/// # Errors
///
/// The first file that is missing or wrong.
pub fn read_run_directory(dir: &Path) -> Result<RunDirectory, ReadError> {
    let manifest = read(&dir.join("manifest.json"))?;
    let mut document: Document = read(&dir.join("summary.json"))?;
    let path = dir.join("topology.json");
    let topology: Topology = read(&path)?;
    topology.check().map_err(|source| ReadError::Topology { path, source })?;
    csv_files::read_timeseries(&dir.join("timeseries.csv"), &mut document)?;
    csv_files::read_latency(&dir.join("latency.csv"), &mut document)?;
    Ok(RunDirectory { document, topology, manifest })
}

/// Writes a table as CSV, and with the feature `parquet` as Parquet too.
fn write_rows(dir: &Path, name: &str, csv: &[u8]) -> io::Result<()> {
    #[cfg(feature = "parquet")]
    write(dir, &format!("{name}.parquet"), &crate::parquet_files::of_csv(csv)?)?;
    write(dir, &format!("{name}.csv"), csv)
}

fn json<T: serde::Serialize>(value: &T) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(value)?;
    text.push(b'\n');
    Ok(text)
}

fn make(dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir).map_err(|error| named(dir, &error))
}

/// Removes the plots of an earlier run, which may have other names.
fn remove_plots(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir).map_err(|error| named(dir, &error))? {
        let path = entry.map_err(|error| named(dir, &error))?.path();
        if path.extension().is_some_and(|extension| extension == "svg") {
            fs::remove_file(&path).map_err(|error| named(&path, &error))?;
        }
    }
    Ok(())
}

fn write(dir: &Path, name: &str, contents: &[u8]) -> io::Result<()> {
    let path: PathBuf = dir.join(name);
    fs::write(&path, contents).map_err(|error| named(&path, &error))
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T, ReadError> {
    let text = fs::read(path).map_err(|source| ReadError::File { path: path.to_owned(), source })?;
    serde_json::from_slice(&text).map_err(|source| ReadError::Json { path: path.to_owned(), source })
}
