//! Members of a session in virtual time.

mod backpressure;
mod figures;
mod groups;
mod hostile;
mod net;
mod receivers;
mod reordering;
mod scale;
mod senders;
mod transfers;
