//! `hopcast study`: a published experiment, side by side; `hopcast studies`: which there are.

use std::fs;
use std::path::{Path, PathBuf};

use hopcast_twin::scenario;

use crate::{Failure, RunOptions, command, output};

pub(crate) fn study(name: &str, options: &RunOptions) -> Result<(), Failure> {
    let studies = studies()?;
    // What a machine of usual size can keep up with live is a study of its own.
    let live = format!("{name}-live");
    let has_live = options.live && studies.iter().any(|(study, _)| *study == live);
    let name = if has_live { &*live } else { name };
    match studies.iter().find(|(study, _)| study == name) {
        Some((_, file)) => command::run::run(file, options),
        None => {
            let names: Vec<&str> = studies.iter().map(|(study, _)| study.as_str()).collect();
            let hint = scenario::did_you_mean(name, names.iter().copied());
            let message = format!("no study is named `{name}`{hint} (studies: {})", names.join(", "));
            Err(Failure::input(message))
        }
    }
}

pub(crate) fn list() -> Result<(), Failure> {
    let studies = studies()?;
    let width = studies.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, file) in studies {
        let plan = scenario::load(&file, &scenario::Overrides::default()).map_err(Failure::input)?;
        text.push_str(&format!("{name:<width$}  {}\n", plan.title));
    }
    output::write(text)
}

/// The studies by name, in order: the files of the nearest `scenarios/studies`, looked for upwards from here and
/// then from the program.
fn studies() -> Result<Vec<(String, PathBuf)>, Failure> {
    let here = std::env::current_dir().ok();
    let program = std::env::current_exe().ok();
    let upwards = here.iter().chain(&program).flat_map(|start| start.ancestors());
    let dir = upwards.map(|dir| dir.join("scenarios/studies")).find(|dir| dir.is_dir());
    let dir = dir.ok_or_else(|| Failure::input("no directory scenarios/studies here or above"))?;
    let entries =
        fs::read_dir(&dir).map_err(|error| Failure::input(format!("{}: {error}", dir.display())))?;
    let named = |path: PathBuf| {
        let is_scenario = path.extension().is_some_and(|extension| extension == "yaml");
        let name = path.file_stem().filter(|_| is_scenario)?.to_str()?.to_owned();
        Some((name, shortened(&path, here.as_deref())))
    };
    let mut studies: Vec<_> = entries.filter_map(|entry| named(entry.ok()?.path())).collect();
    studies.sort();
    Ok(studies)
}

/// `path` as seen from `here`, for messages that a person reads.
fn shortened(path: &Path, here: Option<&Path>) -> PathBuf {
    here.and_then(|here| path.strip_prefix(here).ok()).unwrap_or(path).to_owned()
}
