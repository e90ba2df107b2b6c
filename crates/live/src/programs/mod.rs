//! Real programs as the workloads of a live run.
//!
//! A module for each program makes its command lines and reads its output: pure functions, which are tested on real
//! output. [`Programs`] starts and stops all of them over the time of a run, wherever a [`Spawner`] puts them.
//!
//! | module | what |
//! |---|---|
//! | `command` | a command line, and the socket by which it is known to be ready |
//! | `measurement` | measurements, brought into the run's time and window |
//! | `iperf3`, `iperf2`, `nuttcp`, `ping`, `ffmpeg`, `copy` | the programs |
//! | `group_file`; `libnorm`, `openpgm`, `jgroups` | those that send a file to a group; those of them that are ours |
//! | `built` | how ours are built where they are needed |
//! | `spawn` | where programs are started |
//! | `job` | servers and a client, from start to end |
//! | `check` | whether the programs of a scenario can run |
//! | `run` | all jobs of a run |
//! | `pictures` | frames of a test picture, side by side |

mod built;
mod check;
mod command;
mod copy;
mod error;
mod ffmpeg;
mod group_file;
mod iperf2;
mod iperf3;
mod jgroups;
mod job;
mod libnorm;
mod measurement;
mod nuttcp;
mod openpgm;
mod pictures;
mod ping;
mod run;
mod spawn;

pub(crate) use built::BuiltProgram;
pub(crate) use check::check;
pub use command::{CommandLine, Commands, Ends, GroupMember, ListenPort, Outputs, SenderLink, Task};
pub use error::{CongestionConflict, Error, Missing};
pub use measurement::{Interval, Measurement, Samples};
pub use pictures::{FramePair, pictures};
pub use run::{ExecOutcome, FlowOutcome, Outcomes, Programs, Recording};
pub use spawn::{ChildProcess, Running, Spawner};

use hopcast_stack::TRANSPORTS;
use hopcast_stack::table::Worlds;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::{env, fs};

use hopcast_twin::scenario::model::{App, CopyProgram, Flow, GroupFileProgram, Program};

/// The programs of applications, each with the package of Debian and Ubuntu that has it.
const KNOWN: &[(&str, &str)] = &[
    ("iperf3", "iperf3"),
    ("iperf", "iperf"),
    ("nuttcp", "nuttcp"),
    ("ping", "iputils-ping"),
    ("ffmpeg", "ffmpeg"),
    ("socat", "socat"),
    ("nc", "netcat-openbsd"),
    ("uftp", "uftp"),
    ("uftpd", "uftp"),
    ("udp-sender", "udpcast"),
    ("udp-receiver", "udpcast"),
    ("c++", "g++"),
    ("java", "default-jre-headless"),
    ("javac", "default-jdk-headless"),
];

/// The programs of ours that are built where they are needed.
pub(crate) fn built_programs() -> impl Iterator<Item = &'static BuiltProgram> {
    [&libnorm::PROGRAM, &openpgm::PROGRAM, &jgroups::PROGRAM].into_iter()
}

/// The program of ours that sends a file to a group, if it is one.
fn built_program(with: GroupFileProgram) -> Option<&'static BuiltProgram> {
    built_programs().find(|program| program.app == with.name())
}

/// The programs that live runs may start: of applications and of transports, each with its package.
pub fn known() -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    let of_transports = TRANSPORTS.iter().flat_map(|row| match row.worlds {
        Worlds::Live { programs, .. } => programs,
        Worlds::Both | Worlds::Virtual => &[],
    });
    KNOWN.iter().chain(of_transports)
}

/// The package that has a program, if it is one of those [`known`].
pub fn package_of(program: &str) -> Option<&'static str> {
    known().find(|(known, _)| *known == program).map(|&(_, package)| package)
}

/// The message for a program that is not installed.
pub fn not_installed(program: &str) -> String {
    match package_of(program) {
        Some(package) => format!("`{program}` is not installed: apt-get install {package}"),
        None => format!("`{program}` is not installed, or not in the PATH"),
    }
}

/// The path of a program, by `PATH`.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let paths = env::var_os("PATH")?;
    let executable = |path: &PathBuf| {
        fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    env::split_paths(&paths).map(|directory| directory.join(name)).find(executable)
}

/// The programs that a flow needs.
pub fn needed_by(flow: &Flow) -> Vec<&'static str> {
    let mut needed: Vec<&'static str> = flow.needed_programs().collect();
    if let App::Program { program, .. } = &flow.app {
        needed.extend(match program {
            Program::Iperf3(_) => vec!["iperf3"],
            Program::Iperf2(_) => vec!["iperf"],
            Program::Nuttcp(_) => vec!["nuttcp"],
            Program::Ping(_) => vec!["ping"],
            Program::Ffmpeg(_) => vec!["ffmpeg", "socat"],
            Program::Copy(copy) if copy.with == CopyProgram::Nc => vec!["nc"],
            Program::Copy(_) => vec!["socat"],
            Program::GroupFile(file) => match file.with {
                GroupFileProgram::Libnorm => vec![libnorm::PROGRAM.compiler],
                GroupFileProgram::Openpgm => vec![openpgm::PROGRAM.compiler],
                GroupFileProgram::Jgroups => vec!["java", jgroups::PROGRAM.compiler],
                GroupFileProgram::Uftp => vec!["uftp", "uftpd"],
                GroupFileProgram::Udpcast => vec!["udp-sender", "udp-receiver"],
            },
        });
    }
    needed
}

/// The command lines of a program at both ends.
pub fn commands(program: &Program, task: &Task<'_>) -> Commands {
    match program {
        Program::Iperf3(load) => iperf3::commands(load, task),
        Program::Iperf2(load) => iperf2::commands(load, task),
        Program::Nuttcp(load) => nuttcp::commands(load, task),
        Program::Ping(ping) => ping::commands(ping, task),
        Program::Ffmpeg(picture) => ffmpeg::commands(picture, task),
        Program::Copy(copy) => copy::commands(copy, task),
        Program::GroupFile(file) => group_file::commands(file, task),
    }
}

/// The measurement in a program's output.
///
/// # Errors
/// A missing part of the output.
pub fn parse(program: &Program, task: &Task<'_>, outputs: &Outputs) -> Result<Measurement, Error> {
    let measurement = match program {
        Program::Iperf3(load) => iperf3::parse(load, task, outputs),
        Program::Iperf2(load) => iperf2::parse(load, task, outputs),
        Program::Nuttcp(load) => nuttcp::parse(load, task, outputs),
        Program::Ping(ping) => ping::parse(ping, task, outputs),
        Program::Ffmpeg(picture) => ffmpeg::parse(picture, task, outputs),
        Program::Copy(copy) => copy::parse(copy, task, outputs),
        Program::GroupFile(_) => group_file::parse(outputs),
    };
    measurement.map_err(|missing| Error::NoMeasurement { program: program.name(), missing })
}
