//! The options of programs.

use hopcast_core::{Bytes, Duration, Rate};

use super::{
    CopyProgram, DATAGRAM_SIZE, FileCopy, GroupFile, GroupFileProgram, Load, PING_SIZE, PingOptions, Program,
    TestPicture,
};
use crate::scenario::files::Contents;
use crate::scenario::frequency::frequency;
use crate::scenario::model::{Socket, socket};
use hopcast_config::Diagnostic;
use hopcast_config::decode::{self, Fields, choice, flag, rate, size, some_duration, whole, words};
use hopcast_config::yaml::Node;
use hopcast_stack::Stack;
use hopcast_stack::transport::PortKind;

/// The programs that an `app` may be.
pub(crate) const PROGRAMS: [&str; 11] = [
    "iperf3", "iperf2", "nuttcp", "ping", "ffmpeg", "copy", "libnorm", "openpgm", "jgroups", "uftp",
    "udpcast",
];

/// Maximum payload of a datagram of a program, in bytes: IPv4's maximum (RFC 768, RFC 791).
const MAX_DATAGRAM: u64 = 65_507;
/// Minimum payload of a datagram of a program, in bytes. Chosen: all programs put their number and time into it.
const MIN_DATAGRAM: u64 = 64;
/// Maximum number of connections that iperf3 opens.
const MAX_PARALLEL: u64 = 128;
/// Length of a packet of an MPEG transport stream, in bytes (ISO/IEC 13818-1).
const TS_PACKET: u64 = 188;

/// The keys of a program's options.
fn keys(name: &str) -> &'static [&'static str] {
    match name {
        "ping" => &["size", "rate", "every", "arguments", "start", "stop"],
        "ffmpeg" => &["rate", "picture", "fps", "gop", "deadline", "size", "start", "stop"],
        "copy" => &["path", "with", "start", "stop"],
        _ if GroupFileProgram::named(name).is_some() => GroupFile::KEYS,
        // Each of its connections has a port of its own, and a flow has two.
        "nuttcp" => &["rate", "size", "reverse", "arguments", "start", "stop"],
        _ => &["rate", "size", "parallel", "reverse", "arguments", "start", "stop"],
    }
}

/// Reads the program `name` with its options, which `fields` checks.
pub(crate) fn program<'a>(
    name: &str,
    node: &Node,
    fields: impl FnOnce(&[&str]) -> Result<Fields<'a>, Diagnostic>,
    stack: &Stack,
    contents: &mut Contents,
) -> Result<(Program, Fields<'a>), Diagnostic> {
    let fields = fields(keys(name))?;
    let on = carries(node, name, stack)?;
    if let Some(with) = GroupFileProgram::named(name) {
        return Ok((Program::GroupFile(GroupFile::decode(with, fields)?), fields));
    }
    let program = match name {
        "ping" => Program::Ping(ping(fields)?),
        "ffmpeg" => Program::Ffmpeg(picture(fields)?),
        "copy" => Program::Copy(copy(fields, contents)?),
        "iperf3" => Program::Iperf3(load(fields, node, name, on)?),
        "iperf2" => Program::Iperf2(load(fields, node, name, on)?),
        _ => Program::Nuttcp(load(fields, node, name, on)?),
    };
    Ok((program, fields))
}

/// The kind of sockets through which a program uses this stack, or the reason why it cannot.
fn carries(node: &Node, name: &str, stack: &Stack) -> Result<Socket, Diagnostic> {
    let Stack { protocol, offers, layers } = stack;
    match socket(layers) {
        Some(Socket::Icmp) if name == "ping" => Ok(Socket::Icmp),
        _ if name == "ping" => Err(node.error(format!(
            "`app`: `ping` sends packets, and `{protocol}` offers {offers}: use `ip`, or a stack with `tunnel` on top"
        ))),
        Some(Socket::Udp) if GroupFileProgram::named(name).is_some() => Ok(Socket::Udp),
        _ if GroupFileProgram::named(name).is_some() => Err(node.error(format!(
            "`app`: `{name}` sends to groups by the host's own UDP, and `{protocol}` offers {offers}: use `udp`"
        ))),
        Some(Socket::Udp) if name == "copy" => Err(node.error(format!(
            "`app`: `copy` writes a stream, and `{protocol}` offers {offers}: use `tcp-cubic`, or `ffmpeg`"
        ))),
        Some(Socket::Tcp { congestion: None }) if name == "nuttcp" => Err(node.error(format!(
            "`app`: `nuttcp` opens connections to two ports, and `{protocol}` carries one: use `iperf3`"
        ))),
        Some(found) if found != Socket::Icmp => Ok(found),
        _ => {
            let inside = match layers.first() {
                Some(top) if top.settings().ends_connections() => format!("[tcp-cubic, {protocol}]"),
                Some(_) if offers.has(PortKind::Datagram) => format!("[udp, tunnel, {protocol}]"),
                _ if offers.has(PortKind::Packet) => "[tcp-cubic, tunnel, brtp]".to_owned(),
                _ => "[tcp-cubic, tunnel, udp]".to_owned(),
            };
            Err(node.error(format!(
                "`app`: `{name}` is a program and uses the host's sockets, and `{protocol}` is none of them: put `udp`, a TCP or \
                 `kcptun` on top, for example `over: {inside}`"
            )))
        }
    }
}

fn load(fields: Fields<'_>, node: &Node, name: &str, on: Socket) -> Result<Load, Diagnostic> {
    let sizes = if on == Socket::Udp { MIN_DATAGRAM..=MAX_DATAGRAM } else { 1..=1 << 20 };
    let load = Load {
        rate: fields.read("rate", rate)?,
        size: fields.read("size", |node, key| size(node, key, sizes))?,
        parallel: fields.read("parallel", |node, key| whole(node, key, 1..=MAX_PARALLEL))?.unwrap_or(1)
            as u32,
        reverse: fields.read("reverse", flag)?.unwrap_or(false),
        arguments: fields.read("arguments", words)?.unwrap_or_default(),
    };
    if on == Socket::Udp && load.rate.is_none() {
        return Err(node.error(format!(
            "`{name}` over datagrams needs `rate`, for example `{{ {name}: {{ rate: 10 Mbit/s }} }}`"
        )));
    }
    Ok(load)
}

fn ping(fields: Fields<'_>) -> Result<PingOptions, Diagnostic> {
    // With less than a time stamp ping measures nothing.
    let size = fields.read("size", |node, key| size(node, key, 16..=MAX_DATAGRAM))?;
    let every = match (fields.get("rate"), fields.get("every")) {
        (Some(_), Some(node)) => return Err(node.error("`ping` takes `rate` or `every`, not both")),
        (Some(node), None) => frequency(node, "rate")?,
        (None, Some(node)) => some_duration(node, "every")?,
        (None, None) => Duration::from_secs(1),
    };
    if every < Duration::from_millis(1) {
        let node = fields.get("rate").or(fields.get("every"));
        return Err(node.map_or_else(
            || fields.error(""),
            |node| {
                node.error(format!("`ping`: expected at most 1000 requests a second, found {}", node.found()))
            },
        ));
    }
    let arguments = fields.read("arguments", words)?.unwrap_or_default();
    Ok(PingOptions { size: size.unwrap_or(Bytes::new(PING_SIZE)), every, arguments })
}

fn picture(fields: Fields<'_>) -> Result<TestPicture, Diagnostic> {
    let (width, height) = fields.read("picture", pixels)?.unwrap_or((640, 360));
    let size = fields.read("size", |node, key| match size(node, key, TS_PACKET..=MAX_DATAGRAM)? {
        size if size.get() % TS_PACKET == 0 => Ok(size),
        size => Err(node.error(format!("`{key}`: expected a multiple of {TS_PACKET} B, found {size}"))),
    })?;
    let number = |key, max| fields.read(key, |node, key| whole(node, key, 1..=max).map(|found| found as u32));
    Ok(TestPicture {
        rate: fields.read("rate", rate)?.unwrap_or(Rate::from_bits_per_sec(2_000_000)),
        width,
        height,
        fps: number("fps", 240)?.unwrap_or(25),
        gop: number("gop", 1000)?.unwrap_or(12),
        deadline: fields.read("deadline", some_duration)?.unwrap_or(Duration::from_millis(200)),
        // As many packets as fit an MTU of 1,500.
        size: size.unwrap_or(Bytes::new(DATAGRAM_SIZE / TS_PACKET * TS_PACKET)),
    })
}

/// Reads a size such as `640x360`.
fn pixels(node: &Node, key: &str) -> Result<(u32, u32), Diagnostic> {
    let text = decode::text(node, key)?;
    let numbers =
        text.split_once('x').and_then(|(width, height)| width.parse().ok().zip(height.parse().ok()));
    // 4:2:0 halves both.
    let fits = |side: u32| (32..=4096).contains(&side) && side.is_multiple_of(2);
    numbers.filter(|&(width, height)| fits(width) && fits(height)).ok_or_else(|| {
        node.error(format!(
            "`{key}`: expected even numbers of pixels from 32x32 to 4096x4096, such as `640x360`, found `{text}`"
        ))
    })
}

fn copy(fields: Fields<'_>, contents: &mut Contents) -> Result<FileCopy, Diagnostic> {
    let contents = contents.file(fields.need("path", "path: data/picture.jpg")?, "path")?;
    let with = fields.read("with", |node, key| Ok(choice(node, key, &["socat", "nc"])?.0))?;
    let with = if with == Some("nc") { CopyProgram::Nc } else { CopyProgram::Socat };
    Ok(FileCopy { contents, with })
}
