//! A transparent proxy: connections end at the edge and go on over something else.
//!
//! A gateway hooks an [`Intercept`] into its host's forwarding. It takes the packets of the flows it knows out of
//! transit and gives them to a TCP that answers in the name of whoever they were for; what that TCP sends is sent as
//! the host's own. So each connection ends here, without either end knowing. A [`Splice`] joins it to a stream of a
//! transport that crosses the lossy part, and at the far gateway another one joins that stream to a connection towards
//! the true destination, opened in the name of the true source.
//!
//! ```text
//! client - TCP -> Intercept, TCP, Splice, BRTP ~ relays ~ BRTP, Splice, TCP, Intercept - TCP -> server
//! ```
//!
//! Bytes, back-pressure, half-close and reset pass through a splice as they come; nothing is stored in it.
//!
//! *Scope and departures*: the near end's connection is established before the far end has been asked, as split-TCP
//! proxies do; if the far end refuses, a reset follows.

mod intercept;
mod splice;

pub use intercept::Intercept;
pub use splice::Splice;
