//! One connection: quinn-proto's machine, driven in virtual time, and its streams.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use hopcast_core::{Buffer, Datagram, Duration, Instant, Item, Outbox, StreamId, StreamItem};
use quinn_proto::{ConnectionHandle, ConnectionStats, Dir, Endpoint, Event, StreamEvent, VarInt};

use super::bbr::BbrHandle;
use super::clock::{instant, moment};
use super::counters::Counters;
use super::stream::{Broken, Stream};
use super::wire;

/// Wake-ups of a connection at one instant; one that calls for more has them later, or it would never let time pass.
/// Chosen: more than a connection has timers.
const MAX_TIMEOUTS: usize = 64;
/// Minimum time until a wake-up: the unit of virtual time, so that it goes on.
const TICK: Duration = Duration::from_nanos(1);

/// The surroundings that a connection acts on.
pub(super) struct Context<'a> {
    pub now: Instant,
    pub local: SocketAddr,
    pub remote: SocketAddr,
    pub endpoint: &'a mut Endpoint,
    pub out: &'a mut Outbox,
    pub counters: &'a mut Counters,
    /// The connections' streams, by their names above.
    pub by_id: &'a mut BTreeMap<StreamId, usize>,
    pub next_id: &'a mut u64,
}

impl Context<'_> {
    pub(super) fn up(&mut self, id: StreamId, item: StreamItem) {
        self.out.up(Item::Stream(id, item));
    }

    pub(super) fn down(&mut self, bytes: &[u8]) {
        self.counters.datagrams_sent += 1;
        let datagram = Datagram::new(self.local, self.remote, Buffer::copy_from(bytes));
        self.out.down(Item::Datagram(datagram));
    }
}

/// A stream that waits to be opened, and the items that its application has handed over already.
#[derive(Debug)]
struct Opening {
    id: StreamId,
    credit: u64,
    finish: bool,
}

pub(super) struct Connection {
    handle: ConnectionHandle,
    quic: quinn_proto::Connection,
    bbr: Option<BbrHandle>,
    /// Streams that are to be opened once the peer admits them.
    opening: VecDeque<Opening>,
    streams: BTreeMap<quinn_proto::StreamId, Stream>,
    by_id: BTreeMap<StreamId, quinn_proto::StreamId>,
    deadline: Option<Instant>,
    /// Whether it has been lost.
    lost: bool,
}

impl Connection {
    pub(super) fn new(
        handle: ConnectionHandle,
        quic: quinn_proto::Connection,
        bbr: Option<BbrHandle>,
    ) -> Self {
        Self {
            handle,
            quic,
            bbr,
            opening: VecDeque::new(),
            streams: BTreeMap::new(),
            by_id: BTreeMap::new(),
            deadline: None,
            lost: false,
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Whether new streams may be put on it.
    pub(super) fn is_usable(&self) -> bool {
        !self.lost && !self.quic.is_closed()
    }

    /// Whether there is nothing left of it.
    pub(super) fn is_over(&self) -> bool {
        self.quic.is_drained()
    }

    pub(super) fn stats(&self) -> ConnectionStats {
        self.quic.stats()
    }

    /// The application opens a stream.
    pub(super) fn open(&mut self, ctx: &mut Context<'_>, id: StreamId) {
        self.opening.push_back(Opening { id, credit: 0, finish: false });
        ctx.by_id.insert(id, self.handle.0);
        self.drive(ctx);
    }

    /// The application hands over an item of a stream.
    pub(super) fn on_item(&mut self, ctx: &mut Context<'_>, id: StreamId, item: &StreamItem) {
        if let Some(&quic) = self.by_id.get(&id) {
            if *item == StreamItem::Reset {
                self.remove(ctx, quic).inspect(|stream| stream.abandon(&mut self.quic));
            } else {
                self.with(ctx, quic, |stream, ctx, conn| stream.on_item(ctx, conn, item));
            }
            self.drive(ctx);
        } else if let Some(place) = self.opening.iter().position(|opening| opening.id == id) {
            let opening = &mut self.opening[place];
            match item {
                StreamItem::Credit(more) => opening.credit = opening.credit.saturating_add(*more),
                StreamItem::Finish => opening.finish = true,
                StreamItem::Data(_) | StreamItem::Reset => {
                    self.opening.remove(place);
                    ctx.by_id.remove(&id);
                    if *item != StreamItem::Reset {
                        // There has been no credit for data yet.
                        ctx.counters.streams_broken += 1;
                        ctx.up(id, StreamItem::Reset);
                    }
                }
                StreamItem::Open { .. } | StreamItem::Opened | StreamItem::Transmitted(_) => {}
            }
        }
    }

    pub(super) fn on_event(&mut self, ctx: &mut Context<'_>, event: quinn_proto::ConnectionEvent) {
        self.quic.handle_event(event);
        self.drive(ctx);
    }

    pub(super) fn wake(&mut self, ctx: &mut Context<'_>) {
        self.drive(ctx);
    }

    /// Does all that can be done at this instant.
    pub(super) fn drive(&mut self, ctx: &mut Context<'_>) {
        let now = moment(ctx.now);
        let mut paced = None;
        for round in 0.. {
            if self.quic.poll_timeout().is_some_and(|at| at <= now) {
                self.quic.handle_timeout(now);
            }
            self.take_events(ctx);
            self.open_streams(ctx);
            paced = self.transmit(ctx);
            self.take_events(ctx);
            let due = self.quic.poll_timeout().is_some_and(|at| at <= now);
            if !due || round >= MAX_TIMEOUTS {
                break;
            }
        }
        for stream in self.streams.values_mut() {
            stream.tell(ctx);
        }
        let timeout = self.quic.poll_timeout().map(instant);
        self.deadline = [timeout, paced].into_iter().flatten().min().map(|at| at.max(ctx.now + TICK));
    }

    fn transmit(&mut self, ctx: &mut Context<'_>) -> Option<Instant> {
        let now = moment(ctx.now);
        let mut buf = Vec::new();
        if let Some(bbr) = &self.bbr {
            bbr.begin(ctx.now);
        }
        while self.quic.poll_transmit(now, 1, &mut buf).is_some() {
            let Self { streams, bbr, .. } = self;
            let in_flight = wire::stream_frames(&buf, |frame| {
                let id = VarInt::from_u64(frame.stream).map(quinn_proto::StreamId::from);
                if let Some(stream) = id.ok().and_then(|id| streams.get_mut(&id)) {
                    ctx.counters.retransmits += u64::from(stream.note_sent(&frame));
                }
            });
            if let Some(bbr) = bbr.as_ref().filter(|_| in_flight) {
                bbr.on_sent(buf.len() as u64);
            }
            ctx.down(&buf);
            buf.clear();
        }
        self.bbr.as_ref().and_then(BbrHandle::end)
    }

    fn take_events(&mut self, ctx: &mut Context<'_>) {
        loop {
            if let Some(event) = self.quic.poll_endpoint_events() {
                if let Some(event) = ctx.endpoint.handle_event(self.handle, event) {
                    self.quic.handle_event(event);
                }
            } else if let Some(event) = self.quic.poll() {
                self.take_event(ctx, event);
            } else {
                return;
            }
        }
    }

    fn take_event(&mut self, ctx: &mut Context<'_>, event: Event) {
        match event {
            Event::Connected => ctx.counters.handshakes_completed += 1,
            Event::ConnectionLost { .. } => self.lose(ctx),
            Event::Stream(StreamEvent::Opened { .. }) => {
                while let Some(quic) = self.quic.streams().accept(Dir::Bi) {
                    let id = StreamId(*ctx.next_id);
                    *ctx.next_id += 2;
                    self.insert(ctx, Stream::new(id, quic, false), quic);
                    self.with(ctx, quic, Stream::read);
                }
            }
            Event::Stream(StreamEvent::Readable { id }) => self.with(ctx, id, Stream::read),
            Event::Stream(StreamEvent::Writable { id }) => {
                self.with(ctx, id, |stream, _, conn| stream.write(conn));
            }
            Event::Stream(StreamEvent::Finished { id }) => self.with(ctx, id, |stream, _, _| {
                stream.on_finished();
                Ok(())
            }),
            Event::Stream(StreamEvent::Stopped { id, .. }) => {
                self.with(ctx, id, |_, _, _| Err(Broken::Reset));
            }
            Event::Stream(StreamEvent::Available { .. })
            | Event::HandshakeDataReady
            | Event::DatagramReceived
            | Event::DatagramsUnblocked => {}
        }
    }

    /// Opens the streams that wait for it, as far as the peer admits them.
    fn open_streams(&mut self, ctx: &mut Context<'_>) {
        if self.opening.is_empty() || self.quic.is_handshaking() {
            return;
        }
        while !self.opening.is_empty()
            && let Some(quic) = self.quic.streams().open(Dir::Bi)
            && let Some(Opening { id, credit, finish }) = self.opening.pop_front()
        {
            self.insert(ctx, Stream::new(id, quic, true), quic);
            ctx.up(id, StreamItem::Opened);
            self.with(ctx, quic, |stream, _, conn| stream.write(conn));
            let credit = (credit > 0).then_some(StreamItem::Credit(credit));
            for item in credit.into_iter().chain(finish.then_some(StreamItem::Finish)) {
                self.with(ctx, quic, |stream, ctx, conn| stream.on_item(ctx, conn, &item));
            }
        }
    }

    fn insert(&mut self, ctx: &mut Context<'_>, stream: Stream, quic: quinn_proto::StreamId) {
        ctx.by_id.insert(stream.id, self.handle.0);
        self.by_id.insert(stream.id, quic);
        self.streams.insert(quic, stream);
    }

    fn remove(&mut self, ctx: &mut Context<'_>, quic: quinn_proto::StreamId) -> Option<Stream> {
        let stream = self.streams.remove(&quic)?;
        self.by_id.remove(&stream.id);
        ctx.by_id.remove(&stream.id);
        Some(stream)
    }

    /// Lets a stream act, and takes note of its new state.
    fn with(
        &mut self,
        ctx: &mut Context<'_>,
        quic: quinn_proto::StreamId,
        act: impl FnOnce(&mut Stream, &mut Context<'_>, &mut quinn_proto::Connection) -> Result<(), Broken>,
    ) {
        let Some(stream) = self.streams.get_mut(&quic) else { return };
        let result = act(stream, ctx, &mut self.quic);
        if result.is_ok() && !stream.is_over() {
            return;
        }
        let Some(stream) = self.remove(ctx, quic) else { return };
        let Err(broken) = result else { return };
        match broken {
            Broken::Reset => ctx.counters.streams_reset += 1,
            Broken::Rules => ctx.counters.streams_broken += 1,
        }
        stream.abandon(&mut self.quic);
        if stream.is_known() {
            ctx.up(stream.id, StreamItem::Reset);
        }
    }

    /// The connection is no more, and with it all streams.
    fn lose(&mut self, ctx: &mut Context<'_>) {
        self.lost = true;
        let known =
            core::mem::take(&mut self.streams).into_values().filter(Stream::is_known).map(|stream| stream.id);
        let opening = core::mem::take(&mut self.opening).into_iter().map(|opening| opening.id);
        let ids: Vec<_> = known.chain(opening).collect();
        ctx.counters.connections_lost += u64::from(!ids.is_empty());
        self.by_id.clear();
        ctx.by_id.retain(|_, &mut handle| handle != self.handle.0);
        for id in ids {
            ctx.up(id, StreamItem::Reset);
        }
    }
}

impl core::fmt::Debug for Connection {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { handle, streams, opening, deadline, .. } = self;
        f.debug_struct("Connection")
            .field("handle", handle)
            .field("streams", streams)
            .field("opening", opening)
            .field("deadline", deadline)
            .finish_non_exhaustive()
    }
}
