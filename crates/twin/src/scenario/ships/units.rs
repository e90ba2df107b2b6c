//! Quantities of ships and radios: distances, angles, decibels, frequencies.

use hopcast_config::Diagnostic;
use hopcast_config::decode::text;
use hopcast_config::yaml::Node;

/// Units by their factors.
type Units = &'static [(&'static str, f64)];

const METRES: Units = &[("m", 1.0), ("km", 1000.0), ("nmi", 1852.0)];
const HERTZ: Units = &[("Hz", 1.0), ("kHz", 1e3), ("MHz", 1e6), ("GHz", 1e9)];
const DECIBELS: Units = &[("dB", 1.0)];
const DBM: Units = &[("dBm", 1.0)];

/// A distance such as `900 m`, `2.5 km` or `1 nmi`, in metres; it may be below 0.
pub(super) fn metres(node: &Node, key: &str) -> Result<f64, Diagnostic> {
    in_unit(node, key, METRES, "a distance such as `900 m` or `2 km`")
}

/// A distance of at least 0.
pub(super) fn distance(node: &Node, key: &str) -> Result<f64, Diagnostic> {
    let metres = metres(node, key)?;
    if metres < 0.0 {
        return Err(
            node.error(format!("`{key}`: expected a distance of at least 0 m, found {}", node.found()))
        );
    }
    Ok(metres)
}

/// A ratio such as `8 dB`.
pub(super) fn decibels(node: &Node, key: &str) -> Result<f64, Diagnostic> {
    in_unit(node, key, DECIBELS, "decibels such as `8 dB`")
}

/// A ratio of at least 0 dB.
pub(super) fn gain(node: &Node, key: &str) -> Result<f64, Diagnostic> {
    let decibels = decibels(node, key)?;
    if decibels < 0.0 {
        return Err(node.error(format!("`{key}`: expected at least 0 dB, found {}", node.found())));
    }
    Ok(decibels)
}

/// A power such as `-64 dBm`.
pub(super) fn dbm(node: &Node, key: &str) -> Result<f64, Diagnostic> {
    in_unit(node, key, DBM, "a power such as `-64 dBm`")
}

/// A frequency such as `5.8 GHz`, in hertz.
pub(super) fn hertz(node: &Node, key: &str) -> Result<f64, Diagnostic> {
    in_unit(node, key, HERTZ, "a frequency such as `5.8 GHz`")
}

fn in_unit(node: &Node, key: &str, units: Units, expected: &str) -> Result<f64, Diagnostic> {
    let found = text(node, key)?.trim();
    let digits = found.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = &found[digits.len()..];
    let factor = units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| factor);
    let number: Option<f64> = digits.trim_end().parse().ok();
    match (number, factor) {
        (Some(number), Some(factor)) if (number * factor).is_finite() => Ok(number * factor),
        _ => {
            let names: Vec<&str> = units.iter().map(|(name, _)| *name).collect();
            let hint = match number {
                Some(_) if unit.is_empty() => format!(": write a unit, {}", names.join(" or ")),
                _ => String::new(),
            };
            Err(node.error(format!("`{key}`: expected {expected}, found {}{hint}", node.found())))
        }
    }
}
