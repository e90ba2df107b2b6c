//! Streams end, and do not begin again.

use std::cell::RefCell;
use std::rc::Rc;

use hopcast_core::StreamId;

use super::pair::{CLIENT, Hop, Pair, SERVER, ms};
use super::transfer::first;
use crate::kcp::Config;
use crate::kcp::wire::{RESET, Segment};

fn pair() -> Pair {
    Pair::new(1, &Config::FAST3, &[Hop::default()])
}

#[test]
fn one_direction_ends_and_the_other_goes_on() {
    let mut pair = pair();
    pair.accept = (500_000, false);
    pair.open(1000, true);
    pair.run(ms(1000));
    assert!(pair.server().peer_finished);
    assert_eq!(pair.client().read, 500_000);
    assert!(!pair.client().peer_finished);
    pair.server().finish = true;
    pair.act(SERVER, StreamId(1));
    pair.run(ms(100));
    assert!(pair.client().peer_finished);
    assert!(!pair.is_busy());
}

#[test]
fn a_reset_ends_both_directions_at_once() {
    let mut pair = pair();
    pair.accept = (u64::MAX, false);
    let id = pair.open(u64::MAX, false);
    pair.run(ms(500));
    pair.reset(CLIENT, id);
    pair.client().reset = true;
    pair.run(ms(200));
    assert!(pair.server().reset);
    assert!(!pair.is_busy());
    assert_eq!(pair.apps[SERVER].len(), 1, "what was under way opened nothing");
}

#[test]
fn a_lost_reset_is_told_again_when_the_other_end_speaks() {
    let mut pair = pair();
    pair.accept = (1000, false);
    let id = pair.open(1000, false);
    pair.run(ms(500));
    pair.lose = Some(Box::new(|_, _| true));
    pair.reset(CLIENT, id);
    pair.client().reset = true;
    pair.lose = None;
    pair.run(ms(100));
    assert!(!pair.server().reset);
    pair.server().to_write = 2000;
    pair.act(SERVER, StreamId(1));
    pair.run(ms(100));
    assert!(pair.server().reset);
}

#[test]
fn a_lost_last_acknowledgement_is_given_again() {
    let mut pair = pair();
    pair.accept = (0, true);
    pair.open(1000, true);
    // The server finishes in answer; of what the client says to that, some is lost.
    pair.run(ms(15));
    let mut left = 3;
    pair.lose = Some(Box::new(move |end, _| {
        left -= i32::from(end == CLIENT);
        end == CLIENT && left >= 0
    }));
    pair.run(ms(1000));
    assert!(pair.client().peer_finished && pair.server().peer_finished);
    assert!(!pair.client().reset && !pair.server().reset);
    assert!(!pair.is_busy());
}

#[test]
fn a_peer_that_falls_silent_is_given_up() {
    let mut pair = pair();
    pair.open(u64::MAX, false);
    pair.run(ms(500));
    pair.lose = Some(Box::new(|_, _| true));
    pair.run(ms(29_000));
    assert!(!pair.client().reset);
    pair.run(ms(2000));
    assert!(pair.client().reset);
    assert_eq!(pair.counter(CLIENT, "streams_timed_out"), 1);
    assert!(pair.machines[CLIENT].is_still());
}

#[test]
fn a_datagram_that_comes_late_opens_nothing() {
    let mut pair = pair();
    let sent: Rc<RefCell<Vec<Vec<u8>>>> = Rc::default();
    let copy = Rc::clone(&sent);
    pair.lose = Some(Box::new(move |end, bytes| {
        if end == CLIENT {
            copy.borrow_mut().push(bytes.to_vec());
        }
        false
    }));
    pair.accept = (0, true);
    pair.open(10_000, true);
    pair.run(ms(500));
    assert!(!pair.is_busy());
    pair.lose = None;
    for bytes in sent.borrow().iter() {
        pair.inject(SERVER, bytes);
    }
    pair.run(ms(500));
    assert_eq!(pair.apps[SERVER].len(), 1);
    assert!(!pair.is_busy());
}

#[test]
fn what_belongs_to_no_conversation_is_refused_and_a_reset_is_not_answered() {
    let mut pair = pair();
    let sent: Rc<RefCell<Vec<Segment>>> = Rc::default();
    let copy = Rc::clone(&sent);
    pair.lose = Some(Box::new(move |_, bytes| {
        copy.borrow_mut().push(first(bytes));
        true
    }));
    let stray = Segment { command: 81, una: 7, ..Segment::reset(9) };
    pair.inject(SERVER, &stray.emit());
    pair.inject(SERVER, &Segment::reset(9).emit());
    assert_eq!(*sent.borrow(), [Segment::reset(9)]);
    assert_eq!(sent.borrow()[0].command, RESET);
}

#[test]
fn a_conversation_that_never_begins_is_forgotten() {
    let mut pair = pair();
    let waiting = Segment { command: 81, sn: 3, ..Segment::reset(9) };
    pair.inject(SERVER, &waiting.emit());
    assert!(!pair.machines[SERVER].is_still());
    pair.run(ms(31_000));
    assert!(pair.machines[SERVER].is_still());
    assert!(pair.apps[SERVER].is_empty());
}
