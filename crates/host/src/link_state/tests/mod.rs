//! Routers with link-state routing on a net of links in virtual time.

mod areas;
mod convergence;
mod hostile;
mod messages;
mod net;
mod restart;
