//! Frequencies in scenarios.

use hopcast_config::Diagnostic;
use hopcast_config::decode;
use hopcast_config::yaml::Node;
use hopcast_core::Duration;

/// Reads a frequency; returns the time between two occurrences.
pub(super) fn frequency(node: &Node, key: &str) -> Result<Duration, Diagnostic> {
    let text = decode::text(node, key)?.trim();
    let expected = "expected a frequency such as `100 Hz` (units: Hz, kHz, /s)";
    let units = [("kHz", 1e3), ("Hz", 1.0), ("/s", 1.0)];
    let Some((number, factor)) =
        units.iter().find_map(|(unit, factor)| text.strip_suffix(unit).map(|number| (number.trim(), factor)))
    else {
        let hint = match text.parse::<f64>() {
            Ok(_) => format!(": write `{text} Hz`"),
            Err(_) => String::new(),
        };
        return Err(node.error(format!("`{key}`: {expected}, found `{text}`{hint}")));
    };
    match number.replace('_', "").parse::<f64>().map(|number| number * factor) {
        // Chosen: more than one a microsecond is faster than any link here, less than one an hour most likely a slip.
        Ok(hertz) if (1.0 / 3600.0..=1e6).contains(&hertz) => Ok(Duration::from_secs_f64(1.0 / hertz)),
        Ok(_) => Err(node.error(format!("`{key}`: expected one an hour to 1000 kHz, found `{text}`"))),
        Err(_) => Err(node.error(format!("`{key}`: {expected}, found `{text}`"))),
    }
}
