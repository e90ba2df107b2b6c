//! The journal of a run directory: every finished run, written at once, so that a sweep that was interrupted, by Ctrl-C
//! or a power failure, goes on where it stopped.
//!
//! One line for each run, `identity checksum record`: the identity in 64 digits, a checksum of identity and record in
//! 16, and the run as JSON with its series and latency curves. Lines are only ever added; the last may be torn, and a
//! line that its checksum does not fit is as if it were not there. One file rather than one for each run: a sweep of a
//! hundred thousand runs is one append each, and the disk is waited for once a second at most.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use hopcast_twin::identity::{Identities, Identity};
use hopcast_twin::results::{LatencyCurve, Run, Series};
use hopcast_twin::scenario::model::Plan;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::JournalError;

/// Digits of the identity (SHA-256) and of the checksum (64 bits), with a space behind each.
const PREFIX: usize = 64 + 1 + 16 + 1;
/// Maximum time for which a finished run is in the operating system's memory alone. Chosen: shorter, and short runs
/// wait for the disk; longer, and a power cut costs more of them.
const SYNC: Duration = Duration::from_secs(1);

/// Offset and length of each run's line, in bytes.
type Places = BTreeMap<Identity, (u64, usize)>;

/// The finished runs of a directory.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    identities: Identities,
    found: Places,
    file: Mutex<Appending>,
}

#[derive(Debug)]
struct Appending {
    file: File,
    synced: Instant,
    damaged: u64,
}

/// A run with its series and latency curves, which the document leaves out.
#[derive(Serialize, Deserialize)]
struct Record<'r> {
    run: Cow<'r, Run>,
    series: Cow<'r, Series>,
    latency: Cow<'r, [LatencyCurve]>,
}

impl Journal {
    /// Opens the journal at `path`, or makes it. Runs of another `version` of the program are not recognised.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub fn open(path: &Path, version: &str) -> Result<Self, JournalError> {
        let opened = || -> io::Result<_> {
            let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
            let (found, damaged, whole) = index(&mut file)?;
            if !whole {
                file.write_all(b"\n")?;
            }
            Ok((file, found, damaged))
        };
        let (file, found, damaged) =
            opened().map_err(|error| JournalError { path: path.to_owned(), error })?;
        let file = Mutex::new(Appending { file, synced: now(), damaged });
        Ok(Self { path: path.to_owned(), identities: Identities::new(version), found, file })
    }

    /// Computes the identities of its runs.
    pub fn identities(&self) -> &Identities {
        &self.identities
    }

    /// Number of damaged lines.
    pub fn damaged(&self) -> u64 {
        self.appending().damaged
    }

    /// Number of runs that it holds, of any plan.
    pub fn len(&self) -> usize {
        self.found.len()
    }

    /// Whether it holds no run at all.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Number of runs of `plan` that it holds, by their lines' identities: damage is found when a line is read.
    pub fn holds(&self, plan: &Plan) -> usize {
        if self.found.is_empty() {
            return 0;
        }
        let runs = self.runs_of(plan);
        runs.iter().filter(|identity| self.found.contains_key(identity)).count()
    }

    /// A finished run.
    pub(crate) fn find(&self, identity: Identity) -> Option<Run> {
        let (start, length) = *self.found.get(&identity)?;
        let mut line = vec![0; length];
        let read = {
            let file = &mut self.appending().file;
            file.seek(SeekFrom::Start(start)).and_then(|_| file.read_exact(&mut line))
        };
        let run = read.ok().and_then(|()| parse(&line));
        if run.is_none() {
            self.appending().damaged += 1;
        }
        run
    }

    /// Writes a run that has just been finished.
    pub(crate) fn add(&self, identity: Identity, run: &Run) -> Result<(), JournalError> {
        let failed = |error: io::Error| JournalError { path: self.path.clone(), error };
        let record = Record {
            run: Cow::Borrowed(run),
            series: Cow::Borrowed(&run.series),
            latency: Cow::Borrowed(&run.latency),
        };
        let record = serde_json::to_string(&record).map_err(|error| failed(error.into()))?;
        let identity = identity.to_string();
        let line = format!("{identity} {} {record}\n", checksum(identity.as_bytes(), record.as_bytes()));
        let mut appending = self.appending();
        appending.file.write_all(line.as_bytes()).map_err(failed)?;
        if appending.synced.elapsed() >= SYNC {
            appending.file.sync_data().map_err(failed)?;
            appending.synced = now();
        }
        Ok(())
    }

    /// Leaves the runs of `plan` in the journal and nothing else: for when all of them are finished.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn tidy(self, plan: &Plan) -> Result<(), JournalError> {
        let Self { path, identities, found, file } = self;
        let appending = file.into_inner().expect("no thread panics with the lock held");
        let ours: BTreeSet<Identity> = runs_of(&identities, plan).into_iter().collect();
        let stale = found.keys().any(|identity| !ours.contains(identity));
        let tidied = || -> io::Result<()> {
            if stale || appending.damaged > 0 {
                return rewrite(&path, &ours);
            }
            appending.file.sync_data()
        };
        tidied().map_err(|error| JournalError { path, error })
    }

    fn runs_of(&self, plan: &Plan) -> Vec<Identity> {
        runs_of(&self.identities, plan)
    }

    fn appending(&self) -> std::sync::MutexGuard<'_, Appending> {
        self.file.lock().expect("no thread panics with the lock held")
    }
}

fn runs_of(identities: &Identities, plan: &Plan) -> Vec<Identity> {
    let repeats = |case| {
        let case = identities.case(case);
        (0..plan.repeats).map(move |repeat| case.repeat(repeat))
    };
    plan.cases.iter().flat_map(repeats).collect()
}

/// The places of the runs, the number of damaged lines, and whether the last line is complete. Of two lines of one run
/// the later counts.
fn index(file: &mut File) -> io::Result<(Places, u64, bool)> {
    let (mut found, mut damaged, mut whole, mut at) = (BTreeMap::new(), 0, true, 0);
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 {
        whole = line.last() == Some(&b'\n');
        match identity(&line) {
            Some(identity) if whole => {
                found.insert(identity, (at, line.len()));
            }
            _ if line == b"\n" => {}
            _ => damaged += 1,
        }
        at += line.len() as u64;
        line.clear();
    }
    Ok((found, damaged, whole))
}

fn identity(line: &[u8]) -> Option<Identity> {
    Identity::parse(std::str::from_utf8(line.get(..64)?).ok()?)
}

/// The run on a line, if the line is as it was written.
fn parse(line: &[u8]) -> Option<Run> {
    let record = line.get(PREFIX..)?.strip_suffix(b"\n")?;
    if line[65..PREFIX - 1] != *checksum(&line[..64], record).as_bytes() {
        return None;
    }
    let Record { run, series, latency } = serde_json::from_slice(record).ok()?;
    Some(Run { series: series.into_owned(), latency: latency.into_owned(), ..run.into_owned() })
}

fn checksum(identity: &[u8], record: &[u8]) -> String {
    Sha256::new().chain_update(identity).chain_update(record).finalize()[..8]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Keeps the whole lines of `ours`, in a new file that takes the old one's place at once.
fn rewrite(path: &Path, ours: &BTreeSet<Identity>) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut reader = BufReader::new(File::open(path)?);
    let mut writer = BufWriter::new(File::create(&new)?);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 {
        if identity(&line).is_some_and(|identity| ours.contains(&identity)) && parse(&line).is_some() {
            writer.write_all(&line)?;
        }
        line.clear();
    }
    writer.into_inner().map_err(io::IntoInnerError::into_error)?.sync_data()?;
    fs::rename(&new, path)
}

#[allow(clippy::disallowed_methods)] // when to wait for the disk; no result depends on it
fn now() -> Instant {
    Instant::now()
}
