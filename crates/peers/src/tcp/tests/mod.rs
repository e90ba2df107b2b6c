//! Two TCPs over a path in virtual time, one file a behaviour.

mod acceptance;
mod closing;
mod congestion;
mod handshake;
mod hostile;
mod kernel;
mod pair;
mod random;
mod recovery;
mod sender;
mod transfer;
mod windows;
