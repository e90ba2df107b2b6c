//! PGM: Pragmatic General Multicast (RFC 3208), with its parity (section 11) and PGMCC (Rizzo 2000) as OpenPGM has
//! it.
//!
//! A **session** is what one source sends to a group: a row of packets with sequence numbers, named by the source's
//! global id and port ([`Tsi`](wire::Tsi)). A member is one machine, a [`Session`], with a source, a receiver of any
//! number of sources, or both. What the application gives is a **unit** (APDU); one that is longer than a packet is
//! cut into several, each of which says where it belongs (OPT_FRAGMENT). [`wire`] has the packets.
//!
//! **A transfer without loss** is a row of ODATA at the source's rate, after a source path message (SPM) that says
//! what the source holds and where requests go. After the last data SPMs follow, at first quickly and then ever more
//! rarely, so that whoever lost the last packets learns of them. Receivers are silent.
//!
//! **With loss**, a receiver backs off for a moment and sends a NAK to the source, or to the network element that the
//! last SPM came through. The source confirms it at once by an NCF to the whole group, which spares others the same
//! request, and repairs it by RDATA before any new data. A receiver's request is in one of three states (section
//! 6.3): it backs off, it waits for its confirmation, or it waits for data; each ends by what is heard or by a time,
//! and all have a bound.
//!
//! **With parity**, sequence numbers are grouped, 64 to a **transmission group** unless said otherwise, and a NAK
//! names a group and how many packets of it are missing. Each parity packet stands in for another loss at each
//! receiver. As much as the group asked for in each of the last groups is sent unasked.
//!
//! **No time is lost in timers** where both ends are ours. A source says in its SPMs that repairs precede new data
//! and SPMs, so a receiver that hears one of these knows that the answer is over, and asks again for what was lost of
//! it. A NAK says as of which data and SPM its receiver lacks something, so that the source counts what it has sent
//! since then, and a request that crosses its answer is not answered twice. With others' members all of this goes by
//! the round trip between a request and its confirmation, which receivers measure.
//!
//! **The rate** is fixed, or that of a TCP to the receiver with the worst path: one receiver, the acker, acknowledges
//! each packet, and a window follows that; requests and acknowledgements say whose path is worst.
//!
//! **Network elements** ([`router`]) stand between: they confirm requests before the source has heard them. A receiver
//! that asks one therefore waits as long as repairs have taken, and does not take what follows a confirmation for their
//! end. If the element is silent, it asks the source for an SPM, which names another.
//!
//! **Ends**: OPT_FIN in SPMs when a member leaves. A source holds what fits its window; a receiver that asks for less
//! than its trail gives that up, and counts the overrun.
//!
//! # Scope and departures
//!
//! - **Two options are ours**, of types that are not assigned, and ignored by others: of an SPM, that units have a
//!   header of ours (names of files, numbers of streams) and that repairs come first; of a NAK, what its receiver had
//!   heard. Towards others [`Framing::Plain`] leaves the header out.
//! - **Short groups**: a source that has nothing more to send ends its group, and goes on with the next group's first
//!   number. OPT_CURR_TGSIZE says so in the SPMs after it and in NCFs, and not in data, so that no
//!   packet need leave room for it. OpenPGM does not know it, so sources with plain units leave their last group
//!   open, and repair what is lost of it by repetition.
//! - **Parity covers** payloads, their lengths where they differ, in network byte order after the payload, and the
//!   fields of OPT_FRAGMENT. Its code is OpenPGM's. OpenPGM 5.3 itself, however, sends no parity: it never sets the
//!   size of its groups as a source, and crashes on the first; and as a receiver it takes parity packets for the
//!   first ones of their group, whichever they are.
//! - **A source of OpenPGM 5.3** that is asked for a packet which its rate or congestion control still holds back, as
//!   its SPMs name it already, repairs it with a checksum of the headers alone. It is refused here (`malformed`), as by
//!   OpenPGM's own receivers, and asked for again.
//! - **POLL** is answered and not sent, as sources have no use for the number of their children. OpenPGM 5.3 has code
//!   that reads POLLs, which no build of it includes, and nothing that answers them. A NNAK is counted.
//!   Repairers are network elements' business: a receiver follows the path in SPMs.
//! - **Where a late receiver begins** is OPT_JOIN's number with our sources, which set it to the beginning of what is
//!   being sent; with others, the first data it hears, or all that is held.
//! - **Nobody is authenticated**: who can send to the group can disturb it. What that can cost is bounded, and tests
//!   hold the bounds. After a lie about its window a source is followed again as soon as its own SPMs are newer, or
//!   begin anew.

mod answer_time;
mod config;
mod framing;
mod parity;
mod receiver;
pub mod router;
mod session;
mod source;
pub mod wire;

pub use config::{Framing, RateControl, ReceiverConfig, SourceConfig};
pub use session::{Config, Session};

pub use crate::{Join, Order};

#[cfg(test)]
mod tests;
