use super::pacing::{initial_rate, rate_of};
use super::*;
use crate::tcp::congestion::testing::path_of;
use crate::tcp::rate::{DeliveryRate, RateSample};
use crate::tcp::window::Window;
use hopcast_core::Seed;

const RTT: Duration = Duration::from_millis(20);

fn bbr() -> Bbr {
    let mut bbr = Bbr::new(Instant::ZERO, Seed::new(1, 0).stream(&["bbr"], 0));
    bbr.min_rtt = Some(RTT);
    bbr
}

/// A bandwidth of `count` segments a round trip.
fn a_round_trip(count: u64) -> Bandwidth {
    count * BANDWIDTH_UNIT / RTT.as_micros()
}

#[test]
fn gains_are_those_of_the_mode() {
    let mut bbr = bbr();
    let mut gains = |mode| {
        bbr.mode = mode;
        bbr.update_gains();
        (bbr.pacing_gain, bbr.window_gain)
    };
    // In 256ths: 2/ln 2 = 2.885, and its inverse.
    assert_eq!(gains(Mode::Startup), (739, 739));
    assert_eq!(gains(Mode::Drain), (88, 739));
    assert_eq!(gains(Mode::ProbeBandwidth(0)), (320, 512));
    assert_eq!(gains(Mode::ProbeBandwidth(1)), (192, 512));
    for phase in 2..8 {
        assert_eq!(gains(Mode::ProbeBandwidth(phase)), (256, 512));
    }
    assert_eq!(gains(Mode::ProbeRtt), (256, 256));
}

#[test]
fn what_startup_has_queued_is_drained_before_it_probes() {
    let (mut bbr, mut window, mut rate) = (bbr(), Window::new(10), DeliveryRate::default());
    bbr.bandwidth.update_max(10, 0, a_round_trip(100));
    bbr.full.reached = true;
    let mut path = path_of(Instant::ZERO, &mut window, &mut rate, RTT);
    path.in_flight = 300;
    bbr.check_drain(&mut path);
    assert_eq!(bbr.mode, Mode::Drain);
    bbr.update_gains();
    // A product of 100 segments, rounded up, and three bursts of one; even.
    assert_eq!(path.window.threshold, 104);
    path.in_flight = 105;
    bbr.check_drain(&mut path);
    assert_eq!(bbr.mode, Mode::Drain);
    path.in_flight = 104;
    bbr.check_drain(&mut path);
    assert!(matches!(bbr.mode, Mode::ProbeBandwidth(_)));
}

#[test]
fn probing_begins_with_any_phase_but_the_draining_one() {
    let (mut bbr, mut window, mut rate) = (bbr(), Window::new(10), DeliveryRate::default());
    let path = path_of(Instant::ZERO, &mut window, &mut rate, RTT);
    let mut seen = [0; 8];
    for _ in 0..700 {
        bbr.probe_bandwidth(&path);
        let Mode::ProbeBandwidth(phase) = bbr.mode else { unreachable!() };
        seen[phase] += 1;
    }
    assert_eq!(seen[1], 0);
    assert!(seen.iter().filter(|&&count| count > 50).count() == 7, "{seen:?}");
}

#[test]
fn the_path_is_full_after_three_round_trips_that_grow_by_less_than_a_quarter() {
    let (mut bbr, mut window, mut rate) = (bbr(), Window::new(10), DeliveryRate::default());
    let mut path = path_of(Instant::ZERO, &mut window, &mut rate, RTT);
    let mut round = |bandwidth, app_limited| {
        let delivery = Some((bandwidth, RTT));
        let rate = RateSample { delivery, prior_delivered: Some(u64::MAX), app_limited };
        bbr.on_ack(&mut path, &Sample { rate, ..Sample::default() });
        (bbr.full.rounds, bbr.full.reached)
    };
    assert_eq!(round(100, false), (0, false));
    assert_eq!(round(124, false), (1, false));
    assert_eq!(round(126, false), (0, false));
    assert_eq!(round(150, false), (1, false));
    assert_eq!(round(150, true), (1, false), "what the application held back says nothing");
    assert_eq!(round(150, false), (2, false));
    assert_eq!(round(157, false), (3, true));
}

#[test]
fn products_and_rates_follow_the_bandwidth() {
    let (mut bbr, mut window, mut rate) = (bbr(), Window::new(10), DeliveryRate::default());
    assert_eq!(bbr.product(a_round_trip(100), UNIT), 100);
    assert_eq!(bbr.product(a_round_trip(100), WINDOW_GAIN), 200);
    bbr.min_rtt = None;
    assert_eq!(bbr.product(a_round_trip(100), UNIT), 10, "the first window");
    // 5,000 segments of 1,448 bytes a second, less one in a hundred.
    let found = rate_of(a_round_trip(100), 1448, UNIT);
    assert!((7_167_000..=7_167_600).contains(&found), "{found}");
    assert_eq!(initial_rate(100, RTT, 1448), rate_of(a_round_trip(100), 1448, HIGH_GAIN));
    bbr.pacing.rate = 1448 << 14;
    assert_eq!(bbr.pacing.burst(1448), 16, "what is sent in 2^-10 s");
    bbr.pacing.rate = 150_000;
    assert_eq!(bbr.pacing.burst(1448), 2);
    bbr.pacing.rate = 149_999;
    assert_eq!(bbr.pacing.burst(1448), 1, "below 1.2 Mbit/s one by one");
    let path = path_of(Instant::ZERO, &mut window, &mut rate, RTT);
    assert_eq!(bbr.with_quanta(&path, 100), 104);
    bbr.mode = Mode::ProbeBandwidth(0);
    assert_eq!(bbr.with_quanta(&path, 100), 106);
}

#[test]
fn the_first_round_trip_of_a_recovery_sends_what_is_delivered_and_its_end_restores_the_window() {
    let (mut bbr, mut window, mut rate) = (bbr(), Window::new(200), DeliveryRate::default());
    let mut path = path_of(Instant::ZERO, &mut window, &mut rate, RTT);
    bbr.threshold(&mut path);
    path.phase = Phase::Recovery;
    path.in_flight = 90;
    let sample = Sample { delivered: 3, lost: 5, ..Sample::default() };
    assert_eq!(bbr.recover_or_restore(&path, &sample), (93, true));
    path.window.size = 93;
    path.in_flight = 95;
    assert_eq!(bbr.recover_or_restore(&path, &sample), (98, true), "never less than in flight");
    bbr.conserving = false;
    assert_eq!(bbr.recover_or_restore(&path, &sample), (88, false), "less what is lost");
    path.phase = Phase::Open;
    assert_eq!(bbr.recover_or_restore(&path, &sample), (200, false));
}

/// A sample of `delivered` segments over a round trip, which ends one.
fn end_of_round(delivered: u64, app_limited: bool) -> Sample {
    let rate = RateSample { delivery: Some((delivered, RTT)), prior_delivered: Some(u64::MAX), app_limited };
    Sample { delivered: 1, rate, ..Sample::default() }
}

#[test]
fn what_the_application_did_not_fill_counts_only_if_it_is_more_than_was_known() {
    // Linux `bbr_update_bw`.
    let (mut bbr, mut window, mut rate) = (bbr(), Window::new(10), DeliveryRate::default());
    let path = path_of(Instant::ZERO, &mut window, &mut rate, RTT);
    let mut found = |delivered, app_limited, rounds| {
        for _ in 0..rounds {
            bbr.update_bandwidth(&path, &end_of_round(delivered, app_limited));
            assert!(bbr.round_start);
        }
        bbr.bandwidth.get()
    };
    assert_eq!(found(100, false, 1), a_round_trip(100));
    assert_eq!(found(50, true, 30), a_round_trip(100), "held back, and less");
    assert_eq!(found(120, true, 1), a_round_trip(120), "held back, and more all the same");
    assert_eq!(found(50, false, 10), a_round_trip(120), "a maximum stays for ten round trips");
    assert_eq!(found(50, false, 1), a_round_trip(50));
}

#[test]
fn after_ten_seconds_the_path_is_emptied_for_200_ms_and_a_round_trip() {
    // Linux `bbr_update_min_rtt`: bbr_min_rtt_win_sec, bbr_probe_rtt_mode_ms, bbr_cwnd_min_target.
    let at = |ms| Instant::ZERO + Duration::from_millis(ms);
    for full in [true, false] {
        let (mut bbr, mut window, mut rate) = (bbr(), Window::new(80), DeliveryRate::default());
        bbr.full.reached = full;
        bbr.mode = if full { Mode::ProbeBandwidth(2) } else { Mode::Startup };
        let before = bbr.mode;
        let mut step = |ms, in_flight, round_start, rtt| {
            bbr.round_start = round_start;
            let mut path = path_of(at(ms), &mut window, &mut rate, RTT);
            path.in_flight = in_flight;
            let rtt = Some(Duration::from_millis(rtt));
            bbr.update_min_rtt(&mut path, &Sample { rtt, ..Sample::default() });
            let found = (bbr.mode, bbr.min_rtt.unwrap().as_millis(), bbr.min_rtt_at);
            bbr.update_gains();
            let mut path = path_of(at(ms), &mut window, &mut rate, RTT);
            bbr.set_window(&mut path, &Sample::default(), 0);
            (found, window.size)
        };
        assert_eq!(step(10_000, 50, true, 25), ((before, 20, at(0)), 80));
        let emptying = (Mode::ProbeRtt, 25, at(10_001));
        assert_eq!(step(10_001, 50, true, 25), (emptying, 4));
        assert_eq!(step(10_020, 5, true, 30), (emptying, 4));
        assert_eq!(step(10_100, 4, true, 30), (emptying, 4), "the 200 ms begin");
        assert_eq!(step(10_301, 4, false, 30), (emptying, 4), "no round trip has ended");
        let ((mode, min_rtt, min_rtt_at), size) = step(10_302, 4, true, 30);
        assert_eq!((min_rtt, min_rtt_at, size), (25, at(10_302), 80), "the window is what it was");
        assert_eq!(matches!(mode, Mode::ProbeBandwidth(_)), full);
        assert_eq!(mode == Mode::Startup, !full);
    }
}

#[test]
fn emptying_the_path_takes_200_ms_even_where_round_trips_are_shorter() {
    let (mut bbr, mut window, mut rate) = (bbr(), Window::new(80), DeliveryRate::default());
    bbr.mode = Mode::ProbeRtt;
    let mut mode_at = |ms| {
        bbr.round_start = true;
        let now = Instant::ZERO + Duration::from_millis(ms);
        bbr.update_min_rtt(&mut path_of(now, &mut window, &mut rate, RTT), &Sample::default());
        bbr.mode
    };
    assert_eq!([0, 20, 199, 200].map(&mut mode_at), [Mode::ProbeRtt; 4]);
    assert_eq!(mode_at(201), Mode::Startup);
}

#[test]
fn the_pacing_rate_begins_with_a_nominal_millisecond_and_once_with_the_first_round_trip() {
    // Linux `bbr_init_pacing_rate_from_rtt` with its integers: 739/256 of ten segments of 1,448 bytes a round trip,
    // less one in a hundred.
    let (mut window, mut rate) = (Window::new(10), DeliveryRate::default());
    let mut bbr = Bbr::new(Instant::ZERO, Seed::new(1, 0).stream(&["bbr"], 0));
    let mut path = path_of(Instant::ZERO, &mut window, &mut rate, RTT);
    (path.smoothed_rtt, path.min_rtt) = (None, None);
    bbr.begin(&mut path);
    assert_eq!(bbr.pacing.rate, 41_381_651);
    bbr.pacing.update(&path, 0, HIGH_GAIN, bbr.full.reached);
    assert_eq!(bbr.pacing.rate, 41_381_651);
    path.smoothed_rtt = Some(RTT);
    bbr.pacing.update(&path, 0, HIGH_GAIN, bbr.full.reached);
    assert_eq!(bbr.pacing.rate, 2_068_934);
    path.smoothed_rtt = Some(RTT * 2);
    bbr.pacing.update(&path, 0, HIGH_GAIN, bbr.full.reached);
    assert_eq!(bbr.pacing.rate, 2_068_934, "only the first");
    // From then on it follows the bandwidth: only up until the path is full.
    bbr.pacing.update(&path, a_round_trip(100), UNIT, bbr.full.reached);
    assert_eq!(bbr.pacing.rate, 7_167_593);
    bbr.pacing.update(&path, a_round_trip(50), UNIT, bbr.full.reached);
    assert_eq!(bbr.pacing.rate, 7_167_593);
    bbr.full.reached = true;
    bbr.pacing.update(&path, a_round_trip(50), UNIT, bbr.full.reached);
    assert_eq!(bbr.pacing.rate, 3_583_796);
}

#[test]
fn the_window_to_return_to_is_the_last_one_or_while_it_is_held_down_the_largest() {
    // Linux `bbr_save_cwnd`.
    let saved = |phase, mode, size| {
        let (mut bbr, mut window, mut rate) = (bbr(), Window::new(size), DeliveryRate::default());
        (bbr.prior_window, bbr.prior_phase, bbr.mode) = (100, phase, mode);
        bbr.save_window(&path_of(Instant::ZERO, &mut window, &mut rate, RTT));
        bbr.prior_window
    };
    for phase in [Phase::Open, Phase::Disorder] {
        assert_eq!(saved(phase, Mode::Startup, 50), 50);
        assert_eq!(saved(phase, Mode::ProbeRtt, 50), 100);
    }
    for phase in [Phase::Recovery, Phase::Loss] {
        assert_eq!(saved(phase, Mode::Startup, 50), 100);
        assert_eq!(saved(phase, Mode::Startup, 150), 150);
    }
}

#[test]
fn a_phase_of_the_cycle_lasts_a_round_trip_but_a_probe_until_it_shows_and_a_drain_until_it_is_done() {
    // Linux `bbr_is_next_cycle_phase`.
    let ms = Duration::from_millis;
    let over = |gain, elapsed, in_flight, lost| {
        let (mut bbr, mut window, mut rate) = (bbr(), Window::new(80), DeliveryRate::default());
        bbr.bandwidth.update_max(10, 0, a_round_trip(100));
        bbr.pacing_gain = gain;
        bbr.mode = Mode::ProbeBandwidth(2);
        rate.delivered_at = Instant::ZERO + elapsed;
        let path = path_of(Instant::ZERO + elapsed, &mut window, &mut rate, RTT);
        bbr.phase_is_over(&path, &Sample { lost, prior_in_flight: in_flight, ..Sample::default() })
    };
    for in_flight in [0, 500] {
        assert!(!over(UNIT, ms(20), in_flight, 1));
        assert!(over(UNIT, ms(21), in_flight, 0));
    }
    // 125 segments and three bursts of one are 128, of which one is the burst that is about to leave.
    assert!(!over(UNIT * 5 / 4, ms(21), 126, 0));
    assert!(over(UNIT * 5 / 4, ms(21), 127, 0));
    assert!(over(UNIT * 5 / 4, ms(21), 0, 1), "or something is lost");
    assert!(!over(UNIT * 5 / 4, ms(20), 500, 1));
    // 100 segments and three bursts, even.
    assert!(!over(UNIT * 3 / 4, ms(5), 105, 0));
    assert!(over(UNIT * 3 / 4, ms(5), 104, 0));
    assert!(over(UNIT * 3 / 4, ms(21), 500, 0));
}

#[test]
fn a_burst_holds_what_fits_a_packet_at_most_and_is_larger_on_short_paths() {
    // Linux `bbr_tso_segs_goal` and `tcp_tso_autosize`: 65,535 - 320 bytes are 45 segments of 1,448.
    let mut bbr = bbr();
    let mut burst = |min_rtt_us, pacing_rate| {
        (bbr.min_rtt, bbr.pacing.rate) = (Some(Duration::from_micros(min_rtt_us)), pacing_rate);
        (bbr.pacing.burst(1448), bbr.pacing(1448).unwrap().1)
    };
    assert_eq!(burst(20_000, 1448 << 20), (45, 45));
    assert_eq!(burst(20_000, 1448 << 12), (4, 4));
    // At 1.1 ms a quarter of 65,215 bytes more, 11 segments.
    assert_eq!(burst(1_100, 1448 << 12), (4, 15));
}
