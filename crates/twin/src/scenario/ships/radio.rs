//! Radio links: the channel, the ships' antennas, and medium access.

use std::sync::Arc;

use hopcast_config::Diagnostic;
use hopcast_config::decode::{Fields, choice, list, number, share};
use hopcast_config::yaml::{Kind, Node};
use hopcast_core::{Fraction, Instant, Rate};
use hopcast_link::{Direction, Loss, Mac, MediumConfig, RadioModel};
use hopcast_radio::beams::DEFAULT_HYSTERESIS;
use hopcast_radio::maritime::{self, DELAY, FRONT_TO_BACK, LOSS_PERCENT, Size};
use hopcast_radio::propagation::{Correlation, Polarisation, Sea, SeaState};
use hopcast_radio::{
    Channel, Fleet, Frequency, Law, Pattern, Radio, RateRow, RateTable, Shadowing, Ship, Sunflower,
};

use super::units::{dbm, decibels, distance, gain, hertz};
use super::{ShipKeys, antennas};
use crate::scenario::files::Contents;
use crate::scenario::link::direction;
use crate::scenario::model::NodeId;
use crate::scenario::shared::csma;
use crate::scenario::topology::Topology;

/// The keys of a radio link beside its name, prefix and stations, and those of a direction but for its rate.
pub(crate) const KEYS: [&str; 4] = ["channel", "mac", "lowest-rate", "hysteresis"];
const MACS: [&str; 2] = ["csma", "ethernet-like"];
const LAWS: [&str; 3] = ["free-space", "two-ray", "log-distance"];
/// Rate of control frames and MAC headers with contention: the lowest mandatory one of 802.11's OFDM.
const CONTROL_RATE: Rate = Rate::from_mbit(6);

/// Reads a radio link between the nodes `ends`, written at `joined`, and the ships that it links.
pub(crate) fn radio(
    fields: Fields<'_>,
    (joined, ends): (&Node, &[NodeId]),
    topology: &Topology,
    contents: &mut Contents<'_>,
) -> Result<(MediumConfig, Arc<Fleet>), Diagnostic> {
    let is_maritime = match fields.get("channel") {
        None => true,
        Some(node) => matches!(&node.kind, Kind::Scalar(text) if text == "maritime"),
    };
    let channel = match fields.get("channel").filter(|_| !is_maritime) {
        Some(node) => channel(node)?,
        None => maritime::channel(),
    };
    let sensitivity = channel.rates.sensitivity();
    let channel = match fields.get("lowest-rate") {
        None => channel,
        Some(node) => Channel { rates: rates_from(node, &channel.rates)?, ..channel },
    };
    let loss = match fields.read("loss", share)? {
        Some(loss) => loss,
        None => Fraction::from_percent(LOSS_PERCENT).unwrap_or_default(),
    };
    let base = direction(fields, Direction { delay: DELAY, ..Direction::default() }, contents)?;
    let mac = match fields.get("mac") {
        None => Mac::Csma(csma(None, CONTROL_RATE, contents)?),
        Some(node) => match choice(node, "mac", &MACS)? {
            ("csma", _, options) => Mac::Csma(csma(options, CONTROL_RATE, contents)?),
            (_, _, Some(options)) => return Err(options.error("`ethernet-like` has no options")),
            _ => Mac::EthernetLike,
        },
    };
    let ship = |&node: &NodeId| {
        let name = &topology.nodes[node].name;
        let motion = topology
            .ships
            .motion(node)
            .ok_or_else(|| joined.error(format!("`radio`: `{name}` has neither a `place` nor a `motion`")))?;
        let keys = topology.ships.keys.get(&node);
        let radio = if is_maritime { of_maritime(keys, name) } else { general(keys, name, joined) }?;
        Ok(Arc::new(Ship { name: name.as_str().into(), motion: motion.clone(), radio }))
    };
    let ships = ends.iter().map(ship).collect::<Result<Vec<_>, Diagnostic>>()?;
    let position = |ship: &Arc<Ship>| ship.motion.track().at(Instant::ZERO).position;
    if let Some(other) = ships.iter().find(|ship| position(ship).to(&position(&ships[0])).is_none()) {
        return Err(joined.error(format!(
            "`radio`: `{}` has its place in metres and `{}` in degrees, or the reverse",
            ships[0].name, other.name
        )));
    }
    let hysteresis = fields.read("hysteresis", gain)?.unwrap_or(DEFAULT_HYSTERESIS);
    let fleet = Arc::new(Fleet { channel: Arc::new(channel), ships, loss, hysteresis, sensitivity });
    let config = MediumConfig {
        direction: Direction { loss: Loss::None, ..base },
        mac,
        radios: Some(RadioModel(fleet.clone())),
        ..MediumConfig::default()
    };
    Ok((config, fleet))
}

/// The radio of a ship of MaritimeManet.
fn of_maritime(keys: Option<&ShipKeys>, name: &str) -> Result<Radio, Diagnostic> {
    let written = keys.and_then(|keys| keys.antennas.as_ref());
    let own = keys.map(|keys| [("power", &keys.power), ("height", &keys.height)]);
    if let Some((key, (_, span))) =
        own.into_iter().flatten().find_map(|(key, own)| Some((key, own.as_ref()?)))
    {
        return Err(span.error(format!("`{key}`: the channel `maritime` of `{name}` does not ask for it")));
    }
    let Some(node) = written else { return Ok(Size::Small.radio()) };
    let size = Size::of_antennas(antennas(node, "antennas")?);
    size.map(Size::radio).ok_or_else(|| {
        node.error(format!(
            "`antennas`: ships of the channel `maritime` have 6, 12 or 24, found {}",
            node.found()
        ))
    })
}

/// The radio of a ship on another channel.
fn general(keys: Option<&ShipKeys>, name: &str, joined: &Node) -> Result<Radio, Diagnostic> {
    let power = keys.and_then(|keys| keys.power.as_ref()).map(|(power, _)| *power).ok_or_else(|| {
        joined.error(format!("`radio`: `{name}` has no `power`, such as `power: 20 dBm`: only the channel `maritime` knows its own"))
    })?;
    let antennas = match keys.and_then(|keys| keys.antennas.as_ref()) {
        None => Sunflower::new(1, 0.0, Pattern::Sector { front_to_back: 0.0 })
            .map_err(|error| joined.error(error.to_string()))?,
        Some(node @ Node { kind: Kind::Map(_), .. }) => {
            let fields = Fields::of(node, "`antennas`", &["beams", "gain", "pattern", "front-to-back"])?;
            let beams = antennas(fields.need("beams", "beams: 12")?, "beams")?;
            let gain = fields.read("gain", decibels)?.unwrap_or(0.0);
            let front_to_back = fields.read("front-to-back", self::gain)?.unwrap_or(FRONT_TO_BACK);
            let is_parabolic = match fields.get("pattern") {
                None => false,
                Some(node) => choice(node, "pattern", &["sector", "parabolic"])?.0 == "parabolic",
            };
            let pattern = match is_parabolic {
                true => Pattern::Parabolic { front_to_back },
                false => Pattern::Sector { front_to_back },
            };
            Sunflower::new(beams, gain, pattern)
                .map_err(|error| node.error(format!("`antennas`: {error}")))?
        }
        Some(node) => {
            return Err(node.error(format!(
                "`antennas`: expected a map such as `{{ beams: 12, gain: 4 dB }}`, found {}: only the channel `maritime` \
                 knows antennas by their number",
                node.found()
            )));
        }
    };
    let height = keys.and_then(|keys| keys.height.as_ref()).map_or(maritime::HEIGHT, |(height, _)| *height);
    Radio::new(power, antennas, height).map_err(|error| joined.error(format!("`{name}`: {error}")))
}

/// Reads a channel: `{ law: { log-distance: { reference: 40 dB, exponent: 2.35 } }, rates: [...], shadowing: {...} }`.
fn channel(node: &Node) -> Result<Channel, Diagnostic> {
    if let Kind::Scalar(found) = &node.kind {
        return Err(node.error(format!(
            "`channel`: expected `maritime`, or a map with `law` and `rates`, found `{found}`{}",
            hopcast_config::did_you_mean(found, ["maritime"])
        )));
    }
    let fields = Fields::of(node, "`channel`", &["law", "rates", "shadowing"])?;
    Ok(Channel {
        law: law(fields.need("law", "law: { log-distance: { reference: 40 dB, exponent: 2.35 } }")?)?,
        shadowing: fields.read("shadowing", |node, _| shadowing(node))?,
        rates: rates(fields.need("rates", "rates: [{ signal: -64 dBm, rate: 65 Mbit/s }]")?)?,
    })
}

fn law(node: &Node) -> Result<Law, Diagnostic> {
    let (word, span, options) = choice(node, "law", &LAWS)?;
    let options = options.ok_or_else(|| {
        let example = match word {
            "log-distance" => "{ log-distance: { reference: 40 dB, exponent: 2.35 } }",
            _ => "{ free-space: { frequency: 5.8 GHz } }",
        };
        span.error(format!("`law`: `{word}` needs its figures, such as `law: {example}`"))
    })?;
    let what = format!("`{word}`");
    let carrier = |fields: Fields<'_>| {
        let node = fields.need("frequency", "frequency: 5.8 GHz")?;
        Frequency::hertz(hertz(node, "frequency")?).ok_or_else(|| {
            node.error(format!("`frequency`: expected 1 kHz to 1 THz, found {}", node.found()))
        })
    };
    match word {
        "free-space" => Ok(Law::FreeSpace { carrier: carrier(Fields::of(options, &what, &["frequency"])?)? }),
        "two-ray" => {
            let fields = Fields::of(options, &what, &["frequency", "polarisation", "waves"])?;
            let polarisation = match fields.get("polarisation") {
                Some(node)
                    if choice(node, "polarisation", &["vertical", "horizontal"])?.0 == "horizontal" =>
                {
                    Polarisation::Horizontal
                }
                _ => Polarisation::Vertical,
            };
            let waves = fields.read("waves", distance)?.unwrap_or(0.0);
            Ok(Law::TwoRay {
                carrier: carrier(fields)?,
                sea: Sea::water(polarisation, SeaState(waves / 4.0)),
            })
        }
        _ => {
            let fields = Fields::of(options, &what, &["reference", "exponent"])?;
            let reference = decibels(fields.need("reference", "reference: 40 dB")?, "reference")?;
            let written = fields.need("exponent", "exponent: 2.35")?;
            let exponent = number(written, "exponent")?;
            if exponent < 0.0 {
                return Err(
                    written.error(format!("`exponent`: expected at least 0, found {}", written.found()))
                );
            }
            Ok(Law::LogDistance { reference, exponent })
        }
    }
}

/// The rates of a table from `lowest-rate` on.
fn rates_from(node: &Node, all: &RateTable) -> Result<RateTable, Diagnostic> {
    let lowest = hopcast_config::decode::rate(node, "lowest-rate")?;
    let rows = all.rows().iter().copied().filter(|row| row.rate >= lowest).collect::<Vec<_>>();
    match RateTable::new(rows) {
        Ok(table) if table.lowest() == lowest => Ok(table),
        _ => {
            let names: Vec<String> = all.rows().iter().map(|row| row.rate.to_string()).collect();
            Err(node.error(format!(
                "`lowest-rate`: expected one of the channel's rates ({}), found {}",
                names.join(", "),
                node.found()
            )))
        }
    }
}

fn shadowing(node: &Node) -> Result<Shadowing, Diagnostic> {
    let fields = Fields::of(node, "`shadowing`", &["deviation", "distance"])?;
    let deviation = gain(fields.need("deviation", "deviation: 4 dB")?, "deviation")?;
    let correlation = match fields.read("distance", distance)? {
        None => Correlation::Pair,
        Some(distance) => Correlation::Position { distance },
    };
    Ok(Shadowing { deviation, correlation })
}

fn rates(node: &Node) -> Result<RateTable, Diagnostic> {
    use hopcast_radio::rates::RateTableError;
    let items = list(node, "rates")?;
    let row = |item: &Node| {
        let fields = Fields::of(item, "a rate", &["signal", "rate"])?;
        let signal = dbm(fields.need("signal", "signal: -64 dBm")?, "signal")?;
        let rate = hopcast_config::decode::rate(fields.need("rate", "rate: 65 Mbit/s")?, "rate")?;
        Ok(RateRow { signal, rate })
    };
    let rows = items.iter().map(row).collect::<Result<Vec<_>, _>>()?;
    RateTable::new(rows).map_err(|error| {
        let place = match error {
            RateTableError::Signal(index) | RateTableError::Rate(index) => items.get(index).unwrap_or(node),
            RateTableError::Empty => node,
        };
        place.error(format!("`rates`: {error}"))
    })
}
