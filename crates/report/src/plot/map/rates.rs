//! Rates of links, in steps that look different in colour and in width.

use hopcast_twin::results::ShipMap;

use crate::number::plain;
use crate::plot::theme::LOADS;

/// Maximum number of rates that are told apart before they are put in steps.
const MAX_RATES: usize = 256;
/// Width of a link in pixels, by step. Chosen: a grey copy tells neighbouring steps apart by it.
const WIDTHS: [f64; LOADS] = [1.0, 1.5, 2.1, 2.8, 3.6];

/// The rates of a radio, from the lowest on.
pub(super) struct Rates {
    rates: Vec<f64>,
}

impl Rates {
    /// Those of the radio; where the document has none, those of its links.
    pub(super) fn of(map: &ShipMap) -> Self {
        let links = || map.moments.iter().flat_map(|moment| &moment.links).map(|link| link.rate_mbps);
        let mut rates = sorted(map.rates_mbps.iter().copied());
        if rates.is_empty() {
            rates = sorted(links());
        }
        Self { rates }
    }

    /// The step of a rate, from 0 for the lowest; one between two rates is as the lower.
    pub(super) fn step(&self, rate: f64) -> usize {
        // A rate that went through a text may be a hair less.
        let above = self.rates.partition_point(|own| *own <= rate * (1.0 + 1e-6));
        self.step_of(above.saturating_sub(1))
    }

    /// The step of the rate with this index. Few rates take the last steps: the first is faint.
    fn step_of(&self, index: usize) -> usize {
        match self.rates.len() {
            0..LOADS => LOADS - self.rates.len().max(1) + index,
            count => index * LOADS / count,
        }
        .min(LOADS - 1)
    }

    /// Each step with its rates: `650`, or `130–195`.
    pub(super) fn legend(&self) -> Vec<(usize, String)> {
        let steps: Vec<(usize, f64)> =
            self.rates.iter().enumerate().map(|(index, rate)| (self.step_of(index), *rate)).collect();
        let entry = |rates: &[(usize, f64)]| {
            let (step, low) = *rates.first()?;
            let high = rates.last()?.1;
            let text = if low < high { format!("{}–{}", short(low), short(high)) } else { short(low) };
            Some((step, text))
        };
        steps.chunk_by(|a, b| a.0 == b.0).filter_map(entry).collect()
    }

    /// Width of a link of this step, in pixels.
    pub(super) fn width(step: usize) -> f64 {
        WIDTHS[step.min(LOADS - 1)]
    }
}

/// A rate of any size in a few characters.
fn short(rate: f64) -> String {
    if rate < 1e7 { plain(rate) } else { format!("{rate:.1e}") }
}

fn sorted(rates: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut rates: Vec<f64> = rates.filter(|rate| rate.is_finite() && *rate > 0.0).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    rates.truncate(MAX_RATES);
    rates
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(rates_mbps: &[f64]) -> Rates {
        Rates::of(&ShipMap { rates_mbps: rates_mbps.to_vec(), ..ShipMap::default() })
    }

    #[test]
    fn nine_rates_are_five_steps() {
        let rates = rates(&[650.0, 585.0, 520.0, 390.0, 260.0, 195.0, 130.0, 65.0, 10.0]);
        let legend: Vec<String> = rates.legend().into_iter().map(|(_, text)| text).collect();
        assert_eq!(legend, ["10–65", "130–195", "260–390", "520–585", "650"]);
        assert_eq!([10.0, 129.9, 130.0, 390.0, 650.0, 1e9].map(|rate| rates.step(rate)), [0, 0, 1, 2, 4, 4]);
    }

    #[test]
    fn few_rates_take_the_darkest_steps() {
        let rates = rates(&[54.0, 6.0]);
        assert_eq!(rates.legend(), [(3, "6".to_owned()), (4, "54".to_owned())]);
        assert_eq!(rates.step(6.0), 3);
    }

    #[test]
    fn rates_that_are_none_do_no_harm() {
        for odd in [&[][..], &[f64::NAN, f64::INFINITY, -1.0, 0.0][..]] {
            let rates = rates(odd);
            assert!(rates.legend().is_empty());
            assert!([f64::NAN, f64::INFINITY, 0.0, 5.0].iter().all(|rate| rates.step(*rate) < LOADS));
        }
    }
}
