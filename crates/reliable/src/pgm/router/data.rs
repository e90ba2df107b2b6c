//! Data and repairs on their way down (RFC 3208, section 7.7): repairs go where they were asked for, and nowhere else.

use std::net::IpAddr;

use hopcast_core::{Instant, Transit};

use super::machine::{Router, Verdict};
use super::session::SessionKey;
use crate::pgm::wire::{Data, Packet};

impl Router {
    /// Data for the first time goes to all; a repairer keeps it.
    pub(super) fn receive_original(
        &mut self,
        source: IpAddr,
        (packet, transit): (&Packet<'_>, &Transit),
        data: Data,
    ) -> Verdict {
        let key = SessionKey { source, tsi: packet.session };
        if let Some(session) = self.sessions.get_mut(&key)
            && !packet.is_parity
        {
            session.window.note(data.sequence, data.trail);
            self.store.keep(key, data.sequence, &transit.packet);
        }
        Verdict::Pass
    }

    /// A repair goes to the interfaces that wait for it. Of a session that is not known here, as after a restart, it
    /// goes where a router would send it that knows no PGM, and so does parity that was sent unasked.
    pub(super) fn receive_repair(
        &mut self,
        now: Instant,
        source: IpAddr,
        (packet, transit): (&Packet<'_>, &Transit),
        data: Data,
        ingress: u32,
    ) -> Verdict {
        let key = SessionKey { source, tsi: packet.session };
        let Some(session) = self.sessions.get_mut(&key) else { return Verdict::Pass };
        let wanted = session.answered_by(packet.is_parity, data.sequence);
        let is_from_source = session.ingress == ingress;
        let interfaces = is_from_source.then(|| session.repairs.repaired(now, wanted)).flatten();
        if is_from_source && session.may_be_unasked(wanted) {
            return Verdict::Pass;
        }
        if is_from_source && !packet.is_parity {
            self.store.keep(key, data.sequence, &transit.packet);
        }
        match interfaces {
            Some(interfaces) => {
                self.counters.repairs += 1;
                self.counters.repair_copies += interfaces.len() as u64;
                Verdict::Send(interfaces)
            }
            None => {
                self.counters.repairs_unasked += 1;
                Verdict::End
            }
        }
    }
}
