//! FRANC on a shared medium in virtual time.

mod behaviour;
mod figures;
mod hostile;
mod net;
mod traffic;
