//! The latest step of each content at each position.

use super::follower::At;
use super::quick::QuickMap;

/// Number of positions of a content that are in its list. Chosen: most contents have two or three; what is flooded to
/// thousands of nodes must not be sought one by one.
const MAX_LISTED: usize = 8;

/// The latest step of each content at each position.
///
/// Contents are numbered in the order in which they appear, so that those of one time are beside each other in
/// memory; in a map each look-up would be a cache miss.
pub(super) struct Latest {
    /// For each content the first of its positions: 1 + its place in `listed`, or 0.
    first: Vec<u32>,
    listed: Vec<Listed>,
    /// Positions of contents that have more than are listed.
    others: QuickMap<(At, u32), u32>,
}

struct Listed {
    at: At,
    step: u32,
    /// The next position of the content: 1 + its place, or 0.
    next: u32,
}

impl Latest {
    /// For contents up to this number.
    pub(super) fn new(contents: u32) -> Self {
        let first = vec![0; contents as usize + 1];
        Self { first, listed: Vec::new(), others: QuickMap::default() }
    }

    pub(super) fn get(&self, at: At, content: u32) -> Option<usize> {
        match self.find(at, content) {
            Ok(place) => Some(self.listed[place].step as usize),
            Err(MAX_LISTED) => self.others.get(&(at, content)).map(|&step| step as usize),
            Err(_) => None,
        }
    }

    pub(super) fn set(&mut self, at: At, content: u32, step: usize) {
        // As many steps as there are events, of a log that is in memory.
        let step = step as u32;
        match self.find(at, content) {
            Ok(place) => self.listed[place].step = step,
            Err(MAX_LISTED) => _ = self.others.insert((at, content), step),
            Err(_) => {
                let Some(first) = self.first.get_mut(content as usize) else { return };
                self.listed.push(Listed { at, step, next: *first });
                *first = self.listed.len() as u32;
            }
        }
    }

    /// The place of a position among the listed ones, or else how many the content has.
    fn find(&self, at: At, content: u32) -> Result<usize, usize> {
        let mut next = self.first.get(content as usize).copied().unwrap_or(0);
        for number in 0..MAX_LISTED {
            let Some(place) = (next as usize).checked_sub(1) else { return Err(number) };
            if self.listed[place].at == at {
                return Ok(place);
            }
            next = self.listed[place].next;
        }
        Err(MAX_LISTED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_position_has_its_latest_step_however_many_there_are() {
        let mut latest = Latest::new(3);
        for round in 0..2 {
            for node in 0..100 {
                latest.set(At::Node(node), 2, (round * 100 + node) as usize);
                latest.set(At::Sent(node), 3, 7);
            }
        }
        for node in 0..100 {
            assert_eq!(latest.get(At::Node(node), 2), Some(100 + node as usize));
            assert_eq!(latest.get(At::Node(node), 3), None);
            assert_eq!(latest.get(At::Sent(node), 3), Some(7));
        }
        assert_eq!(latest.get(At::Node(0), 1), None);
        assert_eq!(latest.listed.len(), 2 * MAX_LISTED);
    }
}
