//! The hello: what neighbours tell each other about themselves, besides what they carry.
//!
//! Each node says hello to each of its peers once a second, and at once when it starts. Between two nodes it goes like
//! this:
//!
//! ```text
//! harbour                                hill
//!    │  hello, ask            ───────►     │  whoever this is: it is answered with a nonce
//!    │  ◄───────  hello, nonce 7, ask      │
//!    │  hello, echo 7         ───────►     │  it is where it says it is: peer `harbour` is up
//!    │  ◄───────  hello, echo of its own   │  peer `hill` is up
//! ```
//!
//! - **Up and down.** A peer is up from the first hello that echoes the nonce it was sent, to a silence of
//!   `down-after`. While it is silent it is asked ten times as often, and answers at once, so that a lossy link does
//!   not count as one that is gone.
//! - **Round trip and loss.** A hello carries a stamp which the next one back echoes with the time it was held, and
//!   the counts of datagrams sent and received so far: the loss each way is of everything that is sent, and no
//!   estimate ([`loss`]).
//! - **Another address.** A peer is where the file says, and nobody else is it. Of one that roams, or whose address
//!   nobody knows, a hello from elsewhere is answered there, with another nonce; when that comes back while the peer
//!   has fallen silent, it has moved. Nobody takes a peer's place while it is heard. The protocols above never see it:
//!   to them a peer has one [identity](peer::identity) for life.
//! - **Started anew.** Another instance is a new start. The protocols above find out for themselves; it is worth a
//!   line.
//! - **Another version.** Magic, version and name stand at the same place in every version. With a peer of another
//!   version nothing is exchanged but hellos. While a peer is up, nothing is believed about its version.
//! - **What it carries.** Both list the lanes between them, so that a channel that only one end knows, or datagrams
//!   that the other does not take, become a line in the log instead of silence. A relay lists to one what the other
//!   lists to it, once that is known.
//! - **What is too long.** Some hellos are probes, as long as the longest datagram, and each says which of the other's
//!   have come. Where those get lost and short ones do not, shorter probes find what passes ([`peer::probe`]).
//!
//! *Scope and departures*: nothing is encrypted or signed. Whoever can send to the port, and read what comes back, can
//! say hello in the name of a silent peer that roams.

pub(crate) mod loss;
pub(crate) mod peer;
pub(crate) mod wire;

#[cfg(test)]
mod tests;
