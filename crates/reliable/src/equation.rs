//! The throughput of TCP (RFC 5348, section 3.1).

use hopcast_core::Duration;

/// Bytes per second that a TCP sends at a loss event rate `loss`, with packets of `packet` bytes; unlimited without
/// loss. One packet per acknowledgement (b = 1), and a timeout of four round trips, as section 3.1 recommends.
pub fn tcp_rate(packet: f64, round_trip: Duration, loss: f64) -> f64 {
    if loss <= 0.0 {
        return f64::INFINITY;
    }
    let loss = loss.min(1.0);
    let round_trip = round_trip.as_secs_f64().max(1e-6);
    let fast = (2.0 * loss / 3.0).sqrt();
    let timeouts = 12.0 * (3.0 * loss / 8.0).sqrt() * loss * (1.0 + 32.0 * loss * loss);
    packet / (round_trip * (fast + timeouts))
}

/// The loss event rate at which a TCP has this rate: where loss began before there was an estimate (RFC 5348, section
/// 6.3.1).
pub fn loss_of(packet: f64, round_trip: Duration, rate: f64) -> f64 {
    let (mut low, mut high) = (1e-9_f64, 1.0_f64);
    // The rate falls as losses rise; 60 halvings leave less than a double tells apart.
    for _ in 0..60 {
        let middle = (low * high).sqrt();
        if tcp_rate(packet, round_trip, middle) > rate { low = middle } else { high = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_falls_with_loss_and_with_the_round_trip() {
        let ms = Duration::from_millis;
        let rate = tcp_rate(1460.0, ms(100), 0.01);
        // By hand: 1460 / (0.1 * (0.08165 + 12 * 0.06124 * 0.01 * 1.0032)) = 1460 / 0.0089022.
        assert!((rate - 164_004.0).abs() < 200.0, "{rate}");
        assert!((tcp_rate(1460.0, ms(200), 0.01) * 2.0 - rate).abs() < 1e-6);
        assert!(tcp_rate(1460.0, ms(100), 0.1) < rate / 3.0);
        assert_eq!(tcp_rate(1460.0, ms(100), 0.0), f64::INFINITY);
    }

    #[test]
    fn a_rate_says_the_loss_that_would_cause_it() {
        let ms = Duration::from_millis(50);
        for loss in [0.2, 0.01, 0.0001] {
            let found = loss_of(1460.0, ms, tcp_rate(1460.0, ms, loss));
            assert!((found / loss - 1.0).abs() < 1e-6, "{found} of {loss}");
        }
    }
}
