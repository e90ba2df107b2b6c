//! The hello: messages between neighbours about their state, beside the data that they carry.
//!
//! Each node sends a hello to each of its peers once a second, and at once when it starts. Between two nodes:
//!
//! ```text
//! harbour                                hill
//!    │  hello, ask            ───────►     │  any sender is answered with a nonce
//!    │  ◄───────  hello, nonce 7, ask      │
//!    │  hello, echo 7         ───────►     │  it receives at its address: peer `harbour` is up
//!    │  ◄───────  hello, echo of its own   │  peer `hill` is up
//! ```
//!
//! - **Up and down.** A peer is up from the first hello that echoes the nonce it was sent, until a silence of
//!   `down-after`. A silent peer is sent hellos ten times as often, and answers at once, so that a lossy link does not
//!   count as one that is gone.
//! - **Round trip and loss.** A hello carries a stamp, which the next hello back echoes with the time it was held, and
//!   counts of datagrams sent and received so far: the loss of each direction is counted over all datagrams, and not
//!   estimated ([`loss`]).
//! - **Another address.** A peer has the address of the configuration, and is accepted from no other. For a peer that
//!   roams, or whose address is unknown, a hello from another address is answered there, with another nonce; when that
//!   is echoed while the peer is silent, it has moved. No other host can take a peer's place while it is heard. The
//!   protocols above do not notice: for them a peer has one constant [identity](peer::identity).
//! - **Restart.** Another instance is a new start. The protocols above detect it themselves; it is logged.
//! - **Another version.** Magic, version and name are at the same place in every version. With a peer of another
//!   version only hellos are exchanged. While a peer is up, no claim about its version is accepted.
//! - **Lanes.** Both ends list the lanes between them, so that a channel that only one end has, or datagrams that the
//!   other end does not accept, become a line in the log instead of silence. A relay lists to one end the lanes that
//!   the other end lists to it, once they are known.
//! - **Maximum length.** Some hellos are probes, as long as the longest datagram, and each reports which of the other
//!   end's probes have arrived. Where those are lost and short ones are not, shorter probes find the length that passes
//!   ([`peer::probe`]).
//!
//! *Scope and departures*: nothing is encrypted or signed. A host that can send to the port, and read the answers, can
//! send hellos in the name of a silent peer that roams.

pub(crate) mod loss;
pub(crate) mod peer;
pub(crate) mod wire;

#[cfg(test)]
mod tests;
