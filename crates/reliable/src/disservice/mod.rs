//! DisService: dissemination of messages in networks that are cut again and again.
//!
//! A **member** is one machine, a [`Peer`]. It publishes messages to groups and subscribes to groups, by their names.
//! The messages of one publisher to one group are a *series*, numbered from 0. All packets go to all that hear them.
//!
//! **Publishing.** A message with its metadata is an object (`object`), which is cut into fragments that each say which
//! message they are part of: whoever hears one can hold it (`message`, `cache`), subscriber or not, so that any member
//! may bring it to others later, when its publisher is gone (*opportunistic listening*).
//!
//! **What is missing** shows by gaps, or by what others say that exists (`series`). A member asks for it (`asking`),
//! and any that holds it can answer (`serving`). By default a request names one server, which sends what it has and
//! passes the rest on to another: so each fragment is sent by one member, however badly they hear each other. In
//! DisService's own way anybody answers, after a random time, unless it has heard the fragment lately (*network traffic
//! memory*), and requests name random shares of what is missing. Members that hear a request do not ask for the same.
//! Repairs can be combinations of what their sender holds of a chunk (`combinations`): any holder's serves any request.
//!
//! Of many members (more than 16) one asks at a time (`turns`): whoever was heard to ask for what is missing here goes
//! on, no more is asked for than is sent in a second, and the member that answers already is asked again.
//!
//! **What is known** members say in summaries (`trickle`): soon after news, ever less often without. Those that a cut
//! network had parted learn that way what the others have (*world state*), and ask for it.
//!
//! **Over several hops** fragments are sent on by a forwarding controller (`forwarding`), and messages brought along by
//! a replication controller: with `Pull` every member asks for all it hears of, so that messages cross the network hop
//! by hop, and from part to part with whoever moves.
//!
//! [`wire`] has the packets.
//!
//! # Scope and departures
//!
//! - **The wire is our own.** DisService's names nodes in text, and repeats all metadata in each fragment; here
//!   fragment 0 begins with them.
//! - **Requests name a server, and say which of its transmissions was heard last**, which DisService's do not;
//!   [`Policy::shipped`] is its own way. Its check of the interface's load before a request is left out: the pacer
//!   bounds what is sent, and a request is not made while its answer may come.
//! - **Back-off**: the time between requests that bring nothing doubles, and news end that, as the paper says; in the
//!   code as it is shipped that is off.
//! - **Keep-alives are summaries**, timed by Trickle (RFC 6206) in place of every 2 s, so that a large segment is not
//!   filled with them.
//! - **A chunk** is what is combined, and not a part that is handed up by itself: a subscriber gets whole messages.
//! - **There are no streams**: messages have bounds, and belong to nobody's connection.
//! - **Without keys** whoever can send can publish in another's name. Of two messages with one name the first one
//!   heard counts, and the other is counted (`conflicts`); a message that does not have its checksum is dropped as a
//!   whole. What others say of numbers far beyond those heard is not believed. Memory is bounded by the cache and by
//!   the counts of series, neighbours and requests; packets by the rate.

mod asking;
mod bodies;
mod cache;
mod combinations;
mod config;
mod expected;
mod forwarding;
mod losses;
mod message;
mod neighbours;
mod object;
mod peer;
mod recent;
mod replication;
mod series;
mod serving;
mod store;
mod trickle;
mod turns;
pub mod wire;

pub use bodies::Bodies;
pub use cache::Dropped;
pub use config::{
    Config, Forwarding, Group, Policy, PublisherRepairs, Repairs, Replication, Requests, Servers,
};
pub use object::{MAX_NAME, Metadata};
pub use peer::Peer;
pub use store::aged;

#[cfg(test)]
mod tests;
