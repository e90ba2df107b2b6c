//! Two TCPs over a path in virtual time, one file a behaviour.

mod acceptance;
mod pair;
mod transfer;
