//! The client side: `hopcast node status`.

use std::fs;
use std::io::{self, ErrorKind, Read};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{AskError, Status};
use crate::config::Config;

/// Maximum time of an answer. Chosen; shorter fails on a busy host, longer delays the error of a node that hangs.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum length of a status, in bytes; one with the maximum number of peers and carriers is far shorter. Chosen: it
/// bounds memory.
const MAX_STATUS: u64 = 16 << 20;

/// The status of the node that answers at `socket`, as text and parsed.
///
/// # Errors
/// No node, no permission, or an answer that is no status.
pub fn status(socket: &Path) -> Result<(String, Status), AskError> {
    let failed = |error: io::Error| {
        let path = socket.to_owned();
        match error.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => AskError::NoNodeAt(path),
            ErrorKind::PermissionDenied => AskError::Forbidden(path),
            _ => AskError::Connection { path, source: error },
        }
    };
    let stream = UnixStream::connect(socket).map_err(failed)?;
    stream.set_read_timeout(Some(TIMEOUT)).map_err(failed)?;
    let mut text = String::new();
    stream.take(MAX_STATUS).read_to_string(&mut text).map_err(failed)?;
    let status = serde_json::from_str(&text);
    let status = status.map_err(|source| AskError::NoStatus { path: socket.to_owned(), source })?;
    Ok((text, status))
}

/// The socket of the node `name`, or of the only one on this host.
///
/// # Errors
/// No node or several, if no name is given.
pub fn socket_of(name: Option<&str>) -> Result<PathBuf, AskError> {
    if let Some(name) = name {
        return Ok(Config::default_socket(name));
    }
    let default = Config::default_socket("x");
    let directory = default.parent().unwrap_or(Path::new("/run/hopcast"));
    let files = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let name = |path: &PathBuf| -> Option<String> {
        Some(path.file_name()?.to_str()?.strip_prefix("node-")?.strip_suffix(".sock")?.to_owned())
    };
    let mut sockets: Vec<_> = files.filter_map(|path| Some((name(&path)?, path))).collect();
    // Sockets of killed nodes are ignored.
    sockets.retain(|(_, path)| UnixStream::connect(path).is_ok());
    sockets.sort();
    match sockets.as_slice() {
        [] => Err(AskError::NoNode(directory.to_owned())),
        [(_, path)] => Ok(path.clone()),
        several => Err(AskError::Several(several.iter().map(|(name, _)| name.clone()).collect())),
    }
}
