//! TCP connections of a site: those that it accepts, and those that it opens for the far site.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};

use hopcast_core::plug::Destination;
use hopcast_core::{Instant, Item, Outbox, Port, Reactive, StreamId, StreamItem};

use crate::config::{contains, special};

/// Limits on connections: their destinations, their clients' addresses and their number.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    /// Destinations to which connections of the far site may go on. A network that is wider than a [`special`] one does
    /// not include it.
    pub(crate) reach: Vec<Destination>,
    /// A port of this node itself, to which connections go on only if `reach` names its address or port.
    pub(crate) own: Option<SocketAddr>,
    /// Networks that the addresses of the far site's clients may be in, where servers see these.
    pub(crate) from: Option<Vec<(IpAddr, u8)>>,
    pub(crate) as_client: bool,
    /// Maximum number of connections of one source.
    pub(crate) per_source: u16,
    /// Maximum number of connections that one server has not answered, on all its ports together.
    pub(crate) unanswered: u16,
}

/// Two stream ports as one: connections accepted on `Below(0)` and `Below(1)` go up; one that is opened from above
/// leaves by `Below(0)`, if its destination may be reached.
///
/// A stream of a lower port has an odd number `2n + 1`, and above the number `2(2n + port) + 1`. For each stream the
/// client is kept, and until it is answered the server, so that neither one client nor one dead server takes all
/// streams.
pub(crate) struct TcpAccess {
    limits: Limits,
    /// The streams by their numbers above.
    streams: BTreeMap<u64, Stream>,
    sources: BTreeMap<IpAddr, u16>,
    unanswered: BTreeMap<IpAddr, u16>,
    out: Outbox,
    taken: u64,
    reached: u64,
    refused: u64,
    /// Connections refused: too many of their source; below, too many without an answer, and with a client's address
    /// that the far site may not use.
    too_many: u64,
    too_many_unanswered: u64,
    spoofed: u64,
}

/// One connection.
struct Stream {
    source: IpAddr,
    /// The server, until it has answered.
    waits_for: Option<IpAddr>,
    /// Whether the side below, and above, has finished.
    finished: [bool; 2],
}

impl TcpAccess {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            streams: BTreeMap::new(),
            sources: BTreeMap::new(),
            unanswered: BTreeMap::new(),
            out: Outbox::new(),
            taken: 0,
            reached: 0,
            refused: 0,
            too_many: 0,
            too_many_unanswered: 0,
            spoofed: 0,
        }
    }

    fn up(&mut self, side: u32, StreamId(below): StreamId, item: StreamItem) {
        let id = if below.is_multiple_of(2) { below } else { 2 * ((below / 2) * 2 + u64::from(side)) + 1 };
        if let StreamItem::Open { remote, .. } = &item {
            if !self.begin(id, remote.ip().to_canonical(), None) {
                self.too_many += 1;
                let reset = Item::Stream(StreamId(below), StreamItem::Reset);
                return self.out.push(Port::Below(side), reset);
            }
            self.taken += 1;
        } else {
            self.follow(id, 0, &item);
        }
        self.out.up(Item::Stream(StreamId(id), item));
    }

    fn down(&mut self, StreamId(id): StreamId, item: StreamItem) {
        if let StreamItem::Open { local, remote } = &item {
            if !self.may_open(id, *local, *remote) {
                self.out.up(Item::Stream(StreamId(id), StreamItem::Reset));
                return;
            }
            self.reached += 1;
        } else {
            self.follow(id, 1, &item);
        }
        let (side, id) = if id.is_multiple_of(2) { (0, id) } else { ((id / 2 % 2) as u32, 2 * (id / 4) + 1) };
        self.out.push(Port::Below(side), Item::Stream(StreamId(id), item));
    }

    /// Whether a connection of the far site may go on from here; if not, it is counted by the reason.
    fn may_open(&mut self, id: u64, local: SocketAddr, remote: SocketAddr) -> bool {
        let remote = SocketAddr::new(remote.ip().to_canonical(), remote.port());
        let source = local.ip().to_canonical();
        if !self.limits.reaches(remote) {
            self.refused += 1;
        } else if !self.limits.may_be(source) {
            self.spoofed += 1;
        } else if self.unanswered.get(&remote.ip()).is_some_and(|&waiting| waiting >= self.limits.unanswered)
        {
            self.too_many_unanswered += 1;
        } else if !self.begin(id, source, Some(remote.ip())) {
            self.too_many += 1;
        } else {
            return true;
        }
        false
    }

    /// Counts a new stream; false if there are too many of its source.
    fn begin(&mut self, id: u64, source: IpAddr, waits_for: Option<IpAddr>) -> bool {
        let streams = self.sources.entry(source).or_default();
        if *streams >= self.limits.per_source {
            return false;
        }
        *streams += 1;
        if let Some(server) = waits_for {
            *self.unanswered.entry(server).or_default() += 1;
        }
        let stream = Stream { source, waits_for, finished: [false; 2] };
        if let Some(before) = self.streams.insert(id, stream) {
            self.let_go(&before);
        }
        true
    }

    /// Updates a stream's state by an item from one side to the other.
    fn follow(&mut self, id: u64, side: usize, item: &StreamItem) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if side == 0
            && let Some(server) = stream.waits_for.take()
        {
            less(&mut self.unanswered, server);
        }
        stream.finished[side] |= matches!(item, StreamItem::Finish);
        if stream.finished == [true; 2] || matches!(item, StreamItem::Reset) {
            let over = self.streams.remove(&id);
            over.iter().for_each(|stream| self.let_go(stream));
        }
    }

    fn let_go(&mut self, stream: &Stream) {
        less(&mut self.sources, stream.source);
        if let Some(server) = stream.waits_for {
            less(&mut self.unanswered, server);
        }
    }
}

/// Decrements the count of `of`, and removes it at zero.
fn less<K: Ord>(counts: &mut BTreeMap<K, u16>, of: K) {
    if let Some(count) = counts.get_mut(&of) {
        *count -= 1;
        if *count == 0 {
            counts.remove(&of);
        }
    }
}

impl Limits {
    /// Whether connections may go on to `remote`.
    fn reaches(&self, remote: SocketAddr) -> bool {
        let (special, own) = (special(remote.ip()), self.is_own(remote));
        self.reach.iter().any(|to| {
            let is_named = to.port.is_some() || to.prefix == if to.network.is_ipv4() { 32 } else { 128 };
            contains((to.network, to.prefix), remote.ip())
                && to.port.is_none_or(|port| port == remote.port())
                && special.is_none_or(|all| contains(all, to.network) && to.prefix >= all.1)
                && (is_named || !own)
        })
    }

    /// Whether `remote` is the port of this node itself.
    fn is_own(&self, remote: SocketAddr) -> bool {
        self.own.is_some_and(|own| {
            let (here, there) = (own.ip().to_canonical(), remote.ip());
            own.port() == remote.port() && (here == there || here.is_unspecified() && is_of_this_host(there))
        })
    }

    /// Whether a client of the far site may have this address, if servers see it.
    fn may_be(&self, source: IpAddr) -> bool {
        !self.as_client
            || match &self.from {
                Some(from) => from.iter().any(|&network| contains(network, source)),
                None => special(source).is_none() && !is_of_this_host(source),
            }
    }
}

/// Whether an address is this host's: only such a one can be bound, or with `net.ipv4.ip_nonlocal_bind` any.
fn is_of_this_host(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

impl Reactive for TcpAccess {
    fn react(&mut self, _now: Instant, port: Port, item: Item) {
        match (port, item) {
            (Port::Below(side @ (0 | 1)), Item::Stream(id, item)) => self.up(side, id, item),
            (Port::Above(_), Item::Stream(id, item)) => self.down(id, item),
            _ => self.refused += 1,
        }
    }

    fn next(&mut self) -> Option<(Port, Item)> {
        self.out.pop()
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        report("connections_taken", self.taken);
        report("connections_reached", self.reached);
        report("connections_refused", self.refused);
        report("connections_refused_source", self.too_many);
        report("connections_refused_unanswered", self.too_many_unanswered);
        report("connections_spoofed", self.spoofed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopcast_core::Machine;

    const NOW: Instant = Instant::ZERO;

    fn tcp_access() -> TcpAccess {
        reaching("10.20.0.0", 16, Some(443))
    }

    fn reaching(network: &str, prefix: u8, port: Option<u16>) -> TcpAccess {
        TcpAccess::new(Limits {
            reach: vec![Destination { network: network.parse().unwrap(), prefix, port }],
            own: Some("192.0.2.1:9400".parse().unwrap()),
            per_source: 8,
            unanswered: 2,
            ..Limits::default()
        })
    }

    fn open(remote: &str) -> StreamItem {
        StreamItem::Open { local: "10.1.0.1:4000".parse().unwrap(), remote: remote.parse().unwrap() }
    }

    fn pass(tcp_access: &mut TcpAccess, port: Port, id: u64, item: StreamItem) -> (Port, u64, StreamItem) {
        tcp_access.handle(NOW, port, Item::Stream(StreamId(id), item));
        match tcp_access.poll(NOW) {
            Some((port, Item::Stream(StreamId(id), item))) => (port, id, item),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn streams_of_both_ports_have_numbers_of_their_own_above_and_find_back() {
        let mut tcp_access = tcp_access();
        let mut seen = std::collections::BTreeSet::new();
        for (side, id) in [(0, 1), (1, 1), (0, 3), (1, 3), (0, 5), (1, 77)] {
            let (port, above, _) = pass(&mut tcp_access, Port::Below(side), id, open("10.20.0.1:443"));
            assert_eq!(port, Port::Above(0));
            assert!(above % 2 == 1 && seen.insert(above));
            let back = pass(&mut tcp_access, Port::Above(0), above, StreamItem::Finish);
            assert_eq!(back, (Port::Below(side), id, StreamItem::Finish));
        }
        let out = pass(&mut tcp_access, Port::Above(0), 4, open("10.20.0.1:443"));
        assert_eq!((out.0, out.1), (Port::Below(0), 4));
        assert_eq!(pass(&mut tcp_access, Port::Below(0), 4, StreamItem::Opened).1, 4);
    }

    #[test]
    fn whoever_may_not_be_reached_is_not() {
        let mut tcp_access = tcp_access();
        for remote in ["10.21.0.1:443", "10.20.0.1:80", "127.0.0.1:443", "[::1]:443"] {
            assert_eq!(
                pass(&mut tcp_access, Port::Above(0), 2, open(remote)),
                (Port::Above(0), 2, StreamItem::Reset)
            );
        }
        let mapped: SocketAddr = "[::ffff:10.20.0.1]:443".parse().unwrap();
        assert_eq!(pass(&mut tcp_access, Port::Above(0), 2, open(&mapped.to_string())).0, Port::Below(0));
    }

    /// Whether a connection that the far site opens to `remote` goes on.
    fn reaches(tcp_access: &mut TcpAccess, remote: &str) -> bool {
        let (port, ..) = pass(tcp_access, Port::Above(0), 2, open(remote));
        tcp_access.handle(NOW, Port::Above(0), Item::Stream(StreamId(2), StreamItem::Reset));
        while tcp_access.poll(NOW).is_some() {}
        port == Port::Below(0)
    }

    #[test]
    fn all_addresses_are_not_those_that_mean_this_host_or_this_link() {
        let mut v4 = reaching("0.0.0.0", 0, None);
        let mut v6 = reaching("::", 0, None);
        for special in [
            "127.0.0.1:80",
            "127.9.9.9:80",
            "0.0.0.0:80",
            "169.254.169.254:80",
            "224.0.0.1:80",
            "255.255.255.255:80",
        ] {
            assert!(!reaches(&mut v4, special), "{special}");
        }
        for special in ["[::1]:80", "[::]:80", "[fe80::1]:80", "[ff02::1]:80", "[::ffff:127.0.0.1]:80"] {
            assert!(!reaches(&mut v6, special) && !reaches(&mut v4, special), "{special}");
        }
        assert!(reaches(&mut v4, "198.51.100.1:80") && reaches(&mut v6, "[2001:db8::1]:80"));
        assert!(!reaches(&mut v4, "192.0.2.1:9400"), "the node's own metrics");
        assert!(reaches(&mut v4, "192.0.2.1:80"));
        for (network, prefix, remote) in [
            ("127.0.0.1", 32, "127.0.0.1:80"),
            ("169.254.0.0", 16, "169.254.1.1:80"),
            ("192.0.2.1", 32, "192.0.2.1:9400"),
        ] {
            assert!(reaches(&mut reaching(network, prefix, None), remote), "{remote} is named");
        }
    }

    #[test]
    fn one_source_leaves_room_for_others_and_gets_its_own_back() {
        let mut tcp_access = tcp_access();
        tcp_access.limits.per_source = 4;
        let from = |client: &str| StreamItem::Open {
            local: "10.20.0.1:443".parse().unwrap(),
            remote: client.parse().unwrap(),
        };
        for id in [1, 3, 5, 7] {
            assert_eq!(pass(&mut tcp_access, Port::Below(0), id, from("10.1.0.1:4000")).0, Port::Above(0));
        }
        let refused = (Port::Below(1), 1, StreamItem::Reset);
        assert_eq!(pass(&mut tcp_access, Port::Below(1), 1, from("10.1.0.1:4001")), refused);
        assert_eq!(pass(&mut tcp_access, Port::Below(1), 3, from("10.1.0.2:4000")).0, Port::Above(0));
        // One ends with a reset, another by both its ends.
        pass(&mut tcp_access, Port::Below(0), 3, StreamItem::Reset);
        pass(&mut tcp_access, Port::Below(0), 5, StreamItem::Finish);
        assert_eq!(pass(&mut tcp_access, Port::Below(0), 9, from("10.1.0.1:4002")).0, Port::Above(0));
        assert_eq!(pass(&mut tcp_access, Port::Below(0), 11, from("10.1.0.1:4003")).0, Port::Below(0));
        let (_, above, _) = pass(&mut tcp_access, Port::Below(0), 5, StreamItem::Credit(1));
        pass(&mut tcp_access, Port::Above(0), above, StreamItem::Finish);
        assert_eq!(pass(&mut tcp_access, Port::Below(0), 13, from("10.1.0.1:4004")).0, Port::Above(0));
        assert_eq!(tcp_access.too_many, 2);
    }

    #[test]
    fn a_server_that_does_not_answer_takes_no_more_than_its_share() {
        let mut tcp_access = tcp_access();
        let to = |server: &str, client: &str| StreamItem::Open {
            local: client.parse().unwrap(),
            remote: server.parse().unwrap(),
        };
        for id in [2, 4] {
            assert_eq!(
                pass(&mut tcp_access, Port::Above(0), id, to("10.20.0.1:443", "10.1.0.1:1")).0,
                Port::Below(0)
            );
        }
        assert_eq!(
            pass(&mut tcp_access, Port::Above(0), 6, to("10.20.0.1:443", "10.1.0.2:1")).2,
            StreamItem::Reset
        );
        assert_eq!(
            pass(&mut tcp_access, Port::Above(0), 8, to("10.20.0.2:443", "10.1.0.2:1")).0,
            Port::Below(0)
        );
        assert_eq!(tcp_access.too_many_unanswered, 1);
        // One is answered, and does not count any more.
        pass(&mut tcp_access, Port::Below(0), 2, StreamItem::Opened);
        assert_eq!(
            pass(&mut tcp_access, Port::Above(0), 10, to("10.20.0.1:443", "10.1.0.2:1")).0,
            Port::Below(0)
        );
    }

    #[test]
    fn a_client_elsewhere_has_no_address_of_this_host() {
        let mut tcp_access = reaching("10.20.0.0", 16, None);
        tcp_access.limits.as_client = true;
        let mut comes = |from: &str| {
            let local = from.parse().unwrap();
            let open = StreamItem::Open { local, remote: "10.20.0.1:443".parse().unwrap() };
            let (port, ..) = pass(&mut tcp_access, Port::Above(0), 2, open);
            tcp_access.handle(NOW, Port::Above(0), Item::Stream(StreamId(2), StreamItem::Reset));
            while tcp_access.poll(NOW).is_some() {}
            port == Port::Below(0)
        };
        assert!(comes("203.0.113.7:4000"));
        assert!(!comes("127.0.0.1:4000") && !comes("224.0.0.1:4000"));
        tcp_access.limits.from = Some(vec![("10.1.0.0".parse().unwrap(), 16)]);
        let open = |local: &str| StreamItem::Open {
            local: local.parse().unwrap(),
            remote: "10.20.0.1:443".parse().unwrap(),
        };
        assert_eq!(pass(&mut tcp_access, Port::Above(0), 4, open("10.1.2.3:1")).0, Port::Below(0));
        assert_eq!(pass(&mut tcp_access, Port::Above(0), 6, open("203.0.113.7:1")).0, Port::Above(0));
        assert_eq!(tcp_access.spoofed, 3);
    }
}
