//! Routers with PIM on a net of links in virtual time.

mod hostile;
mod links;
mod messages;
mod net;
mod trees;
