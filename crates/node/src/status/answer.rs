//! The node's side: a thread that answers on a Unix socket and, if the file says so, over HTTP.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::Board;
use crate::metrics;

/// Whoever asks or listens more slowly than this gets no answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// After a connection that could not be accepted.
const PAUSE: Duration = Duration::from_millis(100);
/// The longest request that is read; Prometheus' have a few hundred bytes.
const LONGEST_REQUEST: usize = 8192;

/// The status socket, which is taken away with this.
pub(crate) struct Socket(PathBuf);

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Answers on `path` from now on: whoever connects is told the status, as one JSON document.
pub(crate) fn on_socket(path: &Path, board: Board) -> Result<Socket, String> {
    let failed = |error: std::io::Error| format!("cannot answer at {}: {error}", path.display());
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(failed)?;
    }
    match UnixStream::connect(path) {
        Ok(_) => return Err(format!("a node is already running that answers at {}", path.display())),
        // Left behind by one that was killed; a file of another kind is somebody's.
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            let kind = fs::symlink_metadata(path).map_err(failed)?.file_type();
            if !kind.is_socket() {
                return Err(format!(
                    "cannot answer at {}: there is something else than a socket",
                    path.display()
                ));
            }
            fs::remove_file(path).map_err(failed)?;
        }
        Err(_) => {}
    }
    let listener = UnixListener::bind(path).map_err(failed)?;
    // Names and addresses of peers are for whoever may run the node.
    fs::set_permissions(path, fs::Permissions::from_mode(0o660)).map_err(failed)?;
    let socket = Socket(path.to_owned());
    spawn("status", move || {
        for stream in listener.incoming() {
            let Some(mut stream) = accepted(stream) else { continue };
            let _ = stream.set_write_timeout(Some(PATIENCE));
            if let Ok(mut text) = serde_json::to_string(&*board.read()) {
                text.push('\n');
                // Whoever does not listen has not asked.
                let _ = stream.write_all(text.as_bytes());
            }
        }
    })?;
    Ok(socket)
}

/// A connection, or after a pause none: where descriptors have run out, the next one comes at once and fails as well.
fn accepted<S>(stream: std::io::Result<S>) -> Option<S> {
    if stream.is_err() {
        #[allow(clippy::disallowed_methods)] // a thread that only answers
        std::thread::sleep(PAUSE);
    }
    stream.ok()
}

/// Answers `GET /metrics` at `address` from now on.
pub(crate) fn on_http(address: SocketAddr, board: Board) -> Result<(), String> {
    let failed = |error| format!("cannot serve metrics at {address}: {error}");
    let listener = TcpListener::bind(address).map_err(failed)?;
    spawn("metrics", move || {
        for stream in listener.incoming() {
            let Some(mut stream) = accepted(stream) else { continue };
            let _ = stream.set_write_timeout(Some(PATIENCE));
            let Some(request) = request(&mut stream) else { continue };
            let (status, body) = respond(&request, &board);
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            let head_only = request.starts_with(b"HEAD ");
            let _ = stream.write_all(head.as_bytes());
            if !head_only {
                let _ = stream.write_all(body.as_bytes());
            }
        }
    })
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), String> {
    let spawned = thread::Builder::new().name(name.to_owned()).spawn(work);
    spawned.map(drop).map_err(|error| format!("cannot start a thread: {error}"))
}

/// A request's head, if it comes in time and is not too long.
#[allow(clippy::disallowed_methods)] // How long a stranger keeps us waiting is no virtual time.
fn request(stream: &mut std::net::TcpStream) -> Option<Vec<u8>> {
    let end = Instant::now() + PATIENCE;
    let mut request = Vec::new();
    let mut piece = [0; 1024];
    while !request.windows(4).any(|four| four == b"\r\n\r\n") {
        let left = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())?;
        stream.set_read_timeout(Some(left)).ok()?;
        let length = stream.read(&mut piece).ok().filter(|&length| length > 0)?;
        request.extend_from_slice(&piece[..length]);
        if request.len() > LONGEST_REQUEST {
            return None;
        }
    }
    Some(request)
}

/// The status line's end and the body.
fn respond(request: &[u8], board: &Board) -> (&'static str, String) {
    let line = request.split(|&byte| byte == b'\r').next().unwrap_or_default();
    let mut words = line.split(|&byte| byte == b' ');
    let (method, target, version) = (words.next(), words.next(), words.next());
    if words.next().is_some() || !version.is_some_and(|version| version.starts_with(b"HTTP/1.")) {
        return ("400 Bad Request", "this is no HTTP/1 request\n".to_owned());
    }
    if !matches!(method, Some(b"GET" | b"HEAD")) {
        return ("405 Method Not Allowed", "metrics can only be read\n".to_owned());
    }
    match target {
        Some(b"/metrics") => ("200 OK", metrics::text(&board.read())),
        _ => ("404 Not Found", "there is only /metrics\n".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status_of(request: &[u8]) -> &'static str {
        respond(request, &Board::default()).0
    }

    #[test]
    fn only_a_read_of_the_metrics_is_answered_with_them() {
        assert_eq!(status_of(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"), "200 OK");
        assert_eq!(status_of(b"GET / HTTP/1.1\r\n\r\n"), "404 Not Found");
        assert_eq!(status_of(b"POST /metrics HTTP/1.1\r\n\r\n"), "405 Method Not Allowed");
        for garbage in
            [&b"\r\n\r\n"[..], b"GET /metrics\r\n\r\n", b"\xFF\x00 \x01 HTTP/9\r\n\r\n", b"a b c d\r\n\r\n"]
        {
            assert_eq!(status_of(garbage), "400 Bad Request", "{garbage:?}");
        }
    }
}
