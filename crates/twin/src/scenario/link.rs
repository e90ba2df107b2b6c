//! Links: rate, delay, loss and the rest, of each direction.

use hopcast_core::{Bytes, Duration, Fraction, Rate};
use hopcast_link::{Config, Direction, Duplex, Jitter, Loss, Queue, QueueLimit};

use super::files::Contents;
use hopcast_config::Diagnostic;
use hopcast_config::decode::{self, Fields, choice, duration, flag, rate, share, some_duration, whole};
use hopcast_config::yaml::{Kind, Node};

/// The keys of one direction.
pub(crate) const DIRECTION: [&str; 9] =
    ["rate", "delay", "loss", "jitter", "reorder", "duplicate", "corrupt", "queue", "mtu"];
/// The keys of a generator's `link`.
const TEMPLATE: [&str; 12] = [
    "rate",
    "delay",
    "loss",
    "jitter",
    "reorder",
    "duplicate",
    "corrupt",
    "queue",
    "mtu",
    "duplex",
    "forward",
    "backward",
];
const LOSSES: [&str; 4] = ["none", "gilbert-elliott", "four-state", "trace"];
const QUEUES: [&str; 2] = ["drop-tail", "codel"];
/// Maximum length of a queue, in frames. Chosen: larger than any real buffer, so that more is most likely a slip.
const MAX_PACKETS: u64 = 10_000_000;
/// Maximum length of a queue, in bytes. Chosen: larger than any real buffer, so that more is most likely a slip.
const MAX_QUEUED: Bytes = Bytes::new(16 << 30);

/// Reads the `link` of a generator; without one, the default link.
pub(crate) fn template(node: Option<&Node>, contents: &mut Contents) -> Result<Config, Diagnostic> {
    match node {
        None => Ok(Config::default()),
        Some(node) => point_to_point(Fields::of(node, "`link`", &TEMPLATE)?, contents),
    }
}

/// Reads both directions of a link between two nodes.
pub(crate) fn point_to_point(fields: Fields<'_>, contents: &mut Contents) -> Result<Config, Diagnostic> {
    let both = direction(fields, Direction::default(), contents)?;
    let mut one_way = |key: &str| match fields.get(key) {
        None => Ok(both.clone()),
        Some(node) => direction(Fields::of(node, &format!("`{key}`"), &DIRECTION)?, both.clone(), contents),
    };
    let (forward, backward) = (one_way("forward")?, one_way("backward")?);
    let duplex = match fields.read("duplex", |node, key| Ok(choice(node, key, &["full", "half"])?.0))? {
        Some("half") => Duplex::Half,
        _ => Duplex::Full,
    };
    Ok(Config { forward, backward, duplex })
}

/// Reads the keys of one direction, with those of `base` as defaults.
pub(crate) fn direction(
    fields: Fields<'_>,
    base: Direction,
    contents: &mut Contents,
) -> Result<Direction, Diagnostic> {
    Ok(Direction {
        rate: fields.read("rate", rate_or_unlimited)?.unwrap_or(base.rate),
        queue: fields.read("queue", queue)?.unwrap_or(base.queue),
        loss: fields.read("loss", |node, key| loss(node, key, contents))?.unwrap_or(base.loss),
        delay: fields.read("delay", duration)?.unwrap_or(base.delay),
        jitter: fields.read("jitter", jitter)?.unwrap_or(base.jitter),
        reorder: fields.read("reorder", flag)?.unwrap_or(base.reorder),
        duplicate: fields.read("duplicate", share)?.unwrap_or(base.duplicate),
        corrupt: fields.read("corrupt", share)?.unwrap_or(base.corrupt),
        mtu: fields.read("mtu", mtu)?.unwrap_or(base.mtu),
    })
}

/// Reads an MTU: from IPv4's minimum (RFC 791) to the maximum of its length field.
pub(crate) fn mtu(node: &Node, key: &str) -> Result<u32, Diagnostic> {
    // A bare number is unambiguous: an MTU is always in bytes.
    let bytes = match &node.kind {
        Kind::Scalar(text) if text.bytes().all(|b| b.is_ascii_digit()) => whole(node, key, 576..=65_535)?,
        _ => decode::size(node, key, 576..=65_535)?.get(),
    };
    Ok(u32::try_from(bytes).unwrap_or(65_535))
}

pub(crate) fn rate_or_unlimited(node: &Node, key: &str) -> Result<Option<Rate>, Diagnostic> {
    match &node.kind {
        Kind::Scalar(text) if text == "unlimited" => Ok(None),
        _ => rate(node, key).map(Some),
    }
}

/// Reads `5 %`, `none`, or a model.
pub(crate) fn loss(node: &Node, key: &str, contents: &mut Contents) -> Result<Loss, Diagnostic> {
    if let Kind::Scalar(text) = &node.kind {
        return match text.as_str() {
            "none" => Ok(Loss::None),
            word if word.starts_with(|c: char| c.is_alphabetic()) => Err(node.error(format!(
                "`{key}`: expected a share such as `5 %`, `none`, or a map of one of {}, found `{word}`{}",
                decode::listed(&LOSSES[1..]),
                decode::did_you_mean(word, LOSSES)
            ))),
            _ => Ok(match share(node, key)? {
                Fraction::ZERO => Loss::None,
                share => Loss::Independent(share),
            }),
        };
    }
    let (model, span, options) = choice(node, key, &LOSSES)?;
    let Some(options) = options else { return Ok(Loss::None) };
    match model {
        "gilbert-elliott" => {
            let fields = Fields::of(options, "`gilbert-elliott`", &["p", "r", "k", "h"])?;
            let (p, r) = (share(fields.need("p", "1 %")?, "p")?, share(fields.need("r", "10 %")?, "r")?);
            if p == Fraction::ZERO && r == Fraction::ZERO {
                return Err(
                    span.error("`gilbert-elliott` never changes its state if both `p` and `r` are 0 %")
                );
            }
            let k = fields.read("k", share)?.unwrap_or(Fraction::ONE);
            let h = fields.read("h", share)?.unwrap_or(Fraction::ZERO);
            Ok(Loss::GilbertElliott { p, r, k, h })
        }
        "four-state" => four_state(options),
        "trace" => contents.trace(options, "trace"),
        _ => Ok(Loss::None),
    }
}

/// Reads the four-state model, with netem's defaults: `p31` is 1 - `p13`, `p32` 0, `p23` 1, `p14` 0.
fn four_state(options: &Node) -> Result<Loss, Diagnostic> {
    let fields = Fields::of(options, "`four-state`", &["p13", "p31", "p32", "p23", "p14"])?;
    let p13 = share(fields.need("p13", "1 %")?, "p13")?;
    let p31 = fields.read("p31", share)?.unwrap_or(p13.complement());
    let p32 = fields.read("p32", share)?.unwrap_or(Fraction::ZERO);
    let p23 = fields.read("p23", share)?.unwrap_or(Fraction::ONE);
    let p14 = fields.read("p14", share)?.unwrap_or(Fraction::ZERO);
    for (one, other, names) in [(p13, p14, "`p13` and `p14`"), (p31, p32, "`p31` and `p32`")] {
        if one.get() + other.get() > 1.0 + 1e-12 {
            return Err(
                options.error(format!("`four-state`: {names} leave the same state and are more than 100 %"))
            );
        }
    }
    Ok(Loss::FourState { p13, p31, p32, p23, p14 })
}

/// Reads `1 ms`, which is uniform, or `{ normal: 1 ms }`.
pub(crate) fn jitter(node: &Node, key: &str) -> Result<Jitter, Diagnostic> {
    let uniform = |span: Duration| if span.is_zero() { Jitter::None } else { Jitter::Uniform(span) };
    match &node.kind {
        Kind::Scalar(text) if text == "none" => Ok(Jitter::None),
        Kind::Scalar(_) => duration(node, key).map(uniform),
        Kind::List(_) | Kind::Map(_) => match choice(node, key, &["uniform", "normal"])? {
            ("normal", _, Some(width)) => Ok(match duration(width, "normal")? {
                Duration::ZERO => Jitter::None,
                width => Jitter::Normal(width),
            }),
            (_, _, width) => duration(width.unwrap_or(node), "uniform").map(uniform),
        },
    }
}

/// Reads `1000 packets`, `64 KiB`, or a discipline.
pub(crate) fn queue(node: &Node, key: &str) -> Result<Queue, Diagnostic> {
    let (discipline, options) = match &node.kind {
        Kind::Scalar(text) if text.starts_with(|c: char| c.is_ascii_digit()) => {
            return Ok(Queue::DropTail { limit: queue_limit(node, key)? });
        }
        _ => choice(node, key, &QUEUES).map(|(discipline, _, options)| (discipline, options))?,
    };
    let codel = discipline == "codel";
    let allowed: &[&str] = if codel { &["target", "interval", "limit"] } else { &["limit"] };
    let (mut target, mut interval) = (Duration::from_millis(5), Duration::from_millis(100));
    let mut limit = QueueLimit::default();
    match options {
        None => {}
        Some(options @ Node { kind: Kind::Scalar(text), .. }) if !text.is_empty() => {
            limit = queue_limit(options, discipline)?;
        }
        Some(options) => {
            let what = format!("`{discipline}`");
            let fields = Fields::of(options, &what, allowed)?;
            limit = fields.read("limit", queue_limit)?.unwrap_or_default();
            target = fields.read("target", some_duration)?.unwrap_or(target);
            interval = fields.read("interval", some_duration)?.unwrap_or(interval);
        }
    }
    Ok(if codel { Queue::CoDel { limit, target, interval } } else { Queue::DropTail { limit } })
}

fn queue_limit(node: &Node, key: &str) -> Result<QueueLimit, Diagnostic> {
    let text = decode::text(node, key)?.trim();
    let packets = text.strip_suffix("packets").or_else(|| text.strip_suffix("packet"));
    if let Some(packets) = packets {
        return match packets.trim().replace('_', "").parse::<u32>() {
            Ok(packets) if u64::from(packets) <= MAX_PACKETS => Ok(QueueLimit::Packets(packets)),
            Ok(_) | Err(_) => Err(node.error(format!(
                "`{key}`: expected a whole number of packets up to {MAX_PACKETS}, found `{text}`"
            ))),
        };
    }
    let bytes: Bytes = match text.parse() {
        Ok(bytes) => bytes,
        Err(_) => {
            let number = text.trim_end_matches(|c: char| c.is_alphabetic()).trim_end();
            let hint = if number.is_empty() { String::new() } else { format!(": write `{number} packets`") };
            return Err(node.error(format!(
                "`{key}`: expected a queue's limit such as `1000 packets` or `64 KiB`, found `{text}`{hint}"
            )));
        }
    };
    if bytes > MAX_QUEUED {
        return Err(node.error(format!("`{key}`: expected at most {MAX_QUEUED}, found `{text}`")));
    }
    Ok(QueueLimit::Bytes(bytes))
}
