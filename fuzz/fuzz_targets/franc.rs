//! Two ends of a FRANC segment and their helper, a medium that does what the input says, and somebody on it who forges:
//! nobody panics, runs away or sends what does not fit; and without forgeries and restarts what comes out are the
//! packets that went in, in order.
#![no_main]

use std::collections::VecDeque;
use std::hash::Hasher;

use arbitrary::Arbitrary;
use hopcast_coded::franc::{self, Config, ETHER_TYPE, Field};
use hopcast_core::{Buffer, Duration, Frame, Instant, Item, Machine, Port, Seed};
use hopcast_fuzz::change::Change;
use hopcast_fuzz::timers::{MANY, Timers};
use hopcast_wire::ethernet::{self, Mac};
use libfuzzer_sys::fuzz_target;
use siphasher::sip::SipHasher13;

#[derive(Arbitrary, Debug)]
struct Input {
    paper: bool,
    helper: bool,
    bytes: bool,
    block: u8,
    symbol: u8,
    window: u8,
    seed: u8,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
enum Step {
    Packet {
        far: bool,
        len: u16,
    },
    /// This number of frames leave the air; the stations of the set do not hear them.
    Air {
        frames: u8,
        lost: u8,
    },
    Collide,
    /// The frame whose turn it is, changed, before it is heard itself.
    Forge {
        change: Change,
        check: bool,
    },
    Raw {
        from: u8,
        to: u8,
        check: bool,
        bytes: Vec<u8>,
    },
    Wait {
        micros: u32,
    },
    Restart(u8),
}

/// The ends are 0 and 1, the helper is 2.
const HELPER: usize = 2;
/// Frames that wait for the medium; more are lost.
const QUEUE: usize = 256;

fuzz_target!(|input: Input| {
    let mut segment = Segment::new(&input);
    for step in input.steps.iter().take(300) {
        segment.act(step);
    }
    segment.act(&Step::Air { frames: 200, lost: 0 });
});

struct Segment {
    now: Instant,
    config: Config,
    seed: Seed,
    started: u64,
    stations: Vec<Box<dyn Machine>>,
    air: VecDeque<(usize, Buffer)>,
    /// Packets given to each end, and how many of those cannot come out at the other any more.
    given: [Vec<Vec<u8>>; 2],
    taken: [usize; 2],
    disturbed: bool,
}

impl Timers for Segment {
    fn now(&mut self) -> &mut Instant {
        &mut self.now
    }

    fn machine(&mut self, which: usize) -> Option<&mut dyn Machine> {
        Some(&mut **self.stations.get_mut(which)?)
    }

    fn woken(&mut self, which: usize) {
        self.drain(which);
    }
}

impl Segment {
    fn new(input: &Input) -> Self {
        let base = if input.paper { Config::paper() } else { Config::default() };
        let base = Config {
            block: input.block % 48 + 1,
            window: if input.paper { 1 } else { input.window % 8 + 1 },
            ..base
        };
        let base = if input.helper { base.with_helper() } else { base };
        let base = base.over(if input.bytes { Field::Binary8 } else { Field::Binary });
        let symbol = base.symbol.min(64 + 4 * u16::from(input.symbol));
        let config = Config { symbol, mtu: if input.paper { symbol - 4 } else { 1_500 }, ..base };
        let mut segment = Self {
            now: Instant::ZERO,
            config,
            seed: Seed::new(input.seed.into(), 0),
            started: 0,
            stations: Vec::new(),
            air: VecDeque::new(),
            given: Default::default(),
            taken: [0; 2],
            disturbed: false,
        };
        for station in 0..if input.helper { 3 } else { 2 } {
            let station = segment.fresh(station);
            segment.stations.push(station);
        }
        (0..segment.stations.len()).for_each(|station| segment.drain(station));
        segment
    }

    fn fresh(&mut self, station: usize) -> Box<dyn Machine> {
        self.started += 1;
        let (config, random) = (self.config.clone(), self.seed.stream(&["station"], self.started));
        if station == HELPER {
            franc::helper(config, mac(HELPER), [mac(0), mac(1)], random).expect("the settings are right")
        } else {
            franc::edge(config, mac(station), mac(1 - station), random).expect("the settings are right")
        }
    }

    fn act(&mut self, step: &Step) {
        match step {
            Step::Packet { far, len } => {
                let end = usize::from(*far);
                let number = self.given[end].len();
                let len = usize::from(*len) % usize::from(self.config.mtu) + 1;
                let packet: Vec<u8> = (0..len).map(|at| (number * 31 + at) as u8).collect();
                self.given[end].push(packet.clone());
                self.stations[end].handle(self.now, Port::Above(0), Item::Packet(Buffer::copy_from(&packet)));
                self.drain(end);
            }
            Step::Air { frames, lost } => {
                for _ in 0..*frames {
                    let Some((from, frame)) = self.air.pop_front() else { break };
                    self.wait(Duration::from_micros(1_000));
                    self.hear(from, &frame, *lost);
                }
            }
            Step::Collide => _ = self.air.pop_front(),
            Step::Forge { change, check } => {
                let Some((from, frame)) = self.air.front().cloned() else { return };
                let mut bytes = frame[ethernet::HEADER..].to_vec();
                change.apply(&mut bytes);
                self.forge(from, &frame[..ethernet::HEADER], bytes, *check);
            }
            Step::Raw { from, to, check, bytes } => {
                let stations = self.stations.len();
                let (from, to) = (usize::from(*from) % stations, usize::from(*to) % stations);
                let mut header = Buffer::copy_from(&[]);
                let addresses =
                    ethernet::Header { destination: mac(to), source: mac(from), ether_type: ETHER_TYPE };
                ethernet::prepend(&mut header, addresses);
                self.forge(from, &header, bytes.clone(), *check);
            }
            Step::Wait { micros } => self.wait(Duration::from_micros(u64::from(*micros) % 2_000_000)),
            Step::Restart(station) => {
                let station = usize::from(*station) % self.stations.len();
                self.disturbed |= station != HELPER;
                self.stations[station] = self.fresh(station);
                self.drain(station);
            }
        }
    }

    fn forge(&mut self, from: usize, header: &[u8], mut packet: Vec<u8>, check: bool) {
        self.disturbed = true;
        if check && packet.len() >= 6 {
            // As the wire format has it: a hash over all but the check.
            let mut hasher = SipHasher13::new();
            hasher.write(&packet[..2]);
            hasher.write(&packet[6..]);
            let sum = hasher.finish() as u32;
            packet[2..6].copy_from_slice(&sum.to_be_bytes());
        }
        let frame = Buffer::copy_from(&[header, &packet].concat());
        for station in (0..self.stations.len()).filter(|&station| station != from) {
            self.give(station, frame.clone());
        }
    }

    /// All hear a frame, its sender too, but for those who do not.
    fn hear(&mut self, from: usize, frame: &Buffer, lost: u8) {
        for station in 0..self.stations.len() {
            if station == from || lost >> station & 1 == 0 {
                self.give(station, frame.clone());
            }
        }
    }

    fn give(&mut self, station: usize, bytes: Buffer) {
        let overheard = bytes.get(..6) != Some(&mac(station)[..]);
        self.stations[station].handle(self.now, Port::Below(0), Item::Frame(Frame { overheard, ..Frame::new(bytes) }));
        self.drain(station);
    }

    fn drain(&mut self, station: usize) {
        let mut items = 0;
        while let Some((port, item)) = self.stations[station].poll(self.now) {
            match (port, item) {
                (Port::Below(0), Item::Frame(frame)) => self.sent(station, frame.bytes),
                (Port::Above(0), Item::Packet(packet)) => self.received(station, &packet),
                other => panic!("{other:?}"),
            }
            items += 1;
            assert!(items < MANY, "there is no end to what it says");
        }
        if let Some(at) = self.stations[station].deadline() {
            assert!(at > self.now, "station {station}: a deadline of {at} at {}", self.now);
        }
    }

    fn sent(&mut self, station: usize, frame: Buffer) {
        let header = ethernet::parse(&frame).expect("it is a frame");
        assert_eq!((header.source, header.ether_type), (mac(station), ETHER_TYPE));
        assert!(frame.len() - ethernet::HEADER <= self.config.longest_frame());
        if self.air.len() < QUEUE {
            self.air.push_back((station, frame));
        }
    }

    fn received(&mut self, station: usize, packet: &[u8]) {
        assert!(station != HELPER, "a helper hands nothing up");
        if self.disturbed {
            return;
        }
        let from = 1 - station;
        let later = self.given[from][self.taken[from]..].iter().position(|given| *given == packet);
        // The queue at the input may have dropped some.
        self.taken[from] += 1 + later.expect("it is a packet that was given, and later than the one before");
    }
}

fn mac(station: usize) -> Mac {
    [2, 0, 0, 0, 0, station as u8]
}
