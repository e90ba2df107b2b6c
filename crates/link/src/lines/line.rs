//! The line from a station to another.

use hopcast_core::{Buffer, Instant, Reception, Stream};

use crate::address::is_for;
use crate::config::{Direction, DropReason};
use crate::flight::Flight;
use crate::path::Path;
use crate::reports::Reports;
use crate::sender::Sender;
use crate::{Attachment, Hearing};

/// A queue and a serialiser, and the path from there.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) sender: Sender,
    pub(super) path: Path,
    from: Attachment,
    to: Attachment,
    /// The address of the station at its other end.
    address: [u8; 6],
}

impl Line {
    /// The line to a station with this address; `stream` decides about its frames.
    pub(super) fn new(
        from: Attachment,
        (to, address): (Attachment, [u8; 6]),
        direction: &Direction,
        stream: Stream,
    ) -> Self {
        let sender = Sender::on_line(from, (to, address), direction);
        Self { sender, path: Path::new(direction, stream), from, to, address }
    }

    /// A frame has left at `end`, and arrives if the station still hears it and does not lose it.
    pub(super) fn arrive(
        &mut self,
        end: Instant,
        frame: Buffer,
        hearing: Option<Hearing>,
        flight: &mut Flight<Option<Reception>>,
        reports: &mut Reports,
    ) {
        let Self { from, to, .. } = *self;
        let Some(Hearing { loss, signal, .. }) = hearing else {
            self.path.missed();
            return reports.dropped(end, from, Some(to), frame, DropReason::Unheard);
        };
        match self.path.fate(end, Some(loss)) {
            Some(fate) => {
                let reception = Reception { signal, rate: self.sender.frame_rate() };
                let overheard = !is_for(&frame, self.address);
                flight.launch(fate, frame, from, to, overheard, Some(reception));
            }
            None => reports.dropped(end, from, Some(to), frame, DropReason::Lost),
        }
    }

    /// Begins the next frame, and returns when that will have left. Those that wait for a station that hears nothing
    /// are dropped.
    pub(super) fn start_next(
        &mut self,
        now: Instant,
        hearing: Option<Hearing>,
        reports: &mut Reports,
    ) -> Option<Instant> {
        while let Some(frame) = self.sender.pull(now, reports) {
            match hearing {
                Some(hearing) => {
                    self.sender.start_at(now, frame, Some(hearing.rate));
                    return self.sender.end();
                }
                None => self.sender.discard(now, frame, DropReason::Unheard, reports),
            }
        }
        None
    }
}
