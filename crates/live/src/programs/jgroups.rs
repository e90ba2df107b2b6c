//! The member of a group of JGroups 2.12, a Java library.

use std::path::{Path, PathBuf};

use hopcast_twin::scenario::model::GroupFile;

use super::built::BuiltProgram;
use super::command::{CommandLine, GroupMember, ListenPort};
use super::group_file::{Call, FILE, IP_AND_UDP, path};

pub(crate) static PROGRAM: BuiltProgram = BuiltProgram {
    app: "jgroups",
    library: "JGroups 2.12",
    remedy: "mvn dependency:get -Dartifact=org.jgroups:jgroups:2.12.0.Final -Dtransitive=false",
    installed_at: library,
    compiler: "javac",
    arguments,
    sources: &[("Peer.java", include_str!("../../peers/jgroups/Peer.java"))],
};

/// Where Maven keeps the library for this user.
fn library() -> Option<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|path| path.is_absolute())?;
    Some(home.join(".m2/repository/org/jgroups/jgroups/2.12.0.Final/jgroups-2.12.0.Final.jar"))
}

fn arguments(source: &Path, into: &Path) -> Vec<String> {
    let library = path(&library().unwrap_or_default());
    ["-nowarn", "-cp", &library, "-d", &path(into), &path(source)].map(str::to_owned).to_vec()
}

/// The machine's settings: of several machines at a time on few processors, each is small and soon there.
const MACHINE: [&str; 4] =
    ["-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true"];
/// Time beyond the flow's, in seconds, for machines that start one after the other.
const LATE: f64 = 30.0;

pub(super) fn receiver(call: &Call<'_>) -> CommandLine {
    let into = path(&call.received().join(FILE));
    // It joins the group when it hears the sender at the flow's second port.
    let called = ListenPort::Udp(call.task.ends.port + 1);
    member("receive", call).and([format!("into={into}"), "linger=3600".to_owned()]).listening_on(called)
}

pub(super) fn sender(file: &GroupFile, to: &GroupMember, call: &Call<'_>) -> CommandLine {
    member("send", call).and([
        format!("rate={}", to.sender.program_rate(file)),
        format!("message={}", u64::from(call.mtu).saturating_sub(IP_AND_UDP)),
        format!("members={}", call.task.receivers.len()),
        format!("file={}", path(&call.sent())),
    ])
}

fn member(role: &str, call: &Call<'_>) -> CommandLine {
    let built = PROGRAM.path().unwrap_or_default();
    let classes = format!("{}:{}", path(&library().unwrap_or_default()), path(&built));
    CommandLine::new("java", MACHINE).and(["-cp", &classes, "Peer"]).and([
        format!("role={role}"),
        format!("group={}", call.group),
        format!("port={}", call.port),
        format!("interface={}", call.interface),
        format!("address={}", call.address),
        format!("seconds={:.3}", call.task.seconds() + LATE),
    ])
}
