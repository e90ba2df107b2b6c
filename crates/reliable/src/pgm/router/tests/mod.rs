//! Trees of elements in virtual time, with a source that answers each NAK and receivers that say what is asked.

mod encapsulations;
mod hostile;
mod net;
mod options;
mod path;
mod redirect;
mod repairer;
mod restart;
mod tree;
