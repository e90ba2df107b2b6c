//! The member of PGM on OpenPGM, encapsulated in UDP.

use std::path::Path;

use hopcast_twin::scenario::model::GroupFile;

use super::built::{BuiltProgram, CPP_PEER};
use super::command::{CommandLine, GroupMember};
use super::group_file::{Call, FILE, number, path};

pub(crate) static PROGRAM: BuiltProgram = BuiltProgram {
    app: "openpgm",
    library: "OpenPGM",
    remedy: "apt-get install libpgm-dev",
    installed_at: || Some("/usr/include/pgm-5.3/pgm/pgm.h".into()),
    compiler: "c++",
    arguments,
    sources: &[("pgm.cc", include_str!("../../peers/pgm.cc")), CPP_PEER],
};

fn arguments(source: &Path, into: &Path) -> Vec<String> {
    let words = ["-std=c++17", "-O1", "-I/usr/include/pgm-5.3", "-o", &path(into), &path(source), "-lpgm"];
    words.map(str::to_owned).to_vec()
}

/// Times after which a receiver asks again, unanswered and answered. At 1024 kbit/s, three receivers and a loss of 20 %
/// the last of them has 800 KB after 13 to 19 s and 1.5 to 1.7 MB (four runs); with the 2 s of the library's examples
/// after 16 to 22 s and 1.45 to 1.5 MB, with 0.5 s after 17 s and 2.1 MB, since the sender has a second's packets
/// outstanding.
const SETTINGS: [&str; 2] = ["repeat=1", "repair=1"];
/// Seconds without a request after which a sender ends. Chosen: ten of the receivers' times, so that hardly ever all
/// their requests are lost.
const LINGER: &str = "linger=10";

pub(super) fn receiver(file: &GroupFile, call: &Call<'_>) -> CommandLine {
    let (into, size) = (path(&call.received().join(FILE)), file.bytes.get());
    member("receive", call)
        .and([format!("into={into}"), format!("size={size}"), "linger=3600".to_owned()])
        .and(SETTINGS)
        .listening_on(call.udp())
}

pub(super) fn sender(file: &GroupFile, to: &GroupMember, call: &Call<'_>) -> CommandLine {
    member("send", call).and([
        format!("rate={}", to.sender.packet_rate(file)),
        LINGER.to_owned(),
        format!("file={}", path(&call.sent())),
    ])
}

fn member(role: &str, call: &Call<'_>) -> CommandLine {
    let program = PROGRAM.path().unwrap_or_default();
    CommandLine::new(&path(&program), [format!("role={role}")]).and([
        format!("group={}", call.group),
        format!("udp={}", call.port),
        format!("interface={}", call.interface),
        format!("address={}", call.address),
        format!("id={}", number(call.address)),
        format!("mtu={}", call.mtu),
        format!("seconds={:.3}", call.task.seconds() + 2.0),
    ])
}
