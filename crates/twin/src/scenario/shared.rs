//! Media and switches: medium access, the stations that hear each other, and differences of stations and pairs.

use std::collections::BTreeSet;

use hopcast_core::{Duration, Rate};
use hopcast_link::{Attachment, Csma, Direction, Mac, MediumConfig, PairLoss, Rts, SwitchConfig};

use super::files::Contents;
use super::link::{DIRECTION, direction, loss};
use hopcast_config::Diagnostic;
use hopcast_config::decode::{self, Fields, choice, duration, some_duration, whole};
use hopcast_config::yaml::{Kind, Node};

/// The keys that a medium has beside those of its direction.
pub(crate) const MEDIUM: [&str; 3] = ["mac", "pairs", "hears"];
/// The keys that a switch has beside those of a direction.
pub(crate) const SWITCH: [&str; 2] = ["stations", "pairs"];
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
/// Maximum pause between two frames on a medium. Chosen: longer than any radio's, so that more is most likely a slip.
const MAX_PAUSE: Duration = Duration::from_millis(100);

/// Reads a medium, whose stations the engine fills in; `station` finds the station of a node's name.
pub(crate) fn medium(
    fields: Fields<'_>,
    station: impl Fn(&Node, &str) -> Result<Attachment, Diagnostic>,
    contents: &mut Contents,
) -> Result<MediumConfig, Diagnostic> {
    let direction = direction(fields, Direction::default(), contents)?;
    let mac = fields.read("mac", |node, key| mac(node, key, direction.rate, contents))?.unwrap_or_default();
    let pairs = pairs(fields, &station, contents)?;
    let hears = fields.read("hears", |node, key| hears(node, key, &station))?;
    Ok(MediumConfig { direction, stations: Vec::new(), mac, pairs, hears, radios: None })
}

/// Reads the pairs of a sender and a station that hears it: `[a, b]` is both directions, `{ from: a, to: b }` one.
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
            return Err(item.error(format!("`{key}`: this pair is listed twice")));
        }
    }
    Ok(hears)
}

/// Reads a switch of `stations` stations, whose addresses the engine fills in; `station` finds the station of a node's
/// name.
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
    let pairs = pairs(fields, &station, contents)?;
    Ok(SwitchConfig { directions, pairs, ..SwitchConfig::default() })
}

/// Reads the pairs of stations whose loss differs.
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
            return Err(item.error("`pairs`: this pair is listed twice"));
        }
        pairs.push(PairLoss { from, to, loss: loss(pair.need("loss", "10 %")?, "loss", contents)? });
    }
    Ok(pairs)
}

/// Reads `perfect`, or `csma` with the options that differ from 802.11g at the medium's rate.
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
    csma(options, rate, contents).map(Mac::Csma)
}

/// Reads the options of `csma` that differ from 802.11g at a rate.
pub(crate) fn csma(options: Option<&Node>, rate: Rate, contents: &mut Contents) -> Result<Csma, Diagnostic> {
    let base = Csma::ofdm(rate);
    let fields = match options {
        Some(options) => Fields::of(options, "`csma`", &CSMA)?,
        None => return Ok(base),
    };
    let window = |node: &Node, key: &str| whole(node, key, 0..=32_767).map(|slots| slots as u32);
    let cw_min = fields.read("cw-min", window)?.unwrap_or(base.cw_min);
    let cw_max = fields.read("cw-max", window)?.unwrap_or(base.cw_max.max(cw_min));
    if cw_max < cw_min {
        return Err(fields.error(format!("`csma`: `cw-max` ({cw_max}) is less than `cw-min` ({cw_min})")));
    }
    Ok(Csma {
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
    })
}

/// Reads the options of requests to send: the minimum length of frames that need them, and their own length.
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
