//! From the last bit on the wire to one listener: loss, delay and jitter, duplication, corruption.

use hopcast_core::{Duration, Fraction, Instant, Stream};

use crate::config::{Direction, Jitter, Loss};
use crate::flight::{Arriving, Fate};
use crate::loss::LossModel;
use crate::{Change, Counters};

/// Bound on a drawn normal number, in standard deviations: by the polar method on 53-bit uniforms,
/// |z| <= √(-2 ln 2^-104) < 12.01.
const MAX_DEVIATIONS: u64 = 13;

/// The path from one sender to one listener.
///
/// Each concern draws from a stream of its own, and as often for every frame, so that turning on one of them, or
/// changing its share, does not change what the others do: the frames corrupted at 1 % are among those corrupted at
/// 2 %, and the same frames are lost with and without jitter.
#[derive(Debug)]
pub(crate) struct Path {
    loss: LossModel,
    /// The losses of the channel below the link's acknowledgements, where there are any.
    channel: LossModel,
    delay: Duration,
    jitter: Jitter,
    /// The jitter of the next frame that leaves, in nanoseconds, drawn ahead so that its arrival is known.
    offset: i64,
    reorder: bool,
    last_arrival: Instant,
    duplicate: Fraction,
    corrupt: Fraction,
    streams: Streams,
    counters: Counters,
}

#[derive(Debug)]
struct Streams {
    loss: Stream,
    jitter: Stream,
    duplicate: Stream,
    corrupt: Stream,
    channel: Stream,
}

impl Path {
    pub(crate) fn new(config: &Direction, mut stream: Stream) -> Self {
        let mut streams = Streams {
            loss: stream.fork(),
            jitter: stream.fork(),
            duplicate: stream.fork(),
            corrupt: stream.fork(),
            channel: stream.fork(),
        };
        let mut path = Self {
            loss: LossModel::new(config.loss.clone(), &mut streams.loss),
            channel: LossModel::new(Loss::None, &mut streams.channel),
            delay: config.delay,
            jitter: config.jitter,
            offset: 0,
            reorder: config.reorder,
            last_arrival: Instant::ZERO,
            duplicate: config.duplicate,
            corrupt: config.corrupt,
            streams,
            counters: Counters::default(),
        };
        path.draw_offset();
        path
    }

    /// Sets the loss of the channel, below acknowledgements, which each transmission has on its own.
    pub(crate) fn set_channel(&mut self, loss: &Loss) {
        self.channel = LossModel::new(loss.clone(), &mut self.streams.channel);
    }

    /// Whether the channel loses the transmission that is on the air.
    pub(crate) fn channel_lost(&mut self) -> bool {
        self.channel.lost(&mut self.streams.channel)
    }

    /// Whether radios lose the transmission that is on the air, of which they lose `share`.
    pub(crate) fn radio_lost(&mut self, share: Fraction) -> bool {
        self.streams.channel.chance(share.get())
    }

    /// The shares of frames lost behind the link's acknowledgements, and of transmissions lost below them.
    pub(crate) fn loss_shares(&self) -> (Fraction, Fraction) {
        (self.loss.stationary(), self.channel.stationary())
    }

    /// Notes a frame that was sent to this listener, on a medium where not every frame is.
    pub(crate) fn sent(&mut self, frame: &[u8]) {
        self.counters.sent_packets += 1;
        self.counters.sent_bytes += frame.len() as u64;
    }

    /// The time at which the next frame arrives if it leaves at `end` and is not lost.
    pub(crate) fn arrival(&self, end: Instant) -> Instant {
        let nanos = self.delay.as_nanos().saturating_add_signed(self.offset);
        let at = end + Duration::from_nanos(nanos);
        if self.reorder { at } else { at.max(self.last_arrival) }
    }

    /// The minimum time on the way, for any frame.
    pub(crate) fn min_delay(&self) -> Duration {
        min_delay(self.delay, self.jitter)
    }

    /// Whether a frame that leaves later could arrive before the next one would.
    pub(crate) fn varies(&self) -> bool {
        self.jitter != Jitter::None
    }

    /// Decides about a frame that has left at `end`, of which radios lose a share of their own; `None` if it is lost.
    pub(crate) fn fate(&mut self, end: Instant, radios: Option<Fraction>) -> Option<Fate> {
        let at = self.arrival(end);
        self.draw_offset();
        let twice = self.duplicate > Fraction::ZERO && self.streams.duplicate.chance(self.duplicate.get());
        let mut flip = None;
        if self.corrupt > Fraction::ZERO {
            let (happens, place) =
                (self.streams.corrupt.chance(self.corrupt.get()), self.streams.corrupt.bits());
            flip = happens.then_some(place);
        }
        let mut lost = self.loss.lost(&mut self.streams.loss);
        if let Some(share) = radios {
            lost |= self.radio_lost(share);
        }
        if lost {
            self.counters.lost_packets += 1;
            return None;
        }
        self.last_arrival = self.last_arrival.max(at);
        Some(Fate { at, twice, flip })
    }

    /// A frame has been sent that this listener does not want: a burst of losses goes on all the same.
    pub(crate) fn pass(&mut self) {
        self.loss.lost(&mut self.streams.loss);
    }

    /// Notes a frame that this listener wanted and did not get, for another reason than loss on the way.
    pub(crate) fn missed(&mut self) {
        self.counters.lost_packets += 1;
    }

    /// A frame has arrived.
    pub(crate) fn delivered<R>(&mut self, frame: &Arriving<R>) {
        self.counters.count_delivered(frame);
    }

    /// Applies what concerns the way of the frames that leave from now on.
    pub(crate) fn change(&mut self, change: &Change) {
        match change {
            Change::Delay(delay) => self.delay = *delay,
            Change::Jitter(jitter) => {
                self.jitter = *jitter;
                self.draw_offset();
            }
            Change::Loss(loss) => self.loss = LossModel::new(loss.clone(), &mut self.streams.loss),
            Change::Corrupt(share) => self.corrupt = *share,
            Change::Duplicate(share) => self.duplicate = *share,
            Change::Reorder(reorder) => self.reorder = *reorder,
            Change::Rate(_)
            | Change::LossTo(..)
            | Change::Queue(_)
            | Change::Mtu(_)
            | Change::Down
            | Change::Up => {}
        }
    }

    /// The listener's figures; `due` are the frames that have arrived but were not polled yet.
    pub(crate) fn counters<'a, R: 'a>(&self, due: impl Iterator<Item = &'a Arriving<R>>) -> Counters {
        let mut counters = self.counters;
        due.for_each(|frame| counters.count_delivered(frame));
        counters
    }

    fn draw_offset(&mut self) {
        self.offset = match self.jitter {
            Jitter::None => 0,
            Jitter::Uniform(limit) => {
                ((2.0 * self.streams.jitter.uniform() - 1.0) * limit.as_nanos() as f64).round() as i64
            }
            Jitter::Normal(deviation) => {
                (self.streams.jitter.normal() * deviation.as_nanos() as f64).round() as i64
            }
        };
    }
}

/// The minimum time on a way with this delay and jitter.
pub(crate) fn min_delay(delay: Duration, jitter: Jitter) -> Duration {
    match jitter {
        Jitter::None => delay,
        Jitter::Uniform(limit) => delay.saturating_sub(limit),
        Jitter::Normal(deviation) => delay.saturating_sub(deviation * MAX_DEVIATIONS),
    }
}

impl Counters {
    fn count_delivered<R>(&mut self, frame: &Arriving<R>) {
        self.delivered_packets += 1;
        self.delivered_bytes += frame.frame.len() as u64;
        self.corrupted_packets += u64::from(frame.corrupted);
        self.duplicated_packets += u64::from(frame.copy);
        self.overheard_packets += u64::from(frame.overheard);
    }
}
