//! Stations that send all that they can, more than any link carries: what a link costs does not grow with how long that
//! goes on.

#[path = "all/common/mod.rs"]
mod common;

use common::*;
use hopcast_core::{Buffer, Bytes, Duration, Instant, Rate};
use hopcast_counting::{Counting, allocations};
use hopcast_link::{
    Attachment, Csma, Direction, Event, Link, Loss, Mac, MediumConfig, Queue, QueueLimit, Rts, Station,
    SwitchConfig,
};

#[global_allocator]
static COUNTING: Counting = Counting;

/// As many as a scenario allows on one link.
const STATIONS: usize = 256;
const QUEUE: u32 = 20;
const LEN: usize = 300;

/// The destination of the stations' frames.
#[derive(Clone, Copy, Debug)]
enum To {
    Neighbour,
    Hub,
    Everybody,
    /// An address that nobody has.
    Nobody,
}

fn address(station: usize) -> [u8; 6] {
    [2, 0, 0, 0, 1, station as u8]
}

fn frame_to(from: Attachment, to: To) -> Buffer {
    let mut frame = Buffer::zeroed(LEN);
    frame[..6].copy_from_slice(&match to {
        To::Neighbour => address((from + 1) % STATIONS),
        To::Hub => address(0),
        To::Everybody => [0xff; 6],
        To::Nobody => [2, 0, 0, 0, 9, 9],
    });
    frame
}

fn direction(kbit: u64) -> Direction {
    let queue = Queue::DropTail { limit: QueueLimit::Packets(QUEUE) };
    let loss = Loss::Independent(percent(10.0));
    Direction { rate: Some(Rate::from_bits_per_sec(kbit * 1_000)), queue, loss, ..Direction::default() }
}

/// A medium whose stations hear those for whom `hears` says so.
fn air(csma: Csma, hears: Option<fn(Attachment, Attachment) -> bool>) -> Box<dyn Link> {
    let pairs = || (0..STATIONS * STATIONS).map(|pair| (pair / STATIONS, pair % STATIONS));
    let config = MediumConfig {
        direction: direction(12_000),
        stations: (0..STATIONS).map(|i| Station { address: address(i), ..Station::default() }).collect(),
        mac: Mac::Csma(csma),
        hears: hears.map(|hears| pairs().filter(|&(from, to)| hears(from, to)).collect()),
        ..MediumConfig::default()
    };
    Box::new(medium(config, 1))
}

fn nobody(_: Attachment, _: Attachment) -> bool {
    false
}

fn the_hub_and_all_others(from: Attachment, to: Attachment) -> bool {
    (from == 0) != (to == 0)
}

/// Stations with radios, each of which hears the four on either side at the lowest rate.
fn radios(mac: Mac) -> Box<dyn Link> {
    let near = |_, from: Attachment, to: Attachment| (from.abs_diff(to) <= 4).then_some((1, 10.0));
    let stations = (0..STATIONS).map(|i| Station { address: address(i), ..Station::default() }).collect();
    let config = common::radios::with_radios(STATIONS, mac, near);
    let direction = direction(12_000);
    Box::new(medium(MediumConfig { direction, stations, ..config }, 1))
}

/// Each frame asks, however short it is.
fn asking() -> Csma {
    Csma { rts: Some(Rts::ofdm(Bytes::new(0), Rate::from_mbit(12))), ..Csma::default() }
}

fn yard(kbit: u64) -> Box<dyn Link> {
    let config = SwitchConfig {
        directions: vec![direction(kbit); STATIONS],
        addresses: (0..STATIONS).map(address).collect(),
        ..SwitchConfig::default()
    };
    Box::new(switch(&config, 1))
}

/// The work of a link in a stretch of time.
#[derive(Debug)]
struct Stretch {
    allocations: u64,
    wakes: u64,
    cost: std::time::Duration,
}

/// Each station offers a frame every `every`, from `from` to `until`.
#[allow(clippy::disallowed_methods, reason = "it measures what the link costs")]
fn flood(link: &mut dyn Link, to: To, every: Duration, from: Instant, until: Instant) -> Stretch {
    let (mut now, mut wakes) = (from, 0);
    let collect = |link: &mut dyn Link, now| {
        while let Some(event) = link.poll(now) {
            match event {
                Event::Delivered { frame, .. } | Event::Sent { frame, .. } | Event::Dropped { frame, .. } => {
                    frame.recycle();
                }
                Event::Status { status, .. } => status.bytes.recycle(),
            }
        }
    };
    let begun = std::time::Instant::now();
    let allocations = allocations(|| {
        while now < until {
            for station in 0..STATIONS {
                // Not all at one instant, so that not all of a switch's copies are under way at once.
                let at = now + Duration::from_nanos(700) * station as u64;
                link.offer(at, station, frame_to(station, to));
                collect(link, at);
            }
            now += every;
            while let Some(deadline) = link.deadline().filter(|&deadline| deadline <= now) {
                link.wake(deadline);
                collect(link, deadline);
                wakes += 1;
            }
        }
    });
    Stretch { allocations, wakes, cost: begun.elapsed() }
}

/// Every kind of access at its worst: the link, whom its stations send to, and how often each offers a frame.
fn floods() -> Vec<(&'static str, Box<dyn Link>, To, Duration)> {
    let ms = Duration::from_millis;
    let perfect = MediumConfig {
        direction: direction(12_000),
        stations: (0..STATIONS).map(|i| Station { address: address(i), ..Station::default() }).collect(),
        ..MediumConfig::default()
    };
    vec![
        ("a schedule", Box::new(medium(perfect, 1)) as Box<dyn Link>, To::Neighbour, ms(5)),
        ("all in hearing", air(Csma::default(), None), To::Neighbour, ms(5)),
        ("all hidden from each other", air(Csma::default(), Some(nobody)), To::Neighbour, ms(5)),
        ("a hub and hidden stations", air(Csma::default(), Some(the_hub_and_all_others)), To::Hub, ms(5)),
        ("requests of hidden stations", air(asking(), Some(the_hub_and_all_others)), To::Hub, ms(5)),
        ("requests to nobody", air(asking(), Some(nobody)), To::Nobody, ms(5)),
        ("radios", radios(Mac::Csma(Csma::default())), To::Neighbour, ms(5)),
        ("a line for each pair", radios(Mac::EthernetLike), To::Neighbour, ms(1)),
        ("a switch", yard(1_000), To::Neighbour, ms(1)),
        ("a switch, to all", yard(200), To::Everybody, ms(5)),
    ]
}

#[test]
fn a_link_that_is_flooded_allocates_nothing_and_costs_no_more_the_longer_it_lasts() {
    for (what, mut link, to, every) in floods() {
        let ask = |link: &mut dyn Link| (0..STATIONS).for_each(|station| link.report_status(station));
        ask(&mut *link);
        let at = |tenths: u64| millis(tenths * 100);
        // Queues and lists reach their length.
        flood(&mut *link, to, every, at(0), at(5));
        let stretches: Vec<Stretch> =
            (5..11).map(|tenth| flood(&mut *link, to, every, at(tenth), at(tenth + 1))).collect();
        let allocated: u64 = stretches.iter().map(|stretch| stretch.allocations).sum();
        let least = |of: &[Stretch]| of.iter().map(|stretch| stretch.cost).min().unwrap_or_default();
        let (early, late) = (least(&stretches[..3]), least(&stretches[3..]));
        let woken = |of: &[Stretch]| of.iter().map(|stretch| stretch.wakes).sum::<u64>();
        let wakes = woken(&stretches);
        let figures = (0..STATIONS).map(|from| link.sender_counters(at(11), from));
        let (sent, dropped) =
            figures.fold((0, 0), |sum, of| (sum.0 + of.sent_packets, sum.1 + of.queue_dropped_packets));
        println!(
            "{what}: {sent} frames sent, {dropped} dropped, {wakes} wakes, {early:?} and {late:?}, {allocated}"
        );
        assert!(dropped > 1_000 && wakes > 1_000, "{what} is no flood");
        assert_eq!(allocated, 0, "{what}: allocations for {wakes} wakes");
        // The machine may be doing something else meanwhile, but hardly for long in each of three stretches.
        assert!(late < early * 3 + std::time::Duration::from_millis(100), "{what}: {late:?} after {early:?}");
        let (early, late) = (woken(&stretches[..3]), woken(&stretches[3..]));
        assert!(late < early * 2, "{what}: {late} wakes after {early}");
        for station in 0..STATIONS {
            assert!(link.backlog(at(11), station).frames <= u64::from(QUEUE), "{what}");
        }
    }
}
