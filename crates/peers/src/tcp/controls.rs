//! The congestion controls by name.

use hopcast_core::{Instant, Stream};

use super::bbr::Bbr;
use super::config::Congestion;
use super::congestion::CongestionControl;
use super::cubic::Cubic;
use super::reno::Reno;
use super::vegas::Vegas;

/// The congestion control that `choice` names.
pub(super) fn control(choice: Congestion, now: Instant, random: Stream) -> Box<dyn CongestionControl> {
    match choice {
        Congestion::Cubic => Box::new(Cubic::default()),
        Congestion::Bbr => Box::new(Bbr::new(now, random)),
        Congestion::Reno => Box::new(Reno::default()),
        Congestion::Vegas => Box::new(Vegas::default()),
    }
}
