//! The configuration of a shared medium's access control.

use hopcast_core::{Bytes, Duration, Rate};

use super::Loss;

/// The medium access control of a shared medium.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Mac {
    /// One at a time, in the order in which frames were offered; no time is lost between two.
    #[default]
    Perfect,
    /// Carrier sense with random back-off.
    Csma(Csma),
    /// A line of its own for each pair of stations, as between two Ethernet interfaces; for stations with radios.
    /// Without [radios](super::MediumConfig::radios) it is the same as [`Mac::Perfect`].
    EthernetLike,
}

/// Contention as in 802.11's distributed coordination function (IEEE 802.11-2020, section 10.3).
///
/// The loss of the medium's direction and of its pairs lies *above* the acknowledgements: the link has delivered such a
/// frame, it is lost behind it, and it is never retried. The loss of `channel` lies below, and is retried.
#[derive(Clone, Debug, PartialEq)]
pub struct Csma {
    /// The unit of back-offs. If it is shorter than the time to sense a transmission, most transmissions collide.
    pub slot: Duration,
    /// The pause before an acknowledgement.
    pub sifs: Duration,
    /// The time for which the medium must have been idle before slots are counted.
    pub difs: Duration,
    /// The first back-off is drawn from 0 to this many slots. Too small and many collide, too large and the medium
    /// idles.
    pub cw_min: u32,
    /// The window doubles (2 w + 1) with each retry, up to this.
    pub cw_max: u32,
    /// Maximum number of retransmissions of a frame to one station, which is dropped if none is acknowledged. A frame
    /// to a group is sent once.
    pub retries: u32,
    /// Time on the air of each frame beyond the bits of its Ethernet frame at the medium's rate: preamble, PHY header,
    /// and the bytes by which the MAC header is longer than Ethernet's.
    pub overhead: Duration,
    /// Time of an acknowledgement on the air, with its preamble.
    pub ack: Duration,
    /// Loss of transmissions at each listener, below the acknowledgements. An acknowledgement is never lost. Default:
    /// none.
    pub channel: Loss,
    /// Requests to send. Default: none.
    pub rts: Option<Rts>,
}

/// Requests to send, and the answers that clear the way, before long frames to one station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rts {
    /// Minimum length of such a frame, in bytes of the Ethernet frame.
    pub threshold: Bytes,
    /// Time of a request on the air, with its preamble.
    pub rts: Duration,
    /// Time of its answer on the air, with its preamble.
    pub cts: Duration,
}

impl Rts {
    /// 802.11g's, at `rate` or the highest mandatory rate up to it, of frames from `threshold` bytes on.
    pub fn ofdm(threshold: Bytes, rate: Rate) -> Self {
        // Table 9-1 and section 9.3.1.2: 20 bytes of a request; its answer is as long as an acknowledgement.
        Self { threshold, rts: control_time(20, rate), cts: control_time(14, rate) }
    }
}

/// IEEE 802.11-2020, section 17.3.2: 16 µs of training and a signal field of 4 µs; section 18.3.2.4: 6 µs of signal
/// extension.
const OFDM_PREAMBLE: Duration = Duration::from_micros(26);
/// Bits of the service field, 16, and of the tail, 6 (IEEE 802.11-2020, section 17.3.2).
const OFDM_SERVICE_AND_TAIL: u64 = 22;

/// Time on the air of a control frame of `bytes` in answer to a frame at `rate`: at the highest mandatory rate up to
/// it.
fn control_time(bytes: u64, rate: Rate) -> Duration {
    let basic = [24, 12, 6].map(Rate::from_mbit).into_iter().find(|&basic| basic <= rate).unwrap_or(rate);
    OFDM_PREAMBLE + basic.time_for(OFDM_SERVICE_AND_TAIL + bytes * 8) / 8
}

impl Csma {
    /// 802.11g at `rate` in an ad-hoc network (IEEE 802.11-2020, table 18-5: slots are 20 µs long where there is no
    /// access point to say otherwise), without the padding of the last OFDM symbol.
    pub fn ofdm(rate: Rate) -> Self {
        // 24 bytes of MAC header, 8 of LLC and SNAP and 4 of FCS instead of Ethernet's 14.
        let header = 22 * 8;
        Self {
            slot: Duration::from_micros(20),
            sifs: Duration::from_micros(10),
            difs: Duration::from_micros(50),
            cw_min: 15,
            cw_max: 1023,
            retries: 7,
            overhead: OFDM_PREAMBLE + rate.time_for(OFDM_SERVICE_AND_TAIL + header) / 8,
            ack: control_time(14, rate),
            channel: Loss::None,
            rts: None,
        }
    }

    /// The pause after a frame with errors (IEEE 802.11-2020, section 10.3.2.3.7): an acknowledgement that others may
    /// hear has the time to come.
    pub fn eifs(&self) -> Duration {
        self.sifs + self.ack + self.difs
    }
}

impl Default for Csma {
    /// [`Csma::ofdm`] at 12 Mbit/s.
    fn default() -> Self {
        Self::ofdm(Rate::from_mbit(12))
    }
}
