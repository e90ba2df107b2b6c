//! The sending end of a video.

use std::collections::VecDeque;

use hopcast_core::{
    Buffer, Datagram, Duration, Instant, Item, Machine, Port, StreamId, StreamItem, StreamWriter,
};

use super::source::{FrameSource, Next};
use crate::app::piece::{PIECE_HEADER, Piece, UnitWriter};
use crate::app::stream::Contents;
use crate::app::{Ends, Schedule};
use crate::meter::Meters;

/// Maximum number of frames that wait for a stream that is slower than the video; beyond it frames are skipped. Chosen:
/// 40 s at 25 frames a second; more is memory, with fewer, a stream that recovers finds frames skipped.
const MAX_WAITING: usize = 1000;
const STREAM: StreamId = StreamId(0);

/// The port by which frames are sent.
pub(crate) enum Carriage {
    /// Datagrams with at most `piece` bytes of a frame in each.
    Datagrams { piece: usize },
    /// One stream, one frame after another.
    Stream { writer: StreamWriter, waiting: VecDeque<UnitWriter> },
}

impl Carriage {
    pub(crate) fn stream() -> Self {
        Self::Stream { writer: StreamWriter::default(), waiting: VecDeque::new() }
    }
}

/// Sends each frame at its time, all of it at once.
pub(crate) struct VideoSender {
    ends: Ends,
    schedule: Schedule,
    source: FrameSource,
    deadline: Duration,
    carriage: Carriage,
    meters: Meters,
    next: Option<Instant>,
    number: u64,
    bytes: u64,
    skipped: u64,
    out: VecDeque<Item>,
}

impl VideoSender {
    /// A sender whose frames have a deadline of `deadline` after they were sent.
    pub(crate) fn new(
        ends: Ends,
        schedule: Schedule,
        source: FrameSource,
        deadline: Duration,
        carriage: Carriage,
        meters: Meters,
    ) -> Self {
        let next = schedule.next_active(Instant::ZERO);
        Self {
            ends,
            schedule,
            source,
            deadline,
            carriage,
            meters,
            next,
            number: 0,
            bytes: 0,
            skipped: 0,
            out: VecDeque::new(),
        }
    }

    fn send(&mut self, now: Instant, Next { picture, bytes, .. }: Next) {
        let frame = Piece { number: self.number, sent: now, length: bytes, offset: 0 };
        let Ends { local, remote } = self.ends;
        let deadline = now + self.deadline;
        self.meters.each(|meter| {
            meter.start(now);
            meter.frame_sent(now, picture, deadline);
        });
        match &mut self.carriage {
            Carriage::Datagrams { piece } => {
                for offset in (0..bytes).step_by(*piece) {
                    let len = (bytes - offset).min(*piece as u32) as usize;
                    let payload = datagram(Piece { offset, ..frame }, len);
                    self.out.push_back(Item::Datagram(Datagram::new(local, remote, payload)));
                }
            }
            Carriage::Stream { waiting, .. } => {
                if self.number == 0 {
                    self.out.push_back(Item::Stream(STREAM, StreamItem::Open { local, remote }));
                }
                if waiting.len() >= MAX_WAITING {
                    self.skipped += 1;
                } else {
                    waiting.push_back(UnitWriter::new(frame));
                }
                self.flush();
            }
        }
        self.number += 1;
        self.bytes += u64::from(bytes);
    }

    /// Writes waiting frames, as far as the stream accepts them.
    fn flush(&mut self) {
        let Carriage::Stream { writer, waiting } = &mut self.carriage else { return };
        let out = &mut self.out;
        while let Some(frame) = waiting.front_mut() {
            if !frame.write(writer, |item| out.push_back(Item::Stream(STREAM, item))) {
                return;
            }
            waiting.pop_front();
        }
    }
}

/// A piece of a frame, with `len` bytes of it.
fn datagram(piece: Piece, len: usize) -> Buffer {
    let mut payload = Buffer::zeroed(PIECE_HEADER + len);
    piece.write(&mut payload);
    Contents::pattern(None).copy(piece.offset.into(), &mut payload[PIECE_HEADER..]);
    payload
}

impl Machine for VideoSender {
    fn handle(&mut self, _now: Instant, _port: Port, item: Item) {
        let Item::Stream(STREAM, item) = item else { return };
        let Carriage::Stream { writer, waiting } = &mut self.carriage else { return };
        match item {
            StreamItem::Credit(granted) => {
                writer.credit(granted);
                self.flush();
            }
            StreamItem::Reset => {
                *writer = StreamWriter::default();
                waiting.clear();
            }
            StreamItem::Open { .. }
            | StreamItem::Opened
            | StreamItem::Data(_)
            | StreamItem::Finish
            | StreamItem::Transmitted(_) => {}
        }
    }

    fn wake(&mut self, now: Instant) {
        while let Some(due) = self.next.filter(|&due| due <= now) {
            let frame = self.source.next();
            self.send(now, frame);
            let after = due + frame.gap;
            self.next = self.schedule.next_active(after);
            if self.next != Some(after) {
                // After a pause a decoder needs an I-frame.
                self.source.restart();
            }
        }
    }

    fn poll(&mut self, _now: Instant) -> Option<(Port, Item)> {
        self.out.pop_front().map(|item| (Port::Below(0), item))
    }

    fn deadline(&self) -> Option<Instant> {
        self.next
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        report("frames_sent", self.number);
        report("frame_bytes_sent", self.bytes);
        report("frames_skipped", self.skipped);
    }
}
