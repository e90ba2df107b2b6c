//! Time that passes for several machines at once.

use hopcast_core::{Duration, Instant, Machine};

/// Far more than one event may cause.
pub const MANY: usize = 20_000;

/// Machines whose timers go off at one clock.
pub trait Timers {
    /// The time it is.
    fn now(&mut self) -> &mut Instant;
    /// Each of them, by its number from 0.
    fn machine(&mut self, which: usize) -> Option<&mut dyn Machine>;
    /// One of them was woken, and may have something to hand over.
    fn woken(&mut self, which: usize);

    /// Time passes, and what falls due goes off.
    ///
    /// # Panics
    /// If that has no end.
    fn wait(&mut self, span: Duration) {
        let until = *self.now() + span;
        for _ in 0..MANY {
            match self.next() {
                Some((at, which)) if at <= until => {
                    let now = at.max(*self.now());
                    *self.now() = now;
                    if let Some(machine) = self.machine(which) {
                        machine.wake(now);
                    }
                    self.woken(which);
                }
                _ => {
                    *self.now() = until;
                    return;
                }
            }
        }
        panic!("timers go off without end");
    }

    /// Time at which the next timer falls due, and which one it is.
    fn next(&mut self) -> Option<(Instant, usize)> {
        let deadlines = (0..).map_while(|which| Some((self.machine(which)?.deadline(), which)));
        deadlines.filter_map(|(at, which)| Some((at?, which))).min()
    }
}
