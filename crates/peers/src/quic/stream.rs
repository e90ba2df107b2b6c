//! One stream: what the application has written and may write, and what it has read and may read.

use std::collections::VecDeque;

use bytes::{Buf, Bytes};
use hopcast_core::{Buffer, StreamId, StreamItem};
use quinn_proto::{Connection, ReadError, VarInt, WriteError};

use super::connection::Context;
use super::wire::StreamFrame;

/// The byte that the opener writes first, so that the other end hears of a stream in which it is the first to speak.
/// Applications over QUIC do the same: HTTP/3's streams begin with their type.
const BEGIN: u8 = 0;
/// Maximum number of bytes that the application may write ahead of what is on the wire, granted in eighths. Chosen;
/// more is held in memory, with less a window of a fast and long path is not filled.
const MAX_AHEAD: u64 = 512 << 10;
/// Error code of a reset, which has no meaning to tell.
const NO_REASON: VarInt = VarInt::from_u32(0);

/// The sending direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sending {
    Open,
    /// The application has finished; QUIC hears of it after the last byte.
    Finishing,
    Finished,
    /// The peer has it all.
    Over,
}

/// The stream has ended with a reset, or must.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Broken {
    /// The peer's doing.
    Reset,
    /// The application or the peer broke the rules.
    Rules,
}

#[derive(Debug)]
pub(super) struct Stream {
    pub id: StreamId,
    quic: quinn_proto::StreamId,
    /// Whether this end has opened it.
    opened: bool,
    sending: Sending,
    /// The bytes that QUIC has not taken yet.
    pending: VecDeque<Bytes>,
    /// Bytes that the application has written, may write in all, and knows to be on the wire.
    written: u64,
    granted: u64,
    told: u64,
    /// Bytes of the stream on the wire, with [`BEGIN`].
    sent: u64,
    /// Whether the application knows of the stream.
    known: bool,
    /// Bytes that the application takes.
    credit: u64,
    ended: bool,
}

impl Stream {
    pub(super) fn new(id: StreamId, quic: quinn_proto::StreamId, opened: bool) -> Self {
        let begin = opened.then(|| Bytes::from_static(&[BEGIN]));
        Self {
            id,
            quic,
            opened,
            sending: Sending::Open,
            pending: begin.into_iter().collect(),
            written: 0,
            granted: 0,
            told: 0,
            sent: 0,
            known: opened,
            credit: 0,
            ended: false,
        }
    }

    /// Whether the application knows of the stream, and is to hear of its end.
    pub(super) fn is_known(&self) -> bool {
        self.known
    }

    /// Whether both directions are over.
    pub(super) fn is_over(&self) -> bool {
        self.ended && self.sending == Sending::Over
    }

    /// The application hands over an item.
    pub(super) fn on_item(
        &mut self,
        ctx: &mut Context<'_>,
        conn: &mut Connection,
        item: &StreamItem,
    ) -> Result<(), Broken> {
        match item {
            StreamItem::Data(data) => {
                if self.sending != Sending::Open || self.written + data.len() as u64 > self.granted {
                    return Err(Broken::Rules);
                }
                self.written += data.len() as u64;
                self.pending.push_back(Bytes::copy_from_slice(data));
                self.write(conn)
            }
            StreamItem::Finish if self.sending == Sending::Open => {
                self.sending = Sending::Finishing;
                self.write(conn)
            }
            StreamItem::Credit(bytes) => {
                self.credit = self.credit.saturating_add(*bytes);
                self.read(ctx, conn)
            }
            StreamItem::Finish
            | StreamItem::Reset
            | StreamItem::Opened
            | StreamItem::Open { .. }
            | StreamItem::Transmitted(_) => Ok(()),
        }
    }

    /// Gives QUIC as many bytes as it takes.
    pub(super) fn write(&mut self, conn: &mut Connection) -> Result<(), Broken> {
        let mut quic = conn.send_stream(self.quic);
        while let Some(bytes) = self.pending.front_mut() {
            match quic.write_chunks(core::slice::from_mut(bytes)) {
                Ok(_) if bytes.has_remaining() => {}
                Ok(_) => {
                    self.pending.pop_front();
                }
                Err(WriteError::Blocked) => return Ok(()),
                Err(WriteError::Stopped(_) | WriteError::ClosedStream) => return Err(Broken::Reset),
            }
        }
        if self.sending == Sending::Finishing {
            quic.finish().map_err(|_| Broken::Reset)?;
            self.sending = Sending::Finished;
        }
        Ok(())
    }

    /// Passes on bytes that have arrived in order, as far as the application takes them.
    pub(super) fn read(&mut self, ctx: &mut Context<'_>, conn: &mut Connection) -> Result<(), Broken> {
        if self.ended {
            return Ok(());
        }
        let mut quic = conn.recv_stream(self.quic);
        let mut chunks = quic.read(true).map_err(|_| Broken::Reset)?;
        let mut gathered: Option<Buffer> = None;
        let result = loop {
            // The first byte is not the application's.
            let limit = if self.known { usize::try_from(self.credit).unwrap_or(usize::MAX) } else { 1 };
            match chunks.next(limit) {
                Ok(Some(chunk)) if !self.known => {
                    if chunk.bytes[..] != [BEGIN] {
                        break Err(Broken::Rules);
                    }
                    self.known = true;
                    ctx.counters.streams_accepted += 1;
                    ctx.up(self.id, StreamItem::Open { local: ctx.local, remote: ctx.remote });
                }
                Ok(Some(chunk)) if chunk.bytes.is_empty() => break Ok(()),
                Ok(Some(chunk)) => {
                    self.credit -= chunk.bytes.len() as u64;
                    match &mut gathered {
                        Some(gathered) => gathered.append(&chunk.bytes),
                        None => gathered = Some(Buffer::copy_from(&chunk.bytes)),
                    }
                }
                Ok(None) if self.known => {
                    self.ended = true;
                    break Ok(());
                }
                Ok(None) => break Err(Broken::Rules),
                Err(ReadError::Blocked) => break Ok(()),
                Err(ReadError::Reset(_)) => break Err(Broken::Reset),
            }
        };
        let _ = chunks.finalize();
        if let Some(data) = gathered {
            ctx.up(self.id, StreamItem::Data(data));
        }
        if self.ended {
            ctx.up(self.id, StreamItem::Finish);
        }
        result
    }

    /// A frame of the stream is on the wire. True if it is there for another time.
    pub(super) fn note_sent(&mut self, frame: &StreamFrame) -> bool {
        let again = frame.len > 0 && frame.offset < self.sent;
        self.sent = self.sent.max(frame.offset + frame.len);
        again
    }

    /// All that was written, and that it is over, has been acknowledged.
    pub(super) fn on_finished(&mut self) {
        self.sending = Sending::Over;
    }

    /// Reports to the application which bytes are on the wire, and how many more it may write.
    pub(super) fn tell(&mut self, ctx: &mut Context<'_>) {
        let sent = self.sent.saturating_sub(self.opened.into());
        if sent > self.told {
            self.told = sent;
            ctx.up(self.id, StreamItem::Transmitted(sent));
        }
        let limit = sent + MAX_AHEAD;
        if self.known && self.sending == Sending::Open && limit - self.granted >= MAX_AHEAD / 8 {
            ctx.up(self.id, StreamItem::Credit(limit - self.granted));
            self.granted = limit;
        }
    }

    /// Ends both directions of QUIC's, as far as they have not ended.
    pub(super) fn abandon(&self, conn: &mut Connection) {
        let _ = conn.send_stream(self.quic).reset(NO_REASON);
        let _ = conn.recv_stream(self.quic).stop(NO_REASON);
    }
}
