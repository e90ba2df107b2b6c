//! Round trips, group sizes, rates and losses in a few bits (RFC 5740, sections 4.2.1, 4.2.3.4 and 4.3.1; RFC 5401,
//! section 3.7.4).

use hopcast_core::Duration;

/// Maximum round trip, in seconds (RFC 5740, section 4.2.1: RTT_MAX).
const MAX_RTT: f64 = 1000.0;
/// Round trips below this number are whole microseconds, one more than it.
const MICROSECONDS: u8 = 31;

/// A round trip of 1 us to 1000 s.
pub fn rtt(quantised: u8) -> Duration {
    if quantised < MICROSECONDS {
        return Duration::from_micros(u64::from(quantised) + 1);
    }
    Duration::from_secs_f64(MAX_RTT / (f64::from(u8::MAX - quantised) / 13.0).exp())
}

/// The smallest that is not below `rtt`; the greatest if all are.
pub fn from_rtt(rtt: Duration) -> u8 {
    let first_not_below = |from: u8, to: u8| (from..to).find(|&number| self::rtt(number) >= rtt);
    // The formula is exact but for the rounding of logarithms, so that its neighbours are looked at too.
    let seconds = rtt.as_secs_f64().max(1e-6);
    let near = (255.0 - 13.0 * (MAX_RTT / seconds).ln()).clamp(0.0, 255.0) as u8;
    if near <= MICROSECONDS + 1 {
        return first_not_below(0, MICROSECONDS + 3).unwrap_or(MICROSECONDS + 3);
    }
    first_not_below(near - 1, near.saturating_add(2)).unwrap_or(u8::MAX)
}

/// Number of receivers, 10 to 500 million.
pub const fn group_size(quantised: u8) -> u32 {
    let mantissa = if quantised & 8 == 0 { 1 } else { 5 };
    mantissa * 10_u32.pow((quantised & 7) as u32 + 1)
}

/// The smallest that is not below `size`; the greatest if all are.
pub fn from_group_size(size: u32) -> u8 {
    (0..8)
        .flat_map(|exponent| [exponent, exponent | 8])
        .find(|&number| group_size(number) >= size)
        .unwrap_or(15)
}

/// A rate in bytes per second, to three digits: 12 bits of mantissa in units of 10/4096, and 4 of a power of ten.
pub fn rate(quantised: u16) -> f64 {
    f64::from(quantised >> 4) * (10.0 / 4096.0) * 10_f64.powi(i32::from(quantised & 0xF))
}

/// The nearest to a rate in bytes per second.
pub fn from_rate(bytes_per_second: f64) -> u16 {
    // Not a number is no rate either.
    if bytes_per_second.is_nan() || bytes_per_second <= 0.0 {
        return 0;
    }
    let mut exponent = bytes_per_second.log10().floor().clamp(0.0, 15.0) as u16;
    let mantissa = |exponent: u16| (4096.0 / 10.0 * bytes_per_second / 10_f64.powi(exponent.into())).round();
    // Rounding can reach 10 times the power of ten, which is the next power.
    if mantissa(exponent) > 4095.0 && exponent < 15 {
        exponent += 1;
    }
    (mantissa(exponent).min(4095.0) as u16) << 4 | exponent
}

/// A fraction of packets that are lost, 0 to 1.
pub fn loss(quantised: u32) -> f64 {
    f64::from(quantised) / f64::from(u32::MAX)
}

/// The nearest to a fraction of packets that are lost.
pub fn from_loss(fraction: f64) -> u32 {
    (fraction.clamp(0.0, 1.0) * f64::from(u32::MAX)).round() as u32
}
