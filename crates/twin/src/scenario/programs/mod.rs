//! Real programs as workloads.
//!
//! A flow whose `app` is a program has the program's options; `hopcast-live` makes the command lines. In virtual time
//! there are no programs, and such a scenario is refused with the line of [`needs_live`](super::needs_live). `ping` is
//! an exception: hosts in virtual time have ICMP, so that only its `arguments` need a live run.

mod decode;
mod exec;
mod group_file;
mod groups;

use std::fmt;
use std::sync::Arc;

use hopcast_core::{Bytes, Duration, Instant, Rate};
use hopcast_stack::Stack;
use hopcast_stack::network::NodeId;
use hopcast_stack::table::Worlds;
use hopcast_stack::transport::{Layer, Ports, Socket};

use hopcast_config::Diagnostic;
use hopcast_config::yaml::{Kind, Node};

pub(crate) use decode::{PROGRAMS, program};
pub(crate) use exec::execs;
pub use group_file::{GroupFile, GroupFileProgram};

/// Payload of ping's requests unless the scenario says another, in bytes (ping(8)).
const PING_SIZE: u64 = 56;
/// The payload of a full UDP datagram over IPv4 and an MTU of 1,500: less 20 and 8 bytes of headers (RFC 791, RFC 768).
const DATAGRAM_SIZE: u64 = 1472;

/// A real program between two nodes.
#[derive(Clone, Debug, PartialEq)]
pub enum Program {
    /// `iperf3`.
    Iperf3(Load),
    /// `iperf`, version 2.
    Iperf2(Load),
    /// `nuttcp`.
    Nuttcp(Load),
    /// `ping`.
    Ping(PingOptions),
    /// `ffmpeg`: a generated test picture.
    Ffmpeg(TestPicture),
    /// A plain copy through `socat` or `nc`.
    Copy(FileCopy),
    /// A file to a group, by `libnorm`, `openpgm`, `jgroups`, `uftp` or `udpcast`.
    GroupFile(GroupFile),
}

/// The traffic of a program for measuring throughput.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// Rate of payload, of all connections together; `None` for TCP's maximum.
    pub rate: Option<Rate>,
    /// Payload of each datagram, or of each write to a stream; `None` for the program's default on a stream.
    pub size: Option<Bytes>,
    /// Number of parallel connections.
    pub parallel: u32,
    /// Whether the payload is sent from `to` to `from`.
    pub reverse: bool,
    /// More arguments for the client, as on its command line.
    pub arguments: Vec<String>,
}

/// The requests of ping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PingOptions {
    /// Payload of each request.
    pub size: Bytes,
    /// The time from one request to the next.
    pub every: Duration,
    /// More arguments, as on its command line.
    pub arguments: Vec<String>,
}

/// A test picture and how it is coded.
#[derive(Clone, Debug, PartialEq)]
pub struct TestPicture {
    /// Rate of the coded picture.
    pub rate: Rate,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// Frames per second.
    pub fps: u32,
    /// Frames from one I-frame to the next.
    pub gop: u32,
    /// Maximum delay of a frame after it was sent; a later one is too late.
    pub deadline: Duration,
    /// Payload of each datagram, where it is sent in datagrams.
    pub size: Bytes,
}

/// A file that is copied.
#[derive(Clone, Debug, PartialEq)]
pub struct FileCopy {
    /// The contents, read when the scenario was.
    pub contents: Arc<[u8]>,
    /// The program that copies.
    pub with: CopyProgram,
}

/// The program that copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CopyProgram {
    /// `socat`.
    #[default]
    Socat,
    /// `nc`.
    Nc,
}

impl Program {
    /// Its name in `app`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Iperf3(_) => "iperf3",
            Self::Iperf2(_) => "iperf2",
            Self::Nuttcp(_) => "nuttcp",
            Self::Ping(_) => "ping",
            Self::Ffmpeg(_) => "ffmpeg",
            Self::Copy(_) => "copy",
            Self::GroupFile(file) => file.with.name(),
        }
    }

    /// The payload of its datagrams; `None` on a stream.
    pub(crate) fn datagram(&self, on: Option<Socket>) -> Option<u64> {
        match self {
            Self::Ping(ping) => Some(ping.size.get()),
            Self::Iperf3(load) | Self::Iperf2(load) | Self::Nuttcp(load) if on == Some(Socket::Udp) => {
                Some(load.datagram().get())
            }
            Self::Ffmpeg(picture) if on == Some(Socket::Udp) => Some(picture.size.get()),
            Self::Iperf3(_)
            | Self::Iperf2(_)
            | Self::Nuttcp(_)
            | Self::Ffmpeg(_)
            | Self::Copy(_)
            // They make their packets to fit.
            | Self::GroupFile(_) => None,
        }
    }

    /// Its headers before the payload where the stack has none, in bytes.
    pub(crate) const fn headers(&self, ipv6: bool) -> u64 {
        match self {
            // IP's header, and ICMP's (RFC 792, RFC 4443).
            Self::Ping(_) => (if ipv6 { 40 } else { 20 }) + 8,
            Self::GroupFile(_) => GroupFile::HEADERS,
            Self::Iperf3(_) | Self::Iperf2(_) | Self::Nuttcp(_) | Self::Ffmpeg(_) | Self::Copy(_) => 0,
        }
    }
}

impl Load {
    /// The payload of a datagram.
    pub fn datagram(&self) -> Bytes {
        self.size.unwrap_or(Bytes::new(DATAGRAM_SIZE))
    }
}

/// A command at a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exec {
    /// The name that messages and the files of its output have.
    pub name: String,
    /// Node that it runs on.
    pub at: NodeId,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Time at which it is started.
    pub start: Instant,
    /// Time at which it is stopped, if it has not ended by itself; `None` at the end of the run.
    pub stop: Option<Instant>,
    /// The signal that stops it.
    pub stop_with: Signal,
    /// The exit status that it must have; `None` for any.
    pub expect: Option<u8>,
}

/// A signal that ends a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Signal {
    /// As Ctrl-C does.
    #[default]
    Int,
    /// The usual request to end.
    Term,
    /// As if its terminal had been closed.
    Hup,
    /// At once; it cannot be caught.
    Kill,
}

/// The part of a scenario that needs a live run, with its place in the file.
///
/// Its [`Debug`] form is empty, so that a comment that moves it to another line does not change a run's identity.
#[derive(Clone, Default)]
pub struct LiveOnly(Option<Arc<str>>);

impl LiveOnly {
    /// The reason in one line, with the place in the file.
    pub(super) fn why(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// The first part of those found.
    pub(crate) fn first(found: Vec<Option<Diagnostic>>) -> Self {
        Self(found.into_iter().flatten().next().map(|diagnostic| diagnostic.to_string().into()))
    }
}

impl fmt::Debug for LiveOnly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LiveOnly")
    }
}

/// The reason why an `app` needs a live run, if it does.
pub(crate) fn live_app(node: &Node) -> Option<Diagnostic> {
    let like = match word(node)? {
        name @ ("iperf3" | "iperf2" | "nuttcp") => (name, "`bulk` and `cbr` are its like"),
        "ping" => {
            let arguments = arguments(node)?;
            return Some(arguments.error(
                "`arguments` are for the real `ping`, which runs with --live only; without them it runs in virtual time",
            ));
        }
        "ffmpeg" => ("ffmpeg", "`video` is its like"),
        "copy" => ("copy", "`file` is its like"),
        name => (GroupFileProgram::named(name)?.name(), "`bulk` with `bytes` over `norm` is its like"),
    };
    let (name, like) = like;
    Some(node.error(format!("`{name}` is a real program: it runs with --live only; {like} in virtual time")))
}

/// The `arguments` of a program as `app`, if it has any.
fn arguments(app: &Node) -> Option<&Node> {
    let Kind::Map(app) = &app.kind else { return None };
    let Kind::Map(options) = &app.first()?.value.kind else { return None };
    let arguments = options.iter().find(|option| option.key == "arguments")?;
    let is_empty = matches!(&arguments.value.kind, Kind::List(words) if words.is_empty());
    (!is_empty).then_some(&arguments.value)
}

/// The reason why a stack needs a live run, if it does.
pub(crate) fn live_stack(node: &Node, layers: &[Layer]) -> Option<Diagnostic> {
    layers.iter().find_map(|layer| {
        let Worlds::Live { models, .. } = layer.row().worlds else { return None };
        let name = layer.row().name;
        Some(
            node.error(format!(
                "`{name}` is a real program: it runs with --live only; {models} in virtual time"
            )),
        )
    })
}

/// Checks that an application can use the top of a stack: only `ping` sends packets.
pub(crate) fn carries_something(stack: &Stack, over: &Node, app: &Node) -> Result<(), Diagnostic> {
    if stack.offers != Ports::PACKETS || sends_packets(app) {
        return Ok(());
    }
    // If several layers are written as one name, the error is at the name.
    let top = stack.top();
    Err(over.error(format!(
        "`over`: `{top}` offers packets, which no application but `ping` sends: put a transport such as `tcp-cubic` on top"
    )))
}

/// Whether an `app` sends packets, as only `ping` does.
fn sends_packets(node: &Node) -> bool {
    word(node) == Some("ping")
}

/// The word of `word` or `{ word: options }`.
fn word(node: &Node) -> Option<&str> {
    match &node.kind {
        Kind::Scalar(word) => Some(word),
        Kind::Map(entries) => entries.first().map(|entry| &*entry.key),
        Kind::List(_) => None,
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Iperf3(load) | Self::Iperf2(load) | Self::Nuttcp(load) => {
                write!(f, "{}{load}", self.name())
            }
            Self::Ping(PingOptions { size, every, .. }) => write!(f, "ping of {size} every {every}"),
            Self::Ffmpeg(TestPicture { rate, width, height, fps, gop, deadline, .. }) => write!(
                f,
                "ffmpeg, {width}x{height} at {fps} frames a second, {rate}, GOP of {gop}, deadline {deadline}"
            ),
            Self::Copy(FileCopy { contents, with }) => {
                let with = match with {
                    CopyProgram::Socat => "socat",
                    CopyProgram::Nc => "nc",
                };
                write!(f, "a file of {} bytes through {with}", contents.len())
            }
            Self::GroupFile(file) => file.fmt(f),
        }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rate {
            Some(rate) => write!(f, ", {rate}")?,
            None => f.write_str(", as much as goes")?,
        }
        if let Some(size) = self.size {
            write!(f, ", {size} each")?;
        }
        if self.parallel > 1 {
            write!(f, ", {} at once", self.parallel)?;
        }
        if self.reverse { f.write_str(", back to its sender") } else { Ok(()) }
    }
}
