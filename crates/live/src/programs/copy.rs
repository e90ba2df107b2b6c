//! A plain copy of a file over TCP, by socat or nc.

use std::io::Read;
use std::path::{Path, PathBuf};

use hopcast_twin::scenario::model::{CopyProgram, FileCopy};

use super::command::{CommandLine, Commands, ListenPort, Outputs, Task};
use super::error::{Error, Missing};
use super::measurement::{Interval, Measurement};

/// Name of the result of [`inspect`].
const RESULT: &str = "copied";

fn sent(task: &Task<'_>) -> PathBuf {
    task.file("sent")
}

fn received(task: &Task<'_>) -> PathBuf {
    task.file("received")
}

/// Level and number of the socket option for the congestion control (tcp(7)), as socat takes them.
const TCP_CONGESTION: &str = "setsockopt-string=6:13";

pub(super) fn commands(copy: &FileCopy, task: &Task<'_>) -> Commands {
    let (listen, target) = (task.ends.listen(), task.ends.target());
    let path = |path: PathBuf| path.display().to_string();
    let (server, client) = match copy.with {
        CopyProgram::Socat => {
            let options = socat_options(task);
            let server = CommandLine::new("socat", ["-u"])
                .and([format!("{}{options}", socat_listen(task))])
                .and([format!("CREATE:{}", path(received(task)))]);
            let client = CommandLine::new("socat", ["-u"])
                .and([format!("OPEN:{},rdonly", path(sent(task)))])
                .and([format!("{}{options}", socat_connect(task))]);
            (server, client)
        }
        CopyProgram::Nc => {
            let (listen, target) = ((listen.ip(), listen.port()), (target.ip(), target.port()));
            let server = format!("exec nc -n -l {} {} > {}", listen.0, listen.1, quoted(&received(task)));
            let client = format!("exec nc -n -N {} {} < {}", target.0, target.1, quoted(&sent(task)));
            let on_node = |script| CommandLine::new("sh", ["-c", script]).on_node_with(task.congestion());
            (on_node(&*server), on_node(&*client))
        }
    };
    let server = server.listening_on(ListenPort::Tcp(task.ends.port)).ending_itself();
    // A copy ends by itself, or at its stop.
    Commands { server: Some(server), client: client.ending_itself() }
}

pub(super) fn socat_listen(task: &Task<'_>) -> String {
    let family = if task.ends.ipv6() { 6 } else { 4 };
    format!("TCP{family}-LISTEN:{},bind={},reuseaddr", task.ends.port, bracketed(task.ends.to))
}

pub(super) fn socat_connect(task: &Task<'_>) -> String {
    let family = if task.ends.ipv6() { 6 } else { 4 };
    format!("TCP{family}:{}:{}", bracketed(task.ends.connect), task.ends.port)
}

pub(super) fn socat_options(task: &Task<'_>) -> String {
    task.congestion().map(|name| format!(",{TCP_CONGESTION}:{name}")).unwrap_or_default()
}

/// An address as it stands before a port.
pub(super) fn bracketed(address: std::net::IpAddr) -> String {
    if address.is_ipv6() { format!("[{address}]") } else { address.to_string() }
}

/// A path, quoted for the shell.
pub(super) fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

/// Writes the file that the client sends.
pub(super) fn prepare(copy: &FileCopy, task: &Task<'_>) -> Result<(), Error> {
    let path = sent(task);
    std::fs::write(&path, &copy.contents).map_err(Error::file(path))
}

/// Length of the received file, whether it equals the sent one, and the time of its last write. Removes both files.
pub(super) fn inspect(copy: &FileCopy, task: &Task<'_>) -> (&'static str, String) {
    let path = received(task);
    let found = std::fs::File::open(&path).ok().and_then(|file| {
        let about = file.metadata().ok()?;
        let modified = about.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
        let same = about.len() == copy.contents.len() as u64 && same(file, &copy.contents);
        Some(format!("{} {same} {}", about.len(), modified.as_secs_f64()))
    });
    for path in [sent(task), path] {
        // A copy that never began has left no file.
        let _ = std::fs::remove_file(path);
    }
    (RESULT, found.unwrap_or_default())
}

/// Whether a file has exactly these contents.
fn same(mut file: std::fs::File, mut contents: &[u8]) -> bool {
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return contents.is_empty(),
            Ok(read) if contents.starts_with(&buffer[..read]) => contents = &contents[read..],
            Ok(_) | Err(_) => return false,
        }
    }
}

pub(super) fn parse(copy: &FileCopy, _: &Task<'_>, outputs: &Outputs) -> Result<Measurement, Missing> {
    let mut words = outputs.find(RESULT).split_whitespace();
    let (length, same, modified) = (words.next(), words.next(), words.next());
    let length = length.and_then(|text| text.parse::<u64>().ok());
    let modified = modified.and_then(|text| text.parse::<f64>().ok()).filter(|time| time.is_finite());
    let (Some(length), Some(same), Some(modified)) = (length, same, modified) else {
        return Err(outputs.lacks("nothing arrived"));
    };
    let (whole, took) = (same == "true", (modified - outputs.started_wall).max(0.0));
    let (from, to) = (outputs.started, outputs.started + took);
    let received = vec![Interval { from, to, bytes: length as f64 }];
    Ok(Measurement {
        received,
        completed_s: whole.then_some(took),
        hash_ok: Some(whole),
        // The file is the one unit.
        units: Some((u64::from(!copy.contents.is_empty()), u64::from(whole && !copy.contents.is_empty()))),
        lasted: Some((from, to)),
        ..Measurement::default()
    })
}
