//! The frames between the ends of a hop, in UDP datagrams.
//!
//! A datagram is a byte that names the protocol, then frames: at most one CHALLENGE, one REPORT, one END_TO_END, one
//! INFO and one DATA, in this order. Integers are in network byte order; those that count for a session's life are sent
//! by their lowest bits, and the receiver completes them to the value nearest to the one it expects.
//!
//! # DATA
//!
//! A symbol, or a combination of a batch's symbols; the last frame of its datagram.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |0 0 0 1|A|T|F F|                    session                    |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |  session      |    epoch      |        hop sequence
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//!  hop sequence   |                     block                     |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |              K                |  Mq |           BID           |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! | if T: length of the payload   | coding: F = 0: index          |
//! |                               |         F = 1: vector[M]      |
//! |                               |         F = 2: first, count, vector[count]
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! | payload …
//! ```
//!
//! The word of K, Mq and BID is the header of RFC 9426, section 4.2. BID < K/M are the systematic batches of the block,
//! higher ones are of the outer code. Where T is not set, the payload is as long as a symbol; where it is, it is
//! shorter, and the rest of the symbol is zeros. Either way its length is known, so a datagram cut short is noticed. A:
//! the sender asks for a report now. The session is its [mark](Session::mark).
//!
//! # What is protected
//!
//! A symbol begins with a [checksum](super::framing) of its own, which relays combine with the rest and the sink
//! checks. So what is damaged in transit or in a relay's memory is not delivered, whether it was the payload, the
//! vector or the header that says which symbol it is. The frames themselves have no checksum but UDP's: a REPORT or
//! INFO that is damaged behind that may stop a hop. None of this stops a forger, who can compute it all; keys are yet
//! to come.
//!
//! # INFO
//!
//! The session, as its sender describes it; without it no DATA is taken.
//!
//! ```text
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |0 0 1 0|S|A|U|R|                    session                    |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |  session      |            echo of a challenge, 0 if there is none
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//!  echo           |  Mq |0 0 0 0 0|               K               |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |          symbol, T            |             epoch
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//!               epoch             |         round trip, us
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//!         round trip              |       deadline, ms            |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |           floor: the first symbol still of use (64 bits)
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! | if R: budget, in 16 bytes     |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! | if U: minimum time from the source to here, in us             |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! A: the sender asks for a report now. U: unreliable, with a deadline. S: the deadline holds however long the path is.
//! R: no ranks are wanted. The minimum time is the sum over the hops of half of the minimum round trip, 0 while one of
//! them is not known. The epoch is drawn by the sender when it starts; its lowest byte marks DATA, so that what it sent
//! before it was restarted is not counted.
//!
//! # CHALLENGE
//!
//! A nonce of the receiver, never 0, which the sender echoes in an INFO: only then a session replaces another one
//! ([`vouch`](super::vouch)).
//!
//! ```text
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |0 1 0 1|0 0 0 0|                     nonce                     |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |  nonce        |
//! +-+-+-+-+-+-+-+-+
//! ```
//!
//! # REPORT
//!
//! The state of a receiver.
//!
//! ```text
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |0 0 1 1|0|E|S|C|                    session                    |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |  session      |    epoch      |           instance            |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |            number             |       highest sequence
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//!  highest        |   arrival of the highest, in 16 ns
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//!                 |         hold, in us           |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |       packets received        |          bytes received
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//!         bytes received          |       runs of losses          |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |               floor: the first symbol still of use            |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |    grant, symbols from floor  | base, batches from floor's    |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! | if E: minimum time from here to the furthest end, in us       |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |          length of the list   | ranks of the batches from base on …
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! E: there is a deadline, and the time from here to the end that is furthest away is known. S: something has arrived
//! (else highest, arrival and counts mean nothing). C: the list is complete: of the batches after it nothing has
//! arrived. Each byte of the list is `0rrrrrrr`, a batch of rank r; `10nnnnnn`, a run of n + 1 batches of which
//! nothing more is needed; or `11nnnnnn`, n + 1 batches of which nothing has arrived.
//!
//! # Without ranks
//!
//! In the [strict mode](super::strict) a report's list is empty and its grant is of packets from the highest on. What
//! the sink lacks of each block travels behind the REPORT in an END_TO_END, the [end-to-end
//! frame](end_to_end). In DATA, the first three bits of `block` are the depth of interleaving, as a
//! power of two, and K is, in a repair batch, the number of symbols that its block has; in a systematic batch, that of
//! the block before.

mod codes;
mod data;
mod end_to_end;
#[cfg(test)]
mod examples;
mod info;
mod news;
mod report;
#[cfg(test)]
mod tests;

use std::num::NonZeroU32;

pub(super) use hopcast_core::bytes::{Malformed, Reader, Writer, complete};

use codes::{CHALLENGE, DATA, END_TO_END, INFO, REPORT};
pub(super) use data::{BatchHeader, Coding, Data, symbol_len, trim};
pub(super) use end_to_end::{COMPLETE, EndToEndReport, HopQuality, List, MAX_BLOCKS};
pub(super) use info::{Info, MAX_INFO_LEN, Session};
pub(super) use news::is_news;
pub(super) use report::{Arrivals, MAX_REPORT_LEN, Ranks, Report, list_rank};

/// The first byte of every datagram: the protocol, and in the lower half its version.
pub(super) const MAGIC: u8 = 0xB3;

/// Length of a CHALLENGE, in bytes.
pub(super) const CHALLENGE_LEN: usize = 1 + 4;

/// The frames of a datagram.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Frames<'a> {
    /// The nonce of a CHALLENGE.
    pub(super) challenge: Option<NonZeroU32>,
    pub(super) report: Option<Report<'a>>,
    pub(super) end_to_end: Option<EndToEndReport>,
    pub(super) info: Option<Info>,
    pub(super) data: Option<Data<'a>>,
}

/// Takes a datagram apart. `symbol` says how long a session's symbols are, if it is known.
pub(super) fn parse(datagram: &[u8], symbol: impl Fn(u32) -> Option<usize>) -> Result<Frames<'_>, Malformed> {
    let mut reader = Reader::new(datagram);
    if reader.u8("protocol")? != MAGIC {
        return Err(Malformed { field: "protocol" });
    }
    let mut frames = Frames::default();
    while !reader.is_empty() {
        let kind = reader.u8("frame type")?;
        match kind >> 4 {
            CHALLENGE if frames == Frames::default() => {
                let nonce = NonZeroU32::new(reader.u32("challenge nonce")?);
                frames.challenge = Some(nonce.ok_or(Malformed { field: "challenge nonce" })?);
            }
            REPORT if frames.report.is_none() && frames.info.is_none() => {
                frames.report = Some(Report::read(&mut reader, kind)?);
            }
            END_TO_END if frames.report.is_some() && frames.end_to_end.is_none() && frames.info.is_none() => {
                frames.end_to_end = Some(EndToEndReport::read(&mut reader, kind)?);
            }
            INFO if frames.info.is_none() => frames.info = Some(Info::read(&mut reader, kind)?),
            DATA => {
                let known = frames.info.map(|info| (info.session.mark, usize::from(info.symbol)));
                let symbol = |session| match known {
                    Some((of, symbol)) if of == session => Some(symbol),
                    _ => symbol(session),
                };
                frames.data = Some(Data::read(&mut reader, kind, symbol)?);
                break;
            }
            _ => return Err(Malformed { field: "frame type" }),
        }
    }
    Ok(frames)
}

/// Writes a CHALLENGE.
pub(super) fn write_challenge(nonce: NonZeroU32, out: &mut Writer<'_>) {
    out.u8(CHALLENGE << 4);
    out.u32(nonce.get());
}
