//! Two TCPs, a path that does what the input says, and somebody on it who forges: neither end breaks its contract with
//! the application or runs away, and without forgeries every byte that was written is read.
#![no_main]

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use arbitrary::Arbitrary;
use hopcast_core::{Buffer, Bytes, Duration, Instant, Item, Machine, Port, Seed, StreamId, StreamItem};
use hopcast_fuzz::timers::{MANY, Timers};
use hopcast_peers::tcp::{Config, Congestion, Tcp};
use hopcast_wire::{checksum, icmp, ip};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input {
    bbr: bool,
    sack: bool,
    v6: bool,
    seed: u8,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
enum Step {
    Write { end: End, len: u16 },
    Finish(End),
    Reset(End),
    Grant { end: End, bytes: u16 },
    Deliver { to: End, packets: u8 },
    Lose { to: End, at: u8 },
    Overtake { to: End, at: u8 },
    Duplicate { to: End, at: u8 },
    Wait { millis: u16 },
    Forge { to: End, forged: Forged },
    Raw { to: End, bytes: Vec<u8> },
    TooBig { to: End, mtu: u16, seq: i16 },
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum End {
    Client,
    Server,
}

use End::{Client, Server};

/// A segment like the latest that the other end sent, but for this.
#[derive(Arbitrary, Debug)]
struct Forged {
    seq: i32,
    ack: i32,
    flags: u8,
    window: u16,
    /// Instead of the same options.
    options: Option<Vec<u8>>,
    payload: u8,
}

const MTU: u32 = 600;
const BUFFER: u64 = 16 << 10;
/// Packets under way; more are lost.
const QUEUE: usize = 256;

fuzz_target!(|input: Input| {
    let mut path = Path::new(&input);
    for step in input.steps.iter().take(400) {
        path.act(step);
    }
    if !path.forged {
        path.come_to_the_end();
    }
});

struct Path {
    now: Instant,
    ends: [Tcp; 2],
    apps: [App; 2],
    addresses: [IpAddr; 2],
    /// Packets under way to each end.
    lines: [VecDeque<Buffer>; 2],
    /// The latest TCP segment that each end sent.
    latest: [Vec<u8>; 2],
    forged: bool,
}

#[derive(Default)]
struct App {
    /// The stream, once it stands.
    id: Option<StreamId>,
    opened: bool,
    written: u64,
    credit: u64,
    transmitted: u64,
    read: u64,
    granted: u64,
    finished: bool,
    peer_finished: bool,
    reset: bool,
}

impl Timers for Path {
    fn now(&mut self) -> &mut Instant {
        &mut self.now
    }

    fn machine(&mut self, which: usize) -> Option<&mut dyn Machine> {
        self.ends.get_mut(which).map(|machine| machine as &mut dyn Machine)
    }

    fn woken(&mut self, which: usize) {
        self.drain([Client, Server][which]);
    }
}

impl Path {
    fn new(input: &Input) -> Self {
        let config = Config {
            congestion: if input.bbr { Congestion::Bbr } else { Congestion::Cubic },
            sack: input.sack,
            receive_buffer: Bytes::new(BUFFER),
            send_buffer: Bytes::new(BUFFER),
            mtu: if input.v6 { 1280 } else { MTU },
            ..Config::default()
        };
        let addresses: [IpAddr; 2] = if input.v6 {
            [[0xfd00, 0, 0, 0, 0, 0, 0, 1].into(), [0xfd00, 0, 0, 0, 0, 0, 0, 2].into()]
        } else {
            [[10, 0, 0, 1].into(), [10, 0, 0, 2].into()]
        };
        let seed = Seed::new(input.seed.into(), 0);
        let client = Tcp::new(config.clone(), None, vec![addresses[0]], seed.stream(&["client"], 0));
        let server = Tcp::new(config, Some(80), vec![addresses[1]], seed.stream(&["server"], 0));
        let mut path = Self {
            now: Instant::ZERO,
            ends: [client, server],
            apps: [App { id: Some(StreamId(0)), ..App::default() }, App::default()],
            addresses,
            lines: Default::default(),
            latest: Default::default(),
            forged: false,
        };
        let open = StreamItem::Open {
            local: SocketAddr::new(addresses[0], 0),
            remote: SocketAddr::new(addresses[1], 80),
        };
        path.give(Client, open);
        path
    }

    fn act(&mut self, step: &Step) {
        match *step {
            Step::Write { end, len } => self.write(end, len.into()),
            Step::Finish(end) => self.finish(end),
            Step::Reset(end) => {
                let app = &mut self.apps[end as usize];
                if app.id.is_some() && !app.reset {
                    app.reset = true;
                    self.give(end, StreamItem::Reset);
                }
            }
            Step::Grant { end, bytes } => self.grant(end, bytes.into()),
            Step::Deliver { to, packets } => {
                for _ in 0..packets {
                    self.deliver(to, 0);
                }
            }
            Step::Lose { to, at } => {
                let line = &mut self.lines[to as usize];
                line.remove(usize::from(at) % line.len().max(1));
            }
            Step::Overtake { to, at } => self.deliver(to, at.into()),
            Step::Duplicate { to, at } => {
                let line = &mut self.lines[to as usize];
                if let Some(packet) = line.get(usize::from(at) % line.len().max(1)).cloned()
                    && line.len() < QUEUE
                {
                    line.push_back(packet);
                }
            }
            Step::Wait { millis } => self.wait(Duration::from_millis(millis.into())),
            Step::Forge { to, ref forged } => self.forge(to, forged),
            Step::Raw { to, ref bytes } => self.arrive(to, Buffer::copy_from(bytes)),
            Step::TooBig { to, mtu, seq } => self.too_big(to, mtu, seq),
        }
    }

    fn write(&mut self, end: End, len: u64) {
        let app = &mut self.apps[end as usize];
        let len = len.min(app.credit);
        if !app.opened || app.finished || app.reset || len == 0 {
            return;
        }
        let bytes: Vec<u8> = (app.written..app.written + len).map(|at| pattern(end, at)).collect();
        app.written += len;
        app.credit -= len;
        self.give(end, StreamItem::Data(Buffer::copy_from(&bytes)));
    }

    fn finish(&mut self, end: End) {
        let app = &mut self.apps[end as usize];
        if app.opened && !app.finished && !app.reset {
            app.finished = true;
            self.give(end, StreamItem::Finish);
        }
    }

    fn grant(&mut self, end: End, bytes: u64) {
        let app = &mut self.apps[end as usize];
        if app.id.is_some() && !app.reset {
            app.granted += bytes;
            self.give(end, StreamItem::Credit(bytes));
        }
    }

    /// The packet at that place of the line arrives.
    fn deliver(&mut self, to: End, at: usize) {
        let line = &mut self.lines[to as usize];
        if let Some(packet) = line.remove(at % line.len().max(1)) {
            self.arrive(to, packet);
        }
    }

    fn arrive(&mut self, to: End, packet: Buffer) {
        self.ends[to as usize].handle(self.now, Port::Below(0), Item::Packet(packet));
        self.drain(to);
    }

    fn give(&mut self, end: End, item: StreamItem) {
        let Some(id) = self.apps[end as usize].id else { return };
        self.ends[end as usize].handle(self.now, Port::Above(0), Item::Stream(id, item));
        self.drain(end);
    }

    fn drain(&mut self, end: End) {
        let mut items = 0;
        while let Some((port, item)) = self.ends[end as usize].poll(self.now) {
            match (port, item) {
                (Port::Below(0), Item::Packet(packet)) => self.sent(end, packet),
                (Port::Above(0), Item::Stream(id, item)) => {
                    self.apps[end as usize].take(end, id, item, self.forged)
                }
                other => panic!("{other:?}"),
            }
            items += 1;
            assert!(items < MANY, "there is no end to what it says");
        }
        if let Some(at) = self.ends[end as usize].deadline() {
            assert!(at > self.now, "a deadline of {at} at {}", self.now);
        }
    }

    fn sent(&mut self, from: End, packet: Buffer) {
        let header = ip::parse(&packet).expect("a TCP sends packets");
        assert!(packet.len() <= if self.addresses[0].is_ipv6() { 1280 } else { MTU as usize });
        let segment = &packet[header.payload()];
        assert_eq!(checksum::transport(header.source, header.destination, ip::TCP, segment), 0);
        // A forger has addresses of his own choice, and an answer is not for the other end then.
        if (header.source, header.destination)
            != (self.addresses[from as usize], self.addresses[1 - from as usize])
        {
            assert!(self.forged);
            return;
        }
        self.latest[from as usize] = segment.to_vec();
        let line = &mut self.lines[1 - from as usize];
        if line.len() < QUEUE {
            line.push_back(packet);
        }
    }

    fn forge(&mut self, to: End, forged: &Forged) {
        let (from, to_address) = (self.addresses[1 - to as usize], self.addresses[to as usize]);
        let latest = &self.latest[1 - to as usize];
        if latest.is_empty() {
            return;
        }
        self.forged = true;
        let offset = usize::from(latest[12] >> 4) * 4;
        let mut segment = latest[..20].to_vec();
        add(&mut segment[4..8], forged.seq);
        add(&mut segment[8..12], forged.ack);
        match &forged.options {
            Some(options) => {
                segment.extend(options.iter().take(40));
                segment.resize(segment.len().next_multiple_of(4), 0);
            }
            None => segment.extend_from_slice(&latest[20..offset]),
        }
        segment[12] = (segment.len() as u8 / 4) << 4;
        segment[13] = forged.flags;
        segment[14..16].copy_from_slice(&forged.window.to_be_bytes());
        segment[16..18].fill(0);
        segment.resize(segment.len() + usize::from(forged.payload), 0x5A);
        let sum = checksum::transport(from, to_address, ip::TCP, &segment);
        segment[16..18].copy_from_slice(&sum.to_be_bytes());
        let mut packet = Buffer::copy_from(&segment);
        ip::prepend(&mut packet, from, to_address, ip::TCP, 64, 0);
        self.arrive(to, packet);
    }

    /// A router says that the latest segment of `to` was too big.
    fn too_big(&mut self, to: End, mtu: u16, seq: i16) {
        let (own, other) = (self.addresses[to as usize], self.addresses[1 - to as usize]);
        if self.latest[to as usize].is_empty() {
            return;
        }
        self.forged = true;
        let mut quoted = self.latest[to as usize].clone();
        add(&mut quoted[4..8], seq.into());
        let mut packet = Buffer::copy_from(&quoted);
        ip::prepend(&mut packet, own, other, ip::TCP, 64, 0);
        let version = ip::Version::of(own);
        let mut answer = Buffer::copy_from(icmp::quote(version, &packet));
        icmp::prepend(&mut answer, other, own, icmp::Message::PacketTooBig { mtu: mtu.into() });
        ip::prepend(&mut answer, other, own, icmp::protocol(version), 64, 0);
        self.arrive(to, answer);
    }

    /// The path is a good one from now on, and the applications read and finish: all that was written arrives.
    fn come_to_the_end(&mut self) {
        let until = self.now + Duration::from_secs(1_000);
        while self.now < until && !self.is_over() {
            for end in [Client, Server] {
                self.finish(end);
                if self.apps[end as usize].granted < u64::MAX / 4 {
                    self.grant(end, u64::MAX / 2);
                }
                for _ in 0..self.lines[end as usize].len() {
                    self.deliver(end, 0);
                }
            }
            self.wait(Duration::from_millis(5));
        }
        let [client, server] = &self.apps;
        if client.reset || server.reset {
            return;
        }
        assert!(self.is_over(), "both ends have heard of the other's end");
        assert_eq!((client.read, server.read), (server.written, client.written));
    }

    fn is_over(&self) -> bool {
        self.apps.iter().any(|app| app.reset) || self.apps.iter().all(|app| app.peer_finished)
    }
}

impl App {
    fn take(&mut self, end: End, id: StreamId, item: StreamItem, forged: bool) {
        if let StreamItem::Open { .. } = item {
            assert!(matches!(end, Server) && id.0 % 2 == 1);
            assert!(self.id.is_none() || forged, "the client opens one");
            // Another, opened by a forger, is left alone.
            if self.id.is_none() {
                (self.id, self.opened) = (Some(id), true);
            }
            return;
        }
        if self.id != Some(id) {
            return;
        }
        match item {
            StreamItem::Opened => assert!(!std::mem::replace(&mut self.opened, true)),
            StreamItem::Credit(credit) => {
                self.credit += credit;
                assert!(self.credit <= BUFFER);
            }
            StreamItem::Data(bytes) => {
                assert!(!self.peer_finished && !bytes.is_empty() && !self.reset);
                let from = match end {
                    Client => Server,
                    Server => Client,
                };
                for &byte in &bytes[..] {
                    assert!(forged || byte == pattern(from, self.read), "byte {} is intact", self.read);
                    self.read += 1;
                }
                assert!(self.read <= self.granted, "more than was granted");
            }
            StreamItem::Finish => assert!(!std::mem::replace(&mut self.peer_finished, true)),
            StreamItem::Reset => {
                assert!(!std::mem::replace(&mut self.reset, true), "nothing follows a reset")
            }
            StreamItem::Transmitted(offset) => {
                assert!(offset > self.transmitted && offset <= self.written);
                self.transmitted = offset;
            }
            StreamItem::Open { .. } => unreachable!(),
        }
    }
}

fn pattern(end: End, at: u64) -> u8 {
    (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u8 ^ end as u8
}

fn add(number: &mut [u8], offset: i32) {
    let sum = u32::from_be_bytes([number[0], number[1], number[2], number[3]]).wrapping_add_signed(offset);
    number.copy_from_slice(&sum.to_be_bytes());
}
