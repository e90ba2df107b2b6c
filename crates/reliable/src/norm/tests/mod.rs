//! Members of a session in virtual time.

mod figures;
mod groups;
mod hostile;
mod net;
mod reordering;
mod receivers;
mod scale;
mod senders;
mod transfers;
