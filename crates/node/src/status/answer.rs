//! The node's side: it answers on a Unix socket and, if configured, over HTTP, several at a time.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::{AnswerError, Board};
use crate::metrics;

/// Maximum time of a request and of its answer. Chosen; shorter cuts off a slow reader, longer lets idle ones use up
/// the answers.
const IO_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of answers at a time; one more request is turned away. Chosen: it bounds threads.
const MAX_ANSWERS: usize = 32;
/// Maximum time for which a predecessor that accepts connections and says nothing is asked again: one that is being
/// killed refuses them by then. Chosen; longer delays the error where another node stays.
const PREDECESSOR_TIMEOUT: Duration = Duration::from_secs(5);
/// Stack size of an answering thread, in bytes: it reads some hundred bytes, and its page is on the heap. Chosen.
const STACK_SIZE: usize = 256 << 10;
/// Pause after a connection that could not be accepted or was not answered. Chosen; shorter is a busy loop while
/// descriptors are used up, longer delays the next answer.
const RETRY_PAUSE: Duration = Duration::from_millis(100);
/// Maximum length of a request, in bytes; Prometheus' have some hundred. Chosen: it bounds memory.
const MAX_REQUEST: usize = 8192;

/// The status socket, which is removed when this is dropped.
pub(crate) struct Socket(PathBuf);

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// The predecessor of a node at its socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Predecessor {
    /// None, or one that has removed its socket.
    Nobody,
    /// A node that answers, or accepts connections without answering: overloaded, or stopped for a while.
    Running,
    /// A node that was killed: its socket exists, but is not listened on. Its devices may exist a little longer.
    Killed,
    /// Unknown, because of this error.
    Unknown(ErrorKind),
    /// The file is no socket.
    Other,
}

/// The predecessor at `path`.
pub(crate) fn predecessor(path: &Path) -> Predecessor {
    predecessor_within(path, PREDECESSOR_TIMEOUT)
}

fn predecessor_within(path: &Path, patience: Duration) -> Predecessor {
    match fs::symlink_metadata(path) {
        Err(_) => return Predecessor::Nobody,
        Ok(found) if !found.file_type().is_socket() => return Predecessor::Other,
        Ok(_) => {}
    }
    // The sockets of a process that is being killed accept connections until they are closed.
    let deadline = Deadline::after(patience);
    while let Some(left) = deadline.left() {
        match greeted(path, left.min(IO_TIMEOUT)) {
            Ok(Some(1..)) => return Predecessor::Running,
            Ok(_) => pause(),
            Err(ErrorKind::ConnectionRefused) => return Predecessor::Killed,
            Err(ErrorKind::NotFound) => return Predecessor::Nobody,
            Err(ErrorKind::Interrupted | ErrorKind::WouldBlock | ErrorKind::TimedOut) => pause(),
            Err(other) => return Predecessor::Unknown(other),
        }
    }
    Predecessor::Running
}

/// Number of bytes that the listener sends in time; `None` if it sends nothing.
fn greeted(path: &Path, limit: Duration) -> Result<Option<usize>, ErrorKind> {
    let connected = || {
        let socket = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None)?;
        // Connecting to a full queue blocks (unix(7)).
        socket.set_write_timeout(Some(limit))?;
        socket.connect(&socket2::SockAddr::unix(path)?)?;
        socket.set_read_timeout(Some(limit))?;
        Ok(socket)
    };
    let mut socket = connected().map_err(|error: std::io::Error| error.kind())?;
    Ok(socket.read(&mut [0; 1]).ok())
}

/// Answers on `path` from now on: each connection receives the status as one JSON document.
pub(crate) fn on_socket(path: &Path, board: Board) -> Result<Socket, AnswerError> {
    let failed = |source: std::io::Error| AnswerError::Socket { path: path.to_owned(), source };
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(failed)?;
    }
    match predecessor(path) {
        Predecessor::Nobody => {}
        Predecessor::Running => return Err(AnswerError::NodeRunning(path.to_owned())),
        Predecessor::Killed => fs::remove_file(path).map_err(failed)?,
        Predecessor::Unknown(kind) => return Err(AnswerError::Unknown { path: path.to_owned(), kind }),
        Predecessor::Other => return Err(AnswerError::NotASocket(path.to_owned())),
    }
    let listener = UnixListener::bind(path).map_err(failed)?;
    // Only users who may run the node may read the names and addresses of peers.
    fs::set_permissions(path, fs::Permissions::from_mode(0o660)).map_err(failed)?;
    let socket = Socket(path.to_owned());
    let tell = |stream: &mut UnixStream, board: &Board| {
        if let Ok(mut text) = serde_json::to_string(&*board.read_with_tables()) {
            text.push('\n');
            write(stream, text.as_bytes());
        }
    };
    spawn("status", move || answer(listener.incoming(), &board, tell, |_| {}))?;
    Ok(socket)
}

/// A connection whose reads and writes have timeouts.
trait Timed: Read + Write + Send + 'static {
    fn limit(&self, left: Duration) -> std::io::Result<()>;
}

impl Timed for UnixStream {
    fn limit(&self, left: Duration) -> std::io::Result<()> {
        self.set_read_timeout(Some(left))?;
        self.set_write_timeout(Some(left))
    }
}

impl Timed for TcpStream {
    fn limit(&self, left: Duration) -> std::io::Result<()> {
        self.set_read_timeout(Some(left))?;
        self.set_write_timeout(Some(left))
    }
}

/// Answers each connection on a thread of its own, so that slow ones block nobody; those beyond [`MAX_ANSWERS`] are
/// turned away.
fn answer<S: Timed>(
    incoming: impl Iterator<Item = std::io::Result<S>>,
    board: &Board,
    tell: fn(&mut S, &Board),
    turn_away: fn(&mut S),
) {
    let here = Arc::new(());
    for stream in incoming {
        let Some(mut stream) = accepted(stream) else { continue };
        let mine = Arc::clone(&here);
        // One is of this thread, one of the new thread.
        if Arc::strong_count(&here) > MAX_ANSWERS + 1 {
            board.turned_away();
            turn_away(&mut stream);
            continue;
        }
        let theirs = board.clone();
        let work = move || {
            tell(&mut stream, &theirs);
            drop(mine);
        };
        if thread::Builder::new().name("answer".to_owned()).stack_size(STACK_SIZE).spawn(work).is_err() {
            board.turned_away();
        }
    }
}

/// Writes as much as the reader takes in time.
fn write(stream: &mut impl Timed, mut bytes: &[u8]) {
    let deadline = Deadline::new();
    while !bytes.is_empty() {
        let Some(left) = deadline.left() else { return };
        if stream.limit(left).is_err() {
            return;
        }
        match stream.write(bytes) {
            Ok(written @ 1..) => bytes = &bytes[written..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => return,
        }
    }
}

/// The deadline of a connection.
struct Deadline(Instant);

#[allow(clippy::disallowed_methods)] // How long a stranger keeps us waiting is no virtual time.
impl Deadline {
    fn new() -> Self {
        Self::after(IO_TIMEOUT)
    }

    fn after(span: Duration) -> Self {
        Self(Instant::now() + span)
    }

    fn left(&self) -> Option<Duration> {
        self.0.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
    }
}

/// A connection; after an error `None`, with a pause: without free descriptors the next one fails at once too.
fn accepted<S>(stream: std::io::Result<S>) -> Option<S> {
    if stream.is_err() {
        pause();
    }
    stream.ok()
}

#[allow(clippy::disallowed_methods)] // in a thread that only answers, and at the start
fn pause() {
    std::thread::sleep(RETRY_PAUSE);
}

/// Answers `GET /metrics` at `address` from now on.
pub(crate) fn on_http(address: SocketAddr, board: Board) -> Result<(), AnswerError> {
    let failed = |source| AnswerError::Metrics { address, source };
    let listener = TcpListener::bind(address).map_err(failed)?;
    let tell = |stream: &mut TcpStream, board: &Board| {
        let Some(request) = request(stream) else { return };
        let (status, body) = respond(&request, board);
        let mut answer = head(status, body.len());
        if !request.starts_with(b"HEAD ") {
            answer.push_str(&body);
        }
        write(stream, answer.as_bytes());
    };
    let turn_away = |stream: &mut TcpStream| write(stream, head("503 Service Unavailable", 0).as_bytes());
    spawn("metrics", move || answer(listener.incoming(), &board, tell, turn_away))
}

fn head(status: &str, length: usize) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    )
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), AnswerError> {
    let spawned = thread::Builder::new().name(name.to_owned()).spawn(work);
    spawned.map(drop).map_err(AnswerError::Thread)
}

/// The head of a request, if it comes in time and is not too long.
fn request(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let deadline = Deadline::new();
    let mut request = Vec::new();
    let mut piece = [0; 1024];
    while !request.windows(4).any(|four| four == b"\r\n\r\n") {
        stream.limit(deadline.left()?).ok()?;
        let length = stream.read(&mut piece).ok().filter(|&length| length > 0)?;
        request.extend_from_slice(&piece[..length]);
        if request.len() > MAX_REQUEST {
            return None;
        }
    }
    Some(request)
}

/// The end of the status line, and the body.
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
    use std::sync::atomic::{AtomicBool, Ordering};

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

    #[test]
    fn only_who_refuses_connections_was_killed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sock");
        let is = |patience| predecessor_within(&path, Duration::from_millis(patience));
        assert_eq!(is(300), Predecessor::Nobody);
        let listener = UnixListener::bind(&path).unwrap();
        assert_eq!(is(300), Predecessor::Running, "it is frozen, and takes connections all the same");
        let over = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&over);
        let turns_away = thread::spawn(move || {
            for stream in listener.incoming() {
                drop(stream);
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        assert_eq!(is(300), Predecessor::Running, "it has too many askers, and turns all away");
        over.store(true, Ordering::Relaxed);
        assert_eq!(is(60_000), Predecessor::Killed, "it turns away one more, and is gone");
        turns_away.join().unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, "something").unwrap();
        assert_eq!(is(300), Predecessor::Other);
    }

    #[test]
    fn clients_that_say_nothing_hold_nobody_up_and_too_many_are_turned_away() {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let board = Board::default();
        on_http(free, board.clone()).unwrap();
        let ask = || {
            let mut stream = TcpStream::connect(free).unwrap();
            // A connection that is turned away may not take what is written.
            let _ = stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n");
            let mut answer = String::new();
            let _ = stream.read_to_string(&mut answer);
            answer
        };
        let mute: Vec<_> = (0..MAX_ANSWERS - 1).map(|_| TcpStream::connect(free).unwrap()).collect();
        assert!(ask().starts_with("HTTP/1.1 200 OK"));
        let more: Vec<_> = (0..MAX_ANSWERS).map(|_| TcpStream::connect(free).unwrap()).collect();
        let turned_away = || board.turned_away.load(std::sync::atomic::Ordering::Relaxed);
        while turned_away() == 0 {
            std::thread::yield_now();
        }
        drop((mute, more));
        // All are answered sooner or later.
        while !ask().starts_with("HTTP/1.1 200 OK") {}
    }
}
