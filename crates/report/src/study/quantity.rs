//! Swept values as positions on an axis.

/// The values of one swept path on a common scale.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AxisValues {
    /// The unit of `places`.
    pub(crate) unit: String,
    /// Each value as written, with its position.
    pub(crate) places: Vec<(String, f64)>,
}

/// Families of units that convert into each other, each unit with its size.
const FAMILIES: &[&[(&str, f64)]] = &[
    &[("ns", 1e-9), ("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0), ("min", 60.0), ("h", 3600.0)],
    &[("bit/s", 1.0), ("kbit/s", 1e3), ("Mbit/s", 1e6), ("Gbit/s", 1e9)],
    &[
        ("B", 1.0),
        ("kB", 1e3),
        ("KiB", 1024.0),
        ("MB", 1e6),
        ("MiB", 1048576.0),
        ("GB", 1e9),
        ("GiB", 1073741824.0),
    ],
    &[("m", 1.0), ("km", 1e3)],
];

/// Places these values on one scale, in the unit of the largest; `None` unless all are numbers of units that
/// convert into each other.
pub(crate) fn axis_values(values: &[String]) -> Option<AxisValues> {
    let parsed: Vec<(f64, &str)> = values.iter().map(|value| parse(value)).collect::<Option<_>>()?;
    let family = |unit: &str| FAMILIES.iter().find(|family| family.iter().any(|(name, _)| *name == unit));
    let size = |unit: &str| family(unit)?.iter().find(|(name, _)| *name == unit).map(|(_, size)| *size);
    let magnitude = |(number, unit): &(f64, &str)| number.abs() * size(unit).unwrap_or(1.0);
    let largest = parsed.iter().max_by(|a, b| magnitude(a).total_cmp(&magnitude(b)))?;
    let unit = largest.1;
    let place = |(number, own): &(f64, &str)| {
        if *own == unit || (*number == 0.0 && own.is_empty()) {
            return Some(*number);
        }
        let same = std::ptr::eq(family(own)?, family(unit)?);
        same.then(|| Some(number * size(own)? / size(unit)?)).flatten()
    };
    let places = parsed.iter().map(place).collect::<Option<Vec<f64>>>()?;
    Some(AxisValues { unit: unit.to_owned(), places: values.iter().cloned().zip(places).collect() })
}

fn parse(value: &str) -> Option<(f64, &str)> {
    let value = value.trim();
    let end = value.find(|c: char| !(c.is_ascii_digit() || "+-._".contains(c))).unwrap_or(value.len());
    let number: f64 = value[..end].replace('_', "").parse().ok()?;
    number.is_finite().then_some((number, value[end..].trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(values: &[&str]) -> Option<(String, Vec<f64>)> {
        let values: Vec<String> = values.iter().map(ToString::to_string).collect();
        axis_values(&values)
            .map(|axis| (axis.unit, axis.places.into_iter().map(|(_, place)| place).collect()))
    }

    #[test]
    fn values_of_one_unit_stand_at_their_numbers() {
        assert_eq!(places(&["0 %", "5 %", "12.5%"]), Some(("%".into(), vec![0.0, 5.0, 12.5])));
        assert_eq!(places(&["1", "2"]), Some((String::new(), vec![1.0, 2.0])));
    }

    #[test]
    fn units_of_one_family_convert_to_that_of_the_largest() {
        assert_eq!(places(&["500us", "2 ms"]), Some(("ms".into(), vec![0.5, 2.0])));
    }

    #[test]
    fn names_and_mixed_units_are_no_axis() {
        assert_eq!(places(&["low", "high"]), None);
        assert_eq!(places(&["5 %", "5 ms"]), None);
    }
}
