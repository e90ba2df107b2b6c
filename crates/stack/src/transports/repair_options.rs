//! Values of options that the reliable transports of a group have in common: rate, parity and back-off.

use hopcast_config::Diagnostic;
use hopcast_config::decode::{NumberOrWord, whole_or};
use hopcast_config::yaml::Node;
use hopcast_core::Rate;

use crate::table::shown;

/// Words for parity that is no number.
pub(super) const PROACTIVE: [&str; 2] = ["adaptive", "none"];
/// The word for a back-off that is no number.
pub(super) const ADAPTIVE: [&str; 1] = ["adaptive"];

/// Packets of parity that are sent unasked, at most `max`; `None` if adaptive.
pub(super) fn proactive(node: &Node, key: &'static str, max: u64) -> Result<Option<u16>, Diagnostic> {
    Ok(match whole_or(node, key, 0..=max, &PROACTIVE)? {
        NumberOrWord::Number(packets) => Some(packets as u16),
        NumberOrWord::Word("none") => Some(0),
        NumberOrWord::Word(_) => None,
    })
}

pub(super) fn shown_proactive(packets: Option<u16>) -> String {
    match packets {
        None => "adaptive".to_owned(),
        Some(0) => "none".to_owned(),
        Some(packets) => shown(&packets),
    }
}

/// Back-off of requests, in round-trip times; `None` if adaptive.
pub(super) fn backoff(node: &Node, key: &'static str) -> Result<Option<u8>, Diagnostic> {
    Ok(match whole_or(node, key, 0..=15, &ADAPTIVE)? {
        NumberOrWord::Number(factor) => Some(factor as u8),
        NumberOrWord::Word(_) => None,
    })
}

pub(super) fn shown_backoff(factor: Option<u8>) -> String {
    factor.map_or_else(|| "adaptive".to_owned(), |factor| shown(&factor))
}

/// The rate if it is fixed.
pub(super) fn shown_rate(rate: Option<Rate>) -> String {
    rate.map_or_else(|| "a TCP's".to_owned(), |rate| shown(&rate))
}
