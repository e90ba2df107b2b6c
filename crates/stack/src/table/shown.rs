//! Values of options as a person writes them.

use std::fmt;

/// `on` or `off`.
pub(crate) fn on_off(on: bool) -> String {
    if on { "on" } else { "off" }.to_owned()
}

/// A value as a person writes it.
pub(crate) fn shown(value: &dyn fmt::Display) -> String {
    value.to_string()
}
