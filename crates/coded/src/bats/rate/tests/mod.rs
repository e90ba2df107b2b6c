//! Senders over links that lose packets, whose queues are short or long, and which others use too.

mod arrivals;
mod bounds;
mod cycle;
mod estimates;
mod net;
mod random_loss;
mod window;

use hopcast_core::{Duration, Fraction, Instant, Rate};
use hopcast_link::Change;
use hopcast_link::config::{Direction, Jitter, Loss};
use hopcast_peers::tcp::Congestion;

use net::{Load, Net, link, ms};

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

/// A hop of the six-hop study: hardly any delay, and a short queue.
fn short() -> Direction {
    link(300, Duration::from_micros(20), 64)
}

/// A hop of the latency study.
fn jittery() -> Direction {
    Direction { jitter: Jitter::Uniform(ms(1)), ..link(200, ms(5), 1000) }
}

/// The share of the link's time that one sender uses after `warm`, and the share of packets that the queue drops.
fn fill(direction: &Direction, warm: Duration, span: Duration) -> (f64, f64) {
    let rate = direction.rate.unwrap().as_mbit();
    let mut net = Net::new(1, 1, direction.clone());
    net.run_for(warm);
    let before = net.link_counters();
    net.run_for(span);
    let after = net.link_counters();
    let mbit = (after.0 - before.0) as f64 * 8.0 / span.as_secs_f64() / 1e6;
    (mbit / rate, (after.1 - before.1) as f64 / (after.2 - before.2) as f64)
}

/// Jain's index of fairness: 1 if all have the same, 1/n if one has all.
fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    sum * sum / (shares.len() as f64 * shares.iter().map(|x| x * x).sum::<f64>())
}

#[test]
fn a_short_queue_is_filled_and_not_overrun_whatever_the_link_loses() {
    for direction in [short(), lossy(short(), 5.0), lossy(short(), 10.0), lossy(short(), 20.0)] {
        let (used, dropped) = fill(&direction, ms(200), ms(1000));
        assert!(used > 0.98 && dropped < 0.005, "{:?}: {used:.3} used, {dropped:.4} dropped", direction.loss);
    }
    let (used, dropped) = fill(&bursty(short(), 10.0), ms(200), ms(1000));
    assert!(used > 0.93 && dropped < 0.01, "in bursts: {used:.3} used, {dropped:.4} dropped");
}

#[test]
fn jitter_is_not_taken_for_a_queue() {
    for percent in [0.0, 2.0, 10.0] {
        let (used, dropped) = fill(&lossy(jittery(), percent), ms(1000), ms(3000));
        assert!(used > 0.93 && dropped < 0.005, "{percent} %: {used:.3} used, {dropped:.4} dropped");
    }
}

#[test]
fn who_is_woken_late_does_not_take_the_link_for_faster_than_it_is() {
    let mut net = Net::new(1, 1, link(50, Duration::from_micros(500), 100)).woken_every(ms(1), ms(2));
    net.run_for(ms(500));
    for _ in 0..200 {
        net.run_for(ms(10));
        let believed = net.flows[0].rate.rate().as_mbit();
        // A sample of 16 ms may be off by 1 ms.
        assert!((48.0..54.0).contains(&believed), "{believed:.1} of 50 Mbit/s believed");
    }
}

#[test]
fn a_long_link_is_full_within_three_seconds() {
    for (queue, percent) in [(64, 0.0), (1000, 0.0), (1000, 10.0)] {
        let direction = lossy(link(100, ms(110), queue), percent);
        let (used, dropped) = fill(&direction, ms(3000), ms(10_000));
        let what = format!("queue {queue}, {percent} %");
        assert!(used > 0.9 && dropped < 0.03, "{what}: {used:.3} used, {dropped:.4} dropped");
    }
}

#[test]
fn the_rate_follows_the_link_within_two_seconds() {
    for direction in [short(), link(200, ms(5), 1000), link(100, ms(20), 64)] {
        let mut net = Net::new(2, 1, lossy(direction.clone(), 5.0));
        let mbit = direction.rate.unwrap().as_mbit();
        net.run_for(ms(4000));
        for factor in [0.5, 1.0] {
            net.change(&Change::Rate(Some(Rate::from_bits_per_sec((factor * mbit * 1e6) as u64))));
            net.run_for(ms(2000));
            let goodput = net.goodputs(ms(1000))[0];
            let bound = factor * mbit * 0.95;
            assert!(goodput > 0.9 * bound, "{goodput:.1} of {bound:.1} Mbit/s, {:?}", direction.delay);
            let rtt = net.flows[0].rate.srtt().unwrap();
            assert!(rtt < direction.delay * 2 + ms(20), "a queue stands: {rtt:?}");
        }
    }
}

#[test]
fn a_link_that_is_gone_is_asked_ever_more_seldom_and_found_soon_after_it_returns() {
    // One after the other, on one link: that it was gone is no burst of losses.
    let mut net = Net::new(5, 1, link(50, ms(1), 64));
    for absence in [200, 20, 2] {
        net.run_for(ms(1000));
        net.change(&Change::Loss(Loss::Independent(Fraction::ONE)));
        net.run_for(ms(100));
        let before = net.link_counters().2;
        net.run_for(Duration::from_secs(absence));
        let probes = net.link_counters().2 - before;
        // Until it is gone, then 64 probes in each multiple by e of the time until then, and five a second in the end;
        // each of as many packets as the last burst was long, 16 at most.
        assert!(probes < 512 + 20 * 16 + 16 * (64 * 3 + 5 * absence), "{probes} probes in {absence} s");
        net.change(&Change::Loss(Loss::None));
        let carried = net.goodputs(ms(300))[0];
        assert!(carried > 10.0, "{carried} Mbit/s in the 300 ms after {absence} s");
    }
}

#[test]
fn a_burst_of_losses_is_probed_through_however_many_packets_it_takes() {
    let mut net = Net::new(5, 1, short());
    net.run_for(ms(1000));
    net.change(&Change::Loss(Loss::Independent(Fraction::ONE)));
    let before = net.link_counters().2;
    net.run_for(ms(500));
    let probes = net.link_counters().2 - before;
    assert!(probes > 500, "{probes} packets in 500 ms");
}

#[test]
fn a_trickle_is_neither_taken_for_the_link_nor_held_back() {
    let mut net = Net::new(6, 1, jittery());
    net.flows[0].load = Load::Every(ms(10));
    net.run_for(ms(5000));
    let rate = &net.flows[0].rate;
    // Ten packets in a round trip may leave at any time (RFC 6928): one at most every millisecond.
    let soon = net.now + ms(2);
    assert!(rate.next_send().is_some_and(|at| at < soon), "{:?} at {:?}", rate.next_send(), net.now);
}

#[test]
fn two_and_ten_senders_get_the_same() {
    for count in [2, 10] {
        for direction in
            [short(), lossy(short(), 10.0), link(200, ms(5), 1000), jittery(), link(100, ms(20), 64)]
        {
            let mut net = Net::new(3, count, direction.clone());
            for (i, flow) in net.flows.iter_mut().enumerate() {
                flow.begins = Instant::ZERO + ms(100 * i as u64);
            }
            net.run_for(ms(5000));
            let shares = net.goodputs(ms(10_000));
            // Ten fill a queue of 64 packets by what each must have in flight: there it is luck whose are dropped.
            let min = if count == 10 && direction.delay < ms(1) { 0.5 } else { 0.95 };
            let what = format!("{count} over {:?}, {:?}", direction.delay, direction.loss);
            assert!(jain(&shares) > min, "{what}: {:.3} {shares:.1?}", jain(&shares));
        }
    }
}

/// Rate that a TCP keeps beside one of ours, and beside a BBR, that begins a second after it.
fn beside(seed: u64, congestion: Congestion, direction: &Direction) -> [f64; 2] {
    let mut net = Net::new(seed, 1, direction.clone()).with_rival(congestion);
    net.flows[0].begins = Instant::ZERO + ms(1000);
    net.run_for(ms(5000));
    let ours = net.goodputs(ms(25_000))[1];
    let mut net = Net::new(seed, 0, direction.clone()).with_rival(congestion);
    net.run_for(ms(1000));
    let mut net = net.with_rival(Congestion::Bbr);
    net.run_for(ms(4000));
    [ours, net.goodputs(ms(25_000))[0]]
}

#[test]
fn a_tcp_keeps_at_least_what_a_bbr_would_leave_it() {
    for direction in [link(100, ms(10), 100), link(100, ms(10), 1000), link(50, ms(50), 400), short()] {
        for congestion in [Congestion::Cubic, Congestion::Bbr] {
            // With 0.6 of a bandwidth-delay product to queue in, it depends on when who probes.
            let shallow = congestion == Congestion::Cubic && direction == link(100, ms(10), 100);
            for seed in if shallow { 1..=4 } else { 4..=4 } {
                let [ours, bbr] = beside(seed, congestion, &direction);
                let what = format!("{congestion:?} over {:?}, {:?}", direction.delay, direction.queue);
                assert!(
                    ours > 0.9 * bbr,
                    "{what}: it keeps {ours:.1} Mbit/s beside ours, {bbr:.1} beside BBR"
                );
            }
        }
    }
}

#[test]
fn of_an_overflow_only_what_the_queue_dropped_counts_as_not_passed() {
    let mut rate =
        super::LinkRate::new(super::Config::default(), hopcast_core::Seed::new(1, 0).stream(&["rate"], 0));
    // The link itself loses a tenth.
    for _ in 0..100 {
        let eased = super::Interval { packets: 100, lost: 10, eased: 1.0, pressed: 0.0 };
        rate.random_loss.on_packets(&eased, 1.0);
    }
    let loss = rate.random_loss.get();
    assert!((loss - 0.1).abs() < 0.005, "{loss}");
    let sent = |packets: u64| super::Sent {
        at: Instant::ZERO,
        bytes: packets * 1042,
        limited: 0,
        eased: 0,
        pressed: 0,
    };
    let report = |packets: u64, received: u64| super::HopReport {
        highest: packets,
        arrival_ns: 0,
        hold: Duration::ZERO,
        received_packets: received,
        received_bytes: received * 1000,
        mean_burst: 1.0,
    };
    rate.last = Some(super::Last { report: report(0, 0), sent: sent(0), passed: 0.0, received: 0 });
    // What it explains has passed it, lost or not.
    assert_eq!(rate.count(&report(100, 90), &sent(100), ms(10)), (100.0 * 1042.0, 90 * 1042));
    // Half is lost: a queue drops, and what arrived is nine tenths of what has passed that.
    let (passed, received) = rate.count(&report(100, 50), &sent(100), ms(10));
    assert!(rate.random_loss.is_overflow(1.0));
    assert_eq!(received, 50 * 1042);
    let loss = rate.random_loss.get();
    assert!((passed / (50.0 * 1042.0 / (1.0 - loss)) - 1.0).abs() < 1e-9 && loss > 0.09, "{passed}, {loss}");
}
