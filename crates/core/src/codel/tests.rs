//! The controller against a second, plain transcription of the pseudocode of RFC 8289, section 5.

use proptest::prelude::*;

use super::*;

/// RFC 8289, sections 5.3 to 5.6, with its zero for "none"; a packet is its time stamp, size and number.
struct Rfc {
    queue: std::collections::VecDeque<(u64, u64, u64)>,
    target: u64,
    interval: u64,
    maxpacket: u64,
    first_above_time: u64,
    drop_next: u64,
    count: u32,
    lastcount: u32,
    dropping: bool,
    dropped: Vec<u64>,
}

impl Rfc {
    fn control_law(&self, t: u64, count: u32) -> u64 {
        t + (self.interval as f64 * (1.0 / f64::from(count).sqrt())).round() as u64
    }

    fn dodequeue(&mut self, now: u64) -> (Option<(u64, u64, u64)>, bool) {
        let mut ok_to_drop = false;
        let p = self.queue.pop_front();
        let Some((tstamp, _, _)) = p else {
            self.first_above_time = 0;
            return (p, ok_to_drop);
        };
        let bytes: u64 = self.queue.iter().map(|&(_, bytes, _)| bytes).sum();
        if now - tstamp < self.target || bytes <= self.maxpacket {
            self.first_above_time = 0;
        } else if self.first_above_time == 0 {
            self.first_above_time = now + self.interval;
        } else if now >= self.first_above_time {
            ok_to_drop = true;
        }
        (p, ok_to_drop)
    }

    fn deque(&mut self, now: u64) -> Option<(u64, u64, u64)> {
        let (mut p, mut ok_to_drop) = self.dodequeue(now);
        if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
            }
            while now >= self.drop_next && self.dropping {
                self.dropped.extend(p.map(|(_, _, number)| number));
                self.count += 1;
                (p, ok_to_drop) = self.dodequeue(now);
                if !ok_to_drop {
                    self.dropping = false;
                } else {
                    self.drop_next = self.control_law(self.drop_next, self.count);
                }
            }
        } else if ok_to_drop {
            self.dropped.extend(p.map(|(_, _, number)| number));
            (p, _) = self.dodequeue(now);
            self.dropping = true;
            let delta = self.count - self.lastcount;
            self.count = 1;
            // `drop_next` may lie ahead of `now`; the RFC's signed difference is then negative, and small enough.
            if delta > 1 && now.saturating_sub(self.drop_next) < 16 * self.interval {
                self.count = delta;
            }
            self.drop_next = self.control_law(now, self.count);
            self.lastcount = self.count;
        }
        p
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn every_decision_is_that_of_the_rfc(
        steps in proptest::collection::vec((1u64..400, 0u8..100, 40u64..1500), 200..3_000),
        load in 30u8..70,
        target in 1u64..2_000,
        interval in 1u64..20_000,
    ) {
        let max_packet = 1514;
        let mut backlog = Backlog::default();
        let mut codel = CoDel::new(Duration::from_nanos(target), Duration::from_nanos(interval), max_packet);
        let mut rfc = Rfc {
            queue: Default::default(), target, interval, maxpacket: max_packet, first_above_time: 0, drop_next: 0,
            count: 0, lastcount: 0, dropping: false, dropped: Vec::new(),
        };
        let (mut now, mut dropped) = (1, Vec::new());
        for (number, (pause, kind, len)) in steps.into_iter().enumerate() {
            now += pause;
            // Phases of more and of less load, so that the controller enters and leaves its dropping state.
            let load = if number / 300 % 2 == 0 { load } else { load / 2 };
            if kind < load {
                rfc.queue.push_back((now, len, number as u64));
                backlog.push(tagged(number, len), Instant::from_nanos(now));
            } else {
                let sent = codel.pop(Instant::from_nanos(now), &mut backlog, &mut |gone| dropped.push(tag(&gone)));
                prop_assert_eq!(sent.as_ref().map(tag), rfc.deque(now).map(|(_, _, number)| number));
            }
        }
        prop_assert_eq!(dropped, rfc.dropped);
    }
}

fn tagged(number: usize, len: u64) -> Buffer {
    let mut frame = Buffer::zeroed(len as usize);
    frame[..8].copy_from_slice(&(number as u64).to_be_bytes());
    frame
}

fn tag(waiting: &Waiting) -> u64 {
    u64::from_be_bytes(waiting.frame[..8].try_into().unwrap())
}
