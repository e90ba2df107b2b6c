mod net;

use hopcast_core::{Duration, Fraction, Rate};
use hopcast_link::config::{Direction, Jitter, Loss};
use hopcast_link::Change;
use hopcast_peers::tcp::Congestion;

use net::{Net, link, ms};

fn lossy(direction: Direction, percent: f64) -> Direction {
    Direction { loss: Loss::Independent(Fraction::from_percent(percent).unwrap()), ..direction }
}

/// Gilbert-Elliott that loses `percent` in bursts of mean 8.
fn bursty(direction: Direction, percent: f64) -> Direction {
    let share = |x: f64| Fraction::new(x).unwrap();
    let (p, r) = (0.125 * percent / (100.0 - percent), 0.125);
    let loss = Loss::GilbertElliott { p: share(p), r: share(r), k: share(1.0), h: share(0.0) };
    Direction { loss, ..direction }
}

fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    sum * sum / (shares.len() as f64 * shares.iter().map(|x| x * x).sum::<f64>())
}

#[derive(Debug)]
struct Fill {
    /// Of the rate, counting what random loss took.
    use_: f64,
    dropped: (u64, f64),
    srtt: Duration,
    loss: f64,
    now: (f64, f64, f64, String),
}

fn fill(direction: Direction, warm: Duration, span: Duration) -> Fill {
    let rate = direction.rate.unwrap().as_mbit();
    let mut net = Net::new(1, 1, direction);
    net.run_for(warm);
    let before = net.link_counters();
    net.run_for(span);
    let after = net.link_counters();
    let sent = (after.0 - before.0) as f64 * 8.0 / span.as_secs_f64() / 1e6;
    Fill { use_: sent / rate, dropped: (before.1, (after.1-before.1) as f64 / (after.2-before.2) as f64), srtt: net.flows[0].rate.srtt().unwrap(), loss: net.flows[0].rate.loss(), now: (net.flows[0].rate.rate().as_mbit(), net.flows[0].rate.random_loss.get(), net.flows[0].rate.mean_burst(), format!("{:?} {:?} {:?}", net.flows[0].rate.mode(), net.flows[0].rate.delay, net.flows[0].rate.in_flight())) }
}

fn short() -> Direction {
    link(300, Duration::from_micros(20), 64)
}
fn jittery() -> Direction {
    Direction { jitter: Jitter::Uniform(ms(1)), ..link(200, ms(5), 1000) }
}
#[test]
#[ignore = "prints a table"]
fn the_table() {
    for loss in [0.0, 1.0, 5.0, 10.0, 20.0] {
        let f = fill(lossy(short(), loss), ms(200), ms(1000));
        println!("300M 20us {loss:4} %: {f:?}");
    }
    for loss in [1.0, 10.0, 20.0] {
        let f = fill(bursty(short(), loss), ms(200), ms(1000));
        println!("300M 20us GE {loss:4} %: {f:?}");
    }
    for loss in [0.0, 2.0, 10.0, 20.0] {
        let f = fill(lossy(jittery(), loss), ms(1000), ms(3000));
        println!("200M 5+-1ms {loss:4} %: {f:?}");
    }
    for queue in [64, 1000] {
        for loss in [0.0, 10.0, 20.0] {
            let f = fill(lossy(link(100, ms(110), queue), loss), ms(3000), ms(20000));
            println!("100M 110ms q{queue} {loss:4} %: {f:?}");
        }
    }
    for (mbit, delay, queue) in [(300, ms(0) + Duration::from_micros(500), 64), (100, ms(10), 1000), (100, ms(10), 64), (10, ms(20), 100)] {
        for loss in [0.0, 10.0] {
            let f = fill(lossy(link(mbit, delay, queue), loss), ms(1000), ms(5000));
            println!("{mbit}M {delay} q{queue} {loss:4} %: {f:?}");
        }
    }
    // Startup at 110 ms
    for loss in [0.0, 10.0] {
        let mut net = Net::new(2, 1, lossy(link(100, ms(110), 1000), loss));
        net.run_for(ms(220));
        let g: Vec<_> = (0..16).map(|_| net.goodputs(ms(220))[0].round()).collect();
        println!("startup {g:?}");
    }
    // rate changes
    for (mbit, delay, queue) in [(300, Duration::from_micros(20), 64), (200, ms(5), 1000), (100, ms(20), 64), (100, ms(110), 1000)] {
        let mut net = Net::new(2, 1, lossy(link(mbit, delay, queue), 5.0));
        net.run_for(ms(5000));
        net.change(&Change::Rate(Some(Rate::from_mbit(mbit / 2))));
        let g: Vec<_> = (0..16).map(|_| (net.flows[0].rate.rate().as_mbit().round(), net.goodputs(ms(250))[0].round(), net.flows[0].rate.srtt().unwrap().as_millis())).collect();
        println!("halved {mbit} {delay} {g:?}");
        net.change(&Change::Rate(Some(Rate::from_mbit(mbit))));
        let g: Vec<_> = (0..16).map(|_| (net.flows[0].rate.rate().as_mbit().round(), net.goodputs(ms(250))[0].round(), net.flows[0].rate.srtt().unwrap().as_millis())).collect();
        println!("doubled {mbit} {delay} {g:?}");
    }
}
#[test]
#[ignore]
fn fairness() {
    for n in [2, 10] {
        for direction in [short(), lossy(short(), 10.0), link(200, ms(5), 1000), jittery(), lossy(link(100, ms(20), 100), 5.0), link(100,ms(20),64)] {
            let mut net = Net::new(3, n, direction.clone());
            for (i, flow) in net.flows.iter_mut().enumerate() {
                flow.begins = flow.begins + ms(100 * i as u64);
            }
            net.run_for(ms(3000));
            let d0 = net.dropped();
            let c0 = net.link_counters();
            let g = net.goodputs(ms(5000));
            let c1 = net.link_counters();
            if n == 10 { for f in &net.flows { let r=&f.rate; println!("    10 flows {} {} rate {:.1} p {:.3} all {:.3} least {} srtt {} win {} infl {} {:?}", direction.rate.unwrap(), direction.delay, r.rate().as_mbit(), r.random_loss.get(), r.loss(), r.min_rtt().unwrap(), r.srtt().unwrap(), r.window()/1514, r.in_flight()/1514, r.mode()); } }
            println!(
                "{n} flows {} {} jain {:.3} use {:.3} dropped {:.4} {:?}",
                direction.rate.unwrap(),
                direction.delay,
                jain(&g),
                (c1.0 - c0.0) as f64 * 8.0 / 5.0 / direction.rate.unwrap().as_mbit() / 1e6,
                (net.dropped() - d0) as f64 / ((c1.2 - c0.2) as f64),
                g.iter().map(|x| x.round()).collect::<Vec<_>>()
            );
        }
    }
}
#[test]
#[ignore]
fn rivals() {
    for congestion in [Congestion::Cubic, Congestion::Bbr] {
        for direction in [short(), link(300, Duration::from_micros(20), 1000), link(100, ms(10), 100), link(100, ms(10), 1000), link(100,ms(10),30), link(50,ms(50),400)] {
            let mut net = Net::new(4, 1, direction.clone()).with_rival(congestion);
            net.flows[0].begins = hopcast_core::Instant::ZERO + ms(1000);
            net.run_for(ms(5000));
            let g = net.goodputs(ms(25000));
            let r = &net.flows[0].rate;
            println!("beside {congestion:?} {} {} {:?}    rate {:.1} p {:.3} all {:.3} least {} srtt {} {:?}", direction.rate.unwrap(), direction.delay, direction.queue, r.rate().as_mbit(), r.random_loss.get(), r.loss(), r.min_rtt().unwrap(), r.srtt().unwrap(), r.mode());
            let mut net = Net::new(4, 0, direction.clone()).with_rival(congestion);
            net.run_for(ms(1000));
            let mut net = net.with_rival(Congestion::Bbr);
            net.run_for(ms(4000));
            let b = net.goodputs(ms(25000));
            println!("beside {congestion:?} {} {} {:?}: ours, its {:?}; its, BBR {:?}", direction.rate.unwrap(), direction.delay, direction.queue, g.iter().map(|x| x.round()).collect::<Vec<_>>(), b.iter().map(|x| x.round()).collect::<Vec<_>>());
        }
    }
}
#[test]
#[ignore]
fn bbrs() {
    for n in [2, 10] {
        for direction in [short(), lossy(short(), 10.0), link(200, ms(5), 1000), jittery(), lossy(link(100, ms(20), 100), 5.0), link(100,ms(20),64)] {
            let mut net = Net::new(3, 0, direction.clone());
            for _ in 0..n.min(5) {
                net = net.with_rival(Congestion::Bbr);
                net.run_for(ms(100));
            }
            net.run_for(ms(3000));
            let c0 = net.link_counters();
            let g = net.goodputs(ms(5000));
            let c1 = net.link_counters();
            println!(
                "{n} BBR flows {} {} jain {:.3} dropped {:.4} {:?}",
                direction.rate.unwrap(),
                direction.delay,
                jain(&g),
                (c1.1 - c0.1) as f64 / ((c1.2 - c0.2) as f64),
                g.iter().map(|x| x.round()).collect::<Vec<_>>()
            );
        }
    }
}

#[test]
#[ignore]
fn trace() {
    let mut net = Net::new(1, 1, bursty(short(), 20.0));
    for _ in 0..60 {
        let g = net.goodputs(ms(5))[0];
        let r = &net.flows[0].rate;
        println!("{g:.0} rate {:.0} window {} inflight {} p {:.3} burst {:.1} timeout {} backoff {} {:?} srtt {}", r.rate().as_mbit(), r.window(), r.in_flight(), r.random_loss.get(), r.mean_burst(), r.probe_timeout(), r.backoff, r.mode(), r.srtt().unwrap());
    }
}
