//! Models of saturated contention: stations that all hear one another, each of which always has a frame for another.

use hopcast_core::Stream;

/// A cell of such stations.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    pub stations: i32,
    /// The first window, in slots, and how often it doubles.
    pub window: u32,
    pub doublings: u32,
    /// In seconds: a slot, and what a frame that arrives and a collision take, up to the first slot behind it.
    pub slot: f64,
    pub success: f64,
    pub collision: f64,
}

/// The throughput of a cell.
#[derive(Clone, Copy, Debug)]
pub struct Saturation {
    /// Frames that arrive in a second.
    pub frames: f64,
    /// The share of transmissions that collide.
    pub collided: f64,
}

/// When back-offs are counted down.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Countdown {
    /// In each slot, also in that in which somebody else begins: Bianchi's chain.
    EverySlot,
    /// At the end of each slot that stayed idle: IEEE 802.11-2020, section 10.3.4.3.
    IdleSlots,
}

impl Cell {
    fn window(&self, doublings: u32) -> f64 {
        f64::from(self.window << doublings.min(self.doublings))
    }

    /// Bianchi's model: G. Bianchi, "Performance Analysis of the IEEE 802.11 Distributed Coordination Function", IEEE
    /// JSAC 18(3), 2000. The probability tau that a station sends in a slot, and p that it then collides, are the fixed
    /// point of its equations (7) and (9); the throughput is equation (13).
    pub fn bianchi(&self) -> Saturation {
        let w = self.window(0);
        // Equation (7) is 0 / 0 at p = 1/2; equation (8), its sum written out, is not.
        let tau_of = |p: f64| {
            let sum: f64 = (0..self.doublings as i32).map(|i| (2.0 * p).powi(i)).sum();
            2.0 / (1.0 + w + p * w * sum)
        };
        let p = self.collision_probability(tau_of);
        let [idle, one, _] = self.shares(tau_of(p));
        let time = idle * self.slot + one * self.success + (1.0 - idle - one) * self.collision;
        Saturation { frames: one / time, collided: p }
    }

    /// The same with counters that freeze, as I. Tinnirello, G. Bianchi and Y. Xiao have it ("Refinements on IEEE
    /// 802.11 Distributed Coordination Function Modeling Approaches", IEEE TVT 59(3), 2010).
    ///
    /// A station that waits behind a transmission has at least one idle slot to count, so that only one that has just
    /// sent can begin in
    /// the first slot behind it: with a new back-off of zero, alone. So a step of the model is a transmission with all
    /// that begin at once behind it, and the slot after that, in which nobody begins; all others count one down
    /// meanwhile. In the paper nobody begins in the first slot behind a collision either, for the standard's timeout of
    /// an acknowledgement; here all wait alike, and one of those who collided may begin.
    pub fn frozen(&self) -> Saturation {
        // The share q of those who begin at once behind a collision that collide again, and r of those who collide that
        // begin at once: both are small, and settle in a few rounds.
        let (mut q, mut r, mut p, mut tau) = (0.0, 0.0, 0.0, 0.0);
        for _ in 0..8 {
            p = self.collision_probability(|p| self.frozen_step(p, q).0);
            (tau, r) = self.frozen_step(p, q);
            let [nobody_else, nobody_again] =
                [tau, tau * r].map(|share: f64| (1.0 - share).powi(self.stations - 1));
            q = 1.0 - (nobody_again - nobody_else) / (1.0 - nobody_else);
        }
        let [idle, one, collisions] = self.shares(tau);
        // Of those who have just collided, nobody begins at once; or one does, and gets across; or several collide.
        let [none, single, _] = self.shares(tau * r);
        let [none, single] = [none - idle - one * (1.0 - r), single - one * r];
        let again = collisions - none - single;
        let arrived = (one + single) / (1.0 - 1.0 / self.window(0));
        let time = idle * self.slot
            + arrived * self.success
            + (collisions + again) * self.collision
            + (one + collisions) * self.slot;
        let collided = f64::from(self.stations) * tau * p * (1.0 + r * q);
        Saturation { frames: arrived / time, collided: collided / (collided + arrived) }
    }

    /// Of the model with counters that freeze: the probability that a station begins in a step, and that one that
    /// collides in it draws zero next.
    fn frozen_step(&self, p: f64, q: f64) -> (f64, f64) {
        // How often each window is drawn from after a collision, and how often it is waited out, for each time that the
        // first is: a draw of zero is no wait, as it is sent at once.
        let (mut drawn, mut waits) = (p, vec![1.0]);
        for stage in 1..=self.doublings {
            let zero = 1.0 / self.window(stage);
            if stage == self.doublings {
                // The last one is drawn from again.
                drawn /= 1.0 - (1.0 - zero) * p - zero * q;
            }
            waits.push(drawn * (1.0 - zero));
            drawn *= (1.0 - zero) * p + zero * q;
        }
        let all: f64 = waits.iter().sum();
        let stages = || (0..).zip(&waits);
        // A back-off from 1 to w - 1 takes as many steps, that of the transmission included: w / 2 in the mean.
        let steps: f64 = stages().map(|(stage, waits)| waits * self.window(stage) / 2.0).sum();
        let zeros: f64 = stages().map(|(stage, waits)| waits / self.window(stage + 1)).sum();
        (all / steps, zeros / all)
    }

    /// The fixed point of what a station does at a probability to collide, and of what it meets then.
    fn collision_probability(&self, tau_of: impl Fn(f64) -> f64) -> f64 {
        // tau falls with p, and p rises with tau.
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..100 {
            let p = (low + high) / 2.0;
            let met = 1.0 - (1.0 - tau_of(p)).powi(self.stations - 1);
            assert!(met.is_finite(), "{self:?} at {p}");
            if met > p { low = p } else { high = p }
        }
        low
    }

    /// The probabilities that of all stations nobody begins, one, or several, if each does with probability `tau`.
    fn shares(&self, tau: f64) -> [f64; 3] {
        let idle = (1.0 - tau).powi(self.stations);
        let one = f64::from(self.stations) * tau * (1.0 - tau).powi(self.stations - 1);
        [idle, one, 1.0 - idle - one]
    }

    /// The counters of each station followed through this number of transmissions, without the models' assumption of
    /// independence.
    pub fn followed(&self, countdown: Countdown, transmissions: u32, stream: &mut Stream) -> Saturation {
        let mut draw = |stage: u32| stream.below(u64::from(self.window << stage));
        let mut stations: Vec<(u64, u32)> = (0..self.stations).map(|_| (draw(0), 0)).collect();
        let (mut time, mut arrived, mut collided) = (0.0, 0.0, 0.0);
        for _ in 0..transmissions {
            let idle = stations.iter().map(|(slots, _)| *slots).min().unwrap_or(0);
            let begin = stations.iter().filter(|(slots, _)| *slots == idle).count();
            let counted = match countdown {
                Countdown::EverySlot => idle + 1,
                Countdown::IdleSlots => idle,
            };
            time += idle as f64 * self.slot + if begin == 1 { self.success } else { self.collision };
            if begin == 1 {
                arrived += 1.0;
            } else {
                collided += begin as f64;
            }
            for (slots, stage) in &mut stations {
                if *slots == idle {
                    *stage = if begin == 1 { 0 } else { (*stage + 1).min(self.doublings) };
                    *slots = draw(*stage);
                } else {
                    *slots -= counted;
                }
            }
        }
        Saturation { frames: arrived / time, collided: collided / (collided + arrived) }
    }
}
