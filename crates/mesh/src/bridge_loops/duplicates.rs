//! Flooded frames that came by two nodes of one LAN: each sends what it hears there into the mesh.

use hopcast_core::{Duration, Instant};
use hopcast_wire::ethernet::Mac;

/// Number of frames that are remembered (`BATADV_DUPLIST_SIZE`).
const SIZE: usize = 16;
/// Time for which a frame is remembered (`BATADV_DUPLIST_TIMEOUT`).
const TIMEOUT: Duration = Duration::from_millis(500);

/// A frame that has come.
#[derive(Clone, Copy, Debug)]
struct Heard {
    at: Instant,
    checksum: u32,
    /// The node that sent it into the mesh, if the packet says so.
    originator: Option<Mac>,
}

/// The frames that have come last.
#[derive(Debug, Default)]
pub(super) struct Duplicates {
    heard: [Option<Heard>; SIZE],
    next: usize,
}

impl Duplicates {
    /// Whether a frame of this checksum has come by another node just before; otherwise it is remembered
    /// (`batadv_bla_check_duplist`). Equal frames of one originator are
    /// passed: its host sent both.
    pub(super) fn is_duplicate(&mut self, now: Instant, originator: Option<Mac>, checksum: u32) -> bool {
        let by_one_node = |heard: &Heard| {
            originator.is_some() && heard.originator.is_some() && heard.originator == originator
        };
        let mut recent = self.heard.iter().flatten().filter(|heard| heard.at + TIMEOUT >= now);
        if recent.any(|heard| heard.checksum == checksum && !by_one_node(heard)) {
            return true;
        }
        self.heard[self.next] = Some(Heard { at: now, checksum, originator });
        self.next = (self.next + 1) % SIZE;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODES: [Option<Mac>; 3] = [Some([2, 0, 0, 0, 0, 1]), Some([2, 0, 0, 0, 0, 2]), None];

    #[test]
    fn a_frame_by_another_node_is_a_duplicate_for_half_a_second_among_the_last_16() {
        let mut duplicates = Duplicates::default();
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let mut check =
            |millis, node: usize, checksum| duplicates.is_duplicate(at(millis), NODES[node], checksum);
        assert!(!check(0, 0, 7));
        assert!(!check(1, 0, 7), "by the same node");
        assert!(check(2, 1, 7) && check(2, 2, 7));
        assert!(!check(2, 1, 8));
        assert!(check(501, 1, 7) && !check(502, 1, 7));
        assert!(!check(503, 2, 9) && check(503, 2, 9), "nobody says by whom");
        (0..16).for_each(|checksum| assert!(!check(504, 1, 100 + checksum)));
        assert!(!check(505, 0, 8) && check(505, 0, 101));
    }
}
