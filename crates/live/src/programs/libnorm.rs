//! The member of NORM on libnorm, whose interface is C++.

use std::path::Path;

use hopcast_twin::scenario::model::GroupFile;

use super::built::{BuiltProgram, CPP_PEER};
use super::command::{CommandLine, GroupMember};
use super::group_file::{Call, number, path};

pub(crate) static PROGRAM: BuiltProgram = BuiltProgram {
    app: "libnorm",
    library: "libnorm",
    remedy: "apt-get install libnorm-dev",
    installed_at: || Some("/usr/include/normApi.h".into()),
    compiler: "c++",
    arguments,
    sources: &[("norm.cc", include_str!("../../peers/norm.cc")), CPP_PEER],
};

fn arguments(source: &Path, into: &Path) -> Vec<String> {
    ["-std=c++17", "-O1", "-o", &path(into), &path(source), "-lnorm"].map(str::to_owned).to_vec()
}

/// The settings with which libnorm's defaults, made for large groups over slow links, are as fast as it gets at three
/// receivers (measured).
const SETTINGS: [&str; 4] = ["block=64", "parity=32", "grtt=0.05", "group-size=10"];

pub(super) fn receiver(call: &Call<'_>) -> CommandLine {
    let into = format!("into={}", path(&call.received()));
    member("receive", call).and([into, "linger=3600".to_owned()]).listening_on(call.udp())
}

pub(super) fn sender(file: &GroupFile, to: &GroupMember, call: &Call<'_>) -> CommandLine {
    let (rate, payload) = (to.sender.program_rate(file), to.sender.payload());
    member("send", call)
        .and([format!("rate={rate}"), format!("segment={payload}"), "linger=0.5".to_owned()])
        .and(SETTINGS)
        .and([format!("file={}", path(&call.sent()))])
}

fn member(role: &str, call: &Call<'_>) -> CommandLine {
    let program = PROGRAM.path().unwrap_or_default();
    CommandLine::new(&path(&program), [format!("role={role}")]).and([
        format!("group={}", call.group),
        format!("port={}", call.port),
        format!("interface={}", call.interface),
        format!("id={}", number(call.address)),
        format!("seconds={:.3}", call.task.seconds() + 2.0),
    ])
}
