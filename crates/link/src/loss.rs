//! Loss models: their figures, and the state that runs one.

use hopcast_core::{Fraction, Stream};

use crate::config::Loss;

impl Loss {
    /// The share of frames lost in the long run.
    ///
    /// Gilbert-Elliott: P_E = r(1-k)/(p+r) + p(1-h)/(p+r). Four states: P_E = π3 + π4 with
    /// π3 = p13 p23 / D, π4 = p14 p23 p31 / D, D = p13 p23 + p23 p31 + p14 p23 p31 + p13 p32. A chain with more than
    /// one stationary distribution (p + r = 0; D = 0) is taken to start in its good state, and what is given is the
    /// long run from there: with p + r = 0 it stays good, with p13 = 0 it knows the states 1 and 4 only, and with
    /// p23 = p32 = 0 the states 1, 3 and 4 only. A trace gives its share of ones.
    pub fn stationary(&self) -> Fraction {
        let share = match self {
            Self::None => 0.0,
            Self::Independent(share) => share.get(),
            Self::GilbertElliott { p, r, k, h } => {
                let [good, bad] = two_states(*p, *r);
                good * k.complement().get() + bad * h.complement().get()
            }
            Self::FourState { p13, p31, p32, p23, p14 } => {
                let [_, _, burst, alone] = four_states([*p13, *p31, *p32, *p23, *p14]);
                burst + alone
            }
            Self::Trace(lost) if lost.is_empty() => 0.0,
            Self::Trace(lost) => lost.iter().filter(|&&lost| lost).count() as f64 / lost.len() as f64,
        };
        // Rounding may take a certain loss a hair past the whole.
        Fraction::new(share).unwrap_or(Fraction::ONE)
    }

    /// The mean number of frames lost in a row, in the long run: the share of frames lost over the share of frames
    /// that begin a burst. Zero if nothing is ever lost, infinite if everything is.
    pub fn mean_burst(&self) -> f64 {
        let begins = match self {
            Self::None => 0.0,
            Self::Independent(share) => share.get() * share.complement().get(),
            Self::GilbertElliott { p, r, k, h } => {
                let [good, bad] = two_states(*p, *r);
                let lost_after_good =
                    p.complement().get() * k.complement().get() + p.get() * h.complement().get();
                let lost_after_bad =
                    r.get() * k.complement().get() + r.complement().get() * h.complement().get();
                good * k.get() * lost_after_good + bad * h.get() * lost_after_bad
            }
            Self::FourState { p13, p31, p32, p23, p14 } => {
                let [good, within, _, _] = four_states([*p13, *p31, *p32, *p23, *p14]);
                good * (p13.get() + p14.get()) + within * p23.get()
            }
            Self::Trace(lost) if lost.is_empty() => 0.0,
            Self::Trace(lost) => {
                let before = lost.iter().cycle().skip(lost.len() - 1);
                let begins = lost.iter().zip(before).filter(|&(&lost, &before)| lost && !before).count();
                begins as f64 / lost.len() as f64
            }
        };
        match self.stationary().get() {
            0.0 => 0.0,
            share => share / begins,
        }
    }

    /// Whether the probabilities of each state leave room for one another.
    ///
    /// # Errors
    ///
    /// For the four-state model: `p31 + p32` or `p13 + p14` is more than 100 %.
    pub fn validate(&self) -> Result<(), LossError> {
        let Self::FourState { p13, p31, p32, p14, .. } = self else {
            return Ok(());
        };
        for (names, state, one, other) in [("p31 + p32", 3, p31, p32), ("p13 + p14", 1, p13, p14)] {
            // A hair above the whole is the rounding of percentages.
            let sum = one.get() + other.get();
            if sum > 1.0 + 1e-9 {
                return Err(LossError { names, state, percent: sum * 100.0 });
            }
        }
        Ok(())
    }
}

/// The probabilities of leaving one state of the four-state model, which add up to more than 100 %.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("{names} is {percent} %, but all ways out of state {state} are at most 100 %")]
pub struct LossError {
    names: &'static str,
    state: u8,
    percent: f64,
}

/// A loss model at work.
#[derive(Debug)]
pub(crate) struct LossModel {
    config: Loss,
    state: State,
}

/// The state of a model, for the next frame.
#[derive(Clone, Copy, Debug)]
enum State {
    Memoryless,
    Good,
    Bad,
    /// State 1 to 4 of the four-state model is 0 to 3 here.
    Of4(u8),
    /// The next entry of a trace.
    At(usize),
}

impl LossModel {
    /// A model in its stationary distribution; a trace at its beginning.
    pub(crate) fn new(config: Loss, stream: &mut Stream) -> Self {
        let state = match &config {
            Loss::None | Loss::Independent(_) => State::Memoryless,
            Loss::GilbertElliott { p, r, .. } => {
                let [_, bad] = two_states(*p, *r);
                if stream.chance(bad) { State::Bad } else { State::Good }
            }
            Loss::FourState { p13, p31, p32, p23, p14 } => {
                let [one, two, three, _] = four_states([*p13, *p31, *p32, *p23, *p14]);
                let draw = stream.uniform();
                let bounds = [one, one + two, one + two + three];
                State::Of4(bounds.iter().filter(|&&bound| draw >= bound).count() as u8)
            }
            Loss::Trace(_) => State::At(0),
        };
        Self { config, state }
    }

    /// The share of frames lost in the long run.
    pub(crate) fn stationary(&self) -> Fraction {
        self.config.stationary()
    }

    /// Whether the next frame is lost. Draws as often for a lost frame as for one that passes.
    pub(crate) fn lost(&mut self, stream: &mut Stream) -> bool {
        match (&self.config, self.state) {
            (Loss::None, _) => false,
            (Loss::Independent(share), _) => stream.chance(share.get()),
            (Loss::GilbertElliott { p, k, .. }, State::Good) => {
                let lost = !stream.chance(k.get());
                if stream.chance(p.get()) {
                    self.state = State::Bad;
                }
                lost
            }
            (Loss::GilbertElliott { r, h, .. }, _) => {
                let lost = !stream.chance(h.get());
                if stream.chance(r.get()) {
                    self.state = State::Good;
                }
                lost
            }
            (Loss::FourState { p13, p31, p32, p23, p14 }, State::Of4(state)) => {
                let draw = stream.uniform();
                let next = match state {
                    0 if draw < p13.get() => 2,
                    0 if draw < p13.get() + p14.get() => 3,
                    1 if draw < p23.get() => 2,
                    2 if draw < p31.get() => 0,
                    2 if draw < p31.get() + p32.get() => 1,
                    3 => 0,
                    stay => stay,
                };
                self.state = State::Of4(next);
                state >= 2
            }
            (Loss::Trace(lost), State::At(index)) => {
                self.state = State::At(if index + 1 < lost.len() { index + 1 } else { 0 });
                lost.get(index).copied().unwrap_or(false)
            }
            // `new` gives each model a state of its own.
            (Loss::FourState { .. } | Loss::Trace(_), _) => false,
        }
    }
}

/// The stationary distribution over good and bad.
fn two_states(p: Fraction, r: Fraction) -> [f64; 2] {
    let (p, r) = (p.get(), r.get());
    if p + r == 0.0 { [1.0, 0.0] } else { [r / (p + r), p / (p + r)] }
}

/// The stationary distribution over the states 1 to 4.
fn four_states(probabilities: [Fraction; 5]) -> [f64; 4] {
    let [p13, p31, p32, p23, p14] = probabilities.map(Fraction::get);
    let weights = if p13 == 0.0 {
        [1.0, 0.0, 0.0, p14]
    } else if p23 == 0.0 && p32 == 0.0 {
        [p31, 0.0, p13, p14 * p31]
    } else {
        [p23 * p31, p13 * p32, p13 * p23, p14 * p23 * p31]
    };
    let sum: f64 = weights.iter().sum();
    weights.map(|weight| weight / sum)
}

#[cfg(test)]
mod tests {
    use hopcast_core::Seed;

    use super::*;

    #[test]
    fn a_state_is_left_by_draws_below_its_probability_and_not_by_one_that_equals_it() {
        // Draws are in [0, 1): those below p have the probability p, and those up to and including p a hair more.
        let stream = Seed::new(1, 0).stream(&["loss"], 0);
        let draw = stream.clone().uniform();
        let (below, half) = (draw.next_down(), draw / 2.0);
        let next = |state, probabilities: [f64; 5]| {
            let [p13, p31, p32, p23, p14] = probabilities.map(|share| Fraction::new(share).expect("a share"));
            let config = Loss::FourState { p13, p31, p32, p23, p14 };
            let mut model = LossModel { config, state: State::Of4(state) };
            model.lost(&mut stream.clone());
            let State::Of4(next) = model.state else { unreachable!("another model's state") };
            next
        };
        // From the state, by the probability that the draw equals, and by the next one above it.
        assert_eq!(
            (next(0, [draw, 0.0, 0.0, 0.0, 0.0]), next(0, [draw.next_up(), 0.0, 0.0, 0.0, 0.0])),
            (0, 2)
        );
        assert_eq!((next(0, [half, 0.0, 0.0, 0.0, half]), next(0, [half, 0.0, 0.0, 0.0, draw])), (0, 3));
        assert_eq!(
            (next(1, [0.0, 0.0, 0.0, draw, 0.0]), next(1, [0.0, 0.0, 0.0, draw.next_up(), 0.0])),
            (1, 2)
        );
        assert_eq!(
            (next(2, [0.0, draw, 0.0, 0.0, 0.0]), next(2, [0.0, draw.next_up(), 0.0, 0.0, 0.0])),
            (2, 0)
        );
        assert_eq!((next(2, [0.0, half, half, 0.0, 0.0]), next(2, [0.0, half, draw, 0.0, 0.0])), (2, 1));
        assert_eq!(next(2, [0.0, below, 0.0, 0.0, 0.0]), 2);
    }
}
