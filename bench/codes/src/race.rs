//! Contenders that take turns, so that whatever disturbs the machine disturbs them all.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Length of a measurement.
#[derive(Copy, Clone)]
pub(crate) struct Pace {
    /// Number of turns of each contender.
    pub(crate) rounds: usize,
    /// Minimum time of a turn.
    pub(crate) turn: Duration,
}

/// Something to be timed, which works on `bytes` bytes each time.
pub(crate) struct Contender<'a> {
    name: &'static str,
    bytes: usize,
    run: Box<dyn FnMut() + 'a>,
}

impl<'a> Contender<'a> {
    pub(crate) fn new(name: &'static str, bytes: usize, run: impl FnMut() + 'a) -> Self {
        Self { name, bytes, run: Box::new(run) }
    }
}

/// Results of a race: for each contender, its rate in every round.
pub(crate) struct Race {
    names: Vec<&'static str>,
    rates: Vec<Vec<f64>>,
}

impl Race {
    pub(crate) fn run(mut contenders: Vec<Contender<'_>>, pace: Pace) -> Self {
        let repeats: Vec<u32> =
            contenders.iter_mut().map(|contender| repeats(contender, pace.turn)).collect();
        let count = contenders.len();
        let mut rates = vec![Vec::with_capacity(pace.rounds); count];
        for round in 0..pace.rounds {
            // Another one begins each time: nobody always follows the same one, whose data is still in the cache.
            for turn in 0..count {
                let i = (round + turn) % count;
                let seconds = time(&mut contenders[i], repeats[i]);
                rates[i].push(contenders[i].bytes as f64 * f64::from(repeats[i]) / seconds / 1e9);
            }
        }
        Self { names: contenders.iter().map(|contender| contender.name).collect(), rates }
    }

    pub(crate) fn names(&self) -> &[&'static str] {
        &self.names
    }

    /// The median rate of a contender in GB/s.
    pub(crate) fn rate(&self, i: usize) -> f64 {
        median(self.rates[i].clone())
    }

    /// The median, over rounds, of the first one's rate as a share of the second one's in the same round.
    pub(crate) fn ratio(&self, of: usize, to: usize) -> f64 {
        median(self.rates[of].iter().zip(&self.rates[to]).map(|(of, to)| of / to).collect())
    }
}

/// Number of times that a contender must run to take up a turn.
fn repeats(contender: &mut Contender<'_>, turn: Duration) -> u32 {
    let mut repeats = 1;
    while time(contender, repeats) < turn.as_secs_f64() {
        repeats *= 2;
    }
    repeats
}

/// The seconds that it takes on the processor: what other processes take is left out.
fn time(contender: &mut Contender<'_>, repeats: u32) -> f64 {
    let now = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).expect("not before its beginning");
    let start = now();
    for _ in 0..repeats {
        (contender.run)();
    }
    (now() - start).as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
