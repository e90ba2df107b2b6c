//! Without rank feedback nothing says at once that something is missing: how long delivery pauses at most.

use super::chain::Chain;
use super::*;

/// What came of a chain of six hops that begins to lose packets.
struct Run {
    /// When the longest pause in delivery began, and how long it was.
    gap: (Instant, Duration),
    /// From the change of loss on, in Mbit/s.
    goodput: f64,
    /// The same, by stretches of 100 ms.
    ramp: Vec<f64>,
}

/// Saturates six hops of 300 Mbit/s whose losses change at `change` from none to `loss`.
fn run(config: &Config, seed: u64, loss: &Loss, change: Duration, span: Duration, verbose: bool) -> Run {
    let size = usize::from(config.datagram) - config.overhead();
    let cables = vec![cable(300, Duration::from_micros(20), Loss::None, 64); 6];
    let mut chain = Chain::new(config, &cables, seed);
    let spacing = Duration::from_secs_f64(size as f64 * 8.0 / 300e6);
    let (change, end) = (Instant::ZERO + change, Instant::ZERO + span);
    let unit = vec![0xA5; size];
    let (mut changed, mut last, mut bytes) = (false, None, 0);
    let mut gap = (Instant::ZERO, Duration::ZERO);
    let mut shown = Instant::ZERO;
    let mut ramp = vec![0.0; 100];
    while chain.now < end {
        let next = chain.now + spacing;
        if !changed && next >= change {
            changed = true;
            for link in 0..6 {
                chain.change(link, None, &Change::Loss(loss.clone()));
            }
        }
        chain.run(next);
        chain.give(0, &unit);
        for (at, _, payload) in chain.arrived.drain(..) {
            if let Some(last) = last {
                let pause = at.since(last);
                if pause > gap.1 {
                    gap = (last, pause);
                }
            }
            last = Some(at);
            if at >= change { ramp[(at.since(change).as_millis() / 100) as usize] += payload.len() as f64 * 8.0 / 1e5; }
            bytes += if at >= change { payload.len() } else { 0 };
        }
        if verbose && last.is_some_and(|last| chain.now > last + Duration::from_millis(100)) && chain.now > shown + Duration::from_millis(20) {
            shown = chain.now;
            println!("  {:?} last {:?}: {}", chain.now, last, chain.nodes[0].state());
            println!("    sink {}", chain.nodes[6].state());
        }
    }
    if let Some(last) = last && end.since(last) > gap.1 { gap = (last, end.since(last)); }
    if verbose { measure::show(&mut chain); }
    Run { gap, ramp, goodput: bytes as f64 * 8.0 / 1e6 / end.since(change).as_secs_f64() }
}

#[test]
#[ignore = "a search"]
fn search_for_stalls() {
    let env = |name: &str, default: u64| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default);
    let (from, count) = (env("SEED", 1), env("COUNT", 4));
    let (change, span) = (env("CHANGE", 300), env("SPAN", 2000));
    let datagram = env("DATAGRAM", 0);
    let losses = std::env::var("LOSSES").unwrap_or("5,10,15,20".into());
    for percent in losses.split(',').map(|l| l.parse::<f64>().unwrap()) {
        let mut sum = 0.0;
        let mut ramp = vec![0.0; 100];
        let mut worst = Duration::ZERO;
        for seed in from..from + count {
            let mut config = Config::strict();
            if datagram > 0 { config.datagram = datagram as u16; }
            let run = run(&config, seed, &independent(percent), Duration::from_millis(change), Duration::from_millis(span), env("VERBOSE", 0) > 0);
            sum += run.goodput;
            worst = worst.max(run.gap.1);
            for (sum, share) in ramp.iter_mut().zip(&run.ramp) { *sum += share; }
            println!("{percent} % seed {seed}: {:.1} gap {:?} at {:?}", run.goodput, run.gap.1, run.gap.0);
        }
        let bins = ((span - change) / 100) as usize;
        let ramp: Vec<u32> = ramp[..bins].iter().map(|sum| (sum / count as f64) as u32).collect();
        println!("{percent} %: mean {:.1} worst {worst:?} {ramp:?}", sum / count as f64);
    }
}
