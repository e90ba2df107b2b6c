//! Members of a session in virtual time.

mod figures;
mod groups;
mod hostile;
mod net;
mod order;
mod scale;
mod senders;
mod streams;
mod transfers;
