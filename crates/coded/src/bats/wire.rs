//! What hops say to each other, in UDP datagrams.
//!
//! A datagram is a byte that names the protocol, then frames: at most one CHALLENGE, one REPORT, one ACCOUNT, one INFO and
//! one DATA, in this order.
//! Integers are in network byte order; those that count for a session's life are sent by their lowest bits, and the
//! receiver completes them to the value nearest to the one it expects.
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
//! shorter, and the rest of the symbol is zeros. Either way its length is known, so a datagram cut short is noticed. A: the
//! sender asks for a report now. The session is its [mark](Session::mark).
//!
//! # What is protected
//!
//! A symbol begins with a [checksum](super::framing) of its own, which relays combine with the rest and the sink checks. So
//! what is damaged on the way or in a relay's memory is not delivered, whether it was the payload, the vector or the header
//! that says which symbol it is. The frames themselves have no checksum but UDP's: a REPORT or INFO that is damaged behind
//! that may stop a hop. None of this stops a forger, who can compute it all; keys are yet to come.
//!
//! # INFO
//!
//! What a sender tells its receiver about the session; without it no DATA is taken.
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
//! | if U: least time from the source to here, in us               |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! A: the sender asks for a report now. U: unreliable, with a deadline. S: the deadline holds however long the path is. R: no
//! ranks are wanted. The least time is the sum over the hops of half of the least round trip, 0 while one of them is not
//! known. The epoch is drawn by the sender when it starts; its lowest byte marks DATA, so that what it sent before it was
//! restarted is not counted.
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
//! What a receiver has.
//!
//! ```text
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |0 0 1 1|0 0|S|C|                    session                    |
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
//! |          length of the list   | ranks of the batches from base on …
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! S: something has arrived (else highest, arrival and counts mean nothing). C: the list is complete: of the batches
//! after it nothing has arrived. Each byte of the list is `0rrrrrrr`, a batch of rank r; `10nnnnnn`, a run of n + 1
//! batches of which nothing more is needed; or `11nnnnnn`, n + 1 batches of which nothing has arrived.
//!
//! # Without ranks
//!
//! In the [strict mode](super::strict) a report's list is empty and its grant is of packets from the highest on. What the
//! sink lacks of each block travels behind the REPORT in an ACCOUNT, the [end-to-end frame](super::strict::Account). In
//! DATA, the first three bits of `block` are the depth of interleaving, as a power of two, and K is, in a repair batch, the
//! number of symbols that its block has; in a systematic batch, that of the block before.

#[cfg(test)]
mod examples;
mod news;
#[cfg(test)]
mod tests;

use std::num::NonZeroU32;

use hopcast_core::Duration;
pub(super) use hopcast_core::bytes::{Malformed, Reader, Writer, complete};

use super::age::Age;
use super::config::{BatchSize, Config};
use super::strict::Account;
pub(super) use news::is_news;

/// The first byte of every datagram: the protocol, and in the lower half its version.
pub(super) const MAGIC: u8 = 0xB2;

const DATA: u8 = 1;
const INFO: u8 = 2;
const REPORT: u8 = 3;
pub(super) const ACCOUNT: u8 = 4;
const CHALLENGE: u8 = 5;

/// What is in front of the payload of a systematic packet that is as long as a symbol.
const DATA_HEADER: usize = 1 + 4 + 1 + 3 + 3 + 4;
const INFO_LEN: usize = 1 + 4 + 4 + 1 + 2 + 2 + 4 + 4 + 2 + 8;
/// The longest INFO.
pub(super) const LONGEST_INFO: usize = INFO_LEN + 2 + 4;
/// A CHALLENGE.
pub(super) const CHALLENGE_LEN: usize = 1 + 4;
/// A report without its list.
pub(super) const REPORT_LEN: usize = 1 + 4 + 1 + 2 + 2 + 3 + 4 + 2 + 3 + 4 + 2 + 4 + 2 + 2 + 2;

/// The longest symbol of which every kind of packet fits a datagram of `datagram` bytes.
pub(super) const fn symbol_len(datagram: usize, batch: BatchSize) -> usize {
    datagram.saturating_sub(1 + DATA_HEADER + batch.symbols())
}

/// What a datagram holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Frames<'a> {
    /// The nonce of a CHALLENGE.
    pub(super) challenge: Option<NonZeroU32>,
    pub(super) report: Option<Report<'a>>,
    pub(super) account: Option<Account>,
    pub(super) info: Option<Info>,
    pub(super) data: Option<Data<'a>>,
}

/// A DATA frame, without its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Data<'a> {
    pub(super) session: u32,
    pub(super) epoch: u8,
    /// 24 bits.
    pub(super) sequence: u32,
    /// 24 bits.
    pub(super) block: u32,
    pub(super) header: BatchHeader,
    pub(super) coding: Coding<'a>,
    /// Whether a report is wanted now.
    pub(super) ask: bool,
    /// Whether the payload is shorter than a symbol.
    pub(super) trimmed: bool,
    pub(super) payload: &'a [u8],
}

/// The header of RFC 9426, section 4.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BatchHeader {
    pub(super) block: u16,
    pub(super) batch: BatchSize,
    /// 13 bits.
    pub(super) id: u16,
}

impl BatchHeader {
    fn word(self) -> u32 {
        u32::from(self.block) << 16 | u32::from(mq(self.batch)) << 13 | u32::from(self.id & 0x1FFF)
    }
}

/// How a payload was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding<'a> {
    /// It is the batch's symbol of this index.
    Symbol(u8),
    /// The combination with these coefficients of the symbols from `first` on; the others' are 0.
    Vector { first: u8, vector: &'a [u8] },
}

impl<'a> Coding<'a> {
    /// A vector as it is sent: without the zeros at its ends, if that is shorter.
    pub(super) fn trimmed(all: &'a [u8]) -> Self {
        let some = |&coefficient: &u8| coefficient != 0;
        let first = all.iter().position(some).unwrap_or(0);
        let end = all.iter().rposition(some).map_or(1, |last| last + 1);
        if end - first + 2 < all.len() {
            Self::Vector { first: first as u8, vector: &all[first..end] }
        } else {
            Self::Vector { first: 0, vector: all }
        }
    }
}

/// What a source sends, from its start to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Session {
    /// Drawn when its edge starts. All frames of the session have it, so that nobody takes those of the other direction, which have
    /// come back, for those of this one.
    pub(super) mark: u32,
}

/// An INFO frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Info {
    pub(super) session: Session,
    /// The nonce of the receiver's challenge, if this answers one.
    pub(super) echo: Option<NonZeroU32>,
    pub(super) batch: BatchSize,
    pub(super) block: u16,
    pub(super) symbol: u16,
    pub(super) epoch: u32,
    /// The sender's smoothed round trip to the receiver, in microseconds; 0 if it has none.
    pub(super) round_trip: u32,
    /// In milliseconds; `None` where delivery is reliable.
    pub(super) deadline: Option<u16>,
    /// With a deadline: whether it holds however long the path is.
    pub(super) fixed: bool,
    /// With a deadline: the least time from the source to the receiver, in microseconds; 0 if it is not known.
    pub(super) elapsed: u32,
    /// Where no ranks are wanted: the bytes to spend on a batch, in 16.
    pub(super) budget: Option<u16>,
    pub(super) ask: bool,
    pub(super) floor: u64,
}

/// A REPORT frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Report<'a> {
    pub(super) session: u32,
    pub(super) epoch: u8,
    /// Drawn by the receiver when it starts: another one has forgotten everything.
    pub(super) instance: u16,
    pub(super) number: u16,
    pub(super) arrivals: Option<Arrivals>,
    pub(super) floor: u32,
    /// Up to which symbol new ones may be sent, from the floor.
    pub(super) grant: u16,
    /// How many batches after the floor's the list begins.
    pub(super) base: u16,
    /// Whether nothing has arrived of the batches after the list.
    pub(super) complete: bool,
    pub(super) list: &'a [u8],
}

/// What has arrived over a hop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Arrivals {
    /// 24 bits.
    pub(super) highest: u32,
    /// When the highest arrived, in 16 ns by the receiver's clock, the lowest 32 bits.
    pub(super) at: u32,
    /// How long ago that was, in microseconds.
    pub(super) hold: u16,
    /// Cumulative, 24 bits.
    pub(super) packets: u32,
    /// Cumulative.
    pub(super) bytes: u32,
    /// Cumulative: how many times one or several packets in a row were missing.
    pub(super) runs: u16,
}

/// An item of a report's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ranks {
    /// One batch of this rank.
    Rank(u8),
    /// So many batches of which nothing more is needed.
    Complete(u8),
    /// So many of which nothing has arrived.
    Nothing(u8),
}

/// The longest run of one item.
const LONGEST_RUN: u8 = 64;

impl Ranks {
    pub(super) fn of(byte: u8) -> Self {
        let run = (byte & 0x3F) + 1;
        match byte >> 6 {
            0b10 => Self::Complete(run),
            0b11 => Self::Nothing(run),
            _ => Self::Rank(byte),
        }
    }
}

/// Writes a report's list, one batch after the other.
pub(super) fn list_rank(list: &mut Vec<u8>, rank: Option<u8>) {
    let kind = match rank {
        Some(0) => 0xC0,
        None => 0x80,
        Some(rank) => return list.push(rank & 0x7F),
    };
    match list.last_mut() {
        Some(last) if *last & 0xC0 == kind && *last & 0x3F < LONGEST_RUN - 1 => *last += 1,
        _ => list.push(kind),
    }
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
                frames.report = Some(report(&mut reader, kind)?);
            }
            ACCOUNT if frames.report.is_some() && frames.account.is_none() && frames.info.is_none() => {
                frames.account = Some(Account::read(&mut reader, kind)?);
            }
            INFO if frames.info.is_none() => frames.info = Some(info(&mut reader, kind)?),
            DATA => {
                let known = frames.info.map(|info| (info.session.mark, usize::from(info.symbol)));
                let symbol = |session| match known {
                    Some((of, symbol)) if of == session => Some(symbol),
                    _ => symbol(session),
                };
                frames.data = Some(data(&mut reader, kind, symbol)?);
                break;
            }
            _ => return Err(Malformed { field: "frame type" }),
        }
    }
    Ok(frames)
}

fn report<'a>(reader: &mut Reader<'a>, kind: u8) -> Result<Report<'a>, Malformed> {
    let (some, complete) = (kind & 2 != 0, kind & 1 != 0);
    let session = reader.u32("report session")?;
    let epoch = reader.u8("report epoch")?;
    let instance = reader.u16("report instance")?;
    let number = reader.u16("report number")?;
    let arrivals = Arrivals {
        highest: reader.u24("report highest")?,
        at: reader.u32("report arrival")?,
        hold: reader.u16("report hold")?,
        packets: reader.u24("report packets")?,
        bytes: reader.u32("report bytes")?,
        runs: reader.u16("report runs")?,
    };
    let floor = reader.u32("report floor")?;
    let grant = reader.u16("report grant")?;
    let base = reader.u16("report base")?;
    let len = reader.u16("report list length")?;
    let list = reader.take(usize::from(len), "report list")?;
    let arrivals = some.then_some(arrivals);
    Ok(Report { session, epoch, instance, number, arrivals, floor, grant, base, complete, list })
}

fn info(reader: &mut Reader<'_>, kind: u8) -> Result<Info, Malformed> {
    let session = Session { mark: reader.u32("info session")? };
    let echo = NonZeroU32::new(reader.u32("info echo")?);
    let batch =
        batch_size(reader.u8("info batch size")? >> 5).ok_or(Malformed { field: "info batch size" })?;
    let block = reader.u16("info block")?;
    if block == 0 || !usize::from(block).is_multiple_of(batch.symbols()) {
        return Err(Malformed { field: "info block" });
    }
    let symbol = reader.u16("info symbol")?;
    if symbol == 0 {
        return Err(Malformed { field: "info symbol" });
    }
    let epoch = reader.u32("info epoch")?;
    let round_trip = reader.u32("info round trip")?;
    let deadline = reader.u16("info deadline")?;
    let floor = reader.u64("info floor")?;
    let budget = if kind & 1 != 0 { Some(reader.u16("info budget")?) } else { None };
    let timed = kind & 2 != 0;
    let elapsed = if timed { reader.u32("info elapsed")? } else { 0 };
    Ok(Info {
        session,
        echo,
        batch,
        block,
        symbol,
        epoch,
        round_trip,
        deadline: timed.then_some(deadline),
        fixed: timed && kind & 8 != 0,
        elapsed,
        budget,
        ask: kind & 4 != 0,
        floor,
    })
}

fn data<'a>(
    reader: &mut Reader<'a>,
    kind: u8,
    symbol: impl Fn(u32) -> Option<usize>,
) -> Result<Data<'a>, Malformed> {
    let session = reader.u32("data session")?;
    let epoch = reader.u8("data epoch")?;
    let sequence = reader.u24("data sequence")?;
    let block = reader.u24("data block")?;
    let word = reader.u32("batch header")?;
    let batch = batch_size((word >> 13) as u8 & 7).ok_or(Malformed { field: "batch size" })?;
    let header = BatchHeader { block: (word >> 16) as u16, batch, id: word as u16 & 0x1FFF };
    let trimmed = kind & 4 != 0;
    let length = if trimmed { Some(usize::from(reader.u16("payload length")?)) } else { symbol(session) };
    let symbols = batch.symbols();
    let coding = match kind & 3 {
        0 => {
            let index = reader.u8("symbol index")?;
            if usize::from(index) >= symbols {
                return Err(Malformed { field: "symbol index" });
            }
            Coding::Symbol(index)
        }
        1 => Coding::Vector { first: 0, vector: reader.take(symbols, "vector")? },
        2 => {
            let (first, count) = (reader.u8("vector's first")?, reader.u8("vector's count")?);
            if count == 0 || usize::from(first) + usize::from(count) > symbols {
                return Err(Malformed { field: "vector's count" });
            }
            Coding::Vector { first, vector: reader.take(usize::from(count), "vector")? }
        }
        _ => return Err(Malformed { field: "coding" }),
    };
    let payload = reader.take_rest();
    if payload.is_empty() || length.is_some_and(|length| length != payload.len()) {
        return Err(Malformed { field: "payload length" });
    }
    let ask = kind & 8 != 0;
    Ok(Data { session, epoch, sequence, block, header, coding, ask, trimmed, payload })
}

/// Writes a CHALLENGE.
pub(super) fn write_challenge(nonce: NonZeroU32, out: &mut Writer<'_>) {
    out.u8(CHALLENGE << 4);
    out.u32(nonce.get());
}

impl Report<'_> {
    pub(super) fn len(&self) -> usize {
        REPORT_LEN + self.list.len()
    }

    pub(super) fn write(&self, out: &mut Writer<'_>) {
        let Arrivals { highest, at, hold, packets, bytes, runs } = self.arrivals.unwrap_or_default();
        out.u8(REPORT << 4 | u8::from(self.arrivals.is_some()) << 1 | u8::from(self.complete));
        out.u32(self.session);
        out.u8(self.epoch);
        out.u16(self.instance);
        out.u16(self.number);
        out.u24(highest);
        out.u32(at);
        out.u16(hold);
        out.u24(packets);
        out.u32(bytes);
        out.u16(runs);
        out.u32(self.floor);
        out.u16(self.grant);
        out.u16(self.base);
        out.u16(self.list.len() as u16);
        out.put(self.list);
    }
}

impl Info {
    /// The ages of what comes, at a `sink` or else a relay; `None` where delivery is reliable.
    pub(super) fn age(&self, config: &Config, sink: bool) -> Option<Age> {
        let after = Duration::from_millis(u64::from(self.deadline?));
        let age = Age::new(after, self.fixed, config);
        Some(if sink { age.at_sink() } else { age })
    }

    /// The same INFO with what a session says of its deadline, where the hop takes this round trip at least.
    pub(super) fn timed(self, age: Option<&Age>, least_round_trip: Option<Duration>) -> Self {
        let Some(age) = age else { return self };
        let (after, fixed) = age.told();
        let elapsed = age.told_elapsed().zip(least_round_trip).map(|(elapsed, trip)| elapsed + trip / 2);
        Self {
            deadline: Some(after.as_millis().min(u64::from(u16::MAX)) as u16),
            fixed,
            elapsed: elapsed.map_or(0, |elapsed| elapsed.as_micros().clamp(1, u64::from(u32::MAX)) as u32),
            ..self
        }
    }

    pub(super) const fn len(&self) -> usize {
        INFO_LEN + if self.budget.is_some() { 2 } else { 0 } + if self.deadline.is_some() { 4 } else { 0 }
    }

    pub(super) fn write(&self, out: &mut Writer<'_>) {
        let flags = u8::from(self.fixed) << 3
            | u8::from(self.ask) << 2
            | u8::from(self.deadline.is_some()) << 1
            | u8::from(self.budget.is_some());
        out.u8(INFO << 4 | flags);
        out.u32(self.session.mark);
        out.u32(self.echo.map_or(0, NonZeroU32::get));
        out.u8(mq(self.batch) << 5);
        out.u16(self.block);
        out.u16(self.symbol);
        out.u32(self.epoch);
        out.u32(self.round_trip);
        out.u16(self.deadline.unwrap_or(0));
        out.u64(self.floor);
        if let Some(budget) = self.budget {
            out.u16(budget);
        }
        if self.deadline.is_some() {
            out.u32(self.elapsed);
        }
    }
}

/// Whether a payload of `len` bytes travels trimmed, and how long it then is: its length takes two bytes, so that what lacks
/// less of a symbol of `symbol` bytes travels whole.
pub(super) const fn trim(len: usize, symbol: usize) -> (bool, usize) {
    if len + 2 <= symbol { (true, len) } else { (false, symbol) }
}

impl Data<'_> {
    /// How long the frame is in front of its payload.
    pub(super) fn header_len(&self) -> usize {
        let coding = match self.coding {
            Coding::Symbol(_) => 1,
            Coding::Vector { vector, .. } if vector.len() == self.header.batch.symbols() => vector.len(),
            Coding::Vector { vector, .. } => 2 + vector.len(),
        };
        DATA_HEADER + 2 * usize::from(self.trimmed) + coding
    }

    /// Writes everything but the payload.
    pub(super) fn write_header(&self, payload: usize, out: &mut Writer<'_>) {
        let format = match self.coding {
            Coding::Symbol(_) => 0,
            Coding::Vector { vector, .. } if vector.len() == self.header.batch.symbols() => 1,
            Coding::Vector { .. } => 2,
        };
        out.u8(DATA << 4 | u8::from(self.ask) << 3 | u8::from(self.trimmed) << 2 | format);
        out.u32(self.session);
        out.u8(self.epoch);
        out.u24(self.sequence);
        out.u24(self.block);
        out.u32(self.header.word());
        if self.trimmed {
            out.u16(payload as u16);
        }
        match self.coding {
            Coding::Symbol(index) => out.u8(index),
            Coding::Vector { first, vector } => {
                if format == 2 {
                    out.u8(first);
                    out.u8(vector.len() as u8);
                }
                out.put(vector);
            }
        }
    }
}

/// RFC 9426, section 4.2: the code of M in GF(256).
const fn mq(batch: BatchSize) -> u8 {
    match batch {
        BatchSize::M4 => 0b001,
        BatchSize::M8 => 0b011,
        BatchSize::M16 => 0b101,
        BatchSize::M32 => 0b111,
    }
}

/// The opposite; codes of GF(2) are not of this protocol.
fn batch_size(code: u8) -> Option<BatchSize> {
    BatchSize::ALL.into_iter().find(|&batch| mq(batch) == code)
}
