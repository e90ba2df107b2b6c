//! Members of a session in virtual time.

mod backpressure;
mod figures;
mod groups;
mod hostile;
mod long;
mod net;
mod order;
mod places;
mod receivers;
mod regimes;
mod reordering;
mod scale;
mod senders;
mod streams;
mod transfers;
