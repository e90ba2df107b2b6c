//! Times of day as files write them.

use hopcast_core::{Duration, Instant};

/// Nanoseconds since 1970 in UTC, without leap seconds.
pub(super) type Utc = i64;

const SECOND: i64 = 1_000_000_000;

/// Forms of a time, for errors.
pub(super) const FORMS: &str =
    "a time in UTC like `2024-05-31T23:59:59Z`, `31/05/2024 23:59:59`, or in seconds since 1970";

/// The time that `text` is, from 1900 to 2199: ISO 8601 with an offset or none, which is UTC; day, month and year with
/// slashes; or seconds since 1970.
pub(super) fn parse(text: &str) -> Option<Utc> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return of_seconds(seconds);
    }
    let (date, time) = text.split_once(['T', 't', ' '])?;
    let (year, month, day) = match date.split_once('/') {
        Some((day, rest)) => {
            let (month, year) = rest.split_once('/')?;
            (year, month, day)
        }
        None => {
            let (year, rest) = date.split_once('-')?;
            let (month, day) = rest.split_once('-')?;
            (year, month, day)
        }
    };
    let days = days(digits(year, 4)?, digits(month, 2)?, digits(day, 2)?)?;
    let (clock, offset) = split_offset(time.trim_start())?;
    let (hour, rest) = clock.split_once(':')?;
    let (minute, second) = rest.split_once(':')?;
    let (second, fraction) = second.split_once('.').unwrap_or((second, ""));
    let (hour, minute, second) = (digits(hour, 2)?, digits(minute, 2)?, digits(second, 2)?);
    // A leap second is the first of the next minute.
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let seconds = (days * 24 + hour) * 3600 + minute * 60 + second - offset;
    Some(seconds * SECOND + nanoseconds(fraction)?)
}

/// The time of a number of seconds since 1970, in the years 1900 to 2199.
pub(super) fn of_seconds(seconds: f64) -> Option<Utc> {
    let first = days(1900, 1, 1)? as f64 * 86_400.0;
    let last = (days(2199, 12, 31)? + 1) as f64 * 86_400.0;
    (first..last).contains(&seconds).then(|| (seconds * 1e9).round() as i64)
}

/// The time of the run at `at`, if it begins at `zero`.
pub(super) fn since(zero: Utc, at: Utc) -> Instant {
    Instant::ZERO + Duration::from_nanos(u64::try_from(i128::from(at) - i128::from(zero)).unwrap_or(0))
}

/// The clock, and the offset from UTC in seconds.
fn split_offset(time: &str) -> Option<(&str, i64)> {
    if let Some(clock) = time.strip_suffix(['Z', 'z']) {
        return Some((clock, 0));
    }
    let Some(at) = time.rfind(['+', '-']) else { return Some((time, 0)) };
    let (clock, offset) = time.split_at(at);
    let (sign, offset) = (if offset.starts_with('-') { -1 } else { 1 }, &offset[1..]);
    let (hours, minutes) = match offset.split_once(':') {
        Some(parts) => parts,
        None => (offset.get(..2)?, offset.get(2..)?),
    };
    let (hours, minutes) = (digits(hours, 2)?, digits(minutes, 2)?);
    (hours <= 24 && minutes <= 59).then_some((clock, sign * (hours * 3600 + minutes * 60)))
}

/// A number of exactly `count` digits.
fn digits(text: &str, count: usize) -> Option<i64> {
    let all = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    if all { text.parse().ok() } else { None }
}

fn nanoseconds(fraction: &str) -> Option<i64> {
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits = fraction.bytes().chain([b'0'; 9]).take(9);
    Some(digits.fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0')))
}

/// Days from 1970 to a date from 1900 to 2199.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let february = if leap(year) { 29 } else { 28 };
    let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let month = usize::try_from(month).ok()?.checked_sub(1)?;
    let valid = (1900..2200).contains(&year) && (1..=*months.get(month)?).contains(&day);
    // Leap years before a year, since the year 0 of this calendar.
    let leaps = |year: i64| (year - 1) / 4 - (year - 1) / 100 + (year - 1) / 400;
    let years = (year - 1970) * 365 + leaps(year) - leaps(1970);
    valid.then(|| years + months[..month].iter().sum::<i64>() + day - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_date() {
        // `date -u -d … +%s`
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29 12:00:00", 951_825_600),
            ("31/12/2024 23:59:59", 1_735_689_599),
            ("2024-12-31T23:59:60Z", 1_735_689_600),
            ("2100-03-01T00:00:00+01:30", 4_107_537_000),
            ("1969-12-31T23:59:59", -1),
            ("1567684904", 1_567_684_904),
            ("2199-12-31T23:59:59", 7_258_118_399),
        ] {
            assert_eq!(parse(text), Some(seconds * SECOND), "{text}");
        }
        // The last second, in either form; as a number it is rounded to a microsecond.
        assert!(parse("7258118399").is_some_and(|at| (at - 7_258_118_399 * SECOND).abs() < 1_000));
        assert_eq!(parse("1970-01-01T00:00:00.25Z"), Some(SECOND / 4));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "T",
            "2023-02-29T00:00:00",
            "2023-13-01T00:00:00",
            "2023-1-1T00:00:00",
            "1899-12-31T00:00:00",
            "NaN",
            "2023-01-01T24:00:00",
            "2023-01-01T00:60:00",
            "2023-01-01",
            "1e300",
            "7258118400",
            "2200-01-01T00:00:00",
            "2023-01-01T00:00:00.x",
            "é-é-éTé:é:é+é",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
