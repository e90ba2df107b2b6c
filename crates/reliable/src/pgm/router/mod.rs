//! Network elements of PGM (RFC 3208, section 7): routers that keep a loss to the branches that have it.
//!
//! A source's packets flow down a tree of multicast. An element on it does four things:
//!
//! - **It marks the path.** Each SPM names the node that it came through last. The element notes that, puts its own
//!   address there, and sends the SPM on: so each receiver, and each element, knows whom to ask, and requests take the
//!   tree's own way up.
//! - **It asks once.** A NAK that arrives is confirmed at once, by an NCF on the interface on which it came, so that no
//!   other receiver there sends one. If nobody has asked for the same yet, a NAK is sent to the next element upstream,
//!   and again until that confirms it; otherwise the interface is noted and the NAK ends here. An NCF that is heard
//!   before any NAK says that another has asked.
//! - **It repairs where it was asked.** A repair is forwarded on the interfaces on which NAKs for it came, and dropped
//!   if there are none. Parity serves whatever of its transmission group was lost, so it is counted: each interface
//!   gets as many parity packets as the neediest receiver behind it has asked for.
//! - **It may repair by itself.** With a [`store`](Config::store) it keeps data that passes by, answers NAKs from it,
//!   and tells the source by a NNAK: a designated local repairer (DLR), on the tree.
//! - **It may ask beside the tree.** With [`redirect`](Config::redirect) it looks for elements with a store among those
//!   below it, and asks one for what another branch has lost: a DLR off the tree (section 9.5).
//!
//! The element has no state that anybody relies on. What an SPM says is said again by the next one; a repair that it
//! has forgotten is asked for again, since receivers repeat NAKs until the data is there. Packets of a session that it
//! does not know pass as by any router.
//!
//! # Ports and hooks
//!
//! [`Router`] is attached to a host by hooks, on `Below(0)`: it takes whole IP packets ([`Item::Transit`]) and hands
//! them back, with an egress of its own where it has chosen one. [`HOOKS`] select IP protocol 113, and UDP, in transit
//! and for the node itself, since NAKs are addressed to it. In UDP it knows PGM's packets by their content, because
//! groups have any port; others go on as they are. SPMs, NCFs and RDATA are to bear a Router Alert, so that elements
//! find them (RFC 3208, section 8): what the element makes as IP protocol 113 does, and what it forwards keeps what it
//! had. It depends on none: its hooks find packets without one, as those from UDP's sockets are.
//!
//! # Bounds
//!
//! Nobody is authenticated. What is forged harms the session that it names, and no other: sessions count with their
//! source's address, whose packets a host takes only from the interface towards it. Their number and the repairs of
//! each are bounded ([`Config`]); when they are full, further ones are refused, and those that are known go on. A NAK
//! or NCF counts only for packets in the source's window. A NAK causes one NCF and at most [`Config::attempts`] NAKs. A
//! forged NCF from the source's side holds NAKs back for one [elimination interval](Config::elimination).
//!
//! # Scope and departures
//!
//! - One NLA, the node's first address, stands in SPMs on all interfaces (section 7.1 has each interface's own):
//!   addresses here are those of nodes, reachable by all interfaces.
//! - An interface on which a NAK came is served, whether the group has members there or not (section 7.2 has elements
//!   look at the multicast routes, which a machine does not see). A NAK from the interface towards the source is
//!   refused.
//! - NAKs outside of the source's window are refused; the RFC leaves that to the source.
//! - NAKs sent again come after 50, 100, 200 ms and so on; the RFC has a fixed interval (NAK_RPT_IVL).
//! - The elimination interval is the time that repairs take, as measured, and 20 ms; the RFC has a fixed one
//!   (NAK_ELIM_IVL).
//! - Parity that is sent unasked comes as RDATA, as OpenPGM has it. In a session that announces it, parity of the
//!   transmission group that was sent last goes to all, whoever asked.
//! - A NAK of ours says what had passed by here, in an option of our own, to a source that reads it: it does then not
//!   take repairs that went to another branch for some that are still on their way.
//! - The repair state of parity is that of a transmission group, and ends when as many packets came as were asked for.
//! - Acknowledgements of PGMCC, which RFC 3208 does not have, go up from element to element as NNAKs do.
//! - A NAK that names the element itself as the source is for the session that was there first with its TSI: OpenPGM's
//!   receivers take the path in SPMs for the source's address.
//! - Of a NAK's options the list and PGMCC's feedback are passed on; the feedback of NAKs that are eliminated is not.
//! - POLLs of all children and their POLRs pass unread, so that a source's polls reach all receivers, and not only its
//!   neighbours (section 14.7); those for repairers end here. Ours ask for answers at once, and answer at once:
//!   elements that repair are few. A packet is asked of a repairer beside the tree once; the RFC does not say how
//!   often.
//! - Upstream DLRs, which announce themselves by a POLR to the group (section 9.5.2.1), are here those on the tree, to
//!   which NAKs come in any case: such POLRs are neither sent nor read.
//! - The repairer keeps data packets, and no parity: NAKs for parity go on to the source.

mod config;
mod counters;
mod data;
mod encapsulation;
mod feedback;
mod machine;
mod redirect;
mod repair;
mod repairer;
mod session;
mod store;
#[cfg(test)]
mod tests;
mod window;

use hopcast_core::Hook;
#[cfg(doc)]
use hopcast_core::Item;
use hopcast_wire::ip;

pub use config::Config;
pub use machine::Router;

/// The hooks that select the packets of PGM.
pub const HOOKS: [Hook; 2] = [
    Hook::Transport { protocol: super::wire::IP_PROTOCOL, port: None },
    Hook::Transport { protocol: ip::UDP, port: None },
];
