//! What the receive window holds, hands up, and gives up.

use super::{COST, Taken, Window};
use crate::Order;
use crate::pgm::parity::{Parity, ParitySymbol, Symbol};
use crate::pgm::receiver::Delivered;

/// Bytes that are counted for a packet of these tests.
const HELD: u64 = 1 + COST;

/// A window from number 4 on, with groups of this number of packets.
fn window(group: usize) -> Window {
    let mut window = Window::new(4, Order::BySender);
    window.groups.code = (group > 1).then(|| Parity::new(group).unwrap());
    window
}

fn symbol(number: u64) -> Symbol {
    Symbol { payload: vec![number as u8], fragment: None }
}

fn insert(window: &mut Window, number: u64) -> Taken {
    window.insert(number, symbol(number), u64::MAX, &mut Vec::new())
}

/// The numbers of the packets that are handed up.
fn advance(window: &mut Window) -> Vec<u8> {
    let mut out = Vec::new();
    window.advance(&mut out);
    numbers(&out)
}

fn numbers(out: &[Delivered]) -> Vec<u8> {
    let number = |delivered: &Delivered| match delivered {
        Delivered::Datagram(bytes) => bytes[0],
        other => panic!("{other:?}"),
    };
    out.iter().map(number).collect()
}

fn parity(window: &mut Window, first: u64) {
    let symbol = ParitySymbol { payload: vec![0], is_variable: false, fragment: None };
    assert!(window.groups.insert(first, 0, symbol));
}

#[test]
fn what_comes_before_the_start_is_neither_held_nor_counted() {
    let mut window = window(4);
    for number in [5, 9, 10] {
        assert_eq!(insert(&mut window, number), Taken::New);
    }
    parity(&mut window, 8);
    window.start(9);
    assert_eq!((window.next(), window.base(), window.bytes()), (9, 9, 2 * HELD));
    assert_eq!(window.first_held(), Some((9, &symbol(9))));
    assert_eq!(window.groups.parity_held(8), 0, "it is of packets that are not wanted");
    assert!(!window.is_missing(5) && !window.is_missing(8) && window.is_missing(11));
}

#[test]
fn a_group_is_complete_by_as_much_parity_as_it_lacks_packets() {
    let mut window = window(4);
    insert(&mut window, 5);
    assert_eq!((window.missing_of(4), window.lacks(4)), (3, 3));
    parity(&mut window, 4);
    assert_eq!((window.missing_of(4), window.lacks(4)), (3, 2));
    window.groups.ended_early(4, 2);
    assert_eq!((window.missing_of(4), window.lacks(4)), (1, 0));
    assert!(window.is_missing(4) && !window.is_missing(6), "the group has no third packet");
    window.give_up_group(8);
    assert_eq!((window.missing_of(8), window.lacks(8)), (0, 0), "nothing of it is wanted any more");
}

#[test]
fn packets_stay_until_their_group_is_over_if_there_is_parity() {
    let mut window = window(4);
    insert(&mut window, 4);
    insert(&mut window, 5);
    parity(&mut window, 4);
    assert_eq!(advance(&mut window), [4, 5]);
    assert_eq!((window.next(), window.of_group(4).len(), window.bytes()), (6, 2, 2 * HELD));
    insert(&mut window, 6);
    insert(&mut window, 7);
    assert_eq!(advance(&mut window), [6, 7]);
    assert_eq!((window.next(), window.bytes(), window.groups.parity_held(4)), (8, 0, 0));
    insert(&mut window, 8);
    window.groups.ended_early(8, 1);
    assert_eq!((advance(&mut window), window.next()), (vec![8], 12));
}

#[test]
fn packets_in_a_row_that_are_given_up_are_one_gap() {
    let mut window = window(1);
    for number in [4, 5, 6] {
        window.give_up(number);
    }
    insert(&mut window, 7);
    window.give_up(7);
    assert_eq!(insert(&mut window, 7), Taken::Duplicate, "what is held is not given up");
    assert_eq!(insert(&mut window, 6), Taken::New, "it comes all the same, before its turn");
    assert_eq!(insert(&mut window, 6), Taken::Duplicate);
    assert_eq!(advance(&mut window), [6, 7]);
    assert_eq!((window.units.deliveries.given_up, window.lost.len(), window.bytes()), (1, 0, 0));
    assert_eq!(insert(&mut window, 5), Taken::Duplicate, "its turn is over");
}

#[test]
fn a_full_window_takes_what_helps_it_to_go_on() {
    let mut window = window(4);
    let mut take = |number, limit| window.insert(number, symbol(number), limit, &mut Vec::new());
    assert_eq!(take(20, 0), Taken::New, "it was empty");
    assert_eq!(take(21, HELD), Taken::New, "it is not above the limit");
    assert_eq!(take(9, HELD), Taken::Refused);
    assert_eq!(take(8, HELD), Taken::New, "as far ahead as a group is long");
    assert_eq!(window.bytes(), 3 * HELD);
}

#[test]
fn what_is_held_before_the_trailing_edge_is_handed_up_and_each_gap_counted() {
    let mut window = window(1);
    window.give_up(9);
    for number in [4, 6, 12] {
        insert(&mut window, number);
    }
    let mut out = Vec::new();
    assert!(window.move_to(11, &mut out));
    assert_eq!((numbers(&out), window.next()), (vec![4, 6], 11));
    assert_eq!((window.units.deliveries.given_up, window.lost.len()), (2, 0));
    insert(&mut window, 11);
    assert!(!window.move_to(13, &mut out), "nothing was missing");
    assert_eq!((numbers(&out), window.next()), (vec![4, 6, 11, 12], 13));
    assert_eq!(window.units.deliveries.given_up, 2);
}

#[test]
fn what_its_source_has_never_sent_is_forgotten() {
    let mut window = window(1);
    for number in [5, 6, 9] {
        insert(&mut window, number);
    }
    window.forget_after(5);
    assert_eq!((window.bytes(), window.is_missing(6), window.is_missing(5)), (HELD, true, false));
}
