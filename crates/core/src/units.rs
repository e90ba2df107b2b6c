//! Quantities with their units: [`Rate`], [`Bytes`], [`Fraction`], [`Dbm`] and [`Duration`], and how a person writes
//! them.
//!
//! A bare number is never a quantity: `5` may be percent, a fraction or packets, and tools that guess have cost
//! their users whole measurement campaigns. Each type says in its error what it would have accepted.

use core::fmt;
use core::str::FromStr;

use crate::decimal::write_decimal;
use crate::time::Duration;

/// A data rate in bits per second. 1 Mbit/s is 10^6 bit/s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Rate {
    /// A rate of `bits` bits per second.
    pub const fn from_bits_per_sec(bits: u64) -> Self {
        Self(bits)
    }

    /// A rate of `megabits` times 10^6 bit/s.
    pub const fn from_mbit(megabits: u64) -> Self {
        Self(megabits.saturating_mul(1_000_000))
    }

    /// Bits per second.
    pub const fn bits_per_sec(self) -> u64 {
        self.0
    }

    /// Megabits (10^6) per second, for figures.
    pub fn as_mbit(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The rate times a factor (a pacing gain, a share); negative and not-a-number give zero.
    pub fn mul_f64(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor).round() as u64)
    }

    /// Time that `bytes` take at this rate, rounded to the nearest nanosecond; for ever at a rate of zero.
    ///
    /// Back-to-back frames need [`Rate::time_with_carry`], which does not lose the fraction of a nanosecond.
    pub fn time_for(self, bytes: u64) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        let nanos = (u128::from(bytes) * 8_000_000_000 + u128::from(self.0) / 2) / u128::from(self.0);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Time that `bytes` take, rounded down, with the fraction kept in `carry` (in 1/rate nanoseconds) for the next
    /// frame: a long row of frames takes exactly its bits over the rate. For ever at a rate of zero.
    pub fn time_with_carry(self, bytes: u64, carry: &mut u64) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        // The carry may stem from a higher rate before a change; it is less than a nanosecond either way.
        let carried = (*carry).min(self.0 - 1);
        // Frames are far smaller than 2 GB, so this fits 64 bits and spares the hot path a 128-bit division.
        let numerator = match bytes.checked_mul(8_000_000_000).and_then(|n| n.checked_add(carried)) {
            Some(numerator) => numerator,
            None => return self.time_for(bytes),
        };
        *carry = numerator % self.0;
        Duration::from_nanos(numerator / self.0)
    }
}

/// A number of bytes. 1 kB is 1,000 bytes, 1 KiB is 1,024.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

impl Bytes {
    /// `bytes` bytes.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// The number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// A share of a whole, from 0 to 1: a loss rate, a probability. Written as a percentage.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Fraction(f64);

impl Fraction {
    /// None of it.
    pub const ZERO: Self = Self(0.0);
    /// All of it.
    pub const ONE: Self = Self(1.0);

    /// The fraction `share`, or `None` unless 0 <= share <= 1.
    pub fn new(share: f64) -> Option<Self> {
        (0.0..=1.0).contains(&share).then_some(Self(share))
    }

    /// `percent` hundredths, or `None` unless 0 <= percent <= 100.
    pub fn from_percent(percent: f64) -> Option<Self> {
        Self::new(percent / 100.0)
    }

    /// The share, 0 to 1.
    pub const fn get(self) -> f64 {
        self.0
    }

    /// The rest of the whole.
    pub fn complement(self) -> Self {
        Self(1.0 - self.0)
    }
}

/// Power of a signal relative to 1 mW, in steps of 0.01 dB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dbm(i16);

impl Dbm {
    /// The power `dbm`, rounded to the nearest step and limited to 327 dBm either side of 0; not-a-number is 0 dBm.
    pub fn new(dbm: f64) -> Self {
        Self((dbm * 100.0).round() as i16)
    }

    /// The power in dBm.
    pub fn get(self) -> f64 {
        f64::from(self.0) / 100.0
    }
}

/// A text is not the quantity that was asked for; prints as `expected …, for example …`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuantityError {
    message: String,
}

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for QuantityError {}

/// A kind of quantity: its units by name, and how to speak of it.
struct Kind {
    name: &'static str,
    example: &'static str,
    /// The units to suggest for a bare number.
    usual_units: &'static [&'static str],
    units: &'static [(&'static str, f64)],
}

const RATE: Kind = Kind {
    name: "a rate",
    example: "300 Mbit/s",
    usual_units: &["Mbit/s"],
    units: &[("bit/s", 1.0), ("kbit/s", 1e3), ("Mbit/s", 1e6), ("Gbit/s", 1e9), ("Tbit/s", 1e12)],
};

const BYTES: Kind = Kind {
    name: "a size",
    example: "1472 B",
    usual_units: &["B"],
    units: &[
        ("B", 1.0),
        ("kB", 1e3),
        ("MB", 1e6),
        ("GB", 1e9),
        ("KiB", 1024.0),
        ("MiB", 1_048_576.0),
        ("GiB", 1_073_741_824.0),
    ],
};

const FRACTION: Kind =
    Kind { name: "a share", example: "5 %", usual_units: &["%"], units: &[("%", 0.01), ("ppm", 1e-6)] };

const DURATION: Kind = Kind {
    name: "a duration",
    example: "500 us",
    usual_units: &["ms", "s"],
    units: &[("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 6e10), ("h", 3.6e12)],
};

impl Kind {
    /// The value of `text` in the kind's base unit; finite and not negative.
    fn parse(&self, text: &str) -> Result<f64, QuantityError> {
        let text = text.trim();
        let end = text
            .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '_' | '+' | '-')))
            .unwrap_or(text.len());
        // `1e3 bit/s`: an exponent belongs to the number when a digit follows it.
        let end = match text[end..].strip_prefix(['e', 'E']) {
            Some(rest) if end > 0 && rest.starts_with(|c: char| c.is_ascii_digit()) => {
                text.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len()
            }
            _ => end,
        };
        let (number, unit) = (&text[..end], text[end..].trim());
        let Ok(value) = number.replace('_', "").parse::<f64>() else {
            return Err(self.error(format_args!("found `{text}`")));
        };
        if unit.is_empty() {
            let Self { name, .. } = self;
            let suggestions: Vec<_> =
                self.readings(number, value).into_iter().map(|reading| format!("`{reading}`")).collect();
            return Err(QuantityError {
                message: format!(
                    "expected {name} with its unit, found the bare number `{text}`: write {} ({})",
                    suggestions.join(" or "),
                    self.unit_names()
                ),
            });
        }
        let Some(&(_, factor)) = self.units.iter().find(|(name, _)| *name == unit) else {
            if let Some(bytes) = self.bytes_per_second(unit).filter(|_| value >= 0.0) {
                let bits = |count: f64| Rate::from_bits_per_sec((count * bytes * 8.0).round() as u64);
                return Err(self.error(format_args!(
                    "found the unit `{unit}`: 1 {unit} is {}, write `{}`",
                    bits(1.0),
                    bits(value)
                )));
            }
            return Err(match self.nearest_unit(unit) {
                Some(nearest) => {
                    self.error(format_args!("found the unit `{unit}`: did you mean `{nearest}`?"))
                }
                None => self.error(format_args!("found the unit `{unit}`")),
            });
        };
        let value = value * factor;
        if value < 0.0 {
            return Err(self.error(format_args!("found `{text}`, which is negative")));
        }
        Ok(value)
    }

    /// The quantities that a bare number may stand for. A share of at most 1 is a fraction in some tools and a
    /// percentage in others.
    fn readings(&self, number: &str, value: f64) -> Vec<String> {
        let as_fraction = Fraction::new(value).filter(|_| self.usual_units == ["%"] && value > 0.0);
        let as_written = self.usual_units.iter().map(|unit| format!("{number} {unit}"));
        as_fraction.map(|share| share.to_string()).into_iter().chain(as_written).collect()
    }

    /// The bytes of a unit such as `MB/s`, if this is a rate; `Mb/s` is a usual spelling of `Mbit/s`.
    fn bytes_per_second(&self, unit: &str) -> Option<f64> {
        let of_bytes = ["B/s", "Byte/s", "Bytes/s", "byte/s", "bytes/s", "Bps"];
        let prefix = of_bytes
            .iter()
            .find_map(|suffix| unit.strip_suffix(suffix))
            .filter(|_| self.name == RATE.name)?;
        let unit = if prefix == "K" { "kB".to_owned() } else { format!("{prefix}B") };
        BYTES.units.iter().find(|(name, _)| *name == unit).map(|&(_, bytes)| bytes)
    }

    fn error(&self, found: fmt::Arguments<'_>) -> QuantityError {
        let Self { name, example, .. } = self;
        QuantityError {
            message: format!("expected {name} such as `{example}` ({}), {found}", self.unit_names()),
        }
    }

    fn unit_names(&self) -> String {
        let names: Vec<_> = self.units.iter().map(|(name, _)| *name).filter(|name| name.is_ascii()).collect();
        format!("units: {}", names.join(", "))
    }

    /// The unit that a slip of spelling most likely meant: the same letters in another case, or common other names.
    fn nearest_unit(&self, unit: &str) -> Option<&'static str> {
        let plain = unit.to_ascii_lowercase();
        let plain = match plain.as_str() {
            "bps" => "bit/s",
            "kbps" | "kbits" | "kb/s" | "kbit" => "kbit/s",
            "mbps" | "mbits" | "mb/s" | "mbit" => "mbit/s",
            "gbps" | "gbits" | "gb/s" | "gbit" => "gbit/s",
            "byte" | "bytes" => "b",
            "percent" | "pct" => "%",
            "sec" | "secs" | "second" | "seconds" => "s",
            "msec" | "millis" | "milliseconds" => "ms",
            "usec" | "micros" | "microseconds" => "us",
            "nsec" | "nanos" | "nanoseconds" => "ns",
            "m" | "mins" | "minute" | "minutes" => "min",
            "hour" | "hours" => "h",
            other => other,
        };
        self.units.iter().map(|(name, _)| *name).find(|name| name.to_ascii_lowercase() == plain)
    }
}

/// Maximum number that is read as a quantity: past 2^53 a float cannot represent every integer, and no quantity here is
/// that large.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

fn whole(kind: &Kind, text: &str, value: f64) -> Result<u64, QuantityError> {
    if value > MAX_EXACT {
        return Err(kind.error(format_args!("found `{text}`, which is past any bound")));
    }
    Ok(value.round() as u64)
}

impl FromStr for Rate {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let value = RATE.parse(text)?;
        whole(&RATE, text, value).map(Self)
    }
}

impl FromStr for Bytes {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let value = BYTES.parse(text)?;
        whole(&BYTES, text, value).map(Self)
    }
}

impl FromStr for Duration {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let value = DURATION.parse(text)?;
        whole(&DURATION, text, value).map(Self::from_nanos)
    }
}

impl FromStr for Fraction {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let share = FRACTION.parse(text)?;
        Self::new(share)
            .ok_or_else(|| FRACTION.error(format_args!("found `{}`, which is more than 100 %", text.trim())))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = match self.0 {
            n if n >= 1_000_000_000 => (1_000_000_000, "Gbit/s"),
            n if n >= 1_000_000 => (1_000_000, "Mbit/s"),
            n if n >= 1_000 => (1_000, "kbit/s"),
            _ => (1, "bit/s"),
        };
        write_decimal(f, self.0, unit)?;
        write!(f, " {name}")
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = match self.0 {
            n if n >= 1_048_576 && n.is_multiple_of(1_048_576) => (1_048_576, "MiB"),
            n if n >= 1_024 && n.is_multiple_of(1_024) => (1_024, "KiB"),
            n if n >= 1_000_000 => (1_000_000, "MB"),
            n if n >= 10_000 => (1_000, "kB"),
            _ => (1, "B"),
        };
        write_decimal(f, self.0, unit)?;
        write!(f, " {name}")
    }
}

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Nine decimals take the noise off `0.07 * 100` and keep a part per billion.
        let percent = format!("{:.9}", self.0 * 100.0);
        let percent = percent.trim_end_matches('0').trim_end_matches('.');
        write!(f, "{percent} %")
    }
}

impl fmt::Display for Dbm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} dBm", self.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_bare_number_is_told_what_to_write() {
        let error = "5".parse::<Fraction>().unwrap_err().to_string();
        assert!(error.contains("bare number `5`") && error.contains("write `5 %`"), "{error}");
    }

    #[test]
    fn a_bare_share_of_at_most_one_is_offered_in_both_readings() {
        let told = |text: &str| text.parse::<Fraction>().unwrap_err().to_string();
        assert!(told("0.05").contains("write `5 %` or `0.05 %` ("), "{}", told("0.05"));
        assert!(told("1").contains("write `100 %` or `1 %` ("), "{}", told("1"));
        assert!(told("0").contains("write `0 %` ("), "{}", told("0"));
        assert!(told("1.5").contains("write `1.5 %` ("), "{}", told("1.5"));
        assert!(!"0.5".parse::<Duration>().unwrap_err().to_string().contains('%'));
    }

    #[test]
    fn bytes_a_second_are_converted_to_bits() {
        let told = |text: &str| text.parse::<Rate>().unwrap_err().to_string();
        for (text, expected) in [
            ("10 MB/s", "the unit `MB/s`: 1 MB/s is 8 Mbit/s, write `80 Mbit/s`"),
            ("1.5 KB/s", "1 KB/s is 8 kbit/s, write `12 kbit/s`"),
            ("2 MiB/s", "1 MiB/s is 8.388608 Mbit/s, write `16.777216 Mbit/s`"),
            ("1 GBps", "1 GBps is 8 Gbit/s, write `8 Gbit/s`"),
            ("500 B/s", "1 B/s is 8 bit/s, write `4 kbit/s`"),
            ("10 Mb/s", "did you mean `Mbit/s`?"),
            ("10 mb/s", "did you mean `Mbit/s`?"),
        ] {
            assert!(told(text).ends_with(expected), "{}", told(text));
        }
        assert!(!"10 MB/s".parse::<Bytes>().unwrap_err().to_string().contains("bit"));
    }

    #[test]
    fn a_wrong_unit_names_the_nearest_right_one() {
        let error = "300 Mbps".parse::<Rate>().unwrap_err().to_string();
        assert!(error.contains("did you mean `Mbit/s`?"), "{error}");
        let error = "5 sec".parse::<Duration>().unwrap_err().to_string();
        assert!(error.contains("did you mean `s`?"), "{error}");
    }

    #[test]
    fn a_share_above_the_whole_is_refused() {
        assert!("101 %".parse::<Fraction>().unwrap_err().to_string().contains("more than 100 %"));
        assert!("nan %".parse::<Fraction>().is_err());
        assert!("-1 %".parse::<Fraction>().unwrap_err().to_string().contains("negative"));
    }

    #[test]
    fn a_number_past_any_bound_is_refused() {
        assert!("1e300 s".parse::<Duration>().unwrap_err().to_string().contains("past any bound"));
        assert!("99999999999 Tbit/s".parse::<Rate>().is_err());
    }

    #[test]
    fn quantities_read_as_people_write_them() {
        assert_eq!("300 Mbit/s".parse(), Ok(Rate::from_mbit(300)));
        assert_eq!("300Mbit/s".parse(), Ok(Rate::from_mbit(300)));
        assert_eq!("1_472 B".parse(), Ok(Bytes::new(1472)));
        assert_eq!("64 KiB".parse(), Ok(Bytes::new(65536)));
        assert_eq!("0.5ms".parse(), Ok(Duration::from_micros(500)));
        assert_eq!("1e3 bit/s".parse(), Ok(Rate::from_bits_per_sec(1000)));
        assert_eq!("2 %".parse(), Ok(Fraction::new(0.02).unwrap()));
    }

    #[test]
    fn a_power_is_kept_to_a_hundredth_of_a_decibel() {
        assert_eq!(Dbm::new(-82.506).get(), -82.51);
        assert_eq!(Dbm::new(-82.5).to_string(), "-82.5 dBm");
        assert!(Dbm::new(-90.0) < Dbm::new(-89.99));
        assert_eq!((Dbm::new(-1e9), Dbm::new(f64::NAN)), (Dbm(i16::MIN), Dbm::default()));
    }

    #[test]
    fn back_to_back_frames_take_exactly_their_bits_over_the_rate() {
        let rate = Rate::from_mbit(300);
        let mut carry = 0;
        let mut total = Duration::ZERO;
        for _ in 0..300_000 {
            total += rate.time_with_carry(1514, &mut carry);
        }
        assert_eq!(total, rate.time_for(1514 * 300_000));
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(bits in 0..(1u64 << 53)) {
            let rate = Rate::from_bits_per_sec(bits);
            let again: Rate = rate.to_string().parse().unwrap();
            // The printed decimal is exact; reading it back goes through a float.
            prop_assert!(again.bits_per_sec().abs_diff(bits) <= 1 + (bits >> 52));
        }

        #[test]
        fn no_text_panics(text in ".*") {
            let _ = text.parse::<Rate>();
            let _ = text.parse::<Bytes>();
            let _ = text.parse::<Duration>();
            let _ = text.parse::<Fraction>();
        }
    }
}
