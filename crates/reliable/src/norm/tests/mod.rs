//! Members of a session in virtual time.

mod figures;
mod net;
mod transfers;
