//! Broadcasts: which have been heard, and which are still to be repeated.

use std::collections::BTreeMap;

use hopcast_core::{Buffer, Duration, Instant};
use hopcast_wire::ethernet::Mac;

use crate::address_map::AddressMap;
use crate::window::{self, ResetProtection};

/// Time between two transmissions of a broadcast on one interface (`batadv_forw_bcast_packet`).
const GAP: Duration = Duration::from_millis(5);
/// Number of transmissions on a radio (`BATADV_NUM_BCASTS_WIRELESS`); elsewhere there is one.
pub(super) const TRANSMISSIONS_BY_RADIO: u8 = 3;
/// Maximum number of broadcasts that wait to be repeated (`BATADV_BCAST_QUEUE_LEN`).
const MAX_WAITING: usize = 256;

/// The broadcasts of an originator that have been heard.
#[derive(Debug)]
struct Heard {
    bits: u64,
    newest: u32,
    protection: ResetProtection,
}

/// A broadcast that is to be sent again.
#[derive(Debug)]
pub(super) struct Repeat {
    pub(super) interface: usize,
    /// The packet, without Ethernet header.
    pub(super) packet: Buffer,
    left: u8,
}

/// The state of broadcasts.
#[derive(Debug)]
pub(super) struct Broadcasts {
    heard: AddressMap<Heard>,
    repeats: BTreeMap<(Instant, u64), Repeat>,
    ever: u64,
    last_seqno: u32,
}

impl Broadcasts {
    /// No broadcasts yet, and the number before that of the first one. It is another in each life of a node, or those
    /// after a restart would be taken for ones that were heard before.
    pub(super) const fn new(last_seqno: u32) -> Self {
        Self { heard: AddressMap::new(), repeats: BTreeMap::new(), ever: 0, last_seqno }
    }

    /// Number of the node's next broadcast.
    pub(super) const fn next_seqno(&mut self) -> u32 {
        self.last_seqno = self.last_seqno.wrapping_add(1);
        self.last_seqno
    }

    /// Whether a broadcast of an originator has not been heard before. One that jumps out of the window counts as
    /// heard, but for the first in a while: the originator has restarted then.
    pub(super) fn is_first(&mut self, now: Instant, originator: Mac, seqno: u32) -> bool {
        let Some(heard) = self.heard.get_mut(originator) else {
            let heard = Heard { bits: 1, newest: seqno, protection: ResetProtection::default() };
            self.heard.insert(originator, heard);
            return true;
        };
        let ahead = seqno.wrapping_sub(heard.newest).cast_signed();
        if window::contains(heard.bits, heard.newest, seqno) || heard.protection.refuses(now, ahead) {
            return false;
        }
        if window::advance(&mut heard.bits, ahead, true) {
            heard.newest = seqno;
        }
        true
    }

    pub(super) fn forget(&mut self, originator: Mac) {
        self.heard.remove(originator);
    }

    /// Notes that a packet is to be sent so often again. Returns whether there was room.
    pub(super) fn repeat(&mut self, now: Instant, interface: usize, packet: Buffer, left: u8) -> bool {
        let room = self.repeats.len() < MAX_WAITING;
        if room && left > 0 {
            self.repeats.insert((now + GAP, self.ever), Repeat { interface, packet, left });
            self.ever += 1;
        }
        room
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.repeats.first_key_value().map(|(&(at, _), _)| at)
    }

    /// The first packet that is to be repeated now.
    pub(super) fn due(&mut self, now: Instant) -> Option<(usize, Buffer)> {
        let entry = self.repeats.first_entry().filter(|entry| entry.key().0 <= now)?;
        let Repeat { interface, packet, left } = entry.remove();
        if left > 1 {
            self.repeats
                .insert((now + GAP, self.ever), Repeat { interface, packet: packet.clone(), left: left - 1 });
            self.ever += 1;
        }
        Some((interface, packet))
    }
}
