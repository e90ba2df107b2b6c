//! Time that passes for several machines at once.

use hopcast_core::{Duration, Instant};

/// Far more than one event may cause.
pub const MANY: usize = 20_000;

/// Machines whose timers go off at one clock.
pub trait Timers {
    /// The time it is.
    fn now(&mut self) -> &mut Instant;
    /// When each of them is due, of those that are due at all.
    fn due(&self) -> impl Iterator<Item = (Instant, usize)>;
    /// One of them is due now.
    fn go_off(&mut self, which: usize);

    /// Time passes, and what falls due goes off.
    ///
    /// # Panics
    /// If that has no end.
    fn wait(&mut self, span: Duration) {
        let until = *self.now() + span;
        for _ in 0..MANY {
            let next = self.due().min();
            match next {
                Some((at, which)) if at <= until => {
                    let now = self.now();
                    *now = at.max(*now);
                    self.go_off(which);
                }
                _ => {
                    *self.now() = until;
                    return;
                }
            }
        }
        panic!("timers go off without end");
    }
}
