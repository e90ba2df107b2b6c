//! The members on libnorm: a process for each, of the program that the tests hold ours against.

use std::path::{Path, PathBuf};
use std::process::Command;

use hopcast_core::{Rate, Seed};

use crate::sockets::{LIMIT, measure};
use crate::{Failure, LOSS, OBJECT, OBJECTS, RECEIVERS, Seen};

/// Starts the receivers, then the sender, and waits for the receivers: `$1` is the program, `$2` the object, `$3` the
/// rate, `$4` the number of objects, `$5` that of receivers, `$6` the percentage that they lose, `$7` seconds at most.
/// The settings are those by which libnorm is at its best on a short path.
const SCRIPT: &str = r#"
common="group=224.1.2.3 interface=lo seconds=$7"
last=$(($5 + 1))
receivers=
for id in $(seq 2 $last); do
    "$1" role=receive $common id=$id objects=$4 loss=$6 hash=no linger=0 buffer=67108864 >/dev/null &
    receivers="$receivers $!"
done
objects=
for number in $(seq $4); do objects="$objects data=$2"; done
"$1" role=send $common id=1 start=0.3 rate=$3 grtt=0.001 group-size=$5 parity=64 cache=1000 buffer=67108864 hash=no \
    linger=1000 $objects >/dev/null &
sender=$!
status=0
for receiver in $receivers; do wait $receiver || status=1; done
{ kill $sender; wait $sender; } 2>/dev/null
exit $status
"#;

/// The program, which is removed in the end.
pub(crate) struct Program(PathBuf);

impl Program {
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Builds the program; none if libnorm is not there.
pub(crate) fn build() -> Result<Option<Program>, Failure> {
    if !Path::new("/usr/include/normApi.h").is_file() {
        return Ok(None);
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/live/peers/norm.cc");
    let program = std::env::temp_dir().join(format!("hopcast-norm-peer-{}", std::process::id()));
    let mut build = Command::new("c++");
    let output = build.args(["-O3", "-std=c++17", "-o"]).arg(&program).arg(&source).arg("-lnorm").output()?;
    if !output.status.success() {
        return Err(format!("{}: {}", source.display(), String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(Some(Program(program)))
}

/// Runs a transfer.
pub(crate) fn run(program: &Path, rate: Rate) -> Result<Seen, Failure> {
    let mut object = vec![0; OBJECT];
    Seed::new(1, 0).stream(&["object"], 0).fill(&mut object);
    let path = program.with_extension("object");
    std::fs::write(&path, &object)?;
    let text = |value: &dyn ToString| value.to_string();
    let arguments = [
        "-c".to_owned(),
        SCRIPT.to_owned(),
        "sh".to_owned(),
        text(&program.display()),
        text(&path.display()),
        text(&rate.bits_per_sec()),
        text(&OBJECTS),
        text(&RECEIVERS),
        text(&(LOSS * 100.0)),
        text(&LIMIT.as_secs()),
    ];
    let measured = measure("sh".as_ref(), &arguments);
    let _ = std::fs::remove_file(&path);
    let (seen, _) = measured?;
    Ok(Seen { bytes: (RECEIVERS * OBJECTS * OBJECT) as u64, ..seen })
}
