//! All connections of one QUIC with one remote.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::BytesMut;
use hopcast_core::{Datagram, Instant, Item, Machine, Outbox, Port, Stream, StreamId, StreamItem};
use quinn_proto::congestion::CubicConfig;
use quinn_proto::{
    ClientConfig, ConnectionId, ConnectionIdGenerator, DatagramEvent, Endpoint, EndpointConfig, IdleTimeout,
    Incoming, NoneTokenStore, ServerConfig, TransportConfig, VarInt,
};

use super::bbr::BbrHandle;
use super::clock::{Calendar, moment, span};
use super::config::{Config, Congestion, MAX_CONNECTIONS, MAX_STREAMS, MIN_DATAGRAM};
use super::connection::{Connection, Context};
use super::counters::Counters;
use super::crypto::{Hello, ResetKey, TokenKey};
use super::wire::CONNECTION_ID;

/// quinn-proto's longest datagram.
const MAX_DATAGRAM: u16 = 65_527;
/// The name that the client calls the server by, which nobody looks at.
const SERVER_NAME: &str = "hopcast";

/// A QUIC: [`Port::Below`]`(0)` is a datagram port, [`Port::Above`]`(0)` a stream port with any number of streams.
/// Either end may open; whoever opens the first stream opens the connection too, and all streams of both ends go over
/// it.
pub struct Quic {
    config: Config,
    local: SocketAddr,
    remote: SocketAddr,
    random: Stream,
    endpoint: Endpoint,
    connections: BTreeMap<usize, Connection>,
    /// Connection of each stream.
    by_id: BTreeMap<StreamId, usize>,
    next_id: u64,
    out: Outbox,
    counters: Counters,
}

impl Quic {
    /// A QUIC that speaks with `remote` from `local`. `random` gives it all that QUIC draws by lot, and must not be
    /// that of the other end.
    pub fn new(mut config: Config, local: SocketAddr, remote: SocketAddr, mut random: Stream) -> Self {
        config.datagram = config.datagram.clamp(MIN_DATAGRAM, MAX_DATAGRAM);
        let mut key = [0; 16];
        random.fill(&mut key);
        let mut endpoint = EndpointConfig::new(Arc::new(ResetKey::new(key)));
        let mut seed = [0; 32];
        random.fill(&mut seed);
        let ids = Ids(random.fork());
        endpoint
            .rng_seed(Some(seed))
            .grease_quic_bit(false)
            .supported_versions(vec![1])
            .cid_generator(move || Box::new(ids.clone()));
        // It is in bounds.
        let _ = endpoint.max_udp_payload_size(config.datagram);
        let mut quic = Self {
            config,
            local,
            remote,
            random,
            endpoint: Endpoint::new(Arc::new(endpoint), None, false, None),
            connections: BTreeMap::new(),
            by_id: BTreeMap::new(),
            next_id: 1,
            out: Outbox::new(),
            counters: Counters::default(),
        };
        let (server, _) = quic.server(Instant::ZERO);
        quic.endpoint.set_server_config(Some(Arc::new(server)));
        quic
    }

    fn hello(&mut self) -> Arc<Hello> {
        let mut random = [0; 32];
        self.random.fill(&mut random);
        Arc::new(Hello(random))
    }

    /// Parameters of one connection.
    fn transport(&mut self, now: Instant) -> (Arc<TransportConfig>, Option<BbrHandle>) {
        let Config { congestion, receive_window, datagram, idle_timeout } = self.config;
        let receive_window = receive_window.get();
        let window = |bytes: u64| VarInt::from_u64(bytes).unwrap_or(VarInt::MAX);
        let mut transport = TransportConfig::default();
        transport
            .initial_mtu(datagram)
            .min_mtu(datagram)
            .mtu_discovery_config(None)
            .enable_segmentation_offload(false)
            .allow_spin(false)
            .max_concurrent_bidi_streams(MAX_STREAMS.into())
            .max_concurrent_uni_streams(VarInt::from_u32(0))
            .datagram_receive_buffer_size(None)
            .stream_receive_window(window(receive_window))
            .receive_window(window(receive_window.saturating_mul(2)))
            .send_window(receive_window.saturating_mul(2))
            .max_idle_timeout(IdleTimeout::try_from(span(idle_timeout)).ok());
        let bbr = match congestion {
            Congestion::Cubic => {
                transport.congestion_controller_factory(Arc::new(CubicConfig::default()));
                None
            }
            Congestion::Bbr => {
                let bbr = BbrHandle::new(now, datagram, self.random.fork());
                transport.congestion_controller_factory(Arc::new(bbr.clone()));
                Some(bbr)
            }
        };
        (Arc::new(transport), bbr)
    }

    fn server(&mut self, now: Instant) -> (ServerConfig, Option<BbrHandle>) {
        let (transport, bbr) = self.transport(now);
        let mut server = ServerConfig::new(self.hello(), Arc::new(TokenKey));
        server
            .transport_config(transport)
            .migration(false)
            .max_incoming(MAX_CONNECTIONS)
            .incoming_buffer_size(0)
            .time_source(Arc::new(Calendar));
        (server, bbr)
    }

    fn open(&mut self, now: Instant, id: StreamId) {
        if self.by_id.contains_key(&id) {
            self.counters.streams_refused += 1;
            return;
        }
        let handle = self.connections.iter().find(|(_, connection)| connection.is_usable());
        let handle = handle.map(|(&handle, _)| handle);
        let room = id.0.is_multiple_of(2) && self.by_id.len() < 2 * MAX_STREAMS as usize;
        let Some(handle) = handle.or_else(|| self.connect(now)).filter(|_| room) else {
            self.counters.streams_refused += 1;
            self.out.up(Item::Stream(id, StreamItem::Reset));
            return;
        };
        self.counters.streams_opened += 1;
        self.with(now, handle, |connection, ctx| connection.open(ctx, id));
    }

    fn connect(&mut self, now: Instant) -> Option<usize> {
        if self.connections.len() >= MAX_CONNECTIONS {
            return None;
        }
        let (transport, bbr) = self.transport(now);
        let mut client = ClientConfig::new(self.hello());
        // The id by which the client calls the server until it learns a better one: RFC 9000 section 7.2 wants eight
        // bytes at least, quinn takes twenty.
        let mut id = [0; 20];
        self.random.fill(&mut id);
        client
            .transport_config(transport)
            .token_store(Arc::new(NoneTokenStore))
            .initial_dst_cid_provider(Arc::new(move || ConnectionId::new(&id)));
        let (handle, connection) =
            self.endpoint.connect(moment(now), client, self.remote, SERVER_NAME).ok()?;
        self.counters.connections_opened += 1;
        self.connections.insert(handle.0, Connection::new(handle, connection, bbr));
        Some(handle.0)
    }

    fn on_datagram(&mut self, now: Instant, datagram: &Datagram) {
        if datagram.remote != self.remote {
            self.counters.foreign += 1;
            return;
        }
        self.counters.datagrams_received += 1;
        let bytes = BytesMut::from(&datagram.payload[..]);
        let mut answer = Vec::new();
        match self.endpoint.handle(moment(now), self.remote, None, None, bytes, &mut answer) {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                self.with(now, handle.0, |connection, ctx| connection.on_event(ctx, event));
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.accept(now, incoming),
            Some(DatagramEvent::Response(_)) => {
                self.counters.no_connection += 1;
                self.context(now).1.down(&answer);
            }
            None => self.counters.no_connection += 1,
        }
    }

    fn accept(&mut self, now: Instant, incoming: Incoming) {
        let mut answer = Vec::new();
        if self.connections.len() >= MAX_CONNECTIONS {
            self.counters.connections_refused += 1;
            let _ = self.endpoint.refuse(incoming, &mut answer);
            self.context(now).1.down(&answer);
            return;
        }
        let (server, bbr) = self.server(now);
        match self.endpoint.accept(incoming, moment(now), &mut answer, Some(Arc::new(server))) {
            Ok((handle, connection)) => {
                self.counters.connections_accepted += 1;
                self.connections.insert(handle.0, Connection::new(handle, connection, bbr));
                self.with(now, handle.0, Connection::drive);
            }
            Err(error) => {
                self.counters.connections_refused += 1;
                if error.response.is_some() {
                    self.context(now).1.down(&answer);
                }
            }
        }
    }

    /// Lets a connection act, and takes note of its new state.
    fn with(&mut self, now: Instant, handle: usize, act: impl FnOnce(&mut Connection, &mut Context<'_>)) {
        let (connections, mut ctx) = self.context(now);
        let Some(connection) = connections.get_mut(&handle) else { return };
        act(connection, &mut ctx);
        if connection.is_over() {
            ctx.counters.add(&connection.stats());
            connections.remove(&handle);
        }
    }

    fn context(&mut self, now: Instant) -> (&mut BTreeMap<usize, Connection>, Context<'_>) {
        let Self { local, remote, endpoint, connections, out, counters, by_id, next_id, .. } = self;
        let ctx = Context { now, local: *local, remote: *remote, endpoint, out, counters, by_id, next_id };
        (connections, ctx)
    }
}

impl Machine for Quic {
    fn handle(&mut self, now: Instant, port: Port, item: Item) {
        // Timers that are due at the instant of an arrival go off first.
        self.wake(now);
        match (port, item) {
            (Port::Below(0), Item::Datagram(datagram)) => self.on_datagram(now, &datagram),
            (Port::Above(0), Item::Stream(id, StreamItem::Open { .. })) => self.open(now, id),
            (Port::Above(0), Item::Stream(id, item)) => {
                // Items for a stream that is over crossed its end on the way.
                if let Some(&handle) = self.by_id.get(&id) {
                    self.with(now, handle, |connection, ctx| connection.on_item(ctx, id, &item));
                }
            }
            _ => self.counters.wrong_items += 1,
        }
    }

    fn wake(&mut self, now: Instant) {
        let due = self
            .connections
            .iter()
            .filter(|(_, connection)| connection.deadline().is_some_and(|at| at <= now));
        let due: Vec<_> = due.map(|(&handle, _)| handle).collect();
        for handle in due {
            self.with(now, handle, Connection::wake);
        }
    }

    fn poll(&mut self, _now: Instant) -> Option<(Port, Item)> {
        self.out.pop()
    }

    fn deadline(&self) -> Option<Instant> {
        self.connections.values().filter_map(Connection::deadline).min()
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        let mut counters = self.counters;
        self.connections.values().for_each(|connection| counters.add(&connection.stats()));
        counters.report(report);
    }
}

impl core::fmt::Debug for Quic {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { config, connections, counters, .. } = self;
        f.debug_struct("Quic")
            .field("config", config)
            .field("connections", connections)
            .field("counters", counters)
            .finish_non_exhaustive()
    }
}

/// Connection ids from a seeded stream.
#[derive(Clone)]
struct Ids(Stream);

impl ConnectionIdGenerator for Ids {
    fn generate_cid(&mut self) -> ConnectionId {
        let mut id = [0; CONNECTION_ID];
        self.0.fill(&mut id);
        ConnectionId::new(&id)
    }

    fn cid_len(&self) -> usize {
        CONNECTION_ID
    }

    fn cid_lifetime(&self) -> Option<core::time::Duration> {
        None
    }
}
