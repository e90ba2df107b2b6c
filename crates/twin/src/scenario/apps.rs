//! The `app` of a flow.

use hopcast_core::{Bytes, Duration, Fraction, Instant};

use super::files::Contents;
use super::frequency::frequency;
use super::model::{
    App, Arrivals, FrameType, Frames, MAX_FRAME, OnOff, Pattern, SHORT_FLOW, SendSpan, SizeLaw, Spread,
};
use super::programs::{self, PROGRAMS};
use hopcast_config::Diagnostic;
use hopcast_config::decode::{Fields, choice, duration, number, rate, share, size, some_duration, whole};
use hopcast_config::yaml::{Kind, Node};
use hopcast_stack::Stack;
use hopcast_stack::transport::PortKind;

/// The applications that are machines.
const MACHINES: [&str; 6] = ["cbr", "bulk", "file", "messages", "video", "short-flows"];
const APPS: [&str; MACHINES.len() + PROGRAMS.len()] = {
    let mut apps = [""; MACHINES.len() + PROGRAMS.len()];
    let mut at = 0;
    while at < apps.len() {
        apps[at] = if at < MACHINES.len() { MACHINES[at] } else { PROGRAMS[at - MACHINES.len()] };
        at += 1;
    }
    apps
};
/// Maximum UDP payload over IPv4, in bytes (RFC 768, RFC 791).
const MAX_DATAGRAM: u64 = 65_507;
/// Maximum message over a stream, or handed over whole, in bytes. Chosen: it bounds buffers; less excludes workloads.
const MAX_MESSAGE: u64 = 16 << 20;
/// Minimum size of a unit, in bytes: the length of its number and time (`STAMP` of `app`).
const MIN_UNIT: u64 = 16;
/// Maximum number of consecutive B-frames: x264's maximum.
const MAX_B_FRAMES: u64 = 16;

/// The application of a flow over `stack`.
pub(crate) fn app(node: &Node, stack: &Stack, contents: &mut Contents) -> Result<App, Diagnostic> {
    let (app, _, options) = choice(node, "app", &APPS)?;
    carries(node, app, stack)?;
    let options = options.unwrap_or(node);
    let what = format!("`{app}`");
    let fields = |allowed: &[&str]| -> Result<Fields<'_>, Diagnostic> {
        match &options.kind {
            // The bare form `app: bulk` has no keys.
            Kind::Scalar(text) if text == app => Ok(Fields::empty(options, &what)),
            _ => Fields::of(options, &what, allowed),
        }
    };
    match app {
        "cbr" => cbr(fields(&["rate", "size", "arrivals", "on-off", "start", "stop"])?),
        "bulk" => {
            let fields = fields(&["rate", "bytes", "port", "start", "stop"])?;
            let rate = fields.read("rate", rate)?;
            let bytes = fields.read("bytes", |node, key| size(node, key, 1..=1 << 50))?;
            let port = fields.read("port", |node, key| port(node, key, stack))?;
            Ok(App::Bulk { rate, bytes, port, span: span(fields)? })
        }
        "file" => {
            let fields = fields(&["path", "start", "stop"])?;
            let contents = contents.file(fields.need("path", "path: data/picture.jpg")?, "path")?;
            Ok(App::File { contents, span: span(fields)? })
        }
        "messages" => messages(fields(&["size", "rate", "every", "start", "stop"])?, stack),
        "video" => {
            let keys = ["rate", "fps", "gop", "b-frames", "variation", "trace", "deadline", "start", "stop"];
            let fields = fields(&keys)?;
            let frames = match fields.get("trace") {
                Some(node) => trace(node, fields, contents)?,
                None => Frames::Pattern(pattern(fields)?),
            };
            let deadline = fields.read("deadline", some_duration)?.unwrap_or(Duration::from_millis(200));
            Ok(App::Video { frames, deadline, span: span(fields)? })
        }
        name if PROGRAMS.contains(&name) => {
            let (program, fields) = programs::program(name, node, fields, stack, contents)?;
            Ok(App::Program { program, span: span(fields)? })
        }
        _ => {
            let fields = fields(&["size", "arrivals", "start", "stop"])?;
            let size = sizes(fields.need("size", "size: 100 kB")?)?;
            let (gaps, every) = frequencies(fields.need("arrivals", "arrivals: 10 /s")?)?;
            Ok(App::ShortFlows { size, every, gaps, span: span(fields)? })
        }
    }
}

/// Checks that the stack offers the port that the application needs.
fn carries(node: &Node, app: &str, stack: &Stack) -> Result<(), Diagnostic> {
    let Stack { protocol, offers, layers } = stack;
    if app == "cbr" && !offers.has(PortKind::Datagram) {
        return Err(node.error(format!(
            "`app`: `cbr` sends datagrams, and `{protocol}` offers {offers}: use `udp`, or `bulk` or `messages`"
        )));
    }
    if app == "short-flows" && !offers.has(PortKind::Stream) {
        return Err(node.error(format!(
            "`app`: `short-flows` opens a stream for each, and `{protocol}` offers {offers}: use `tcp-cubic`, or `cbr` or `bulk`"
        )));
    }
    if app == "short-flows" && layers.first().is_some_and(|top| !top.row().many_streams) {
        return Err(node.error(format!(
            "`app`: `short-flows` opens many streams at a time, and `{protocol}` has one connection over each hop: use `tcp-bbr`"
        )));
    }
    Ok(())
}

/// A port of the stack by its name.
fn port(node: &Node, key: &str, stack: &Stack) -> Result<PortKind, Diagnostic> {
    let port = match choice(node, key, &["stream", "datagrams"])?.0 {
        "stream" => PortKind::Stream,
        _ => PortKind::Datagram,
    };
    if stack.offers.has(port) {
        return Ok(port);
    }
    let (protocol, offers) = (&stack.protocol, stack.offers);
    Err(node.error(format!("`{key}`: expected what `{protocol}` offers, {offers}, found {}", node.found())))
}

fn cbr(fields: Fields<'_>) -> Result<App, Diagnostic> {
    let rate_node = fields.need("rate", "rate: 10 Mbit/s")?;
    let rate = match rate_node {
        Node { kind: Kind::Scalar(text), .. } if text == "saturate" => None,
        node => Some(rate(node, "rate")?),
    };
    let size = fields.read("size", |node, key| size(node, key, MIN_UNIT..=MAX_DATAGRAM))?;
    let size = size.unwrap_or(Bytes::new(1472));
    if let (None, Some(key)) = (rate, ["arrivals", "on-off"].iter().find(|key| fields.get(key).is_some())) {
        return Err(rate_node.error(format!(
            "`rate`: `saturate` leaves no gaps, and `{key}` needs a rate, for example `rate: 10 Mbit/s`"
        )));
    }
    let gaps = fields.read("arrivals", |node, key| spread(node, key, ["constant", "poisson"]))?;
    let on_off = fields.read("on-off", on_off)?;
    if let (Some(rate), Some(node), Some(OnOff { on, .. })) = (rate, fields.get("on-off"), on_off) {
        let needed = rate.time_for(size.get());
        if on < needed {
            return Err(node.error(format!("`on`: expected at least the {needed} of a datagram, found {on}")));
        }
    }
    let arrivals = Arrivals { gaps: gaps.unwrap_or_default(), on_off };
    Ok(App::Cbr { rate, size, arrivals, span: span(fields)? })
}

fn on_off(node: &Node, key: &str) -> Result<OnOff, Diagnostic> {
    let what = format!("`{key}`");
    let fields = Fields::of(node, &what, &["on", "off", "durations"])?;
    let on = some_duration(fields.need("on", "on: 500ms")?, "on")?;
    let off = some_duration(fields.need("off", "off: 1s")?, "off")?;
    let durations = fields.read("durations", |node, key| spread(node, key, ["constant", "exponential"]))?;
    Ok(OnOff { on, off, durations: durations.unwrap_or(Spread::Exponential) })
}

/// Reads one of two words, the first for constant times.
fn spread(node: &Node, key: &str, words: [&str; 2]) -> Result<Spread, Diagnostic> {
    match choice(node, key, &words)? {
        (_, _, Some(options)) => {
            Err(options.error(format!("`{key}`: expected one of `{}`, `{}` alone", words[0], words[1])))
        }
        (word, ..) if word == words[0] => Ok(Spread::Constant),
        _ => Ok(Spread::Exponential),
    }
}

fn messages(fields: Fields<'_>, stack: &Stack) -> Result<App, Diagnostic> {
    let takes_any = stack.offers.has(PortKind::Stream) || stack.offers.has(PortKind::Message);
    let largest = if takes_any { MAX_MESSAGE } else { MAX_DATAGRAM };
    let size = size(fields.need("size", "size: 200 B")?, "size", MIN_UNIT..=largest)?;
    let every = match (fields.get("rate"), fields.get("every")) {
        (Some(_), Some(node)) => {
            return Err(node.error("`messages` takes `rate` or `every`, not both"));
        }
        (Some(node), None) => frequency(node, "rate")?,
        (None, Some(node)) => some_duration(node, "every")?,
        (None, None) => {
            return Err(fields.error("`messages` needs `rate` or `every`, for example `rate: 100 Hz`"));
        }
    };
    Ok(App::Messages { size, every, span: span(fields)? })
}

/// Reads groups of pictures at a rate.
fn pattern(fields: Fields<'_>) -> Result<Pattern, Diagnostic> {
    let rate_node = fields.need("rate", "rate: 4 Mbit/s")?;
    let rate = rate(rate_node, "rate")?;
    let gop = fields.read("gop", |node, key| whole(node, key, 1..=1000))?.unwrap_or(12);
    let b_frames = fields.read("b-frames", |node, key| whole(node, key, 0..=MAX_B_FRAMES))?;
    let variation = fields.read("variation", share)?.unwrap_or(Fraction::ZERO);
    let pattern = Pattern {
        rate,
        interval: interval(fields)?,
        gop: gop as u32,
        b_frames: b_frames.unwrap_or(2) as u32,
        variation,
    };
    let min = pattern.mean_bytes(FrameType::B);
    let max = pattern.mean_bytes(FrameType::I);
    if min < 1.0 || max > f64::from(MAX_FRAME) {
        let largest = Bytes::new(MAX_FRAME.into());
        return Err(rate_node.error(format!(
            "`rate`: expected one that makes frames of 1 B to {largest}, found {}: {min:.1} B to {max:.0} B",
            rate_node.found()
        )));
    }
    Ok(pattern)
}

/// Reads the frames of a trace file.
fn trace(node: &Node, fields: Fields<'_>, contents: &mut Contents) -> Result<Frames, Diagnostic> {
    for key in ["rate", "gop", "b-frames", "variation"] {
        if let Some(node) = fields.get(key) {
            return Err(node.error(format!("`{key}`: the trace says types and sizes: leave this out")));
        }
    }
    let trace = contents.video_trace(node, "trace")?;
    let interval = match fields.get("fps") {
        Some(node) if trace.timed => {
            return Err(node.error("`fps`: the trace says the times: leave this out"));
        }
        _ if trace.timed => None,
        _ => Some(interval(fields)?),
    };
    Ok(Frames::Trace { frames: trace.frames, interval })
}

/// Reads the time from one frame to the next.
fn interval(fields: Fields<'_>) -> Result<Duration, Diagnostic> {
    let Some(node) = fields.get("fps") else { return Ok(Duration::from_millis(40)) };
    match number(node, "fps")? {
        fps if (0.1..=1000.0).contains(&fps) => Ok(Duration::from_secs_f64(1.0 / fps)),
        _ => Err(node.error(format!("`fps`: expected 0.1 to 1000 frames a second, found {}", node.found()))),
    }
}

/// Reads `100 kB`, `{ exponential: 100 kB }`, `{ pareto: 100 kB }` or `{ pareto: { mean: 100 kB, shape: 1.5 } }`.
fn sizes(node: &Node) -> Result<SizeLaw, Diagnostic> {
    if let Kind::Scalar(_) = node.kind {
        return Ok(SizeLaw::Fixed(size(node, "size", SHORT_FLOW)?));
    }
    match choice(node, "size", &["exponential", "pareto"])? {
        ("exponential", _, mean) => {
            Ok(SizeLaw::Exponential(size(mean.unwrap_or(node), "exponential", SHORT_FLOW)?))
        }
        (_, _, options) => {
            let options = options.unwrap_or(node);
            // Web objects: about 1.2 (Crovella and Bestavros 1997).
            let usual = 1.2;
            if let Kind::Scalar(_) = options.kind {
                return Ok(SizeLaw::Pareto { mean: size(options, "pareto", SHORT_FLOW)?, shape: usual });
            }
            let fields = Fields::of(options, "`pareto`", &["mean", "shape"])?;
            let mean = size(fields.need("mean", "mean: 100 kB")?, "mean", SHORT_FLOW)?;
            let shape = fields.read("shape", |node, key| match number(node, key)? {
                shape if shape > 1.0 && shape <= 10.0 => Ok(shape),
                _ => Err(node.error(format!(
                    "`{key}`: expected more than 1 and at most 10 (at 1 there is no mean), found {}",
                    node.found()
                ))),
            })?;
            Ok(SizeLaw::Pareto { mean, shape: shape.unwrap_or(usual) })
        }
    }
}

/// Reads `10 /s`, which is Poisson, `{ poisson: 10 /s }` or `{ constant: 10 /s }`.
fn frequencies(node: &Node) -> Result<(Spread, Duration), Diagnostic> {
    if let Kind::Scalar(_) = node.kind {
        return Ok((Spread::Exponential, frequency(node, "arrivals")?));
    }
    let (word, _, rate) = choice(node, "arrivals", &["poisson", "constant"])?;
    let spread = if word == "constant" { Spread::Constant } else { Spread::Exponential };
    Ok((spread, frequency(rate.unwrap_or(node), word)?))
}

/// Reads `start` and `stop`; without them, from the start of the run to its end.
fn span(fields: Fields<'_>) -> Result<SendSpan, Diagnostic> {
    let after = |span: Duration| Instant::ZERO + span;
    let start = match fields.get("start") {
        None => Some(Instant::ZERO),
        Some(Node { kind: Kind::Scalar(text), .. }) if text == "event" => None,
        Some(node) => Some(after(duration(node, "start")?)),
    };
    let stop = fields.read("stop", duration)?.map(after);
    if let (Some(node), Some(stop), Some(start)) = (fields.get("stop"), stop, start)
        && start >= stop
    {
        return Err(node.error(format!("`stop`: expected a time after `start`, found {}", node.found())));
    }
    Ok(SendSpan { start, stop })
}
