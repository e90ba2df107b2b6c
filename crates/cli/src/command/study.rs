//! `hopcast study`: a published experiment, side by side; `hopcast studies`: the list of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use hopcast_twin::scenario;

use crate::failure::Failure;
use crate::options::RunOptions;
use crate::{command, output};

pub(crate) fn study(name: &str, options: &RunOptions) -> Result<(), Failure> {
    let studies = studies()?;
    // A study may have a live variant with lower rates, as a study of its own, which is run in its place.
    let live = format!("{name}-live");
    let has_live = options.live && studies.contains_key(&live);
    let name = if has_live { &*live } else { name };
    match studies.get(name) {
        Some(file) => command::run::run(file, options),
        None => {
            let names: Vec<&str> = studies.keys().map(String::as_str).collect();
            let hint = scenario::did_you_mean(name, names.iter().copied());
            let message = format!("no study is named `{name}`{hint} (studies: {})", names.join(", "));
            Err(Failure::input(message))
        }
    }
}

pub(crate) fn list() -> Result<(), Failure> {
    let studies = studies()?;
    let width = studies.keys().map(String::len).max().unwrap_or(0);
    let mut text = String::new();
    for (name, file) in studies {
        let plan = hopcast_runner::load(&file, &scenario::Overrides::default()).map_err(Failure::input)?;
        text.push_str(&format!("{name:<width$}  {}\n", plan.title));
    }
    output::write(text)
}

/// The studies by name: the program's own, and the files of the nearest `scenarios/studies` in this directory or above
/// it, which replace those of the same name.
fn studies() -> Result<BTreeMap<String, PathBuf>, Failure> {
    let mut studies: BTreeMap<String, PathBuf> =
        scenario::studies().map(|(name, path)| (name.to_owned(), path)).collect();
    let here = std::env::current_dir().ok();
    let upwards = here.iter().flat_map(|start| start.ancestors());
    let dir = upwards.map(|dir| dir.join("scenarios/studies")).find(|dir| dir.is_dir());
    let Some(dir) = dir else { return Ok(studies) };
    let entries =
        fs::read_dir(&dir).map_err(|error| Failure::input(format!("{}: {error}", dir.display())))?;
    let named = |path: PathBuf| {
        let is_scenario = path.extension().is_some_and(|extension| extension == "yaml");
        let name = path.file_stem().filter(|_| is_scenario)?.to_str()?.to_owned();
        Some((name, shortened(&path, here.as_deref())))
    };
    studies.extend(entries.filter_map(|entry| named(entry.ok()?.path())));
    Ok(studies)
}

/// `path` relative to `here`, for messages.
fn shortened(path: &Path, here: Option<&Path>) -> PathBuf {
    here.and_then(|here| path.strip_prefix(here).ok()).unwrap_or(path).to_owned()
}
