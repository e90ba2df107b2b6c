//! Virtual time for quinn-proto, in the standard library's instants.
//!
//! Those have no zero, and none can be made but by reading the clock. So one is read, once in a process, and stands for
//! the zero of virtual time. Only differences to it matter, so that nothing which depends on the clock gets any further
//! than this file.

use core::time::Duration as Span;
use std::sync::LazyLock;
pub(super) use std::time::Instant as Moment;
use std::time::SystemTime;

use hopcast_core::{Duration, Instant};
use quinn_proto::TimeSource;

#[expect(clippy::disallowed_methods, reason = "the zero of virtual time, of which only differences are used")]
static ZERO: LazyLock<Moment> = LazyLock::new(Moment::now);

/// A point in virtual time, for quinn-proto.
pub(super) fn moment(at: Instant) -> Moment {
    *ZERO + span(Duration::from_nanos(at.as_nanos()))
}

/// The point in virtual time that quinn-proto means.
pub(super) fn instant(moment: Moment) -> Instant {
    let nanos = moment.saturating_duration_since(*ZERO).as_nanos();
    Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

pub(super) const fn span(span: Duration) -> Span {
    Span::from_nanos(span.as_nanos())
}

/// A calendar that stands still. Only tokens for address validation would ask it, and there are none.
pub(super) struct Calendar;

impl TimeSource for Calendar {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
}
