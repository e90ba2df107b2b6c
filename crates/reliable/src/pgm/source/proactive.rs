//! Parity that is sent before anybody asks: as much as the group asks for in any case.

use std::collections::VecDeque;

use super::window::Window;
use crate::Proactive;

/// The need of parity of the last transmission groups.
#[derive(Debug)]
pub(super) struct Needs {
    proactive: Proactive,
    /// Parity of the last groups of which all requests have come.
    last: VecDeque<usize>,
    /// Groups of which requests may still come, with what was sent unasked.
    open: VecDeque<(u64, usize)>,
}

/// Groups that decide together: the lowest need of all of them. Chosen: of fewer, a need is taken for granted that is
/// not there, and each packet too many costs bytes.
const GROUPS: usize = 8;
/// Groups that must have shown a need before any of it is sent unasked.
const ENOUGH: usize = 2;
/// Groups that are sent before the requests for one have come. Chosen: one would do on short paths.
const OPEN: usize = 2;

impl Needs {
    pub(super) const fn new(proactive: Proactive) -> Self {
        Self { proactive, last: VecDeque::new(), open: VecDeque::new() }
    }

    /// Whether parity is ever sent unasked.
    pub(super) const fn is_proactive(&self) -> bool {
        !matches!(self.proactive, Proactive::Fixed(0))
    }

    /// A group of `size` packets has been sent: the parity packets that follow it unasked.
    pub(super) fn group_ended(&mut self, first: u64, window: &mut Window, size: usize) -> usize {
        let Proactive::Adaptive = self.proactive else {
            let Proactive::Fixed(count) = self.proactive else { return 0 };
            return count.into();
        };
        while self.open.len() >= OPEN {
            let Some((group, unasked)) = self.open.pop_front() else { break };
            let is_short = window.size(group) < window.size(first).max(size);
            if let Some(state) = window.group(group).filter(|_| !is_short) {
                // What nobody has asked beyond may have been too much.
                let need = if state.is_asked { state.promised as usize } else { unasked.saturating_sub(1) };
                self.last.push_back(need);
            }
        }
        while self.last.len() > GROUPS {
            self.last.pop_front();
        }
        let enough = if self.last.len() >= ENOUGH { self.last.iter().min() } else { None };
        // Of a short group a part, rounded down.
        let count = enough.map_or(0, |&need| need * size / window.full().max(1));
        self.open.push_back((first, count));
        count
    }
}
