//! The part that the tables of transports, deliveries and services share: a row with its settings, the options that it
//! reads them from, and the worlds that it runs in.

mod configured;
mod options;
mod shown;
mod words;
mod worlds;

pub use configured::{Configured, TableRow};
pub use options::{Form, Opt, OptionDoc, Options};
pub(crate) use shown::{on_off, shown};
pub(crate) use words::{one_of, word_of};
pub use worlds::Worlds;
