//! What the transmit window holds, and for how long somebody who asks keeps it from moving on.

use hopcast_core::{Duration, Instant};

use super::{COST, Window};
use crate::pgm::parity::Symbol;

const PAYLOAD: u64 = 72;
const PATIENCE: Duration = Duration::from_secs(4);

const fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

/// A window of groups of 4 that has sent `packets` from number 8 on.
fn window(packets: u64) -> Window {
    let mut window = Window::new(8, 4);
    push(&mut window, packets);
    window
}

fn push(window: &mut Window, packets: u64) {
    for _ in 0..packets {
        window.push(Symbol { payload: vec![0; PAYLOAD as usize], fragment: None });
    }
}

#[test]
fn whole_groups_make_room_and_the_one_that_is_being_sent_stays() {
    let mut window = window(10);
    assert!(window.group(8).is_some() && window.groups.len() == 1);
    assert!(window.make_room(at(0), 10 * (PAYLOAD + COST), PATIENCE));
    assert_eq!(window.trail(), 8, "there is room for all of them");
    assert!(window.make_room(at(0), 10 * (PAYLOAD + COST) - 1, PATIENCE));
    assert_eq!((window.trail(), window.has(11), window.has(12)), (12, false, true));
    assert_eq!(window.bytes, 6 * (PAYLOAD + COST));
    assert!(window.groups.is_empty(), "nothing is remembered of a group that is not held");
    assert!(window.make_room(at(0), 0, PATIENCE));
    assert_eq!((window.trail(), window.has(15), window.has(16)), (16, false, true));
}

#[test]
fn a_group_that_somebody_asks_for_stays_while_the_last_request_is_recent() {
    let mut window = window(12);
    // The third packet of a group: all of it stays.
    window.asked(at(500), 10);
    assert_eq!(window.room_due(at(500), PATIENCE), None);
    assert!(!window.make_room(at(600), 0, PATIENCE) && window.has(8));
    assert_eq!(window.room_due(at(600), PATIENCE), Some(at(1_100)), "an eighth of the patience");
    assert!(!window.make_room(at(1_499), 0, PATIENCE));
    assert!(window.make_room(at(1_500), 0, PATIENCE) && !window.has(8));
    assert_eq!(window.room_due(at(1_500), PATIENCE), None);
}

#[test]
fn who_asks_all_the_time_holds_each_group_for_the_patience_and_no_longer() {
    let mut window = window(12);
    for ms in (0..4_000).step_by(500) {
        window.asked(at(ms), 8);
        window.asked(at(ms), 12);
        assert!(!window.make_room(at(ms), 0, PATIENCE), "{ms}");
    }
    window.asked(at(4_000), 8);
    window.asked(at(4_000), 12);
    assert!(!window.make_room(at(4_000), 0, PATIENCE));
    assert_eq!(window.trail(), 12, "the next one is waited for anew");
}

#[test]
fn a_request_for_a_number_past_the_end_of_a_short_group_is_one_for_the_group() {
    let mut window = window(1);
    assert_eq!(window.end_group(), Some(1));
    push(&mut window, 4);
    window.asked(at(0), 10);
    assert!(!window.make_room(at(0), 0, PATIENCE));
}

#[test]
fn parity_is_that_of_groups_that_have_all_they_will_have() {
    let mut window = window(6);
    assert!(window.group(8).is_some());
    assert!(window.group(9).is_none(), "no group begins there");
    assert!(window.group(12).is_none(), "it is being sent");
    assert!(window.group(16).is_none() && window.group(4).is_none(), "nothing of them was sent");
    assert_eq!(window.end_group(), Some(2));
    assert!(window.group(12).is_some());
    assert_eq!((window.size(8), window.size(12), window.full()), (4, 2, 4));
}

#[test]
fn a_group_that_is_ended_early_leaves_out_numbers() {
    let mut window = window(4);
    assert_eq!((window.end_group(), window.ended_early()), (None, None), "it is full");
    push(&mut window, 2);
    assert_eq!((window.ended_early(), window.end_group(), window.end_group()), (None, Some(2), None));
    assert_eq!((window.ended_early(), window.lead(), window.next()), (Some(2), 13, 16));
    push(&mut window, 1);
    assert_eq!((window.ended_early(), window.lead(), window.next()), (None, 16, 17));
}

#[test]
fn a_group_whose_first_packet_is_not_held_is_not_ended() {
    let mut window = Window::new(9, 4);
    push(&mut window, 1);
    assert_eq!((window.end_group(), window.next()), (None, 10));
}

#[test]
fn an_empty_window_has_sent_what_is_before_its_first_number() {
    let window = window(0);
    assert_eq!((window.trail(), window.lead(), window.next(), window.ended_early()), (8, 7, 8, None));
}
