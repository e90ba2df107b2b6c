//! Claims: which node on a LAN brings which client's frames to it.

use std::collections::{BTreeMap, BTreeSet};

use hopcast_core::{Duration, Instant};
use hopcast_wire::ethernet::Mac;

use super::wire::crc16;
use crate::translation::Key;

/// Time after the last frame of its client for which a node keeps its own claim (`BATADV_BLA_CLAIM_TIMEOUT`).
const CLAIM_TIMEOUT: Duration = Duration::from_secs(100);
/// Maximum number of the node's own claims, and of those of all others, together some 1 MB. Chosen: a quarter of the
/// clients that a node knows. Broadcasts of a client that this node has no room to claim are left to the other nodes.
const MAX_CLAIMS: usize = 4096;

/// The claim of a client.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    pub(super) node: Mac,
    /// Time of the last frame of its client; of others' claims, of the claim.
    pub(super) last_used: Instant,
}

/// The clients that a node claims in a VLAN, and their checksum.
#[derive(Debug, Default)]
struct Claimed {
    clients: BTreeSet<Mac>,
    checksum: u16,
}

/// The claims of the nodes on a LAN.
#[derive(Debug)]
pub(super) struct Claims {
    own: Mac,
    claims: BTreeMap<Key, Claim>,
    /// The same by node and VLAN.
    by_node: BTreeMap<(Mac, u16), Claimed>,
    /// Number of the node's own.
    of_own: usize,
    /// Number of claims for which there was no room.
    pub(super) refused: u64,
}

impl Claims {
    pub(super) const fn new(own: Mac) -> Self {
        Self { own, claims: BTreeMap::new(), by_node: BTreeMap::new(), of_own: 0, refused: 0 }
    }

    pub(super) fn find(&self, client: Key) -> Option<Claim> {
        self.claims.get(&client).copied()
    }

    pub(super) fn len(&self) -> usize {
        self.claims.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Key, Mac)> {
        self.claims.iter().map(|(&client, claim)| (client, claim.node))
    }

    /// Notes that a node claims a client, whoever did before. Returns whether there was room. This node's own claim of
    /// the client ends also where there is no room for the other's.
    pub(super) fn claim(&mut self, now: Instant, client: Key, node: Mac) -> bool {
        if let Some(claim) = self.claims.get_mut(&client).filter(|claim| claim.node == node) {
            claim.last_used = now;
            return true;
        }
        let is_own = node == self.own;
        let needs_room = self.find(client).is_none_or(|before| (before.node == self.own) != is_own);
        let is_full = if is_own { self.of_own >= MAX_CLAIMS } else { self.is_full_of_others() };
        let fits = !needs_room || !is_full;
        if fits || !is_own {
            self.release(client);
        }
        if !fits {
            self.refused += 1;
            return false;
        }
        self.claims.insert(client, Claim { node, last_used: now });
        self.of_own += usize::from(node == self.own);
        let claimed = self.by_node.entry((node, client.vlan)).or_default();
        claimed.clients.insert(client.address);
        claimed.checksum ^= crc16(client.address);
        true
    }

    /// Whether there is no room for a further claim of another node.
    pub(super) fn is_full_of_others(&self) -> bool {
        self.claims.len() - self.of_own >= MAX_CLAIMS
    }

    /// Notes that a client has sent, whose claim is kept.
    pub(super) fn refresh(&mut self, now: Instant, client: Key) {
        if let Some(claim) = self.claims.get_mut(&client) {
            claim.last_used = now;
        }
    }

    /// Forgets the claim of a client.
    pub(super) fn release(&mut self, client: Key) {
        let Some(Claim { node, .. }) = self.claims.remove(&client) else { return };
        self.of_own -= usize::from(node == self.own);
        let place = (node, client.vlan);
        let Some(claimed) = self.by_node.get_mut(&place) else { return };
        claimed.clients.remove(&client.address);
        claimed.checksum ^= crc16(client.address);
        if claimed.clients.is_empty() {
            self.by_node.remove(&place);
        }
    }

    /// Forgets what a node claims in a VLAN.
    pub(super) fn release_all(&mut self, node: Mac, vlan: u16) {
        self.of(node, vlan).into_iter().for_each(|client| self.release(client));
    }

    /// The clients that a node claims in a VLAN.
    pub(super) fn of(&self, node: Mac, vlan: u16) -> Vec<Key> {
        let claimed = self.by_node.get(&(node, vlan)).into_iter();
        claimed.flat_map(|claimed| &claimed.clients).map(|&address| Key { vlan, address }).collect()
    }

    /// The checksum of what a node claims in a VLAN.
    pub(super) fn checksum(&self, node: Mac, vlan: u16) -> u16 {
        self.by_node.get(&(node, vlan)).map_or(0, |claimed| claimed.checksum)
    }

    /// The node's own whose clients have been silent for long.
    pub(super) fn expired(&self, now: Instant) -> Vec<Key> {
        let is_over = |claim: &Claim| claim.node == self.own && claim.last_used + CLAIM_TIMEOUT < now;
        self.claims.iter().filter(|(_, claim)| is_over(claim)).map(|(&client, _)| client).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Mac = [2, 0, 0, 0, 0, 1];
    const OTHER: Mac = [2, 0, 0, 0, 0, 2];
    const ANOTHER: Mac = [2, 0, 0, 0, 0, 3];

    fn client(number: u16) -> Key {
        let [high, low] = number.to_be_bytes();
        Key { vlan: 0, address: [6, 0, 0, 0, high, low] }
    }

    #[test]
    fn checksums_follow_claims_and_forged_ones_leave_room_for_others() {
        let (mut claims, now) = (Claims::new(OWN), Instant::ZERO);
        assert!(claims.claim(now, client(0), OWN));
        for number in 1..=5000 {
            claims.claim(now, client(number), OTHER);
        }
        assert_eq!((claims.len(), claims.refused), (MAX_CLAIMS + 1, 5000 - MAX_CLAIMS as u64));
        assert!(claims.claim(now, client(8), ANOTHER), "a change of owner needs no room");
        assert!(claims.claim(now, client(8), OTHER));
        assert!(claims.claim(now, client(5001), OWN), "the node's own have room of their own");
        let sum = |numbers: &[u16]| numbers.iter().fold(0, |sum, &one| sum ^ crc16(client(one).address));
        assert_eq!(claims.checksum(OWN, 0), sum(&[0, 5001]));
        assert!(claims.claim(now, client(5002), OWN) && !claims.claim(now, client(5002), OTHER));
        assert!(claims.find(client(5002)).is_none(), "given up, though there is no room for the other's");
        // One that changes hands is in one checksum alone.
        assert!(claims.claim(now, client(7), OWN));
        assert_eq!(claims.checksum(OWN, 0), sum(&[0, 5001, 7]));
        claims.release_all(OTHER, 0);
        assert_eq!((claims.len(), claims.checksum(OTHER, 0)), (3, 0));
        let later = now + CLAIM_TIMEOUT + Duration::from_nanos(1);
        claims.refresh(later, client(7));
        assert_eq!(claims.expired(later), [client(0), client(5001)]);
        claims.expired(later).into_iter().for_each(|client| claims.release(client));
        assert_eq!((claims.len(), claims.checksum(OWN, 0)), (1, sum(&[7])));
    }
}
