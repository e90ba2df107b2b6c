//! `hopcast report`: a run directory's report, again; the shards of a sweep, joined; or two runs, compared.

use std::fs;
use std::path::{Path, PathBuf};

use hopcast_report::comparison::{self, Comparison};
use hopcast_report::{RunDirectory as Read, join, read_run_directory, write_run_directory};
use hopcast_twin::results::FramePictures;

use crate::directory::{JOURNAL, OtherResults, Owner, RunDirectory};
use crate::failure::Failure;
use crate::options::{Choice, Format};
use crate::output;

pub(crate) fn report(
    dirs: &[PathBuf],
    out: Option<&Path>,
    format: Format,
    choice: &Choice,
) -> Result<(), Failure> {
    let runs: Vec<Read> =
        dirs.iter().map(|dir| read_run_directory(dir)).collect::<Result<_, _>>().map_err(Failure::input)?;
    let names: Vec<String> = dirs.iter().map(|dir| dir.display().to_string()).collect();
    match <[Read; 1]>::try_from(runs) {
        Ok([run]) => {
            let dir = match out.filter(|out| **out != *dirs[0]) {
                None => RunDirectory::again(&dirs[0], &owner(&run))?,
                Some(out) => {
                    let dir = RunDirectory::take(Some(out), "", &owner(&run), OtherResults::KeepAlways)?;
                    dir.say_what_is_replaced();
                    dir
                }
            };
            bring_pictures(dirs, &run, dir.path())?;
            show(&run, dir.path(), format, choice)
        }
        Err(runs) if runs.iter().all(|run| run.shard().is_some()) => {
            let joined = join(runs, &names).map_err(Failure::input)?;
            let file = joined.manifest["scenario_file"].as_str().map(Path::new);
            let name = file.and_then(Path::file_stem).and_then(|stem| stem.to_str()).unwrap_or("joined");
            let dir = RunDirectory::take(out, name, &owner(&joined), OtherResults::KeepAlways)?;
            dir.say_what_is_replaced();
            join_journals(dirs, &dir)?;
            bring_pictures(dirs, &joined, dir.path())?;
            show(&joined, dir.path(), format, choice)
        }
        Err(runs) => match <[Read; 2]>::try_from(runs) {
            Ok(runs) => compare(&runs, dirs, out, format),
            Err(runs) => Err(Failure::input(several(&runs, &names))),
        },
    }
}

/// The owner of a run.
fn owner(run: &Read) -> Owner {
    Owner::of_run(&run.manifest, &run.document.scenario)
}

fn show(run: &Read, dir: &Path, format: Format, choice: &Choice) -> Result<(), Failure> {
    let flows = run.document.runs.first().map(|run| &run.flows);
    let flows: Vec<&str> = flows.into_iter().flatten().map(|flow| flow.name.as_str()).collect();
    output::check(format, choice, run.document.runs.len(), &flows)?;
    write_run_directory(dir, &run.document, &run.topology, run.manifest.clone()).map_err(Failure::run)?;
    output::print(&run.document, format, choice)?;
    eprintln!("report: {}", dir.join("report.html").display());
    Ok(())
}

/// Joins the shards' finished runs, so that the joined sweep can be resumed.
fn join_journals(dirs: &[PathBuf], into: &RunDirectory) -> Result<(), Failure> {
    let path = into.journal();
    let failed = |error| Failure::run(format!("{}: {error}", path.display()));
    let mut journal = Vec::new();
    for dir in dirs {
        // A shard with captures has no journal.
        journal.extend(fs::read(dir.join(JOURNAL)).unwrap_or_default());
    }
    fs::write(&path, journal).map_err(failed)
}

/// Copies the frames of videos that the report shows into its directory.
fn bring_pictures(dirs: &[PathBuf], run: &Read, into: &Path) -> Result<(), Failure> {
    let frames = run.document.runs.iter().filter_map(|run| run.live.as_ref()).flat_map(|live| &live.pictures);
    for picture in frames.flat_map(FramePictures::pictures) {
        let to = into.join(picture);
        let failed = |error| Failure::run(format!("{}: {error}", to.display()));
        // The report omits frames without a file.
        let Some(from) = dirs.iter().map(|dir| dir.join(picture)).find(|from| from.is_file()) else {
            continue;
        };
        if !to.exists() {
            fs::create_dir_all(to.parent().unwrap_or(into)).map_err(failed)?;
            fs::copy(from, &to).map_err(failed)?;
        }
    }
    Ok(())
}

fn compare(runs: &[Read; 2], dirs: &[PathBuf], out: Option<&Path>, format: Format) -> Result<(), Failure> {
    let [a, b] = runs;
    let names = [&dirs[0], &dirs[1]].map(|dir| dir.display().to_string());
    let comparison = Comparison::new([&a.document, &b.document], names);
    let text = match format {
        Format::Table => comparison::table(&comparison, output::terminal()).into_bytes(),
        Format::Json => output::json(&comparison)?,
        Format::Csv | Format::Iperf3 => {
            return Err(Failure::input("a comparison is printed with --format table or --format json"));
        }
    };
    let dir = out.unwrap_or(&dirs[1]);
    let page = dir.join("comparison.html");
    let failed = |error| Failure::run(format!("{}: {error}", page.display()));
    fs::create_dir_all(dir).map_err(failed)?;
    fs::write(&page, comparison::page(&comparison, [&a.manifest, &b.manifest])).map_err(failed)?;
    output::write(text)?;
    eprintln!("comparison: {}", page.display());
    Ok(())
}

/// The message for directories that can be neither joined nor compared.
fn several(runs: &[Read], names: &[String]) -> String {
    let whole = runs.iter().zip(names).find(|(run, _)| run.shard().is_none()).map(|(_, name)| name);
    match whole {
        Some(name) if runs.iter().any(|run| run.shard().is_some()) => {
            format!("{name}: expected a shard like the others, found a whole run")
        }
        _ => format!("expected one run, two to compare or the shards of one, found {} runs", runs.len()),
    }
}
