//! A designated local repairer on the tree (RFC 3208, section 3.6.3 and appendix D): NAKs are answered with data that
//! was kept when it passed by.

use std::sync::Arc;

use hopcast_core::{Buffer, Egress, Item, Transit};

use super::encapsulation::{self, Place};
use super::feedback::{Requests, messages};
use super::machine::Router;
use super::repair::Wanted;
use super::session::SessionKey;
use crate::pgm::wire::{Body, Packet};

impl Router {
    /// Sends packets that were kept as repairs on the interface on which they were asked for, and a NNAK upstream, by
    /// which the source learns of the loss.
    pub(super) fn send_stored(&mut self, key: SessionKey, repaired: Vec<(u32, Buffer)>, interface: u32) {
        let Some(session) = self.sessions.get(&key).filter(|_| !repaired.is_empty()) else { return };
        let requests: Requests =
            repaired.iter().map(|&(sequence, _)| (Wanted::Packet(sequence), 1)).collect();
        let reports = messages(key, session, &requests, Body::NullNak);
        let (ingress, egress): (_, Arc<[u32]>) = (session.ingress, Arc::new([interface]));
        for (_, kept) in repaired {
            if let Some((place, repair)) = as_repair(&kept) {
                let header = place.header;
                let ends = (header.source, header.destination);
                let packet =
                    encapsulation::wrap(repair.emit(), place.encapsulation, ends, (header.hop_limit, true));
                let egress = Egress::Group(egress.clone());
                self.counters.repairs_of_store += 1;
                self.out.down(Item::Transit(Transit { packet, ingress: Some(ingress), egress }));
            }
            kept.recycle();
        }
        for report in reports {
            self.counters.reports += 1;
            self.send_up(key, &report);
        }
    }
}

/// A data packet as the repair of it, and the place that it had in its IP packet.
pub(super) fn as_repair(kept: &[u8]) -> Option<(Place, Packet<'_>)> {
    let (place, packet) = encapsulation::read(kept)?;
    let (Body::Original(data) | Body::Repair(data)) = packet.body else { return None };
    Some((place, Packet { body: Body::Repair(data), ..packet }))
}
