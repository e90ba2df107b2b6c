//! Scheduled changes of routes and MTUs.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time;

use hopcast_core::Duration;
use hopcast_node::Clock;

use super::{Error, Lab, several_at_once};
use crate::layout::{Reroute, Scheduled};

/// Changes the routes and MTUs of nodes, each at its time, until it is finished.
pub struct Rerouter {
    stop: Sender<()>,
    thread: JoinHandle<Result<Duration, Error>>,
}

impl Lab {
    /// Starts the changes of `reroutes`.
    ///
    /// # Errors
    /// [`Error::Thread`], if no thread can be started.
    pub fn reroute_on_time(
        &self,
        mut reroutes: Vec<Scheduled<Reroute>>,
        clock: Clock,
    ) -> Result<Rerouter, Error> {
        let nodes = self.nodes.clone();
        reroutes.sort_by_key(|reroute| reroute.at);
        let (stop, stopped) = mpsc::channel();
        let work = move || {
            let mut latest = Duration::ZERO;
            for moment in reroutes.chunk_by(|one, next| one.at == next.at) {
                let at = moment[0].at;
                let wait = time::Duration::from_nanos(clock.until(at).as_nanos());
                // Stopped, or the `Rerouter` is gone.
                if stopped.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
                    break;
                }
                let failed = |error| Error::Reroute { at, source: Box::new(error) };
                // A call for each that changes, where other routes need a program.
                for Scheduled { what: Reroute { node, group_routes, .. }, .. } in moment {
                    nodes[*node].reroute_groups(group_routes).map_err(failed)?;
                }
                let reroute = |number: usize| {
                    let Reroute { node, routes, mtus, .. } = &moment[number].what;
                    nodes[*node].reroute(routes, mtus)
                };
                several_at_once(moment.len(), reroute).map_err(failed)?;
                latest = latest.max(clock.now().since(at));
            }
            Ok(latest)
        };
        let thread =
            std::thread::Builder::new().name("routes".to_owned()).spawn(work).map_err(Error::Thread)?;
        Ok(Rerouter { stop, thread })
    }
}

impl Rerouter {
    /// Stops, and returns the maximum lateness of a change.
    ///
    /// # Errors
    /// A change that could not be made.
    pub fn finish(self) -> Result<Duration, Error> {
        drop(self.stop);
        self.thread.join().unwrap_or(Err(Error::Panicked))
    }
}
