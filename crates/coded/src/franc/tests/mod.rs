//! FRANC on a shared medium in virtual time.

mod figures;
mod net;
