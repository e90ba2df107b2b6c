//! The cost of a frame on a link: `cargo bench -p hopcast-link`.
//!
//! Each frame is offered, the link is woken at its deadline, and the frame that arrives is offered again, so that
//! nothing is allocated: what is measured is the link and the virtual-time loop around it.

use std::hint::black_box;

use hopcast_core::{Buffer, Duration, Fraction, Instant, Rate, Seed};
use hopcast_link::{
    Config, Direction, Event, Jitter, Link, Loss, Medium, MediumConfig, PointToPoint, Station,
};

const FRAMES: u64 = 300_000;

fn main() {
    let rate = Some(Rate::from_mbit(300));
    let delay = Duration::from_micros(500);
    let base = Direction { rate, delay, ..Direction::default() };
    let with = |set: fn(&mut Direction)| {
        let mut direction = base.clone();
        set(&mut direction);
        direction
    };
    measure("no rate, no delay", Direction::default());
    measure("rate and delay", base.clone());
    measure("rate, delay, 5 % loss", with(|d| d.loss = Loss::Independent(share(0.05))));
    measure("rate, delay, Gilbert-Elliott", with(|d| d.loss = gilbert(0.01, 0.2)));
    measure("rate, delay, uniform jitter", with(|d| d.jitter = Jitter::Uniform(Duration::from_micros(100))));
    measure(
        "rate, delay, normal jitter, reorder",
        with(|d| (d.jitter, d.reorder) = (Jitter::Normal(Duration::from_micros(100)), true)),
    );
    for n in [4, 20] {
        let stations: Vec<_> =
            (0..n).map(|i| Station { address: [2, 0, 0, 0, 0, i], ..Station::default() }).collect();
        let config = MediumConfig { direction: base.clone(), stations, ..MediumConfig::default() };
        let stream = |a, b| Seed::new(1, 0).stream(&["medium"], (a * 1_000 + b) as u64);
        report(&format!("medium of {n}, unicast"), || Medium::new(config.clone(), stream, &Seed::new(1, 0)));
    }
}

fn share(share: f64) -> Fraction {
    Fraction::new(share).unwrap_or(Fraction::ZERO)
}

fn gilbert(p: f64, r: f64) -> Loss {
    Loss::GilbertElliott { p: share(p), r: share(r), k: Fraction::ONE, h: Fraction::ZERO }
}

fn measure(name: &str, direction: Direction) {
    let config = Config { forward: direction.clone(), backward: direction, ..Config::default() };
    report(name, || PointToPoint::new(config.clone(), [0, 1].map(|i| Seed::new(1, 0).stream(&["link"], i))));
}

/// The best of several runs, which is what the code costs where the machine does nothing else.
fn report<L: Link>(name: &str, link: impl Fn() -> L) {
    let (nanos, wakes) =
        (0..7).map(|_| once(link())).fold((f64::MAX, 0.0), |best, run| (best.0.min(run.0), run.1));
    println!("{name:40} {nanos:6.1} ns/frame  {wakes:.2} wakes/frame");
}

#[allow(clippy::disallowed_methods, reason = "a person waits for the figure")]
fn once(mut link: impl Link) -> (f64, f64) {
    let mut spare: Vec<Buffer> = (0..64).map(|_| unicast()).collect();
    let (mut now, mut offered, mut wakes) = (Instant::ZERO, 0, 0u64);
    let start = std::time::Instant::now();
    while offered < FRAMES {
        // Bursts of 16, at about 90 % of 300 Mbit/s.
        for _ in 0..16 {
            link.offer(now, 0, spare.pop().unwrap_or_else(unicast));
            collect(&mut link, now, &mut spare);
            offered += 1;
        }
        let next = now + Duration::from_micros(718);
        while let Some(deadline) = link.deadline().filter(|&deadline| deadline <= next) {
            link.wake(deadline);
            collect(&mut link, deadline, &mut spare);
            wakes += 1;
        }
        now = next;
    }
    let nanos = start.elapsed().as_nanos() as f64 / FRAMES as f64;
    black_box(spare);
    (nanos, wakes as f64 / FRAMES as f64)
}

fn unicast() -> Buffer {
    let mut frame = Buffer::zeroed(1_514);
    frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    frame
}

fn collect(link: &mut impl Link, now: Instant, spare: &mut Vec<Buffer>) {
    while let Some(event) = link.poll(now) {
        if let Event::Delivered { frame, .. } = event {
            spare.push(frame);
        }
    }
}
