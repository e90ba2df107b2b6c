//! The figures of the transports, to be printed: `cargo test --release -p hopcast-coded measure -- --ignored
//! --nocapture`.

use super::*;

/// A unit that fills a symbol, with the stamp that it has where delivery has a deadline.
const UNIT: usize = 1433;

fn six_hops(loss: &Loss) -> Vec<Cable> {
    vec![cable(300, Duration::from_micros(20), loss.clone(), 64); 6]
}

pub(super) fn show(chain: &mut Chain) {
    let now = chain.now;
    for link in &mut chain.links {
        use hopcast_link::Link as _;
        println!("   {:?}", link.counters(now, 0, 1));
    }
    for node in 0..chain.nodes.len() {
        use hopcast_core::Machine as _;
        let mut line = format!("   n{node}:");
        chain.nodes[node].counters(&mut |name, figure| {
            if figure > 0 && !name.starts_with("rank_") {
                line += &format!(" {name} {figure}");
            }
        });
        println!("{line}");
    }
}

#[test]
#[ignore = "prints figures"]
fn measure_six_hops() {
    for delivery in [Delivery::Reliable, Delivery::DEADLINE] {
        let config = Config { delivery, ..Config::default() };
        for (percent, must, goal) in
            [(0.0, 278, 282), (5.0, 255, 264), (10.0, 238, 248), (15.0, 222, 233), (20.0, 206, 218)]
        {
            let mut chain = Chain::new(&config, &six_hops(&independent(percent)), 1);
            let (mbit, _) = saturate(&mut chain, UNIT, 300.0, Duration::from_secs(1), Duration::from_secs(5));
            println!("{delivery:?} {percent} %: {mbit:.1} (must {must}, goal {goal})");
        }
    }
}

fn throughput(name: &str, config: &Config, cables: &[Cable], mbit: f64, secs: u64) {
    let mut chain = Chain::new(config, cables, 1);
    let (got, share) =
        saturate(&mut chain, UNIT, mbit, Duration::from_secs(secs / 3), Duration::from_secs(secs));
    println!("{name}: {got:.1} Mbit/s, {:.3} % of what was offered", share * 100.0);
}

/// Three hops as of the latency study.
fn three_hops(percent: f64) -> Vec<Cable> {
    let mut cable = cable(200, Duration::from_millis(5), independent(percent), 1000);
    cable.forward.jitter = Jitter::Uniform(Duration::from_millis(1));
    cable.backward.jitter = Jitter::Uniform(Duration::from_millis(1));
    vec![cable; 3]
}

#[test]
#[ignore = "prints figures"]
fn measure_three_hops() {
    for delivery in [Delivery::Reliable, Delivery::DEADLINE] {
        let config = Config { delivery, ..Config::default() };
        throughput(
            &format!("three hops, 2 %, must 165, goal 182, {delivery:?}"),
            &config,
            &three_hops(2.0),
            200.0,
            9,
        );
    }
}

#[test]
#[ignore = "prints figures"]
fn measure_one_hop() {
    for (millis, must, goal) in [(10, 80, 84), (110, 76, 82)] {
        let cables = [cable(100, Duration::from_millis(millis), independent(10.0), 1000)];
        throughput(
            &format!("one hop, {millis} ms, 10 %, must {must}, goal {goal}"),
            &Config::default(),
            &cables,
            100.0,
            30,
        );
    }
}

#[test]
#[ignore = "prints figures"]
fn measure_bursts() {
    throughput("six hops, 10 %", &Config::default(), &six_hops(&independent(10.0)), 300.0, 6);
    throughput("six hops, 10 % in bursts of 8", &Config::default(), &six_hops(&bursts(10.0, 8.0)), 300.0, 6);
}

#[test]
#[ignore = "prints figures"]
fn measure_burst_hops() {
    for hops in [1, 2, 3, 6] {
        let cables = vec![cable(300, Duration::from_micros(20), bursts(10.0, 8.0), 64); hops];
        throughput(&format!("{hops} hops, 10 % in bursts of 8"), &Config::default(), &cables, 300.0, 3);
    }
    let mut cables = vec![cable(300, Duration::from_micros(20), bursts(10.0, 8.0), 64); 6];
    for cable in &mut cables {
        cable.backward.loss = Loss::None;
    }
    throughput("6 hops, 10 % in bursts of 8 forward only", &Config::default(), &cables, 300.0, 3);
}

#[test]
#[ignore = "prints figures"]
fn measure_reliability() {
    let config = Config { delivery: Delivery::DEADLINE, ..Config::default() };
    for mbit in [10.0, 100.0, 180.0] {
        throughput(
            &format!("BTP, six hops, 20 %, {mbit} Mbit/s"),
            &config,
            &six_hops(&independent(20.0)),
            mbit,
            6,
        );
    }
}

/// Messages of `size` bytes every 10 ms, echoed: the round trips in milliseconds, sorted, and the bytes on each
/// direction of each link for each message.
fn echo(config: &Config, cables: &[Cable], size: usize, count: usize) -> (Vec<f64>, f64) {
    let mut chain = Chain::new(config, cables, 7);
    let far = chain.last();
    let mut trips = Vec::new();
    let mut sent = Vec::new();
    let mut unit = vec![0; size];
    for number in 0..count + 300 {
        let end = Instant::ZERO + Duration::from_millis(10) * (number as u64 + 1);
        if number < count {
            unit[..8].copy_from_slice(&(number as u64).to_be_bytes());
            sent.push(chain.now);
            chain.give(0, &unit);
        }
        // Answers leave as the messages arrive.
        while let Some(at) = chain.next().filter(|&at| at <= end) {
            chain.run(at);
            for (at, edge, payload) in core::mem::take(&mut chain.arrived) {
                if edge == far {
                    chain.give(far, &payload);
                } else {
                    let id = u64::from_be_bytes(payload[..8].try_into().unwrap());
                    trips.push(at.since(sent[id as usize]).as_millis_f64());
                }
            }
        }
        chain.run(end);
    }
    let now = chain.now;
    let links = chain.links.len();
    use hopcast_link::Link as _;
    let bytes: u64 = (0..links)
        .map(|link| {
            [(0, 1), (1, 0)]
                .map(|(from, to)| chain.links[link].counters(now, from, to).sent_bytes)
                .iter()
                .sum::<u64>()
        })
        .sum();
    trips.sort_by(f64::total_cmp);
    (trips, bytes as f64 / (2 * links * count) as f64)
}

#[test]
#[ignore = "prints figures"]
fn measure_messages() {
    for percent in [0.0, 2.0] {
        for size in [1024, 128] {
            for delivery in [Delivery::Reliable, Delivery::DEADLINE] {
                let config = Config { delivery, ..Config::default() };
                let count = 20_000;
                let (trips, bytes) = echo(&config, &three_hops(percent), size, count);
                let quantile = |q: f64| trips[((trips.len() - 1) as f64 * q) as usize];
                println!(
                    "{percent} %, {size} B, {delivery:?}: {} of {count}; mean {:.2} p50 {:.1} p99 {:.1} p99.9 {:.1} max {:.1} ms; {:.2} x plain (goal 31 / 35 / 45, 2.5 x)",
                    trips.len(),
                    trips.iter().sum::<f64>() / trips.len() as f64,
                    quantile(0.5),
                    quantile(0.99),
                    quantile(0.999),
                    quantile(1.0),
                    bytes / (size + 42) as f64,
                );
                let over = |ms: f64| trips.iter().filter(|&&trip| trip > ms).count();
                println!(
                    "   over 35: {} 38: {} 42: {} 45: {} 50: {}",
                    over(35.0),
                    over(38.0),
                    over(42.0),
                    over(45.0),
                    over(50.0)
                );
            }
        }
    }
}
