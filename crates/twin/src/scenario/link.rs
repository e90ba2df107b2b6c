//! Links: rate, delay, loss and the rest, of each direction.

use std::collections::BTreeSet;

use hopcast_core::{Bytes, Duration, Fraction, Rate};
use hopcast_link::{
    Attachment, Config, Csma, Direction, Duplex, Jitter, Loss, Mac, MediumConfig, PairLoss, Queue,
    QueueLimit, Rts, SwitchConfig,
};

use super::files::Contents;
use hopcast_config::Diagnostic;
use hopcast_config::decode::{self, Fields, choice, duration, flag, rate, share, some_duration, whole};
use hopcast_config::yaml::{Kind, Node};

/// The keys of one direction.
pub(crate) const DIRECTION: [&str; 9] =
    ["rate", "delay", "loss", "jitter", "reorder", "duplicate", "corrupt", "queue", "mtu"];
/// The keys that a medium has beside those of its direction.
pub(crate) const MEDIUM: [&str; 3] = ["mac", "pairs", "hears"];
/// The keys that a switch has beside those of a direction.
pub(crate) const SWITCH: [&str; 2] = ["stations", "pairs"];
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
const MACS: [&str; 2] = ["perfect", "csma"];
const CSMA: [&str; 12] = [
    "retries",
    "overhead",
    "ack",
    "slot",
    "sifs",
    "difs",
    "cw-min",
    "cw-max",
    "channel-loss",
    "rts",
    "rts-time",
    "cts-time",
];
/// Maximum length of an Ethernet frame, in bytes: the longest packet and its header.
const MAX_FRAME: u64 = 65_535 + 14;
/// Maximum pause between two frames on a medium. Chosen: no radio waits longer, so that more is a slip.
const MAX_PAUSE: Duration = Duration::from_millis(100);
const QUEUES: [&str; 2] = ["drop-tail", "codel"];
/// Maximum length of a queue, in frames and in bytes. Chosen: past any buffer that was ever built, so that more is a
/// slip.
const MAX_PACKETS: u64 = 10_000_000;
const MAX_QUEUED: Bytes = Bytes::new(16 << 30);

/// The `link` of a generator; perfect if there is none.
pub(crate) fn template(node: Option<&Node>, contents: &mut Contents) -> Result<Config, Diagnostic> {
    match node {
        None => Ok(Config::default()),
        Some(node) => point_to_point(Fields::of(node, "`link`", &TEMPLATE)?, contents),
    }
}

/// Both directions of a link between two nodes.
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

/// A medium, whose stations the engine fills in; `station` finds the one that a node's name stands for.
pub(crate) fn medium(
    fields: Fields<'_>,
    station: impl Fn(&Node, &str) -> Result<Attachment, Diagnostic>,
    contents: &mut Contents,
) -> Result<MediumConfig, Diagnostic> {
    let direction = direction(fields, Direction::default(), contents)?;
    let mac = fields.read("mac", |node, key| mac(node, key, direction.rate, contents))?.unwrap_or_default();
    let pairs = pairs(fields, &station, contents)?;
    let hears = fields.read("hears", |node, key| hears(node, key, &station))?;
    Ok(MediumConfig { direction, stations: Vec::new(), mac, pairs, hears })
}

/// Who hears whom, as pairs of a sender and a listener: `[a, b]` is both ways, `{ from: a, to: b }` one.
fn hears(
    node: &Node,
    key: &str,
    station: impl Fn(&Node, &str) -> Result<Attachment, Diagnostic>,
) -> Result<BTreeSet<(Attachment, Attachment)>, Diagnostic> {
    let mut hears = BTreeSet::new();
    for item in decode::list(node, key)? {
        let (from, to, both) = match &item.kind {
            Kind::Map(_) => {
                let pair = Fields::of(item, "a pair", &["from", "to"])?;
                (pair.need("from", "from: a")?, pair.need("to", "to: b")?, false)
            }
            Kind::List(pair) if pair.len() == 2 => (&pair[0], &pair[1], true),
            Kind::List(_) | Kind::Scalar(_) => {
                return Err(item.error(format!(
                    "`{key}`: expected two stations such as `[a, b]`, or one way `{{ from: a, to: b }}`, found {}",
                    item.found()
                )));
            }
        };
        let ends = (station(from, key)?, station(to, key)?);
        if ends.0 == ends.1 {
            return Err(item.error(format!("`{key}`: {} hears itself anyway", to.found())));
        }
        if !hears.insert(ends) || both && !hears.insert((ends.1, ends.0)) {
            return Err(item.error(format!("`{key}`: this pair stands here twice")));
        }
    }
    Ok(hears)
}

/// A switch of `stations` stations, whose addresses the engine fills in; `station` finds the one that a node's name
/// stands for.
pub(crate) fn switch(
    fields: Fields<'_>,
    stations: usize,
    station: impl Fn(&Node, &str) -> Result<Attachment, Diagnostic>,
    contents: &mut Contents,
) -> Result<SwitchConfig, Diagnostic> {
    let base = direction(fields, Direction::default(), contents)?;
    let mut directions = vec![base.clone(); stations];
    let own = fields.get("stations").map(|node| decode::entries(node, "`stations`")).transpose()?;
    for entry in own.unwrap_or_default() {
        let named = Node { span: entry.key_span.clone(), kind: Kind::Scalar(entry.key.clone()) };
        let from = station(&named, "stations")?;
        let keys = Fields::of(&entry.value, "a station", &DIRECTION)?;
        directions[from] = direction(keys, base.clone(), contents)?;
    }
    Ok(SwitchConfig { directions, addresses: Vec::new(), pairs: pairs(fields, &station, contents)? })
}

/// Where the loss from one station to another differs.
fn pairs(
    fields: Fields<'_>,
    station: impl Fn(&Node, &str) -> Result<Attachment, Diagnostic>,
    contents: &mut Contents,
) -> Result<Vec<PairLoss>, Diagnostic> {
    let mut pairs: Vec<PairLoss> = Vec::new();
    for item in fields.get("pairs").map(|node| decode::list(node, "pairs")).transpose()?.unwrap_or_default() {
        let pair = Fields::of(item, "a pair", &["from", "to", "loss"])?;
        let from = station(pair.need("from", "from: a")?, "from")?;
        let heard = pair.need("to", "to: b")?;
        let to = station(heard, "to")?;
        if from == to {
            return Err(heard.error(format!("`to`: {} does not hear itself", heard.found())));
        }
        if pairs.iter().any(|pair| (pair.from, pair.to) == (from, to)) {
            return Err(item.error("`pairs`: this pair stands here twice"));
        }
        pairs.push(PairLoss { from, to, loss: loss(pair.need("loss", "10 %")?, "loss", contents)? });
    }
    Ok(pairs)
}

/// `perfect`, or `csma` with what differs from 802.11g at the medium's rate.
fn mac(node: &Node, key: &str, rate: Option<Rate>, contents: &mut Contents) -> Result<Mac, Diagnostic> {
    let (word, span, options) = choice(node, key, &MACS)?;
    if word == "perfect" {
        return match options.map(|options| (options, decode::entries(options, "`perfect`"))) {
            None | Some((_, Ok([]))) => Ok(Mac::Perfect),
            Some((options, _)) => Err(options.error("`perfect` has no options")),
        };
    }
    let Some(rate) = rate else {
        return Err(span.error("`csma`: the medium needs a `rate`, such as `rate: 12 Mbit/s`"));
    };
    let base = Csma::ofdm(rate);
    let fields = match options {
        Some(options) => Fields::of(options, "`csma`", &CSMA)?,
        None => return Ok(Mac::Csma(base)),
    };
    let window = |node: &Node, key: &str| whole(node, key, 0..=32_767).map(|slots| slots as u32);
    let cw_min = fields.read("cw-min", window)?.unwrap_or(base.cw_min);
    let cw_max = fields.read("cw-max", window)?.unwrap_or(base.cw_max.max(cw_min));
    if cw_max < cw_min {
        return Err(fields.error(format!("`csma`: `cw-max` ({cw_max}) is less than `cw-min` ({cw_min})")));
    }
    Ok(Mac::Csma(Csma {
        slot: fields.read("slot", some_duration)?.unwrap_or(base.slot),
        sifs: fields.read("sifs", pause)?.unwrap_or(base.sifs),
        difs: fields.read("difs", pause)?.unwrap_or(base.difs),
        cw_min,
        cw_max,
        retries: fields
            .read("retries", |node, key| whole(node, key, 0..=255))?
            .map_or(base.retries, |n| n as u32),
        overhead: fields.read("overhead", pause)?.unwrap_or(base.overhead),
        ack: fields.read("ack", pause)?.unwrap_or(base.ack),
        channel: fields.read("channel-loss", |node, key| loss(node, key, contents))?.unwrap_or(base.channel),
        rts: requests(fields, rate)?,
    }))
}

/// Requests to send: from which length on, and how long they are.
fn requests(fields: Fields<'_>, rate: Rate) -> Result<Option<Rts>, Diagnostic> {
    let threshold = fields.read("rts", |node, key| decode::size(node, key, 0..=MAX_FRAME))?;
    let (rts, cts) = (fields.read("rts-time", pause)?, fields.read("cts-time", pause)?);
    let Some(threshold) = threshold else {
        return match rts.or(cts) {
            None => Ok(None),
            Some(_) => Err(fields.error("`rts-time` and `cts-time` need `rts`, such as `rts: 500 B`")),
        };
    };
    let base = Rts::ofdm(threshold, rate);
    Ok(Some(Rts { rts: rts.unwrap_or(base.rts), cts: cts.unwrap_or(base.cts), ..base }))
}

fn pause(node: &Node, key: &str) -> Result<Duration, Diagnostic> {
    let pause = duration(node, key)?;
    if pause > MAX_PAUSE {
        return Err(node.error(format!("`{key}`: expected at most {MAX_PAUSE}, found {}", node.found())));
    }
    Ok(pause)
}

/// `base` with what `fields` say.
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

/// IPv4's minimum (RFC 791) to the largest that its length field can say.
pub(crate) fn mtu(node: &Node, key: &str) -> Result<u32, Diagnostic> {
    // An MTU is a number of bytes, and a bare one says nothing else.
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

/// `5 %`, `none`, or a model.
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

/// Defaults as netem has them: `p31` is 1 - `p13`, `p32` 0, `p23` 1, `p14` 0.
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

/// `1 ms` is uniform; `{ normal: 1 ms }` is the other.
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

/// `1000 packets`, `64 KiB`, or a discipline.
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
