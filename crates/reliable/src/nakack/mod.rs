//! NAKACK: the stack of JGroups 2.12 around `pbcast.NAKACK`, as its file `udp.xml` puts it together.
//!
//! A **group** is members that agree on a **view**: who they are, in which order of seniority. One is one machine, a
//! [`Member`]. In a view each member numbers its messages, and the others deliver them in that order, each once.
//!
//! **Sending.** A unit of the application is cut into messages that fit a packet (FRAG2: `outgoing`, `assembly`), which
//! leave at the member's rate, all together no further ahead of the slowest receiver than its credit (MFC: `credit`).
//!
//! **What is lost** shows by a gap, and is asked for from its sender by a negative acknowledgement, or from any
//! member that has it (NAKACK: `requests`, `epoch/send`). It is sent again to all, since others may have lost it too.
//! Every packet to all has a transmission number, repairs too, and a request says which was heard last: so a receiver
//! knows at once that a repair was lost, and a sender that a request and its repair have crossed. A transfer takes
//! what repeating what was lost takes at the link's rate, and no timer's time on top. A sender that has nothing more
//! to send says how far it has come, ever less often, until all have everything.
//!
//! **What all have** is forgotten (STABLE: `stability`): members say by and by up to where they have whose messages.
//! A sender waits if more than its buffer is not stable, and a member that acknowledges nothing is expelled in the end,
//! so that nobody's memory depends on another's goodwill.
//!
//! **One order for all** (SEQUENCER: `order`): the first member of the view says in its own stream whose messages come
//! next.
//!
//! **Views** (GMS: `gms`) change when somebody joins, leaves, is dead (FD_ALL, VERIFY_SUSPECT), or when two that a
//! partition had parted find each other (PING, MERGE2). All that go from one view to the next together have delivered
//! the same by then. Their control messages, and credits, go by UNICAST (`unicast`), which acknowledges them.
//!
//! [`wire`] has the packets.
//!
//! # Scope and departures
//!
//! - **The wire is our own.** JGroups' packets are serialised Java objects with a header class for each layer; ours
//!   have 16 bytes before the payload. So members are only ours.
//! - **Transmissions are numbered**, which NAKACK does not do: it repeats requests by timers of 300, 600 and 1,200
//!   ms. Those are here too, for lost requests, but follow the time that answers take once there was one.
//! - **Numbers begin anew with each view**, and a view's messages are all delivered before the next: 2.12 does that
//!   only with its layer FLUSH, which `udp.xml` has commented out. A sender is held up for some round trips by a
//!   change.
//! - **Failures**: the coordinator watches all members and all watch it, where FD_ALL has all watch all; FD_SOCK's ring
//!   of TCP connections is left out, since a machine has no sockets. A suspicion is believed only by whoever has asked
//!   the suspect itself, or sees itself that it stalls.
//! - **SEQUENCER orders, and does not forward**: messages go to all once, from their sender; in 2.12 they go to the
//!   coordinator, and from there to all.
//! - **STABLE**: a sender also says what is stable of its own messages, so that receivers need not hear each other.
//! - **UFC is left out**: only control messages go to one member.
//! - **A unit that a change of views cuts off is sent again from its beginning**, for those that are new. A **stream**,
//!   which JGroups does not have, is not: it goes on at all that come to the next view together with its writer, and
//!   begins in its midst at others. There is no state transfer: who joins has what is sent from then on, and after a
//!   partition the parts keep what each had.
//! - **A view has at most [`wire::MAX_MEMBERS`] members**, or [`wire::MAX_MEMBERS_IPV6`] with addresses of IPv6, which
//!   fits one packet of 1,400 bytes. One more is not let in, and asks again until there is room; two views that are
//!   too large together stay two. Both are counted (`joins_refused`).
//! - **Without keys** whoever can send to the group can disturb it, by what no member can tell from another's: a
//!   forged digest makes others forget what somebody lacks, who is then expelled; a forged Prepare stops a view until
//!   its members give up waiting; forged data are delivered. What can be told apart, is: a member that is said to exist
//!   or to be dead is asked itself, a connection's number shows who has heard it, numbers far ahead of others are not
//!   believed. And what any packet can cost is bounded: memory by windows and credits, packets by the rate, work by the
//!   length of what was received and of a window.

mod assembly;
mod config;
mod credit;
mod epoch;
mod gms;
mod member;
mod order;
mod outgoing;
mod requests;
mod stability;
mod unicast;
mod window;
pub mod wire;

pub use config::{Config, Limits, Ordering, Repairs, Stack, Start};
pub use member::Member;

#[cfg(test)]
mod tests;
