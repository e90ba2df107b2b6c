//! Numbers for people: only significant digits.

/// Number of digits after the point for a number of this size.
fn decimals(value: f64) -> usize {
    let size = value.abs();
    if size >= 999.5 {
        0
    } else if size >= 9.95 {
        1
    } else if size >= 0.0995 {
        2
    } else {
        3
    }
}

/// A number with about three significant digits: 214.4, 3.14, 0.05.
pub(crate) fn number(value: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    if value.abs() < 0.0005 {
        return if value > 0.0 { "<0.001" } else { ">-0.001" }.into();
    }
    let text = format!("{value:.*}", decimals(value));
    if value.abs() < 0.0995 { text.trim_end_matches('0').into() } else { grouped(&text) }
}

/// A count: a whole number as it is, a mean as a [`number`].
pub(crate) fn count(value: f64) -> String {
    if value.fract() == 0.0 { plain(value) } else { number(value) }
}

/// A share in percent: 97.3. Only an exact 1 is shown as 100, and only an exact 0 as 0.
pub(crate) fn percent(share_times_100: f64) -> String {
    let value = share_times_100;
    if value > 99.95 && value < 100.0 {
        return if value >= 99.995 { ">99.99".into() } else { format!("{value:.2}") };
    }
    if value == 0.0 || value == 100.0 || value.abs() >= 9.95 {
        return grouped(&format!("{value:.1}"));
    }
    number(value)
}

/// Half the width of an interval, with the digits of the mean beside it; less than the last digit as `<0.1` and the
/// like.
pub(crate) fn interval(mean_text: &str, ci95: f64) -> String {
    let digits = mean_text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    if ci95 == 0.0 {
        return "0".into();
    }
    let text = format!("{ci95:.digits$}");
    if text.chars().all(|c| matches!(c, '0' | '.')) {
        return format!("<{:.digits$}", 10f64.powi(-(digits as i32)));
    }
    grouped(&text)
}

/// A tick or other exact number, without trailing zeros.
pub(crate) fn plain(value: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let text = format!("{value:.6}");
    grouped(text.trim_end_matches('0').trim_end_matches('.'))
}

/// Separates thousands: 12,345.
fn grouped(text: &str) -> String {
    let (sign, rest) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (whole, fraction) = rest.split_at(rest.find('.').unwrap_or(rest.len()));
    let mut out = String::from(sign);
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_numbers_keep_the_digits_that_say_something() {
        assert_eq!(number(0.05), "0.05");
        assert_eq!(number(0.0523), "0.052");
        assert_eq!(number(0.004), "0.004");
        assert_eq!(number(0.0), "0");
        assert_eq!(number(0.000_001), "<0.001");
    }

    #[test]
    fn large_numbers_lose_those_that_do_not() {
        assert_eq!(number(214.39), "214.4");
        assert_eq!(number(2.7123), "2.71");
        assert_eq!(number(12_345.6), "12,346");
        assert_eq!(number(999.7), "1,000");
    }

    #[test]
    fn not_quite_all_is_not_all() {
        assert_eq!(percent(100.0), "100.0");
        assert_eq!(percent(99.97), "99.97");
        assert_eq!(percent(99.9999), ">99.99");
        assert_eq!(percent(73.43), "73.4");
        assert_eq!(percent(0.02), "0.02");
    }

    #[test]
    fn an_interval_is_as_fine_as_its_mean_and_never_shown_as_zero() {
        assert_eq!(interval("214.4", 0.62), "0.6");
        assert_eq!(interval("214.4", 0.004), "<0.1");
        assert_eq!(interval("0.05", 0.0), "0");
    }
}
